//! From the bytes of a tracepoint's event to what it tells.

use blkrecord::event::{Action, Event};
use blkrecord::io::SECTOR_BYTES;
use blkrecord::names::{Names, UNKNOWN_NAME};
use blkrecord::rwbs;

use super::format::{EventLayout, Field};
use super::task_of;

/// The meaning of a tracepoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Meaning {
    Block(Action),
    Fork,
    Exit,
}

/// The tracepoints, their meaning, and whether a record makes sense without them.
pub const EVENTS: [(&str, Meaning, bool); 12] = [
    ("block/block_bio_queue", Meaning::Block(Action::Queue), true),
    ("block/block_split", Meaning::Block(Action::Split), false),
    ("block/block_bio_backmerge", Meaning::Block(Action::BackMerge), false),
    ("block/block_bio_frontmerge", Meaning::Block(Action::FrontMerge), false),
    // Since Linux 5.4.
    ("block/block_rq_merge", Meaning::Block(Action::BackMerge), false),
    ("block/block_rq_insert", Meaning::Block(Action::Insert), false),
    ("block/block_rq_issue", Meaning::Block(Action::Issue), true),
    ("block/block_rq_requeue", Meaning::Block(Action::Requeue), false),
    ("block/block_rq_complete", Meaning::Block(Action::Complete), true),
    // Bios that end without a request.
    ("block/block_bio_complete", Meaning::Block(Action::Complete), false),
    ("sched/sched_process_fork", Meaning::Fork, false),
    ("sched/sched_process_exit", Meaning::Exit, false),
];

/// An event of interest.
#[derive(Clone, Copy, Debug)]
pub enum Decoded {
    /// Its time, processor, process and control group are still to be filled in.
    Block(Event),
    Fork {
        parent: u32,
        child: u32,
        command: u32,
    },
    Exit {
        tid: u32,
        command: u32,
    },
}

/// The layouts of the enabled events.
#[derive(Debug, Default)]
pub struct Decoder {
    /// By the event's number.
    layouts: Vec<Option<Fields>>,
}

/// Fields of one event.
#[derive(Clone, Copy, Debug)]
struct Fields {
    meaning: Meaning,
    dev: Option<Field>,
    sector: Option<Field>,
    nr_sector: Option<Field>,
    new_sector: Option<Field>,
    ioprio: Option<Field>,
    error: Option<Field>,
    rwbs: Option<Field>,
    comm: Option<Field>,
    pid: Option<Field>,
    parent_pid: Option<Field>,
}

impl Decoder {
    /// Adds an event; false if it lacks a field that it must have.
    pub fn add(&mut self, layout: &EventLayout, meaning: Meaning) -> bool {
        let field = |name: &str| layout.field(name);
        let (comm, pid) = match meaning {
            Meaning::Block(_) => (field("comm"), field("common_pid")),
            Meaning::Fork => (field("child_comm"), field("child_pid")),
            Meaning::Exit => (field("comm"), field("pid")),
        };
        let fields = Fields {
            meaning,
            dev: field("dev"),
            sector: field("sector"),
            nr_sector: field("nr_sector"),
            new_sector: field("new_sector"),
            ioprio: field("ioprio"),
            error: field("error"),
            rwbs: field("rwbs"),
            comm,
            pid,
            parent_pid: field("parent_pid"),
        };
        let sound = fields.pid.is_some()
            && match meaning {
                Meaning::Block(action) => {
                    let length =
                        if action == Action::Split { fields.new_sector } else { fields.nr_sector };
                    [fields.dev, fields.sector, fields.rwbs, length].iter().all(Option::is_some)
                }
                Meaning::Fork => fields.parent_pid.is_some(),
                Meaning::Exit => true,
            };
        if sound {
            let index = usize::from(layout.id);
            if self.layouts.len() <= index {
                self.layouts.resize(index + 1, None);
            }
            self.layouts[index] = Some(fields);
        }
        sound
    }

    /// Reads an event; `None` for one of another kind.
    pub fn decode(&self, bytes: &[u8], names: &mut Names) -> Option<Decoded> {
        let id = u16::from_le_bytes(*bytes.first_chunk()?);
        let fields = self.layouts.get(usize::from(id))?.as_ref()?;
        let pid = task_of(number(bytes, fields.pid?)? as u32);
        match fields.meaning {
            Meaning::Block(action) => {
                let letters = text(bytes, fields.rwbs?)?;
                let (operation, flags) = rwbs::parse(letters);
                let mut event = Event::new(0, action, operation);
                event.flags = flags;
                event.device = number(bytes, fields.dev?)? as u32;
                event.sector = number(bytes, fields.sector?)?;
                event.tid = pid;
                if let Some(field) = fields.nr_sector {
                    event.bytes = number(bytes, field)? * SECTOR_BYTES;
                }
                match action {
                    Action::Split => event.split_at = number(bytes, fields.new_sector?)?,
                    Action::Queue => event.command = command(bytes, fields.comm, names),
                    Action::Complete => {
                        let error =
                            fields.error.and_then(|field| number(bytes, field)).unwrap_or(0);
                        event.error = (error as u32 as i32).unsigned_abs() as u16;
                    }
                    _ => {}
                }
                if let Some(ioprio) = fields.ioprio.and_then(|field| number(bytes, field)) {
                    event.ioprio = ioprio as u16;
                }
                Some(Decoded::Block(event))
            }
            Meaning::Fork => Some(Decoded::Fork {
                parent: number(bytes, fields.parent_pid?)? as u32,
                child: pid,
                command: command(bytes, fields.comm, names),
            }),
            Meaning::Exit => {
                Some(Decoded::Exit { tid: pid, command: command(bytes, fields.comm, names) })
            }
        }
    }
}

/// A little-endian number of one to eight bytes.
fn number(event: &[u8], field: Field) -> Option<u64> {
    let bytes = event.get(field.offset..field.offset + field.bytes.min(8))?;
    Some(bytes.iter().rev().fold(0, |value, byte| value << 8 | u64::from(*byte)))
}

fn text(event: &[u8], field: Field) -> Option<&[u8]> {
    if !field.indirect {
        return event.get(field.offset..field.offset + field.bytes);
    }
    // The length in the upper half, the place in the lower.
    let place = number(event, field)?;
    let (begin, length) = ((place & 0xffff) as usize, (place >> 16) as usize);
    event.get(begin..begin + length)
}

fn command(event: &[u8], field: Option<Field>, names: &mut Names) -> u32 {
    field
        .and_then(|field| text(event, field))
        .map_or(UNKNOWN_NAME, |text| names.number_of_bytes(text))
}
