//! Commands about the store as a whole and about a table's files.

use std::fmt::Write as _;

use basalt_store::Compaction;
use serde_json::json;

use super::arguments::Arguments;
use super::command::{COMMANDS, named};
use super::error::{Error, Result};
use super::session::Session;

/// `help`
pub(super) fn help(session: &mut Session<'_>, mut arguments: Arguments) -> Result<()> {
    let at = arguments.at;
    let wanted = arguments.optional();
    arguments.end()?;
    let Some(wanted) = wanted else { return session.print(at, |printer| printer.line(&overview())) };
    let name = wanted.text("help")?;
    let command = named(&name).ok_or_else(|| Error::wrong(wanted.at, format!("there is no command `{name}`")))?;
    session.print(at, |printer| {
        printer.line(command.usage)?;
        if command.note.is_empty() { Ok(()) } else { printer.line(command.note) }
    })
}

/// All commands by group, and the dialect in a few lines.
fn overview() -> String {
    let mut text = String::from("help 'COMMAND' tells more about one.\n");
    let mut group = "";
    for command in COMMANDS {
        if command.group != group {
            group = command.group;
            write!(text, "\n{group}:").unwrap_or_default();
        }
        write!(text, " {}", command.name).unwrap_or_default();
    }
    text.push_str(
        "\n\nNames and values stand in quotes; \"\\x00\\xff\" in double quotes are bytes, in single quotes they are\n\
         what they look like. Options are NAME => value, with or without braces. A line goes on after a comma and\n\
         while a bracket is open. exit ends the shell.",
    );
    text
}

/// `status`
pub(super) fn status(session: &mut Session<'_>, mut arguments: Arguments) -> Result<()> {
    let at = arguments.at;
    arguments.end()?;
    let tables = session.store.list_tables().map_err(Error::store(at))?;
    let (mut regions, mut file_bytes, mut memtable_bytes) = (0_usize, 0_u64, 0_u64);
    for table in &tables {
        let found = session.store.regions(table).map_err(Error::store(at))?;
        regions += found.len();
        file_bytes += found.iter().map(|region| region.file_bytes).sum::<u64>();
        memtable_bytes += found.iter().map(|region| region.memtable_bytes).sum::<u64>();
    }
    let tables = tables.len();
    let line = format!("{tables} tables, {regions} regions, {file_bytes} bytes in files, {memtable_bytes} in memory");
    session.print(at, |printer| {
        printer.answer(&line, || {
            json!({"tables": tables, "regions": regions, "file_bytes": file_bytes, "memtable_bytes": memtable_bytes})
        })
    })
}

/// `version`
pub(super) fn version(session: &mut Session<'_>, mut arguments: Arguments) -> Result<()> {
    arguments.end()?;
    let version = env!("CARGO_PKG_VERSION");
    session.print(arguments.at, |printer| printer.answer(&format!("basalt {version}"), || json!({"version": version})))
}

/// `flush`
pub(super) fn flush(session: &mut Session<'_>, mut arguments: Arguments) -> Result<()> {
    let table = arguments.table()?;
    arguments.end()?;
    session.store.flush(&table).map_err(Error::store(arguments.at))
}

/// `compact`
pub(super) fn compact(session: &mut Session<'_>, arguments: Arguments) -> Result<()> {
    merge(session, arguments, Compaction::Minor)
}

/// `major_compact`
pub(super) fn major_compact(session: &mut Session<'_>, arguments: Arguments) -> Result<()> {
    merge(session, arguments, Compaction::Major)
}

fn merge(session: &mut Session<'_>, mut arguments: Arguments, compaction: Compaction) -> Result<()> {
    let table = arguments.table()?;
    arguments.end()?;
    session.store.compact(&table, compaction).map_err(Error::store(arguments.at))
}
