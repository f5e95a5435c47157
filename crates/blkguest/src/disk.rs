//! A disk of the guest's kernel, whatever serves it.

/// A disk of the guest kernel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Disk {
    /// Its name under `/sys/block` and `/dev`.
    pub name: String,
}

impl Disk {
    pub fn path(&self) -> String {
        format!("/dev/{}", self.name)
    }

    pub fn queue(&self, attribute: &str) -> String {
        format!("/sys/block/{}/queue/{attribute}", self.name)
    }
}
