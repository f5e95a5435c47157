//! A scheduler is one file and one line: a copy of the crate gets one more, and simulates with it.

use std::fs;
use std::path::Path;
use std::process::Command;

/// The newest request goes first, in a file of its own.
const LIFO: &str = r#"//! `lifo`: the newest request goes first.

use crate::block::queue_facts::QueueFacts;
use crate::block::request::RequestId;
use crate::core::params::Values;
use crate::elevator::scheduler::{Context, Family, Info, Scheduler};

#[derive(Debug, Clone, Default)]
pub struct Lifo {
    stack: Vec<RequestId>,
}

impl Scheduler for Lifo {
    const INFO: Info = Info {
        name: "lifo",
        kernel_versions: "none",
        summary: "last in, first out",
        family: Family::MultiQueue,
        bypass: false,
        disables_wbt: false,
        indexed: false,
        per_hctx: false,
        tunables: &[],
    };

    fn new(_tunables: &Values, _queue: QueueFacts) -> Self {
        Self::default()
    }

    fn insert(&mut self, _cx: &mut Context, id: RequestId) {
        self.stack.push(id);
    }

    fn dispatch(&mut self, _cx: &mut Context) -> Option<RequestId> {
        self.stack.pop()
    }
}
"#;

/// Its line in the list.
const LINE: &str = "    mod lifo: Lifo(lifo::Lifo);\n";

/// A program that knows the simulator by its public face only.
const PROBE: &str = r#"use blksim::core::record::Direction;
use blksim::devices::Profile;
use blksim::engine::Limits;
use blksim::simulate::{Setup, simulate};
use blksim::workload::parse;

fn main() {
    let setup = Setup {
        profile: Profile::of_kind("fixed", "fixed").unwrap(),
        scheduler: "lifo".to_owned(),
        tunables: Vec::new(),
        queue: Vec::new(),
        machine: Vec::new(),
        cgroups: Vec::new(),
        jobs: parse("[a]\nrw=randread\ndirect=1\nioengine=libaio\niodepth=64\nnumber_ios=500\nsize=64m\n", "probe").unwrap(),
        runtime_ns: None,
        seed: 1,
        arrangement: None,
        processors: None,
        limits: Limits::default(),
    };
    let outcome = simulate(&setup).unwrap();
    println!("{} {}", outcome.scheduler.name, outcome.jobs[0].direction(Direction::Read).ios());
}
"#;

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let (from, to) = (entry.path(), to.join(entry.file_name()));
        if from.is_dir() {
            copy(&from, &to);
        } else {
            fs::copy(&from, &to).unwrap();
        }
    }
}

#[test]
fn a_scheduler_is_one_file_and_one_line() {
    let crate_root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let workspace = crate_root.join("../..");
    let copied = Path::new(env!("CARGO_TARGET_TMPDIR")).join("one-more-scheduler");
    let blksim = copied.join("crates/blksim");
    // What an earlier run built stays, what it copied does not.
    let _ = fs::remove_dir_all(copied.join("crates"));
    copy(&crate_root.join("src"), &blksim.join("src"));
    fs::create_dir_all(blksim.join("benches")).unwrap();
    fs::write(blksim.join("benches/engine.rs"), "").unwrap();
    fs::copy(crate_root.join("Cargo.toml"), blksim.join("Cargo.toml")).unwrap();
    fs::copy(workspace.join("Cargo.lock"), copied.join("Cargo.lock")).unwrap();
    let manifest = fs::read_to_string(workspace.join("Cargo.toml")).unwrap();
    let members = manifest.lines().find(|line| line.starts_with("members")).unwrap();
    let manifest = manifest.replace(members, r#"members = ["crates/blksim", "crates/probe"]"#);
    fs::write(copied.join("Cargo.toml"), manifest).unwrap();
    let probe = copied.join("crates/probe");
    fs::create_dir_all(probe.join("src")).unwrap();
    fs::write(
        probe.join("Cargo.toml"),
        "[package]\nname = \"probe\"\nversion = \"0.1.0\"\nedition = \"2024\"\n\
         [dependencies]\nblksim.workspace = true\n",
    )
    .unwrap();
    fs::write(probe.join("src/main.rs"), PROBE).unwrap();

    fs::write(blksim.join("src/elevator/lifo.rs"), LIFO).unwrap();
    let list = blksim.join("src/elevator/mod.rs");
    let text = fs::read_to_string(&list).unwrap();
    let last = text.find("    mod kyber:").expect("the list has a line of kyber");
    fs::write(&list, format!("{}{LINE}{}", &text[..last], &text[last..])).unwrap();

    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned());
    let output = Command::new(&cargo)
        .args(["run", "--offline", "--quiet", "--package", "probe"])
        .current_dir(&copied)
        .env("CARGO_TARGET_DIR", copied.join("target"))
        .env_remove("RUSTFLAGS")
        .output();
    let output = match output {
        Ok(output) => output,
        Err(error) => {
            println!("skipped: {cargo} cannot be run ({error})");
            return;
        }
    };
    let errors = String::from_utf8_lossy(&output.stderr);
    if !output.status.success() && errors.contains("--offline") {
        println!("skipped: a package is not at hand without a network: {errors}");
        return;
    }
    assert!(output.status.success(), "{errors}");
    assert_eq!(String::from_utf8_lossy(&output.stdout), "lifo 500\n");
}
