//! `basalt fsck`: damage in data rows, found and mended.

use std::fmt::Write as _;

use basalt_schema::{RowFsck, RowFsckCounts, RowFsckOptions, Schema};
use basalt_store::{RowView, Scan};
use clap::Args;
use indicatif::{ProgressBar, ProgressStyle};

use super::folder::with_rows;
use super::rows::{Rows, batches};
use super::uid::level;
use super::words::Words;
use super::{ToolSources, print};
use crate::exit::{Exit, Failure};
use crate::progress::ProgressLog;
use crate::store::failed;

/// `basalt fsck`.
#[derive(Debug, Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of the command line, as in OpenTSDB")]
#[command(after_help = "\
Give a query, written as for `basalt query`, or --full-scan. Without --fix nothing is changed. Every
finding is a line, the counters follow. Of duplicate points the newest stays, as readers see it
(with compat.strict the oldest, as in OpenTSDB). With schema.use_otsdb_timestamp nothing is mended.

Examples:
  basalt fsck --full-scan
  basalt fsck --full-scan --fix-all
  basalt fsck --fix --resolve-duplicates 2013/01/01-00:00 2013/01/02-00:00 sum sys.cpu

Exit codes: 0 no errors, 1 errors were found (mended or not), 2 wrong command line, 3 wrong
configuration, or one with which nothing is mended, 4 folder in use, 5 damaged data, 75 the disk is
full: rows before are mended, run it again.")]
pub(super) struct FsckTool {
    /// The query
    #[arg(value_name = "WORD")]
    words: Vec<String>,
    /// Check the whole data table
    #[arg(long)]
    full_scan: bool,
    /// Mend what is found, as far as the other flags allow
    #[arg(long)]
    fix: bool,
    /// Mend everything: all flags but --last-write-wins
    #[arg(long)]
    fix_all: bool,
    /// Fold each row into one cell
    #[arg(long)]
    compact: bool,
    /// Keep one of several points of one time
    #[arg(long)]
    resolve_duplicates: bool,
    /// Keep the newest of them (the default, unless compat.strict)
    #[arg(long)]
    last_write_wins: bool,
    /// Delete rows whose UIDs have no names
    #[arg(long)]
    delete_orphans: bool,
    /// Delete columns that do not belong to OpenTSDB
    #[arg(long)]
    delete_unknown_columns: bool,
    /// Delete points whose values cannot be read, mend those that only their own length tells
    #[arg(long)]
    delete_bad_values: bool,
    /// Delete rows whose keys are none
    #[arg(long)]
    delete_bad_rows: bool,
    /// Delete compacted cells that cannot be read
    #[arg(long)]
    delete_bad_compacts: bool,
    /// Taken and not needed: one thread reads
    #[arg(long, hide = true, value_name = "NUMBER")]
    threads: Option<u32>,
    /// Taken and not needed: every mend is durable before the next
    #[arg(long, hide = true)]
    sync: bool,
    #[command(flatten)]
    sources: ToolSources,
}

impl FsckTool {
    pub(super) fn run(self) -> Result<(), Failure> {
        let config = self.sources.load()?;
        let words = match (self.words.is_empty(), self.full_scan) {
            (true, true) => None,
            (true, false) => {
                return Err(Failure::new(Exit::Usage, "give a query or --full-scan; see `basalt fsck --help`"));
            }
            (false, _) => Some(Words::parse(&self.words, &config)?),
        };
        let first_write_wins = config.compat.strict && !self.last_write_wins;
        let counts = with_rows(&config, |opened| {
            let schema = &*opened.schema;
            if (self.fix || self.fix_all) && schema.config().data_times.is_some() {
                let cause = basalt_query::Error::DeleteWithPointTimes;
                return Err(Failure::config(format!("cannot mend rows: {cause}")));
            }
            let mut fsck = schema.row_fsck(self.options(first_write_wins));
            let bar = ProgressBar::no_length().with_style(style());
            let log = ProgressLog::new();
            let mut check = |rows: &[RowView<'_>]| {
                check(schema, &mut fsck, rows, &bar)?;
                log.tell(|| format!("{} rows checked", fsck.counts().rows));
                Ok(())
            };
            match &words {
                None => batches(schema, Scan::all(), &mut |batch| check(&batch.rows().collect::<Vec<_>>()))?,
                Some(words) => {
                    Rows::of_all(schema, words)?.iter().try_for_each(|rows| rows.for_each(schema, &mut check))?;
                }
            }
            bar.finish_and_clear();
            Ok(*fsck.counts())
        })?;
        print(&report(&counts))?;
        if counts.errors() == 0 {
            return Ok(());
        }
        let (errors, mended) = (counts.errors(), counts.mended());
        Err(Failure::new(Exit::Failure, format!("{errors} errors found, {mended} of them mended")))
    }

    fn options(&self, first_write_wins: bool) -> RowFsckOptions {
        let all = self.fix_all;
        RowFsckOptions {
            fix: self.fix || all,
            compact: self.compact || all,
            resolve_duplicates: self.resolve_duplicates || all,
            first_write_wins,
            data_times: None,
            delete_orphans: self.delete_orphans || all,
            delete_unknown_columns: self.delete_unknown_columns || all,
            delete_bad_values: self.delete_bad_values || all,
            delete_bad_rows: self.delete_bad_rows || all,
            delete_bad_compacts: self.delete_bad_compacts || all,
            histogram_id: None,
        }
    }
}

fn check(schema: &Schema, fsck: &mut RowFsck, rows: &[RowView<'_>], bar: &ProgressBar) -> Result<(), Failure> {
    let checked = schema.fsck_rows(fsck, rows).map_err(|cause| failed("cannot check rows", &cause));
    let mut text = String::new();
    for finding in fsck.take_findings() {
        writeln!(text, "{} {}", level(finding.severity), finding.text).unwrap_or_default();
    }
    bar.set_position(fsck.counts().rows);
    bar.suspend(|| print(&text))?;
    checked
}

fn style() -> ProgressStyle {
    ProgressStyle::with_template("{spinner} {pos} rows {per_sec} {elapsed}")
        .unwrap_or_else(|_| ProgressStyle::default_spinner())
}

/// OpenTSDB's counters, in its order and words.
fn report(counts: &RowFsckCounts) -> String {
    let lines = [
        ("Key Values Processed", counts.cells),
        ("Rows Processed", counts.rows),
        ("Valid Datapoints", counts.valid_points),
        ("Annotations", counts.annotations),
        ("Invalid Row Keys Found", counts.bad_keys),
        ("Invalid Rows Deleted", counts.bad_keys_fixed),
        ("Duplicate Datapoints", counts.duplicates),
        ("Duplicate Datapoints Resolved", counts.duplicates_fixed),
        ("Orphaned UID Rows", counts.orphans),
        ("Orphaned UID Rows Deleted", counts.orphans_fixed),
        ("Possible Future Objects", counts.future),
        ("Unknown Objects", counts.unknown),
        ("Unknown Objects Deleted", counts.unknown_fixed),
        ("Unparseable Datapoint Values", counts.bad_values),
        ("Unparseable Datapoint Values Deleted", counts.bad_values_deleted),
        ("Improperly Encoded Floating Point Values", counts.bad_encodings),
        ("Improperly Encoded Floating Point Values Fixed", counts.bad_encodings_fixed),
        ("Unparseable Compacted Columns", counts.bad_compacts),
        ("Unparseable Compacted Columns Deleted", counts.bad_compacts_deleted),
        ("Datapoints Qualified for VLE ", counts.vle),
        ("Datapoints Compressed with VLE", counts.vle_fixed),
        ("Bytes Saved with VLE", counts.vle_bytes),
        ("Total Errors", counts.errors()),
        ("Total Correctable Errors", counts.errors()),
        ("Total Errors Fixed", counts.fixed()),
    ];
    lines.iter().fold(String::new(), |mut text, (name, count)| {
        writeln!(text, "INFO  {name}: {count}").unwrap_or_default();
        text
    })
}
