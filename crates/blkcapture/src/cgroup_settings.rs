//! Settings of the I/O controller for the control groups that a recording saw.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Component, Path, PathBuf};

use blkrecord::facts::CgroupFacts;
use blkrecord::io::Io;
use blkrecord::names::{Names, UNKNOWN_NAME};
use rustc_hash::FxHashSet;

/// Files of a group that weigh or rank its I/O; a kernel has some of them.
const FILES: [&str; 13] = [
    "blkio.bfq.weight",
    "blkio.bfq.weight_device",
    "blkio.prio.class",
    "blkio.weight",
    "blkio.weight_device",
    "cgroup.controllers",
    "io.bfq.weight",
    "io.cost.model",
    "io.cost.qos",
    "io.latency",
    "io.max",
    "io.prio.class",
    "io.weight",
];
/// More groups than this are not examined: their files must not keep the recorder from its buffers.
const MOST_GROUPS: usize = 4096;

/// Reads each group's settings once, when its first I/O is seen: the group may be gone later.
#[derive(Debug)]
pub struct CgroupSettings {
    root: Option<PathBuf>,
    seen: FxHashSet<u32>,
    known: FxHashSet<String>,
    last: u32,
}

impl CgroupSettings {
    /// `root` is the mount point of the hierarchy with the I/O controller.
    pub fn new(root: Option<PathBuf>) -> Self {
        Self { root, seen: FxHashSet::default(), known: FxHashSet::default(), last: UNKNOWN_NAME }
    }

    /// The settings of the groups that appear for the first time, and of all groups above them, because
    /// weights count among siblings at every level.
    pub fn of(&mut self, ios: &[Io], names: &Names) -> Vec<CgroupFacts> {
        let mut found = Vec::new();
        for io in ios {
            // Neighbours are mostly of the same group.
            if io.cgroup == self.last {
                continue;
            }
            self.last = io.cgroup;
            if io.cgroup != UNKNOWN_NAME && self.seen.insert(io.cgroup) {
                self.add(names.text(io.cgroup), &mut found);
            }
        }
        found
    }

    fn add(&mut self, path: &str, found: &mut Vec<CgroupFacts>) {
        let Some(root) = &self.root else { return };
        let plain = Path::new(path)
            .components()
            .all(|part| matches!(part, Component::RootDir | Component::Normal(_)));
        // A group that was removed has a number instead of a path; one outside of this namespace begins
        // with `/..`.
        if !path.starts_with('/') || !plain {
            return;
        }
        for group in Path::new(path).ancestors() {
            let name = group.display().to_string();
            if self.known.len() >= MOST_GROUPS || !self.known.insert(name.clone()) {
                continue;
            }
            let folder = root.join(name.trim_start_matches('/'));
            if folder.is_dir() {
                found.push(CgroupFacts { path: name, settings: read(&folder) });
            }
        }
    }
}

fn read(folder: &Path) -> BTreeMap<String, String> {
    let text = |name: &str| fs::read_to_string(folder.join(name)).ok();
    let files = FILES.iter().filter_map(|name| Some(((*name).to_owned(), text(name)?)));
    files.map(|(name, text)| (name, text.trim().to_owned())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use blkrecord::io::{Moment, Operation};

    fn io(cgroup: u32) -> Io {
        Io { cgroup, ..Io::new(Moment::at(1), Operation::Read, 0, 4096) }
    }

    #[test]
    fn a_group_and_those_above_it_are_read_once() {
        let root = std::env::temp_dir().join(format!("blkcapture-settings-{}", std::process::id()));
        fs::create_dir_all(root.join("a/b")).unwrap();
        fs::write(root.join("io.cost.qos"), "8:0 enable=1\n").unwrap();
        fs::write(root.join("a/b/io.weight"), "default 100\n8:0 300\n").unwrap();
        fs::write(root.join("a/b/cgroup.procs"), "1\n").unwrap();
        let mut names = Names::default();
        let ios: Vec<Io> = ["/a/b", "/a/gone", "cgroup 77", "/../etc"]
            .map(|name| io(names.number_of(name)))
            .to_vec();
        let mut settings = CgroupSettings::new(Some(root.clone()));
        let found = settings.of(&ios, &names);
        let paths: Vec<&str> = found.iter().map(|group| group.path.as_str()).collect();
        assert_eq!(paths, ["/a/b", "/a", "/"]);
        assert_eq!(found[0].settings["io.weight"], "default 100\n8:0 300");
        assert_eq!(found[0].settings.len(), 1);
        assert_eq!(found[2].settings["io.cost.qos"], "8:0 enable=1");
        assert!(settings.of(&ios, &names).is_empty());
        fs::remove_dir_all(root).unwrap();
    }
}
