//! Layouts and numbers of the driver's interface (`arch/um/drivers/modelled_disk.c` of the instrument).

/// Largest depth of a disk.
pub const MAX_DEPTH: u32 = 4096;

pub const ROTATIONAL: u32 = 1;
pub const WRITE_CACHE: u32 = 2;
pub const MULTI_QUEUE: u32 = 4;
pub const KEEPS_CONTENTS: u32 = 8;

pub const OPERATION_READ: u32 = 0;
pub const OPERATION_WRITE: u32 = 1;
pub const OPERATION_FLUSH: u32 = 2;
pub const OPERATION_DISCARD: u32 = 3;

/// `_IOW('m', 1, struct modelled_disk_add)`.
pub const ADD: libc::c_ulong = number(1, 1, size_of::<Add>());
/// `_IOWR('m', 2, struct modelled_disk_turn)`.
pub const TURN: libc::c_ulong = number(3, 2, size_of::<Turn>());

const fn number(direction: usize, command: usize, bytes: usize) -> libc::c_ulong {
    (direction << 30 | bytes << 16 | (b'm' as usize) << 8 | command) as libc::c_ulong
}

/// `modelled_disk_add`: a disk to add.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct Add {
    pub sectors: u64,
    pub max_sectors: u32,
    pub depth: u32,
    pub flags: u32,
    pub max_discard_sectors: u32,
}

/// `modelled_disk_command`: a command that has arrived.
#[derive(Debug, Clone, Copy, Default)]
#[repr(C)]
pub struct Arrived {
    pub name: u32,
    pub operation: u32,
    pub sector: u64,
    pub nr_sectors: u32,
    pub reserved: u32,
}

/// `modelled_disk_turn`: what is done, what will be, and what has arrived meanwhile.
#[derive(Debug, Clone, Copy, Default)]
#[repr(C)]
pub struct Turn {
    pub done: u64,
    pub due: u64,
    pub moment_ns: u64,
    pub arrived: u64,
    pub now_ns: u64,
    pub nr_done: u32,
    pub nr_due: u32,
    pub nr_arrived: u32,
    pub reached: u32,
}

/// The name of a command: its disk's number and its tag.
pub fn name(disk: usize, tag: u32) -> u32 {
    (disk as u32) << 16 | tag
}

/// The disk's number and the tag of a command.
pub fn place(name: u32) -> (usize, u32) {
    ((name >> 16) as usize, name & 0xffff)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_and_numbers_are_the_drivers() {
        assert_eq!((size_of::<Add>(), size_of::<Arrived>(), size_of::<Turn>()), (24, 24, 56));
        assert_eq!((ADD, TURN), (0x4018_6d01, 0xc038_6d02));
        assert_eq!(place(name(3, 4095)), (3, 4095));
    }
}
