//! `basalt uid`: OpenTSDB's tool for names and UIDs, with its words, lines and ends.

mod meta;

use std::fmt::Write as _;

use basalt_schema::{Error, Schema, Severity, TreeId, Uid, UidFsckOptions, UidKind, decode_name};
use basalt_store::{CellView, Columns, ErrorKind, Scan};
use clap::Args;
use regex::bytes::{Regex, RegexBuilder};

use super::folder::{with_home, with_rows};
use super::{ToolSources, java, print};
use crate::exit::{Exit, Failure};
use crate::progress::meanwhile;
use crate::store::uid_space::way_out;
use crate::store::{OpenTables, failed};

/// `basalt uid`.
#[derive(Debug, Args)]
#[command(after_help = "\
Sub-commands:
  grep [KIND] RE                  names that match; exit 1 when none does
  assign KIND NAME…               gives names their UIDs; one that has a UID keeps it
  rename KIND OLD NEW             gives a UID another name
  delete KIND NAME                removes a name and its UID; the data stay
  fsck [fix] [delete_unknown]     checks the maps; exit 1 when something is damaged
  metasync                        makes meta objects that rows of points lack, sets their times
  metapurge                       removes all meta objects and counters
  treesync                        puts series with a meta object into the enabled trees
  treepurge ID [true]             removes a tree's branches, and with `true` its definition
  [KIND] NAME                     the UID of a name
  [KIND] ID                       the name of a UID: a number, or bytes as `[0, 0, 1]`

KIND is metrics, tagk (tag name) or tagv (tag value).

Examples:
  basalt uid grep -i metrics '^sys\\.'
  basalt uid rename metrics sys.cpu system.cpu
  basalt uid tagv 5
  basalt uid fsck fix

Exit codes: 0 done, 1 nothing found or refused, 2 wrong command line, 4 folder in use, 5 damaged
data, 75 the disk is full.")]
pub(super) struct UidTool {
    /// Sub-command and its words
    #[arg(required = true, value_name = "WORD")]
    words: Vec<String>,
    /// Ignore case when matching a regular expression
    #[arg(long, short)]
    ignore_case: bool,
    /// Bytes of a UID; must be those of the tables
    #[arg(long, value_name = "N")]
    idwidth: Option<u8>,
    #[command(flatten)]
    sources: ToolSources,
}

/// The words of a command line, understood.
#[derive(Debug)]
enum Task {
    Grep(Option<UidKind>, Regex),
    Assign(UidKind, Vec<String>),
    Rename(UidKind, String, String),
    Delete(UidKind, String),
    Fsck(UidFsckOptions),
    MetaSync,
    MetaPurge,
    TreeSync,
    /// The tree, and whether its definition goes too.
    TreePurge(TreeId, bool),
    Find(Option<UidKind>, String),
}

impl UidTool {
    pub(super) fn run(self) -> Result<(), Failure> {
        let task = task(&self.words, self.ignore_case)?;
        let config = self.sources.load()?;
        let assigns = matches!(task, Task::Assign(..));
        let work = |opened: &OpenTables| {
            let schema = &*opened.schema;
            check_width(schema, self.idwidth)?;
            match task {
                Task::Grep(kind, pattern) => meanwhile("reading the UID table", || grep(schema, kind, &pattern)),
                Task::Assign(kind, names) => assign(schema, kind, &names),
                Task::Rename(kind, old, new) => {
                    schema.uids().of(kind).rename(&old, &new).map_err(|cause| refused(&cause))?;
                    print(&format!("{kind} {old} -> {new}\n"))
                }
                Task::Delete(kind, name) => {
                    schema.uids().of(kind).delete(&name).map_err(|cause| refused(&cause))?;
                    print(&format!("UID {kind} {name} deleted.\n"))
                }
                Task::Fsck(options) => fsck(schema, options),
                Task::MetaSync => meta::sync(schema),
                Task::MetaPurge => meta::purge(schema),
                Task::TreeSync => meta::sync_trees(schema),
                Task::TreePurge(id, definition) => meta::purge_tree(schema, id, definition),
                Task::Find(kind, text) => find(schema, kind, &text),
            }
        };
        if assigns { with_home(&config, work) } else { with_rows(&config, work) }
    }
}

fn task(words: &[String], ignore_case: bool) -> Result<Task, Failure> {
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    Ok(match *words.as_slice() {
        ["grep", pattern] => Task::Grep(None, regex(pattern, ignore_case)?),
        ["grep", kind, pattern] => Task::Grep(Some(kind_of(kind)?), regex(pattern, ignore_case)?),
        ["assign", kind, ref names @ ..] if !names.is_empty() => {
            Task::Assign(kind_of(kind)?, names.iter().map(|name| (*name).to_owned()).collect())
        }
        ["rename", kind, old, new] => Task::Rename(kind_of(kind)?, old.to_owned(), new.to_owned()),
        ["delete", kind, name] => Task::Delete(kind_of(kind)?, name.to_owned()),
        ["fsck", ref rest @ ..] => {
            if let Some(word) = rest.iter().find(|word| !["fix", "delete_unknown"].contains(word)) {
                return Err(usage(&format!("fsck takes `fix` and `delete_unknown`, not `{word}`")));
            }
            let (fix, delete_unknown) = (rest.contains(&"fix"), rest.contains(&"delete_unknown"));
            Task::Fsck(UidFsckOptions { fix, delete_unknown, ..UidFsckOptions::default() })
        }
        ["metasync"] => Task::MetaSync,
        ["metapurge"] => Task::MetaPurge,
        ["treesync"] => Task::TreeSync,
        ["treepurge", id] => Task::TreePurge(tree(id)?, false),
        ["treepurge", id, definition] => match definition.to_ascii_lowercase().parse() {
            Ok(definition) => Task::TreePurge(tree(id)?, definition),
            Err(_) => {
                return Err(usage(&format!("treepurge takes `true` or `false` behind the ID, not `{definition}`")));
            }
        },
        ["grep" | "assign" | "rename" | "delete" | "metasync" | "metapurge" | "treesync" | "treepurge", ..] => {
            return Err(usage("wrong number of arguments"));
        }
        [text] => Task::Find(None, text.to_owned()),
        [kind, text] => Task::Find(Some(kind_of(kind)?), text.to_owned()),
        _ => return Err(usage("wrong number of arguments")),
    })
}

fn usage(line: &str) -> Failure {
    Failure::new(Exit::Usage, format!("uid: {line}; see `basalt uid --help`"))
}

fn tree(word: &str) -> Result<TreeId, Failure> {
    let id = word.parse().ok().and_then(|id| TreeId::new(id).ok());
    id.ok_or_else(|| usage("a tree has a number from 1 to 65535"))
}

fn kind_of(word: &str) -> Result<UidKind, Failure> {
    let kinds = UidKind::ALL.map(UidKind::qualifier).join(", ");
    UidKind::parse(word)
        .ok_or_else(|| usage(&format!("invalid type requested: {word} is no sub-command, nor one of {kinds}")))
}

fn regex(pattern: &str, ignore_case: bool) -> Result<Regex, Failure> {
    RegexBuilder::new(pattern)
        .case_insensitive(ignore_case)
        .build()
        .map_err(|cause| usage(&format!("`{pattern}` is no regular expression: {cause}").replace('\n', " ")))
}

/// The tables know their widths; another one asked for is a mistake.
fn check_width(schema: &Schema, wanted: Option<u8>) -> Result<(), Failure> {
    let widths = schema.layout().widths;
    match wanted {
        Some(bytes) if !UidKind::ALL.iter().any(|kind| widths.of(*kind).bytes() == usize::from(bytes)) => {
            Err(usage(&format!("--idwidth {bytes} is not the width of the tables")))
        }
        _ => Ok(()),
    }
}

fn refused(cause: &Error) -> Failure {
    if let Error::UidsExhausted { kind, .. } = cause {
        return Failure::new(Exit::Failure, format!("{cause} To have more, {}", way_out(*kind)));
    }
    match cause.kind() {
        ErrorKind::NotFound | ErrorKind::Conflict | ErrorKind::Invalid => {
            Failure::new(Exit::Failure, cause.to_string())
        }
        _ => failed("the UID table", cause),
    }
}

/// One line a UID: `metrics sys.cpu: [0, 0, 1]`.
fn line(kind: UidKind, name: &str, id: &[u8]) -> String {
    format!("{kind} {name}: {}\n", java::bytes(id))
}

fn uid_line(schema: &Schema, kind: UidKind, name: &str, uid: Uid) -> String {
    line(kind, name, &uid.encode(schema.layout().widths.of(kind)))
}

/// Gives names their UIDs and prints each.
pub(super) fn assign(schema: &Schema, kind: UidKind, names: &[String]) -> Result<(), Failure> {
    for name in names {
        let uid = schema.uids().of(kind).uid_or_create(name).map_err(|cause| refused(&cause))?;
        // The steps of an assignment are synced by whoever uses the UID: here, nobody else does.
        schema.store().sync().wait().map_err(|cause| failed("cannot make the UID durable", &cause.into()))?;
        print(&uid_line(schema, kind, name, uid))?;
    }
    Ok(())
}

/// The kind of a cell of a map; none for meta data and unknown columns.
fn kind_of_cell(cell: &CellView<'_>) -> Option<UidKind> {
    UidKind::ALL.into_iter().find(|kind| kind.qualifier().as_bytes() == cell.qualifier)
}

fn grep(schema: &Schema, wanted: Option<UidKind>, pattern: &Regex) -> Result<(), Failure> {
    let failing = |cause: basalt_store::Error| failed("cannot read the UID table", &cause.into());
    let scan = Scan::all().with_columns(Columns::family("id"));
    let mut scanner = schema.store().scan(&schema.tables().uid, scan).map_err(failing)?;
    let mut found = false;
    while let Some(batch) = scanner.next_wait().transpose().map_err(failing)? {
        let mut text = String::new();
        // The row of the counters is a zero byte: no name is.
        for row in batch.rows().filter(|row| row.key() != [0]) {
            let name = decode_name(row.key());
            for cell in row.cells().filter(|_| pattern.is_match(name.as_bytes())) {
                let kind = kind_of_cell(&cell).filter(|kind| wanted.is_none_or(|wanted| wanted == *kind));
                if let Some(kind) = kind {
                    text.push_str(&line(kind, &name, cell.value));
                    found = true;
                }
            }
        }
        print(&text)?;
    }
    if found { Ok(()) } else { Err(Failure::new(Exit::Failure, format!("no name matches `{pattern}`"))) }
}

/// A UID as typed: a number, or its bytes as they are printed.
fn parse_uid(text: &str) -> Option<Uid> {
    if let Ok(number) = text.parse() {
        return Some(Uid::new(number));
    }
    let inner = text.strip_prefix('[')?.strip_suffix(']')?;
    let bytes: Vec<u8> = inner
        .split(',')
        .map(|byte| byte.trim().parse::<i16>().ok().filter(|byte| (-128..256).contains(byte)))
        .map(|byte| byte.map(|byte| byte.to_be_bytes()[1]))
        .collect::<Option<_>>()?;
    Uid::decode(&bytes)
}

fn find(schema: &Schema, kind: Option<UidKind>, text: &str) -> Result<(), Failure> {
    let Some(kind) = kind else { return find_any(schema, text) };
    let uids = schema.uids().of(kind);
    if let Some(uid) = parse_uid(text) {
        too_large(schema, kind, uid)?;
        let name = uids.name(uid).map_err(|cause| refused(&cause))?;
        return print(&uid_line(schema, kind, &name, uid));
    }
    let uid = uids.uid(text).map_err(|cause| refused(&cause))?;
    print(&uid_line(schema, kind, text, uid))
}

fn too_large(schema: &Schema, kind: UidKind, uid: Uid) -> Result<(), Failure> {
    let width = schema.layout().widths.of(kind);
    if uid <= width.uid_max() {
        return Ok(());
    }
    let line = format!("{} is too large to fit on {} bytes", uid.number(), width.bytes());
    Err(Failure::new(Exit::Failure, line))
}

/// Looks in all three kinds.
fn find_any(schema: &Schema, text: &str) -> Result<(), Failure> {
    let mut out = String::new();
    let typed = parse_uid(text);
    if let Some(uid) = typed
        && UidKind::ALL.into_iter().all(|kind| too_large(schema, kind, uid).is_err())
    {
        too_large(schema, UidKind::Metric, uid)?;
    }
    for kind in UidKind::ALL {
        let uids = schema.uids().of(kind);
        let found = match typed {
            Some(uid) => uids.name(uid).map(|name| uid_line(schema, kind, &name, uid)),
            None => uids.uid(text).map(|uid| uid_line(schema, kind, text, uid)),
        };
        match found {
            Ok(line) => out.push_str(&line),
            Err(cause) if cause.kind() == ErrorKind::NotFound => {}
            Err(cause) => return Err(refused(&cause)),
        }
    }
    if out.is_empty() {
        return Err(Failure::new(Exit::Failure, format!("no UID and no name is `{text}`")));
    }
    print(&out)
}

fn fsck(schema: &Schema, options: UidFsckOptions) -> Result<(), Failure> {
    print(if options.fix { "INFO  Running fsck in FIX mode\n" } else { "INFO  Running in log only mode\n" })?;
    let report = meanwhile("checking the UID table", || schema.fsck_uids(options))
        .map_err(|cause| failed("cannot check the UID table", &cause))?;
    let mut text = String::new();
    for finding in &report.findings {
        let level = level(finding.severity);
        writeln!(text, "{level} {}", finding.text).unwrap_or_default();
    }
    writeln!(text, "INFO  {} KVs analyzed", report.cells_count).unwrap_or_default();
    if report.errors_count == 0 {
        text.push_str("INFO  No errors found.\n");
        return print(&text);
    }
    writeln!(text, "WARN  {} errors found.", report.errors_count).unwrap_or_default();
    print(&text)?;
    let advice = if options.fix { "mended; run it again to be sure" } else { "add `fix` to mend them" };
    Err(Failure::new(Exit::Failure, format!("{} errors found: {advice}", report.errors_count)))
}

/// A line's first word, five characters wide.
pub(super) fn level(severity: Severity) -> &'static str {
    match severity {
        Severity::Info => "INFO ",
        Severity::Warning => "WARN ",
        Severity::Error => "ERROR",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A word that is passed over is a wish that nobody fulfils: `uid fsck fiks` would mend nothing.
    #[test]
    fn a_word_that_is_not_known_is_refused() {
        let read = |line: &str| {
            let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
            task(&words, false)
        };
        for line in ["fsck", "fsck fix delete_unknown", "metasync", "treepurge 1 true", "treepurge 1 FALSE"] {
            assert!(read(line).is_ok(), "{line}");
        }
        let wrong = [
            "fsck fiks",
            "fsck fix all",
            "metasync x",
            "metapurge x",
            "treesync x",
            "treepurge 1 yes",
            "treepurge 1 true x",
        ];
        for line in wrong {
            assert_eq!(read(line).unwrap_err().exit, Exit::Usage, "{line}");
        }
    }
}
