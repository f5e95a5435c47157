//! The kernel's lockdown, which forbids even root to read the kernel's memory (`man 7 kernel_lockdown`).

const STATE: &str = "/sys/kernel/security/lockdown";

/// Whether the kernel is locked down for confidentiality: it then takes no BPF programs that read its structures, and
/// opens no files of tracefs. Locked down for integrity, it does both.
pub fn is_confidential() -> bool {
    std::fs::read_to_string(STATE).is_ok_and(|state| state.contains("[confidentiality]"))
}

/// The reason for people.
pub fn reason(what: &str) -> String {
    format!("{what}: the kernel is locked down for confidentiality ({STATE})")
}
