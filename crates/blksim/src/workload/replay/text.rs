//! Plans as text in a job file: numbers of variable length, in base64 without padding.
//!
//! A number has seven bits in each byte, the lowest first; the highest bit says that more follow. Offsets
//! count sectors from the end of the I/O before, ranks from the I/O's own index, both with the sign in the
//! lowest bit. An I/O takes some ten bytes.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

use super::plan::{Home, Memory, PlanError, ReplayIo, Signal, TaskPlan};
use crate::core::record::Direction;
use crate::workload::own_priority::OwnPriority;

const VERSION: u64 = 8;
const SECTOR_BYTES: u64 = 512;
/// Bits of an I/O's first byte: direction, durable, with a priority of its own, with a known number of segments, into cold
/// memory, and in one plug with the I/O before.
const DURABLE: u64 = 4;
const PRIORITY: u64 = 8;
const SEGMENTS: u64 = 16;
const COLD: u64 = 32;
const PLUGGED: u64 = 64;
/// Bits of a plan's first number, below the count of its I/Os.
const ANY: u64 = 1;
const IN_TURN: u64 = 2;
const SUBMISSIONS: u64 = 4;
/// The task's processor and the number of all follow.
const HOME: u64 = 8;
/// It has several I/O contexts, and each I/O says in which it is queued.
const CONTEXTS: u64 = 16;
const FLAGS: u32 = 5;
/// The largest offset, so that sums stay within 64 bits.
const MAX_SECTOR: u64 = 1 << 53;

/// Plans as one line of text.
pub fn encode(plans: &[TaskPlan]) -> String {
    let mut bytes = Vec::new();
    put(&mut bytes, VERSION);
    put(&mut bytes, plans.len() as u64);
    for plan in plans {
        let any = if plan.waits_for_any { ANY } else { 0 };
        let in_turn = if plan.thinks_in_turn { IN_TURN } else { 0 };
        let submissions = if plan.knows_submissions { SUBMISSIONS } else { 0 };
        let at_home = if plan.home.is_some() { HOME } else { 0 };
        let several = if plan.nr_contexts() > 1 { CONTEXTS } else { 0 };
        let flags = any | in_turn | submissions | at_home | several;
        put(&mut bytes, (plan.ios.len() as u64) << FLAGS | flags);
        if let Some(Home { processor, of }) = plan.home {
            put(&mut bytes, u64::from(processor));
            put(&mut bytes, u64::from(of));
        }
        let (mut end, mut waits_for) = (0, 0);
        for (index, io) in plan.ios.iter().enumerate() {
            let own = io.priority.map_or(0, |_| PRIORITY);
            let durable = if io.durable { DURABLE } else { 0 };
            let segments = if io.memory.segments > 0 { SEGMENTS } else { 0 };
            let cold = if io.memory.cold { COLD } else { 0 };
            let plugged = if io.plugged { PLUGGED } else { 0 };
            put(&mut bytes, code(io.direction) | durable | own | segments | cold | plugged);
            if let Some(OwnPriority { class, level }) = io.priority {
                bytes.extend([class, level]);
            }
            if io.memory.segments > 0 {
                put(&mut bytes, u64::from(io.memory.segments));
            }
            if several > 0 {
                put(&mut bytes, u64::from(io.context));
            }
            let sector = io.offset / SECTOR_BYTES;
            put_signed(&mut bytes, sector as i64 - end as i64);
            put(&mut bytes, u64::from(io.bytes) / SECTOR_BYTES);
            end = sector + u64::from(io.bytes) / SECTOR_BYTES;
            put(&mut bytes, u64::from(io.waits_for - waits_for));
            waits_for = io.waits_for;
            put_signed(&mut bytes, i64::from(io.rank) - index as i64);
            put(&mut bytes, io.think_ns);
        }
        for signals in [&plan.awaits, &plan.sets] {
            put(&mut bytes, signals.len() as u64);
            let mut at = 0;
            for signal in signals {
                put(&mut bytes, u64::from(signal.at - at));
                put(&mut bytes, u64::from(signal.number));
                at = signal.at;
            }
        }
    }
    URL_SAFE_NO_PAD.encode(bytes)
}

/// Reads plans back, and checks each of them.
pub fn decode(text: &str) -> Result<Vec<TaskPlan>, PlanError> {
    let bytes = URL_SAFE_NO_PAD
        .decode(text)
        .map_err(|error| PlanError::of(format!("it is not base64: {error}")))?;
    let mut reader = Reader { bytes: &bytes, flags: FLAGS };
    // Versions 1 to 4, which stored runs may have, had no flags, one, two and three, and those until 7 had four; version 5
    // knew neither segments nor cold memory, version 6 no plugs.
    reader.flags = match reader.number()? {
        version @ 1..VERSION => (version as u32 - 1).min(FLAGS - 1),
        VERSION => FLAGS,
        other => {
            return Err(PlanError::of(format!("its version is {other}, not up to {VERSION}")));
        }
    };
    let count = reader.count()?;
    let plans: Vec<TaskPlan> = (0..count).map(|_| reader.plan()).collect::<Result<_, _>>()?;
    if !reader.bytes.is_empty() {
        return Err(PlanError::of("something follows its end"));
    }
    for (task, plan) in plans.iter().enumerate() {
        plan.check().map_err(|error| PlanError::of(format!("task {task}: {error}")))?;
    }
    Ok(plans)
}

fn code(direction: Direction) -> u64 {
    match direction {
        Direction::Write => 1,
        Direction::Sync => 2,
        _ => 0,
    }
}

fn put(bytes: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
}

fn put_signed(bytes: &mut Vec<u8>, number: i64) {
    put(bytes, (number << 1 ^ number >> 63) as u64);
}

struct Reader<'a> {
    bytes: &'a [u8],
    /// Bits of a plan's first number that are flags.
    flags: u32,
}

impl Reader<'_> {
    fn byte(&mut self) -> Result<u8, PlanError> {
        let (first, rest) =
            self.bytes.split_first().ok_or_else(|| PlanError::of("it ends too early"))?;
        self.bytes = rest;
        Ok(*first)
    }

    #[inline]
    fn number(&mut self) -> Result<u64, PlanError> {
        // Numbers of one byte and of two are most of them.
        if let [first, rest @ ..] = self.bytes {
            if *first < 0x80 {
                self.bytes = rest;
                return Ok(u64::from(*first));
            }
            if let [second, rest @ ..] = rest {
                if *second < 0x80 {
                    self.bytes = rest;
                    return Ok(u64::from(*first & 0x7f) | u64::from(*second) << 7);
                }
            }
        }
        self.long_number()
    }

    #[inline(never)]
    fn long_number(&mut self) -> Result<u64, PlanError> {
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            if shift == 63 && byte > 1 {
                break;
            }
            number |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Ok(number);
            }
        }
        Err(PlanError::of("a number is too large"))
    }

    fn small(&mut self) -> Result<u32, PlanError> {
        u32::try_from(self.number()?).map_err(|_| PlanError::of("a number is too large"))
    }

    fn short(&mut self) -> Result<u16, PlanError> {
        u16::try_from(self.number()?).map_err(|_| PlanError::of("a number is too large"))
    }

    /// A number of things, each of which takes at least a byte.
    fn count(&mut self) -> Result<usize, PlanError> {
        let count = self.number()?;
        self.counted(count)
    }

    fn counted(&self, count: u64) -> Result<usize, PlanError> {
        if count > self.bytes.len() as u64 {
            return Err(PlanError::of("it ends too early"));
        }
        Ok(count as usize)
    }

    fn signed(&mut self) -> Result<i64, PlanError> {
        let number = self.number()?;
        Ok((number >> 1) as i64 ^ -((number & 1) as i64))
    }

    fn plan(&mut self) -> Result<TaskPlan, PlanError> {
        let first = self.number()?;
        let flags = first & ((1 << self.flags) - 1);
        let count = self.counted(first >> self.flags)?;
        let home = if flags & HOME == 0 {
            None
        } else {
            Some(Home { processor: self.short()?, of: self.short()? })
        };
        let mut ios = Vec::with_capacity(count);
        let (mut end, mut waits_for) = (0_u64, 0_u32);
        for index in 0..count {
            let first = self.number()?;
            let direction = match first & 3 {
                0 => Direction::Read,
                1 => Direction::Write,
                2 => Direction::Sync,
                _ => return Err(PlanError::of(format!("I/O {index} is of no known kind"))),
            };
            let priority = if first & PRIORITY == 0 {
                None
            } else {
                let (class, level) = (self.byte()?, self.byte()?);
                if !(1..=3).contains(&class) || level > 7 {
                    let message = format!("I/O {index} has no priority that exists");
                    return Err(PlanError::of(message));
                }
                Some(OwnPriority { class, level })
            };
            let segments = if first & SEGMENTS == 0 { 0 } else { self.short()? };
            let context = if flags & CONTEXTS == 0 { 0 } else { self.short()? };
            let sector = end
                .checked_add_signed(self.signed()?)
                .filter(|sector| *sector <= MAX_SECTOR)
                .ok_or_else(|| PlanError::of(format!("I/O {index} lies on no disk")))?;
            let bytes = self.number()?.checked_mul(SECTOR_BYTES).filter(|bytes| *bytes <= 1 << 30);
            let bytes =
                bytes.ok_or_else(|| PlanError::of(format!("I/O {index} is too large")))? as u32;
            end = sector + u64::from(bytes) / SECTOR_BYTES;
            waits_for = waits_for
                .checked_add(self.small()?)
                .ok_or_else(|| PlanError::of("a number is too large"))?;
            let rank = (index as i64)
                .checked_add(self.signed()?)
                .and_then(|rank| u32::try_from(rank).ok())
                .ok_or_else(|| PlanError::of(format!("I/O {index} has a wrong rank")))?;
            ios.push(ReplayIo {
                offset: sector * SECTOR_BYTES,
                bytes,
                direction,
                durable: first & DURABLE != 0,
                plugged: first & PLUGGED != 0,
                memory: Memory { segments, cold: first & COLD != 0 },
                context,
                priority,
                waits_for,
                rank,
                think_ns: self.number()?,
            });
        }
        let mut signals = || -> Result<Vec<Signal>, PlanError> {
            let mut at = 0_u32;
            let mut signals = Vec::new();
            for _ in 0..self.count()? {
                at = at
                    .checked_add(self.small()?)
                    .ok_or_else(|| PlanError::of("a number is too large"))?;
                signals.push(Signal { at, number: self.small()? });
            }
            Ok(signals)
        };
        Ok(TaskPlan {
            ios,
            waits_for_any: flags & ANY != 0,
            thinks_in_turn: flags & IN_TURN != 0,
            knows_submissions: flags & SUBMISSIONS != 0,
            home,
            awaits: signals()?,
            sets: signals()?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(waits_for_any: bool, thinks_in_turn: bool, knows_submissions: bool) -> TaskPlan {
        let io = |index: u32| ReplayIo {
            waits_for: index.saturating_sub(1),
            rank: index,
            think_ns: 7,
            ..ReplayIo::plain(Direction::Read, u64::from(index) * 4096, 4096)
        };
        let ios = (0..5).map(io).collect();
        TaskPlan { ios, waits_for_any, thinks_in_turn, knows_submissions, ..TaskPlan::default() }
    }

    #[test]
    fn plans_are_read_back() {
        let both = [false, true];
        let plans = both.map(|any| both.map(|in_turn| both.map(|known| plan(any, in_turn, known))));
        let mut plans = plans.concat().concat();
        plans[3].home = Some(Home { processor: 300, of: 512 });
        plans[4].ios[1].memory = Memory { segments: 254, cold: true };
        plans[4].ios[2].memory.cold = true;
        plans[4].ios[1].priority = Some(OwnPriority { class: 2, level: 7 });
        plans[5].ios[1].plugged = true;
        plans[6].ios[2].context = 255;
        assert_eq!(decode(&encode(&plans)).unwrap(), plans);
    }

    #[test]
    fn a_processor_that_its_machine_lacks_is_refused() {
        let mut one = plan(false, false, false);
        one.home = Some(Home { processor: 2, of: 2 });
        let error = decode(&encode(&[one])).unwrap_err().to_string();
        assert_eq!(error, "task 0: its processor is none of its machine's");
    }

    #[test]
    fn a_task_has_a_limited_number_of_contexts() {
        let mut one = plan(false, false, false);
        one.ios[3].context = 256;
        let error = decode(&encode(&[one])).unwrap_err().to_string();
        assert_eq!(error, "task 0: I/O 3 is in context 256, not below 256");
    }

    #[test]
    fn what_waits_for_something_else_is_in_no_plug() {
        let refused = |change: fn(&mut TaskPlan)| {
            let mut one = plan(false, true, true);
            change(&mut one);
            decode(&encode(&[one])).unwrap_err().to_string()
        };
        let message =
            |index| format!("task 0: I/O {index} cannot be in one plug with the one before it");
        assert_eq!(refused(|plan| plan.ios[0].plugged = true), message(0));
        assert_eq!(refused(|plan| plan.ios[3].plugged = true), message(3));
        for change in [
            |plan: &mut TaskPlan| plan.ios[0].durable = true,
            |plan: &mut TaskPlan| (plan.ios[1].direction, plan.ios[1].bytes) = (Direction::Sync, 0),
            |plan: &mut TaskPlan| plan.awaits = vec![Signal { at: 1, number: 0 }],
            |plan: &mut TaskPlan| plan.ios[1].context = 1,
        ] {
            let mut one = plan(false, true, true);
            one.ios[1].plugged = true;
            assert_eq!(one.check(), Ok(()));
            change(&mut one);
            assert_eq!(one.check().unwrap_err().to_string(), message(1)[8..]);
        }
    }

    #[test]
    fn earlier_versions_had_fewer_flags() {
        let mut bytes = URL_SAFE_NO_PAD.decode(encode(&[plan(false, false, false)])).unwrap();
        assert_eq!(bytes[..4], [8, 1, 160, 1]);
        // Of five I/Os, the number with five flags takes two bytes, and that of earlier versions one.
        bytes.remove(3);
        for (version, first, any, in_turn, known) in [
            (1, 5, false, false, false),
            (2, 5 << 1, false, false, false),
            (2, 5 << 1 | 1, true, false, false),
            (3, 5 << 2 | 2, false, true, false),
            (4, 5 << 3 | 4, false, false, true),
            (5, 5 << 4 | 4, false, false, true),
            (6, 5 << 4 | 2, false, true, false),
            (7, 5 << 4 | 1, true, false, false),
        ] {
            (bytes[0], bytes[2]) = (version, first);
            let read = decode(&URL_SAFE_NO_PAD.encode(&bytes)).unwrap();
            assert_eq!(read, [plan(any, in_turn, known)]);
        }
        for version in [0, 9] {
            bytes[0] = version;
            let error = decode(&URL_SAFE_NO_PAD.encode(&bytes)).unwrap_err();
            assert_eq!(error.to_string(), format!("its version is {version}, not up to 8"));
        }
    }
}
