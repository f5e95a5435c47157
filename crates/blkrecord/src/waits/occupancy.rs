//! Finds out who held the device while others waited, by a sweep over time.
//!
//! While `n` I/Os are in a device, a task with `m` of them holds `m/n` of it. An I/O that waits meanwhile
//! adds these shares of its time to its own task's account. While it waits in the queue of an idle device,
//! nobody holds it: a scheduler waits on purpose, or the request is on its way.

use serde::Serialize;

use super::DeviceWaits;
use super::rows::{NEVER, Row, Rows};
use crate::interrupt::{Interrupt, Interrupted};

/// Tasks with accounts of their own; the others share one. Each event costs their square at worst.
const CLASSES: usize = 16;
const REST: usize = CLASSES - 1;
/// Depths that are counted apart.
const MOST_DEPTH: usize = 1024;

/// Shares of the device that were held while a task's I/Os waited.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Holders {
    /// The place of the holder in the list of tasks, and the nanoseconds of waiting that it held.
    pub tasks: Vec<(u32, f64)>,
    /// Held by tasks that have no account of their own.
    pub others_ns: f64,
    /// The device was idle.
    pub idle_ns: f64,
}

impl Holders {
    /// Tells other places; holders without one count as others.
    pub fn renumber(&mut self, places: &[Option<u32>]) {
        let mut kept = Vec::new();
        for (index, held_ns) in self.tasks.drain(..) {
            match places.get(index as usize).copied().flatten() {
                Some(place) => kept.push((place, held_ns)),
                None => self.others_ns += held_ns,
            }
        }
        self.tasks = kept;
    }
}

/// How many I/Os there were at a time, weighted by time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Depths {
    pub mean: f64,
    pub max: u32,
    pub p50: u32,
    pub p99: u32,
}

/// The result of the sweep.
#[derive(Debug)]
pub struct Occupancy {
    /// The class of each task.
    class_of: Vec<usize>,
    /// The task of each class but the last.
    task_of: Vec<u32>,
    queue: Matrix,
    device: Matrix,
    devices: Vec<DeviceState>,
    numbers: Vec<u32>,
    span_ns: u64,
}

/// Nanoseconds by waiting class and holding class; the last column is the idle device.
#[derive(Debug)]
struct Matrix {
    cells: Box<[[f64; CLASSES + 1]; CLASSES]>,
}

impl Matrix {
    fn new() -> Self {
        Self { cells: Box::new([[0.0; CLASSES + 1]; CLASSES]) }
    }
}

/// The I/Os in one device and in its queue.
#[derive(Clone, Debug)]
struct DeviceState {
    now_ns: u64,
    waiting: [u32; CLASSES],
    inside: [u32; CLASSES],
    nr_waiting: u32,
    nr_inside: u32,
    waiting_at_depth_ns: Vec<u64>,
    inside_at_depth_ns: Vec<u64>,
    ios: u64,
    bytes: u64,
}

impl Occupancy {
    pub fn of(rows: &Rows, interrupt: &Interrupt) -> Result<Self, Interrupted> {
        let (class_of, task_of) = classes(rows);
        let mut sweep = Self {
            class_of,
            task_of,
            queue: Matrix::new(),
            device: Matrix::new(),
            devices: vec![DeviceState::new(rows.begin_ns); rows.devices.len()],
            numbers: rows.devices.clone(),
            span_ns: rows.span_ns.saturating_sub(rows.begin_ns),
        };
        if rows.completions_known {
            sweep.run(rows, interrupt)?;
        }
        for row in &rows.rows {
            let device = &mut sweep.devices[row.device as usize];
            device.ios += 1;
            device.bytes += u64::from(row.bytes);
        }
        Ok(sweep)
    }

    fn run(&mut self, rows: &Rows, interrupt: &Interrupt) -> Result<(), Interrupted> {
        let all = &rows.rows;
        // I/Os without a completion are left out: they would hold the device for ever.
        let done = |index: &u32| all[*index as usize].completed_ns != NEVER;
        let mut entered: Vec<u32> = (0..all.len() as u32).filter(done).collect();
        let mut completed = entered.clone();
        entered.sort_by_key(|index| all[*index as usize].entered_ns());
        interrupt.check()?;
        completed.sort_by_key(|index| all[*index as usize].completed_ns);
        let (mut queue, mut enter, mut complete) = (0, 0, 0);
        while complete < completed.len() {
            while queue < all.len() && all[queue].completed_ns == NEVER {
                queue += 1;
            }
            let queued = all.get(queue).map_or(NEVER, |row| row.queued_ns);
            let next_in = entered.get(enter).map(|index| &all[*index as usize]);
            let entered_ns = next_in.map_or(NEVER, Row::entered_ns);
            let next_out = &all[completed[complete] as usize];
            if queued <= entered_ns && queued <= next_out.completed_ns {
                self.queue(&all[queue]);
                queue += 1;
            } else if let Some(row) = next_in.filter(|_| entered_ns <= next_out.completed_ns) {
                self.enter(row);
                enter += 1;
            } else {
                self.complete(next_out);
                complete += 1;
                if complete % super::CHUNK_ROWS == 0 {
                    interrupt.check()?;
                }
            }
        }
        Ok(())
    }

    fn queue(&mut self, row: &Row) {
        let class = self.class_of[row.task as usize];
        let device = self.advance(row.device, row.queued_ns);
        device.waiting[class] += 1;
        device.nr_waiting += 1;
    }

    fn enter(&mut self, row: &Row) {
        let class = self.class_of[row.task as usize];
        let device = self.advance(row.device, row.entered_ns());
        device.waiting[class] -= 1;
        device.nr_waiting -= 1;
        device.inside[class] += 1;
        device.nr_inside += 1;
    }

    fn complete(&mut self, row: &Row) {
        let class = self.class_of[row.task as usize];
        let device = self.advance(row.device, row.completed_ns);
        device.inside[class] -= 1;
        device.nr_inside -= 1;
    }

    /// Accounts for the time up to `now_ns`.
    fn advance(&mut self, place: u16, now_ns: u64) -> &mut DeviceState {
        let device = &mut self.devices[place as usize];
        // Nothing passes before the record begins.
        let passed_ns = now_ns.saturating_sub(device.now_ns);
        if passed_ns == 0 {
            return device;
        }
        device.now_ns = now_ns;
        count_depth(&mut device.waiting_at_depth_ns, device.nr_waiting, passed_ns);
        count_depth(&mut device.inside_at_depth_ns, device.nr_inside, passed_ns);
        if device.nr_inside == 0 {
            if device.nr_waiting > 0 {
                for (class, waiting) in device.waiting.iter().enumerate() {
                    self.queue.cells[class][CLASSES] += f64::from(*waiting) * passed_ns as f64;
                }
            }
            return device;
        }
        let each = passed_ns as f64 / f64::from(device.nr_inside);
        let mut held = [0.0; CLASSES];
        for (held, inside) in held.iter_mut().zip(device.inside) {
            *held = f64::from(inside) * each;
        }
        for class in 0..CLASSES {
            let waiting = device.waiting[class];
            if waiting > 0 {
                add_scaled(&mut self.queue.cells[class], &held, f64::from(waiting));
            }
            let inside = device.inside[class];
            if inside > 0 {
                add_scaled(&mut self.device.cells[class], &held, f64::from(inside));
            }
        }
        device
    }

    /// Holders of the device while I/Os of a task waited in the queue; empty for tasks without an account.
    pub fn in_queue(&self, task: usize) -> Holders {
        self.holders(&self.queue, task)
    }

    /// Tasks that shared the device with the I/Os of a task.
    pub fn in_device(&self, task: usize) -> Holders {
        self.holders(&self.device, task)
    }

    fn holders(&self, matrix: &Matrix, task: usize) -> Holders {
        let class = self.class_of[task];
        if class == REST {
            return Holders::default();
        }
        let cells = &matrix.cells[class];
        let mut tasks: Vec<(u32, f64)> = self
            .task_of
            .iter()
            .copied()
            .zip(cells.iter().copied())
            .filter(|(_, ns)| *ns > 0.0)
            .collect();
        tasks.sort_by(|one, other| other.1.total_cmp(&one.1));
        Holders { tasks, others_ns: cells[REST], idle_ns: cells[CLASSES] }
    }

    pub fn devices(&self) -> Vec<DeviceWaits> {
        let each = self.numbers.iter().zip(&self.devices);
        each.map(|(number, state)| DeviceWaits {
            number: *number,
            ios: state.ios,
            bytes: state.bytes,
            busy_ns: Some(state.inside_at_depth_ns.iter().skip(1).sum()),
            in_queue: Some(depths(&state.waiting_at_depth_ns, self.span_ns)),
            in_device: Some(depths(&state.inside_at_depth_ns, self.span_ns)),
        })
        .collect()
    }
}

impl DeviceState {
    fn new(now_ns: u64) -> Self {
        Self {
            now_ns,
            waiting: [0; CLASSES],
            inside: [0; CLASSES],
            nr_waiting: 0,
            nr_inside: 0,
            waiting_at_depth_ns: Vec::new(),
            inside_at_depth_ns: Vec::new(),
            ios: 0,
            bytes: 0,
        }
    }
}

/// The class of each task, and the task of each class but the last: those with the most I/Os.
fn classes(rows: &Rows) -> (Vec<usize>, Vec<u32>) {
    let mut ios = vec![0_u64; rows.tasks.keys.len()];
    for row in &rows.rows {
        ios[row.task as usize] += 1;
    }
    let mut task_of: Vec<u32> =
        (0..ios.len() as u32).filter(|task| ios[*task as usize] > 0).collect();
    task_of.sort_by_key(|task| (std::cmp::Reverse(ios[*task as usize]), *task));
    task_of.truncate(REST);
    let mut class_of = vec![REST; ios.len()];
    for (class, task) in task_of.iter().enumerate() {
        class_of[*task as usize] = class;
    }
    (class_of, task_of)
}

#[inline]
fn add_scaled(row: &mut [f64; CLASSES + 1], held: &[f64; CLASSES], scale: f64) {
    for (cell, held) in row.iter_mut().zip(held) {
        *cell += held * scale;
    }
}

fn count_depth(at_depth_ns: &mut Vec<u64>, depth: u32, passed_ns: u64) {
    let place = (depth as usize).min(MOST_DEPTH);
    if place >= at_depth_ns.len() {
        at_depth_ns.resize(place + 1, 0);
    }
    at_depth_ns[place] += passed_ns;
}

fn depths(at_depth_ns: &[u64], span_ns: u64) -> Depths {
    // After the last event nothing is under way.
    let accounted: u64 = at_depth_ns.iter().sum();
    let total = span_ns.max(accounted).max(1);
    // A sum of nothing would be a negative zero.
    let weighted = at_depth_ns
        .iter()
        .enumerate()
        .fold(0.0, |sum, (depth, ns)| sum + depth as f64 * *ns as f64);
    let quantile = |share: f64| {
        let wanted = share * total as f64;
        let mut below = (total - accounted) as f64;
        for (depth, ns) in at_depth_ns.iter().enumerate() {
            below += *ns as f64;
            if below >= wanted {
                return depth as u32;
            }
        }
        at_depth_ns.len().saturating_sub(1) as u32
    };
    Depths {
        mean: weighted / total as f64,
        max: at_depth_ns.iter().rposition(|ns| *ns > 0).unwrap_or(0) as u32,
        p50: quantile(0.5),
        p99: quantile(0.99),
    }
}
