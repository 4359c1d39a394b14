//! Settings: defaults, then a file, then the environment, then flags; the later wins.
//!
//! A setting is one row of [`keys::KEYS`]: its name `section.key`, what it is for, how it is read
//! and shown. Everything else (TOML, an `opentsdb.conf`, `BASALT_SECTION__KEY`, flags,
//! `basalt config show`) goes through those rows, so no door knows a setting that another lacks.

mod budgets;
mod file;
pub(crate) mod keys;
mod opentsdb;
mod processors;
#[cfg(test)]
mod reference;
mod sections;
mod value;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use crate::aside;
use crate::exit::Failure;
use keys::Key;

pub(crate) use file::one_line;
pub(crate) use opentsdb::{PLACES, as_opentsdb};
pub(crate) use sections::{
    Compat, Durability, Hbase, Http, Log, LogFormat, Meta, Mode, Publish, Query, Rewrite, Rollups, Schema, Server,
    Store, StoreKind, Telnet, Uid,
};
pub(crate) use value::Value;

/// The whole configuration. Field names are the names users write: `section.key`.
#[derive(Clone, Debug, Default)]
pub(crate) struct Config {
    pub(crate) server: Server,
    pub(crate) http: Http,
    pub(crate) telnet: Telnet,
    pub(crate) store: Store,
    pub(crate) hbase: Hbase,
    pub(crate) schema: Schema,
    pub(crate) uid: Uid,
    pub(crate) meta: Meta,
    pub(crate) rollups: Rollups,
    pub(crate) rewrite: Rewrite,
    pub(crate) query: Query,
    pub(crate) publish: Publish,
    pub(crate) compat: Compat,
    pub(crate) log: Log,
    /// The memory that budgets share, where it is known.
    fitted: Option<budgets::Fitted>,
    /// Where each setting that is not a default came from, by its name.
    origins: BTreeMap<&'static str, String>,
    /// OpenTSDB's own keys as a properties file gave them, for `/api/config`.
    opentsdb: BTreeMap<String, String>,
    /// What a person should know about the layers read, one line each.
    warnings: Vec<String>,
    /// What need not be known and may be: keys of OpenTSDB's without an effect, one line each.
    notes: Vec<String>,
}

/// What a process was told besides its defaults.
#[derive(Clone, Debug, Default)]
pub(crate) struct Layers {
    /// A TOML file, or OpenTSDB's properties file when its name ends in `.conf` or `.properties`.
    pub(crate) file: Option<PathBuf>,
    /// The environment: names and values, of which only `BASALT_…` are looked at.
    pub(crate) env: Vec<(OsString, OsString)>,
    /// Flags: the flag, the setting that it sets, and the value.
    pub(crate) flags: Vec<(&'static str, &'static str, String)>,
    /// Flags in OpenTSDB's words: the flag, the key that it sets, and the value.
    pub(crate) opentsdb_flags: Vec<(&'static str, &'static str, String)>,
    /// Bytes of memory that the process may use, of which budgets that nobody set are shares; `None` where they are not.
    pub(crate) memory_bytes: Option<u64>,
    /// Processors that the process may use; `None` where nothing is fitted to the memory for them.
    pub(crate) processors: Option<usize>,
    /// What a person should know about what was told, one line each.
    pub(crate) warnings: Vec<String>,
}

impl Layers {
    /// Takes the file that OpenTSDB finds where none is named: for the commands that take the place of its own.
    pub(crate) fn search(mut self, places: &[&str]) -> Self {
        if self.file.is_none()
            && let Some(found) = opentsdb::found(places)
        {
            self.warnings.push(format!("settings are read from {}, as no --config names a file", found.display()));
            self.file = Some(found);
        }
        self
    }
}

impl Config {
    /// Reads all layers in their order.
    ///
    /// # Errors
    ///
    /// One line and exit code 3: a file that cannot be read, a setting that does not exist, a value
    /// that is not one, or settings that contradict each other.
    pub(crate) fn load(layers: &Layers) -> Result<Self, Failure> {
        let mut config = Self { warnings: layers.warnings.clone(), ..Self::default() };
        if let Some(path) = &layers.file {
            config.read_file(path)?;
        }
        config.read_env(&layers.env)?;
        for (flag, name, value) in &layers.flags {
            config.set(name, value, &format!("flag {flag}"))?;
        }
        for (flag, key, value) in &layers.opentsdb_flags {
            opentsdb::apply_pairs(&mut config, vec![((*key).to_owned(), value.clone())], &format!("flag {flag}"))?;
        }
        if config.store.kind == StoreKind::Hbase && !config.is_set("schema.salt_width") {
            // The tables may be OpenTSDB's, which salts none unless told; here too a salt is asked for.
            config.schema.salt_width = 0;
        }
        if config.publish.enable && config.publish.to.is_empty() && config.opentsdb.contains_key(opentsdb::PUBLISHER) {
            // It is a Java class, which was warned of: there is nothing to enable.
            config.set("publish.enable", "false", opentsdb::PUBLISHER)?;
        }
        if let Some(memory_bytes) = layers.memory_bytes {
            budgets::fit(&mut config, memory_bytes);
        }
        if let Some(processors) = layers.processors {
            processors::fit(&mut config, processors);
        }
        config.check()?;
        Ok(config)
    }

    fn read_file(&mut self, path: &Path) -> Result<(), Failure> {
        let shown = path.display().to_string();
        let unread = |cause: &dyn std::fmt::Display| Failure::config(format!("cannot read {shown}: {cause}"));
        let bytes = aside::read(path).map_err(|cause| unread(&cause))?;
        let extension = path.extension().and_then(|end| end.to_str()).unwrap_or_default();
        if matches!(extension, "conf" | "properties") {
            return opentsdb::apply(self, &bytes, path);
        }
        let text = String::from_utf8(bytes).map_err(|cause| unread(&cause))?;
        for (name, value) in file::flatten(&text).map_err(|why| Failure::config(format!("{shown}: {why}")))? {
            self.set(&name, &value, &shown)?;
        }
        Ok(())
    }

    /// `BASALT_SERVER__LISTEN=…` sets `server.listen`; a variable of that form that names no
    /// setting is an error, since it is a slip of the pen.
    fn read_env(&mut self, env: &[(OsString, OsString)]) -> Result<(), Failure> {
        for (variable, value) in env {
            if !variable.as_encoded_bytes().starts_with(b"BASALT_") {
                continue;
            }
            let (Some(variable), Some(value)) = (variable.to_str(), value.to_str()) else {
                return Err(Failure::config(format!("environment {} is not UTF-8", variable.display())));
            };
            let Some(rest) = variable.strip_prefix("BASALT_") else { continue };
            let Some((section, key)) = rest.split_once("__") else {
                self.name_slip(variable, rest)?;
                continue;
            };
            let name = format!("{}.{}", section.to_ascii_lowercase(), key.to_ascii_lowercase());
            self.set(&name, value, &format!("environment {variable}"))?;
        }
        Ok(())
    }

    /// Refuses a variable that has one underscore where two belong, and warns of one that lacks the section. Others without
    /// two are not ours: a container's system makes some of the names of its services.
    fn name_slip(&mut self, variable: &str, rest: &str) -> Result<(), Failure> {
        let variable_of = |key: &Key| format!("`BASALT_{}`", key.name.replace('.', "__").to_ascii_uppercase());
        let is_whole = |key: &&Key| key.name.replace('.', "_").eq_ignore_ascii_case(rest);
        if let Some(key) = keys::KEYS.iter().find(is_whole) {
            let meant = variable_of(key);
            return Err(Failure::config(format!(
                "environment {variable} sets nothing, did you mean {meant}, with two underscores?"
            )));
        }
        let is_end = |key: &&Key| key.name.split_once('.').is_some_and(|(_, end)| end.eq_ignore_ascii_case(rest));
        let meant: Vec<String> = keys::KEYS.iter().filter(is_end).map(variable_of).collect();
        if !meant.is_empty() {
            let meant = meant.join(" or ");
            self.warnings.push(format!("environment {variable} sets nothing, did you mean {meant}?"));
        }
        Ok(())
    }

    /// Sets one setting by its name; `origin` says where the value stood.
    fn set(&mut self, name: &str, value: &str, origin: &str) -> Result<(), Failure> {
        let Some(key) = Key::named(name) else {
            let hint = Key::nearest(name).map_or_else(String::new, |near| format!(", did you mean `{near}`?"));
            return Err(Failure::config(format!("unknown setting `{name}` in {origin}{hint}")));
        };
        key.take(self, value).map_err(|expected| {
            Failure::config(format!("setting `{name}` in {origin}: `{value}` is not {expected}"))
        })?;
        self.origins.insert(key.name, origin.to_owned());
        Ok(())
    }

    /// Settings that are each right and together wrong.
    fn check(&self) -> Result<(), Failure> {
        if self.schema.salt_width > 0 && self.schema.salt_buckets == 0 {
            return Err(Failure::config("setting `schema.salt_buckets` must be at least 1 when rows are salted"));
        }
        let domains: Vec<&str> = self.http.cors_domains.split(',').map(str::trim).collect();
        if domains.contains(&"*") && domains.len() > 1 {
            return Err(Failure::config("setting `http.cors_domains` is either `*` or a list of origins, not both"));
        }
        let is_token = |name: &str| {
            !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_.-".contains(&byte))
        };
        if !self.http.cors_headers.split(',').all(|name| is_token(name.trim())) {
            return Err(Failure::config("setting `http.cors_headers` must be a list of header names"));
        }
        let tables =
            [&self.schema.data_table, &self.schema.uid_table, &self.schema.tree_table, &self.schema.meta_table];
        if tables
            .iter()
            .enumerate()
            .any(|(place, name)| name.is_empty() || tables.iter().skip(place + 1).any(|other| other == name))
        {
            return Err(Failure::config("settings `schema.…_table` must be four different names"));
        }
        if self.store.kind == StoreKind::Hbase
            && self.hbase.masters.is_empty()
            && self.hbase.zookeeper_quorum.is_empty()
        {
            return Err(Failure::config(
                "store hbase needs the cluster's masters: --hbase-masters HOST:PORT,…, or `hbase.zookeeper_quorum`",
            ));
        }
        Ok(())
    }

    /// Whether a file, the environment or a flag gave this setting.
    pub(crate) fn is_set(&self, name: &str) -> bool {
        self.origins.contains_key(name)
    }

    /// Every setting with its value and where it came from (`default` if nowhere), in table order.
    pub(crate) fn entries(&self) -> impl Iterator<Item = (&'static Key, String, &str)> {
        keys::KEYS.iter().map(|key| (key, (key.get)(self), self.origin(key.name)))
    }

    fn origin(&self, name: &str) -> &str {
        let is_lessened = self.fitted.as_ref().is_some_and(|fitted| fitted.lessened.contains(&name));
        let unless_set = if is_lessened { "the memory of this machine or container" } else { "default" };
        self.origins.get(name).map_or(unless_set, String::as_str)
    }

    /// Settings whose values are not the defaults: one a line, with where each came from.
    pub(crate) fn changed(&self) -> impl Iterator<Item = String> {
        let defaults = Self::default();
        self.entries()
            .filter(move |(key, value, _)| *value != (key.get)(&defaults))
            .map(|(key, value, origin)| format!("`{}` is `{value}`, from {origin}", key.name))
    }

    /// What a person should know about the layers read, one line each; empty when all was plain.
    pub(crate) fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// Keys of OpenTSDB's that were given and steer nothing here, one line each with the reason.
    pub(crate) fn notes(&self) -> &[String] {
        &self.notes
    }
}
