//! What the operating system says: pages, locked bytes, limits, memory left.

use std::fs;
use std::path::Path;

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

/// May this process lock more than its limit? Only a capability of the first
/// user namespace counts: the root of a rootless container has the bit, but
/// the kernel holds it to the limit all the same.
fn has_cap_ipc_lock() -> bool {
    const CAP_IPC_LOCK: u32 = 14;
    // What the kernel calls the first namespace, always (PROC_USER_INIT_INO).
    const FIRST_NAMESPACE: &str = "user:[4026531837]";
    let has_bit = proc_status("CapEff:")
        .and_then(|mask| u64::from_str_radix(&mask, 16).ok())
        .is_some_and(|mask| mask >> CAP_IPC_LOCK & 1 == 1);
    has_bit && fs::read_link("/proc/self/ns/user").is_ok_and(|ns| ns == Path::new(FIRST_NAMESPACE))
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
    let v2 = own("").and_then(|path| least_left("/sys/fs/cgroup".as_ref(), &path, &V2));
    let v1 =
        own("memory").and_then(|path| least_left("/sys/fs/cgroup/memory".as_ref(), &path, &V1));
    v2.into_iter().chain(v1).min()
}

/// The files of a memory cgroup.
struct Files {
    /// Beyond the first the group is killed from, beyond the second it is
    /// slowed down.
    limits: &'static [&'static str],
    usage: &'static str,
    /// In `memory.stat`: pages of files, which the kernel drops when memory is
    /// wanted. A group that has read files is full of them, always.
    cache: [&'static str; 2],
}

const V2: Files = Files {
    limits: &["memory.max", "memory.high"],
    usage: "memory.current",
    cache: ["inactive_file", "active_file"],
};
const V1: Files = Files {
    limits: &["memory.limit_in_bytes"],
    usage: "memory.usage_in_bytes",
    cache: ["total_inactive_file", "total_active_file"],
};

/// The least that is left in the group at `path` and those above it.
fn least_left(root: &Path, path: &str, files: &Files) -> Option<u64> {
    let number =
        |file: &Path| -> Option<u64> { fs::read_to_string(file).ok()?.trim().parse().ok() };
    // Inside a container the path may be the host's; the root is then ours.
    let groups = root.join(path);
    let groups = groups.ancestors().take_while(|group| group.starts_with(root));
    let left = groups.filter_map(|group| {
        // "max" does not parse: no limit here.
        let limit = files.limits.iter().filter_map(|file| number(&group.join(file))).min()?;
        let stat = fs::read_to_string(group.join("memory.stat")).unwrap_or_default();
        let cache = files.cache.iter().filter_map(|key| {
            stat.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(' ')?.parse().ok())
        });
        let cache = cache.fold(0u64, u64::saturating_add);
        let used = number(&group.join(files.usage)).unwrap_or(0).saturating_sub(cache);
        Some(limit.saturating_sub(used))
    });
    left.min()
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

    /// A made-up tree of groups: the files of `a` and of `a/b`.
    fn groups(name: &str, a: &[(&str, &str)], b: &[(&str, &str)]) -> std::path::PathBuf {
        let root = std::env::temp_dir().join(format!("pinfeed-{name}-{}", std::process::id()));
        for (group, files) in [("a", a), ("a/b", b)] {
            fs::create_dir_all(root.join(group)).unwrap();
            for (file, text) in files {
                fs::write(root.join(group).join(file), text).unwrap();
            }
        }
        root
    }

    #[test]
    fn the_tightest_group_decides() {
        let root = groups(
            "v2",
            &[("memory.max", "1000\n"), ("memory.current", "900\n")],
            &[("memory.max", "max\n"), ("memory.high", "500\n"), ("memory.current", "450\n")],
        );
        // 100 are left in `a`, 50 below the `high` of `a/b`.
        assert_eq!(least_left(&root, "a/b", &V2), Some(50));
        assert_eq!(least_left(&root, "a", &V2), Some(100));
        assert_eq!(least_left(&root, "", &V2), None);
        // A path of the host's, which is not here: nothing is known.
        assert_eq!(least_left(&root, "elsewhere/c", &V2), None);
        fs::remove_dir_all(root).unwrap();
    }

    #[test]
    fn files_in_the_cache_are_no_loss() {
        let stat = "anon 100\ninactive_file 600\nactive_file 200\nfile 800\n";
        let root = groups(
            "cache",
            &[("memory.max", "1000"), ("memory.current", "950"), ("memory.stat", stat)],
            &[],
        );
        assert_eq!(least_left(&root, "a/b", &V2), Some(850));
        let root_v1 = groups(
            "cache-v1",
            &[
                ("memory.limit_in_bytes", "1000"),
                ("memory.usage_in_bytes", "950"),
                ("memory.stat", "inactive_file 1\ntotal_inactive_file 600\ntotal_active_file 0\n"),
            ],
            &[],
        );
        assert_eq!(least_left(&root_v1, "a", &V1), Some(650));
        fs::remove_dir_all(root).unwrap();
        fs::remove_dir_all(root_v1).unwrap();
    }
}
