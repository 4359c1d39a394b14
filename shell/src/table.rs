//! Commands that make, show and remove tables.

use basalt_store::{FamilyDescriptor, TableDescriptor, TableName, TruncatedRegions};
use serde_json::{Map, Value as Json, json};

use super::alter::{set_metadata, set_own};
use super::arguments::{Arguments, Options};
use super::binary::string_binary;
use super::error::{Error, Result};
use super::session::Session;
use super::value::{Data, Value};
use super::{family, splits};

/// `list`
pub(super) fn list(session: &mut Session<'_>, mut arguments: Arguments) -> Result<()> {
    let at = arguments.at;
    let pattern = arguments.pattern("list")?;
    let names: Vec<String> =
        session.store.list_tables().map_err(Error::store(at))?.iter().map(ToString::to_string).collect();
    let names: Vec<&String> = names.iter().filter(|name| pattern.fits(name)).collect();
    session.print(at, |printer| {
        printer.line("TABLE")?;
        names.iter().try_for_each(|name| printer.answer(name, || json!({"table": name})))?;
        printer.count(names.len() as u64)
    })
}

/// `exists`
pub(super) fn exists(session: &mut Session<'_>, mut arguments: Arguments) -> Result<()> {
    let at = arguments.at;
    let table = arguments.table()?;
    arguments.end()?;
    let exists = session.store.list_tables().map_err(Error::store(at))?.contains(&table);
    let verb = if exists { "does exist" } else { "does not exist" };
    session.print(at, |printer| {
        printer.answer(&format!("Table {table} {verb}"), || json!({"table": table.to_string(), "exists": exists}))
    })
}

/// `create`
pub(super) fn create(session: &mut Session<'_>, mut arguments: Arguments) -> Result<()> {
    let at = arguments.at;
    let name = arguments.table()?;
    let mut table = TableDescriptor::new(name.clone(), Vec::new());
    let mut families: Vec<FamilyDescriptor> = Vec::new();
    let mut keys = Vec::new();
    for argument in arguments.rest() {
        let place = argument.at;
        let Data::Map(pairs) = argument.data else {
            families.push(FamilyDescriptor::new(argument.bytes("the family")?));
            continue;
        };
        let mut options = Options::new(pairs);
        let asked = splits::taken(&mut options, session.opens_files)?;
        if !asked.is_empty() && !keys.is_empty() {
            return Err(Error::wrong(place, "splits are given twice"));
        }
        keys.extend(asked);
        if let Some(metadata) = options.take("METADATA") {
            set_metadata(&mut table, metadata)?;
        }
        if let Some(name) = options.take("NAME") {
            let mut family = FamilyDescriptor::new(name.bytes("NAME")?);
            options.into_rest().iter().try_for_each(|pair| family::set(&mut family, pair))?;
            families.push(family);
            continue;
        }
        set_own(&mut table, &mut options)?;
        options.end(
            "NAME for a family; SPLITS, SPLITS_FILE, NUMREGIONS, SPLITALGO, METADATA, MAX_FILESIZE, READONLY, \
             SPLIT_ENABLED and SPLIT_POLICY for the table",
        )?;
    }
    if families.is_empty() {
        return Err(Error::wrong(at, "a table must have at least one column family"));
    }
    families.sort_by(|a, b| a.name.cmp(&b.name));
    table.families = families;
    keys.sort();
    session.store.create_table(table, &keys).map_err(Error::store(at))?;
    session.print(at, |printer| printer.line(&format!("Created table {name}")))
}

/// `describe`
pub(super) fn describe(session: &mut Session<'_>, mut arguments: Arguments) -> Result<()> {
    let at = arguments.at;
    let name = arguments.table()?;
    arguments.end()?;
    let table = session.described(at, &name)?;
    let is_enabled = session.store.is_table_enabled(&name).map_err(Error::store(at))?;
    let state = if is_enabled { "ENABLED" } else { "DISABLED" };
    session.print(at, |printer| {
        printer.line(&format!("Table {name} is {state}"))?;
        printer.line(&attributes(&table))?;
        printer.line("COLUMN FAMILIES DESCRIPTION")?;
        for family in &table.families {
            printer.answer(&family::described(family), || family_json(&name, family))?;
        }
        printer.count(table.families.len() as u64)
    })
}

/// The table's name and its metadata, as HBase shows them.
fn attributes(table: &TableDescriptor) -> String {
    let pairs: Vec<_> = table.attributes.iter().map(|(key, value)| format!("'{key}' => '{value}'")).collect();
    if pairs.is_empty() {
        return table.name.to_string();
    }
    format!("{}, {{TABLE_ATTRIBUTES => {{METADATA => {{{}}}}}}}", table.name, pairs.join(", "))
}

fn family_json(table: &TableName, family: &FamilyDescriptor) -> Json {
    let mut object = Map::new();
    object.insert("table".to_owned(), table.to_string().into());
    object.insert("NAME".to_owned(), string_binary(&family.name).into());
    for (name, value) in family::settings(family) {
        object.insert(name.to_owned(), value.into());
    }
    object.into()
}

/// `disable`
pub(super) fn disable(session: &mut Session<'_>, mut arguments: Arguments) -> Result<()> {
    let table = existing(session, &mut arguments)?;
    session.store.disable_table(&table).map_err(Error::store(arguments.at))
}

/// `enable`
pub(super) fn enable(session: &mut Session<'_>, mut arguments: Arguments) -> Result<()> {
    let table = existing(session, &mut arguments)?;
    session.store.enable_table(&table).map_err(Error::store(arguments.at))
}

/// `is_disabled`
pub(super) fn is_disabled(session: &mut Session<'_>, mut arguments: Arguments) -> Result<()> {
    let told = !is_table_enabled(session, &mut arguments)?;
    session.print(arguments.at, |printer| printer.answer(&told.to_string(), || json!({"disabled": told})))
}

/// `is_enabled`
pub(super) fn is_enabled(session: &mut Session<'_>, mut arguments: Arguments) -> Result<()> {
    let told = is_table_enabled(session, &mut arguments)?;
    session.print(arguments.at, |printer| printer.answer(&told.to_string(), || json!({"enabled": told})))
}

fn is_table_enabled(session: &Session<'_>, arguments: &mut Arguments) -> Result<bool> {
    let table = existing(session, arguments)?;
    session.store.is_table_enabled(&table).map_err(Error::store(arguments.at))
}

/// The lone argument, a table that is there.
fn existing(session: &Session<'_>, arguments: &mut Arguments) -> Result<TableName> {
    let table = arguments.table()?;
    arguments.end()?;
    session.described(arguments.at, &table)?;
    Ok(table)
}

/// `drop`
pub(super) fn drop_table(session: &mut Session<'_>, mut arguments: Arguments) -> Result<()> {
    let table = existing(session, &mut arguments)?;
    // The store drops either; that a table must be disabled first guards it against a slip of the hand.
    if session.store.is_table_enabled(&table).map_err(Error::store(arguments.at))? {
        return Err(Error::wrong(arguments.at, format!("Table {table} is enabled. Disable it first.")));
    }
    session.store.drop_table(&table).map_err(Error::store(arguments.at))
}

/// `truncate`
pub(super) fn truncate(session: &mut Session<'_>, arguments: Arguments) -> Result<()> {
    empty(session, arguments, TruncatedRegions::Merged)
}

/// `truncate_preserve`
pub(super) fn truncate_preserve(session: &mut Session<'_>, arguments: Arguments) -> Result<()> {
    empty(session, arguments, TruncatedRegions::Kept)
}

fn empty(session: &mut Session<'_>, mut arguments: Arguments, regions: TruncatedRegions) -> Result<()> {
    let table = existing(session, &mut arguments)?;
    session.store.truncate_table(&table, regions).map_err(Error::store(arguments.at))?;
    session.print(arguments.at, |printer| printer.line(&format!("Truncated table {table}")))
}

/// `get_splits`
pub(super) fn get_splits(session: &mut Session<'_>, mut arguments: Arguments) -> Result<()> {
    let at = arguments.at;
    let table = existing(session, &mut arguments)?;
    let regions = session.store.regions(&table).map_err(Error::store(at))?;
    session.print(at, |printer| {
        printer.line(&format!("Total number of splits = {}", regions.len()))?;
        let starts = regions.iter().map(|region| &region.start).filter(|start| !start.is_empty());
        for start in starts.map(|start| string_binary(start)) {
            printer.answer(&start, || json!({"split": start}))?;
        }
        Ok(())
    })
}

/// A family's name out of a `NAME` option or a lone string.
pub(super) fn family_name(value: &Value) -> Result<bytes::Bytes> {
    value.bytes("the family's name")
}
