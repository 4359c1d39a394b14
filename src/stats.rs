//! The daemon's numbers under OpenTSDB's names, for `/api/stats`, `/stats` and telnet `stats`.

use basalt_ingest::{Door, DoorCounts, ProblemClass};

use crate::app::App;

/// One number: `tsd.` and its name, tags, value.
#[derive(Clone, Debug)]
pub(crate) struct Stat {
    /// With the `tsd.` prefix.
    pub(crate) name: String,
    /// Key and value, if the number has a tag of its own.
    pub(crate) tag: Option<(&'static str, &'static str)>,
    /// Counters and gauges alike.
    pub(crate) value: u64,
}

/// All numbers, in OpenTSDB's order as far as they have one there.
pub(crate) fn collect(app: &App) -> Vec<Stat> {
    let metrics = &app.metrics;
    let points = app.points();
    let all = |pick: fn(&DoorCounts) -> u64| points.doors.iter().map(pick).sum::<u64>();
    let reason =
        |class: ProblemClass| points.doors.iter().filter_map(|counts| counts.not.get(class.index())).sum::<u64>();
    let mut stats = Vec::with_capacity(64);
    let mut put = |name: &str, tag: Option<(&'static str, &'static str)>, value: u64| {
        stats.push(Stat { name: format!("tsd.{name}"), tag, value });
    };
    put("connectionmgr.connections", Some(("type", "open")), metrics.connections_open.get());
    put("connectionmgr.connections", Some(("type", "rejected")), metrics.connections_rejected.get());
    put("connectionmgr.connections", Some(("type", "total")), metrics.connections_total.get());
    put("rpc.received", Some(("type", "telnet")), metrics.telnet_commands.get());
    put("rpc.received", Some(("type", "http")), metrics.http_requests.get());
    put("rpc.received", Some(("type", "put")), metrics.put_requests.get());
    for (name, quantile) in [("50", 0.5), ("75", 0.75), ("90", 0.9), ("95", 0.95)] {
        put(&format!("http.latency_{name}pct"), Some(("type", "all")), metrics.http_latency.read(quantile).1 / 1_000);
    }
    for (name, class) in [
        ("hbase_errors", ProblemClass::Storage),
        ("invalid_values", ProblemClass::InvalidValue),
        ("illegal_arguments", ProblemClass::IllegalArgument),
        ("unknown_metrics", ProblemClass::UnknownMetric),
    ] {
        put("rpc.errors", Some(("type", name)), reason(class));
    }
    put("rpc.errors", Some(("type", "socket_writes_blocked")), metrics.telnet_errors_unread.get());
    put("http.query.invalid_requests", None, metrics.queries_bad.get());
    put("http.query.exceptions", None, metrics.queries_failed.get());
    put("http.query.success", None, metrics.queries_ok.get());
    put("query.count", Some(("type", "running")), metrics.queries_running.get());
    put("datapoints.added", Some(("type", "all")), all(|counts| counts.stored));
    for (door, counts) in Door::ALL.iter().zip(&points.doors) {
        put("datapoints.added", Some(("type", door.label())), counts.stored);
    }
    if let Some(store) = app.store_stats() {
        put("storage.wal.bytes", None, store.wal_bytes);
        put("storage.wal.syncs", None, store.wal_syncs);
        put("storage.memtable.bytes", None, store.memtable_bytes);
        put("storage.files", None, store.files_count);
        put("storage.file.bytes", None, store.file_bytes);
        put("storage.flushes", None, store.flushes);
        put("storage.compactions", None, store.compactions);
    }
    stats
}

/// The tags that all numbers share: the host, and the port if it is asked for.
pub(crate) fn shared_tags(app: &App) -> Vec<(&'static str, String)> {
    let mut tags = vec![("host", app.host.clone())];
    if app.config.server.stats_with_port {
        tags.push(("port", app.config.server.listen.port().to_string()));
    }
    tags
}

/// `tsd.name time value type=x host=h`, one a line.
pub(crate) fn lines(app: &App, now_ms: u64) -> Vec<String> {
    let seconds = now_ms / 1_000;
    let shared: String = shared_tags(app).iter().flat_map(|(key, text)| [" ", key, "=", text]).collect();
    collect(app)
        .into_iter()
        .map(|Stat { name, tag, value }| match tag {
            Some((key, text)) => format!("{name} {seconds} {value} {key}={text}{shared}"),
            None => format!("{name} {seconds} {value}{shared}"),
        })
        .collect()
}
