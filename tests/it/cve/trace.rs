//! A daemon that is watched: by `strace` where it is installed, else by what `/proc` tells.

use std::collections::BTreeSet;
use std::ops::Deref;
use std::path::PathBuf;
use std::process::Command;

use crate::daemon::Daemon;

/// A watched daemon with its tables in memory, so that it has no file of its own to open.
pub(super) struct Traced {
    daemon: Daemon,
    /// What `strace` writes; none without it.
    log: Option<PathBuf>,
    _folder: tempfile::TempDir,
}

/// What had been seen at a moment.
pub(super) struct Seen {
    log_bytes: usize,
    files: BTreeSet<String>,
}

impl Deref for Traced {
    type Target = Daemon;

    fn deref(&self) -> &Daemon {
        &self.daemon
    }
}

impl Traced {
    pub(super) fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        // Without a codec nothing reads the bodies of histograms.
        let codecs = ("BASALT_SCHEMA__HISTOGRAMS", r#"{"net.opentsdb.core.SimpleHistogramDecoder": 42}"#);
        let mut plain = Daemon::command(&folder.path().join("data"), "memory");
        plain.env(codecs.0, codecs.1);
        let log = folder.path().join("strace");
        let mut command = Command::new("strace");
        command.env(codecs.0, codecs.1);
        // `-D`: the daemon is our child, the tracer a grandchild, which ends with it.
        command.args([
            "-D",
            "-f",
            "--seccomp-bpf",
            "-qq",
            "-e",
            "trace=execve,execveat,fork,vfork,openat,open,creat,connect",
        ]);
        command.arg("-o").arg(&log).arg(plain.get_program()).args(plain.get_args());
        let can_trace =
            Command::new("strace").args(["-D", "-f", "-qq", "true"]).output().is_ok_and(|out| out.status.success());
        if can_trace {
            return Self { daemon: Daemon::spawn(command), log: Some(log), _folder: folder };
        }
        println!("strace is not there: children and open files of /proc are looked at instead");
        Self { daemon: Daemon::spawn(plain), log: None, _folder: folder }
    }

    pub(super) fn how(&self) -> &'static str {
        if self.log.is_some() { "strace" } else { "/proc" }
    }

    fn log(&self) -> String {
        self.log.as_ref().map_or_else(String::new, |log| std::fs::read_to_string(log).unwrap())
    }

    pub(super) fn seen(&self) -> Seen {
        Seen { log_bytes: self.log().len(), files: self.files() }
    }

    /// Open files that are no sockets and no pipes.
    fn files(&self) -> BTreeSet<String> {
        let entries = std::fs::read_dir(format!("/proc/{}/fd", self.pid())).unwrap();
        let targets = entries.filter_map(|entry| std::fs::read_link(entry.ok()?.path()).ok());
        targets.map(|target| target.display().to_string()).filter(|target| target.starts_with('/')).collect()
    }

    /// No process has been started, no file opened and no connection made since.
    pub(super) fn check(&self, before: &Seen) {
        for task in std::fs::read_dir(format!("/proc/{}/task", self.pid())).unwrap() {
            let children = std::fs::read_to_string(task.unwrap().path().join("children")).unwrap_or_default();
            assert_eq!(children, "", "a child process");
        }
        assert_eq!(self.files(), before.files, "open files");
        let log = self.log();
        if self.log.is_some() {
            assert!(log.contains("execve("), "the start of the daemon itself is not traced: {log}");
        }
        let since = log.get(before.log_bytes..).unwrap();
        // The kernel's figures about the process itself and the machine are told by some endpoints.
        let plain = |line: &&str| {
            line.contains("\"/proc/")
                || line.contains("\"/sys/")
                || line.contains("resumed>")
                || line.contains(" --- SIG")
        };
        let calls: Vec<&str> = since.lines().filter(|line| !plain(line)).collect();
        assert!(calls.is_empty(), "{} calls, the first: {:?}", calls.len(), calls.first());
    }
}
