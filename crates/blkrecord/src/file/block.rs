//! Blocks: a kind, lengths, a checksum, and compressed data.

use std::io::{self, Read, Write};

/// Bytes before a block's data.
pub const HEADER_BYTES: usize = 16;
/// A block of [`crate::batch::BATCH_IOS`] I/Os of the worst kind has 1 MiB; a damaged length must not make
/// a reader allocate more than this.
const MOST_BYTES: u32 = 16 << 20;
/// zstd's level: 3 is its default; higher ones cost processor time while recording.
const LEVEL: i32 = 1;

/// The contents of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kind(pub [u8; 4]);

impl Kind {
    pub const FACTS: Self = Self(*b"FACT");
    pub const NAMES: Self = Self(*b"NAME");
    pub const IOS: Self = Self(*b"IOS ");
    pub const TASKS: Self = Self(*b"TASK");
    pub const CGROUPS: Self = Self(*b"CGRP");
    pub const TALLY: Self = Self(*b"TALL");
    pub const END: Self = Self(*b"END ");
}

/// Compresses and writes one block with a single call, so that a kill cannot separate its parts.
pub fn write(out: &mut impl Write, kind: Kind, raw: &[u8]) -> io::Result<()> {
    let stored = zstd::bulk::compress(raw, LEVEL)?;
    let mut block = Vec::with_capacity(HEADER_BYTES + stored.len());
    block.extend_from_slice(&kind.0);
    block.extend_from_slice(&(stored.len() as u32).to_le_bytes());
    block.extend_from_slice(&(raw.len() as u32).to_le_bytes());
    block.extend_from_slice(&checksum(&block, &stored).to_le_bytes());
    block.extend_from_slice(&stored);
    out.write_all(&block)
}

/// The outcome of reading a block.
#[derive(Debug)]
pub enum Found {
    Block(Kind, Vec<u8>),
    /// The file ends here, between two blocks.
    End,
    /// The file ends within this block, or the block is damaged.
    Damaged(&'static str),
}

/// Reads and checks one block.
pub fn read(input: &mut impl Read) -> io::Result<Found> {
    let mut header = [0; HEADER_BYTES];
    match fill(input, &mut header)? {
        0 => return Ok(Found::End),
        HEADER_BYTES => {}
        _ => return Ok(Found::Damaged("the file ends within a block's header")),
    }
    let word = |at: usize| {
        u32::from_le_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]])
    };
    let (stored_bytes, raw_bytes) = (word(4), word(8));
    if stored_bytes > MOST_BYTES || raw_bytes > MOST_BYTES {
        return Ok(Found::Damaged("a block has an impossible length"));
    }
    let mut stored = Vec::new();
    input.by_ref().take(u64::from(stored_bytes)).read_to_end(&mut stored)?;
    if stored.len() < stored_bytes as usize {
        return Ok(Found::Damaged("the file ends within a block"));
    }
    if checksum(&header[..12], &stored) != word(12) {
        return Ok(Found::Damaged("a block's checksum is wrong"));
    }
    let Ok(raw) = zstd::bulk::decompress(&stored, raw_bytes as usize) else {
        return Ok(Found::Damaged("a block cannot be decompressed"));
    };
    if raw.len() != raw_bytes as usize {
        return Ok(Found::Damaged("a block has a wrong length"));
    }
    Ok(Found::Block(Kind([header[0], header[1], header[2], header[3]]), raw))
}

fn checksum(head: &[u8], stored: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(head);
    hasher.update(stored);
    hasher.finalize()
}

/// Reads until the buffer is full or the input ends.
fn fill(input: &mut impl Read, buffer: &mut [u8]) -> io::Result<usize> {
    let mut filled = 0;
    while filled < buffer.len() {
        match input.read(&mut buffer[filled..]) {
            Ok(0) => break,
            Ok(count) => filled += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(filled)
}
