//! blksim in a browser: simulations that a page steps, looks at and changes.
//!
//! | Module | Contents |
//! |---|---|
//! | [`session`] | one running simulation |
//! | [`change`] | changes of it, as JSON |
//! | [`view`] | its state at this moment, as JSON |
//! | [`own_scheduler`] | a scheduler whose code is the page's |
//! | [`abi`] | the functions that the page calls, in plain C |
//!
//! The page's half of the interface is `python/blklab/labs/playground/page/simulator.js`.

pub mod abi;
pub mod change;
pub mod own_scheduler;
pub mod session;
pub mod view;
