//! The device models, and the one list of them.
//!
//! To add one, write a file (or folder) beside this one that implements [`Device`], and add its
//! `mod` line and its line in `devices!` below.

mod copier;
pub mod device;
mod fixed;
mod flash;
mod hdd;
mod loop_device;
pub mod profile;
pub mod raid;
mod ram_disk;
mod virtual_disk;

pub use flash::{LEAST_BEYOND as FLASH_LEAST_BEYOND, RESERVE as FLASH_RESERVE};
pub use hdd::{Geometry, Hdd, Motion};
pub use profile::Profile;

use crate::block::request::Operation;
use crate::core::error::ProfileError;
use crate::core::params::{Param, Values, unknown};
use crate::devices::device::{Command, Device, Facts, Outbox, UnitTimes};

/// A kind of device.
#[derive(Debug, Clone, Copy)]
pub struct Kind {
    pub name: &'static str,
    pub summary: &'static str,
    pub parameters: &'static [Param],
}

macro_rules! devices {
    ($($variant:ident($module:ident, $name:literal),)*) => {
        /// Any device model.
        #[derive(Debug, Clone)]
        pub enum AnyDevice {
            $($variant(Box<$module::$variant>),)*
        }

        /// All kinds of devices.
        pub const KINDS: &[Kind] = &[
            $(Kind { name: $name, summary: $module::SUMMARY, parameters: $module::PARAMETERS },)*
        ];

        /// Builds a device of a kind from its parameters.
        pub fn build_kind(
            kind: &str,
            values: &Values,
            source: &str,
            seed: u64,
        ) -> Result<AnyDevice, ProfileError> {
            match kind {
                $($name => {
                    $module::$variant::new(values, source, seed).map(|d| AnyDevice::$variant(Box::new(d)))
                })*
                _ => Err(unknown_kind(kind, source)),
            }
        }

        macro_rules! each {
            ($self:ident, $d:ident => $call:expr) => {
                match $self { $(AnyDevice::$variant($d) => $call,)* }
            };
        }
    };
}

devices! {
    Fixed(fixed, "fixed"),
    LoopDevice(loop_device, "loop"),
    RamDisk(ram_disk, "ramdisk"),
    Hdd(hdd, "hdd"),
    Flash(flash, "flash"),
    VirtualDisk(virtual_disk, "virtual"),
}

/// Builds a device of a kind from a few parameters given as text.
pub fn build(
    kind: &str,
    parameters: &[(&str, &str)],
    source: &str,
    seed: u64,
) -> Result<AnyDevice, ProfileError> {
    let mut profile = Profile::of_kind(kind, source)?;
    for (name, text) in parameters {
        profile.set(name, text)?;
    }
    profile.build(seed)
}

/// The kind called `name`.
pub fn kind(name: &str, source: &str) -> Result<&'static Kind, ProfileError> {
    KINDS.iter().find(|k| k.name == name).ok_or_else(|| unknown_kind(name, source))
}

fn unknown_kind(name: &str, source: &str) -> ProfileError {
    ProfileError {
        message: format!("{name:?}: {}", unknown(name, KINDS.iter().map(|k| k.name))),
        source_name: source.to_owned(),
        field: Some("kind".to_owned()),
    }
}

impl Device for AnyDevice {
    #[inline]
    fn facts(&self) -> &Facts {
        each!(self, d => d.facts())
    }

    #[inline]
    fn submit(&mut self, command: Command, outbox: &mut Outbox) {
        each!(self, d => d.submit(command, outbox));
    }

    #[inline]
    fn completed(&mut self, id: u32, outbox: &mut Outbox) {
        each!(self, d => d.completed(id, outbox));
    }

    fn wake(&mut self, number: u32, outbox: &mut Outbox) {
        each!(self, d => d.wake(number, outbox));
    }

    #[inline]
    fn is_served_by_thread(&self) -> bool {
        each!(self, d => d.is_served_by_thread())
    }

    fn thread_work_ns(&self, operation: Operation, command_ns: u64, copying_ns: u64) -> u64 {
        each!(self, d => d.thread_work_ns(operation, command_ns, copying_ns))
    }

    fn worked(&mut self, work_ns: u64) {
        each!(self, d => d.worked(work_ns));
    }

    fn head_sector(&self) -> Option<u64> {
        each!(self, d => d.head_sector())
    }

    fn units(&self) -> Vec<UnitTimes> {
        each!(self, d => d.units())
    }

    fn busy_ns(&self) -> u64 {
        each!(self, d => d.busy_ns())
    }
}
