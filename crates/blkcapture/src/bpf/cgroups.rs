//! Paths of control groups by the numbers that the kernel gives them, which are the inode numbers of their
//! folders.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use blkrecord::names::{Names, UNKNOWN_NAME};
use rustc_hash::FxHashMap;

use crate::clock;

/// A group that is not found is looked for again after this time at the earliest.
const SCAN_INTERVAL_NS: u64 = 200_000_000;

/// The groups of the hierarchy with the I/O controller.
#[derive(Debug)]
pub struct CgroupPaths {
    root: Option<PathBuf>,
    paths: FxHashMap<u64, String>,
    numbers: FxHashMap<u64, u32>,
    scanned_ns: u64,
}

impl CgroupPaths {
    /// `root` is the hierarchy's mount point.
    pub fn new(root: Option<PathBuf>) -> Self {
        let mut paths = Self {
            root,
            paths: FxHashMap::default(),
            numbers: FxHashMap::default(),
            scanned_ns: 0,
        };
        paths.scan();
        paths
    }

    /// The group's path in the record's names; `cgroup NUMBER` if it was removed before it was seen.
    #[inline]
    pub fn name_of(&mut self, id: u64, names: &mut Names) -> u32 {
        match self.numbers.get(&id) {
            Some(number) => *number,
            None => self.look_up(id, names),
        }
    }

    #[cold]
    fn look_up(&mut self, id: u64, names: &mut Names) -> u32 {
        if id == 0 {
            return UNKNOWN_NAME;
        }
        if !self.paths.contains_key(&id)
            && clock::monotonic_ns() - self.scanned_ns > SCAN_INTERVAL_NS
        {
            self.scan();
        }
        let Some(path) = self.paths.get(&id) else {
            return names.number_of(&format!("cgroup {id}"));
        };
        let number = names.number_of(path);
        self.numbers.insert(id, number);
        number
    }

    fn scan(&mut self) {
        self.scanned_ns = clock::monotonic_ns();
        let Some(root) = &self.root else { return };
        let mut waiting = vec![root.clone()];
        while let Some(folder) = waiting.pop() {
            let Ok(metadata) = fs::metadata(&folder) else { continue };
            self.paths.insert(metadata.ino(), below(root, &folder));
            let entries = fs::read_dir(&folder).into_iter().flatten().flatten();
            let folders = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
            waiting.extend(folders.map(|entry| entry.path()));
        }
    }
}

/// The path within the hierarchy, as `/proc/PID/cgroup` has it.
fn below(root: &Path, folder: &Path) -> String {
    let rest = folder.strip_prefix(root).unwrap_or(folder);
    format!("/{}", rest.display())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_group_is_found_by_its_inode() {
        let root = std::env::temp_dir().join(format!("blkcapture-cgroups-{}", std::process::id()));
        fs::create_dir_all(root.join("a/b")).unwrap();
        let id = |path: &str| fs::metadata(root.join(path)).unwrap().ino();
        let mut paths = CgroupPaths::new(Some(root.clone()));
        let mut names = Names::default();
        let inner = paths.name_of(id("a/b"), &mut names);
        let top = paths.name_of(id(""), &mut names);
        assert_eq!((names.text(inner), names.text(top)), ("/a/b", "/"));
        let gone = paths.name_of(u64::MAX, &mut names);
        assert_eq!(names.text(gone), "cgroup 18446744073709551615");
        fs::remove_dir_all(root).unwrap();
    }
}
