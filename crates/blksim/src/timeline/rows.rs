//! Rows of the two tables. Each field is stated once, from which follow the struct, the description
//! of its column and its place in the bytes.

/// Description of a column, for readers and for the documentation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Column {
    pub name: &'static str,
    /// Width of the unsigned integer, little endian.
    pub bytes: usize,
    pub unit: &'static str,
    pub help: &'static str,
}

/// Description of a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Table {
    pub name: &'static str,
    pub row_bytes: usize,
    pub columns: &'static [Column],
}

macro_rules! row {
    (
        $(#[$attribute:meta])* $name:ident, $columns:ident:
        $($field:ident: $kind:ty, $unit:literal, $help:literal;)*
    ) => {
        $(#[$attribute])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub struct $name {
            $(#[doc = $help] pub $field: $kind,)*
        }

        /// Columns of the table, in the order of the bytes.
        pub const $columns: &[Column] = &[
            $(Column {
                name: stringify!($field),
                bytes: size_of::<$kind>(),
                unit: $unit,
                help: $help,
            },)*
        ];

        impl $name {
            /// Bytes of a row; wider columns come first, so nothing is padded.
            pub const BYTES: usize = 0 $(+ size_of::<$kind>())*;

            /// Appends the row.
            pub(super) fn write(&self, table: &mut Vec<u8>) {
                let mut row = [0; Self::BYTES];
                let mut rest = row.as_mut_slice();
                $(
                    let (field, left) = rest.split_at_mut(size_of::<$kind>());
                    field.copy_from_slice(&self.$field.to_le_bytes());
                    rest = left;
                )*
                debug_assert!(rest.is_empty());
                table.extend_from_slice(&row);
            }

            /// The rows of a table; an incomplete last one is left out.
            pub fn all(table: &[u8]) -> impl Iterator<Item = Self> + '_ {
                table.chunks_exact(Self::BYTES).map(|row| {
                    let mut at = 0;
                    $(
                        let mut field = [0; size_of::<$kind>()];
                        field.copy_from_slice(&row[at..at + size_of::<$kind>()]);
                        at += size_of::<$kind>();
                        let $field = <$kind>::from_le_bytes(field);
                    )*
                    debug_assert_eq!(at, Self::BYTES);
                    Self { $($field,)* }
                })
            }
        }
    };
}

row! {
    /// A request, or a piece of I/O that joined one.
    RequestRow, REQUEST_COLUMNS:
    arrive_ns: u64, "ns", "submitted to the block layer";
    insert_ns: u64, "ns", "given to the scheduler; a merged piece: submitted";
    dispatch_ns: u64, "ns", "given to the device";
    complete_ns: u64, "ns", "completed by the device";
    sector: u64, "sectors of 512 B", "first sector, as submitted";
    head_dispatch: u64, "sectors of 512 B", "where the head was, or was bound for, when the device got it; 2^64-1: no head";
    head_complete: u64, "sectors of 512 B", "where the head was at completion; 2^64-1: no head";
    sectors: u32, "sectors of 512 B", "length, as submitted; 0 for a flush";
    task: u32, "", "the task that submitted it: clones of jobs in the order of the job file, then kernel threads";
    queued: u32, "", "requests left with the scheduler when the device got it";
    in_flight: u32, "", "requests in the device then, this one included";
    job: u16, "", "index of the job; 65535: none (background writeback, flush)";
    group: u16, "", "control group; 0 is the root";
    operation: u8, "", "0 read, 1 write, 2 flush";
    flags: u8, "", "1 merged into the nearest row above without this bit, 2 sync, 4 readahead, 8 background writeback, 16 buffered";
    priority: u8, "", "class (0 real time, 1 best effort, 2 idle) times 8, plus level";
    disk: u8, "", "index of the disk";
}

row! {
    /// An I/O or a call of a job, as the job saw it.
    IoRow, IO_COLUMNS:
    start_ns: u64, "ns", "issued by the job";
    end_ns: u64, "ns", "back at the job";
    bytes: u32, "B", "size; 0 for a call of fsync or fdatasync";
    task: u32, "", "the clone that issued it";
    job: u16, "", "index of the job";
    direction: u8, "", "0 read, 1 write, 2 fsync or fdatasync";
    measured: u8, "", "1 if it counts in the job's figures, 0 during ramp time";
    reserved: u32, "", "0";
}
