//! What keeps a server from starting and shows before its store is opened: one look for `serve` and for `config check`.
//!
//! `Config::load` has read every setting by then. Here each is tried that names something (a zone, a file, a table) or that
//! only its own reader understands (JSON, patterns). Nothing is written and nobody is asked.

use crate::app;
use crate::config::Config;
use crate::exit::Failure;
use crate::log;
use crate::publish::Publisher;
use crate::reload;
use crate::store;

/// Checks all that `serve` refuses before it opens the store.
///
/// *Cost*: reads the files that settings name.
///
/// # Errors
///
/// One line and exit code 3: the first setting with which a server would not start.
pub(crate) fn check(config: &Config) -> Result<(), Failure> {
    log::levels(&config.log)?;
    refuse_public(config)?;
    app::query_options(config)?;
    store::check(config)?;
    Publisher::check(&config.publish)?;
    reload::ROLES.check(config)?;
    reload::LIMITS.check(config)
}

/// Without authentication, only this machine may reach the port unless a person insists.
fn refuse_public(config: &Config) -> Result<(), Failure> {
    let listen = config.server.listen;
    if listen.ip().is_loopback() || config.server.insecure || !config.server.auth_file.is_empty() {
        return Ok(());
    }
    Err(Failure::config(format!(
        "{listen} can be reached from other machines and there is no authentication: \
         listen on 127.0.0.1, name a file of tokens by `server.auth_file` (`basalt token --help`), or add --insecure if \
         the network is trusted"
    )))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exit::Exit;

    /// Makes a setting wrong, with a file of nonsense at hand.
    type Set = fn(&mut Config, &str);

    /// Each setting is wrong alone, and its line names it.
    #[test]
    fn each_wrong_setting_is_refused_by_its_name() {
        check(&Config::default()).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("wrong");
        std::fs::write(&file, "ann king 00").unwrap();
        let wrong = file.display().to_string();
        let all: [(&str, Set); 14] = [
            ("setting `log.level`", |config, _| config.log.level = "basalt=loud".to_owned()),
            ("--insecure", |config, _| config.server.listen = ([0, 0, 0, 0], 4242).into()),
            ("setting `query.timezone`", |config, _| config.query.timezone = "Mars/Olympus".to_owned()),
            ("settings of `schema`", |config, _| config.schema.salt_buckets = 60_000),
            ("settings of `uid`", |config, _| (config.uid.filter, config.uid.metric_patterns) = (true, "(".to_owned())),
            ("random", |config, _| (config.uid.random_metrics, config.schema.uid_width_metric) = (true, 8)),
            ("a b", |config, _| config.schema.data_table = "a b".to_owned()),
            ("setting `schema.histograms`", |config, _| config.schema.histograms = "[".to_owned()),
            ("setting `rollups.config`", |config, _| {
                (config.rollups.enable, config.rollups.config) = (true, "{}".to_owned());
            }),
            ("setting `publish.to`", |config, _| {
                (config.publish.enable, config.publish.to) = (true, "tcp:1".to_owned());
            }),
            ("setting `server.auth_file`: cannot read /nowhere/tokens", |config, _| {
                config.server.auth_file = "/nowhere/tokens".to_owned();
            }),
            ("line 1: `king` is no role", |config, wrong| config.server.auth_file = wrong.to_owned()),
            ("the limits are not a list", |config, wrong| config.query.limits_file = wrong.to_owned()),
            ("setting `query.limits_file`: cannot read /nowhere/limits", |config, _| {
                config.query.limits_file = "/nowhere/limits".to_owned();
            }),
        ];
        for (expected, set) in all {
            let mut config = Config::default();
            set(&mut config, &wrong);
            let failure = check(&config).unwrap_err();
            assert_eq!(failure.exit, Exit::Config, "{failure}");
            assert!(failure.line.contains(expected), "`{expected}` is not in: {failure}");
        }
    }

    /// Addresses are read; nobody is asked whether the cluster is there.
    #[test]
    fn a_cluster_is_not_asked_whether_it_is_there() {
        let mut config = Config::default();
        config.store.kind = crate::config::StoreKind::Hbase;
        config.hbase.masters = "127.0.0.1:1".to_owned();
        check(&config).unwrap();
        config.hbase.masters = "nowhere".to_owned();
        assert_eq!(check(&config).unwrap_err().exit, Exit::Config);
    }
}
