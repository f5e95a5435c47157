//! The events of one page of the kernel's ring buffer (`include/linux/ring_buffer.h`,
//! `kernel/trace/ring_buffer.c`).
//!
//! A page begins with the time of its first event and with the number of bytes in use. Each event begins
//! with 32 bits: five of type or length, 27 of nanoseconds since the event before.

use super::format;

/// Where the parts of a page are (`events/header_page`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Layout {
    commit: usize,
    commit_bytes: usize,
    data: usize,
    data_bytes: usize,
}

/// Types of events; smaller numbers are lengths in words.
const TYPE_PADDING: u32 = 29;
const TYPE_TIME_EXTEND: u32 = 30;
const TYPE_TIME_STAMP: u32 = 31;
const DELTA_BITS: u32 = 27;
/// The lower bits of `commit`; above are flags for lost events.
const COMMIT_MASK: u64 = (1 << 20) - 1;
/// An absolute time has 59 bits; the upper ones are those of the page's time.
const STAMP_MASK: u64 = (1 << 59) - 1;

impl Layout {
    pub fn parse(text: &str) -> Option<Self> {
        // The same notation as an event's, without a number.
        let layout = format::parse(&format!("ID: 0\n{text}"))?;
        let (commit, data) = (layout.field("commit")?, layout.field("data")?);
        let sound = data.offset >= 16 && data.bytes >= 64 && data.bytes <= 1 << 24;
        let known = commit.offset == 8 && (commit.bytes == 8 || commit.bytes == 4);
        (sound && known).then_some(Self {
            commit: commit.offset,
            commit_bytes: commit.bytes,
            data: data.offset,
            data_bytes: data.bytes,
        })
    }

    pub fn page_bytes(&self) -> usize {
        self.data + self.data_bytes
    }
}

/// Calls `give` with the time and the bytes of each event; stops where the page makes no sense.
pub fn events(page: &[u8], layout: &Layout, give: &mut impl FnMut(u64, &[u8])) {
    let Some(mut now) = page.first_chunk::<8>().map(|bytes| u64::from_le_bytes(*bytes)) else {
        return;
    };
    let Some(commit) = page.get(layout.commit..layout.commit + layout.commit_bytes) else { return };
    let commit = commit.iter().rev().fold(0, |value, byte| value << 8 | u64::from(*byte));
    let used = (commit & COMMIT_MASK) as usize;
    let Some(data) = page.get(layout.data..) else { return };
    let mut rest = &data[..used.min(data.len())];
    while let Some((head, after)) = rest.split_first_chunk::<4>() {
        let head = u32::from_le_bytes(*head);
        let (kind, delta) = (head & 0x1f, u64::from(head >> 5));
        let first_word =
            after.first_chunk::<4>().map(|bytes| u64::from(u32::from_le_bytes(*bytes)));
        let length = match kind {
            TYPE_PADDING if delta == 0 => return,
            TYPE_PADDING => {
                now = now.wrapping_add(delta);
                first_word
            }
            TYPE_TIME_EXTEND => {
                now = now.wrapping_add(first_word.unwrap_or(0) << DELTA_BITS).wrapping_add(delta);
                Some(4)
            }
            TYPE_TIME_STAMP => {
                let stamp = (first_word.unwrap_or(0) << DELTA_BITS).wrapping_add(delta);
                now = stamp & STAMP_MASK | now & !STAMP_MASK;
                Some(4)
            }
            0 => {
                now = now.wrapping_add(delta);
                let length = first_word;
                if let Some(event) = length.and_then(|length| after.get(4..length as usize)) {
                    give(now, event);
                }
                length
            }
            words => {
                now = now.wrapping_add(delta);
                let length = words as usize * 4;
                if let Some(event) = after.get(..length) {
                    give(now, event);
                }
                Some(length as u64)
            }
        };
        let Some(next) = length.and_then(|length| after.get(length as usize..)) else { return };
        rest = next;
    }
}

/// Events that were dropped or overwritten, of `per_cpu/cpuN/stats`.
pub fn lost(stats: &str) -> u64 {
    let counts = stats.lines().filter_map(|line| {
        let (name, value) = line.split_once(':')?;
        matches!(name, "overrun" | "commit overrun" | "dropped events")
            .then(|| value.trim().parse::<u64>().ok())?
    });
    counts.sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    const LAYOUT: Layout = Layout { commit: 8, commit_bytes: 8, data: 16, data_bytes: 4080 };

    fn page(words: &[u32]) -> Vec<u8> {
        let mut page = 1000_u64.to_le_bytes().to_vec();
        page.extend((words.len() as u64 * 4).to_le_bytes());
        page.extend(words.iter().flat_map(|word| word.to_le_bytes()));
        page.resize(4096, 0);
        page
    }

    fn read(page: &[u8]) -> Vec<(u64, Vec<u8>)> {
        let mut found = Vec::new();
        events(page, &LAYOUT, &mut |at, bytes| found.push((at, bytes.to_vec())));
        found
    }

    #[test]
    fn the_kernels_description_of_a_page() {
        let text = "\tfield: u64 timestamp;\toffset:0;\tsize:8;\tsigned:0;\n\
            \tfield: local_t commit;\toffset:8;\tsize:8;\tsigned:1;\n\
            \tfield: int overwrite;\toffset:8;\tsize:1;\tsigned:1;\n\
            \tfield: char data;\toffset:16;\tsize:4080;\tsigned:0;\n";
        assert_eq!(Layout::parse(text), Some(LAYOUT));
    }

    #[test]
    fn every_kind_of_event() {
        let words = [
            // Two words of data, 5 ns later.
            2 | 5 << 5,
            1,
            2,
            // Time goes on by 1 << 27 and 3.
            TYPE_TIME_EXTEND | 3 << 5,
            1,
            // A discarded event of two words, 7 ns later.
            TYPE_PADDING | 7 << 5,
            8,
            0,
            // A long event: its length, with the word that holds it, comes first.
            1 << 5,
            8,
            9,
            // An absolute time.
            TYPE_TIME_STAMP | 11 << 5,
            0,
            1,
            4,
        ];
        let found = read(&page(&words));
        let start = 1000 + 5 + (1 << 27) + 3 + 7 + 1;
        assert_eq!(
            found[0],
            (1005, [1_u32, 2].iter().flat_map(|word| word.to_le_bytes()).collect())
        );
        assert_eq!(found[1], (start, 9_u32.to_le_bytes().to_vec()));
        assert_eq!(found[2], (11, 4_u32.to_le_bytes().to_vec()));
        assert_eq!(found.len(), 3);
    }

    #[test]
    fn nonsense_ends_the_page() {
        let mut state = 1_u64;
        for _ in 0..20_000 {
            let words: Vec<u32> = (0..30)
                .map(|_| {
                    state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                    (state >> 40) as u32 >> (state >> 60)
                })
                .collect();
            let page = page(&words);
            assert!(read(&page[..state as usize % 140]).len() <= 30);
            assert!(read(&page).len() <= 30);
        }
    }

    #[test]
    fn lost_events_are_counted() {
        let stats = "entries: 5\noverrun: 2\ncommit overrun: 0\nbytes: 9\ndropped events: 4\n";
        assert_eq!(lost(stats), 6);
    }
}
