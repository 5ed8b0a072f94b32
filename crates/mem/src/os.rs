//! What the operating system says: pages, locked bytes, limits, memory left.

use std::fs;

use rustix::process::{Resource, getrlimit};

/// The size of a page, in bytes.
pub fn page_size() -> usize {
    rustix::param::page_size()
}

/// `bytes`, rounded up to whole pages. Saturates.
pub fn round_to_pages(bytes: usize) -> usize {
    let page = page_size();
    bytes.checked_next_multiple_of(page).unwrap_or(usize::MAX - (page - 1))
}

/// Bytes this process has locked, as the kernel counts them (`VmLck`).
pub fn locked_bytes() -> u64 {
    status_kib("VmLck:").unwrap_or(0) * 1024
}

/// The soft limit on locked bytes (`RLIMIT_MEMLOCK`); `None` if there is none,
/// or if this process may pass it (`CAP_IPC_LOCK`).
pub fn lock_limit() -> Option<u64> {
    if has_cap_ipc_lock() { None } else { getrlimit(Resource::Memlock).current }
}

/// May this process lock more than its limit?
fn has_cap_ipc_lock() -> bool {
    const CAP_IPC_LOCK: u32 = 14;
    proc_status("CapEff:")
        .and_then(|mask| u64::from_str_radix(&mask, 16).ok())
        .is_some_and(|mask| mask >> CAP_IPC_LOCK & 1 == 1)
}

fn status_kib(key: &str) -> Option<u64> {
    proc_status(key)?.split_whitespace().next()?.parse().ok()
}

fn proc_status(key: &str) -> Option<String> {
    field(&fs::read_to_string("/proc/self/status").ok()?, key)
}

/// The rest of the line that begins with `key`.
fn field(text: &str, key: &str) -> Option<String> {
    text.lines().find_map(|line| Some(line.strip_prefix(key)?.trim().to_owned()))
}

/// Bytes that this process can still have: what the machine has available, or
/// what is left of its cgroup's limit, whichever is less.
pub fn available_memory() -> u64 {
    let machine = fs::read_to_string("/proc/meminfo")
        .ok()
        .and_then(|text| field(&text, "MemAvailable:"))
        .and_then(|value| value.split_whitespace().next()?.parse::<u64>().ok())
        .map_or(u64::MAX, |kib| kib * 1024);
    machine.min(cgroup_left().unwrap_or(u64::MAX))
}

/// What is left of the memory limit of this process's cgroup, or of one above
/// it, if any has one. Version 2, then version 1.
fn cgroup_left() -> Option<u64> {
    let groups = fs::read_to_string("/proc/self/cgroup").ok()?;
    let own = |controller: &str| {
        groups.lines().find_map(|line| {
            let mut parts = line.splitn(3, ':');
            let (_, controllers, path) = (parts.next()?, parts.next()?, parts.next()?);
            let found = controllers.split(',').any(|c| c == controller);
            found.then(|| path.trim_start_matches('/').to_owned())
        })
    };
    let v2 = own("").and_then(|path| {
        least_left("/sys/fs/cgroup", &path, "memory.max", "memory.current")
    });
    let v1 = own("memory").and_then(|path| {
        least_left(
            "/sys/fs/cgroup/memory",
            &path,
            "memory.limit_in_bytes",
            "memory.usage_in_bytes",
        )
    });
    v2.into_iter().chain(v1).min()
}

/// The least that is left in the group at `path` and those above it.
fn least_left(root: &str, path: &str, limit: &str, usage: &str) -> Option<u64> {
    let root = std::path::Path::new(root);
    let number = |file: std::path::PathBuf| -> Option<u64> {
        fs::read_to_string(file).ok()?.trim().parse().ok()
    };
    let mut least = None;
    // Inside a container the path may be the host's; the root is then ours.
    for group in root.join(path).ancestors().take_while(|p| p.starts_with(root)) {
        // "max" does not parse: no limit here.
        if let Some(limit) = number(group.join(limit)) {
            let left = limit.saturating_sub(number(group.join(usage)).unwrap_or(0));
            least = Some(least.map_or(left, |l: u64| l.min(left)));
        }
    }
    least
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages() {
        let page = page_size();
        assert_eq!(round_to_pages(0), 0);
        assert_eq!(round_to_pages(1), page);
        assert_eq!(round_to_pages(page), page);
        assert_eq!(round_to_pages(page + 1), 2 * page);
        assert_eq!(round_to_pages(usize::MAX) % page, 0);
    }

    #[test]
    fn some_memory_is_available() {
        assert!(available_memory() > 1 << 20);
    }
}
