//! The array that a request asks for: made by btrfs from its own disks, or by md.

use blksim::core::error::{ErrorKind, SimulationError};
use blksim::devices::Profile;
use blksim::devices::raid::{RAID, RaidLevel};

use crate::disk::Disk;
use crate::failure::Failure;
use crate::md;
use crate::request::FilesystemKind;

/// Bytes that btrfs writes to one disk before it moves to the next (`BTRFS_STRIPE_LEN` of
/// `fs/btrfs/volumes.h`, Linux 6.1).
const BTRFS_STRIPE_BYTES: u64 = 64 << 10;

/// An array of disks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Array {
    pub level: RaidLevel,
    pub members: u32,
    pub chunk_bytes: u64,
    /// btrfs does the striping.
    by_btrfs: bool,
}

impl Array {
    /// The array of a profile; `None` for a single disk. Where btrfs does the striping, the profile gets
    /// its stripe length.
    pub fn of(
        profile: &mut Profile,
        filesystem: Option<FilesystemKind>,
    ) -> Result<Option<Self>, SimulationError> {
        let Some(level) = RaidLevel::of(&profile.raid) else { return Ok(None) };
        let members = profile.raid.get("members") as u32;
        let by_btrfs = filesystem == Some(FilesystemKind::Btrfs);
        if by_btrfs {
            let chunk = profile.raid.get("chunk");
            let default = RAID.iter().find(|param| param.name == "chunk").map_or(0, |p| p.default);
            if chunk != BTRFS_STRIPE_BYTES && chunk != default {
                let message = format!("btrfs's stripes are of 64 KiB; chunk = {chunk} cannot be");
                return Err(SimulationError::of(ErrorKind::OutOfRange, "chunk", message));
            }
            // Within the parameter's bounds.
            let _ = profile.raid.set("chunk", &BTRFS_STRIPE_BYTES.to_string());
            if level == RaidLevel::Mirrors && members > 4 {
                let message = format!("btrfs keeps four copies at most, not {members}");
                return Err(SimulationError::of(ErrorKind::OutOfRange, "members", message));
            }
        }
        let chunk_bytes = profile.raid.get("chunk");
        Ok(Some(Self { level, members, chunk_bytes, by_btrfs }))
    }

    /// Its name for mkfs.btrfs.
    pub fn btrfs_profile(&self) -> &'static str {
        match (self.level, self.members) {
            (RaidLevel::Stripes, _) => "raid0",
            (RaidLevel::Mirrors, 3) => "raid1c3",
            (RaidLevel::Mirrors, 4) => "raid1c4",
            (RaidLevel::Mirrors, _) => "raid1",
            (RaidLevel::StripedMirrors, _) => "raid10",
            (RaidLevel::Parity, _) => "raid5",
        }
    }

    /// Assembles one disk from the members; btrfs takes the members themselves, starting with the first.
    pub fn assemble(&self, members: &[Disk]) -> Result<Disk, Failure> {
        if self.by_btrfs {
            return Ok(members[0].clone());
        }
        md::assemble(self, members)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn array(
        settings: &[(&str, &str)],
        filesystem: Option<FilesystemKind>,
    ) -> Result<Option<Array>, SimulationError> {
        let mut profile = Profile::of_kind("fixed", "test").unwrap();
        for (name, text) in settings {
            profile.set(name, text).unwrap();
        }
        Array::of(&mut profile, filesystem)
    }

    #[test]
    fn btrfs_has_its_own_stripes() {
        let btrfs = Some(FilesystemKind::Btrfs);
        assert_eq!(array(&[], btrfs).unwrap(), None);
        let made = array(&[("raid", "10")], btrfs).unwrap().unwrap();
        assert_eq!((made.chunk_bytes, made.btrfs_profile()), (64 << 10, "raid10"));
        let made = array(&[("raid", "10")], None).unwrap().unwrap();
        assert_eq!((made.chunk_bytes, made.members), (512 << 10, 4));
        let error = array(&[("raid", "0"), ("chunk", "128k")], btrfs).unwrap_err();
        assert_eq!(error.field.as_deref(), Some("chunk"));
    }

    #[test]
    fn btrfs_mirrors_four_disks_at_most() {
        let btrfs = Some(FilesystemKind::Btrfs);
        let mirrors = |members| array(&[("raid", "1"), ("members", members)], btrfs);
        assert_eq!(mirrors("2").unwrap().unwrap().btrfs_profile(), "raid1");
        assert_eq!(mirrors("3").unwrap().unwrap().btrfs_profile(), "raid1c3");
        assert_eq!(mirrors("5").unwrap_err().field.as_deref(), Some("members"));
        assert!(array(&[("raid", "1"), ("members", "5")], None).is_ok());
    }
}
