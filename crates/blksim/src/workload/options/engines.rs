//! Engines: other names of those that are known, and the reasons against the others.

/// fio's other names of engines (`load_ioengine` in `ioengines.c`, fio 3.33).
const ALIASES: &[(&str, &str)] = &[("aio", "libaio"), ("linuxaio", "libaio")];

/// Engines that do not read and write a file or block device through the I/O scheduler.
const OTHERS: &[(&str, &str)] = &[
    ("rados", CLUSTER),
    ("rbd", CLUSTER),
    ("gfapi", CLUSTER),
    ("gfapi_async", CLUSTER),
    ("glusterfs", CLUSTER),
    ("libhdfs", CLUSTER),
    ("dfs", CLUSTER),
    ("ime_psync", CLUSTER),
    ("ime_psyncv", CLUSTER),
    ("ime_aio", CLUSTER),
    ("http", NETWORK),
    ("net", NETWORK),
    ("netsplice", NETWORK),
    ("rdma", NETWORK),
    ("librpma", NETWORK),
    ("librpma_apm_client", NETWORK),
    ("librpma_apm_server", NETWORK),
    ("librpma_gpspm_client", NETWORK),
    ("librpma_gpspm_server", NETWORK),
    ("nbd", NETWORK),
    ("nfs", NETWORK),
    ("libiscsi", NETWORK),
    ("null", NO_DISK),
    ("cpuio", NO_DISK),
    ("exec", "runs a command as root"),
    ("filecreate", NO_DATA),
    ("filestat", NO_DATA),
    ("filedelete", NO_DATA),
    ("dircreate", NO_DATA),
    ("dirstat", NO_DATA),
    ("dirdelete", NO_DATA),
    ("ftruncate", NO_DATA),
    ("e4defrag", "moves files outside the job's own"),
    ("sg", PASSES_BY),
    ("io_uring_cmd", PASSES_BY),
    ("xnvme", PASSES_BY),
    ("libblkio", PASSES_BY),
    ("libzbc", PASSES_BY),
    ("spdk", PASSES_BY),
    ("spdk_bdev", PASSES_BY),
    ("spdk_nvme", PASSES_BY),
    ("binject", PASSES_BY),
    ("dev-dax", MEMORY),
    ("libpmem", MEMORY),
    ("pmemblk", MEMORY),
    ("mtd", "drives flash without a block layer"),
    ("libcufile", "drives a graphics processor"),
    ("windowsaio", ELSEWHERE),
    ("solarisaio", ELSEWHERE),
    ("guasi", "is no longer part of fio"),
];

const CLUSTER: &str = "drives a cluster";
const NETWORK: &str = "drives a network";
const NO_DISK: &str = "does no I/O to a disk";
const NO_DATA: &str = "creates, measures or deletes files, but reads and writes no data";
const PASSES_BY: &str = "passes commands by the I/O scheduler";
const MEMORY: &str = "drives persistent memory, which has no I/O scheduler";
const ELSEWHERE: &str = "belongs to another operating system";

/// The name by which an engine is known.
pub fn canonical(name: &str) -> &str {
    ALIASES.iter().find(|(alias, _)| *alias == name).map_or(name, |(_, known)| known)
}

/// The reason why an engine cannot be used, and the remedy, if it is one of those.
pub fn reason_against(name: &str) -> Option<String> {
    let external = name.strip_prefix("external:").map(|path| {
        let file = path.rsplit('/').next().unwrap_or(path);
        if file.contains("spdk") { PASSES_BY } else { "is a library of its own, run as root" }
    });
    let known = OTHERS.iter().find(|(engine, _)| *engine == name).map(|(_, reason)| *reason);
    let reason = external.or(known)?;
    Some(format!(
        "the engine {name} {reason}; for the same I/O on a disk write ioengine=libaio or psync, \
         and leave out the options of {name}"
    ))
}
