//! Real collectors, unmodified, push this host's metrics; a query returns what they sent.
//!
//! `tests/clients/install` gets them. One that is not there skips with a line, unless `CI` is set. `BASALT_CLIENT_SECONDS` is how long
//! each pushes.

mod exporters;
mod libraries;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use crate::daemon::Daemon;

/// How long each pushes in the ordinary gate; the lab gives them more than a minute.
const SECONDS_DEFAULT: u64 = 8;
/// How long one may take to start, and what it wrote to be taken in.
const PATIENCE: Duration = Duration::from_mins(1);

/// What a client sent: metric → time in seconds → value.
type Sent = BTreeMap<String, BTreeMap<u64, f64>>;

#[test]
fn telegraf_by_telnet() {
    let Some(telegraf) = found(&built("telegraf")) else { return };
    push("telegraf, telnet", |port, out| {
        run(Command::new(telegraf).args(["127.0.0.1", &port.to_string(), "tcp"]), out);
    });
}

#[test]
fn telegraf_by_http() {
    let Some(telegraf) = found(&built("telegraf")) else { return };
    push("telegraf, http", |port, out| {
        run(Command::new(telegraf).args(["127.0.0.1", &port.to_string(), "http"]), out);
    });
}

#[test]
fn potsdb_by_telnet() {
    python("potsdb");
}

#[test]
fn opentsdb_py_by_gzipped_http() {
    python("opentsdb-py");
}

#[test]
fn collectd_by_telnet() {
    let Some(collectd) = found(Path::new("/usr/sbin/collectd")) else { return };
    // Its csv writer refuses a path with a dot at its beginning.
    let folder = tempfile::Builder::new().prefix("basalt-collectd-").tempdir().unwrap();
    let daemon = Daemon::start(&folder.path().join("data"), "embedded", "");
    let plugins = "/usr/lib/collectd";
    let config = include_str!("../clients/collectd.conf")
        .replace("@ROOT@", folder.path().to_str().unwrap())
        .replace("@PORT@", &daemon.port().to_string())
        .replace("@PLUGINS@", plugins);
    let file = folder.path().join("collectd.conf");
    std::fs::write(&file, config).unwrap();
    let child = Command::new(collectd).arg("-f").arg("-C").arg(&file).spawn().unwrap();
    let notes = folder.path().join("csv");
    let until = Instant::now() + PATIENCE;
    while csv(&notes).len() <= 5 {
        let log = std::fs::read_to_string(folder.path().join("collectd.log")).unwrap_or_default();
        assert!(Instant::now() < until, "collectd noted {} series; its log: {log}", csv(&notes).len());
        wait(Duration::from_millis(200));
    }
    wait(Duration::from_secs(seconds()));
    end(child);
    // Its threads write what was sampled last to either place first.
    check("collectd", &daemon, &csv(&notes), ("fqdn", 2));
}

/// collectd's csv files: `csv/<host>/<plugin>/<type>-<date>` of lines `epoch,value`.
///
/// Files of several values a line (the load's three) are passed over: each is several metrics.
fn csv(root: &Path) -> Sent {
    let mut sent = Sent::new();
    for plugin in folders(&root.join("here")) {
        for file in folders(&plugin) {
            let name = |path: &Path| path.file_name().unwrap().to_str().unwrap().to_owned();
            let text = std::fs::read_to_string(&file).unwrap();
            let mut lines = text.lines();
            if lines.next() != Some("epoch,value") {
                continue;
            }
            let file_name = name(&file);
            // `kind-2026-11-21`.
            let kind = file_name.rsplitn(4, '-').nth(3).unwrap();
            sent.insert(metric(&name(&plugin), kind), noted(lines));
        }
    }
    sent
}

/// The points of `epoch,value` lines at the seconds to which `write_tsdb` rounds, NaN where that is not told: of what is noted at
/// half a second, and of two values in one second, of which either may have been sent last.
fn noted<'a>(lines: impl Iterator<Item = &'a str>) -> BTreeMap<u64, f64> {
    let mut points = BTreeMap::new();
    for (seconds, millis, value) in lines.filter_map(csv_line) {
        let value = if millis == 500 { f64::NAN } else { value };
        for at in seconds + u64::from(millis > 500)..=seconds + u64::from(millis >= 500) {
            points.entry(at).and_modify(|noted| *noted = f64::NAN).or_insert(value);
        }
    }
    points
}

/// Seconds, milliseconds and value of `epoch,value`.
fn csv_line(line: &str) -> Option<(u64, u64, f64)> {
    let (at, value) = line.split_once(',')?;
    let (seconds, millis) = at.split_once('.')?;
    Some((seconds.parse().ok()?, millis.parse().ok()?, value.parse().ok()?))
}

/// `write_tsdb`'s name for a csv file: `cpu-0/cpu-idle` is `cpu.0.cpu.idle`, `memory/memory-free` is `memory.free.memory`,
/// `uptime/uptime` is `uptime.uptime`.
fn metric(plugin: &str, kind: &str) -> String {
    match (plugin.split_once('-'), kind.split_once('-')) {
        (Some((plugin, instance)), Some((kind, of))) => format!("{plugin}.{instance}.{kind}.{of}"),
        (Some((plugin, instance)), None) => format!("{plugin}.{instance}.{kind}"),
        (None, Some((kind, of))) => format!("{plugin}.{of}.{kind}"),
        (None, None) => format!("{plugin}.{kind}"),
    }
}

fn folders(path: &Path) -> Vec<PathBuf> {
    let mut entries: Vec<PathBuf> =
        std::fs::read_dir(path).into_iter().flatten().map(|entry| entry.unwrap().path()).collect();
    entries.sort();
    entries
}

fn python(client: &str) {
    let Some(python) = found(&built("venv/bin/python3")) else { return };
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/clients/push.py");
    push(client, |port, out| {
        run(Command::new(python).args([script, client, "127.0.0.1", &port.to_string()]), out);
    });
}

/// Runs a client against a daemon of its own and holds the answers against the ledger it wrote.
fn push(name: &str, client: impl FnOnce(u16, &Path)) {
    let folder = tempfile::tempdir().unwrap();
    let daemon = Daemon::start(&folder.path().join("data"), "embedded", "");
    let ledger = folder.path().join("ledger");
    client(daemon.port(), &ledger);
    let mut sent = Sent::new();
    for line in std::fs::read_to_string(&ledger).unwrap().lines() {
        let words: Vec<&str> = line.split(' ').collect();
        let [metric, at, value] = words[..] else { panic!("{line}") };
        sent.entry(metric.to_owned()).or_default().insert(at.parse().unwrap(), value.parse().unwrap());
    }
    assert!(!sent.is_empty(), "{name} noted nothing");
    check(name, &daemon, &sent, ("host", 0));
}

fn run(command: &mut Command, out: &Path) {
    let status = command.arg(seconds().to_string()).arg(out).status().unwrap();
    assert!(status.success(), "{status}");
}

/// Every metric sent is answered with just the values sent, but for those of the last seconds, of which some may be noted and not
/// sent, and some sent and not noted. Where a value sent is NaN, nobody knows which is to be there, if any.
fn check(name: &str, daemon: &Daemon, sent: &Sent, (tag, unsettled_s): (&str, u64)) {
    // What a client wrote before it ended is taken in until its connection ends; the one that asks is one itself.
    let until = Instant::now() + PATIENCE;
    while daemon.metric("basalt_connections_open") > 1 {
        assert!(Instant::now() < until, "{name}: its connection does not end");
        wait(Duration::from_millis(20));
    }
    let mut client = daemon.client();
    let mut points = 0;
    for (metric, values) in sent {
        let path = format!("/api/query?start=1h-ago&m=none:{metric}{{{tag}=here}}");
        let answer = client.get(&path).unwrap();
        assert_eq!(answer.status, 200, "{name}: {metric}: {}", answer.text());
        let json = answer.json();
        assert_eq!(json.as_array().map(Vec::len), Some(1), "{name}: {metric}: {json}");
        let stored: BTreeMap<u64, f64> = json[0]["dps"]
            .as_object()
            .unwrap()
            .iter()
            .map(|(at, value)| (at.parse().unwrap(), value.as_f64().unwrap()))
            .collect();
        // What was noted from here on may not have been sent when the client was told to end.
        let unsettled_from = values.keys().next_back().unwrap() - unsettled_s;
        for (at, value) in values.iter().filter(|(_, value)| !value.is_nan()) {
            match stored.get(at) {
                // Six decimals are what Telegraf and collectd write by telnet.
                Some(got) => assert!(
                    (got - value).abs() <= 1e-6 * value.abs().max(1.0),
                    "{name}: {metric} {at}: {got} for {value}"
                ),
                None => assert!(*at >= unsettled_from, "{name}: {metric} lacks {at}: {values:?}, stored {stored:?}"),
            }
            points += 1;
        }
        let unknown = stored.keys().filter(|at| **at < unsettled_from && !values.contains_key(at)).count();
        assert!(unknown <= 1, "{name}: {metric} has more points than were sent");
    }
    println!("{name}: {} series, {points} points, all as sent", sent.len());
}

/// Where `tests/clients/install` puts what it builds.
fn built(name: &str) -> PathBuf {
    let target = std::env::var_os("CARGO_TARGET_DIR")
        .map_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("target"), PathBuf::from);
    target.join("clients").join(name)
}

/// The program, or a line that says why this test proves nothing here.
fn found(program: &Path) -> Option<PathBuf> {
    if program.exists() {
        return Some(program.to_owned());
    }
    assert!(std::env::var_os("CI").is_none(), "{} is missing: run tests/clients/install", program.display());
    println!("skipped: {} is missing; tests/clients/install gets it", program.display());
    None
}

fn seconds() -> u64 {
    std::env::var("BASALT_CLIENT_SECONDS").map_or(SECONDS_DEFAULT, |text| text.parse().unwrap())
}

fn wait(time: Duration) {
    let (sender, receiver) = std::sync::mpsc::channel::<()>();
    assert!(receiver.recv_timeout(time).is_err());
    drop(sender);
}

fn end(mut child: Child) {
    assert!(Command::new("kill").arg(child.id().to_string()).status().unwrap().success());
    child.wait().unwrap();
}
