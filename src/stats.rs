//! The daemon's numbers under OpenTSDB's names (`O-STATS`), for `/api/stats`, `/stats` and telnet `stats`.
//!
//! Every name of OpenTSDB 2.4 is there, so that alerts on it keep working. Those of its HBase client (`tsd.hbase.rpcs` and
//! the like) are there over HBase, with the calls as they are sent; else `tsd.storage.*` stand in for them. What cannot
//! happen here is 0. What is ours alone has a name of its own, so that no sum over a name of OpenTSDB's counts twice.

use basalt_hbase::{Figures, ServerFigures};
use basalt_ingest::{Door, DoorCounts, ProblemClass};
use basalt_schema::UidKind;
use tokio::task::block_in_place;

use crate::app::App;
use crate::log;
use crate::proc::{self, Thread, ThreadState};

/// One number: `tsd.` and its name, tags, value.
#[derive(Clone, Debug)]
pub(crate) struct Stat {
    /// With the `tsd.` prefix.
    pub(crate) name: String,
    /// Tags of its own.
    pub(crate) tags: Vec<(&'static str, &'static str)>,
    /// Counters and gauges alike.
    pub(crate) value: u64,
}

/// A tag of a number that has none.
const NO_TAG: (&str, &str) = ("", "");
const QUANTILES: [(&str, f64); 4] = [("50", 0.5), ("75", 0.75), ("90", 0.9), ("95", 0.95)];

/// All numbers, in OpenTSDB's order; those of threads are in lines alone, as in OpenTSDB.
///
/// *Cost*: three gets of the UID table's counters, which block, in turn with puts that look up names.
pub(crate) async fn collect(app: &App, form: Form) -> Vec<Stat> {
    let mut stats = Stats(Vec::with_capacity(120));
    stats.doors(app);
    if form == Form::Lines {
        stats.threads(&Thread::all());
    }
    let seat = app.askers.take().await;
    block_in_place(|| stats.names(app, seat.is_ok()));
    drop(seat);
    stats.points(app);
    stats.store(app);
    stats.0
}

/// Who asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// `/api/stats`.
    Api,
    /// `/stats` and telnet.
    Lines,
}

struct Stats(Vec<Stat>);

impl Stats {
    fn put(&mut self, name: &str, tag: (&'static str, &'static str), value: u64) {
        let tags = if tag == NO_TAG { Vec::new() } else { vec![tag] };
        self.0.push(Stat { name: format!("tsd.{name}"), tags, value });
    }

    /// One that OpenTSDB counts by the class that it happened in.
    fn put_of(&mut self, class: &'static str, name: &str, tag: (&'static str, &'static str), value: u64) {
        self.put(name, tag, value);
        if let Some(stat) = self.0.last_mut() {
            stat.tags.push(("class", class));
        }
    }

    fn latency(&mut self, name: &str, tag: (&'static str, &'static str), ms: impl Fn(f64) -> u64) {
        for (text, quantile) in QUANTILES {
            self.put(&format!("{name}_{text}pct"), tag, ms(quantile));
        }
    }

    fn latency_of(&mut self, class: &'static str, method: &'static str, ms: impl Fn(f64) -> u64) {
        for (text, quantile) in QUANTILES {
            self.put_of(class, &format!("hbase.latency_{text}pct"), ("method", method), ms(quantile));
        }
    }

    /// Threads by Java's states, of which some are none here.
    fn threads(&mut self, threads: &[Thread]) {
        let count = |wanted: ThreadState| threads.iter().filter(|thread| thread.state == wanted).count() as u64;
        for (state, count) in [
            ("new", 0),
            ("runnable", count(ThreadState::Runnable)),
            ("blocked", count(ThreadState::Blocked)),
            ("waiting", count(ThreadState::Waiting)),
            ("terminated", count(ThreadState::Terminated)),
            ("timed_waiting", 0),
        ] {
            self.put("jvm.thread.states", ("state", state), count);
        }
        self.put("jvm.thread.count", NO_TAG, threads.len() as u64);
    }

    /// Connections, requests, queries.
    fn doors(&mut self, app: &App) {
        let metrics = &app.metrics;
        self.put("connectionmgr.connections", ("type", "open"), metrics.connections_open.get());
        self.put("connectionmgr.connections", ("type", "rejected"), metrics.connections_rejected.get());
        self.put("connectionmgr.connections", ("type", "total"), metrics.connections_total.get());
        for kind in ["closed", "reset", "timeout", "unknown"] {
            self.put("connectionmgr.exceptions", ("type", kind), 0);
        }
        self.put("rpc.received", ("type", "telnet"), metrics.telnet_commands.get());
        self.put("rpc.received", ("type", "http"), metrics.http_requests.get());
        self.put("rpc.received", ("type", "http_plugin"), 0);
        self.put("rpc.exceptions", NO_TAG, metrics.http_failed.get());
        self.latency("http.latency", ("type", "all"), |quantile| metrics.http_latency.read(quantile).1 / 1_000);
        self.latency("http.latency", ("type", "graph"), |quantile| metrics.graph_latency.read(quantile).1 / 1_000);
        self.latency("http.latency", ("type", "gnuplot"), |_| 0);
        self.put("http.graph.requests", ("cache", "disk"), 0);
        self.put("http.graph.requests", ("cache", "miss"), metrics.graph_latency.read(0.0).0);
        for (door, refused) in [("telnet", &metrics.telnet_refused), ("http", &metrics.http_refused)] {
            self.put("rpc.forbidden", ("type", door), refused.forbidden.get());
            self.put("rpc.unauthorized", ("type", door), refused.unauthorized.get());
        }
        self.put("rpc.received", ("type", "put"), metrics.put_requests.get());
        let points = app.points();
        let reason =
            |class: ProblemClass| points.doors.iter().filter_map(|counts| counts.not.get(class.index())).sum::<u64>();
        let illegal_arguments = reason(ProblemClass::IllegalArgument) + points.bodies_refused;
        for (name, count) in [
            ("hbase_errors", reason(ProblemClass::Storage)),
            ("invalid_values", reason(ProblemClass::InvalidValue)),
            ("illegal_arguments", illegal_arguments),
            ("unknown_metrics", reason(ProblemClass::UnknownMetric)),
        ] {
            self.put("rpc.errors", ("type", name), count);
        }
        self.put("rpc.errors", ("type", "socket_writes_blocked"), metrics.telnet_errors_unread.get());
        self.put("http.query.unauthorized", NO_TAG, metrics.query_refused.unauthorized.get());
        self.put("http.query.forbidden", NO_TAG, metrics.query_refused.forbidden.get());
        self.put("http.query.invalid_requests", NO_TAG, metrics.queries_bad.get());
        self.put("http.query.exceptions", NO_TAG, metrics.queries_failed.get());
        self.put("http.query.success", NO_TAG, metrics.queries_ok.get());
        self.put("query.count", ("type", "running"), metrics.queries_running.get());
        self.put("log.lines", ("type", "suppressed"), log::suppressed());
        self.put("log.lines", ("type", "lost"), log::lost());
    }

    /// UIDs. The caches are bounded and their hits are not counted, since counting would cost as much as a look.
    fn names(&mut self, app: &App, mut may_ask: bool) {
        for kind in [UidKind::Metric, UidKind::Tagk, UidKind::Tagv] {
            let tag = ("kind", kind.qualifier());
            let table = app.uid_table(kind);
            for (name, value) in [("cache-hit", 0), ("cache-miss", 0), ("cache-size", table.kept_count())] {
                self.put(&format!("uid.{name}"), tag, value);
            }
            self.put("uid.random-collisions", tag, table.collisions_count());
            self.put("uid.rejected-assignments", tag, table.rejected_count());
            // A counter that cannot be read is left out rather than told wrong, and those after it are not waited for.
            match may_ask.then(|| app.uid_usage(kind)) {
                Some(Ok(usage)) => {
                    self.put("uid.ids-used", tag, usage.used);
                    self.put("uid.ids-available", tag, usage.available);
                }
                Some(Err(_)) | None => may_ask = false,
            }
        }
        self.put("uid.filter.rejected", ("kind", "raw"), 0);
        self.put("uid.filter.rejected", ("kind", "aggregate"), 0);
    }

    /// Memory and points.
    fn points(&mut self, app: &App) {
        self.put("jvm.ramfree", NO_TAG, proc::available_bytes());
        self.put("jvm.ramused", NO_TAG, proc::Status::read().bytes("VmRSS"));
        let put_ms = |quantile| app.metrics.put_latency.read(quantile).1 / 1_000;
        self.latency_of("IncomingDataPoints", "put", put_ms);
        let points = app.points();
        let all = |pick: fn(&DoorCounts) -> u64| points.doors.iter().map(pick).sum::<u64>();
        self.put_of("TSDB", "datapoints.added", ("type", "all"), all(|counts| counts.stored));
        for (door, counts) in Door::ALL.iter().zip(&points.doors) {
            self.put("points.stored", ("door", door.label()), counts.stored);
        }
        let query_ms = |quantile| app.metrics.query_latency.read(quantile).1 / 1_000;
        self.latency_of("TsdbQuery", "scan", query_ms);
    }

    /// The store; where rows are folded by it, OpenTSDB's queue of rows to compact is always empty.
    fn store(&mut self, app: &App) {
        let rows = app.rewriter.as_ref().map(|rewriter| rewriter.counts()).unwrap_or_default();
        self.put("compaction.count", NO_TAG, rows.rows_rewritten);
        self.put("compaction.duplicates", ("type", "identical"), rows.duplicates_identical);
        self.put("compaction.duplicates", ("type", "variant"), rows.duplicates_variant);
        self.put("compaction.queue.size", NO_TAG, rows.queue_rows);
        for (rpc, errors) in [("read", rows.read_errors), ("put", rows.put_errors), ("delete", rows.delete_errors)] {
            self.put("compaction.errors", ("rpc", rpc), errors);
        }
        self.put("compaction.writes", NO_TAG, rows.cells_written);
        self.put("compaction.deletes", NO_TAG, rows.cells_deleted);
        self.put("query.memory.bytes", NO_TAG, app.queries().memory_used_bytes());
        if let Some(figures) = app.open_store().cluster_figures() {
            self.cluster(&figures);
        }
        if let Some(store) = app.open_store().stats() {
            self.put("storage.wal.bytes", NO_TAG, store.wal_bytes);
            self.put("storage.wal.syncs", NO_TAG, store.wal_syncs);
            self.put("storage.memtable.bytes", NO_TAG, store.memtable_bytes);
            self.put("storage.files", NO_TAG, store.files_count);
            self.put("storage.file.bytes", NO_TAG, store.file_bytes);
            self.put("storage.flushes", NO_TAG, store.flushes);
            self.put("storage.compactions", NO_TAG, store.compactions);
        }
    }
}

impl Stats {
    /// The cluster's client, by the names of OpenTSDB's own.
    fn cluster(&mut self, figures: &Figures) {
        let of = |method: &str| figures.calls.iter().filter(|(name, _)| *name == method).map(|(_, count)| count).sum();
        self.put("hbase.root_lookups", NO_TAG, 0);
        self.put("hbase.meta_lookups", ("type", "uncontended"), figures.lookups);
        self.put("hbase.meta_lookups", ("type", "contended"), 0);
        for (kind, method) in [("get", "Get"), ("mutate", "Mutate"), ("multi", "Multi"), ("scan", "Scan")] {
            self.put("hbase.rpcs", ("type", kind), of(method));
        }
        self.put("hbase.rpcs.batched", NO_TAG, of("Multi"));
        // Changes go as soon as they are whole: there is no buffer of theirs to flush.
        self.put("hbase.flushes", NO_TAG, 0);
        let sum = |pick: fn(&ServerFigures) -> u64| figures.servers.iter().map(pick).sum();
        self.put("hbase.connections.created", NO_TAG, sum(|server| server.connected));
        self.put("hbase.connections.idle_closed", NO_TAG, 0);
        self.put("hbase.nsre", NO_TAG, figures.relocations);
        self.put("hbase.nsre.rpcs_delayed", NO_TAG, figures.retries);
        self.put("hbase.region_clients.open", NO_TAG, sum(|server| u64::from(server.connections > 0)));
        self.put("hbase.region_clients.idle_closed", NO_TAG, 0);
    }
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
pub(crate) async fn lines(app: &App, now_ms: u64) -> Vec<String> {
    let seconds = now_ms / 1_000;
    let shared: String = shared_tags(app).iter().flat_map(|(key, text)| [" ", key, "=", text]).collect();
    let line = |Stat { name, tags, value }: Stat| {
        let own: String = tags.iter().flat_map(|(key, text)| [" ", key, "=", text]).collect();
        format!("{name} {seconds} {value}{own}{shared}")
    };
    collect(app, Form::Lines).await.into_iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `O-STATS`: the names that OpenTSDB 2.4.1 has of its HBase client, in its order.
    #[test]
    fn o_stats_the_clients_names_are_told() {
        let mut stats = Stats(Vec::new());
        stats.cluster(&Figures { calls: vec![("Multi", 7)], ..Figures::default() });
        let mut names: Vec<_> = stats.0.iter().map(|stat| stat.name.trim_start_matches("tsd.hbase.")).collect();
        names.dedup();
        let real = "root_lookups meta_lookups rpcs rpcs.batched flushes connections.created connections.idle_closed nsre \
                    nsre.rpcs_delayed region_clients.open region_clients.idle_closed";
        assert_eq!(names.join(" "), real);
        assert_eq!(stats.0.iter().find(|stat| stat.name == "tsd.hbase.rpcs.batched").unwrap().value, 7);
    }
}
