//! The sections of the configuration: their settings and defaults.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use super::value::words;
use crate::threads;

/// Request headers that other origins may send, unless told otherwise; OpenTSDB's own list.
const CORS_HEADERS: &str = "Authorization, Content-Type, Accept, Origin, User-Agent, DNT, Cache-Control, \
     X-Mx-ReqToken, Keep-Alive, X-Requested-With, If-Modified-Since";

/// Which store keeps the tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum StoreKind {
    /// The store built into this program: durable, in the data folder.
    Embedded,
    /// Nothing on disk: everything is gone at the end. For trying out and for tests.
    Memory,
    /// A real `HBase` cluster.
    #[value(help = "A real HBase cluster, which the settings `hbase.*` find")]
    Hbase,
}
words!(StoreKind { Embedded = "embedded", Memory = "memory", Hbase = "hbase" });

/// When an acknowledged write is safe; `HBase`'s levels, named by what they do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Durability {
    /// On the disk itself.
    Fsync,
    /// Handed to the operating system: survives a crash of the program, not of the machine.
    Os,
    /// Written soon after.
    Async,
}
words!(Durability { Fsync = "fsync", Os = "os", Async = "async" });

/// Which endpoints and telnet commands there are; OpenTSDB's `tsd.mode`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    /// All.
    ReadWrite,
    /// None that writes.
    ReadOnly,
    /// None that reads points.
    WriteOnly,
}
words!(Mode { ReadWrite = "rw", ReadOnly = "ro", WriteOnly = "wo" });

/// How log lines look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LogFormat {
    /// Text on a terminal, JSON otherwise.
    Auto,
    /// For people.
    Text,
    /// One JSON object a line.
    Json,
}
words!(LogFormat { Auto = "auto", Text = "text", Json = "json" });

/// `[server]`: the port and its connections.
#[derive(Clone, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is a switch of its own")]
pub(crate) struct Server {
    pub(crate) listen: SocketAddr,
    pub(crate) insecure: bool,
    pub(crate) mode: Mode,
    pub(crate) max_connections: usize,
    pub(crate) header_timeout_ms: Duration,
    pub(crate) idle_timeout_ms: Duration,
    pub(crate) shutdown_timeout_ms: Duration,
    pub(crate) worker_threads: usize,
    pub(crate) backlog: u32,
    pub(crate) allow_diediedie: bool,
    pub(crate) auth_allow_all: bool,
    pub(crate) auth_file: String,
    pub(crate) auth_reload_ms: Duration,
    pub(crate) stats_with_port: bool,
    pub(crate) stats_canonical: bool,
}

impl Server {
    /// How long a connection may wait to send its first byte.
    pub(crate) const fn header_patience(&self) -> Duration {
        patience(self.header_timeout_ms)
    }

    /// How long an HTTP connection may stay silent.
    pub(crate) const fn idle_patience(&self) -> Duration {
        patience(self.idle_timeout_ms)
    }
}

/// A time limit of which 0 means none: a century then, so that it can be added to an instant.
const fn patience(limit: Duration) -> Duration {
    const FOREVER: Duration = Duration::from_hours(100 * 365 * 24);
    if limit.is_zero() { FOREVER } else { limit }
}

impl Default for Server {
    fn default() -> Self {
        Self {
            listen: SocketAddr::from((Ipv4Addr::LOCALHOST, 4242)),
            insecure: false,
            mode: Mode::ReadWrite,
            max_connections: 1_024,
            // Telnet's, as nobody knows yet that it is not: a collector may connect long before it has a line to send.
            header_timeout_ms: Telnet::default().idle_timeout_ms,
            idle_timeout_ms: Duration::from_mins(1),
            shutdown_timeout_ms: Duration::from_secs(30),
            worker_threads: 0,
            backlog: 1_024,
            allow_diediedie: false,
            auth_allow_all: false,
            auth_file: String::new(),
            auth_reload_ms: Duration::from_secs(10),
            stats_with_port: false,
            stats_canonical: false,
        }
    }
}

/// `[http]`.
#[derive(Clone, Debug)]
pub(crate) struct Http {
    pub(crate) max_body_bytes: usize,
    pub(crate) bodies_bytes_max: usize,
    pub(crate) max_header_bytes: usize,
    pub(crate) enable_api: bool,
    pub(crate) enable_ui: bool,
    pub(crate) enable_chunked: bool,
    pub(crate) cors_domains: String,
    pub(crate) cors_headers: String,
}

impl Http {
    /// The largest head that is taken; hyper holds none to less than 8 KiB.
    pub(crate) fn head_bytes_max(&self) -> usize {
        self.max_header_bytes.max(8 << 10)
    }

    /// What all large bodies may hold: the largest one fits.
    pub(crate) fn bodies_bytes(&self) -> usize {
        self.bodies_bytes_max.max(self.max_body_bytes)
    }
}

impl Default for Http {
    fn default() -> Self {
        Self {
            max_body_bytes: 32 << 20,
            bodies_bytes_max: 512 << 20,
            max_header_bytes: 64 << 10,
            enable_api: true,
            enable_ui: true,
            enable_chunked: true,
            cors_domains: String::new(),
            cors_headers: CORS_HEADERS.to_owned(),
        }
    }
}

/// `[telnet]`.
#[derive(Clone, Debug)]
pub(crate) struct Telnet {
    pub(crate) max_line_bytes: usize,
    pub(crate) idle_timeout_ms: Duration,
    pub(crate) return_errors: bool,
}

impl Default for Telnet {
    fn default() -> Self {
        Self { max_line_bytes: 1_024, idle_timeout_ms: Duration::from_mins(15), return_errors: true }
    }
}

/// `[store]`.
#[derive(Clone, Debug)]
pub(crate) struct Store {
    pub(crate) kind: StoreKind,
    pub(crate) data_dir: PathBuf,
    pub(crate) durability: Durability,
    pub(crate) memtable_bytes: u64,
    pub(crate) memtables_bytes: u64,
    pub(crate) wal_segment_bytes: u64,
    pub(crate) wal_bytes_max: u64,
    pub(crate) block_cache_bytes: u64,
    pub(crate) bloom_filters_bytes: u64,
    pub(crate) reserve_bytes: u64,
    pub(crate) scrub_interval_ms: Duration,
}

impl Default for Store {
    fn default() -> Self {
        let engine = basalt_engine::Limits::default();
        Self {
            kind: StoreKind::Embedded,
            data_dir: PathBuf::from("basalt-data"),
            durability: Durability::Fsync,
            memtable_bytes: engine.memtable_bytes,
            memtables_bytes: engine.memtables_bytes,
            wal_segment_bytes: engine.wal_segment_bytes,
            wal_bytes_max: engine.wal_bytes_max,
            block_cache_bytes: engine.block_cache_bytes,
            bloom_filters_bytes: engine.bloom_filters_bytes,
            reserve_bytes: engine.reserve_bytes,
            scrub_interval_ms: engine.scrub_interval,
        }
    }
}

/// `[hbase]`: the cluster of `store.kind = hbase`.
#[derive(Clone, Debug)]
pub(crate) struct Hbase {
    pub(crate) masters: String,
    pub(crate) zookeeper_quorum: String,
    pub(crate) zookeeper_root: String,
    pub(crate) user: String,
    pub(crate) call_timeout_ms: Duration,
    pub(crate) operation_timeout_ms: Duration,
    pub(crate) fsync_wal: bool,
    pub(crate) compression: String,
}

impl Default for Hbase {
    fn default() -> Self {
        let client = basalt_hbase::HBaseOptions::of_masters([]);
        Self {
            masters: String::new(),
            // As OpenTSDB has it.
            zookeeper_quorum: "localhost".to_owned(),
            zookeeper_root: client.zookeeper_root,
            user: client.user,
            call_timeout_ms: client.call_timeout,
            operation_timeout_ms: client.operation_timeout,
            fsync_wal: client.fsync_wal,
            compression: client.compression,
        }
    }
}

/// `[schema]`: OpenTSDB's tables.
#[derive(Clone, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is a switch of its own")]
pub(crate) struct Schema {
    pub(crate) data_table: String,
    pub(crate) uid_table: String,
    pub(crate) tree_table: String,
    pub(crate) meta_table: String,
    pub(crate) uid_cache_entries: usize,
    pub(crate) salt_width: u8,
    pub(crate) salt_buckets: u16,
    pub(crate) uid_width_metric: u8,
    pub(crate) uid_width_tagk: u8,
    pub(crate) uid_width_tagv: u8,
    pub(crate) max_tags: u8,
    pub(crate) auto_create_metrics: bool,
    pub(crate) auto_create_tagks: bool,
    pub(crate) auto_create_tagvs: bool,
    pub(crate) allow_specialchars: String,
    pub(crate) enable_appends: bool,
    pub(crate) repair_appends: bool,
    pub(crate) fix_duplicates: bool,
    pub(crate) use_otsdb_timestamp: bool,
    pub(crate) use_max_value: bool,
    pub(crate) histograms: String,
}

impl Default for Schema {
    fn default() -> Self {
        Self {
            data_table: "tsdb".to_owned(),
            uid_table: "tsdb-uid".to_owned(),
            tree_table: "tsdb-tree".to_owned(),
            meta_table: "tsdb-meta".to_owned(),
            uid_cache_entries: 1 << 20,
            salt_width: 1,
            salt_buckets: 16,
            uid_width_metric: 3,
            uid_width_tagk: 3,
            uid_width_tagv: 3,
            max_tags: 8,
            auto_create_metrics: true,
            auto_create_tagks: true,
            auto_create_tagvs: true,
            allow_specialchars: String::new(),
            enable_appends: false,
            repair_appends: false,
            fix_duplicates: false,
            use_otsdb_timestamp: false,
            use_max_value: true,
            histograms: String::new(),
        }
    }
}

/// `[rollups]`: what tables of rollups there are.
#[derive(Clone, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is a setting of OpenTSDB's")]
pub(crate) struct Rollups {
    pub(crate) enable: bool,
    pub(crate) config: String,
    pub(crate) tag_raw: bool,
    pub(crate) agg_tag_key: String,
    pub(crate) raw_agg_tag_value: String,
    pub(crate) block_derived: bool,
    pub(crate) split_query: bool,
}

impl Default for Rollups {
    fn default() -> Self {
        Self {
            enable: false,
            config: String::new(),
            tag_raw: false,
            agg_tag_key: "_aggregate".to_owned(),
            raw_agg_tag_value: "RAW".to_owned(),
            block_derived: true,
            split_query: false,
        }
    }
}

/// `[rewrite]`: how rows are folded on a store that has no fold of its own.
#[derive(Clone, Debug)]
pub(crate) struct Rewrite {
    pub(crate) enable: bool,
    pub(crate) interval_ms: Duration,
    pub(crate) rows_min: u64,
    pub(crate) speed: u64,
    pub(crate) queue_rows_max: u64,
    pub(crate) catch_up_hours: u32,
    pub(crate) quiet_ms: Duration,
}

impl Default for Rewrite {
    fn default() -> Self {
        let limits = basalt_rewrite::RewriteLimits::default();
        Self {
            enable: true,
            interval_ms: Duration::from_secs(10),
            rows_min: limits.rows_min,
            speed: limits.speed,
            queue_rows_max: limits.queue_rows_max,
            catch_up_hours: 2,
            quiet_ms: Duration::from_millis(limits.quiet_ms),
        }
    }
}

/// `[uid]`: how names get their UIDs.
#[derive(Clone, Debug)]
pub(crate) struct Uid {
    pub(crate) random_metrics: bool,
    pub(crate) filter: bool,
    pub(crate) metric_patterns: String,
    pub(crate) tagk_patterns: String,
    pub(crate) tagv_patterns: String,
    pub(crate) pattern_delimiter: String,
    pub(crate) preload: bool,
    pub(crate) preload_entries: u64,
}

impl Default for Uid {
    fn default() -> Self {
        Self {
            random_metrics: false,
            filter: false,
            metric_patterns: String::new(),
            tagk_patterns: String::new(),
            tagv_patterns: String::new(),
            pattern_delimiter: ",".to_owned(),
            preload: false,
            preload_entries: 300_000,
        }
    }
}

/// `[meta]`: what is kept of names and series as points come.
#[derive(Clone, Debug, Default)]
#[expect(clippy::struct_excessive_bools, reason = "each is a switch of its own, as in OpenTSDB")]
pub(crate) struct Meta {
    pub(crate) realtime_uid: bool,
    pub(crate) realtime_ts: bool,
    pub(crate) tsuid_incrementing: bool,
    pub(crate) tsuid_tracking: bool,
    pub(crate) tree_processing: bool,
}

/// `[query]`.
#[derive(Clone, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is a switch of its own")]
pub(crate) struct Query {
    pub(crate) timeout_ms: Duration,
    pub(crate) max_concurrent: usize,
    pub(crate) max_waiting: usize,
    pub(crate) max_points: u64,
    pub(crate) max_bytes: u64,
    pub(crate) max_series: usize,
    pub(crate) memory_bytes: u64,
    pub(crate) allow_override_points: bool,
    pub(crate) allow_override_bytes: bool,
    pub(crate) allow_duplicates: bool,
    pub(crate) limits_file: String,
    pub(crate) limits_reload_ms: Duration,
    pub(crate) skip_unresolved_tagvs: bool,
    pub(crate) allow_delete: bool,
    pub(crate) timezone: String,
}

impl Default for Query {
    fn default() -> Self {
        let processors = threads::processors();
        Self {
            timeout_ms: Duration::from_mins(1),
            max_concurrent: processors * 2,
            // A dashboard asks for all its panels at once, and one who waits holds no thread.
            max_waiting: (processors * 16).max(256),
            max_points: 200_000_000,
            max_bytes: 4 << 30,
            max_series: 1_000_000,
            memory_bytes: 1 << 30,
            allow_override_points: false,
            allow_override_bytes: false,
            allow_duplicates: true,
            limits_file: String::new(),
            limits_reload_ms: Duration::from_mins(1),
            skip_unresolved_tagvs: false,
            allow_delete: false,
            timezone: "UTC".to_owned(),
        }
    }
}

/// `[publish]`: points and annotations to others on this machine.
#[derive(Clone, Debug)]
pub(crate) struct Publish {
    pub(crate) enable: bool,
    pub(crate) to: String,
    pub(crate) queue_bytes: u64,
}

impl Default for Publish {
    fn default() -> Self {
        Self { enable: false, to: String::new(), queue_bytes: 16 << 20 }
    }
}

/// `[compat]`.
#[derive(Clone, Debug, Default)]
pub(crate) struct Compat {
    pub(crate) strict: bool,
}

/// `[log]`.
#[derive(Clone, Debug)]
pub(crate) struct Log {
    pub(crate) level: String,
    pub(crate) format: LogFormat,
    pub(crate) allow_change: bool,
    pub(crate) slow_query_ms: Duration,
}

impl Default for Log {
    fn default() -> Self {
        Self {
            level: "info".to_owned(),
            format: LogFormat::Auto,
            allow_change: false,
            slow_query_ms: Duration::from_secs(1),
        }
    }
}
