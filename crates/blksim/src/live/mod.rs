//! A simulation that somebody watches and changes while it runs.

pub mod view;
