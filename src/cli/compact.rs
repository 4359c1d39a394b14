//! `basalt compact`: flush and major compaction of a folder.

use std::fmt::Write as _;

use basalt_store::{Compaction, Store as _, TableName};
use clap::Args;
use indicatif::{ProgressBar, ProgressStyle};

use super::folder::{failed, with_folder};
use super::{Sources, print};
use crate::exit::{Exit, Failure};

/// `basalt compact`.
#[derive(Debug, Args)]
#[command(after_help = "\
Writes what is in memory into files, then merges all files of each region into one: deleted and overwritten cells
go, rows of points are folded. Returns when it is done; the folder must be free.

Examples:
  basalt compact
  basalt compact --data-dir /var/lib/basalt --table tsdb

Exit codes: 0 done, 1 no such folder or table, 4 folder in use, 5 damaged data, 75 disk full.")]
pub(super) struct Compact {
    #[command(flatten)]
    sources: Sources,
    /// Only this table [default: all]
    #[arg(long, value_name = "NAME")]
    table: Option<String>,
}

impl Compact {
    pub(super) fn run(self) -> Result<(), Failure> {
        with_folder(&self.sources.load()?, |opened| {
            let Some(engine) = opened.engine() else {
                return Err(Failure::config("only the embedded store has files to compact"));
            };
            let all = engine.list_tables().map_err(|cause| failed("cannot list the tables", &cause.into()))?;
            let wanted = self.wanted(all)?;
            let bar = ProgressBar::new(wanted.len() as u64).with_style(style());
            let mut text = String::new();
            for table in &wanted {
                bar.set_message(table.to_string());
                let before = bytes(engine.as_ref(), table)?;
                engine
                    .flush(table)
                    .and_then(|()| engine.compact(table, Compaction::Major))
                    .map_err(|cause| failed(&format!("cannot compact `{table}`"), &cause.into()))?;
                let after = bytes(engine.as_ref(), table)?;
                writeln!(text, "{table}: {before} bytes in files and memory, now {after} in files").unwrap_or_default();
                bar.inc(1);
            }
            bar.finish_and_clear();
            print(&text)
        })
    }

    /// The tables to compact, of those that there are.
    fn wanted(&self, all: Vec<TableName>) -> Result<Vec<TableName>, Failure> {
        let Some(name) = &self.table else { return Ok(all) };
        let found: Vec<TableName> = all.iter().filter(|table| table.to_string() == *name).cloned().collect();
        if found.is_empty() {
            let names: Vec<String> = all.iter().map(ToString::to_string).collect();
            let line = format!("there is no table `{name}`; there are: {}", names.join(", "));
            return Err(Failure::new(Exit::Failure, line));
        }
        Ok(found)
    }
}

/// A table's bytes in files and memtables.
fn bytes(store: &dyn basalt_store::Store, table: &TableName) -> Result<u64, Failure> {
    let regions = store.regions(table).map_err(|cause| failed("cannot read the regions", &cause.into()))?;
    Ok(regions.iter().map(|region| region.file_bytes + region.memtable_bytes).sum())
}

fn style() -> ProgressStyle {
    ProgressStyle::with_template("{msg} {wide_bar} {pos}/{len} tables {elapsed}")
        .unwrap_or_else(|_| ProgressStyle::default_bar())
}
