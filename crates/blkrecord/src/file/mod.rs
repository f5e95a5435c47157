//! The file format `.blkrecord`.
//!
//! ```text
//! 16 bytes   magic "blklab record\n" and the version of the format (u16)
//! blocks     each: kind (4 bytes), stored bytes (u32), raw bytes (u32), CRC-32 of these and the data (u32),
//!            data: zstd
//! ```
//!
//! All integers are little endian. Kinds of blocks, in the order in which they appear:
//!
//! | Kind | Contents |
//! |---|---|
//! | `FACT` | [`crate::facts::Facts`] as JSON; the first block, once |
//! | `NAME` | new names, each a length (varint) and UTF-8; numbered on from 1 |
//! | `IOS ` | I/Os, column by column ([`columns`]) |
//! | `TASK` | task events, likewise |
//! | `CGRP` | more [`crate::facts::CgroupFacts`] as JSON: an array |
//! | `TALL` | [`crate::facts::Tally`] so far, as JSON; behind each `IOS ` block |
//! | `END ` | the final tally; a file without it was not closed |
//!
//! A block refers only to names that precede it. So whatever happens to the recorder, the file is readable
//! up to the last whole block. Readers skip blocks of kinds that they do not know.

pub mod block;
pub mod columns;
mod reader;
mod varint;
mod writer;

pub use reader::Reader;
pub use writer::Writer;

/// The first bytes of every file.
pub const MAGIC: &[u8; 14] = b"blklab record\n";
/// Version of the format. Version 1 had no processors, of I/Os or of the machine, and versions 1 and 2 no segments; both
/// are still read.
pub const VERSION: u16 = 3;
/// The oldest version that is read.
pub const OLDEST_VERSION: u16 = 1;
