//! Integers of variable length (LEB128), and differences of either sign (zigzag).

/// Appends `value`, seven bits per byte, lowest first.
#[inline]
pub fn put(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Appends `value - base`, modulo 2⁶⁴; small differences of either sign are short.
#[inline]
pub fn put_difference(out: &mut Vec<u8>, value: u64, base: u64) {
    put(out, zigzag(value.wrapping_sub(base)));
}

/// Interleaves differences of either sign: 0, −1, 1, −2 become 0, 1, 2, 3.
#[inline]
pub const fn zigzag(difference: u64) -> u64 {
    let signed = difference as i64;
    ((signed << 1) ^ (signed >> 63)) as u64
}

/// The inverse of [`zigzag`].
#[inline]
pub const fn unzigzag(code: u64) -> u64 {
    (code >> 1) ^ (code & 1).wrapping_neg()
}

/// Bytes that are read from front to back.
#[derive(Debug)]
pub struct Input<'a> {
    bytes: &'a [u8],
}

impl<'a> Input<'a> {
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { bytes }
    }

    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// The next integer; `None` if the bytes end or it exceeds 64 bits.
    #[inline]
    pub fn get(&mut self) -> Option<u64> {
        let (first, rest) = self.bytes.split_first()?;
        if *first < 0x80 {
            self.bytes = rest;
            return Some(u64::from(*first));
        }
        self.get_long()
    }

    fn get_long(&mut self) -> Option<u64> {
        let mut value = 0_u64;
        for (index, byte) in self.bytes.iter().take(10).enumerate() {
            let bits = u64::from(byte & 0x7f);
            if index == 9 && bits > 1 {
                return None;
            }
            value |= bits << (7 * index);
            if byte & 0x80 == 0 {
                self.bytes = &self.bytes[index + 1..];
                return Some(value);
            }
        }
        None
    }

    #[inline]
    pub fn get_difference(&mut self, base: u64) -> Option<u64> {
        Some(base.wrapping_add(unzigzag(self.get()?)))
    }

    /// The next `count` bytes.
    pub fn take(&mut self, count: u64) -> Option<&'a [u8]> {
        let (head, rest) = self.bytes.split_at_checked(usize::try_from(count).ok()?)?;
        self.bytes = rest;
        Some(head)
    }
}
