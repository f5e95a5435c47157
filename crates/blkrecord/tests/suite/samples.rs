//! A small trace in every format, written by hand after its definition.

use std::path::Path;

use blkrecord::batch::Batch;
use blkrecord::error::{RecordError, Warnings};
use blkrecord::facts::{Facts, Tally};
use blkrecord::io::Io;
use blkrecord::names::Names;
use blkrecord::readers::from_bytes;
use blkrecord::task_event::TaskEvent;

/// Everything that a reader gives.
#[derive(Debug)]
pub struct Contents {
    pub facts: Facts,
    pub names: Names,
    pub ios: Vec<Io>,
    pub tasks: Vec<TaskEvent>,
    pub tally: Tally,
    pub warnings: Warnings,
}

/// Reads a trace to its end.
pub fn read(bytes: impl Into<Vec<u8>>) -> Result<Contents, RecordError> {
    let mut reader = from_bytes(Path::new("trace"), bytes.into(), None)?;
    let mut batch = Batch::default();
    let (mut ios, mut tasks) = (Vec::new(), Vec::new());
    while reader.read(&mut batch)? {
        ios.append(&mut batch.ios);
        tasks.append(&mut batch.tasks);
    }
    Ok(Contents {
        facts: reader.facts().clone(),
        names: reader.names().clone(),
        ios,
        tasks,
        tally: reader.tally(),
        warnings: reader.warnings().clone(),
    })
}

pub const MSR: &str = "\
128166372003061629,hm,1,Read,383496192,32768,1331
128166372016382155,hm,1,Write,310378496,4096,2326
128166372016382255,hm,0,Read,512,1024,7
";

pub const SYSTOR: &str = "\
Timestamp,Response,IOType,LUN,Offset,Size
1456000000.000001,0.001234,W,0,3221225472,4096
1456000000.000500,,R,2,512,8192
";

pub const ALIBABA: &str = "\
419,W,8792731648,16384,1577808000000046
725,R,59110326272,360448,1577808000000056
";

pub const IOLOG_2: &str = "\
fio version 2 iolog
/tmp/f add
/tmp/f open
/tmp/f write 0 4096
/tmp/f wait 250
/tmp/f read 8192 4096
/tmp/f datasync 0 0
/tmp/f trim 4096 4096
/tmp/f close
";

pub const IOLOG_3: &str = "\
fio version 3 iolog
18 /dev/shm/t add
105 /dev/shm/t open
111 /dev/shm/t read 61440 4096
126 /dev/shm/t write 774144 8192
130 /dev/shm/t sync
145 /dev/shm/t close
";

pub const BLKREPLAY: &str = "\
Any licence, of any length.

#################################################################
start ; sector; length ; op ;  replay_delay=0 ; replay_duration=0
      0.000000000 ;     37766853 ;   64 ; W ; 0.0 ; 0.0
      0.449518165 ;     37766917 ;   14 ; R ; 0.001 ; 0.002
";

pub const BLKPARSE: &str = "\
  8,0    0        1     0.000000000   697  A   W 223490 + 8 <- (8,1) 223427
  8,0    0        2     0.000000500   697  Q   W 223490 + 8 [kj [our] nald]
  8,0    0        3     0.000001000   697  G   W 223490 + 8 [kj [our] nald]
  8,0    1        1     0.000001200   700  Q   W 223498 + 8 [dd]
  8,0    1        2     0.000001400   700  M   W 223498 + 8 [dd]
  8,0    0        4     0.000002000   697  P   N [kjournald]
  8,0    0        5     0.000002500   697  I   W 223490 + 16 [kjournald]
  8,0    0        6     0.000003000   697  U   N [kjournald] 1
  8,0    0        7     0.000003500    70  D   W 223490 + 16 [kworker/0:1H]
  8,0    0        8     0.000009000     0  C   W 223490 + 16 [0]
  8,0    0        9     0.000010000   697  Q  RS 64 + 256 [cat]
  8,0    0       10     0.000010100   697  X  RS 64 / 192 [cat]
  8,0    0       11     0.000010200   697  D  RS 64 + 128 [cat]
  8,0    0       12     0.000010300   697  D  RS 192 + 128 [cat]
  8,0    0       13     0.000020000     0  C  RS 192 + 128 [-5]
  8,0    0       14     0.000021000     0  C  RS 64 + 128 [0]
CPU0 (8,0):
 Reads Queued:           1,      128KiB\t Writes Queued:           2,        8KiB
";

/// `blktrace -a issue -a complete`, with commands that are passed through.
pub const BLKPARSE_ISSUES: &str = "\
  8,0    1        1     0.000000000   100  D   R 2048 + 8 [app]
  8,0    1        2     0.000100000   101  D   N 0 [udev]
  8,0    1        3     0.000150000   101  D   N 36 (12 00 00 00 24 00) [udev]
  8,0    1        4     0.000300000     0  C   R 2048 + 8 [0]
  8,0    1        5     0.001000000   100  D   R 4096 + 8 [app]
  8,0    1        6     0.001400000     0  C   R 4096 + 8 [0]
";

pub const BIOSNOOP: &str = "\
TIME(s)     COMM           PID    DISK      T SECTOR     BYTES  QUE(ms) LAT(ms)
0.000000    tar            1234   nvme0n1   R 2048       4096      0.01    0.25
0.000100    my [p] rog     77     sda       WS 8         8192      0.20    0.35
0.002000    ?              0      nvme0n1   W -1         0         0.00    1.00
";

pub const IOSNOOP: &str = "\
Tracing block I/O. Ctrl-C to end.
STARTs          ENDs            COMM         PID    TYPE DEV      BLOCK        BYTES     LATms
5982800.302061  5982800.302679  supervise    1809   W    202,1    17039600     4096       0.62
5982800.302423  5982800.302842  kworker/0:1  1809   WM   202,16   17039608     8192       0.42
";

pub const PERF: &str = "\
# cmdline : perf record -e block:* dd
              dd  1200 [001]    12.000001: block:block_bio_queue: 8,0 RS 2048 + 16 [dd]
              dd  1200 [001]    12.000002: block:block_getrq: 8,0 R 2048 + 16 [dd]
              dd  1200 [001]    12.000003:           block:block_rq_issue: 8,0 RS 8192 () 2048 + 16 none,0,0 [dd]
 my prog [x]  1201/1202 [000]    12.000004: block:block_rq_issue: 8,0 N 36 (12 00 00) 0 + 0 [my prog]
         swapper     0 [001]    12.000251: block:block_rq_complete: 8,0 RS () 2048 + 16 none,0,0 [0]
";

pub const SPC: &str = "\
0,20941264,8192,W,0.551706
1,3322560,4096,r,0.554041,0,x
";

pub const TENCENT: &str = "\
1538323200,12910952,128,0,1063
1538323201,6265984,8,1,1064
";

pub const THESIOS: &str = "\
filename,file_offset,application,c_time,io_zone,redundancy_type,op_type,service_class,from_flash_cache,cache_hit,\
request_io_size_bytes,disk_io_size_bytes,response_io_size_bytes,start_time,disk_time,simulated_disk_start_time,\
simulated_latency
aa,4096,app one,1,WARM,REPLICATED,READ,OTHER,0,0,1050624,1052672,1050624,1704067200.5,0.01,1704067200.5,0.0125
aa,0,app one,1,WARM,REPLICATED,READ,OTHER,0,1,4096,0,4096,1704067200.6,0.0,0.0,1e-05
bb,512,app two,1,COLD,ERASURE_CODED,WRITE,OTHER,0,-1,8192,0,0,1704067201.0,0.0,0.0,1e-05
";

/// One record of blktrace.
#[derive(Clone, Copy, Default)]
pub struct Record<'a> {
    pub time: u64,
    pub sector: u64,
    pub bytes: u32,
    pub action: u64,
    pub pid: u32,
    pub processor: u32,
    pub error: i16,
    pub payload: &'a [u8],
}

/// Categories of `linux/blktrace_api.h`, in their place in an action.
pub const READ: u64 = 1 << 16;
pub const WRITE: u64 = 1 << 17;
pub const FLUSH: u64 = 1 << 18;
pub const SYNC: u64 = 1 << 19;
pub const NOTIFY: u64 = 1 << 26;
pub const CGROUP: u64 = 1 << 8;

/// Records as a file of one processor.
pub fn blktrace(records: &[Record<'_>], big_endian: bool, wide: bool) -> Vec<u8> {
    let mut out = Vec::new();
    for (index, record) in records.iter().enumerate() {
        let mut put = |little: &[u8]| {
            if big_endian { out.extend(little.iter().rev()) } else { out.extend(little) }
        };
        put(&(0x6561_7400_u32 | if wide { 8 } else { 7 }).to_le_bytes());
        put(&(index as u32 + 1).to_le_bytes());
        put(&record.time.to_le_bytes());
        put(&record.sector.to_le_bytes());
        put(&record.bytes.to_le_bytes());
        if wide {
            put(&record.pid.to_le_bytes());
            put(&record.action.to_le_bytes());
        } else {
            put(&(record.action as u32).to_le_bytes());
            put(&record.pid.to_le_bytes());
        }
        put(&(8_u32 << 20).to_le_bytes());
        put(&record.processor.to_le_bytes());
        put(&record.error.to_le_bytes());
        put(&(record.payload.len() as u16).to_le_bytes());
        if wide {
            out.extend([0; 12]);
        }
        out.extend(record.payload);
    }
    out
}

/// Two writes of which the second is merged, and a flush.
pub fn blktrace_records() -> Vec<Record<'static>> {
    let base = Record { pid: 77, ..Record::default() };
    vec![
        Record { time: 900, action: NOTIFY, payload: b"postgres\0\0\0\0\0\0\0\0", ..base },
        Record { time: 1000, sector: 8, bytes: 4096, action: 0x1 | WRITE | SYNC, ..base },
        Record {
            time: 1100,
            sector: 16,
            bytes: 4096,
            action: 0x1 | WRITE | SYNC,
            processor: 3,
            ..base
        },
        Record { time: 1150, sector: 16, bytes: 4096, action: 0x2 | WRITE | SYNC, ..base },
        Record { time: 1200, action: 9, ..base },
        Record { time: 1300, sector: 8, bytes: 8192, action: 0xc | WRITE | SYNC, ..base },
        Record { time: 1400, sector: 8, bytes: 8192, action: 0x7 | WRITE | SYNC, ..base },
        Record { time: 1500, sector: 0, bytes: 0, action: 0x1 | WRITE | FLUSH, ..base },
        Record { time: 1900, sector: 8, bytes: 8192, action: 0x8 | WRITE | SYNC, pid: 0, ..base },
        Record { time: 2000, sector: 0, bytes: 0, action: 0x7 | READ | FLUSH, ..base },
        Record { time: 2100, sector: 0, bytes: 0, action: 0x8 | READ | FLUSH, ..base },
        Record { time: 2200, sector: 0, bytes: 0, action: 0x8 | WRITE | FLUSH, error: -5, ..base },
    ]
}

/// Every format's sample with the name of its reader.
/// Two records of vscsi tracing: a read and a write.
pub fn cloudphysics(version: u16) -> Vec<u8> {
    let mut bytes = Vec::new();
    for (number, command, length, lbn, at_us) in
        [(0_u32, 0x28_u16, 4096_u32, 2048_u64, 5_000_000_u64), (1, 0x8a, 65_536, 9, 5_000_150)]
    {
        let head = [command.to_le_bytes(), (version << 8).to_le_bytes()].concat();
        let numbers = [number, length, 1].map(u32::to_le_bytes).concat();
        let parts = if version == 1 { [numbers, head] } else { [head, numbers] };
        bytes.extend(parts.concat());
        bytes.extend([lbn, at_us].map(u64::to_le_bytes).concat());
        if version == 2 {
            bytes.extend(700_u64.to_le_bytes());
        }
    }
    bytes
}

pub fn all() -> Vec<(&'static str, Vec<u8>)> {
    let records = blktrace_records();
    vec![
        ("msr", MSR.into()),
        ("systor", SYSTOR.into()),
        ("alibaba", ALIBABA.into()),
        ("fio-iolog-2", IOLOG_2.into()),
        ("fio-iolog-3", IOLOG_3.into()),
        ("blkreplay", BLKREPLAY.into()),
        ("blkparse", BLKPARSE.into()),
        ("blkparse", BLKPARSE_ISSUES.into()),
        ("biosnoop", BIOSNOOP.into()),
        ("iosnoop", IOSNOOP.into()),
        ("perf", PERF.into()),
        ("spc", SPC.into()),
        ("tencent", TENCENT.into()),
        ("thesios", THESIOS.into()),
        ("cloudphysics", cloudphysics(1)),
        ("cloudphysics", cloudphysics(2)),
        ("blktrace", blktrace(&records, false, false)),
        ("blktrace", blktrace(&records, true, false)),
        ("blktrace", blktrace(&records, false, true)),
        ("blkrecord", crate::own_format::sample()),
    ]
}
