//! Programs that collect and push by themselves: statsd with its OpenTSDB backend, and Glances.

use std::net::{TcpListener, UdpSocket};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use super::{built, end, found, wait};
use crate::daemon::Daemon;

/// How long an exporter may take to start and push.
const PATIENCE: Duration = Duration::from_secs(90);

/// Starts `program` and asks `done` until it is content, or the patience or the program ends.
fn until(mut child: Child, what: &str, mut done: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !done() {
        assert!(child.try_wait().unwrap().is_none(), "{what} ended");
        assert!(begun.elapsed() < PATIENCE, "{what}: not there in time");
        wait(Duration::from_millis(200));
    }
    end(child);
}

/// The values of all points of a metric, whatever its tags; none if nobody knows it.
fn values(daemon: &Daemon, metric: &str) -> Vec<f64> {
    let answer = daemon.get(&format!("/api/query?start=1h-ago&m=none:{metric}"));
    if answer.status != 200 {
        return Vec::new();
    }
    let json = answer.json();
    let series = json.as_array().unwrap();
    series.iter().flat_map(|series| series["dps"].as_object().unwrap().values()).map(|v| v.as_f64().unwrap()).collect()
}

/// Two free ports below those that the system gives out by itself, so that nobody takes them before statsd does, which has
/// no way to tell which it took.
fn free_ports() -> (u16, u16) {
    const OWN: std::ops::Range<u16> = 20_000..32_000;
    let first = OWN.start + u16::try_from(std::process::id() % u32::try_from(OWN.len()).unwrap()).unwrap();
    let is_free =
        |port: &u16| UdpSocket::bind(("127.0.0.1", *port)).is_ok() && TcpListener::bind(("127.0.0.1", *port)).is_ok();
    let mut free = (first..OWN.end).chain(OWN.start..first).filter(is_free);
    (free.next().unwrap(), free.next().unwrap())
}

#[test]
fn statsd_with_its_opentsdb_backend() {
    let Some(program) = found(&built("npm/node_modules/statsd/stats.js")) else { return };
    let folder = tempfile::tempdir().unwrap();
    let daemon = Daemon::start(&folder.path().join("data"), "embedded", "");
    let (port, manage) = free_ports();
    let config = include_str!("../../clients/statsd.json")
        .replace("@STATSD@", &port.to_string())
        .replace("@MANAGE@", &manage.to_string())
        .replace("@PORT@", &daemon.port().to_string());
    let file = folder.path().join("statsd.js");
    std::fs::write(&file, config).unwrap();
    let mut node = Command::new("node");
    // Its modules are looked for from where it runs.
    node.current_dir(program.ancestors().nth(3).unwrap_or(Path::new("."))).arg(&program).arg(&file);
    let child = node.stdout(Stdio::null()).spawn().unwrap();
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    let mut sent = 0;
    until(child, "statsd", || {
        // Until it listens, what is sent is lost; a gauge is kept, and a counter adds up to what was sent.
        sent += u32::from(socket.send_to(b"basalt.gauge:42|g\nbasalt.counter:7|c", ("127.0.0.1", port)).is_ok());
        let gauge = values(&daemon, "stats.gauges.basalt.gauge");
        let counter: f64 = values(&daemon, "stats_counts.basalt.counter").iter().sum();
        !gauge.is_empty() && gauge.iter().all(|value| (value - 42.0).abs() < 1e-9) && counter >= 7.0
    });
    let counter: f64 = values(&daemon, "stats_counts.basalt.counter").iter().sum();
    assert!(counter <= f64::from(sent) * 7.0 && (counter % 7.0).abs() < 1e-9, "{counter} of {sent} times 7");
    let tagged = daemon.get("/api/query?start=1h-ago&m=none:stats.gauges.basalt.gauge{source=statsd}").json();
    assert_eq!(tagged[0]["tags"]["source"], "statsd");
}

#[test]
fn glances_by_telnet() {
    let Some(program) = found(&built("venv/bin/glances")) else { return };
    let folder = tempfile::tempdir().unwrap();
    let daemon = Daemon::start(&folder.path().join("data"), "embedded", "");
    let config = include_str!("../../clients/glances.conf").replace("@PORT@", &daemon.port().to_string());
    let file = folder.path().join("glances.conf");
    std::fs::write(&file, config).unwrap();
    let mut glances = Command::new(program);
    glances.arg("-C").arg(&file).args(["--quiet", "--export", "opentsdb", "--time", "1"]);
    glances.args(["--disable-plugin", "cloud,ip,docker,containers"]);
    let child = glances.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    // It sends plugin after plugin.
    let names = || daemon.get("/api/suggest?type=metrics&q=glances.&max=5000").json();
    until(child, "Glances", || {
        !values(&daemon, "glances.mem.total").is_empty() && names().as_array().is_some_and(|names| names.len() > 40)
    });
    let meminfo = std::fs::read_to_string("/proc/meminfo").unwrap();
    let total = meminfo.lines().find_map(|line| line.strip_prefix("MemTotal:")?.trim().strip_suffix(" kB")).unwrap();
    let total: f64 = total.parse::<f64>().unwrap() * 1024.0;
    assert!(values(&daemon, "glances.mem.total").iter().all(|value| (value - total).abs() < 1.0), "{total}");
    let tagged = daemon.get("/api/query?start=1h-ago&m=none:glances.mem.total{host=here}").json();
    assert_eq!(tagged[0]["tags"]["host"], "here");
}
