//! `basalt config check|show`.

use std::fmt::Write as _;

use clap::{Args, Subcommand};

use super::serve::Serve;
use super::{Sources, print};
use crate::config::Config;
use crate::exit::Failure;
use crate::{log, preflight, store};

/// `basalt config …`.
#[derive(Debug, Args)]
pub(super) struct ConfigCommand {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// Read all layers and say whether a server would start with them
    #[command(after_help = "\
Takes the flags of `basalt serve`, reads the files that settings name, opens no store and asks
nobody.

Example: basalt config check --config basalt.toml

Exit codes: 0 a server would start with them, 2 wrong command line, 3 it would not, and one line
says why.")]
    Check(Box<Serve>),
    /// Print every setting in force as a TOML file, with where each came from
    #[command(after_help = "\
Order: defaults < file < environment (BASALT_SECTION__KEY) < flags.

Exit codes: 0 done, 3 a setting cannot be.")]
    Show(Sources),
}

impl ConfigCommand {
    pub(super) fn run(self) -> Result<(), Failure> {
        match self.verb {
            Verb::Check(serve) => {
                let config = serve.config()?;
                preflight::check(&config)?;
                let mut text = String::new();
                let of_tables = store::warnings(&config);
                let (warning, note) = (config.memory_warning(), config.memory_note());
                let told = [
                    ("warning", config.warnings()),
                    ("warning", warning.as_slice()),
                    ("warning", of_tables.as_slice()),
                    ("note", note.as_slice()),
                    ("note", config.notes()),
                ];
                for (what, lines) in told {
                    for line in lines {
                        writeln!(text, "{what}: {line}").unwrap_or_default();
                    }
                }
                print(&format!("{text}configuration is good\n"))
            }
            Verb::Show(sources) => {
                let config = Config::load(&sources.layers())?;
                log::levels(&config.log)?;
                print(&show(&config))
            }
        }
    }
}

/// Every setting in force as a TOML file.
fn show(config: &Config) -> String {
    let mut text = String::new();
    let mut section = "";
    for (key, value, origin) in config.entries() {
        let (head, name) = key.name.split_once('.').unwrap_or(("", key.name));
        if head != section {
            let blank = if section.is_empty() { "" } else { "\n" };
            writeln!(text, "{blank}[{head}]").unwrap_or_default();
            section = head;
        }
        let value = toml_value(&value);
        writeln!(text, "{name} = {value}  # {}; from {origin}", key.about).unwrap_or_default();
    }
    text
}

/// Numbers and booleans bare, everything else quoted: also a number that is none of TOML's, which have 63 bits and no zero before.
fn toml_value(text: &str) -> String {
    let is_number = text.parse().is_ok_and(|number: i64| number >= 0 && number.to_string() == text);
    if is_number || text.parse::<bool>().is_ok() {
        return text.to_owned();
    }
    toml::Value::String(text.to_owned()).to_string()
}
