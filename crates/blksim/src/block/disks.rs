//! The disks of a machine.

use std::ops::{Index, IndexMut};

use crate::block::disk::Disk;

/// The only disk of most machines, or the members of an array. The first has a field of its own,
/// because most machines have one disk; access to the others is marked cold for code layout.
#[derive(Debug, Clone)]
pub struct Disks {
    first: Disk,
    others: Vec<Disk>,
}

impl Disks {
    pub fn new(first: Disk, others: Vec<Disk>) -> Self {
        Self { first, others }
    }

    pub fn count(&self) -> usize {
        1 + self.others.len()
    }

    #[cold]
    fn other(&self, number: usize) -> &Disk {
        &self.others[number - 1]
    }

    #[cold]
    fn other_mut(&mut self, number: usize) -> &mut Disk {
        &mut self.others[number - 1]
    }

    pub fn iter(&self) -> impl Iterator<Item = &Disk> {
        std::iter::once(&self.first).chain(&self.others)
    }

    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut Disk> {
        std::iter::once(&mut self.first).chain(&mut self.others)
    }
}

impl Index<usize> for Disks {
    type Output = Disk;

    #[inline]
    fn index(&self, number: usize) -> &Disk {
        if number == 0 { &self.first } else { self.other(number) }
    }
}

impl IndexMut<usize> for Disks {
    #[inline]
    fn index_mut(&mut self, number: usize) -> &mut Disk {
        if number == 0 { &mut self.first } else { self.other_mut(number) }
    }
}
