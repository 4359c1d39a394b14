//! The workspace's own commands: `cargo xtask ci | tidy | …`; run without one for the list.

#![expect(clippy::disallowed_types, reason = "its work is to start cargo and the oracle")]

mod beside;
mod both;
mod ci;
mod differential;
mod dist;
mod golden;
mod import_check;
mod oracle;
mod peers;
mod process;
mod rounds;
mod tidy;
mod truth;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Result;

const USAGE: &str = "\
usage: cargo xtask COMMAND

  ci              the whole gate: fmt, clippy, doc, tidy, tests; its last line counts the tests
  tidy [--bless]  the rules that no compiler knows; --bless takes the format documents' hashes anew
  both ...        it and Basalt on the same tables at once: uids | points [--count N]
  oracle ...      a real OpenTSDB on a real HBase: up [--fresh] [PROFILE...] | down | status | hb | scan | fsck
  beside ...      puts and questions to Basalt and to OpenTSDB on one HBase, in turns: --help for the flags
  differential ...  random data and requests to it and to Basalt: --count N --seed S, --help for the rest
  dist            the binary to install: trained by a load of its own, then built for it; target/dist/basalt
  golden ...      the answers recorded from it: record [NAME...] | check [NAME...] | list
  import-check ...  `basalt import` of a real dump, and of a made one beside `/api/put`: --generate N, --help for the rest
  peers ...       the benches beside VictoriaMetrics, InfluxDB, QuestDB and OpenTSDB, each fetched: --help for the rest
  rounds ...      Basalt over HBase under load while either is killed, frozen, moved, split: --count N --seed S
  truth ...       the store's rules asked of a real HBase: gate | suite [--record] [NAME...] | histories [--count N] [--seed N]
";

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    match run(&args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("xtask: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// The workspace's root folder: that of the clone it is run in, where `cargo` runs it. One target folder shared by two
/// clones holds one program, and the clone that it was compiled in may be the other.
pub(crate) fn workspace() -> PathBuf {
    let here = std::env::var_os("CARGO_MANIFEST_DIR").map_or_else(|| env!("CARGO_MANIFEST_DIR").into(), PathBuf::from);
    here.parent().map_or_else(|| here.clone(), Path::to_path_buf)
}

fn run(args: &[String]) -> Result<()> {
    let rest = args.get(1..).unwrap_or_default();
    match args.first().map(String::as_str) {
        Some("beside") => beside::run(rest),
        Some("both") => both::run(rest),
        Some("ci") => ci::run(),
        Some("tidy") => tidy::run(rest.iter().any(|a| a == "--bless")),
        Some("differential") => differential::run(rest),
        Some("dist") => dist::run(),
        Some("oracle") => oracle::run(rest),
        Some("golden") => golden::run(rest),
        Some("import-check") => import_check::run(rest),
        Some("peers") => peers::run(rest),
        Some("rounds") => rounds::run(rest),
        Some("truth") => truth::run(rest),
        _ => anyhow::bail!("no such command\n{USAGE}"),
    }
}
