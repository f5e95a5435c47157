//! Commands and control groups, each stored once.

use rustc_hash::FxHashMap;

use crate::limits::NAME_BYTES;

/// Numbered strings; number 0 is the empty one and means unknown.
#[derive(Clone, Debug)]
pub struct Names {
    texts: Vec<Box<str>>,
    numbers: FxHashMap<Box<str>, u32>,
    bytes: usize,
}

/// The number of an unknown name.
pub const UNKNOWN_NAME: u32 = 0;
/// More different names than any machine has; a damaged trace must not fill the memory.
const MOST_NAMES: usize = 1 << 20;
/// Longer than any path of a control group (`PATH_MAX`).
const LONGEST: usize = 4096;

impl Default for Names {
    fn default() -> Self {
        let mut names = Self { texts: Vec::new(), numbers: FxHashMap::default(), bytes: 0 };
        names.number_of("");
        names
    }
}

impl Names {
    /// The number of a name, which is added if it is new; [`UNKNOWN_NAME`] once there are too many.
    pub fn number_of(&mut self, text: &str) -> u32 {
        let text = text.get(..LONGEST).unwrap_or(text);
        if let Some(number) = self.numbers.get(text) {
            return *number;
        }
        if self.is_full() {
            return UNKNOWN_NAME;
        }
        self.bytes += text.len();
        let number = self.texts.len() as u32;
        self.texts.push(text.into());
        self.numbers.insert(text.into(), number);
        number
    }

    /// The number of a name in the kernel's form: at most 16 bytes, ended by a zero, in any encoding.
    pub fn number_of_bytes(&mut self, bytes: &[u8]) -> u32 {
        let end = memchr::memchr(0, bytes).unwrap_or(bytes.len());
        self.number_of(&String::from_utf8_lossy(&bytes[..end]))
    }

    /// The name with that number; empty if there is none.
    pub fn text(&self, number: u32) -> &str {
        self.texts.get(number as usize).map_or("", |text| text)
    }

    /// Whether no name can be added.
    pub fn is_full(&self) -> bool {
        self.texts.len() >= MOST_NAMES || self.bytes >= NAME_BYTES
    }

    pub fn len(&self) -> usize {
        self.texts.len()
    }

    /// Whether it has only the empty name.
    pub fn is_empty(&self) -> bool {
        self.texts.len() <= 1
    }

    /// The names from number `first` on.
    pub fn from(&self, first: usize) -> impl Iterator<Item = &str> {
        self.texts.iter().skip(first).map(|text| &**text)
    }
}
