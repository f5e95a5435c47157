//! Reads an archive of files in the format of an initial RAM file system (cpio "newc",
//! `Documentation/driver-api/early-userspace/buffer-format.rst`, Linux 6.1).
//!
//! Files are written in the archive's order, so that they lie on the disk in that order.

use std::fs::{self, File};
use std::io::{self, BufReader, BufWriter, Read, Write};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Component, Path, PathBuf};
use std::time::{Duration, SystemTime};

use crate::failure::Failure;

const MAGIC: &[u8] = b"070701";
const HEADER_BYTES: usize = 110;
const END: &str = "TRAILER!!!";
/// Kinds of files (`S_IFMT` and its values).
const KIND: u32 = 0o170_000;
const FOLDER: u32 = 0o040_000;
const REGULAR: u32 = 0o100_000;
const LINK: u32 = 0o120_000;

/// One entry's header.
#[derive(Debug, PartialEq, Eq)]
struct Header {
    mode: u32,
    modified_s: u64,
    bytes: u64,
    name_bytes: usize,
}

impl Header {
    fn parse(bytes: &[u8; HEADER_BYTES]) -> io::Result<Self> {
        let field = |index: usize| {
            let start = MAGIC.len() + 8 * index;
            std::str::from_utf8(&bytes[start..start + 8])
                .ok()
                .and_then(|text| u32::from_str_radix(text, 16).ok())
                .ok_or_else(|| wrong("a header is not as expected"))
        };
        if &bytes[..MAGIC.len()] != MAGIC {
            return Err(wrong("a header does not begin with 070701"));
        }
        Ok(Self {
            mode: field(1)?,
            modified_s: u64::from(field(5)?),
            bytes: u64::from(field(6)?),
            name_bytes: field(11)? as usize,
        })
    }
}

/// Unpacks the archive at `source` into the new folder `root`.
pub fn unpack(source: &str, root: &str) -> Result<(), Failure> {
    let failed = |error: io::Error| Failure::Io {
        message: format!("unpacking the command's files into {root}: {error}"),
    };
    let file = File::open(source).map_err(failed)?;
    fs::create_dir(root).map_err(failed)?;
    Unpacking { reader: BufReader::with_capacity(1 << 20, file), folders: Vec::new() }
        .run(Path::new(root))
        .map_err(failed)
}

struct Unpacking<R> {
    reader: R,
    /// Folders and their times, which the files in them would change.
    folders: Vec<(PathBuf, u64)>,
}

impl<R: Read> Unpacking<R> {
    fn run(mut self, root: &Path) -> io::Result<()> {
        loop {
            let mut bytes = [0; HEADER_BYTES];
            self.reader.read_exact(&mut bytes)?;
            let header = Header::parse(&bytes)?;
            let mut name = vec![0; header.name_bytes];
            self.reader.read_exact(&mut name)?;
            self.skip(padding(HEADER_BYTES as u64 + header.name_bytes as u64))?;
            let name = String::from_utf8(name).map_err(|_| wrong("a name is not UTF-8"))?;
            let name = name.trim_end_matches('\0');
            if name == END {
                break;
            }
            let path = root.join(relative(name)?);
            self.create(&path, &header)?;
            self.skip(padding(header.bytes))?;
        }
        for (path, modified_s) in self.folders.iter().rev() {
            set_time(path, *modified_s)?;
        }
        Ok(())
    }

    fn create(&mut self, path: &Path, header: &Header) -> io::Result<()> {
        let permissions = fs::Permissions::from_mode(header.mode & 0o7777);
        match header.mode & KIND {
            FOLDER => {
                fs::create_dir(path)?;
                fs::set_permissions(path, permissions)?;
                self.folders.push((path.to_owned(), header.modified_s));
                Ok(())
            }
            REGULAR => {
                let mut file = BufWriter::with_capacity(1 << 20, File::create_new(path)?);
                let copied = io::copy(&mut self.reader.by_ref().take(header.bytes), &mut file)?;
                if copied < header.bytes {
                    return Err(io::ErrorKind::UnexpectedEof.into());
                }
                file.flush()?;
                fs::set_permissions(path, permissions)?;
                set_time(path, header.modified_s)
            }
            LINK => {
                let mut target = vec![0; header.bytes as usize];
                self.reader.read_exact(&mut target)?;
                let target = String::from_utf8(target).map_err(|_| wrong("a link is not UTF-8"))?;
                symlink(target, path)
            }
            _ => Err(wrong("an entry is neither file, folder nor link")),
        }
    }

    fn skip(&mut self, bytes: u64) -> io::Result<()> {
        io::copy(&mut self.reader.by_ref().take(bytes), &mut io::sink()).map(|_| ())
    }
}

/// Bytes up to the next multiple of 4.
fn padding(bytes: u64) -> u64 {
    bytes.next_multiple_of(4) - bytes
}

/// A name below the root.
fn relative(name: &str) -> io::Result<&Path> {
    let path = Path::new(name);
    if path.components().all(|part| matches!(part, Component::Normal(_))) && !name.is_empty() {
        return Ok(path);
    }
    Err(wrong("a name leads out of the root"))
}

fn set_time(path: &Path, modified_s: u64) -> io::Result<()> {
    let moment = SystemTime::UNIX_EPOCH + Duration::from_secs(modified_s);
    File::open(path)?.set_modified(moment)
}

fn wrong(message: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(name: &str, mode: u32, data: &[u8]) -> Vec<u8> {
        let fields = [1, mode, 0, 0, 1, 7, data.len() as u32, 0, 0, 0, 0, name.len() as u32 + 1, 0];
        let mut bytes = MAGIC.to_vec();
        for field in fields {
            bytes.extend(format!("{field:08x}").into_bytes());
        }
        bytes.extend(name.as_bytes());
        bytes.push(0);
        bytes.resize(bytes.len().next_multiple_of(4), 0);
        bytes.extend(data);
        bytes.resize(bytes.len().next_multiple_of(4), 0);
        bytes
    }

    fn unpacked(entries: &[Vec<u8>]) -> (PathBuf, io::Result<()>) {
        use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Relaxed);
        let root =
            std::env::temp_dir().join(format!("blkguest-cpio-{}-{number}", std::process::id()));
        fs::create_dir(&root).unwrap();
        let bytes = [entries.concat(), entry(END, 0, b"")].concat();
        let outcome = Unpacking { reader: &bytes[..], folders: Vec::new() }.run(&root);
        (root, outcome)
    }

    #[test]
    fn files_folders_and_links_are_made() {
        let (root, outcome) = unpacked(&[
            entry("bin", FOLDER | 0o755, b""),
            entry("bin/program", REGULAR | 0o755, b"abcde"),
            entry("bin/name", LINK | 0o777, b"program"),
        ]);
        outcome.unwrap();
        let facts = fs::metadata(root.join("bin/name")).unwrap();
        assert_eq!(fs::read(root.join("bin/name")).unwrap(), b"abcde");
        assert_eq!(facts.permissions().mode() & 0o7777, 0o755);
        let moment = SystemTime::UNIX_EPOCH + Duration::from_secs(7);
        assert_eq!(facts.modified().unwrap(), moment);
        assert_eq!(fs::metadata(root.join("bin")).unwrap().modified().unwrap(), moment);
        fs::remove_dir_all(root).unwrap();
    }

    #[test]
    fn names_outside_and_broken_archives_are_refused() {
        for name in ["../out", "/out", "a/../../out", ""] {
            let (root, outcome) = unpacked(&[entry(name, REGULAR | 0o644, b"")]);
            assert!(outcome.unwrap_err().to_string().contains("leads out"), "{name}");
            fs::remove_dir_all(root).unwrap();
        }
        let (root, outcome) = unpacked(&[b"0707".to_vec()]);
        assert!(outcome.is_err());
        fs::remove_dir_all(root).unwrap();
        let whole = entry("file", REGULAR | 0o644, &[1; 100]);
        let cut = Unpacking { reader: &whole[..whole.len() - 50], folders: Vec::new() };
        let root = std::env::temp_dir().join(format!("blkguest-cut-{}", std::process::id()));
        fs::create_dir(&root).unwrap();
        assert_eq!(cut.run(&root).unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
        fs::remove_dir_all(root).unwrap();
    }
}
