//! One of something for each hardware queue (hctx) of a disk.

use std::ops::{Index, IndexMut};

use crate::core::branch::likely;

/// One for each hardware queue. The first has a field of its own, because most machines have one
/// queue; access to the others is marked cold for code layout.
#[derive(Debug)]
pub struct PerHctx<T> {
    first: T,
    others: Vec<T>,
}

impl<T> PerHctx<T> {
    /// So many; there is at least one.
    pub fn new(nr_hctxs: u32, mut make: impl FnMut() -> T) -> Self {
        Self { first: make(), others: (1..nr_hctxs).map(|_| make()).collect() }
    }

    pub fn count(&self) -> usize {
        1 + self.others.len()
    }

    pub fn iter(&self) -> impl Iterator<Item = &T> {
        std::iter::once(&self.first).chain(&self.others)
    }

    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut T> {
        std::iter::once(&mut self.first).chain(&mut self.others)
    }

    #[cold]
    fn other(&self, hctx: usize) -> &T {
        &self.others[hctx - 1]
    }

    #[cold]
    fn other_mut(&mut self, hctx: usize) -> &mut T {
        &mut self.others[hctx - 1]
    }
}

impl<T> Index<usize> for PerHctx<T> {
    type Output = T;

    #[inline(always)]
    fn index(&self, hctx: usize) -> &T {
        if likely(hctx == 0) { &self.first } else { self.other(hctx) }
    }
}

impl<T> IndexMut<usize> for PerHctx<T> {
    #[inline(always)]
    fn index_mut(&mut self, hctx: usize) -> &mut T {
        if likely(hctx == 0) { &mut self.first } else { self.other_mut(hctx) }
    }
}
