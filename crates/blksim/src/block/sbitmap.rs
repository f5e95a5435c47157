//! The sbitmap: tags (or tokens) in a bitmap of several words, with queues of sleepers (`struct
//! sbitmap_queue`).
//!
//! Kernel: `lib/sbitmap.c` and `include/linux/sbitmap.h`, Linux 6.1. A freed tag goes to the first
//! that asks: sleepers are woken in batches and try again when they run; by then another may have
//! it.

use std::collections::VecDeque;

use crate::block::kernel_version::Behaviours;
use crate::core::branch::{likely, unlikely};

/// Wait queues over which sleepers are spread (`SBQ_WAIT_QUEUES`).
const NR_LISTS: usize = 8;
/// Most sleepers that are woken at once (`SBQ_WAKE_BATCH`).
const LARGEST_BATCH: u32 = 8;

/// Bits in a word of an sbitmap of this depth: words are halved until there are at least four, if
/// there are four tags (`sbitmap_calculate_shift`).
pub fn bits_per_word(tags: u32) -> u32 {
    let mut word = 64;
    while tags >= 4 && word * 4 > tags {
        word /= 2;
    }
    word
}

/// A word (`struct sbitmap_word`). A freed tag is marked in `cleared` and becomes free once the
/// rest of the word is used up.
#[derive(Debug, Clone, Copy, Default)]
struct Word {
    /// The tags that exist.
    depth_mask: u64,
    /// Bits of the tags in use, and of those that were freed.
    bits: u64,
    cleared: u64,
}

#[derive(Debug, Clone)]
pub struct SbitmapQueue {
    words: Vec<Word>,
    /// Bits in a word, a power of two, and its logarithm.
    bits_per_word: u32,
    shift: u32,
    nr_tags: u32,
    /// The most tags that it ever had: beyond fewer, some may be in use.
    largest: u32,
    min_shallow_depth: u32,
    /// A shallow depth counts tags of the whole map.
    shallow_depth_of_map: bool,
    /// A batch continues with the next wait queue if one has too few sleepers.
    batch_wakes_across_lists: bool,
    nr_used: u32,
    /// Tag at which the next search begins.
    alloc_hint: u32,
    sleepers: [VecDeque<u32>; NR_LISTS],
    nr_sleepers: u32,
    /// Wait queues of the next sleeper and of the next batch to wake.
    next_list: usize,
    /// Wait queue of the task that was woken last, in case it sleeps again.
    own_list: Option<usize>,
    next_woken: usize,
    wake_batch: u32,
    /// Tags given back, and those for which a batch was woken.
    given_back: u32,
    accounted: u32,
}

/// The `nr` lowest bits.
#[inline]
fn low_bits(nr: u32) -> u64 {
    if nr >= 64 { u64::MAX } else { (1 << nr) - 1 }
}

/// Sleepers woken at once: few enough that freeing a full map wakes all queues
/// (`sbq_calc_wake_batch`).
fn batch_of(nr_tags: u32, bits_per_word: u32, min_shallow_depth: u32) -> u32 {
    let share = min_shallow_depth.min(bits_per_word);
    let sure = nr_tags / bits_per_word * share + (nr_tags % bits_per_word).min(share);
    (sure / NR_LISTS as u32).clamp(1, LARGEST_BATCH)
}

impl SbitmapQueue {
    /// `nr_tags` tags in words of `bits_per_word`. At least `min_shallow_depth` of each word can
    /// always be used.
    pub fn new(nr_tags: u32, bits_per_word: u32, min_shallow_depth: u32) -> Self {
        let mut map = Self {
            words: Vec::new(),
            bits_per_word,
            shift: bits_per_word.trailing_zeros(),
            nr_tags: 0,
            nr_used: 0,
            largest: 0,
            alloc_hint: 0,
            sleepers: Default::default(),
            nr_sleepers: 0,
            next_list: 0,
            own_list: None,
            next_woken: 0,
            wake_batch: 1,
            min_shallow_depth,
            shallow_depth_of_map: false,
            batch_wakes_across_lists: false,
            given_back: 0,
            accounted: 0,
        };
        map.resize(nr_tags);
        map
    }

    /// Follows a release of the kernel.
    pub fn with_behaviours(mut self, behaviours: Behaviours) -> Self {
        self.shallow_depth_of_map = behaviours.shallow_depth_of_map;
        self.batch_wakes_across_lists = behaviours.batch_wakes_across_lists;
        self.wake_batch = self.sleepers_of_batch();
        self
    }

    fn sleepers_of_batch(&self) -> u32 {
        if self.shallow_depth_of_map {
            let sure = self.nr_tags.min(self.min_shallow_depth);
            return (sure / NR_LISTS as u32).clamp(1, LARGEST_BATCH);
        }
        batch_of(self.nr_tags, self.bits_per_word, self.min_shallow_depth)
    }

    /// The tags of a word that may be used within a shallow depth of the whole map
    /// (`__map_depth_with_shallow`).
    fn usable_of_map(&self, index: usize, shallow_depth: u32) -> u64 {
        let of_word = self.words[index].depth_mask.count_ones();
        if shallow_depth >= self.nr_tags {
            return low_bits(of_word);
        }
        let product = u64::from(of_word) * u64::from(shallow_depth);
        let (share, rest) = (product / u64::from(self.nr_tags), product % u64::from(self.nr_tags));
        let first_of_next = (index as u64 + 1) * u64::from(of_word);
        low_bits(share as u32 + u32::from(rest >= first_of_next))
    }

    /// Sets the tag at which the first search begins (`init_alloc_hint` in `lib/sbitmap.c`, which
    /// draws it).
    pub fn begin_at(&mut self, tag: u32) {
        self.alloc_hint = tag;
    }

    /// Changes the number of tags. Tags beyond it that are in use remain so.
    pub fn resize(&mut self, nr_tags: u32) {
        let words = nr_tags.div_ceil(self.bits_per_word).max(self.words.len() as u32);
        self.words.resize(words as usize, Word::default());
        for (first, word) in (0..).step_by(self.bits_per_word as usize).zip(&mut self.words) {
            word.depth_mask = low_bits(nr_tags.saturating_sub(first).min(self.bits_per_word));
        }
        self.nr_tags = nr_tags;
        self.largest = self.largest.max(nr_tags);
        self.wake_batch = self.sleepers_of_batch();
    }

    pub fn nr_tags(&self) -> u32 {
        self.nr_tags
    }

    pub fn nr_used(&self) -> u32 {
        self.nr_used
    }

    pub fn nr_sleepers(&self) -> u32 {
        self.nr_sleepers
    }

    /// Takes a tag; with `shallow_depth`, only among so many first ones of each word.
    #[inline(always)]
    pub fn take(&mut self, shallow_depth: Option<u32>) -> Option<u32> {
        // The word of the tag freed last nearly always has a free one.
        if likely(shallow_depth.is_none() && self.alloc_hint < self.nr_tags) {
            let index = self.alloc_hint >> self.shift;
            if let Some(bit) = self.words[index as usize].take(u64::MAX, 0) {
                return Some(self.taken((index << self.shift) + bit));
            }
        }
        self.search(shallow_depth)
    }

    /// Notes that a tag was taken.
    #[inline]
    fn taken(&mut self, tag: u32) -> u32 {
        if tag == self.alloc_hint {
            self.alloc_hint = if tag + 1 >= self.nr_tags.saturating_sub(1) { 0 } else { tag + 1 };
        }
        self.nr_used += 1;
        debug_assert!(tag < self.nr_tags, "tag {tag} of {}", self.nr_tags);
        tag
    }

    #[inline(never)]
    fn search(&mut self, shallow_depth: Option<u32>) -> Option<u32> {
        // Nothing is free, nor marked as freed.
        if self.nr_used >= self.nr_tags && self.nr_tags == self.largest {
            self.alloc_hint = 0;
            return None;
        }
        let alloc_hint = self.alloc_hint;
        let mut index = (alloc_hint >> self.shift) as usize;
        // Without a limit the hint says only in which word to begin.
        let mut first =
            if shallow_depth.is_some() { alloc_hint & (self.bits_per_word - 1) } else { 0 };
        let usable = shallow_depth.map_or(u64::MAX, low_bits);
        let nr_words = ((self.nr_tags + self.bits_per_word - 1) >> self.shift) as usize;
        if alloc_hint >= self.nr_tags {
            // The kernel draws a random place; it hardly matters which.
            index = 0;
            first = 0;
        }
        for _ in 0..nr_words {
            let usable = match shallow_depth {
                Some(depth) if self.shallow_depth_of_map => self.usable_of_map(index, depth),
                _ => usable,
            };
            if usable != 0 {
                if let Some(bit) = self.words[index].take(usable, first) {
                    return Some(self.taken(((index as u32) << self.shift) + bit));
                }
            }
            first = 0;
            index += 1;
            if index >= nr_words {
                index = 0;
            }
        }
        self.alloc_hint = 0;
        None
    }

    /// Gives a tag back; `woken` collects tasks that may try again.
    #[inline]
    pub fn give_back(&mut self, tag: u32, woken: &mut Vec<u32>) {
        let word = &mut self.words[(tag >> self.shift) as usize];
        let bit = 1 << (tag & (self.bits_per_word - 1));
        debug_assert!(word.bits & !word.cleared & bit != 0, "tag {tag} is given back twice");
        word.cleared |= bit;
        self.nr_used -= 1;
        self.alloc_hint = tag;
        if unlikely(self.nr_sleepers > 0) {
            self.account(woken);
        }
    }

    /// A tag was freed while tasks sleep: enough of them wake a batch.
    #[inline(never)]
    fn account(&mut self, woken: &mut Vec<u32>) {
        self.given_back = self.given_back.wrapping_add(1);
        if self.given_back.wrapping_sub(self.accounted) >= self.wake_batch {
            self.accounted = self.accounted.wrapping_add(self.wake_batch);
            self.wake(woken);
        }
    }

    fn wake(&mut self, woken: &mut Vec<u32>) {
        let mut left = self.wake_batch as usize;
        for _ in 0..NR_LISTS {
            let list = &mut self.sleepers[self.next_woken];
            self.next_woken = (self.next_woken + 1) % NR_LISTS;
            if !list.is_empty() {
                let nr = list.len().min(left);
                woken.extend(list.drain(..nr));
                left -= nr;
                if left == 0 || !self.batch_wakes_across_lists {
                    return;
                }
            }
        }
    }

    /// Puts a task to sleep until tags are freed.
    pub fn sleep(&mut self, task: u32) {
        debug_assert_eq!(self.nr_used, self.count_used(), "tags in use");
        let list = self.own_list.take().unwrap_or_else(|| self.draw_list());
        self.sleepers[list].push_back(task);
        self.nr_sleepers += 1;
    }

    /// Counts the tags in use.
    fn count_used(&self) -> u32 {
        self.words.iter().map(|word| (word.bits & !word.cleared).count_ones()).sum()
    }

    fn draw_list(&mut self) -> usize {
        let list = self.next_list;
        self.next_list = (list + 1) % NR_LISTS;
        list
    }

    /// Takes a sleeping task off its queue.
    pub fn leave(&mut self, task: u32) {
        for list in &mut self.sleepers {
            list.retain(|&other| other != task);
        }
        self.nr_sleepers -= 1;
    }

    /// A woken task runs.
    pub fn awake(&mut self) {
        self.nr_sleepers -= 1;
    }

    /// A woken task will try no more: others are woken in its place.
    pub fn pass_on(&mut self, woken: &mut Vec<u32>) {
        if self.nr_sleepers > 0 {
            self.wake(woken);
        }
    }

    /// A woken task runs and will try again. It draws a list to sleep in before it knows whether
    /// it has to (`blk_mq_get_tag` in `block/blk-mq-tag.c`).
    pub fn try_again(&mut self) {
        self.awake();
        self.own_list = Some(self.draw_list());
    }

    /// The task that tried again has its tag.
    pub fn tried(&mut self) {
        self.own_list = None;
    }
}

impl Word {
    /// Takes the first free of the `usable` tags from `first` on, or else from 0.
    #[inline]
    fn take(&mut self, usable: u64, first: u32) -> Option<u32> {
        loop {
            let free = !self.bits & self.depth_mask & usable;
            let from_first = free & !low_bits(first);
            let candidates = if from_first == 0 { free } else { from_first };
            if candidates != 0 {
                let bit = candidates.trailing_zeros();
                self.bits |= 1 << bit;
                return Some(bit);
            }
            if self.cleared == 0 {
                return None;
            }
            self.bits &= !std::mem::take(&mut self.cleared);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_small_if_there_are_few_tags() {
        let words = [1, 2, 4, 8, 62, 64, 256, 1024].map(bits_per_word);
        assert_eq!(words, [64, 64, 1, 2, 8, 16, 64, 64]);
    }

    #[test]
    fn a_smaller_map_has_no_room_while_its_tags_are_used() {
        let mut tags = SbitmapQueue::new(16, 4, u32::MAX);
        let held: Vec<u32> = (0..8).filter_map(|_| tags.take(None)).collect();
        tags.resize(4);
        assert_eq!(tags.take(None), None);
        let mut woken = Vec::new();
        for tag in held {
            tags.give_back(tag, &mut woken);
        }
        assert_eq!(std::iter::from_fn(|| tags.take(None)).count(), 4);
    }

    #[test]
    fn a_share_of_each_word_may_be_used() {
        let mut tags = SbitmapQueue::new(8, 2, 1);
        let limited: Vec<u32> = std::iter::from_fn(|| tags.take(Some(1))).collect();
        assert_eq!(limited.len(), 4);
        assert!(limited.iter().all(|tag| tag % 2 == 0));
        assert!((0..4).all(|_| tags.take(None).is_some()));
        assert_eq!((tags.take(None), tags.nr_used()), (None, 8));
    }

    #[test]
    fn a_share_of_the_whole_map_may_be_used() {
        let mut tags = SbitmapQueue::new(10, 4, 6).with_behaviours(Behaviours::V7_3);
        // Of words of 4, 4 and 2 tags: 2, 2 and 1, and one more where the rest falls.
        let limited: Vec<u32> = std::iter::from_fn(|| tags.take(Some(6))).collect();
        assert_eq!(limited, [0, 1, 2, 4, 5, 8]);
        let mut all = SbitmapQueue::new(10, 4, 10).with_behaviours(Behaviours::V7_3);
        assert_eq!(std::iter::from_fn(|| all.take(Some(10))).count(), 10);
    }

    #[test]
    fn sleepers_are_woken_by_batches_list_after_list() {
        let mut tags = SbitmapQueue::new(32, 8, u32::MAX);
        let held: Vec<u32> = std::iter::from_fn(|| tags.take(None)).collect();
        assert_eq!(held.len(), 32);
        for task in 0..9 {
            tags.sleep(task);
        }
        let mut woken = Vec::new();
        for &tag in &held[..3] {
            tags.give_back(tag, &mut woken);
        }
        assert!(woken.is_empty());
        // The fourth fills the batch: the first list holds the first and the ninth sleeper.
        tags.give_back(held[3], &mut woken);
        assert_eq!(woken, [0, 8]);
        assert!(tags.take(None).is_some());
    }

    #[test]
    fn the_first_search_begins_in_a_given_word() {
        let mut tags = SbitmapQueue::new(16, 4, 2);
        tags.begin_at(6);
        // Without a limit at the start of the word, with one at the tag itself.
        assert_eq!((tags.take(None), tags.take(Some(3))), (Some(4), Some(6)));
        assert_eq!((tags.take(Some(3)), tags.take(Some(3))), (Some(5), Some(8)));
    }

    #[test]
    fn who_is_woken_uses_up_a_list_even_if_it_finds_a_tag() {
        let mut tags = SbitmapQueue::new(8, 1, u32::MAX);
        let held: Vec<u32> = std::iter::from_fn(|| tags.take(None)).collect();
        let mut woken = Vec::new();
        tags.sleep(0);
        tags.sleep(1);
        tags.give_back(held[0], &mut woken);
        tags.try_again();
        assert!(tags.take(None).is_some());
        tags.tried();
        // Lists 0 to 2 have been drawn.
        tags.sleep(2);
        tags.give_back(held[1], &mut woken);
        tags.try_again();
        // The second was woken, another has its tag, and it sleeps again in the list that it drew.
        assert!(tags.take(None).is_some());
        tags.sleep(1);
        assert_eq!(
            (woken, &tags.sleepers[3], &tags.sleepers[4]),
            (vec![0, 1], &[2].into(), &[1].into())
        );
    }

    #[test]
    fn one_tag_wakes_one_where_little_is_sure() {
        let mut tags = SbitmapQueue::new(64, 16, 1);
        let held: Vec<u32> = std::iter::from_fn(|| tags.take(None)).collect();
        tags.sleep(7);
        let mut woken = Vec::new();
        tags.give_back(held[5], &mut woken);
        assert_eq!(woken, [7]);
    }
}
