//! What the operating system says of this process: files of `/proc`, each read when it is asked for.

use std::fs;

use sysinfo::{ProcessRefreshKind, ProcessesToUpdate, System, get_current_pid};

/// Clock ticks of a second in `/proc`, on every machine that we run on (`USER_HZ`).
const TICKS_PER_SECOND: f64 = 100.0;

/// `/proc/self/status` as it was once.
#[derive(Debug)]
pub(crate) struct Status(String);

impl Status {
    pub(crate) fn read() -> Self {
        Self(fs::read_to_string("/proc/self/status").unwrap_or_default())
    }

    /// A line that is in KiB, in bytes; 0 if it is not there.
    pub(crate) fn bytes(&self, name: &str) -> u64 {
        bytes(&self.0, name)
    }
}

/// A thread of this process.
#[derive(Debug)]
pub(crate) struct Thread {
    pub(crate) id: u64,
    pub(crate) name: String,
    pub(crate) state: ThreadState,
}

/// What a thread does, in Java's words. The system does not tell which waits end by a clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ThreadState {
    Runnable,
    /// In the system, which does not let it be woken.
    Blocked,
    Waiting,
    Terminated,
}

impl Thread {
    /// All there are; those that end meanwhile are left out.
    pub(crate) fn all() -> Vec<Self> {
        let tasks = fs::read_dir("/proc/self/task").into_iter().flatten().flatten();
        let threads = tasks.filter_map(|task| {
            let id = task.file_name().to_str()?.parse().ok()?;
            Self::of_stat(id, &fs::read_to_string(task.path().join("stat")).ok()?)
        });
        threads.collect()
    }

    fn of_stat(id: u64, stat: &str) -> Option<Self> {
        let (before, after) = stat.rsplit_once(')')?;
        let name = before.split_once('(')?.1.to_owned();
        let state = match after.trim_start().chars().next()? {
            'R' => ThreadState::Runnable,
            'D' => ThreadState::Blocked,
            'Z' | 'X' => ThreadState::Terminated,
            _ => ThreadState::Waiting,
        };
        Some(Self { id, name, state })
    }
}

impl ThreadState {
    /// As Java has it.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Runnable => "RUNNABLE",
            Self::Blocked => "BLOCKED",
            Self::Waiting => "WAITING",
            Self::Terminated => "TERMINATED",
        }
    }
}

/// Bytes that the machine could still give.
pub(crate) fn available_bytes() -> u64 {
    bytes(&fs::read_to_string("/proc/meminfo").unwrap_or_default(), "MemAvailable")
}

/// Bytes of memory that this process may use: what the machine has, or what a control group allows that the process is in or that is
/// above it, whichever is least. `None` where nobody tells.
pub(crate) fn memory_bytes_max() -> Option<u64> {
    let machine = bytes(&fs::read_to_string("/proc/meminfo").unwrap_or_default(), "MemTotal");
    [Some(machine), group_bytes()].into_iter().flatten().filter(|bytes| *bytes > 0).min()
}

/// The least limit among the control groups of this process, of both versions.
fn group_bytes() -> Option<u64> {
    let id = get_current_pid().ok()?;
    let mut system = System::new().ok()?;
    let kind = ProcessRefreshKind::nothing().without_tasks();
    system.refresh_processes_specifics(ProcessesToUpdate::Some(&[id]), false, kind);
    Some(system.process(id)?.cgroup_limits()?.total_memory)
}

/// Seconds that processors worked for this process, for itself and in the kernel.
pub(crate) fn cpu_seconds() -> f64 {
    cpu_of(&fs::read_to_string("/proc/self/stat").unwrap_or_default()).unwrap_or_default()
}

fn bytes(text: &str, name: &str) -> u64 {
    let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok()).unwrap_or(0) << 10
}

/// The 14th and 15th words; the second, a name, may have spaces and brackets in it.
fn cpu_of(stat: &str) -> Option<f64> {
    let (_, after) = stat.rsplit_once(')')?;
    let mut words = after.split_whitespace().skip(11);
    let mut ticks = || words.next()?.parse::<u32>().ok();
    Some((f64::from(ticks()?) + f64::from(ticks()?)) / TICKS_PER_SECOND)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_in_kib_and_words_behind_a_name_are_read() {
        let status = Status("Name:\tbasalt\nVmRSS:\t    1024 kB\nVmData: 2 kB\n".to_owned());
        assert_eq!([status.bytes("VmRSS"), status.bytes("VmData"), status.bytes("Vm")], [1 << 20, 2 << 10, 0]);
        let stat = "7 (a) b) S 1 7 7 0 -1 4194560 100 0 0 0 250 50 0 0 20 0 4 0 1 1 1";
        assert_eq!(cpu_of(stat).map(|seconds| (seconds * 10.0).round()), Some(30.0));
        assert!(cpu_of("").is_none());
        let thread = Thread::of_stat(7, stat).unwrap();
        assert_eq!((thread.id, &*thread.name, thread.state), (7, "a) b", ThreadState::Waiting));
        assert!(Thread::all().iter().any(|thread| thread.state.name() == "RUNNABLE"));
        assert!(Status::read().bytes("VmRSS") > 0 && available_bytes() > 0);
        assert!(memory_bytes_max() >= Some(Status::read().bytes("VmRSS")), "as much as it uses");
    }
}
