//! I/Os and task events as columns of short integers.
//!
//! Neighbours are alike, so a column compresses better than a row. Each column is a length in bytes
//! (varint) and one varint per row. Times are differences: a queueing to the one before, the others to the
//! I/O's own queueing, plus one, with 0 for never. A sector is a difference to the end of the I/O before,
//! so that sequential I/Os give zeroes. Processors have one added, with 0 for unknown.
//! They are the last column but one, which version 1 of the format lacks. Segments are the last, since version 3.

use super::varint::{self, Input};
use crate::io::{Flags, Io, Moment, Operation};
use crate::task_event::{TaskEvent, TaskEventKind};

/// Rows of a block at most; writers put [`crate::batch::BATCH_IOS`] into one.
pub const MOST_ROWS: u64 = 1 << 16;

/// The raw data of an `IOS ` block.
pub fn encode_ios(ios: &[Io]) -> Vec<u8> {
    let mut out = Vec::with_capacity(ios.len() * 24);
    varint::put(&mut out, ios.len() as u64);
    let mut column = Vec::with_capacity(ios.len() * 4);
    let mut queued = 0;
    put_column(&mut out, &mut column, ios, |column, io| {
        put_moment(column, io.queued, queued);
        queued = io.queued.ns().unwrap_or(queued);
    });
    let times: [fn(&Io) -> Moment; 5] =
        [|io| io.split, |io| io.merged, |io| io.inserted, |io| io.issued, |io| io.completed];
    for time in times {
        put_column(&mut out, &mut column, ios, |column, io| {
            put_moment(column, time(io), io.queued.ns().unwrap_or(0));
        });
    }
    let mut end = 0;
    put_column(&mut out, &mut column, ios, |column, io| {
        varint::put_difference(column, io.sector, end);
        end = io.end_sector();
    });
    put_column(&mut out, &mut column, ios, |column, io| varint::put(column, io.bytes));
    let small: [fn(&Io) -> u64; 8] = [
        |io| io.operation as u64,
        |io| u64::from(io.flags.0),
        |io| u64::from(io.ioprio),
        |io| u64::from(io.error),
        |io| u64::from(io.tgid),
        |io| u64::from(io.tid),
        |io| u64::from(io.command),
        |io| u64::from(io.cgroup),
    ];
    for value in small {
        put_column(&mut out, &mut column, ios, |column, io| varint::put(column, value(io)));
    }
    put_column(&mut out, &mut column, ios, |column, io| varint::put(column, u64::from(io.device)));
    put_column(&mut out, &mut column, ios, |column, io| {
        varint::put(column, u64::from(io.processor.wrapping_add(1)));
    });
    put_column(&mut out, &mut column, ios, |column, io| {
        varint::put(column, u64::from(io.segments));
    });
    out
}

/// Appends the I/Os of a block; an error says what is wrong with it.
pub fn decode_ios(raw: &[u8], names: usize, ios: &mut Vec<Io>) -> Result<(), &'static str> {
    let first = ios.len();
    let result = decode_rows(raw, names, ios);
    if result.is_err() {
        ios.truncate(first);
    }
    result
}

fn decode_rows(raw: &[u8], names: usize, ios: &mut Vec<Io>) -> Result<(), &'static str> {
    let mut input = Input::new(raw);
    let first = ios.len();
    let rows = rows(&mut input)?;
    let empty = Io::new(Moment::NEVER, Operation::Other, 0, 0);
    ios.resize(first + rows, empty);
    let ios = &mut ios[first..];
    let mut queued = 0;
    get_column(&mut input, ios, |column, io| {
        io.queued = get_moment(column, queued)?;
        queued = io.queued.ns().unwrap_or(queued);
        Some(())
    })?;
    let times: [fn(&mut Io) -> &mut Moment; 5] = [
        |io| &mut io.split,
        |io| &mut io.merged,
        |io| &mut io.inserted,
        |io| &mut io.issued,
        |io| &mut io.completed,
    ];
    for time in times {
        get_column(&mut input, ios, |column, io| {
            *time(io) = get_moment(column, io.queued.ns().unwrap_or(0))?;
            Some(())
        })?;
    }
    // Sectors depend on the sizes, whose column comes later.
    let mut sectors = column(&mut input)?;
    get_column(&mut input, ios, |column, io| set(&mut io.bytes, column.get()))?;
    let mut end = 0;
    for io in ios.iter_mut() {
        io.sector = sectors.get_difference(end).ok_or(BAD)?;
        end = io.end_sector();
    }
    let small: [fn(&mut Io, u64) -> Option<()>; 6] = [
        |io, value| set(&mut io.operation, Operation::from_number(u8::try_from(value).ok()?)),
        |io, value| set(&mut io.flags, u16::try_from(value).ok().map(Flags)),
        |io, value| set(&mut io.ioprio, u16::try_from(value).ok()),
        |io, value| set(&mut io.error, u16::try_from(value).ok()),
        |io, value| set(&mut io.tgid, u32::try_from(value).ok()),
        |io, value| set(&mut io.tid, u32::try_from(value).ok()),
    ];
    for change in small {
        get_column(&mut input, ios, |column, io| change(io, column.get()?))?;
    }
    get_column(&mut input, ios, |column, io| set(&mut io.command, get_name(column, names)))?;
    get_column(&mut input, ios, |column, io| set(&mut io.cgroup, get_name(column, names)))?;
    get_column(&mut input, ios, |column, io| {
        set(&mut io.device, u32::try_from(column.get()?).ok())
    })?;
    if !input.is_empty() {
        get_column(&mut input, ios, |column, io| {
            set(
                &mut io.processor,
                u16::try_from(column.get()?).ok().map(|code| code.wrapping_sub(1)),
            )
        })?;
    }
    if !input.is_empty() {
        get_column(&mut input, ios, |column, io| {
            set(&mut io.segments, u16::try_from(column.get()?).ok())
        })?;
    }
    Ok(())
}

/// The raw data of a `TASK` block.
pub fn encode_tasks(tasks: &[TaskEvent]) -> Vec<u8> {
    let mut out = Vec::new();
    varint::put(&mut out, tasks.len() as u64);
    let mut at = 0;
    for task in tasks {
        put_moment(&mut out, task.at, at);
        at = task.at.ns().unwrap_or(at);
        varint::put(&mut out, task.kind as u64);
        varint::put(&mut out, u64::from(task.tid));
        varint::put(&mut out, u64::from(task.parent));
        varint::put(&mut out, u64::from(task.command));
    }
    out
}

/// Appends the task events of a block.
pub fn decode_tasks(
    raw: &[u8],
    names: usize,
    tasks: &mut Vec<TaskEvent>,
) -> Result<(), &'static str> {
    let mut input = Input::new(raw);
    let mut at = 0;
    for _ in 0..rows(&mut input)? {
        let mut event = || {
            let moment = get_moment(&mut input, at)?;
            at = moment.ns().unwrap_or(at);
            let kind = match input.get()? {
                0 => TaskEventKind::Fork,
                1 => TaskEventKind::Exit,
                _ => return None,
            };
            let tid = u32::try_from(input.get()?).ok()?;
            let parent = u32::try_from(input.get()?).ok()?;
            Some(TaskEvent { at: moment, kind, tid, parent, command: get_name(&mut input, names)? })
        };
        tasks.push(event().ok_or(BAD)?);
    }
    Ok(())
}

const BAD: &str = "a block's columns are inconsistent";

fn rows(input: &mut Input<'_>) -> Result<usize, &'static str> {
    let rows = input.get().ok_or(BAD)?;
    if rows > MOST_ROWS { Err(BAD) } else { Ok(rows as usize) }
}

fn column<'a>(input: &mut Input<'a>) -> Result<Input<'a>, &'static str> {
    let bytes = input.get().ok_or(BAD)?;
    Ok(Input::new(input.take(bytes).ok_or(BAD)?))
}

fn put_column(
    out: &mut Vec<u8>,
    column: &mut Vec<u8>,
    ios: &[Io],
    mut put: impl FnMut(&mut Vec<u8>, &Io),
) {
    column.clear();
    for io in ios {
        put(column, io);
    }
    varint::put(out, column.len() as u64);
    out.extend_from_slice(column);
}

fn get_column(
    input: &mut Input<'_>,
    ios: &mut [Io],
    mut get: impl FnMut(&mut Input<'_>, &mut Io) -> Option<()>,
) -> Result<(), &'static str> {
    let mut column = column(input)?;
    for io in ios {
        get(&mut column, io).ok_or(BAD)?;
    }
    if column.is_empty() { Ok(()) } else { Err(BAD) }
}

fn put_moment(out: &mut Vec<u8>, moment: Moment, base: u64) {
    // Moments stay below 2⁶², so a difference plus one fits.
    varint::put(out, moment.ns().map_or(0, |ns| varint::zigzag(ns.wrapping_sub(base)) + 1));
}

fn get_moment(input: &mut Input<'_>, base: u64) -> Option<Moment> {
    match input.get()? {
        0 => Some(Moment::NEVER),
        code => {
            let ns = base.wrapping_add(varint::unzigzag(code - 1));
            (ns <= Moment::MAX_NS).then(|| Moment::at(ns))
        }
    }
}

/// Sets a field, if there is a value.
fn set<T>(field: &mut T, value: Option<T>) -> Option<()> {
    *field = value?;
    Some(())
}

fn get_name(input: &mut Input<'_>, names: usize) -> Option<u32> {
    let number = u32::try_from(input.get()?).ok()?;
    ((number as usize) < names).then_some(number)
}
