//! I/Os that were queued at one moment keep the order of the trace, in whatever order they completed.

use blkreplay::Options;
use blksim::workload::parse;

use crate::samples::{of_bytes, plans_of};

/// Two tasks that begin at one moment with two reads each; the last to be queued completes first.
const TRACE: &str = "\
  8,0    0  1  0.000000000  21  Q  R 800 + 8 [first]
  8,0    0  2  0.000000000  21  Q  R 400 + 8 [first]
  8,0    0  3  0.000000000  20  Q  R 600 + 8 [second]
  8,0    0  4  0.000000000  20  Q  R 200 + 8 [second]
  8,0    0  5  0.000001000  20  C  R 200 + 8 [0]
  8,0    0  6  0.000002000  20  C  R 600 + 8 [0]
  8,0    0  7  0.000003000  21  C  R 400 + 8 [0]
  8,0    0  8  0.000004000  21  C  R 800 + 8 [0]
";

#[test]
fn tasks_and_their_ios_begin_in_the_order_of_the_trace() {
    let workload = of_bytes(TRACE.as_bytes().to_vec(), &Options::new("test")).unwrap();
    let sections = parse(&workload.job_file, "test").unwrap().jobs;
    let names: Vec<&str> = sections.iter().map(|job| job.name.as_str()).collect();
    assert_eq!(names, ["first", "second"]);
    for plan in plans_of(&workload) {
        assert!(plan.ios[0].offset > plan.ios[1].offset);
    }
}
