//! The table of all settings: name, purpose, reader, writer.

use std::ops::RangeInclusive;

use basalt_engine::Limits;
use basalt_schema::Salting;

use super::Config;
use super::value::Value;

/// One setting.
#[derive(Debug)]
pub(crate) struct Key {
    /// `section.key`, as a TOML file has it.
    pub(crate) name: &'static str,
    /// One line for `basalt config show`.
    pub(crate) about: &'static str,
    /// Reads a text into its field; the error says what was expected.
    pub(crate) set: fn(&mut Config, &str) -> Result<(), String>,
    /// The field as text.
    pub(crate) get: fn(&Config) -> String,
    /// The numbers that it may be, where not all of its type's.
    pub(crate) range: Option<RangeInclusive<u64>>,
}

impl Key {
    /// The setting called `name`, if there is one.
    pub(crate) fn named(name: &str) -> Option<&'static Self> {
        KEYS.iter().find(|key| key.name == name)
    }

    /// Sets the field to what `text` says.
    ///
    /// # Errors
    ///
    /// What was expected.
    pub(crate) fn take(&self, config: &mut Config, text: &str) -> Result<(), String> {
        let taken = (self.set)(config, text);
        let Some(range) = &self.range else { return taken };
        let is_within = |config: &Config| (self.get)(config).parse().is_ok_and(|number: u64| range.contains(&number));
        let taken = taken.ok().filter(|()| is_within(config));
        taken.ok_or_else(|| format!("a whole number from {} to {}", range.start(), range.end()))
    }

    /// The setting whose name is at most three slips of the pen away from `name`.
    pub(crate) fn nearest(name: &str) -> Option<&'static str> {
        let distances = KEYS.iter().map(|key| (slips(name, key.name), key.name));
        distances.min().filter(|(distance, _)| *distance <= 3).map(|(_, near)| near)
    }
}

/// Levenshtein's distance: letters put in, left out or exchanged.
fn slips(left: &str, right: &str) -> usize {
    let mut row: Vec<usize> = (0..=right.len()).collect();
    for (line, from) in left.bytes().enumerate() {
        let mut diagonal = line;
        let mut before = line + 1;
        if let Some(first) = row.first_mut() {
            *first = before;
        }
        for (cell, to) in row.iter_mut().skip(1).zip(right.bytes()) {
            let change = diagonal + usize::from(from != to);
            diagonal = *cell;
            before = change.min(diagonal + 1).min(before + 1);
            *cell = before;
        }
    }
    row.last().copied().unwrap_or(left.len())
}

macro_rules! keys {
    (@range) => { None };
    (@range $range:expr) => { Some($range) };
    ($($section:ident.$field:ident $([$range:expr])?: $about:literal;)*) => {
        /// All settings, grouped by section.
        pub(crate) const KEYS: &[Key] = &[$(Key {
            name: concat!(stringify!($section), ".", stringify!($field)),
            about: $about,
            set: |config, text| {
                config.$section.$field = Value::read(text)?;
                Ok(())
            },
            get: |config| config.$section.$field.show(),
            range: keys!(@range $($range)?),
        }),*];
    };
}

/// A store may hold twice as many bytes of memtables, all of one family. Its cells have numbers of four bytes, take 20 bytes,
/// and are kept in rooms of powers of two.
const MEMTABLES_BYTES_MAX: u64 = 16 << 30;
const _: () = assert!(2 * MEMTABLES_BYTES_MAX / 20 * 2 <= u32::MAX as u64);
/// With less many batches find no room, and with nothing none does.
const MEMTABLES_BYTES_MIN: u64 = 1 << 20;
/// With none of it no cluster answers in time, so 0 is not "no limit" where this is the bound.
const DAY_MS: u64 = 86_400_000;

keys! {
    server.listen: "address and port for HTTP and telnet; port 0 takes a free one";
    server.insecure: "allow an address that other machines reach, without authentication";
    server.mode: "endpoints that are served: rw all, ro none that writes, wo none that reads points";
    server.max_connections: "connections at once; further ones are closed; 0 is as many as the system gives";
    server.header_timeout_ms: "longest wait for the first byte of a connection; 0 is no limit";
    server.idle_timeout_ms: "longest silence of an HTTP connection, between and within requests; 0 is no limit";
    server.shutdown_timeout_ms: "time that open requests get to finish after SIGTERM, and after them what waits to be published; 0 is none";
    server.worker_threads [0..=1_024]: "threads that serve connections, and as many more for plain puts; 0 is one a processor";
    server.backlog: "connections that may wait to be accepted";
    server.allow_diediedie: "let a client stop the server by `diediedie`; where tokens are asked for, an administrator's is needed";
    server.auth_allow_all: "answer telnet `auth` as OpenTSDB's own plugin does, which lets everybody in";
    server.auth_file: "file of names, roles and hashes of tokens (`basalt token`); a request without a token of the file is refused; empty for no authentication";
    server.auth_reload_ms: "how often that file is read again; 0 is never";
    server.stats_with_port: "add a tag `port` to the numbers of /api/stats";
    server.stats_canonical: "name the host in /api/stats with its domain";
    http.max_body_bytes [0..=2 << 30]: "largest request body, counted after decompression; more than 200000 points in one are refused as well (413)";
    http.bodies_bytes_max [0..=1 << 40]: "bytes that all request bodies of 1 MiB and more together may hold; less than http.max_body_bytes counts as that; further ones get 503 and Retry-After";
    http.max_header_bytes [0..=16 << 20]: "request line and headers together; what comes at once with their last bytes may be as much again; less than 8192 counts as 8192; more than 100 headers are refused as well (431)";
    http.enable_api: "serve the paths below /api";
    http.enable_ui: "serve the pages and the paths older than /api";
    http.enable_chunked: "take request bodies in chunks";
    http.cors_domains: "origins whose pages may ask, comma between them, or * for all; empty for none";
    http.cors_headers: "request headers that pages of other origins may send";
    telnet.max_line_bytes [0..=16 << 20]: "bytes of a telnet line that may wait for its end; a line that is there whole is taken at any length";
    telnet.idle_timeout_ms: "longest silence of a telnet connection; 0 is no limit";
    telnet.return_errors: "answer bad telnet puts with an error line";
    store.kind: "where the tables are: embedded in data_dir, memory (nothing is kept), or hbase (a cluster)";
    store.data_dir: "folder of the embedded store";
    store.durability: "a write is acknowledged when it is on disk (fsync), with the operating system (os: a power loss or crash of the machine may lose the last second), or in memory (async: a crash of the program too may lose the last second)";
    store.memtable_bytes [0..=MEMTABLES_BYTES_MAX]: "bytes of one region's memtable at which it is flushed";
    store.memtables_bytes [MEMTABLES_BYTES_MIN..=MEMTABLES_BYTES_MAX]: "bytes of all memtables at which the largest is flushed; from one and a half times that on puts wait, at twice they are refused with 503 and Retry-After";
    store.wal_segment_bytes [0..=Limits::WAL_SEGMENT_BYTES_MAX]: "length of a log segment";
    store.wal_bytes_max [0..=1 << 40]: "bytes of log in full segments at which the oldest memtable is flushed";
    store.block_cache_bytes [0..=1 << 40]: "bytes of blocks of files, and of their indexes, kept in memory";
    store.bloom_filters_bytes [0..=1 << 40]: "bytes of bloom filters of files kept in memory, of which one may have an eighth";
    store.reserve_bytes [0..=64 << 30]: "length of the file RESERVE, which is released on a full disk so that memtables can still be flushed; 0 for none";
    store.scrub_interval_ms: "how long after its last proof a file is read and proved anew while the server runs (three weeks unless set), so that damage is told before somebody needs the bytes; 0 is never";
    hbase.masters: "masters or region servers of store hbase, host:port with comma between them";
    hbase.zookeeper_quorum: "ZooKeeper's servers, asked for the cluster where no masters are named";
    hbase.zookeeper_root: "node of ZooKeeper's below which HBase keeps its own";
    hbase.user: "name that the cluster's access rules see";
    hbase.call_timeout_ms [1..=DAY_MS]: "longest wait for one answer of a server of the cluster";
    hbase.operation_timeout_ms [1..=DAY_MS]: "longest wait for a read or a write over all attempts; after it the answer is 503, and the outcome of a write is unknown";
    hbase.fsync_wal: "sync HBase's log to its disks before a write is acknowledged, where HBase would keep it in memory thrice";
    hbase.compression: "COMPRESSION of tables that are made; the cluster must have the codec";
    schema.data_table: "table of points";
    schema.uid_table: "table of names and UIDs";
    schema.tree_table: "table of trees";
    schema.meta_table: "table of the series' meta objects";
    schema.uid_cache_entries: "names and UIDs kept in memory, for each kind and each direction, within 256 bytes each: a longer name takes the place of several";
    schema.salt_width [0..=8]: "bytes of salt before each row key; over HBase 0 unless set; fixed when the store is made";
    schema.salt_buckets [0..=Salting::BUCKETS_MAX as u64]: "salt buckets, at least 1 where rows are salted, at most 256 where the salt is one byte; 20 unless told where an opentsdb.conf gives the salt's width; fixed when the store is made";
    schema.uid_width_metric [1..=8]: "bytes of a metric UID; fixed when the store is made";
    schema.uid_width_tagk [1..=8]: "bytes of a tag key UID; fixed when the store is made";
    schema.uid_width_tagv [1..=8]: "bytes of a tag value UID; fixed when the store is made";
    schema.max_tags: "most tags of one point";
    schema.auto_create_metrics: "give new metrics a UID at their first point";
    schema.auto_create_tagks: "give new tag keys a UID at their first point";
    schema.auto_create_tagvs: "give new tag values a UID at their first point";
    schema.allow_specialchars: "characters allowed in names besides letters, digits and -_./";
    schema.enable_appends: "append the points of a row to one cell";
    schema.repair_appends: "let queries put the points of old append cells in order";
    schema.fix_duplicates: "put the points of a row that come in one request as one cell (HBase only). Set it only if every OpenTSDB on the same tables sets `tsd.storage.fix_duplicates`; one without it cannot read a row in which a point was sent twice with different values";
    schema.use_otsdb_timestamp: "give cells the times of their points, without effect where points are appended; neither queries, `basalt scan` nor `fsck` delete then; a folder keeps it and use_max_value as it was last served, for tools";
    schema.use_max_value: "with use_otsdb_timestamp, of two values at one instant keep the larger, else the smaller; of two of one type and length that are not folded yet the later stays";
    schema.histograms: "codecs of histograms and their ids: JSON, or the name of a .json file; empty for none";
    uid.random_metrics: "draw UIDs of metrics at random instead of counting them up";
    uid.filter: "give UIDs only to new names that match the patterns below";
    uid.metric_patterns: "regular expressions, all of which a new metric must match";
    uid.tagk_patterns: "regular expressions, all of which a new tag key must match";
    uid.tagv_patterns: "regular expressions, all of which a new tag value must match";
    uid.pattern_delimiter: "regular expression between two patterns";
    uid.preload: "read names into memory at start";
    uid.preload_entries: "most names of each kind to read at start";
    meta.realtime_uid: "keep a meta object of each name from when it gets its UID";
    meta.realtime_ts: "keep a meta object of each series from its first point";
    meta.tsuid_incrementing: "count the points of each series in the meta table";
    meta.tsuid_tracking: "keep in the meta table when each series was last written to";
    meta.tree_processing: "put series that get a meta object into the enabled trees";
    rollups.enable: "keep rollups where rollups.config names tables";
    rollups.config: "intervals, tables and aggregates of rollups: JSON, or the name of a .json file; empty for none";
    rollups.tag_raw: "tag rollups of single series with raw_agg_tag_value";
    rollups.agg_tag_key: "key of the tag that tells how series were joined";
    rollups.raw_agg_tag_value: "value of that tag on rollups of single series";
    rollups.block_derived: "refuse averages and deviations as rollups";
    rollups.split_query: "answer what is newer than a rollup's delaySla from the points themselves";
    rewrite.enable: "over HBase, fold the rows of an hour past into one cell each, where no other daemon does it";
    rewrite.interval_ms: "how often a share of the waiting rows is rewritten, spread over this time";
    rewrite.rows_min: "rewrite at least so many rows in an interval, or all that are due if there are fewer";
    rewrite.speed [0..=1_000_000]: "how fast waiting rows are worked off: all of them within 1 hour divided by this number";
    rewrite.queue_rows_max: "rows that may wait to be rewritten; further ones stay in single cells";
    rewrite.catch_up_hours [0..=720]: "hours before the start whose rows are looked at again";
    rewrite.quiet_ms [1_000..=DAY_MS]: "a row is rewritten only after it had no new cell for this long, which covers how far region servers' clocks differ";
    query.timeout_ms: "longest time of one query; 0 is no limit";
    query.max_concurrent [1..=65_536]: "queries, and others whose answers may be as large, that run at once, of which half may be large";
    query.max_waiting [0..=1_048_576]: "queries that may wait for their turn; further ones get 503, and so do those that waited for 10 seconds";
    query.max_points: "most points that one sub query may read; an hour answered from its summary counts as one; 0 is no limit";
    query.max_bytes: "most bytes that one sub query may read; 0 is no limit";
    query.max_series: "most series that one sub query may read; 0 is no limit beside query.memory_bytes";
    query.memory_bytes: "bytes that all queries together may hold; 0 is no limit";
    query.allow_override_points: "let a request lift query.max_points for itself";
    query.allow_override_bytes: "let a request lift query.max_bytes for itself";
    query.allow_duplicates: "let an address ask what it is asking already";
    query.limits_file: "JSON file of limits by metric: a list of regex, byteLimit and dataPointsLimit; empty for none";
    query.limits_reload_ms: "how often query.limits_file is read again; 0 is never";
    query.skip_unresolved_tagvs: "with compat.strict, leave unknown tag values of a filter out instead of failing; otherwise that is always so";
    query.allow_delete: "allow queries that delete what they match";
    query.timezone: "time zone of dates in queries that name none";
    publish.enable: "publish points and annotations as they are stored";
    publish.to: "target: unix:PATH of a listening socket, or file:PATH to append to";
    publish.queue_bytes: "bytes that may wait to be written; more is dropped and counted";
    compat.strict: "behave as OpenTSDB does even where that surprises";
    log.level: "error, warn, info, debug, trace, or a filter such as info,basalt=debug";
    log.format: "auto (text on a terminal, else json), text or json";
    log.allow_change: "let a client set the level by /logs?level=; where tokens are asked for, an administrator's is needed";
    log.slow_query_ms: "queries that take longer are logged; 0 logs all";
}
