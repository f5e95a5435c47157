//! The tunables of cfq, with the names and units of `/sys/block/*/queue/iosched`.

use super::super::choose_req::BackSeek;
use crate::block::queue_facts::QueueFacts;
use crate::block::request::PriorityClass;
use crate::core::params::{Param, Unit, Values};

/// 2.6.32: one tick of a kernel with HZ = 1000.
pub(super) const TICK_NS: u64 = 1_000_000;
/// Requests within this distance are close.
pub(super) const CLOSE_SECTORS: u64 = 8192;
pub(super) const NR_LEVELS: usize = 8;
/// The largest value of an unsigned number in the kernel.
const MAX: u64 = u32::MAX as u64;

const fn milliseconds(name: &'static str, default: u64, min: u64, help: &'static str) -> Param {
    Param::new(name, Unit::Milliseconds, default, (min, MAX), help)
}

const fn microseconds(name: &'static str, default: u64, min: u64) -> Param {
    let help = "the same in microseconds; it counts if it differs from its default";
    Param::new(name, Unit::Microseconds, default, (min, MAX), help)
}

const SLICE_SYNC: Param =
    milliseconds("slice_sync", 100, 1, "time slice of a sync queue at level 4");
const SLICE_ASYNC: Param =
    milliseconds("slice_async", 40, 1, "time slice of an async queue at level 4");
const SLICE_ASYNC_RQ: Param = Param::new(
    "slice_async_rq",
    Unit::Count,
    2,
    (1, MAX),
    "requests of an async slice: 2 x this x (8 - level)",
);
const SLICE_IDLE: Param =
    milliseconds("slice_idle", 8, 0, "longest wait for the next request of a queue; 0: none");
const FIFO_EXPIRE_SYNC: Param =
    milliseconds("fifo_expire_sync", 125, 1, "deadline of a sync request within its slice");
const FIFO_EXPIRE_ASYNC: Param =
    milliseconds("fifo_expire_async", 250, 1, "deadline of an async request within its slice");
const BACK_SEEK_MAX: Param = Param::new(
    "back_seek_max",
    Unit::Kibibytes,
    16 * 1024,
    (0, MAX),
    "longest seek backwards within a sweep",
);
const BACK_SEEK_PENALTY: Param = Param::new(
    "back_seek_penalty",
    Unit::Count,
    2,
    (1, MAX),
    "a sector backwards costs as much as this many forwards",
);
const LOW_LATENCY: Param =
    Param::flag("low_latency", 1, "shorter slices for many queues, fewer async requests");

pub(super) const TUNABLES_4_19: &[Param] = &[
    SLICE_SYNC,
    microseconds("slice_sync_us", 100_000, 1),
    SLICE_ASYNC,
    microseconds("slice_async_us", 40_000, 1),
    SLICE_ASYNC_RQ,
    SLICE_IDLE,
    microseconds("slice_idle_us", 8_000, 0),
    milliseconds("group_idle", 8, 0, "longest wait for the next request of a group; 0: none"),
    microseconds("group_idle_us", 8_000, 0),
    milliseconds("target_latency", 300, 1, "time in which every queue is to have its turn"),
    microseconds("target_latency_us", 300_000, 1),
    LOW_LATENCY,
    Param::new("quantum", Unit::Count, 8, (1, MAX), "requests of a queue in the device"),
    FIFO_EXPIRE_SYNC,
    FIFO_EXPIRE_ASYNC,
    BACK_SEEK_MAX,
    BACK_SEEK_PENALTY,
];

pub(super) const TUNABLES_2_6_32: &[Param] = &[
    SLICE_SYNC,
    SLICE_ASYNC,
    SLICE_ASYNC_RQ,
    SLICE_IDLE,
    LOW_LATENCY,
    Param::new("quantum", Unit::Count, 4, (1, MAX), "requests of a queue in the device"),
    FIFO_EXPIRE_SYNC,
    FIFO_EXPIRE_ASYNC,
    BACK_SEEK_MAX,
    BACK_SEEK_PENALTY,
];

/// Tunables that exist in milliseconds and in microseconds.
const IN_TWO_UNITS: [(&str, &str); 5] = [
    ("slice_sync", "slice_sync_us"),
    ("slice_async", "slice_async_us"),
    ("slice_idle", "slice_idle_us"),
    ("group_idle", "group_idle_us"),
    ("target_latency", "target_latency_us"),
];

/// On a device without seeks, 4.19 idles only if the user sets it.
pub(super) fn defaults_4_19(tunables: &mut Values, queue: QueueFacts) {
    if !queue.rotational {
        tunables.put("slice_idle", 0);
        tunables.put("slice_idle_us", 0);
    }
}

/// The part of a slice that one level is worth.
const SLICE_SCALE: u64 = 5;

#[derive(Debug, Clone, Copy)]
pub(super) struct Settings {
    pub slice_sync_ns: u64,
    pub slice_async_ns: u64,
    pub slice_async_rq: u64,
    pub slice_idle_ns: u64,
    pub group_idle_ns: u64,
    pub target_latency_ns: u64,
    pub low_latency: bool,
    pub quantum: u64,
    pub fifo_expire_sync_ns: u64,
    pub fifo_expire_async_ns: u64,
    pub back_seek: BackSeek,
}

impl Settings {
    fn common(tunables: &Values) -> Self {
        Self {
            slice_sync_ns: tunables.get_ns("slice_sync"),
            slice_async_ns: tunables.get_ns("slice_async"),
            slice_async_rq: tunables.get("slice_async_rq"),
            slice_idle_ns: tunables.get_ns("slice_idle"),
            group_idle_ns: 0,
            target_latency_ns: 0,
            low_latency: tunables.flag("low_latency"),
            quantum: tunables.get("quantum"),
            fifo_expire_sync_ns: tunables.get_ns("fifo_expire_sync"),
            fifo_expire_async_ns: tunables.get_ns("fifo_expire_async"),
            back_seek: BackSeek {
                max_sectors: 2 * tunables.get("back_seek_max"),
                penalty: tunables.get("back_seek_penalty"),
            },
        }
    }

    pub fn of_2_6_32(tunables: &Values) -> Self {
        Self::common(tunables)
    }

    pub fn of_4_19(tunables: &Values, queue: QueueFacts) -> Self {
        let mut defaults = Values::defaults(TUNABLES_4_19);
        defaults_4_19(&mut defaults, queue);
        let duration_ns = |(coarse, fine): (&str, &str)| {
            let given = tunables.get(fine) != defaults.get(fine);
            tunables.get_ns(if given { fine } else { coarse })
        };
        let [slice_sync_ns, slice_async_ns, slice_idle_ns, group_idle_ns, target_latency_ns] =
            IN_TWO_UNITS.map(duration_ns);
        Self {
            slice_sync_ns,
            slice_async_ns,
            slice_idle_ns,
            group_idle_ns,
            target_latency_ns,
            ..Self::common(tunables)
        }
    }

    /// A tunable was stored while the scheduler runs. Of a duration in two units, the one that was
    /// stored last counts.
    pub fn store(&mut self, tunables: &Values, name: &str) {
        let durations_ns = self.durations_ns();
        *self = Self::common(tunables);
        let fields = [
            &mut self.slice_sync_ns,
            &mut self.slice_async_ns,
            &mut self.slice_idle_ns,
            &mut self.group_idle_ns,
            &mut self.target_latency_ns,
        ];
        for ((field, before_ns), (coarse, fine)) in
            fields.into_iter().zip(durations_ns).zip(IN_TWO_UNITS)
        {
            let stored = name == coarse || name == fine;
            *field = if stored { tunables.get_ns(name) } else { before_ns };
        }
    }

    /// The durations that have tunables in two units, in the order of [`IN_TWO_UNITS`].
    fn durations_ns(&self) -> [u64; 5] {
        [
            self.slice_sync_ns,
            self.slice_async_ns,
            self.slice_idle_ns,
            self.group_idle_ns,
            self.target_latency_ns,
        ]
    }

    /// Reports the effective value in both units.
    pub fn effective_4_19(&self, tunables: &mut Values) {
        let durations_ns = self.durations_ns();
        for ((coarse, fine), duration_ns) in IN_TWO_UNITS.into_iter().zip(durations_ns) {
            tunables.put(coarse, duration_ns / 1_000_000);
            tunables.put(fine, duration_ns / 1_000);
        }
    }

    /// The unscaled slice of a queue: a fifth more or less for each level above or below the
    /// fourth.
    #[inline]
    pub fn slice_ns(&self, sync: bool, level: u8) -> u64 {
        let base_ns = if sync { self.slice_sync_ns } else { self.slice_async_ns };
        let step_ns = base_ns / SLICE_SCALE;
        base_ns + 4 * step_ns - step_ns * u64::from(level)
    }

    /// Requests that an async queue may dispatch in one slice.
    #[inline]
    pub fn max_async_requests(&self, level: u8) -> u64 {
        2 * self.slice_async_rq * (8 - u64::from(level))
    }

    /// Distance by which a queue goes later than the others, for each other queue.
    #[inline]
    pub fn slice_offset_ns(&self, sync: bool, level: u8) -> i64 {
        self.slice_ns(true, 0) as i64 - self.slice_ns(sync, level) as i64
    }

    #[inline]
    pub fn fifo_expire_ns(&self, sync: bool) -> u64 {
        if sync { self.fifo_expire_sync_ns } else { self.fifo_expire_async_ns }
    }
}

/// Rank of a class, best first.
#[inline]
pub(super) fn rank(class: PriorityClass) -> u8 {
    class as u8
}

#[cfg(test)]
mod tests {
    use super::*;

    const DISK: QueueFacts =
        QueueFacts { rotational: true, device_depth: 32, nr_requests: 128, ..QueueFacts::TYPICAL };
    const DRIVE: QueueFacts = QueueFacts { rotational: false, ..DISK };

    #[test]
    fn slices_follow_the_table() {
        let settings = Settings::of_4_19(&Values::defaults(TUNABLES_4_19), DISK);
        let slices_ms = |sync| {
            (0..8).map(|level| settings.slice_ns(sync, level) / 1_000_000).collect::<Vec<_>>()
        };
        assert_eq!(slices_ms(true), [180, 160, 140, 120, 100, 80, 60, 40]);
        assert_eq!(slices_ms(false), [72, 64, 56, 48, 40, 32, 24, 16]);
        let requests: Vec<_> = (0..8).map(|level| settings.max_async_requests(level)).collect();
        assert_eq!(requests, [32, 28, 24, 20, 16, 12, 8, 4]);
    }

    #[test]
    fn microseconds_count_where_they_are_given() {
        let mut tunables = Values::defaults(TUNABLES_4_19);
        tunables.set("slice_idle_us", "500").unwrap();
        tunables.set("slice_sync", "60").unwrap();
        let settings = Settings::of_4_19(&tunables, DISK);
        assert_eq!((settings.slice_idle_ns, settings.slice_sync_ns), (500_000, 60_000_000));
        settings.effective_4_19(&mut tunables);
        assert_eq!(tunables.get("slice_sync_us"), 60_000);
        assert_eq!(tunables.get("slice_idle"), 0);
    }

    #[test]
    fn a_drive_without_seeks_is_not_idled_on_unless_told() {
        let mut tunables = Values::defaults(TUNABLES_4_19);
        defaults_4_19(&mut tunables, DRIVE);
        assert_eq!(Settings::of_4_19(&tunables, DRIVE).slice_idle_ns, 0);
        tunables.set("slice_idle", "8").unwrap();
        assert_eq!(Settings::of_4_19(&tunables, DRIVE).slice_idle_ns, 8_000_000);
    }
}
