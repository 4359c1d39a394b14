//! A full disk is a state, not an accident: writes get 503 with `Retry-After` and telnet waits, reads go on, nothing acknowledged is
//! lost, and it resumes by itself when there is room again.
//!
//! The disk is a small tmpfs, which takes root; elsewhere the test says so and proves nothing.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use crate::daemon::Daemon;
use crate::http::Client;

/// Size of the disk.
const DISK_MIB: usize = 48;
/// Small memtables, so that the engine writes files all along.
const CONFIG: &str = "[store]\nmemtable_bytes = 262144\nwal_segment_bytes = 1048576\nreserve_bytes = 8388608\n";
/// How soon after room is made a write must succeed.
const RESUME_WITHIN: Duration = Duration::from_mins(1);
const BATCH: u64 = 500;
const START_S: u64 = 1_700_000_000;

/// A mounted tmpfs, unmounted at the end.
struct Disk(PathBuf);

impl Disk {
    fn mount(at: &Path) -> Option<Self> {
        std::fs::create_dir_all(at).unwrap();
        let size = format!("size={DISK_MIB}m");
        let mounted = Command::new("mount").args(["-t", "tmpfs", "-o", &size, "tmpfs"]).arg(at).output();
        mounted.is_ok_and(|output| output.status.success()).then(|| Self(at.to_owned()))
    }

    /// What a neighbour does: writes until there is no byte left.
    fn fill(&self) {
        let ballast = vec![0x5a; 64 * 1024];
        let mut file = std::fs::File::create(self.0.join("ballast")).unwrap();
        while std::io::Write::write_all(&mut file, &ballast).is_ok() {}
        while std::io::Write::write_all(&mut file, &ballast[..1]).is_ok() {}
    }

    fn free(&self) {
        std::fs::remove_file(self.0.join("ballast")).unwrap();
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        drop(Command::new("umount").arg("-l").arg(&self.0).status());
    }
}

#[test]
fn a_full_disk_is_503_and_resumes() {
    let folder = tempfile::tempdir().unwrap();
    let Some(disk) = Disk::mount(&folder.path().join("disk")) else {
        assert!(std::env::var_os("CI").is_none(), "CI mounts a tmpfs");
        println!("skipped: a tmpfs cannot be mounted here; it takes root");
        return;
    };
    let data = disk.0.join("data");
    let config = folder.path().join("config.toml");
    std::fs::write(&config, CONFIG).unwrap();
    let start = || {
        let mut command = Daemon::command(&data, "embedded");
        command.arg("--config").arg(&config);
        Daemon::spawn(command)
    };
    let daemon = start();
    let mut client = daemon.client();
    let mut acknowledged = 0;
    for _ in 0..20 {
        assert_eq!(put(&mut client, acknowledged), 204);
        acknowledged += BATCH;
    }
    disk.fill();
    // What is laid by in advance may take a few more; then it must refuse, and say when to come again.
    let refused = (0..2000).find_map(|_| {
        let status = put(&mut client, acknowledged);
        if status == 204 {
            acknowledged += BATCH;
        }
        (status != 204).then_some(status)
    });
    assert_eq!(refused, Some(503));
    // Reads go on. The batch that was refused may be there or not: its outcome was not told.
    assert!((acknowledged..=acknowledged + BATCH).contains(&count(&mut client)));
    // A line is offered again, without a word.
    let mut telnet = daemon.connect();
    std::io::Write::write_all(&mut telnet, b"put waits 1700000000 7 series=s0\nexit\n").unwrap();
    let began = Instant::now();
    while daemon.metric(r#"basalt_points_failed_total{door="telnet",reason="storage"}"#) == 0 {
        assert!(began.elapsed() < RESUME_WITHIN, "it is not turned away");
    }
    disk.free();
    let mut said = String::new();
    std::io::Read::read_to_string(&mut telnet, &mut said).unwrap();
    assert_eq!(said, "");
    let waited = client.get("/api/query?start=1600000000&m=none:waits").unwrap();
    assert_eq!(waited.json()[0]["dps"]["1700000000"], 7, "{}", waited.text());
    let freed = Instant::now();
    while put(&mut client, acknowledged) != 204 {
        assert!(freed.elapsed() < RESUME_WITHIN, "it does not resume");
    }
    acknowledged += BATCH;
    assert_eq!(count(&mut client), acknowledged);
    daemon.kill();
    let daemon = start();
    assert_eq!(count(&mut daemon.client()), acknowledged, "nothing acknowledged is lost");
    assert!(daemon.terminate().success());
}

#[test]
fn a_disk_full_at_start_is_exit_75() {
    let folder = tempfile::tempdir().unwrap();
    let Some(disk) = Disk::mount(&folder.path().join("disk")) else {
        assert!(std::env::var_os("CI").is_none(), "CI mounts a tmpfs");
        println!("skipped: a tmpfs cannot be mounted here; it takes root");
        return;
    };
    let data = disk.0.join("data");
    std::fs::create_dir(&data).unwrap();
    disk.fill();
    let output = Daemon::command(&data, "embedded").output().unwrap();
    assert_eq!(output.status.code(), Some(75), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(output.stdout.is_empty());
}

/// Not full, but too small for a store as it is set.
#[test]
fn a_disk_that_is_too_small_is_told_with_what_a_store_needs() {
    let folder = tempfile::tempdir().unwrap();
    let Some(disk) = Disk::mount(&folder.path().join("disk")) else {
        assert!(std::env::var_os("CI").is_none(), "CI mounts a tmpfs");
        println!("skipped: a tmpfs cannot be mounted here; it takes root");
        return;
    };
    let output = Daemon::command(&disk.0.join("data"), "embedded").output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(75), "{said}");
    assert!(said.contains("until the reserve and the log fit, with up to 64 MiB"), "{said}");
    let last = said.lines().last().unwrap();
    assert!(last.starts_with("basalt: cannot open the tables: the disk is full: "), "{last}");
    assert!(last.contains(" MiB are free; ") && last.ends_with("with up to 64 MiB"), "{last}");
}

/// Sends the points from `from` on; a 503 must carry `Retry-After`.
fn put(client: &mut Client, from: u64) -> u16 {
    let points: Vec<String> = (from..from + BATCH)
        .map(|n| {
            let (series, at) = (n % 10, START_S + n / 10);
            format!(r#"{{"metric":"full","timestamp":{at},"value":{n},"tags":{{"series":"s{series}"}}}}"#)
        })
        .collect();
    let answer = client.post("/api/put", &format!("[{}]", points.join(","))).unwrap();
    if answer.status == 503 {
        assert!(answer.header("Retry-After").is_some(), "{answer:?}");
    }
    answer.status
}

/// How many points are stored, each counted once and held against its value.
fn count(client: &mut Client) -> u64 {
    let answer = client.get("/api/query?start=1600000000&m=none:full{series=*}").unwrap();
    assert_eq!(answer.status, 200, "{}", answer.text());
    let mut points = 0;
    for series in answer.json().as_array().unwrap() {
        let number: u64 = series["tags"]["series"].as_str().unwrap().trim_start_matches('s').parse().unwrap();
        for (at, value) in series["dps"].as_object().unwrap() {
            let n = (at.parse::<u64>().unwrap() - START_S) * 10 + number;
            assert_eq!(value.as_u64(), Some(n), "{at} of s{number}");
            points += 1;
        }
    }
    points
}
