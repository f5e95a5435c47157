//! Layouts and numbers of the ublk interface (`include/uapi/linux/ublk_cmd.h`, Linux 6.1).

/// Largest depth of a queue.
pub const MAX_QUEUE_DEPTH: u32 = 4096;

pub const CMD_ADD_DEV: u32 = 0x04;
pub const CMD_START_DEV: u32 = 0x06;
pub const CMD_SET_PARAMS: u32 = 0x08;

pub const IO_FETCH_REQ: u32 = 0x20;
pub const IO_COMMIT_AND_FETCH_REQ: u32 = 0x21;

/// Command encodings: Linux 6.0 to 6.3 know only the numbers above; later kernels encode them as
/// ioctls, and accept the bare numbers only with `CONFIG_BLKDEV_UBLK_LEGACY_OPCODES`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Numbers {
    Bare,
    Ioctl,
}

impl Numbers {
    /// The number of a control command that changes state (`_IOWR('u', …, struct ublksrv_ctrl_cmd)`).
    pub fn control(self, operation: u32) -> u32 {
        self.number(operation, size_of::<ControlCommand>() as u32)
    }

    /// The number of a fetch or commit (`_IOWR('u', …, struct ublksrv_io_cmd)`).
    pub fn io(self, operation: u32) -> u32 {
        self.number(operation, IO_COMMAND_BYTES)
    }

    fn number(self, operation: u32, carried_bytes: u32) -> u32 {
        const READ_AND_WRITE: u32 = 3;
        match self {
            Self::Bare => operation,
            Self::Ioctl => {
                READ_AND_WRITE << 30 | carried_bytes << 16 | u32::from(b'u') << 8 | operation
            }
        }
    }
}

/// Bytes of `ublksrv_io_cmd`.
const IO_COMMAND_BYTES: u32 = 16;

pub const IO_OP_READ: u32 = 0;
pub const IO_OP_WRITE: u32 = 1;
pub const IO_OP_FLUSH: u32 = 2;
pub const IO_OP_DISCARD: u32 = 3;

pub const ATTR_ROTATIONAL: u32 = 1 << 1;
pub const ATTR_VOLATILE_CACHE: u32 = 1 << 2;

pub const PARAM_TYPE_BASIC: u32 = 1;
pub const PARAM_TYPE_DISCARD: u32 = 1 << 1;

/// `ublksrv_ctrl_cmd`: payload of a control command.
#[derive(Debug, Clone, Copy, Default)]
#[repr(C)]
pub struct ControlCommand {
    pub dev_id: u32,
    /// `u16::MAX` if it is not for a queue.
    pub queue_id: u16,
    pub len: u16,
    pub addr: u64,
    pub data: [u64; 2],
}

impl ControlCommand {
    /// The bytes for a 128-byte submission entry.
    pub fn bytes(&self) -> [u8; 80] {
        let mut bytes = [0; 80];
        bytes[0..4].copy_from_slice(&self.dev_id.to_ne_bytes());
        bytes[4..6].copy_from_slice(&self.queue_id.to_ne_bytes());
        bytes[6..8].copy_from_slice(&self.len.to_ne_bytes());
        bytes[8..16].copy_from_slice(&self.addr.to_ne_bytes());
        bytes[16..24].copy_from_slice(&self.data[0].to_ne_bytes());
        bytes[24..32].copy_from_slice(&self.data[1].to_ne_bytes());
        bytes
    }
}

/// `ublksrv_ctrl_dev_info`: the device to add.
#[derive(Debug, Clone, Copy, Default)]
#[repr(C)]
pub struct DeviceInfo {
    pub nr_hw_queues: u16,
    pub queue_depth: u16,
    pub state: u16,
    pub pad0: u16,
    pub max_io_buf_bytes: u32,
    pub dev_id: u32,
    pub ublksrv_pid: i32,
    pub pad1: u32,
    pub flags: u64,
    pub ublksrv_flags: u64,
    pub reserved: [u64; 3],
}

/// `ublk_params` with `ublk_param_basic` and `ublk_param_discard`.
#[derive(Debug, Clone, Copy, Default)]
#[repr(C)]
pub struct Params {
    pub len: u32,
    pub types: u32,
    pub attrs: u32,
    pub logical_bs_shift: u8,
    pub physical_bs_shift: u8,
    pub io_opt_shift: u8,
    pub io_min_shift: u8,
    pub max_sectors: u32,
    pub chunk_sectors: u32,
    pub dev_sectors: u64,
    pub virt_boundary_mask: u64,
    pub discard_alignment: u32,
    pub discard_granularity: u32,
    pub max_discard_sectors: u32,
    pub max_write_zeroes_sectors: u32,
    pub max_discard_segments: u16,
    pub reserved: u16,
}

/// `ublksrv_io_desc`: a command, in memory that driver and server share.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct IoDescriptor {
    pub op_flags: u32,
    pub nr_sectors: u32,
    pub start_sector: u64,
    pub addr: u64,
}

impl IoDescriptor {
    pub fn operation(&self) -> u32 {
        self.op_flags & 0xff
    }
}

/// `ublksrv_io_cmd`: payload of a fetch or a commit.
pub fn io_command(tag: u16, result: i32, addr: u64) -> [u8; IO_COMMAND_BYTES as usize] {
    let mut bytes = [0; IO_COMMAND_BYTES as usize];
    bytes[2..4].copy_from_slice(&tag.to_ne_bytes());
    bytes[4..8].copy_from_slice(&result.to_ne_bytes());
    bytes[8..16].copy_from_slice(&addr.to_ne_bytes());
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_the_kernels() {
        assert_eq!(size_of::<DeviceInfo>(), 64);
        assert_eq!(size_of::<Params>(), 64);
        assert_eq!(size_of::<IoDescriptor>(), 24);
    }

    #[test]
    fn numbers_are_the_kernels() {
        assert_eq!(Numbers::Bare.control(CMD_ADD_DEV), 0x04);
        assert_eq!(Numbers::Ioctl.control(CMD_ADD_DEV), 0xc020_7504);
        assert_eq!(Numbers::Ioctl.io(IO_COMMIT_AND_FETCH_REQ), 0xc010_7521);
    }

    #[test]
    fn commands_lie_where_the_kernel_looks() {
        let command = ControlCommand { dev_id: 1, queue_id: 2, len: 3, addr: 4, data: [5, 6] };
        let words = command.bytes();
        assert_eq!(
            (words[0], words[4], words[6], words[8], words[16], words[24]),
            (1, 2, 3, 4, 5, 6)
        );
        let io = io_command(0x0102, -1, 0x03);
        assert_eq!(&io[..9], &[0, 0, 2, 1, 0xff, 0xff, 0xff, 0xff, 3]);
    }
}
