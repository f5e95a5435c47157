//! The option `filesize`: one length of a job's files, or a range from which each file's is drawn.

/// The lengths of a job's files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileSizes {
    pub least: u64,
    pub most: u64,
    /// The length of each file of each clone, if a range bounds them.
    pub drawn: Vec<Vec<u64>>,
}

impl FileSizes {
    pub(super) fn within(least: u64, most: u64) -> Self {
        Self { least, most, drawn: Vec::new() }
    }

    /// Whether each file has a length of its own.
    pub(super) fn varies(&self) -> bool {
        self.least != self.most
    }

    /// The length of one of a clone's files.
    pub fn length(&self, clone: u64, file: u64) -> u64 {
        let of_clone = self.drawn.get(clone as usize);
        of_clone.and_then(|files| files.get(file as usize)).copied().unwrap_or(self.least)
    }

    /// The length of all files, if it is the same.
    pub fn fixed(&self) -> Option<u64> {
        (!self.varies()).then_some(self.least)
    }
}
