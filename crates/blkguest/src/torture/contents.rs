//! Contents of blocks: each says which block it is, and which write put it there.

use blksim::core::rng::mix;

use super::plan::BLOCK_BYTES;

const WORDS: usize = (BLOCK_BYTES / 8) as usize;

/// A value that no other block, version or seed has.
fn origin(seed: u64, block: u64, version: u32) -> u64 {
    mix(mix(seed ^ 0x746f_7274).wrapping_add(block) ^ (u64::from(version) << 40))
}

/// Fills a block as its write number `version` does; version 0 is a block that nobody wrote.
pub fn fill(memory: &mut [u8], seed: u64, block: u64, version: u32) {
    let first = origin(seed, block, version);
    for (index, word) in (0_u64..).zip(memory.chunks_exact_mut(8)) {
        let value = if version == 0 { 0 } else { first.wrapping_add(index) };
        word.copy_from_slice(&value.to_le_bytes());
    }
}

/// Whether a block has the contents of a version.
pub fn is_of(memory: &[u8], seed: u64, block: u64, version: u32) -> bool {
    debug_assert_eq!(memory.len(), WORDS * 8);
    let first = origin(seed, block, version);
    (0_u64..).zip(memory.chunks_exact(8)).all(|(index, word)| {
        let expected = if version == 0 { 0 } else { first.wrapping_add(index) };
        word == expected.to_le_bytes()
    })
}

/// The block whose contents these are, to say where wrong data came from.
pub fn describe(memory: &[u8], seed: u64, blocks: u64, versions: u32) -> String {
    if memory.iter().all(|byte| *byte == 0) {
        return "zeros".to_owned();
    }
    for block in 0..blocks {
        for version in 1..=versions {
            if is_of(memory, seed, block, version) {
                return format!("version {version} of block {block}");
            }
        }
    }
    "a mixture, or contents of nobody".to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn contents_are_of_one_block_version_and_seed() {
        let mut memory = vec![1_u8; BLOCK_BYTES as usize];
        fill(&mut memory, 5, 7, 2);
        assert!(is_of(&memory, 5, 7, 2));
        for (seed, block, version) in [(6, 7, 2), (5, 8, 2), (5, 7, 1), (5, 7, 0)] {
            assert!(!is_of(&memory, seed, block, version));
        }
        assert_eq!(describe(&memory, 5, 10, 3), "version 2 of block 7");
        memory[4095] ^= 1;
        assert!(!is_of(&memory, 5, 7, 2));
        assert_eq!(describe(&memory, 5, 10, 3), "a mixture, or contents of nobody");
        fill(&mut memory, 5, 7, 0);
        assert_eq!(describe(&memory, 5, 10, 3), "zeros");
    }
}
