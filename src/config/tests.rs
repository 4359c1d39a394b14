//! Layers, unknown names and OpenTSDB's own file (`F-CONF`).

use super::*;

fn load(file: Option<(&str, &str)>, env: &[(&str, &str)], flags: &[(&'static str, &str)]) -> Result<Config, String> {
    let folder = tempfile::tempdir().unwrap();
    let path = file.map(|(name, text)| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path
    });
    let layers = Layers {
        file: path,
        env: env.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect(),
        flags: flags.iter().map(|(name, value)| (*name, (*value).to_owned())).collect(),
    };
    Config::load(&layers).map_err(|failure| failure.to_string())
}

#[test]
fn each_layer_wins_over_the_one_before() {
    let file = Some(("b.toml", "[server]\nmax_connections = 1\nlisten = '127.0.0.1:1'\n[log]\nlevel = 'warn'"));
    let env = [("BASALT_SERVER__LISTEN", "127.0.0.1:2"), ("BASALT_LOG__LEVEL", "debug"), ("BASALT_HOME", "/x")];
    let config = load(file, &env, &[("log.level", "trace")]).unwrap();
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
}

#[test]
fn a_wrong_value_says_what_was_expected() {
    let error = load(Some(("b.toml", "[server]\nmax_connections = 'many'")), &[], &[]).unwrap_err();
    assert!(error.contains("whole number"), "{error}");
    let error = load(Some(("b.toml", "[server\n")), &[], &[]).unwrap_err();
    assert!(error.contains("line 1") && !error.contains('\n'), "{error}");
}

#[test]
fn an_opentsdb_conf_is_read_as_it_is() {
    let text = "# comment\ntsd.network.port = 5555\ntsd.core.auto_create_metrics = TRUE\n\
                tsd.core.auto_create_tagks = nope\ntsd.core.socket.timeout = 9\n\
                tsd.core.connections.limit = 0\ntsd.plugin.password: s\\\n  ecret\n";
    let config = load(Some(("opentsdb.conf", text)), &[], &[]).unwrap();
    assert_eq!(config.server.listen.to_string(), "127.0.0.1:5555");
    assert!(config.schema.auto_create_metrics && !config.schema.auto_create_tagks);
    assert_eq!(config.server.idle_timeout_ms, Duration::from_secs(9));
    assert_eq!(config.server.max_connections, Config::default().server.max_connections);
    assert_eq!(config.warnings().len(), 1);
    let shown = as_opentsdb(&config);
    assert_eq!(shown["tsd.network.port"], "5555");
    assert_eq!(shown["tsd.plugin.password"], "********");
    assert_eq!(shown["tsd.storage.hbase.data_table"], "tsdb");
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
