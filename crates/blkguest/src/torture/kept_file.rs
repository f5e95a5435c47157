//! A file of sysfs or debugfs that is read again and again: opened once, because in a guest each system call is two
//! switches between processes of the host.

use std::cell::RefCell;
use std::fs::File;
use std::os::unix::fs::FileExt;

/// More than any file that a torture reads has of interest.
const BYTES: usize = 4096;

/// The file, which may come and go.
#[derive(Debug)]
pub struct KeptFile {
    path: String,
    file: RefCell<Option<File>>,
}

impl KeptFile {
    pub fn of(path: String) -> Self {
        Self { path, file: RefCell::new(None) }
    }

    /// Its first 4 KiB as they are now; empty if it cannot be read.
    pub fn text(&self) -> String {
        self.read().unwrap_or_default()
    }

    /// The same; `None` if it cannot be read.
    pub fn read(&self) -> Option<String> {
        let mut memory = [0; BYTES];
        let mut file = self.file.borrow_mut();
        let kept = file.as_ref().and_then(|file| file.read_at(&mut memory, 0).ok());
        // One that went may be back.
        let bytes = kept.or_else(|| {
            *file = File::open(&self.path).ok();
            file.as_ref().and_then(|file| file.read_at(&mut memory, 0).ok())
        })?;
        Some(String::from_utf8_lossy(&memory[..bytes]).into_owned())
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_kept_file_shows_what_it_holds_now() {
        let path = std::env::temp_dir().join(format!("blkguest-kept-{}", std::process::id()));
        let kept = KeptFile::of(path.display().to_string());
        assert_eq!((kept.read(), kept.text()), (None, String::new()));
        fs::write(&path, "busy=3\n").unwrap();
        assert_eq!(kept.text(), "busy=3\n");
        fs::write(&path, "busy=12\n").unwrap();
        assert_eq!(kept.text(), "busy=12\n");
        fs::remove_file(&path).unwrap();
    }
}
