//! Layers, unknown names and OpenTSDB's own file (`F-CONF`).

use std::time::Duration;

use super::*;

fn load(
    file: Option<(&str, &str)>,
    env: &[(&str, &str)],
    flags: &[(&'static str, &'static str, &str)],
) -> Result<Config, String> {
    let folder = tempfile::tempdir().unwrap();
    let path = file.map(|(name, text)| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path
    });
    let layers = Layers {
        file: path,
        env: env.iter().map(|(name, value)| (name.into(), value.into())).collect(),
        flags: flags.iter().map(|(flag, name, value)| (*flag, *name, (*value).to_owned())).collect(),
        ..Layers::default()
    };
    Config::load(&layers).map_err(|failure| failure.to_string())
}

#[test]
fn each_layer_wins_over_the_one_before() {
    let file = Some(("b.toml", "[server]\nmax_connections = 1\nlisten = '127.0.0.1:1'\n[log]\nlevel = 'warn'"));
    let env = [("BASALT_SERVER__LISTEN", "127.0.0.1:2"), ("BASALT_LOG__LEVEL", "debug"), ("BASALT_HOME", "/x")];
    let config = load(file, &env, &[("--log-level", "log.level", "trace")]).unwrap();
    assert_eq!(config.server.max_connections, 1);
    assert_eq!(config.server.listen.port(), 2);
    assert_eq!(config.log.level, "trace");
    assert_eq!(config.query.timezone, "UTC");
}

#[test]
fn an_unknown_setting_is_named_with_the_nearest_known_one() {
    let error = load(Some(("b.toml", "[server]\nlisen = 'x'")), &[], &[]).unwrap_err();
    assert!(error.contains("`server.lisen`") && error.contains("`server.listen`"), "{error}");
    let error = load(None, &[("BASALT_SERVER__NOPE_AT_ALL", "1")], &[]).unwrap_err();
    assert!(error.contains("BASALT_SERVER__NOPE_AT_ALL"), "{error}");
    let error = load(None, &[("BASALT_STORE_DATA_DIR", "/x")], &[]).unwrap_err();
    assert!(error.contains("BASALT_STORE_DATA_DIR") && error.contains("`BASALT_STORE__DATA_DIR`"), "{error}");
}

#[test]
fn a_variable_without_its_section_is_warned_of() {
    let config = load(None, &[("BASALT_DATA_DIR", "/x"), ("BASALT_ENABLE", "1")], &[]).unwrap();
    assert_eq!(config.store.data_dir, Config::default().store.data_dir);
    let [folder, switch] = config.warnings() else { panic!("{:?}", config.warnings()) };
    assert!(folder.contains("BASALT_DATA_DIR sets nothing, did you mean `BASALT_STORE__DATA_DIR`?"), "{folder}");
    assert!(switch.contains("`BASALT_REWRITE__ENABLE` or `BASALT_PUBLISH__ENABLE`"), "{switch}");
    // What Kubernetes makes for services of these names.
    let services = ["SERVICE_HOST", "SERVICE_PORT", "PORT", "PORT_4242_TCP_ADDR", "SERVER_PORT", "TOKEN"];
    for service in services {
        let config = load(None, &[(&format!("BASALT_{service}"), "x")], &[]).unwrap();
        assert!(config.warnings().is_empty(), "{:?}", config.warnings());
    }
}

#[test]
fn a_variable_that_is_not_utf_8_is_refused_if_it_is_ours() {
    use std::os::unix::ffi::OsStrExt as _;
    let of = |bytes: &[u8]| std::ffi::OsStr::from_bytes(bytes).to_owned();
    let with = |name: &[u8], value: &[u8]| {
        let env = vec![(of(name), of(value))];
        Config::load(&Layers { env, ..Layers::default() }).map_err(|failure| (failure.exit, failure.line))
    };
    with(b"HOME", b"/\xfc").unwrap();
    with(b"\xfc", b"1").unwrap();
    let (exit, line) = with(b"BASALT_STORE__DATA_DIR", b"/\xfc").unwrap_err();
    assert!(exit == crate::exit::Exit::Config && line.contains("BASALT_STORE__DATA_DIR is not UTF-8"), "{line}");
    assert!(with(b"BASALT_\xfc", b"1").unwrap_err().1.contains("UTF-8"));
}

#[test]
fn a_wrong_value_says_what_was_expected() {
    let error = load(Some(("b.toml", "[server]\nmax_connections = 'many'")), &[], &[]).unwrap_err();
    assert!(error.contains("whole number"), "{error}");
    let error = load(None, &[], &[("--store", "store.kind", "tape")]).unwrap_err();
    assert!(error.contains("`store.kind` in flag --store: `tape` is not one of"), "{error}");
    let error = load(Some(("b.toml", "[server\n")), &[], &[]).unwrap_err();
    assert!(error.contains("line 1") && !error.contains('\n'), "{error}");
}

/// The largest value of each is taken, one more would end the server or not hold.
#[test]
fn a_number_that_a_server_cannot_hold_is_refused() {
    let largest = [
        ("SERVER__WORKER_THREADS", 1_024),
        ("HTTP__MAX_BODY_BYTES", 2 << 30),
        ("HTTP__MAX_HEADER_BYTES", 16 << 20),
        ("TELNET__MAX_LINE_BYTES", 16 << 20),
        ("STORE__MEMTABLE_BYTES", 16 << 30),
        ("STORE__MEMTABLES_BYTES", 16 << 30),
        ("STORE__WAL_SEGMENT_BYTES", 1 << 30),
        ("STORE__WAL_BYTES_MAX", 1 << 40),
        ("STORE__BLOCK_CACHE_BYTES", 1 << 40),
        ("STORE__RESERVE_BYTES", 64 << 30),
        ("SCHEMA__SALT_WIDTH", 8),
        ("SCHEMA__SALT_BUCKETS", 4_096),
        ("SCHEMA__UID_WIDTH_METRIC", 8),
        ("REWRITE__SPEED", 1_000_000),
        ("REWRITE__CATCH_UP_HOURS", 720),
        ("REWRITE__QUIET_MS", 86_400_000),
        ("QUERY__MAX_CONCURRENT", 65_536),
        ("QUERY__MAX_WAITING", 1_048_576_u64),
    ];
    for (name, largest) in largest {
        let with = |value: u64| load(None, &[(&format!("BASALT_{name}"), &value.to_string())], &[]).map(drop);
        with(largest).unwrap();
        let line = with(largest + 1).unwrap_err();
        let setting = name.replacen("__", ".", 1).to_ascii_lowercase();
        assert!(line.contains(&format!("`{setting}`")) && line.ends_with(&format!(" to {largest}")), "{line}");
    }
    for (name, smallest) in [
        ("STORE__MEMTABLES_BYTES", 1 << 20),
        ("SCHEMA__UID_WIDTH_TAGV", 1),
        ("REWRITE__QUIET_MS", 1_000),
        ("QUERY__MAX_CONCURRENT", 1),
    ] {
        let line = load(None, &[(&format!("BASALT_{name}"), &(smallest - 1).to_string())], &[]).unwrap_err();
        assert!(line.contains(&format!("from {smallest} to")), "{line}");
    }
}

#[test]
fn one_body_of_the_largest_size_fits_among_all_bodies() {
    let together = |text: &str| load(Some(("b.toml", text)), &[], &[]).unwrap().http.bodies_bytes();
    assert_eq!(together(""), 512 << 20);
    assert_eq!(together("http.bodies_bytes_max = 33554433"), (32 << 20) + 1);
    assert_eq!(together("http.bodies_bytes_max = 0"), 32 << 20);
    assert_eq!(together("http.max_body_bytes = 536870913"), (512 << 20) + 1);
}

#[test]
fn an_opentsdb_conf_is_read_as_it_is() {
    let text = "# comment\ntsd.network.port = 5555\ntsd.core.auto_create_metrics = TRUE\n\
                tsd.core.auto_create_tagks = nope\ntsd.core.socket.timeout = 9\n\
                tsd.plugin.password: s\\\n  ecret\n";
    let config = load(Some(("opentsdb.conf", text)), &[], &[]).unwrap();
    assert_eq!(config.server.listen.to_string(), "127.0.0.1:5555");
    assert!(config.schema.auto_create_metrics && !config.schema.auto_create_tagks);
    assert_eq!(config.server.idle_timeout_ms, Duration::from_secs(9));
    assert_eq!(config.warnings().len(), 1);
    let shown = as_opentsdb(&config);
    assert_eq!(shown["tsd.network.port"], "5555");
    assert_eq!(shown["tsd.plugin.password"], "********");
    assert_eq!(shown["tsd.storage.hbase.data_table"], "tsdb");
}

/// `F-CONF`: escapes and bytes are those of Java's properties.
#[test]
fn f_conf_a_file_means_what_it_means_to_java() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("opentsdb.conf");
    let load = |bytes: &[u8]| {
        std::fs::write(&path, bytes).unwrap();
        Config::load(&Layers { file: Some(path.clone()), ..Layers::default() })
    };
    let patterns = br"tsd.uidfilter.whitelist.metric_patterns = ^sys\\..*,\u005enet\\.";
    let config = load(&[b"# f\xfcr Metriken\n", &patterns[..]].concat()).unwrap();
    assert_eq!(config.uid.metric_patterns, r"^sys\..*,^net\.");
    for (wrong, reason) in
        [(&br"tsd.mode = \u00"[..], "four hexadecimal digits"), (br"tsd.network.port = 4\n2", "65535")]
    {
        let line = load(wrong).unwrap_err().to_string();
        assert!(line.contains(reason) && line.contains("opentsdb.conf") && !line.contains('\n'), "{line}");
    }
}

#[test]
fn f_conf_an_address_may_be_localhost() {
    for (bind, listen) in [("localhost", "127.0.0.1:4242"), ("127.0.0.2", "127.0.0.2:4242"), ("::1", "[::1]:4242")] {
        let config = load(Some(("opentsdb.conf", &format!("tsd.network.bind = {bind}\n"))), &[], &[]).unwrap();
        assert_eq!(config.server.listen.to_string(), listen);
    }
    let line = load(Some(("opentsdb.conf", "tsd.network.bind = tsd1.example\n")), &[], &[]).unwrap_err();
    assert!(line.contains("`tsd.network.bind`") && line.contains("`tsd1.example` is not an IP address"), "{line}");
}

/// `F-CONF`, `S-KEY-SALT`: a file that gives the salt's width alone means OpenTSDB's own count of buckets.
#[test]
fn f_conf_a_salt_without_its_buckets_has_those_of_opentsdb() {
    let buckets =
        |text: &str, env: &[(&str, &str)]| load(Some(("opentsdb.conf", text)), env, &[]).unwrap().schema.salt_buckets;
    assert_eq!(buckets("tsd.storage.salt.width = 1\n", &[]), 20);
    assert_eq!(buckets("tsd.storage.salt.width = 1\n", &[("BASALT_SCHEMA__SALT_BUCKETS", "8")]), 8);
    assert_eq!(buckets("tsd.storage.salt.buckets = 7\ntsd.storage.salt.width = 1\n", &[]), 7);
    assert_eq!(buckets("tsd.storage.salt.width =\n", &[]), 16);
    assert_eq!(buckets("tsd.core.auto_create_metrics = true\n", &[]), 16);
}

/// `T-PUT`: jmxtrans connects at its start and sends when it has gathered 8 KiB; what it sends into a closed connection is lost.
#[test]
fn t_put_who_connects_may_be_silent_as_long_before_the_first_line_as_after_it() {
    let config = load(None, &[], &[]).unwrap();
    assert_eq!(config.server.header_timeout_ms, config.telnet.idle_timeout_ms);
}

/// `F-CONF`: a zero that OpenTSDB takes for "no limit" is one here.
#[test]
fn f_conf_a_zero_is_no_limit() {
    let text = "tsd.core.connections.limit = 0\ntsd.core.socket.timeout = 0\ntsd.query.timeout = 0\n\
                tsd.query.limits.bytes.default = 0\ntsd.query.limits.data_points.default = 0\n";
    let config = load(Some(("opentsdb.conf", text)), &[], &[]).unwrap();
    assert_eq!((config.server.max_connections, config.query.max_bytes, config.query.max_points), (0, 0, 0));
    let patience = [
        config.server.idle_timeout_ms,
        config.server.header_timeout_ms,
        config.telnet.idle_timeout_ms,
        config.query.timeout_ms,
    ];
    assert_eq!(patience, [Duration::ZERO; 4]);
    assert!(config.warnings().is_empty() && config.notes().is_empty());
    assert_ne!(config.query.memory_bytes, 0, "all queries together keep their bound");
    let shown = as_opentsdb(&config);
    for key in text.lines().filter_map(|line| line.split_once(" =")).map(|(key, _)| key) {
        assert_eq!(shown[key], "0", "{key}");
    }
}

/// `F-CONF`: what is no number of seconds is told as it was written.
#[test]
fn f_conf_seconds_are_refused_as_they_were_written() {
    for (key, value) in [
        ("tsd.core.socket.timeout", "1.5"),
        ("tsd.core.socket.timeout", "-1"),
        ("tsd.core.socket.timeout", "18446744073709551615"),
        ("tsd.storage.compaction.flush_interval", "10s"),
    ] {
        let line = load(Some(("opentsdb.conf", &format!("{key} = {value}\n"))), &[], &[]).unwrap_err();
        assert!(line.contains(key) && line.contains(&format!("`{value}` is not a whole number of seconds")), "{line}");
    }
}

/// A cluster that has no time to answer is not taken for one that is away.
#[test]
fn no_time_for_a_cluster_is_no_setting() {
    for name in ["hbase.call_timeout_ms", "hbase.operation_timeout_ms"] {
        for (value, is_taken) in [("0", false), ("1", true), ("86400000", true), ("86400001", false)] {
            let loaded = load(None, &[], &[("--x", name, value)]);
            assert_eq!(loaded.is_ok(), is_taken, "{name} = {value}");
            assert!(loaded.map_or_else(|line| line.contains(name) && line.contains("from 1 to"), |_| true));
        }
    }
}

/// `F-CONF`: settings are not passed over where a file has the wrong ending.
#[test]
fn f_conf_a_toml_file_is_not_read_as_an_opentsdb_conf() {
    let text = "# where points are\n[store]\ndata_dir = \"x\"\n";
    for name in ["basalt.conf", "basalt.properties"] {
        let line = load(Some((name, text)), &[], &[]).unwrap_err();
        assert!(line.contains(name) && line.contains("`[store]`") && line.contains("ending .toml"), "{line}");
    }
    assert_eq!(load(Some(("basalt.toml", text)), &[], &[]).unwrap().store.data_dir.as_os_str(), "x");
}

/// `F-CONF`, `H-MODE`: OpenTSDB reads its mode in any case.
#[test]
fn f_conf_a_mode_may_be_in_capitals() {
    for (text, mode) in [("RO", Mode::ReadOnly), ("Wo", Mode::WriteOnly), ("rw", Mode::ReadWrite)] {
        let config = load(Some(("opentsdb.conf", &format!("tsd.mode = {text}\n"))), &[], &[]).unwrap();
        assert_eq!(config.server.mode, mode, "{text}");
    }
    assert!(load(Some(("opentsdb.conf", "tsd.mode = readonly\n")), &[], &[]).is_err());
}

/// `S-UID-RANDOM`, `P-UIDFILTER`: OpenTSDB's own keys steer ours; what steers nothing is said.
#[test]
fn keys_of_names_and_meta_data_steer_or_say_that_they_do_not() {
    let text = "tsd.core.uid.random_metrics = true\ntsd.core.meta.enable_realtime_ts = 1\ntsd.uidfilter.enable = yes\n\
                tsd.uidfilter.plugin = net.opentsdb.uid.UniqueIdWhitelistFilter\ntsd.uid.lru.name.size = 7\n\
                tsd.core.preload_uid_cache = true\ntsd.uidfilter.whitelist.metric_patterns = ^sys\n";
    let config = load(Some(("opentsdb.conf", text)), &[], &[]).unwrap();
    assert!(config.uid.random_metrics && config.uid.filter && config.meta.realtime_ts && !config.meta.realtime_uid);
    assert_eq!((config.uid.metric_patterns.as_str(), config.schema.uid_cache_entries), ("^sys", 7));
    assert!(config.uid.preload && config.warnings().is_empty() && config.notes().is_empty());
    let text = "tsd.uid.use_mode = true\ntsd.core.meta.cache.enable = false\ntsd.uidfilter.plugin = x.Y\n\
                tsd.storage.hbase.prefetch_meta = true\n";
    let config = load(Some(("opentsdb.conf", text)), &[], &[]).unwrap();
    assert_eq!((config.warnings().len(), config.notes().len()), (1, 2), "{:?}", config.warnings());
}

#[test]
fn every_setting_reads_what_it_shows() {
    let mut config = Config::default();
    for key in keys::KEYS {
        let shown = (key.get)(&config);
        (key.set)(&mut config, &shown).unwrap();
        assert_eq!((key.get)(&config), shown, "{}", key.name);
    }
}

/// Every key of OpenTSDB 2.4 with a value that is not its default there.
const OPENTSDB_KEYS: &str = "tsd.network.port 5555|tsd.network.bind 127.0.0.2|tsd.network.worker_threads 3|\
    tsd.network.async_io false|tsd.network.tcp_no_delay false|tsd.network.keep_alive false|\
    tsd.network.reuse_address false|tsd.network.backlog 77|tsd.core.connections.limit 77|tsd.core.socket.timeout 77|\
    tsd.http.staticroot /x|tsd.http.cachedir /x|tsd.mode ro|tsd.no_diediedie false|tsd.core.enable_api false|\
    tsd.core.enable_ui false|tsd.core.auto_create_metrics false|tsd.core.auto_create_tagks false|\
    tsd.core.auto_create_tagvs false|tsd.core.tag.allow_specialchars $|tsd.core.timezone Europe/Rome|\
    tsd.core.plugin_path /x|tsd.core.preload_uid_cache true|tsd.core.preload_uid_cache.max_entries 7|\
    tsd.core.uid.random_metrics true|tsd.core.bulk.allow_out_of_order_timestamps false|\
    tsd.core.meta.enable_realtime_ts true|tsd.core.meta.enable_realtime_uid true|\
    tsd.core.meta.enable_tsuid_incrementing true|tsd.core.meta.enable_tsuid_tracking true|\
    tsd.core.meta.cache.enable true|tsd.core.meta.cache.plugin x.Y|tsd.core.tree.enable_processing true|\
    tsd.core.histograms.config {}|tsd.core.authentication.enable true|tsd.core.authentication.plugin x.Y|\
    tsd.core.storage_exception_handler.enable true|tsd.core.storage_exception_handler.plugin x.Y|\
    tsd.core.stats_with_port true|tsd.stats.canonical true|tsd.storage.hbase.data_table t|\
    tsd.storage.hbase.uid_table u|tsd.storage.hbase.tree_table r|tsd.storage.hbase.meta_table m|\
    tsd.storage.hbase.zk_quorum zk|tsd.storage.hbase.zk_basedir /x|tsd.storage.hbase.prefetch_meta true|\
    tsd.storage.hbase.scanner.maxNumRows 7|tsd.storage.flush_interval 77|tsd.storage.fix_duplicates true|\
    tsd.storage.enable_compaction false|tsd.storage.compaction.flush_interval 7|\
    tsd.storage.compaction.min_flush_threshold 7|tsd.storage.compaction.max_concurrent_flushes 7|\
    tsd.storage.compaction.flush_speed 7|tsd.storage.enable_appends true|tsd.storage.repair_appends true|\
    tsd.storage.max_tags 9|tsd.storage.salt.width 2|tsd.storage.salt.buckets 7|tsd.storage.uid.width.metric 4|\
    tsd.storage.uid.width.tagk 4|tsd.storage.uid.width.tagv 4|tsd.storage.use_otsdb_timestamp true|\
    tsd.storage.use_max_value false|tsd.storage.get_date_tiered_compaction_start 7|tsd.uid.lru.enable false|\
    tsd.uid.lru.name.size 7|tsd.uid.lru.id.size 7|tsd.uid.use_mode true|tsd.uidfilter.enable true|\
    tsd.uidfilter.plugin x.Y|tsd.timeseriesfilter.enable true|tsd.timeseriesfilter.plugin x.Y|tsd.query.timeout 77|\
    tsd.query.filter.expansion_limit 7|tsd.query.skip_unresolved_tagvs true|\
    tsd.query.allow_simultaneous_duplicates false|tsd.query.enable_fuzzy_filter false|\
    tsd.query.limits.bytes.default 77|tsd.query.limits.bytes.allow_override true|\
    tsd.query.limits.data_points.default 77|tsd.query.limits.data_points.allow_override true|\
    tsd.query.limits.overrides.config /x|tsd.query.limits.overrides.interval 77|tsd.query.multi_get.enable true|\
    tsd.query.multi_get.limit 7|tsd.query.multi_get.batch_size 7|tsd.query.multi_get.concurrent 7|\
    tsd.query.multi_get.get_all_salts true|tsd.http.query.allow_delete true|\
    tsd.http.request.enable_chunked false|tsd.http.request.max_chunk 77|tsd.http.request.cors_domains *|\
    tsd.http.request.cors_headers X-A|tsd.http.show_stack_trace true|tsd.http.header_tag x|\
    tsd.http.rpc.plugins x.Y|tsd.rpc.plugins x.Y|tsd.rpc.telnet.return_errors false|tsd.rollups.enable true|\
    tsd.rollups.config {}|tsd.rollups.tag_raw true|tsd.rollups.agg_tag_key x|tsd.rollups.raw_agg_tag_value x|\
    tsd.rollups.block_derived false|tsd.rollups.split_query.enable true|tsd.rtpublisher.enable true|\
    tsd.rtpublisher.plugin x.Y|tsd.search.enable true|tsd.search.plugin x.Y|tsd.startup.enable true|\
    tsd.startup.plugin x.Y";

/// `F-CONF`, `P-SEH`: each key of OpenTSDB's changes a setting, or one line at start says that it does not, and why.
#[test]
fn f_conf_every_key_of_opentsdbs_is_honoured_or_named() {
    let entries = |config: &Config| -> Vec<String> { config.entries().map(|(_, value, _)| value).collect() };
    for (key, value) in OPENTSDB_KEYS.split('|').map(|pair| pair.split_once(' ').unwrap()) {
        let mut text = format!("{key} = {value}\n");
        if key == "tsd.core.authentication.plugin" {
            text += "tsd.core.authentication.enable = true\n";
        }
        let config = match load(Some(("opentsdb.conf", &text)), &[], &[]) {
            Ok(config) => config,
            Err(line) if key.starts_with("tsd.core.authentication") => {
                assert!(line.contains("tsd.core.authentication.enable"), "{line}");
                continue;
            }
            Err(line) => panic!("{line}"),
        };
        let changed = entries(&config) != entries(&Config::default());
        let lines: Vec<&String> = config.warnings().iter().chain(config.notes()).collect();
        assert_eq!(lines.len(), usize::from(!changed), "{key} = {value}: {lines:?}");
        for line in lines {
            assert!(line.contains(&format!("`{key}`")) && !line.contains("unknown"), "{line}");
        }
    }
    assert_eq!(OPENTSDB_KEYS.split('|').count(), 113);
    let silent = load(Some(("opentsdb.conf", "tsd.network.tcp_no_delay = yes\ntsd.search.enable = no\n")), &[], &[]);
    let silent = silent.unwrap();
    assert!(silent.warnings().is_empty() && silent.notes().is_empty(), "what holds anyway is not worth a line");
    let template = "tsd.core.timezone =\ntsd.network.worker_threads =\ntsd.network.port =\ntsd.core.plugin_path =\n";
    let template = load(Some(("opentsdb.conf", template)), &[], &[]).unwrap();
    assert_eq!((template.query.timezone.as_str(), template.notes().len() + template.warnings().len()), ("UTC", 0));
    let client = load(Some(("opentsdb.conf", "hbase.rpcs.batch.size = 7\nx.y = 7\n")), &[], &[]).unwrap();
    assert!(client.notes()[0].contains("own HBase client") && client.warnings()[0].contains("unknown key"));
}

/// `O-CONFIG`: no secret is told.
#[test]
fn o_config_secrets_are_masked() {
    let text = "my.Password = a\nmy.api_token = a\nmy.secretKey = a\nmy.pass =\nmy.other = a\n";
    let shown = as_opentsdb(&load(Some(("opentsdb.conf", text)), &[], &[]).unwrap());
    let masked: Vec<&str> =
        shown.iter().filter(|(_, value)| *value == "********").map(|(name, _)| name.as_str()).collect();
    assert_eq!(masked, ["my.Password", "my.api_token", "my.secretKey"]);
    assert_eq!(shown["my.other"], "a");
}

/// `P-AUTH`: a file that switches authentication on does not start an open server, but for OpenTSDB's own plugin that lets
/// everybody in.
#[test]
fn p_auth_a_plugin_that_is_not_here_is_no_open_door() {
    let with = |plugin: &str| {
        let text = format!("tsd.core.authentication.plugin = {plugin}\ntsd.core.authentication.enable = true\n");
        load(Some(("opentsdb.conf", &text)), &[], &[])
    };
    assert!(with("net.opentsdb.auth.AllowAllAuthenticatingAuthorizer").unwrap().server.auth_allow_all);
    for plugin in ["", "com.example.Ldap", "com.example.NotAllowAllAuthenticatingAuthorizer"] {
        assert!(with(plugin).unwrap_err().contains("no authentication by"), "{plugin}");
    }
    let off = load(Some(("opentsdb.conf", "tsd.core.authentication.plugin = com.example.Ldap\n")), &[], &[]).unwrap();
    assert!(!off.server.auth_allow_all);
}

/// `F-CONF`: whatever stands in a file of either form is a configuration, or refused in one line that names the file.
#[test]
fn f_conf_any_text_is_a_configuration_or_a_reason() {
    let words: Vec<&str> = OPENTSDB_KEYS.split(['|', ' ']).chain(keys::KEYS.iter().map(|key| key.name)).collect();
    let marks = [
        "=",
        " = ",
        ":",
        "\n",
        "\r\n",
        "\\\n",
        "\\",
        "\\u00",
        "\\u0041",
        "\\n",
        "#",
        "!",
        "[",
        "]",
        "[[",
        "]]",
        "{",
        "}",
        "'",
        "\"",
        "\"\"\"",
        ".",
        ",",
        "-1",
        "0",
        "99999999999999999999",
        "1e400",
        "nan",
        "true",
        "2013-01-01",
        "\u{0}",
        "\u{feff}",
        "\u{1f600}",
        "é",
        "server",
        "schema",
    ];
    let mut state = 1_u64;
    let mut below = |bound: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(state >> 33).unwrap() % bound
    };
    let (mut taken, mut refused) = (0, 0);
    for round in 0..1_500 {
        let name = ["b.toml", "opentsdb.conf"][round % 2];
        let mut text = String::new();
        for _ in 0..below(12) {
            let kind = below(4);
            // Half of the lines are whole, so that what lies behind the grammar is met too.
            match kind {
                0 | 1 => text += &[words[below(words.len())], " = ", words[below(words.len())], "\n"].concat(),
                2 => text += words[below(words.len())],
                _ => text += marks[below(marks.len())],
            }
        }
        match load(Some((name, &text)), &[], &[]) {
            Ok(_) => taken += 1,
            Err(line) => {
                assert!(!line.is_empty() && !line.contains('\n'), "{text:?}: {line:?}");
                refused += 1;
            }
        }
    }
    assert!(taken > 100 && refused > 100, "{taken} {refused}");
}

/// `F-CONF`: an `opentsdb.conf` whose publisher is a Java class, of which a line tells, starts; a target of ours is kept.
#[test]
fn f_conf_a_publisher_in_java_publishes_nothing_and_hinders_nothing() {
    let text = "tsd.rtpublisher.enable = true\ntsd.rtpublisher.plugin = x.Y\n";
    let config = load(Some(("opentsdb.conf", text)), &[], &[]).unwrap();
    assert!(!config.publish.enable && crate::publish::Publisher::check(&config.publish).is_ok());
    assert!(config.warnings().iter().any(|line| line.contains("tsd.rtpublisher.plugin")), "{:?}", config.warnings());
    let named = [("BASALT_PUBLISH__TO", "file:/tmp/points")];
    assert!(load(Some(("opentsdb.conf", text)), &named, &[]).unwrap().publish.enable);
}
