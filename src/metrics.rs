//! What the daemon counts about itself: one set of numbers behind `/metrics`, `/api/stats` and the
//! telnet command `stats`.
//!
//! Points are counted by `ingest`; when nothing is under way, for each door, points received =
//! stored + Σ rejected{reason} + Σ failed{reason}. Everything else is counted here.

mod latency;
mod levels;

use std::fmt::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use basalt_engine::Stats;
use basalt_hbase::{Figures, ServerFigures};
use basalt_ingest::{Door, DoorCounts, IngestCounts, ProblemClass};
use basalt_rewrite::RewriteCounts;

use self::latency::Latency;

/// A plain counter. Orderings are relaxed: numbers are shown, nothing is decided by them.
#[derive(Debug, Default)]
pub(crate) struct Count(AtomicU64);

impl Count {
    pub(crate) fn add(&self, more: u64) {
        self.0.fetch_add(more, Ordering::Relaxed);
    }

    pub(crate) fn sub(&self, fewer: u64) {
        self.0.fetch_sub(fewer, Ordering::Relaxed);
    }

    pub(crate) fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    /// One more until the answer is dropped, by a panic too.
    pub(crate) fn hold(&self) -> CountGuard<'_> {
        self.add(1);
        CountGuard(self)
    }
}

/// One of what a [`Count`] counts.
#[derive(Debug)]
pub(crate) struct CountGuard<'a>(&'a Count);

impl Drop for CountGuard<'_> {
    fn drop(&mut self) {
        self.0.sub(1);
    }
}

/// Requests or commands that were refused for who sent them.
#[derive(Debug, Default)]
pub(crate) struct Refused {
    /// Nobody known.
    pub(crate) unauthorized: Count,
    /// Somebody whose role does not allow it.
    pub(crate) forbidden: Count,
}

/// All counters of the process.
#[derive(Debug, Default)]
pub(crate) struct Metrics {
    pub(crate) connections_open: Count,
    pub(crate) connections_total: Count,
    pub(crate) connections_rejected: Count,
    pub(crate) http_requests: Count,
    /// Those answered with 500.
    pub(crate) http_failed: Count,
    pub(crate) telnet_commands: Count,
    pub(crate) telnet_errors_unread: Count,
    /// Answers that damaged bytes were found for.
    pub(crate) corruption: Count,
    pub(crate) http_refused: Refused,
    /// Those of `http_refused` that were queries.
    pub(crate) query_refused: Refused,
    pub(crate) telnet_refused: Refused,
    pub(crate) put_requests: Count,
    /// Those of `put_requests` that the router never saw.
    pub(crate) puts_plain: Count,
    pub(crate) queries_running: Arc<Count>,
    pub(crate) queries_ok: Count,
    pub(crate) queries_bad: Count,
    pub(crate) queries_failed: Count,
    pub(crate) queries_shed: Count,
    pub(crate) queries_cancelled: Count,
    pub(crate) put_latency: Latency,
    pub(crate) query_latency: Latency,
    /// From a query to the end of its picture.
    pub(crate) graph_latency: Latency,
    pub(crate) http_latency: Latency,
}

impl Metrics {
    /// The numbers in Prometheus' text form, version 0.0.4.
    pub(crate) fn page(&self, points: &IngestCounts) -> Page {
        let mut page = Page::default();
        ingest_lines(&mut page, points);
        for (name, kind, about, value) in [
            ("basalt_connections_open", "gauge", "Connections open now.", &self.connections_open),
            ("basalt_connections_total", "counter", "Connections accepted.", &self.connections_total),
            (
                "basalt_connections_rejected_total",
                "counter",
                "Connections closed at once because too many were open.",
                &self.connections_rejected,
            ),
            ("basalt_http_requests_total", "counter", "HTTP requests.", &self.http_requests),
            (
                "basalt_http_failed_total",
                "counter",
                "Those of the HTTP requests that were answered 500.",
                &self.http_failed,
            ),
            (
                "basalt_http_puts_plain_total",
                "counter",
                "Those of the HTTP requests that were plain puts, which take the fast path.",
                &self.puts_plain,
            ),
            ("basalt_telnet_commands_total", "counter", "Telnet commands.", &self.telnet_commands),
            (
                "basalt_telnet_errors_unread_total",
                "counter",
                "Telnet error lines dropped because the peer does not read.",
                &self.telnet_errors_unread,
            ),
            (
                "basalt_corruption_total",
                "counter",
                "Requests that met damaged bytes; the log says where they are.",
                &self.corruption,
            ),
            ("basalt_queries_running", "gauge", "Queries running now.", &self.queries_running),
        ] {
            page.head(name, kind, about);
            page.line(name, "", value.get());
        }
        page.head("basalt_refused_total", "counter", "Requests and commands refused for who sent them, by door.");
        for (door, refused) in [("http", &self.http_refused), ("telnet", &self.telnet_refused)] {
            for (reason, count) in [("unauthorized", &refused.unauthorized), ("forbidden", &refused.forbidden)] {
                page.line("basalt_refused_total", &format!("{{door=\"{door}\",reason=\"{reason}\"}}"), count.get());
            }
        }
        page.head("basalt_queries_total", "counter", "Queries by outcome.");
        for (outcome, value) in [
            ("ok", &self.queries_ok),
            ("invalid", &self.queries_bad),
            ("failed", &self.queries_failed),
            ("shed", &self.queries_shed),
            ("cancelled", &self.queries_cancelled),
        ] {
            page.line("basalt_queries_total", &format!("{{outcome=\"{outcome}\"}}"), value.get());
        }
        page.latency("basalt_put_seconds", "Time from a put's body to its durable acknowledgement.", &self.put_latency);
        page.latency("basalt_query_seconds", "Time from a query to the end of its answer.", &self.query_latency);
        page.latency("basalt_graph_seconds", "Time from a query to the end of its picture.", &self.graph_latency);
        page.latency("basalt_http_seconds", "Time from an HTTP request to the head of its answer.", &self.http_latency);
        page.head("basalt_log_lines_suppressed_total", "counter", "Log lines left out as repetitions.");
        page.line("basalt_log_lines_suppressed_total", "", crate::log::suppressed());
        page.head("basalt_log_lines_lost_total", "counter", "Log lines lost: those before were not read, or no room.");
        page.line("basalt_log_lines_lost_total", "", crate::log::lost());
        page
    }
}

/// One number of a door.
type Pick = fn(&DoorCounts) -> u64;

fn ingest_lines(page: &mut Page, points: &IngestCounts) {
    let sums: [(&str, &str, Pick); 3] = [
        ("basalt_points_received_total", "Points that came in: stored + rejected + failed + under way.", |counts| {
            counts.received
        }),
        ("basalt_points_stored_total", "Points that are durable.", |counts| counts.stored),
        (
            "basalt_points_superseded_total",
            "Points stored of which a later one of the same batch has the same series and instant.",
            |counts| counts.superseded,
        ),
    ];
    for (name, about, pick) in sums {
        page.head(name, "counter", about);
        for (door, counts) in Door::ALL.iter().zip(&points.doors) {
            page.line(name, &format!("{{door=\"{}\"}}", door.label()), pick(counts));
        }
    }
    for (name, about, rejection) in [
        ("basalt_points_rejected_total", "Points refused as bad, by reason.", true),
        ("basalt_points_failed_total", "Good points that could not be stored, by reason.", false),
    ] {
        page.head(name, "counter", about);
        for (door, counts) in Door::ALL.iter().zip(&points.doors) {
            let reasons = ProblemClass::ALL.iter().zip(counts.not);
            for (class, count) in reasons.filter(|(class, _)| class.is_rejection() == rejection) {
                page.line(name, &format!("{{door=\"{}\",reason=\"{}\"}}", door.label(), class.label()), count);
            }
        }
    }
    page.head("basalt_put_bodies_refused_total", "counter", "Put bodies refused whole, however many points they held.");
    page.line("basalt_put_bodies_refused_total", "", points.bodies_refused);
}

/// A number of a region server.
type OfServer = fn(&ServerFigures) -> u64;

/// Names, kinds and meanings of what is counted by region server.
const SERVER_LINES: [(&str, &str, &str, OfServer); 10] = [
    ("basalt_hbase_connections_open", "gauge", "Connections open now, by server.", |of| of.connections),
    ("basalt_hbase_connections_total", "counter", "Connections opened, by server.", |of| of.connected),
    ("basalt_hbase_sent_total", "counter", "Calls sent, by server.", |of| of.sent),
    ("basalt_hbase_in_flight", "gauge", "Calls sent and not answered yet, by server.", |of| of.in_flight),
    ("basalt_hbase_waiting", "gauge", "Calls that wait to be sent, by server.", |of| of.waiting),
    ("basalt_hbase_waited_total", "counter", "Calls that found too many in flight, by server.", |of| of.waited),
    ("basalt_hbase_timed_out_total", "counter", "Calls not answered in time, by server.", |of| of.timed_out),
    ("basalt_hbase_late_total", "counter", "Answers to calls that were given up, by server.", |of| of.late),
    ("basalt_hbase_lost_total", "counter", "Calls whose connection ended under way, by server.", |of| of.lost),
    ("basalt_hbase_refused_total", "counter", "Calls answered by an exception, by server.", |of| of.refused),
];

/// A page of Prometheus' text form under construction.
#[derive(Default)]
pub(crate) struct Page(String);

impl Page {
    pub(crate) fn head(&mut self, name: &str, kind: &str, about: &str) {
        self.put(format_args!("# HELP {name} {about}\n# TYPE {name} {kind}\n"));
    }

    pub(crate) fn line(&mut self, name: &str, labels: &str, value: u64) {
        self.put(format_args!("{name}{labels} {value}\n"));
    }

    /// Adds what the rewriter did.
    pub(crate) fn rewriting(&mut self, counts: &RewriteCounts) {
        for (name, kind, about, value) in [
            ("basalt_rewrite_queue_rows", "gauge", "Rows that wait to be folded.", counts.queue_rows),
            (
                "basalt_rewrite_due_rows",
                "gauge",
                "Rows whose time to be folded has come, and those being folded.",
                counts.due_rows,
            ),
            (
                "basalt_rewrite_refused_rows_total",
                "counter",
                "Rows that found the queue full and stay in single cells.",
                counts.refused_rows,
            ),
            ("basalt_rewrite_read_rows_total", "counter", "Rows read to be folded.", counts.rows_read),
            ("basalt_rewrite_rows_total", "counter", "Rows folded.", counts.rows_rewritten),
            ("basalt_rewrite_written_cells_total", "counter", "Folded cells put.", counts.cells_written),
            ("basalt_rewrite_deleted_cells_total", "counter", "Cells deleted after that.", counts.cells_deleted),
            ("basalt_rewrite_damaged_rows_total", "counter", "Rows left alone as damaged.", counts.damaged_rows),
            (
                "basalt_rewrite_hidden_rows_total",
                "counter",
                "Rows left alone as an old tombstone hides their folded cell.",
                counts.hidden_rows,
            ),
        ] {
            self.head(name, kind, about);
            self.line(name, "", value);
        }
        self.head("basalt_rewrite_errors_total", "counter", "Calls of the store that failed.");
        for (call, value) in
            [("read", counts.read_errors), ("put", counts.put_errors), ("delete", counts.delete_errors)]
        {
            self.line("basalt_rewrite_errors_total", &format!("{{call=\"{call}\"}}"), value);
        }
    }

    /// Adds what was asked of a cluster.
    pub(crate) fn cluster(&mut self, figures: &Figures) {
        self.head("basalt_hbase_calls_total", "counter", "Calls by method.");
        for (method, count) in &figures.calls {
            self.line("basalt_hbase_calls_total", &format!("{{method=\"{method}\"}}"), *count);
        }
        for (name, kind, about, value) in [
            ("basalt_hbase_retries_total", "counter", "Attempts after the first.", figures.retries),
            (
                "basalt_hbase_relocations_total",
                "counter",
                "Regions that were not where they were looked for.",
                figures.relocations,
            ),
            ("basalt_hbase_lookups_total", "counter", "Tables whose regions were read.", figures.lookups),
            ("basalt_hbase_regions_kept", "gauge", "Regions whose places are kept.", figures.regions_kept),
        ] {
            self.head(name, kind, about);
            self.line(name, "", value);
        }
        for (name, kind, about, pick) in SERVER_LINES {
            self.head(name, kind, about);
            for server in &figures.servers {
                self.line(name, &format!("{{server=\"{}\"}}", server.server), pick(server));
            }
        }
    }

    /// Adds the embedded store's figures.
    pub(crate) fn store(mut self, stats: &Stats) -> Self {
        for (name, kind, about, value) in [
            ("basalt_wal_bytes", "gauge", "Bytes of log that hold records.", stats.wal_bytes),
            ("basalt_wal_records_total", "counter", "Records written to the log.", stats.wal_records),
            ("basalt_wal_syncs_total", "counter", "Syncs of the log.", stats.wal_syncs),
            ("basalt_memtable_bytes", "gauge", "Bytes in memtables.", stats.memtable_bytes),
            ("basalt_files", "gauge", "SSTables.", stats.files_count),
            ("basalt_file_bytes", "gauge", "Bytes in SSTables.", stats.file_bytes),
            ("basalt_regions", "gauge", "Regions.", stats.regions_count),
            ("basalt_flushes_total", "counter", "Flushes.", stats.flushes),
            ("basalt_flushed_bytes_total", "counter", "Bytes that flushes wrote.", stats.flushed_bytes),
            ("basalt_compactions_total", "counter", "Compactions.", stats.compactions),
            ("basalt_compacted_bytes_total", "counter", "Bytes that compactions wrote.", stats.compacted_bytes),
            ("basalt_block_cache_bytes", "gauge", "Bytes of decoded blocks in memory.", stats.block_cache_bytes),
            ("basalt_block_cache_hits_total", "counter", "Blocks found in memory.", stats.block_cache_hits),
            ("basalt_block_cache_misses_total", "counter", "Blocks read from files.", stats.block_cache_misses),
            ("basalt_file_index_bytes", "gauge", "Memory of SSTables' indexes and filters.", stats.file_index_bytes),
            (
                "basalt_files_without_filter",
                "gauge",
                "SSTables whose bloom filter is not in memory.",
                stats.files_without_filter,
            ),
            ("basalt_splits_total", "counter", "Regions split.", stats.splits),
            (
                "basalt_flush_failures_total",
                "counter",
                "Flushes that failed and are tried again.",
                stats.flush_failures,
            ),
            (
                "basalt_compaction_failures_total",
                "counter",
                "Compactions that failed and are tried again, and splits of regions that grew too large.",
                stats.compaction_failures,
            ),
            ("basalt_scrubbed_bytes_total", "counter", "Bytes of files that were proved.", stats.scrubbed_bytes),
            ("basalt_scrub_damages_total", "counter", "Damaged files that were met.", stats.scrub_damages),
            (
                "basalt_batches_refused_for_memory_total",
                "counter",
                "Batches refused because memtables held too much.",
                stats.refused_for_memory,
            ),
        ] {
            self.head(name, kind, about);
            self.line(name, "", value);
        }
        for (name, kind, about, time) in [
            ("basalt_wal_sync_seconds_total", "counter", "Time spent in syncs of the log.", stats.wal_sync_time),
            ("basalt_wal_sync_seconds_max", "gauge", "The longest sync of the log.", stats.wal_sync_time_max),
            (
                "basalt_clock_behind_seconds",
                "gauge",
                "How far the clock is behind the last time given to a cell.",
                stats.clock_behind,
            ),
        ] {
            self.head(name, kind, about);
            self.put(format_args!("{name} {}\n", time.as_secs_f64()));
        }
        self
    }

    /// The page.
    pub(crate) fn text(self) -> String {
        self.0
    }

    fn latency(&mut self, name: &str, about: &str, latency: &Latency) {
        self.head(name, "histogram", about);
        let look = latency.look();
        for (bound, count) in look.buckets() {
            self.put(format_args!("{name}_bucket{{le=\"{}\"}} {count}\n", bound.as_secs_f64()));
        }
        let (count, sum) = (look.count, look.sum().as_secs_f64());
        self.put(format_args!("{name}_bucket{{le=\"+Inf\"}} {count}\n{name}_sum {sum}\n{name}_count {count}\n"));
    }

    fn put(&mut self, text: std::fmt::Arguments<'_>) {
        // Writing to a String cannot fail.
        self.0.write_fmt(text).unwrap_or_default();
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use basalt_ingest::{IngestStats, Outcome};

    use super::*;

    #[test]
    fn what_comes_in_is_what_became_of_it() {
        let stats = IngestStats::default();
        stats.receive(Door::Http, 12);
        stats.settle(Door::Http, Outcome::Stored, 6);
        stats.settle(Door::Http, Outcome::Not(ProblemClass::IllegalArgument), 4);
        stats.settle(Door::Http, Outcome::Not(ProblemClass::Throttled), 2);
        let page = Metrics::default().page(&stats.counts()).text();
        for line in [
            "basalt_points_received_total{door=\"http\"} 12",
            "basalt_points_stored_total{door=\"http\"} 6",
            "basalt_points_rejected_total{door=\"http\",reason=\"illegal_arguments\"} 4",
            "basalt_points_failed_total{door=\"http\",reason=\"throttled\"} 2",
            "basalt_points_received_total{door=\"telnet\"} 0",
        ] {
            assert!(page.lines().any(|found| found == line), "{line} is not in\n{page}");
        }
    }

    /// The page for operators has each number by its type, those that only a cluster has too.
    #[test]
    fn the_tables_have_each_number_by_its_type() {
        let mut page = Metrics::default().page(&IngestStats::default().counts());
        page.rewriting(&RewriteCounts::default());
        page.cluster(&Figures::default());
        let page = page.store(&Stats::default()).text();
        let tables = include_str!("../docs/operations.md");
        for head in page.lines().filter_map(|line| line.strip_prefix("# TYPE ")) {
            let (name, kind) = head.split_once(' ').unwrap();
            assert!(tables.contains(&format!("\n| `{name}` | {kind} | ")), "docs/operations.md has no {kind} {name}");
        }
    }

    /// Prometheus' conventions: buckets ascend to `+Inf`, which is the count, and no other form of the family is beside them.
    #[test]
    fn a_latency_is_a_histogram() {
        let metrics = Metrics::default();
        for ms in [0, 2, 2, 300, 90_000] {
            metrics.query_latency.record(Duration::from_millis(ms));
        }
        let page = metrics.page(&IngestStats::default().counts()).text();
        let bounds = [
            ("0.0001", 1),
            ("0.00025", 1),
            ("0.0005", 1),
            ("0.001", 1),
            ("0.0025", 3),
            ("0.005", 3),
            ("0.01", 3),
            ("0.025", 3),
            ("0.05", 3),
            ("0.1", 3),
            ("0.25", 3),
            ("0.5", 4),
            ("1", 4),
            ("2.5", 4),
            ("5", 4),
            ("10", 4),
            ("30", 4),
            ("60", 4),
            ("+Inf", 5),
        ];
        let buckets = bounds.map(|(le, count)| format!("basalt_query_seconds_bucket{{le=\"{le}\"}} {count}"));
        let lines: Vec<_> = page.lines().filter(|line| line.starts_with("basalt_query_seconds")).collect();
        let (found, rest) = lines.split_at(buckets.len());
        assert_eq!(found, buckets);
        let [sum, count] = *rest else { panic!("{rest:?}") };
        let sum: f64 = sum.strip_prefix("basalt_query_seconds_sum ").unwrap().parse().unwrap();
        assert!((sum / 90.304 - 1.0).abs() < 0.01, "{sum}");
        assert_eq!(count, "basalt_query_seconds_count 5");
        for of in ["put", "query", "graph", "http"] {
            assert!(page.contains(&format!("# TYPE basalt_{of}_seconds histogram\n")), "{page}");
        }
    }
}
