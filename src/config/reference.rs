//! `docs/configuration.md`: written from the tables of keys, and held to them.
//!
//! `BASALT_BLESS=1 cargo test --bin basalt reference` writes the page anew.

use std::fmt::Write as _;
use std::path::Path;

use super::keys::{KEYS, Key};
use super::{Config, budgets, opentsdb};

const HEAD: &str = "\
# Settings

Defaults, then a file, then the environment, then flags: the later wins. `basalt config show` prints what is in force and where it came
from, `basalt config check` says whether a server would start with it. It reads the files that settings name, but opens no data folder and asks no cluster:
what these say of salt, widths and tables comes at the start.

- A file is TOML (`--config basalt.toml`): a section in brackets, below it `name = value`; or OpenTSDB's own `opentsdb.conf`, by OpenTSDB's keys
  (told by the ending `.conf` or `.properties`; anything else is TOML). Without `--config`, `basalt serve` reads none; `basalt tsd` and the tools that
  OpenTSDB has too take the first of `./opentsdb.conf`, `/etc/opentsdb.conf`, `/etc/opentsdb/opentsdb.conf` and `/opt/opentsdb/opentsdb.conf`, as it does, and say so.
- A variable is `BASALT_`, the section, two underscores, the name: `BASALT_STORE__DATA_DIR=/var/lib/basalt`.
- A setting that does not exist, in a file or as `BASALT_…__…`, ends the start with exit code 3, and the nearest one is named; so does one
  underscore where two belong. Other variables set nothing; of one that lacks only the section, as `BASALT_DATA_DIR`, the start warns.
- A default that is a part of the memory is one of what the process may use: what the machine has, or what the container's or service's control group, or one above it, allows.
  With less than 64 MiB for each processor, what goes by them counts fewer. [Sizing](operations.md#small-machines-and-containers) has the rules; `basalt config show`, the
  start's log and `/api/config` the numbers in force.
- Names that end in `_ms` are milliseconds, in `_bytes` or `_bytes_max` bytes. Numbers may have underscores: `64_000_000`.
- Changes take effect at the next start; `server.auth_file` and `query.limits_file` are read again while the server runs.

<!-- Written from src/config/keys.rs and src/config/opentsdb/keys.rs by `BASALT_BLESS=1 cargo test --bin basalt reference`. -->
";

const TAIL: &str = "
## OpenTSDB's keys without effect

An `opentsdb.conf` may contain these keys. If one has a value that differs from what Basalt does anyway, the start logs a line about it. Keys that
neither program knows are logged as warnings. `tsd.core.authentication.*` with another plugin than OpenTSDB's own ends the start.

| key | why |
|---|---|
";

/// Defaults that come from the machine.
const OF_THE_MACHINE: &[(&str, &str)] =
    &[("query.max_concurrent", "2 a processor"), ("query.max_waiting", "256, or 16 a processor if that is more")];

fn page() -> String {
    let mut page = HEAD.to_owned();
    let mut section = "";
    for key in KEYS {
        let (of, _) = key.name.split_once('.').unwrap();
        if of != section {
            section = of;
            write!(page, "\n## `[{of}]`\n\n| setting | default | takes | meaning | OpenTSDB's key | variable |\n")
                .unwrap();
            page.push_str("|---|---|---|---|---|---|\n");
        }
        let (name, default, takes, about) = (key.name, default(key), takes(key), cell(key.about));
        let theirs: Vec<String> = opentsdb::keys_of(name);
        let theirs = theirs.join("<br>");
        let variable = name.to_ascii_uppercase().replacen('.', "__", 1);
        writeln!(page, "| `{name}` | {default} | {takes} | {about} | {theirs} | `BASALT_{variable}` |").unwrap();
    }
    page.push_str(TAIL);
    for (key, why) in opentsdb::keys_without_effect() {
        writeln!(page, "| `{key}` | {} |", cell(why)).unwrap();
    }
    page
}

fn default(key: &Key) -> String {
    if let Some((_, words)) = OF_THE_MACHINE.iter().find(|(name, _)| *name == key.name) {
        return (*words).to_owned();
    }
    let shown = (key.get)(&Config::default());
    let bytes = shown.parse::<u64>().ok().filter(|_| key.name.contains("bytes"));
    let budget = budgets::BUDGETS.iter().find(|budget| budget.name == key.name);
    match (shown.is_empty(), bytes.and_then(binary)) {
        (true, _) => "empty".to_owned(),
        (_, Some(short)) if let Some(budget) = budget => {
            let [base, least] = [budgets::BASE_BYTES, budget.bytes_min].map(|bytes| binary(bytes).unwrap_or_default());
            let part = budget.part;
            format!("{shown} ({short}), or 1/{part} of the memory beyond {base} if that is less, but at least {least}")
        }
        (_, Some(short)) => format!("{shown} ({short})"),
        _ => format!("`{}`", cell(&shown)),
    }
}

/// Whole units of 1,024 bytes and their powers.
fn binary(bytes: u64) -> Option<String> {
    let units = [(40, "TiB"), (30, "GiB"), (20, "MiB"), (10, "KiB")];
    let unit = units.into_iter().find(|(bits, _)| bytes > 0 && bytes.trailing_zeros() >= *bits);
    unit.map(|(bits, name)| format!("{} {name}", bytes >> bits))
}

/// What the setting's own reader asks for when it gets what is nothing.
fn takes(key: &Key) -> String {
    let Err(expected) = (key.set)(&mut Config::default(), "\u{1}") else {
        // An empty path is none, and any other text is one.
        return if (key.set)(&mut Config::default(), "").is_err() { "path" } else { "text" }.to_owned();
    };
    if let Some(range) = &key.range {
        let shown = |bound: &u64| match binary(*bound).filter(|_| key.name.contains("bytes")) {
            Some(short) => format!("{bound} ({short})"),
            None => bound.to_string(),
        };
        return format!("{} to {}", shown(range.start()), shown(range.end()));
    }
    let expected = expected.replace("a whole number of milliseconds", "milliseconds");
    let bound = expected.strip_prefix("a whole number from ");
    match bound.and_then(|bound| bound.split_once(" to ")) {
        Some((low, high)) if high.len() <= "65535".len() => format!("{low} to {high}"),
        Some(_) if key.name.contains("bytes") => "bytes".to_owned(),
        Some(_) => "number".to_owned(),
        None => cell(&expected),
    }
}

/// Text that a cell of a table can hold.
fn cell(text: &str) -> String {
    text.replace('|', "\\|")
}

/// `F-CONF`: the page tells of every setting as it is.
#[test]
fn f_conf_the_reference_is_as_the_settings_are() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/configuration.md");
    let page = page();
    if std::env::var_os("BASALT_BLESS").is_some() {
        std::fs::write(&path, &page).unwrap();
    }
    let there = std::fs::read_to_string(&path).unwrap_or_default();
    let other = page.lines().zip(there.lines()).find(|(now, then)| now != then);
    assert!(
        page == there,
        "docs/configuration.md is out of step: `BASALT_BLESS=1 cargo test --bin basalt reference` writes it; first: {other:?}"
    );
}
