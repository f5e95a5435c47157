//! The kernel's notation for operations and flags, such as `WFS` (`blk_fill_rwbs` in
//! kernel/trace/blktrace.c), which blkparse shares.

use crate::io::{Flags, Operation};

/// Reads the notation: an optional `F` for a preflush, the letter of the operation, letters of flags.
///
/// `F` alone or twice is a flush. Unknown letters are skipped: newer kernels may add some.
pub fn parse(text: &[u8]) -> (Operation, Flags) {
    let end = memchr::memchr(0, text).unwrap_or(text.len());
    let mut letters = &text[..end];
    let mut flags = Flags::default();
    let operation = match letters {
        [b'F', b'F', rest @ ..] => {
            letters = rest;
            Operation::Flush
        }
        [b'F', rest @ ..] if rest.first().is_some_and(|next| b"RWDEN".contains(next)) => {
            flags = flags.with(Flags::PREFLUSH);
            let (operation, after) = operation(rest);
            letters = after;
            operation
        }
        [b'F', rest @ ..] => {
            letters = rest;
            Operation::Flush
        }
        all => {
            let (operation, after) = operation(all);
            letters = after;
            operation
        }
    };
    for letter in letters {
        flags = flags.with(match letter {
            b'F' => Flags::FUA,
            b'A' => Flags::AHEAD,
            b'S' => Flags::SYNC,
            b'M' => Flags::META,
            _ => Flags::default(),
        });
    }
    (operation, flags)
}

fn operation(letters: &[u8]) -> (Operation, &[u8]) {
    match letters {
        // "DE": a discard that erases securely.
        [b'D', b'E', rest @ ..] => (Operation::SecureErase, rest),
        [b'Z', b'A', rest @ ..] => (Operation::ZoneAppend, rest),
        [b'W', b'Z', rest @ ..] => (Operation::WriteZeroes, rest),
        [b'Z', _, rest @ ..] => (Operation::ZoneManagement, rest),
        [letter, rest @ ..] => {
            let operation = match letter {
                b'R' => Operation::Read,
                b'W' => Operation::Write,
                b'D' => Operation::Discard,
                b'E' => Operation::SecureErase,
                b'N' => Operation::Passthrough,
                _ => Operation::Other,
            };
            (operation, rest)
        }
        [] => (Operation::Other, letters),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_of_the_kernel() {
        let sync = Flags::SYNC;
        let cases: [(&[u8], Operation, Flags); 9] = [
            (b"R", Operation::Read, Flags::default()),
            (b"RA", Operation::Read, Flags::AHEAD),
            (b"WS", Operation::Write, sync),
            (b"WFS\0\0", Operation::Write, sync.with(Flags::FUA)),
            (b"FWFS", Operation::Write, sync.with(Flags::FUA).with(Flags::PREFLUSH)),
            (b"FF", Operation::Flush, Flags::default()),
            (b"DS", Operation::Discard, sync),
            (b"RSM", Operation::Read, sync.with(Flags::META)),
            (b"N", Operation::Passthrough, Flags::default()),
        ];
        for (text, operation, flags) in cases {
            assert_eq!(parse(text), (operation, flags), "{}", String::from_utf8_lossy(text));
        }
    }
}
