//! `basalt inspect`: what the files of a folder hold, or one file.

use std::fmt::Write as _;
use std::path::PathBuf;

use basalt_engine::io::OsFs;
use basalt_engine::{AuditedFile, FileKind, SstableFile};
use basalt_store::{CellKind, CellRef};
use clap::Args;
use serde_json::{Value, json};

use super::verify::{end_by, open_folder};
use super::{Sources, print};
use crate::exit::Failure;
use crate::store::{folder_options, refused};

/// Cells shown unless told otherwise.
const CELLS_DEFAULT: usize = 100;

/// `basalt inspect`.
#[derive(Debug, Args)]
#[command(after_help = "\
Without FILE: every file of a data folder with its table, family, rows, cells and blocks; the folder
must be free. With FILE: what one SSTable tells of itself, its blocks, its cells. Nothing is
changed, and no data block is proved: that is what `basalt verify` does.

Examples:
  basalt inspect --data-dir /var/lib/basalt
  basalt inspect /var/lib/basalt/sst-0000000000000007.sst --blocks
  basalt inspect --json --cells --limit 1000 sst-0000000000000007.sst

Exit codes: 0 done, 1 no such file, 4 folder in use, 5 damaged data.")]
pub(super) struct Inspect {
    #[command(flatten)]
    sources: Sources,
    /// One SSTable
    file: Option<PathBuf>,
    /// Its data blocks
    #[arg(long, requires = "file")]
    blocks: bool,
    /// Its cells
    #[arg(long, requires = "file")]
    cells: bool,
    /// At most so many cells
    #[arg(long, value_name = "N", default_value_t = CELLS_DEFAULT, requires = "cells")]
    limit: usize,
    /// One JSON object a line
    #[arg(long)]
    json: bool,
}

impl Inspect {
    pub(super) fn run(self) -> Result<(), Failure> {
        match &self.file {
            Some(file) => self.look_into(file),
            None => self.list(),
        }
    }

    fn list(&self) -> Result<(), Failure> {
        let files = open_folder(&self.sources)?.audit(false, &mut |_| {}).map_err(|cause| refused(&cause))?;
        if self.json {
            print(&lines(files.iter().map(as_json)))?;
            return end_by(&files);
        }
        let mut text = String::from("FILE KIND BYTES ROWS CELLS BLOCKS TABLE FAMILY RANGE\n");
        for file in &files {
            let kind = kind(file.kind);
            let AuditedFile { name, bytes, rows_count, cells_count, blocks_count, .. } = file;
            write!(text, "{name} {kind} {bytes} {rows_count} {cells_count} {blocks_count}").unwrap_or_default();
            for owner in &file.owners {
                let (start, end) = (owner.start.escape_ascii(), owner.end.escape_ascii());
                let of = owner.snapshot.as_ref().map_or(String::new(), |name| format!("snapshot {name} of "));
                let family = owner.family.escape_ascii();
                write!(text, " {of}{} {family} [{start}, {end})", owner.table).unwrap_or_default();
            }
            if let Some(damage) = &file.damage {
                write!(text, " DAMAGED: {damage}").unwrap_or_default();
            }
            text.push('\n');
        }
        print(&text)?;
        end_by(&files)
    }

    fn look_into(&self, path: &std::path::Path) -> Result<(), Failure> {
        let codecs = folder_options(&self.sources.load()?).codecs;
        let file = SstableFile::open(&OsFs, path, &codecs).map_err(|cause| refused(&cause))?;
        if self.blocks {
            let blocks = file.blocks().map_err(|cause| refused(&cause))?;
            let shown = blocks.iter().map(|block| {
                json!({
                    "offset": block.offset, "bytes": block.bytes, "cells": block.cells_count,
                    "first_row": block.first_row.escape_ascii().to_string(),
                    "last_row": block.last_row.escape_ascii().to_string(),
                })
            });
            return print(&self.shown(shown));
        }
        if self.cells {
            let mut shown = Vec::new();
            let walked = file.cells(|cell| {
                shown.push(cell_json(cell));
                shown.len() < self.limit
            });
            print(&self.shown(shown.into_iter().take(self.limit)))?;
            return walked.map_err(|cause| refused(&cause));
        }
        let figures = &file.figures;
        let told = json!({
            "id": figures.id, "bytes": figures.bytes, "family": figures.family.escape_ascii().to_string(),
            "block_encoding": figures.block_encoding, "rows": figures.rows_count, "cells": figures.cells_count,
            "tombstones": figures.tombstones_count, "blocks": figures.blocks_count, "cell_bytes": figures.cell_bytes,
            "time_min": figures.times.0.0, "time_max": figures.times.1.0,
            "sequence_min": figures.sequences.0, "sequence_max": figures.sequences.1,
            "first_row": figures.first_row.escape_ascii().to_string(),
            "last_row": figures.last_row.escape_ascii().to_string(),
        });
        print(&self.shown([told].into_iter()))
    }

    /// Objects as JSON, or as `name=value` words a line.
    fn shown(&self, objects: impl Iterator<Item = Value>) -> String {
        if self.json {
            return lines(objects);
        }
        let mut text = String::new();
        for object in objects {
            let members = object.as_object().into_iter().flatten();
            let words: Vec<String> = members
                .map(|(name, value)| match value {
                    Value::String(value) => format!("{name}={value}"),
                    value => format!("{name}={value}"),
                })
                .collect();
            text.push_str(&words.join(" "));
            text.push('\n');
        }
        text
    }
}

fn lines(objects: impl Iterator<Item = Value>) -> String {
    objects.fold(String::new(), |text, object| text + &object.to_string() + "\n")
}

fn kind(kind: FileKind) -> &'static str {
    match kind {
        FileKind::Manifest => "manifest",
        FileKind::Log => "log",
        FileKind::Sstable => "sstable",
        FileKind::Unnamed => "unnamed",
    }
}

fn as_json(file: &AuditedFile) -> Value {
    let owners: Vec<Value> = file
        .owners
        .iter()
        .map(|owner| {
            json!({
                "table": owner.table.to_string(), "family": owner.family.escape_ascii().to_string(),
                "snapshot": owner.snapshot, "start": owner.start.escape_ascii().to_string(),
                "end": owner.end.escape_ascii().to_string(),
            })
        })
        .collect();
    json!({
        "file": file.name, "kind": kind(file.kind), "bytes": file.bytes, "rows": file.rows_count,
        "cells": file.cells_count, "blocks": file.blocks_count, "owners": owners,
        "damage": file.damage.as_ref().map(ToString::to_string),
    })
}

fn cell_json(cell: &CellRef<'_>) -> Value {
    let kind = match cell.kind {
        CellKind::Put => "put",
        CellKind::Delete => "delete",
        CellKind::DeleteColumn => "delete_column",
        CellKind::DeleteFamily => "delete_family",
        CellKind::DeleteFamilyVersion => "delete_family_version",
    };
    json!({
        "row": cell.row.escape_ascii().to_string(), "family": cell.family.escape_ascii().to_string(),
        "qualifier": cell.qualifier.escape_ascii().to_string(), "timestamp": cell.timestamp.0, "kind": kind,
        "sequence": cell.seq.0, "value": cell.value.escape_ascii().to_string(),
    })
}
