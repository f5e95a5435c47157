//! The kernel's native asynchronous I/O (`include/uapi/linux/aio_abi.h`).

pub const PREAD: u16 = 0;
pub const PWRITE: u16 = 1;
pub const FDSYNC: u16 = 3;
/// `RWF_DSYNC` (`include/uapi/linux/fs.h`): a write is durable before it is reported.
pub const DURABLE: u32 = 2;

/// `struct iocb` (`include/uapi/linux/aio_abi.h`, little endian).
#[derive(Debug, Clone, Copy, Default)]
#[repr(C)]
pub struct ControlBlock {
    pub data: u64,
    pub key: u32,
    pub rw_flags: u32,
    pub opcode: u16,
    pub priority: i16,
    pub descriptor: u32,
    pub buffer: u64,
    pub bytes: u64,
    pub offset: i64,
    pub reserved: u64,
    pub flags: u32,
    pub event_descriptor: u32,
}

/// `struct io_event`.
#[derive(Debug, Clone, Copy, Default)]
#[repr(C)]
pub struct IoEvent {
    pub data: u64,
    pub control_block: u64,
    pub result: i64,
    pub second_result: i64,
}
