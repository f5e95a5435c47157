//! The map of tags, of which schedulers may withhold a part of each word.
//!
//! Kernel: `sbitmap_init_node` and `__sbitmap_get_shallow` in `lib/sbitmap.c`,
//! Linux 6.1: words are halved until there are at least four, if there are
//! four tags.

/// Tags in a word.
fn word_of(tags: u32) -> u32 {
    let mut word = 64;
    while tags >= 4 && word * 4 > tags {
        word /= 2;
    }
    word
}

/// Tags that may be used if only this percentage of each word may, and at
/// least one.
pub(super) fn limited_to(tags: u32, hundredths: u32) -> u32 {
    let word = word_of(tags);
    let share = (word * hundredths / 10_000).max(1);
    tags / word * share + (tags % word).min(share)
}

/// Tags that may be used if only one of each word may.
pub(super) fn one_a_word(tags: u32) -> u32 {
    tags.div_ceil(word_of(tags))
}

#[cfg(test)]
mod tests {
    use super::{limited_to, one_a_word};

    #[test]
    fn a_share_of_each_word_may_be_used() {
        assert_eq!(limited_to(256, 7500), 192);
        assert_eq!(limited_to(64, 7500), 48);
        // Words of 8: seven of them, and six tags over.
        assert_eq!(limited_to(62, 7500), 7 * 6 + 6);
        assert_eq!(limited_to(256, 1875), 48);
        // Words of one tag: nothing to withhold.
        assert_eq!(limited_to(4, 5000), 4);
        assert_eq!(limited_to(1, 5000), 1);
    }

    #[test]
    fn words_are_small_if_there_are_few_tags() {
        assert_eq!(one_a_word(256), 4);
        assert_eq!(one_a_word(1024), 16);
        assert_eq!(one_a_word(64), 4);
        assert_eq!(one_a_word(1), 1);
    }
}
