//! The linear model: costs of I/O, and the kernel's default parameters.

/// The kernel's unit of device time: a 2³⁷th of a second at the normal rate.
pub const VTIME_PER_SECOND: u64 = 1 << 37;
pub const VTIME_PER_US: u64 = VTIME_PER_SECOND / 1_000_000;
pub const VTIME_PER_NS: u64 = VTIME_PER_SECOND / 1_000_000_000;
const PAGE_BYTES: u64 = 4096;

/// Coefficients of the model and the latency target, as the kernel chooses them.
#[derive(Debug, Clone, Copy)]
pub struct Automatic {
    /// bytes, sequential and random I/Os a second: of reads, of writes.
    pub rates: [[u64; 3]; 2],
    pub latency_ns: u64,
}

pub const HDD: Automatic = Automatic {
    rates: [[174_019_176, 41_708, 370], [178_075_866, 42_705, 378]],
    latency_ns: 250_000_000,
};
pub const SSD_DEPTH_1: Automatic = Automatic {
    rates: [[245_855_193, 61_575, 6_946], [141_365_009, 33_716, 26_796]],
    latency_ns: 25_000_000,
};
pub const SSD: Automatic = Automatic {
    rates: [[488_636_629, 8_932, 8_518], [427_891_549, 28_755, 21_940]],
    latency_ns: 25_000_000,
};
pub const SSD_FAST: Automatic = Automatic {
    rates: [[3_102_524_156, 724_816, 778_122], [1_742_780_862, 425_702, 443_193]],
    latency_ns: 5_000_000,
};

/// Cost in [`VTIME_PER_SECOND`]ths: of a page, of a sequential and of a random start.
#[derive(Debug, Clone, Copy)]
pub struct Costs {
    pub page_vtime: u64,
    pub start_vtime: [u64; 2],
}

impl Costs {
    pub fn new([bytes, sequential, random]: [u64; 3]) -> Self {
        let page_vtime = VTIME_PER_SECOND.div_ceil(bytes.div_ceil(PAGE_BYTES));
        let start = |rate: u64| VTIME_PER_SECOND.div_ceil(rate).saturating_sub(page_vtime);
        Self { page_vtime, start_vtime: [start(sequential), start(random)] }
    }
}
