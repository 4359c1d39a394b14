//! What was sent and what was acknowledged, kept outside of the program under test.
//!
//! Each writer sends requests of known points, one in flight. A point is of one of three kinds: acknowledged (must be
//! there, with its value), in flight (may be there; each row of the request wholly or not at all), never sent (must not
//! be there).

use std::sync::atomic::{AtomicU64, Ordering};

pub(crate) const WRITERS: u64 = 4;
/// Of the writers, those that speak telnet; a `version` after each batch is their acknowledgement.
pub(crate) const TELNET_WRITERS: u64 = 1;
/// Points a request: several rows, since each series steps by hours too.
pub(crate) const BATCH: u64 = 60;
pub(crate) const START_S: u64 = 1_700_000_000;
const SERIES: u64 = 5;

/// The ledgers of some rounds, one a writer, under metrics of their own: so that a round is held against what its epoch
/// wrote, and not against all there is.
#[derive(Debug)]
pub(crate) struct Epoch {
    name: String,
    pub(crate) ledgers: Vec<Ledger>,
}

/// What one writer has sent and what was acknowledged, in points; both grow in whole requests.
///
/// `SeqCst` on both: read after the writers' threads are joined, or by one who needs a bound only.
#[derive(Debug, Default)]
pub(crate) struct Ledger {
    sent: AtomicU64,
    acknowledged: AtomicU64,
    /// When the last request that was acknowledged was sent, in nanoseconds since 1970.
    acknowledged_of_ns: AtomicU64,
}

impl Epoch {
    pub(crate) fn new(name: impl Into<String>) -> Epoch {
        Epoch { name: name.into(), ledgers: (0..WRITERS).map(|_| Ledger::default()).collect() }
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    pub(crate) fn metric(&self, writer: u64) -> String {
        format!("torture.{}.w{writer}", self.name)
    }

    /// Each writer's number and ledger.
    pub(crate) fn writers(&self) -> impl Iterator<Item = (u64, &Ledger)> {
        (0..).zip(&self.ledgers)
    }

    pub(crate) fn acknowledged(&self) -> u64 {
        self.ledgers.iter().map(Ledger::acknowledged).sum()
    }

    /// When the last request was sent that was acknowledged.
    pub(crate) fn acknowledged_of_ns(&self) -> u64 {
        self.ledgers.iter().map(|ledger| ledger.acknowledged_of_ns.load(Ordering::SeqCst)).max().unwrap_or(0)
    }

    /// What was in flight is there now for sure, or was sent again: go on after it.
    pub(crate) fn settle(&self) {
        for ledger in &self.ledgers {
            ledger.acknowledged.store(ledger.sent(), Ordering::SeqCst);
        }
    }
}

impl Ledger {
    /// One of so many points.
    pub(crate) fn of(acknowledged: u64, sent: u64) -> Ledger {
        let (sent, acknowledged) = (AtomicU64::new(sent), AtomicU64::new(acknowledged));
        Ledger { sent, acknowledged, ..Ledger::default() }
    }

    pub(crate) fn sent(&self) -> u64 {
        self.sent.load(Ordering::SeqCst)
    }

    pub(crate) fn acknowledged(&self) -> u64 {
        self.acknowledged.load(Ordering::SeqCst)
    }

    /// The next request is about to be sent; answers its first point.
    pub(crate) fn send(&self) -> u64 {
        let from = self.acknowledged();
        self.sent.store(from + BATCH, Ordering::SeqCst);
        from
    }

    /// All that was sent is acknowledged, and was sent then.
    pub(crate) fn acknowledge(&self, sent_ns: u64) {
        self.acknowledged_of_ns.store(sent_ns, Ordering::SeqCst);
        self.acknowledged.store(self.sent(), Ordering::SeqCst);
    }
}

/// The `n`-th point of a writer: series, time, value. A series' points of one request fall into three hours.
pub(crate) fn point(writer: u64, n: u64) -> (u64, u64, u64) {
    let series = n % SERIES;
    let step = n / SERIES;
    let at = START_S + (step % 3) * 3600 + (step / 3) % 3600 + (step / 3 / 3600) * 3 * 3600;
    (series, at, n * 31 + writer)
}

/// A request's points as `/api/put` takes them.
pub(crate) fn json(metric: &str, writer: u64, from: u64) -> String {
    let points: Vec<String> = (from..from + BATCH)
        .map(|n| {
            let (series, at, value) = point(writer, n);
            format!(r#"{{"metric":"{metric}","timestamp":{at},"value":{value},"tags":{{"series":"s{series}"}}}}"#)
        })
        .collect();
    format!("[{}]", points.join(","))
}

/// The same as telnet lines, and one that is answered.
pub(crate) fn lines(metric: &str, writer: u64, from: u64) -> String {
    let put = |n| {
        let (series, at, value) = point(writer, n);
        format!("put {metric} {at} {value} series=s{series}")
    };
    let mut lines = (from..from + BATCH).map(put).collect::<Vec<_>>().join("\n");
    lines += "\nversion\n";
    lines
}

/// Nanoseconds since 1970, as the faults' own library counts them.
#[expect(clippy::disallowed_methods, reason = "two processes tell each other when something was")]
pub(crate) fn now_ns() -> u64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}
