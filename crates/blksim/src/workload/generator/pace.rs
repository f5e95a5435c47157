//! Limits on the rate of a clone's I/Os.

/// A limit on the rate in one direction.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Pace {
    bytes_per_second: u64,
    ios_per_second: u64,
    issued_bytes: u64,
    issued_ios: u64,
    pub next_ns: u64,
}

impl Pace {
    pub fn new(bytes_per_second: u64, ios_per_second: u64) -> Self {
        Self { bytes_per_second, ios_per_second, ..Self::default() }
    }

    pub fn limited(&self) -> bool {
        self.bytes_per_second > 0 || self.ios_per_second > 0
    }

    /// Counts an I/O and sets the earliest time of the next one. A clone that fell behind may catch
    /// up, as in fio.
    pub fn issued(&mut self, start_ns: u64, bytes: u32, poisson: Option<f64>) {
        self.issued_bytes += u64::from(bytes);
        self.issued_ios += 1;
        let at = |count: u64, rate: u64| {
            (u128::from(count) * 1_000_000_000).div_ceil(u128::from(rate)) as u64
        };
        if let Some(draw) = poisson {
            let mean_ns = if self.ios_per_second > 0 {
                1e9 / self.ios_per_second as f64
            } else {
                f64::from(bytes) * 1e9 / self.bytes_per_second as f64
            };
            self.next_ns = self.next_ns.max(start_ns) + (draw * mean_ns) as u64;
        } else if self.ios_per_second > 0 {
            self.next_ns = start_ns.saturating_add(at(self.issued_ios, self.ios_per_second));
        } else {
            self.next_ns = start_ns.saturating_add(at(self.issued_bytes, self.bytes_per_second));
        }
    }
}
