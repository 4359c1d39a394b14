//! OpenTSDB's own keys: an `opentsdb.conf` is read as it is, and `/api/config` answers in its words.
//!
//! A key that steers something here is mapped to our setting. Every other key of OpenTSDB's is named at start with the
//! reason why it steers nothing, unless it asks for what holds anyway; a key that neither knows is warned about, never
//! an error, since plugins bring their own.

mod keys;
mod properties;

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::net::IpAddr;
use std::path::PathBuf;

use super::value::Value;
use super::{Config, budgets};
use crate::exit::Failure;
use keys::KEYS;

/// How many buckets rows are salted into, and how many OpenTSDB has where only the salt's width is given.
const BUCKETS: &str = "schema.salt_buckets";
const BUCKETS_OF_OPENTSDB: &str = "20";

/// The key of the plugin that publishes.
pub(super) const PUBLISHER: &str = "tsd.rtpublisher.plugin";

/// What an OpenTSDB key does here.
#[derive(Clone, Copy, Debug)]
enum Effect {
    /// Sets our setting of that name, with the same text.
    Is(&'static str),
    /// Looked at before all others.
    Authentication,
    /// Sets our switch of that name to the opposite.
    Not(&'static str),
    /// Sets our settings of these names, in milliseconds where OpenTSDB has seconds.
    Seconds(&'static [&'static str]),
    /// Sets our setting of that name where it is `unix:PATH` or `file:PATH`; a Java class is a warning with these words.
    Path(&'static str, &'static str),
    /// The port of `server.listen`.
    Port,
    /// The address of `server.listen`.
    Bind,
    /// Steers something that is otherwise here, as the words say: noted where it is not what holds anyway.
    Idle(&'static str),
    /// Asks for something that is not here, as the words say: a warning where it is not what holds anyway.
    Absent(&'static str),
}
use Effect::{Absent, Authentication, Bind, Idle, Is, Not, Path, Port, Seconds};

/// Applies a properties file to `config`.
///
/// # Errors
///
/// A mapped key whose value is no value, an escape that is none, or a section of TOML, of which no key would be known. Other
/// unknown keys are warnings.
pub(super) fn apply(config: &mut Config, bytes: &[u8], path: &std::path::Path) -> Result<(), Failure> {
    let shown = path.display().to_string();
    let pairs = properties::read(bytes).map_err(|why| Failure::config(format!("{shown}: {why}")))?;
    if let Some((section, _)) = pairs.iter().find(|(key, _)| key.starts_with('[')) {
        return Err(Failure::config(format!(
            "{shown}: `{section}` is of a TOML file, and this one is read as an opentsdb.conf, by its ending: give it the ending .toml"
        )));
    }
    apply_pairs(config, pairs, &shown)
}

/// Where OpenTSDB looks for its file unless one is named, in this order (`Config.loadConfig`).
pub(crate) const PLACES: [&str; 4] =
    ["./opentsdb.conf", "/etc/opentsdb.conf", "/etc/opentsdb/opentsdb.conf", "/opt/opentsdb/opentsdb.conf"];

/// The first of these places where a file is. OpenTSDB passes over one that it cannot read; here that is the file, and its load
/// fails: what it says, as who may do what, is not to be lost without a word.
pub(super) fn found(places: &[&str]) -> Option<PathBuf> {
    let is_there = |path: &PathBuf| match path.metadata() {
        Ok(found) => !found.is_dir(),
        Err(cause) => !matches!(cause.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory),
    };
    places.iter().map(PathBuf::from).find(is_there)
}

/// Applies keys with their values; `shown` says where they stood.
///
/// # Errors
///
/// As [`apply`].
pub(super) fn apply_pairs(config: &mut Config, pairs: Vec<(String, String)>, shown: &str) -> Result<(), Failure> {
    authentication(config, &pairs, shown)?;
    let is_salted = pairs.iter().any(|(key, value)| key == "tsd.storage.salt.width" && !value.is_empty());
    for (key, value) in pairs {
        let known = KEYS.iter().find(|(name, _, _)| *name == key);
        match known {
            // A key without a value is a line of a template that nobody filled in.
            Some(_) if value.is_empty() => {}
            Some((name, holds, Idle(why))) if !is_same(holds, &value) => {
                config.notes.push(format!("{shown}: `{name}` has no effect: {why}"));
            }
            Some((name, _, Path(_, why))) if !value.is_empty() && !is_path(&value) => {
                config.warnings.push(format!("{shown}: `{name}` is not supported: {why}"));
            }
            Some((name, holds, Absent(why))) if !is_same(holds, &value) => {
                config.warnings.push(format!("{shown}: `{name}` is not supported: {why}"));
            }
            Some((name, _, effect)) => {
                let text = config_text(*effect, &value);
                take(config, *effect, &text, shown)
                    .map_err(|failure| Failure::config(format!("key `{name}` in {shown}: {failure}")))?;
            }
            // What OpenTSDB hands to its HBase client.
            None if key.starts_with("hbase.") || key.starts_with("asynchbase.") => {
                config
                    .notes
                    .push(format!("{shown}: `{key}` has no effect: it is a setting of OpenTSDB's own HBase client"));
            }
            None => config.warnings.push(format!("{shown}: unknown key `{key}` is ignored")),
        }
        config.opentsdb.insert(key, value);
    }
    if is_salted && !config.origins.contains_key(BUCKETS) {
        // Rows that were written by this file lie in as many buckets as OpenTSDB has unless told.
        config.set(BUCKETS, BUCKETS_OF_OPENTSDB, shown)?;
    }
    Ok(())
}

/// Authentication that somebody switched on must not be missing without a word: only OpenTSDB's own plugin, which lets
/// everybody in, is known here.
fn authentication(config: &mut Config, pairs: &[(String, String)], shown: &str) -> Result<(), Failure> {
    let of = |name: &str| pairs.iter().rev().find(|(key, _)| key == name).map_or("", |(_, value)| value.as_str());
    if !bool::read(of("tsd.core.authentication.enable")).unwrap_or(false) {
        return Ok(());
    }
    let plugin = of("tsd.core.authentication.plugin");
    if plugin.rsplit('.').next() == Some("AllowAllAuthenticatingAuthorizer") {
        return config.set("server.auth_allow_all", "true", shown);
    }
    Err(Failure::config(format!(
        "key `tsd.core.authentication.enable` in {shown}: there is no authentication by `{plugin}` here, and without it \
         everybody could read and write; remove the key, and name a file of tokens by BASALT_SERVER__AUTH_FILE unless that is wanted"
    )))
}

fn is_path(value: &str) -> bool {
    value.starts_with("unix:") || value.starts_with("file:")
}

/// Whether two values mean one thing to OpenTSDB.
fn is_same(holds: &str, value: &str) -> bool {
    let is_flag = holds == "true" || holds == "false";
    holds == value || is_flag && bool::read(value).unwrap_or(false).show() == holds
}

/// OpenTSDB takes any text but `1`, `true`, `yes` for false; boolean settings follow that here. It reads its mode in any case.
fn config_text(effect: Effect, value: &str) -> String {
    if matches!(effect, Is("server.mode")) {
        return value.to_ascii_lowercase();
    }
    let boolean = matches!(effect, Is(name) | Not(name) if super::Key::named(name)
        .is_some_and(|key| matches!((key.get)(&Config::default()).as_str(), "true" | "false")));
    if boolean { bool::read(value).unwrap_or(false).show() } else { value.to_owned() }
}

fn take(config: &mut Config, effect: Effect, value: &str, shown: &str) -> Result<(), Failure> {
    let wrong = |expected: String| Failure::config(format!("`{value}` is not {expected}"));
    match effect {
        Is(name) | Path(name, _) => config.set(name, value, shown),
        Not(name) => config.set(name, &(value != "true").show(), shown),
        Seconds(names) => {
            let ms = u64::read(value).ok().and_then(|seconds| seconds.checked_mul(1000));
            let ms = ms.ok_or_else(|| wrong("a whole number of seconds".to_owned()))?.to_string();
            names.iter().try_for_each(|name| config.set(name, &ms, shown))
        }
        Port => {
            config.server.listen.set_port(u16::read(value).map_err(wrong)?);
            config.origins.insert("server.listen", shown.to_owned());
            Ok(())
        }
        Bind => {
            config.server.listen.set_ip(IpAddr::read(value).map_err(wrong)?);
            config.origins.insert("server.listen", shown.to_owned());
            Ok(())
        }
        Idle(_) | Absent(_) | Authentication => Ok(()),
    }
}

/// A setting in milliseconds, in whole seconds.
fn seconds(ms: &str) -> String {
    u64::read(ms).map_or_else(|_| ms.to_owned(), |ms| (ms / 1000).to_string())
}

/// OpenTSDB's keys that steer our setting of this name, each with how.
#[cfg(test)]
pub(super) fn keys_of(setting: &str) -> Vec<String> {
    let how = |effect: &Effect| match effect {
        Is(name) if *name == setting => Some(""),
        Path(name, _) if *name == setting => Some(" (a path)"),
        Not(name) if *name == setting => Some(" (the opposite)"),
        Seconds(names) if names.contains(&setting) => Some(" (seconds)"),
        Port if setting == "server.listen" => Some(" (the port)"),
        Bind if setting == "server.listen" => Some(" (the address)"),
        _ => None,
    };
    KEYS.iter().filter_map(|(key, _, effect)| Some(format!("`{key}`{}", how(effect)?))).collect()
}

/// OpenTSDB's keys that steer nothing here, each with the reason.
#[cfg(test)]
pub(super) fn keys_without_effect() -> impl Iterator<Item = (&'static str, &'static str)> {
    KEYS.iter().filter_map(|(key, _, effect)| match effect {
        Idle(why) | Absent(why) => Some((*key, *why)),
        _ => None,
    })
}

/// All of OpenTSDB's keys with the values in force here, as `/api/config` gives them: sorted, all
/// texts, and what may be a secret masked: OpenTSDB masks keys with `PASS` in their names. Beside them
/// the budgets of memory by our own names, as they may be the machine's.
pub(crate) fn as_opentsdb(config: &Config) -> BTreeMap<String, String> {
    let mut map: BTreeMap<String, String> =
        KEYS.iter().map(|(name, default, _)| ((*name).to_owned(), (*default).to_owned())).collect();
    map.extend(config.opentsdb.clone());
    for (name, _, effect) in KEYS {
        let text = match effect {
            Is(ours) | Path(ours, _) => super::Key::named(ours).map(|key| (key.get)(config)),
            Seconds(names) => {
                names.first().and_then(|first| super::Key::named(first)).map(|key| seconds(&(key.get)(config)))
            }
            Port => Some(config.server.listen.port().to_string()),
            Bind => Some(config.server.listen.ip().to_string()),
            Not(ours) => super::Key::named(ours).map(|key| ((key.get)(config) != "true").show()),
            Idle(_) | Absent(_) | Authentication => None,
        };
        if let Some(text) = text {
            map.insert((*name).to_owned(), text);
        }
    }
    map.extend(budgets::keys().map(|key| (key.name.to_owned(), (key.get)(config))));
    for (name, value) in &mut map {
        let upper = name.to_ascii_uppercase();
        if ["PASS", "SECRET", "TOKEN", "CREDENTIAL"].iter().any(|word| upper.contains(word)) && !value.is_empty() {
            "********".clone_into(value);
        }
    }
    map
}
