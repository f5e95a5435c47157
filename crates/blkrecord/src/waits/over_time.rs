//! Latencies and throughput over time.

use serde::Serialize;

use super::rows::Rows;

/// Columns of the heat map.
const COLUMNS: usize = 120;
/// Rows of the heat map: half a power of two each, from 1 µs to more than an hour.
const ROWS: usize = 64;
const FIRST_BOUND_NS: f64 = 1000.0;

/// A heat map: I/Os by the time of their completion and by latency.
#[derive(Debug, Serialize)]
pub struct OverTime {
    /// Length of a column.
    pub column_ns: u64,
    /// The upper bounds of the rows that are used, the smallest first.
    pub bounds_ns: Vec<u64>,
    /// I/Os by row and column.
    pub counts: Vec<Vec<u64>>,
    pub read_bytes: Vec<u64>,
    pub write_bytes: Vec<u64>,
    /// Sums of waits by the time of completion.
    pub queue_ns: Vec<u64>,
    pub device_ns: Vec<u64>,
}

impl OverTime {
    pub fn of(rows: &Rows) -> Self {
        let column_ns = (rows.span_ns / COLUMNS as u64 + 1).max(1);
        let columns = (rows.span_ns / column_ns + 1) as usize;
        let mut counts = vec![vec![0_u64; columns]; ROWS];
        let mut series = [(); 4].map(|()| vec![0_u64; columns]);
        let [read_bytes, write_bytes, queue_ns, device_ns] = &mut series;
        for row in &rows.rows {
            let latency = row.latency_ns();
            let at_ns = latency.map_or(row.queued_ns, |_| row.completed_ns);
            let column = ((at_ns / column_ns) as usize).min(columns - 1);
            if let Some(latency) = latency {
                counts[row_of(latency)][column] += 1;
            }
            let bytes = u64::from(row.bytes);
            match row.operation {
                crate::io::Operation::Read => read_bytes[column] += bytes,
                crate::io::Operation::Write => write_bytes[column] += bytes,
                _ => {}
            }
            queue_ns[column] += row.queue_ns().unwrap_or(0);
            device_ns[column] += row.device_ns().unwrap_or(0);
        }
        let used = |counts: &Vec<u64>| counts.iter().any(|count| *count > 0);
        let first = counts.iter().position(used).unwrap_or(0);
        let last = counts.iter().rposition(used).map_or(first, |last| last + 1);
        let [read_bytes, write_bytes, queue_ns, device_ns] = series;
        Self {
            column_ns,
            bounds_ns: (first..last).map(bound_of).collect(),
            counts: counts.drain(first..last).collect(),
            read_bytes,
            write_bytes,
            queue_ns,
            device_ns,
        }
    }
}

fn row_of(latency_ns: u64) -> usize {
    if latency_ns as f64 <= FIRST_BOUND_NS {
        return 0;
    }
    let powers = (latency_ns as f64 / FIRST_BOUND_NS).log2() * 2.0;
    (powers.ceil() as usize).min(ROWS - 1)
}

fn bound_of(row: usize) -> u64 {
    (FIRST_BOUND_NS * (row as f64 / 2.0).exp2()) as u64
}
