//! The table of commands: what there is, how it is called, what does it.

use super::arguments::Arguments;
use super::error::{Error, Result};
use super::parser::Statement;
use super::session::Session;
use super::{admin, alter, namespace, read, region, snapshot, table, write};

/// What a command does.
type Run = fn(&mut Session<'_>, Arguments) -> Result<()>;

/// A command.
#[derive(Debug)]
pub(crate) struct Command {
    pub(crate) name: &'static str,
    pub(crate) group: &'static str,
    /// How it is called, in one line.
    pub(crate) usage: &'static str,
    /// What is worth knowing beyond its call.
    pub(crate) note: &'static str,
    pub(crate) run: Run,
}

const fn command(
    group: &'static str,
    name: &'static str,
    usage: &'static str,
    note: &'static str,
    run: Run,
) -> Command {
    Command { name, group, usage, note, run }
}

/// All commands, by group.
pub(crate) const COMMANDS: &[Command] = &[
    command("general", "help", "help ['COMMAND']", "", admin::help),
    command("general", "status", "status", "Tables, regions and bytes of this store.", admin::status),
    command("general", "version", "version", "", admin::version),
    command("tables", "list", "list ['REGEX']", "", table::list),
    command("tables", "exists", "exists 'TABLE'", "", table::exists),
    command(
        "tables",
        "create",
        "create 'TABLE', 'FAMILY' | {NAME => 'FAMILY', VERSIONS => 5, …}, … [, SPLITS => ['KEY', …]]",
        "Families: VERSIONS, MIN_VERSIONS, TTL, KEEP_DELETED_CELLS, BLOOMFILTER, COMPRESSION, DATA_BLOCK_ENCODING, \
         BLOCKSIZE, IN_MEMORY, BLOCKCACHE, NEW_VERSION_BEHAVIOR.\nRegions: SPLITS, SPLITS_FILE, or NUMREGIONS with SPLITALGO => 'HexStringSplit', \
         'DecimalStringSplit' or 'UniformSplit'.\nTable: METADATA => {'KEY' => 'VALUE'}, MAX_FILESIZE, \
         SPLIT_POLICY, SPLIT_ENABLED, READONLY.",
        table::create,
    ),
    command("tables", "describe", "describe 'TABLE'", "", table::describe),
    command("tables", "desc", "desc 'TABLE'", "The same as describe.", table::describe),
    command(
        "tables",
        "alter",
        "alter 'TABLE', NAME => 'FAMILY', VERSIONS => 5 | 'delete' => 'FAMILY' | METADATA => {'KEY' => 'VALUE'}",
        "Sets a family's settings, adds it if there is none, or removes it with its data; several dictionaries are one \
         change. The table is served meanwhile.\nAlso METHOD => 'delete' with NAME => 'FAMILY', and METHOD => \
         'table_att_unset' with NAME => 'KEY'.",
        alter::alter,
    ),
    command(
        "tables",
        "disable",
        "disable 'TABLE'",
        "Its cells are neither read nor changed until it is enabled again. A table must be disabled to be dropped.",
        table::disable,
    ),
    command("tables", "enable", "enable 'TABLE'", "", table::enable),
    command("tables", "is_disabled", "is_disabled 'TABLE'", "", table::is_disabled),
    command("tables", "is_enabled", "is_enabled 'TABLE'", "", table::is_enabled),
    command("tables", "drop", "drop 'TABLE'", "The table must be disabled. Its data is gone.", table::drop_table),
    command("tables", "truncate", "truncate 'TABLE'", "Removes all data; of its regions one is left.", table::truncate),
    command(
        "tables",
        "truncate_preserve",
        "truncate_preserve 'TABLE'",
        "Removes all data; its regions stay.",
        table::truncate_preserve,
    ),
    command(
        "tables",
        "split",
        "split 'TABLE' | 'REGION' [, 'KEY']",
        "Splits the region of the key there, or the table's first or the named one where half of its data lies.",
        region::split,
    ),
    command("tables", "list_regions", "list_regions 'TABLE'", "SIZE is in bytes, files and memory.", region::list),
    command("tables", "get_splits", "get_splits 'TABLE'", "", table::get_splits),
    command(
        "namespaces",
        "create_namespace",
        "create_namespace 'NAME' [, {'PROPERTY' => 'VALUE'}]",
        "'hbase.namespace.quota.maxtables' and 'hbase.namespace.quota.maxregions' bound it; 'READONLY' => 'true' closes \
         it to changes of cells.",
        namespace::create,
    ),
    command(
        "namespaces",
        "alter_namespace",
        "alter_namespace 'NAME', {METHOD => 'set', 'PROPERTY' => 'VALUE'} | {METHOD => 'unset', NAME => 'PROPERTY'}",
        "",
        namespace::alter,
    ),
    command("namespaces", "describe_namespace", "describe_namespace 'NAME'", "", namespace::describe),
    command("namespaces", "drop_namespace", "drop_namespace 'NAME'", "It must be empty.", namespace::drop_namespace),
    command("namespaces", "list_namespace", "list_namespace ['REGEX']", "", namespace::list),
    command("namespaces", "list_namespace_tables", "list_namespace_tables 'NAME'", "", namespace::tables),
    command("cells", "put", "put 'TABLE', 'ROW', 'FAMILY:QUALIFIER', 'VALUE' [, TIMESTAMP]", "", write::put),
    command(
        "cells",
        "get",
        "get 'TABLE', 'ROW' [, 'COLUMN', … | {COLUMN => 'FAMILY:QUALIFIER', VERSIONS => 3, …}]",
        read::GET_OPTIONS_NOTE,
        read::get,
    ),
    command(
        "cells",
        "scan",
        "scan 'TABLE' [, {LIMIT => 10, STARTROW => 'KEY', …}]",
        read::SCAN_OPTIONS_NOTE,
        read::scan,
    ),
    command(
        "cells",
        "count",
        "count 'TABLE' [, INTERVAL => 1000]",
        "Takes the options of scan too, but for RAW, VERSIONS and FORMATTER.",
        read::count,
    ),
    command(
        "cells",
        "delete",
        "delete 'TABLE', 'ROW', 'FAMILY:QUALIFIER' [, TIMESTAMP]",
        "One version: that of the time, or the newest.",
        write::delete,
    ),
    command(
        "cells",
        "deleteall",
        "deleteall 'TABLE', 'ROW' | {ROWPREFIXFILTER => 'PREFIX'} [, 'FAMILY[:QUALIFIER]' [, TIMESTAMP]]",
        "All versions at or before the time of a row, a family of it or a column of it, or of all rows that begin so.",
        write::deleteall,
    ),
    command("cells", "incr", "incr 'TABLE', 'ROW', 'FAMILY:QUALIFIER' [, AMOUNT]", "", write::incr),
    command("cells", "get_counter", "get_counter 'TABLE', 'ROW', 'FAMILY:QUALIFIER'", "", read::get_counter),
    command("cells", "append", "append 'TABLE', 'ROW', 'FAMILY:QUALIFIER', 'VALUE'", "", write::append),
    command("files", "flush", "flush 'TABLE'", "Writes what is in memory into files.", admin::flush),
    command("files", "compact", "compact 'TABLE'", "Merges some files.", admin::compact),
    command(
        "files",
        "major_compact",
        "major_compact 'TABLE'",
        "Merges all files of each region; what nobody may see any more goes. Returns when it is done.",
        admin::major_compact,
    ),
    command(
        "snapshots",
        "snapshot",
        "snapshot 'TABLE', 'NAME'",
        "Keeps the table as it is now, while it serves; what becomes of the table does not touch it.",
        snapshot::take,
    ),
    command("snapshots", "list_snapshots", "list_snapshots ['REGEX']", "", snapshot::list),
    command(
        "snapshots",
        "restore_snapshot",
        "restore_snapshot 'NAME'",
        "Puts the table back as it was. It must be disabled; what it is now is gone.",
        snapshot::restore,
    ),
    command(
        "snapshots",
        "clone_snapshot",
        "clone_snapshot 'NAME', 'TABLE'",
        "Makes a new table of it.",
        snapshot::clone_snapshot,
    ),
    command("snapshots", "delete_snapshot", "delete_snapshot 'NAME'", "", snapshot::delete),
];

/// The command of a statement.
pub(crate) fn find(statement: &Statement) -> Result<&'static Command> {
    named(&statement.command)
        .ok_or_else(|| Error::wrong(statement.at, format!("there is no command `{}`; see `help`", statement.command)))
}

/// The command of this name.
pub(crate) fn named(name: &str) -> Option<&'static Command> {
    COMMANDS.iter().find(|command| command.name == name)
}
