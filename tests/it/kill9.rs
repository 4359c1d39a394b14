//! `kill -9` at random moments under load, with flush and compaction going on; a ledger outside the server says what
//! must be there.
//!
//! Each writer sends requests of known points, one in flight. For a round that ends at a kill, a point is of one of three kinds:
//! acknowledged (must be there, with its value), in flight (may be there; each row of the request wholly or not at
//! all), never sent (must not be there). `BASALT_KILL9_ROUNDS` and `BASALT_SEED` set count and seed.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use crate::daemon::Daemon;
use crate::http::Client;

/// Rounds of the ordinary gate; the lab runs 200.
const ROUNDS_DEFAULT: u64 = 12;
const WRITERS: u64 = 4;
/// Of the writers, those that speak telnet; a `version` after each batch is their acknowledgement.
const TELNET_WRITERS: u64 = 1;
const SERIES: u64 = 5;
/// Points a request: several rows, since each series steps by hours too.
const BATCH: u64 = 60;
const START_S: u64 = 1_700_000_000;

/// Small memtables and files, so that a round of a fraction of a second flushes and compacts.
const CONFIG: &str = "[store]\nmemtable_bytes = 65536\nmemtables_bytes = 1048576\nwal_segment_bytes = 262144\n";

/// Rounds after which the writers begin new metrics, so that a round is held against what its epoch wrote and not against all
/// there is; that is done once, at the end.
const ROUNDS_AN_EPOCH: u64 = 10;

/// The ledgers of some rounds, one a writer.
#[derive(Debug)]
struct Epoch {
    number: u64,
    ledgers: Vec<Ledger>,
}

impl Epoch {
    fn new(number: u64) -> Self {
        Self { number, ledgers: (0..WRITERS).map(|_| Ledger::default()).collect() }
    }

    fn metric(&self, writer: u64) -> String {
        format!("kill9.e{}.w{writer}", self.number)
    }

    fn ledger(&self, writer: u64) -> &Ledger {
        self.ledgers.get(usize::try_from(writer).unwrap()).unwrap()
    }

    fn acknowledged(&self) -> u64 {
        self.ledgers.iter().map(|ledger| ledger.acknowledged.load(Ordering::SeqCst)).sum()
    }
}

/// What one writer has sent and what was acknowledged, in points; both grow in whole requests.
#[derive(Debug, Default)]
struct Ledger {
    // SeqCst on both: read after the writers' threads are joined; the order between them is the request's own.
    sent: AtomicU64,
    acknowledged: AtomicU64,
}

/// The `n`-th point of a writer: series, time, value. A series' points of one request fall into three hours.
fn point(writer: u64, n: u64) -> (u64, u64, u64) {
    let series = n % SERIES;
    let step = n / SERIES;
    let at = START_S + (step % 3) * 3600 + (step / 3) % 3600 + (step / 3 / 3600) * 3 * 3600;
    (series, at, n * 31 + writer)
}

#[test]
fn acknowledged_points_survive_kill_9() {
    let rounds = env("BASALT_KILL9_ROUNDS", ROUNDS_DEFAULT);
    let seed = env("BASALT_SEED", 1);
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let mut epochs = vec![Epoch::new(0)];
    let mut random = Random(seed);
    for round in 0..rounds {
        let daemon = Daemon::start(&data, "embedded", CONFIG);
        let epoch = epochs.last().unwrap();
        verify(&daemon, epoch, &format!("seed {seed}, after round {round}"));
        // What was in flight at the kill is settled now, one way or the other: go on after it.
        for ledger in &epoch.ledgers {
            ledger.acknowledged.store(ledger.sent.load(Ordering::SeqCst), Ordering::SeqCst);
        }
        settle(&daemon, epoch);
        if round > 0 && round % ROUNDS_AN_EPOCH == 0 {
            epochs.push(Epoch::new(round / ROUNDS_AN_EPOCH));
        }
        let epoch = epochs.last().unwrap();
        let load = Duration::from_millis(50 + random.below(450));
        let port = daemon.port();
        thread::scope(|scope| {
            for writer in 0..WRITERS {
                scope.spawn(move || write_until_gone(port, epoch, writer));
            }
            let (wake, end) = std::sync::mpsc::channel::<()>();
            // A wait with a bound, which nobody cuts short.
            assert!(end.recv_timeout(load).is_err());
            drop(wake);
            daemon.kill();
        });
    }
    let daemon = Daemon::start(&data, "embedded", CONFIG);
    for epoch in &epochs {
        verify(&daemon, epoch, &format!("seed {seed}, at the end, epoch {}", epoch.number));
    }
    let acknowledged: u64 = epochs.iter().map(Epoch::acknowledged).sum();
    println!("kill9: {rounds} rounds, seed {seed}, {acknowledged} points acknowledged, 0 lost, 0 torn, 0 phantom");
    assert!(daemon.terminate().success());
    let (made, left) = files(&data);
    println!("kill9: {made} files were written, {left} are left: the others were merged by compactions");
    assert!(made > rounds && left < made, "neither flush nor compaction went on: {left} of {made} files");
}

/// How many files were ever numbered, and how many are there.
fn files(data: &Path) -> (u64, u64) {
    let names = std::fs::read_dir(data).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let ids = names.filter_map(|name| name.strip_prefix("sst-")?.strip_suffix(".sst")?.parse().ok());
    let ids: Vec<u64> = ids.collect();
    (ids.iter().copied().max().unwrap_or(0), ids.len() as u64)
}

/// Sends again what was in flight at the kill, so that every point up to `sent` is known to be there.
fn settle(daemon: &Daemon, epoch: &Epoch) {
    let mut client = daemon.client();
    for (writer, ledger) in (0..).zip(&epoch.ledgers) {
        let sent = ledger.sent.load(Ordering::SeqCst);
        if let Some(from) = sent.checked_sub(BATCH) {
            let answer = client.post("/api/put", &body(epoch, writer, from)).unwrap();
            assert_eq!(answer.status, 204, "{}", answer.text());
        }
    }
}

fn write_until_gone(port: u16, epoch: &Epoch, writer: u64) {
    // The kill ends every connection; any error here is that.
    let ended = if writer < TELNET_WRITERS { telnet(port, epoch, writer) } else { http(port, epoch, writer) };
    assert!(ended.is_err());
}

fn http(port: u16, epoch: &Epoch, writer: u64) -> std::io::Result<()> {
    let ledger = epoch.ledger(writer);
    let mut client = Client::connect(port)?;
    loop {
        let from = ledger.acknowledged.load(Ordering::SeqCst);
        let body = body(epoch, writer, from);
        ledger.sent.store(from + BATCH, Ordering::SeqCst);
        let answer = client.post("/api/put", &body)?;
        if answer.status == 503 {
            // Flush is behind: nothing was promised, so the same points are sent again.
            continue;
        }
        assert_eq!(answer.status, 204, "{}", answer.text());
        ledger.acknowledged.store(from + BATCH, Ordering::SeqCst);
    }
}

fn telnet(port: u16, epoch: &Epoch, writer: u64) -> std::io::Result<()> {
    let ledger = epoch.ledger(writer);
    let metric = epoch.metric(writer);
    let mut stream = BufReader::new(TcpStream::connect(("127.0.0.1", port))?);
    loop {
        let from = ledger.acknowledged.load(Ordering::SeqCst);
        let mut lines = String::new();
        for n in from..from + BATCH {
            let (series, at, value) = point(writer, n);
            writeln!(lines, "put {metric} {at} {value} series=s{series}").unwrap();
        }
        lines += "version\n";
        ledger.sent.store(from + BATCH, Ordering::SeqCst);
        stream.get_mut().write_all(lines.as_bytes())?;
        for _ in 0..2 {
            let mut line = String::new();
            if stream.read_line(&mut line)? == 0 {
                return Err(std::io::ErrorKind::UnexpectedEof.into());
            }
            assert!(!line.starts_with("put:"), "{line}");
        }
        ledger.acknowledged.store(from + BATCH, Ordering::SeqCst);
    }
}

fn body(epoch: &Epoch, writer: u64, from: u64) -> String {
    let metric = epoch.metric(writer);
    let points: Vec<String> = (from..from + BATCH)
        .map(|n| {
            let (series, at, value) = point(writer, n);
            format!(r#"{{"metric":"{metric}","timestamp":{at},"value":{value},"tags":{{"series":"s{series}"}}}}"#)
        })
        .collect();
    format!("[{}]", points.join(","))
}

/// Holds every stored point of an epoch against its ledgers.
fn verify(daemon: &Daemon, epoch: &Epoch, when: &str) {
    for (writer, ledger) in (0..).zip(&epoch.ledgers) {
        let (sent, acknowledged) = (ledger.sent.load(Ordering::SeqCst), ledger.acknowledged.load(Ordering::SeqCst));
        if sent == 0 {
            continue;
        }
        let stored = stored(daemon, &epoch.metric(writer));
        let expected: BTreeMap<(u64, u64), (u64, u64)> = (0..sent)
            .map(|n| (point(writer, n), n))
            .map(|((series, at, value), n)| ((series, at), (value, n)))
            .collect();
        for (place, value) in &stored {
            let known = expected.get(place).unwrap_or_else(|| panic!("{when}: a phantom at {place:?}"));
            assert_eq!(known.0, *value, "{when}: writer {writer}, {place:?}");
        }
        let mut rows: BTreeMap<(u64, u64), (u64, u64)> = BTreeMap::new();
        for (place, (_, n)) in &expected {
            let there = stored.contains_key(place);
            assert!(
                there || *n >= acknowledged,
                "{when}: writer {writer} lost point {n} of {acknowledged} at {place:?}"
            );
            if *n >= acknowledged {
                let (held, of) = rows.entry((place.0, place.1 / 3600)).or_default();
                *held += u64::from(there);
                *of += 1;
            }
        }
        for (row, (held, of)) in rows {
            assert!(held == 0 || held == of, "{when}: writer {writer} tore row {row:?}: {held} of {of}");
        }
    }
}

/// Every stored point of a metric: (series, time) → value.
fn stored(daemon: &Daemon, metric: &str) -> BTreeMap<(u64, u64), u64> {
    let path = format!("/api/query?start=1&end={}&m=none:{metric}{{series=*}}", START_S + 400 * 24 * 3600);
    let answer = daemon.client().get(&path).unwrap();
    // A writer whose first request never arrived has no name yet.
    if answer.status == 400 && answer.text().contains("No such name") {
        return BTreeMap::new();
    }
    assert_eq!(answer.status, 200, "{}", answer.text());
    let mut stored = BTreeMap::new();
    for series in answer.json().as_array().unwrap() {
        let name = series["tags"]["series"].as_str().unwrap();
        let number = name.strip_prefix('s').unwrap().parse().unwrap();
        for (at, value) in series["dps"].as_object().unwrap() {
            let before = stored.insert((number, at.parse().unwrap()), value.as_u64().unwrap());
            assert!(before.is_none(), "two points at one place: {name} {at}");
        }
    }
    stored
}

fn env(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().map_or(default, |text| text.parse().unwrap())
}

/// `SplitMix64`.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % bound
    }
}
