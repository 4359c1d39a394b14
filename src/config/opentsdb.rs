//! OpenTSDB's own keys: an `opentsdb.conf` is read as it is, and `/api/config` answers in its words.
//!
//! Names and defaults as in OpenTSDB 2.4 (`Config.java`). A key that steers something here is
//! mapped to our setting; a key of theirs that steers nothing here is kept and shown; a key that
//! neither knows is warned about, never an error, since plugins bring their own.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::path::Path;

use super::Config;
use super::value::Value;
use crate::exit::Failure;

/// What an OpenTSDB key does here.
#[derive(Clone, Copy, Debug)]
enum Effect {
    /// Sets our setting of that name, with the same text.
    Is(&'static str),
    /// Sets our settings of these names, in milliseconds where OpenTSDB has seconds; 0 is kept.
    Seconds(&'static [&'static str]),
    /// Sets our setting unless 0, which means "no limit" there.
    Limit(&'static str),
    /// The port of `server.listen`.
    Port,
    /// The address of `server.listen`.
    Bind,
    /// Nothing: accepted and shown.
    Shown,
}
use Effect::{Bind, Is, Limit, Port, Seconds, Shown};

/// OpenTSDB's keys in its order of names: key, default there, effect here.
const KEYS: &[(&str, &str, Effect)] = &[
    ("tsd.core.authentication.enable", "false", Shown),
    ("tsd.core.authentication.plugin", "", Shown),
    ("tsd.core.auto_create_metrics", "false", Is("schema.auto_create_metrics")),
    ("tsd.core.auto_create_tagks", "true", Is("schema.auto_create_tagks")),
    ("tsd.core.auto_create_tagvs", "true", Is("schema.auto_create_tagvs")),
    ("tsd.core.bulk.allow_out_of_order_timestamps", "false", Shown),
    ("tsd.core.connections.limit", "0", Limit("server.max_connections")),
    ("tsd.core.enable_api", "true", Is("http.enable_api")),
    ("tsd.core.enable_ui", "true", Is("http.enable_ui")),
    ("tsd.core.meta.cache.enable", "false", Shown),
    ("tsd.core.meta.enable_realtime_ts", "false", Shown),
    ("tsd.core.meta.enable_realtime_uid", "false", Shown),
    ("tsd.core.meta.enable_tsuid_incrementing", "false", Shown),
    ("tsd.core.meta.enable_tsuid_tracking", "false", Shown),
    ("tsd.core.plugin_path", "", Shown),
    ("tsd.core.preload_uid_cache", "false", Shown),
    ("tsd.core.preload_uid_cache.max_entries", "300000", Shown),
    ("tsd.core.socket.timeout", "0", Seconds(&["server.idle_timeout_ms", "telnet.idle_timeout_ms"])),
    ("tsd.core.stats_with_port", "false", Shown),
    ("tsd.core.storage_exception_handler.enable", "false", Shown),
    ("tsd.core.tag.allow_specialchars", "", Is("schema.allow_specialchars")),
    ("tsd.core.timezone", "", Is("query.timezone")),
    ("tsd.core.tree.enable_processing", "false", Shown),
    ("tsd.core.uid.random_metrics", "false", Shown),
    ("tsd.http.cachedir", "", Shown),
    ("tsd.http.header_tag", "", Shown),
    ("tsd.http.query.allow_delete", "false", Is("query.allow_delete")),
    ("tsd.http.request.cors_domains", "", Is("http.cors_domains")),
    ("tsd.http.request.cors_headers", "", Is("http.cors_headers")),
    ("tsd.http.request.enable_chunked", "true", Shown),
    ("tsd.http.request.max_chunk", "33554432", Is("http.max_body_bytes")),
    ("tsd.http.show_stack_trace", "false", Shown),
    ("tsd.http.staticroot", "", Shown),
    ("tsd.mode", "rw", Is("server.mode")),
    ("tsd.network.async_io", "true", Shown),
    ("tsd.network.bind", "127.0.0.1", Bind),
    ("tsd.network.keep_alive", "true", Shown),
    ("tsd.network.port", "4242", Port),
    ("tsd.network.reuse_address", "true", Shown),
    ("tsd.network.tcp_no_delay", "true", Shown),
    ("tsd.network.worker_threads", "", Shown),
    ("tsd.no_diediedie", "true", Shown),
    ("tsd.query.allow_simultaneous_duplicates", "true", Shown),
    ("tsd.query.enable_fuzzy_filter", "true", Shown),
    ("tsd.query.filter.expansion_limit", "4096", Shown),
    ("tsd.query.limits.bytes.allow_override", "false", Shown),
    ("tsd.query.limits.bytes.default", "0", Limit("query.max_bytes")),
    ("tsd.query.limits.data_points.allow_override", "false", Shown),
    ("tsd.query.limits.data_points.default", "0", Limit("query.max_points")),
    ("tsd.query.limits.overrides.interval", "60000", Shown),
    ("tsd.query.multi_get.batch_size", "1024", Shown),
    ("tsd.query.multi_get.concurrent", "20", Shown),
    ("tsd.query.multi_get.enable", "false", Shown),
    ("tsd.query.multi_get.get_all_salts", "false", Shown),
    ("tsd.query.multi_get.limit", "131072", Shown),
    ("tsd.query.skip_unresolved_tagvs", "false", Is("query.skip_unresolved_tagvs")),
    ("tsd.query.timeout", "0", Limit("query.timeout_ms")),
    ("tsd.rollups.agg_tag_key", "_aggregate", Shown),
    ("tsd.rollups.block_derived", "true", Shown),
    ("tsd.rollups.enable", "false", Shown),
    ("tsd.rollups.raw_agg_tag_value", "RAW", Shown),
    ("tsd.rollups.split_query.enable", "false", Shown),
    ("tsd.rollups.tag_raw", "false", Shown),
    ("tsd.rpc.telnet.return_errors", "true", Is("telnet.return_errors")),
    ("tsd.rtpublisher.enable", "false", Shown),
    ("tsd.rtpublisher.plugin", "", Shown),
    ("tsd.search.enable", "false", Shown),
    ("tsd.search.plugin", "", Shown),
    ("tsd.startup.enable", "false", Shown),
    ("tsd.startup.plugin", "", Shown),
    ("tsd.stats.canonical", "false", Shown),
    ("tsd.storage.compaction.flush_interval", "10", Shown),
    ("tsd.storage.compaction.flush_speed", "2", Shown),
    ("tsd.storage.compaction.max_concurrent_flushes", "10000", Shown),
    ("tsd.storage.compaction.min_flush_threshold", "100", Shown),
    ("tsd.storage.enable_appends", "false", Shown),
    ("tsd.storage.enable_compaction", "true", Shown),
    ("tsd.storage.fix_duplicates", "true", Shown),
    ("tsd.storage.flush_interval", "1000", Shown),
    ("tsd.storage.get_date_tiered_compaction_start", "0", Shown),
    ("tsd.storage.hbase.data_table", "tsdb", Shown),
    ("tsd.storage.hbase.meta_table", "tsdb-meta", Shown),
    ("tsd.storage.hbase.prefetch_meta", "false", Shown),
    ("tsd.storage.hbase.scanner.maxNumRows", "128", Shown),
    ("tsd.storage.hbase.tree_table", "tsdb-tree", Shown),
    ("tsd.storage.hbase.uid_table", "tsdb-uid", Shown),
    ("tsd.storage.hbase.zk_basedir", "/hbase", Shown),
    ("tsd.storage.hbase.zk_quorum", "localhost", Shown),
    ("tsd.storage.max_tags", "8", Is("schema.max_tags")),
    ("tsd.storage.repair_appends", "false", Shown),
    ("tsd.storage.salt.buckets", "16", Is("schema.salt_buckets")),
    ("tsd.storage.salt.width", "1", Is("schema.salt_width")),
    ("tsd.storage.uid.width.metric", "3", Is("schema.uid_width_metric")),
    ("tsd.storage.uid.width.tagk", "3", Is("schema.uid_width_tagk")),
    ("tsd.storage.uid.width.tagv", "3", Is("schema.uid_width_tagv")),
    ("tsd.storage.use_max_value", "true", Shown),
    ("tsd.storage.use_otsdb_timestamp", "false", Shown),
    ("tsd.timeseriesfilter.enable", "false", Shown),
    ("tsd.uid.lru.enable", "false", Shown),
    ("tsd.uid.lru.id.size", "5000000", Shown),
    ("tsd.uid.lru.name.size", "5000000", Shown),
    ("tsd.uid.use_mode", "false", Shown),
    ("tsd.uidfilter.enable", "false", Shown),
];

/// Applies a properties file to `config`.
///
/// # Errors
///
/// A mapped key whose value is no value. Unknown keys are warnings.
pub(super) fn apply(config: &mut Config, text: &str, path: &Path) -> Result<(), Failure> {
    let shown = path.display().to_string();
    for (key, value) in properties(text) {
        let known = KEYS.iter().find(|(name, _, _)| *name == key);
        match known {
            Some((name, _, effect)) => {
                let text = config_text(*effect, &value);
                take(config, *effect, &text, &shown)
                    .map_err(|failure| Failure::config(format!("key `{name}` in {shown}: {failure}")))?;
            }
            None => config.warnings.push(format!("{shown}: unknown key `{key}` is ignored")),
        }
        config.opentsdb.insert(key, value);
    }
    Ok(())
}

/// OpenTSDB takes any text but `1`, `true`, `yes` for false; boolean settings follow that here.
fn config_text(effect: Effect, value: &str) -> String {
    let boolean = matches!(effect, Is(name) if super::Key::named(name)
        .is_some_and(|key| matches!((key.get)(&Config::default()).as_str(), "true" | "false")));
    if boolean { bool::read(value).unwrap_or(false).show() } else { value.to_owned() }
}

fn take(config: &mut Config, effect: Effect, value: &str, shown: &str) -> Result<(), Failure> {
    match effect {
        // There 0 is "none", here a bound always holds.
        Limit(_) | Seconds(_) if value == "0" => Ok(()),
        Is(name) | Limit(name) => config.set(name, value, shown),
        Seconds(names) => names.iter().try_for_each(|name| config.set(name, &format!("{value}000"), shown)),
        Port => {
            let port = u16::read(value).map_err(|expected| Failure::config(format!("`{value}` is not {expected}")))?;
            config.server.listen.set_port(port);
            config.origins.insert("server.listen", shown.to_owned());
            Ok(())
        }
        Bind => {
            let bind: IpAddr = value.parse().map_err(|_| Failure::config(format!("`{value}` is not an IP address")))?;
            config.server.listen.set_ip(bind);
            config.origins.insert("server.listen", shown.to_owned());
            Ok(())
        }
        Shown => Ok(()),
    }
}

/// Java's properties form as far as OpenTSDB's files use it: `key = value`, `key: value`, comments
/// with `#` or `!`, and a backslash at a line's end that joins the next line.
fn properties(text: &str) -> Vec<(String, String)> {
    let mut pairs = Vec::new();
    let mut joined = String::new();
    for line in text.lines() {
        let line = line.trim_start();
        if joined.is_empty() && (line.is_empty() || line.starts_with(['#', '!'])) {
            continue;
        }
        if let Some(first) = line.strip_suffix('\\') {
            joined.push_str(first);
            continue;
        }
        joined.push_str(line);
        let whole = std::mem::take(&mut joined);
        let (key, value) = whole.split_once(['=', ':']).unwrap_or((whole.as_str(), ""));
        pairs.push((key.trim().to_owned(), value.trim().to_owned()));
    }
    pairs
}

/// All of OpenTSDB's keys with the values in force here, as `/api/config` gives them: sorted, all
/// texts, and a key with `PASS` in its name masked.
pub(crate) fn as_opentsdb(config: &Config) -> BTreeMap<String, String> {
    let mut map: BTreeMap<String, String> =
        KEYS.iter().map(|(name, default, _)| ((*name).to_owned(), (*default).to_owned())).collect();
    map.extend(config.opentsdb.clone());
    for (name, _, effect) in KEYS {
        let text = match effect {
            Is(ours) | Limit(ours) => super::Key::named(ours).map(|key| (key.get)(config)),
            Seconds(_) => Some(config.server.idle_timeout_ms.as_secs().to_string()),
            Port => Some(config.server.listen.port().to_string()),
            Bind => Some(config.server.listen.ip().to_string()),
            Shown => None,
        };
        if let Some(text) = text {
            map.insert((*name).to_owned(), text);
        }
    }
    for (name, value) in &mut map {
        if name.to_ascii_uppercase().contains("PASS") {
            "********".clone_into(value);
        }
    }
    map
}
