//! Contents of the disk: pages that are not zero.

use std::collections::BTreeMap;

/// Unit of storage.
const PAGE_BYTES: usize = 4096;

/// The contents of a disk; only pages that are not zero take memory.
#[derive(Debug, Default)]
pub struct Store {
    pages: BTreeMap<u64, Box<[u8; PAGE_BYTES]>>,
}

impl Store {
    /// Stores `data`, written at byte `offset`.
    pub fn write(&mut self, offset: u64, data: &[u8]) {
        for (page, within, part) in parts(offset, data.len()) {
            let data = &data[part];
            if let Some(kept) = self.pages.get_mut(&page) {
                kept[within..within + data.len()].copy_from_slice(data);
                if is_zero(&kept[..]) {
                    self.pages.remove(&page);
                }
            } else if !is_zero(data) {
                let mut fresh = Box::new([0; PAGE_BYTES]);
                fresh[within..within + data.len()].copy_from_slice(data);
                self.pages.insert(page, fresh);
            }
        }
    }

    /// Reads `data` from byte `offset`.
    pub fn read(&self, offset: u64, data: &mut [u8]) {
        for (page, within, part) in parts(offset, data.len()) {
            let data = &mut data[part];
            match self.pages.get(&page) {
                Some(kept) => data.copy_from_slice(&kept[within..within + data.len()]),
                None => data.fill(0),
            }
        }
    }
}

fn is_zero(data: &[u8]) -> bool {
    data.iter().all(|byte| *byte == 0)
}

/// The pages of a range: page number, first byte within the page, part of the range.
fn parts(offset: u64, len: usize) -> impl Iterator<Item = (u64, usize, std::ops::Range<usize>)> {
    let mut done = 0;
    std::iter::from_fn(move || {
        if done >= len {
            return None;
        }
        let at = offset + done as u64;
        let within = (at % PAGE_BYTES as u64) as usize;
        let bytes = (PAGE_BYTES - within).min(len - done);
        let part = done..done + bytes;
        done += bytes;
        Some((at / PAGE_BYTES as u64, within, part))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_give_what_was_written_and_zeroes_elsewhere() {
        let mut store = Store::default();
        store.write(4000, &[7; 5000]);
        let mut data = [1; 10_000];
        store.read(0, &mut data);
        assert!(data[..4000].iter().all(|b| *b == 0));
        assert!(data[4000..9000].iter().all(|b| *b == 7));
        assert!(data[9000..].iter().all(|b| *b == 0));
    }

    #[test]
    fn zeroes_take_no_memory() {
        let mut store = Store::default();
        store.write(0, &vec![0; 1 << 20]);
        assert!(store.pages.is_empty());
        store.write(512, &[1; 512]);
        assert_eq!(store.pages.len(), 1);
        store.write(0, &[0; 4096]);
        assert!(store.pages.is_empty());
    }
}
