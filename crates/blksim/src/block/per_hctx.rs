//! One of something for each hardware queue (hctx) of a disk, and the number of one.
//!
//! The usual path of a request is compiled twice: for a disk with one hardware queue, where the number
//! is known and takes no instructions, and for one with several.

use std::ops::{Index, IndexMut};

use crate::core::branch::likely;

/// The number of a hardware queue.
pub trait Hctx: Copy {
    /// The disk has several.
    const SEVERAL: bool;

    fn number(self) -> usize;

    /// That of a processor, among so many.
    fn of(cpu: u16, nr_hctxs: u32) -> Self;
}

/// The only hardware queue of a disk.
#[derive(Debug, Clone, Copy)]
pub struct OnlyHctx;

/// One of several.
#[derive(Debug, Clone, Copy)]
pub struct HctxNumber(pub usize);

impl Hctx for OnlyHctx {
    const SEVERAL: bool = false;

    #[inline(always)]
    fn number(self) -> usize {
        0
    }

    #[inline(always)]
    fn of(_cpu: u16, _nr_hctxs: u32) -> Self {
        Self
    }
}

impl Hctx for HctxNumber {
    const SEVERAL: bool = true;

    fn number(self) -> usize {
        self.0
    }

    /// They take turns (`blk_mq_map_queues` of `block/blk-mq-cpumap.c`, Linux 6.1, where no two
    /// processors are threads of one core).
    fn of(cpu: u16, nr_hctxs: u32) -> Self {
        Self(usize::from(cpu) % nr_hctxs as usize)
    }
}

/// One for each hardware queue. The first has a field of its own, because most machines have one
/// queue.
#[derive(Debug, Clone)]
pub struct PerHctx<T> {
    first: T,
    others: Vec<T>,
}

impl<T> PerHctx<T> {
    /// So many; there is at least one.
    pub fn new(nr_hctxs: u32, mut make: impl FnMut() -> T) -> Self {
        Self { first: make(), others: (1..nr_hctxs).map(|_| make()).collect() }
    }

    #[inline(always)]
    pub fn of(&self, hctx: impl Hctx) -> &T {
        &self[hctx.number()]
    }

    #[inline(always)]
    pub fn of_mut(&mut self, hctx: impl Hctx) -> &mut T {
        &mut self[hctx.number()]
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
}

impl<T> Index<usize> for PerHctx<T> {
    type Output = T;

    #[inline(always)]
    fn index(&self, hctx: usize) -> &T {
        if likely(hctx == 0) { &self.first } else { &self.others[hctx - 1] }
    }
}

impl<T> IndexMut<usize> for PerHctx<T> {
    #[inline(always)]
    fn index_mut(&mut self, hctx: usize) -> &mut T {
        if likely(hctx == 0) { &mut self.first } else { &mut self.others[hctx - 1] }
    }
}
