//! `alter`: a table's settings changed while it is served.

use basalt_store::{FamilyDescriptor, TableDescriptor};

use super::arguments::{Arguments, Options};
use super::error::{Error, Result};
use super::family;
use super::session::Session;
use super::table::family_name;
use super::value::{Data, Value};

/// Attributes that begin so are what the program itself laid a table out by; changing them would misread its rows.
const OWN_ATTRIBUTES: &str = "basalt.";

/// A table's own settings, which are attributes of these names.
const TABLE_SETTINGS: [&str; 4] = ["MAX_FILESIZE", "READONLY", "SPLIT_ENABLED", "SPLIT_POLICY"];

/// `alter`: all dictionaries of one command are one change of the table.
pub(super) fn alter(session: &mut Session<'_>, mut arguments: Arguments) -> Result<()> {
    let at = arguments.at;
    let name = arguments.table()?;
    let mut table = session.described(at, &name)?;
    let changes = arguments.rest();
    if changes.is_empty() {
        return Err(Error::wrong(at, "there is nothing to alter: give a family's settings"));
    }
    for change in changes {
        match change.data {
            Data::Map(pairs) => one_change(&mut table, Options::new(pairs))?,
            _ => {
                find_or_add(&mut table, &change)?;
            }
        }
    }
    table.families.sort_by(|a, b| a.name.cmp(&b.name));
    let regions = session.store.regions(&name).map_err(Error::store(at))?.len();
    session.store.alter_table(table).map_err(Error::store(at))?;
    session.print(at, |printer| {
        printer.line("Updating all regions with the new schema...")?;
        printer.line(&format!("{regions}/{regions} regions updated."))?;
        printer.line("Done.")
    })
}

/// Works one dictionary into the table's settings.
fn one_change(table: &mut TableDescriptor, mut options: Options) -> Result<()> {
    if let Some(gone) = options.take("delete") {
        remove(table, &gone)?;
        return options.end("'delete' alone");
    }
    if let Some(metadata) = options.take("METADATA") {
        set_metadata(table, metadata)?;
    }
    let name = options.take("NAME");
    if name.is_none() {
        set_own(table, &mut options)?;
    }
    match (options.take("METHOD"), name) {
        (Some(method), Some(name)) => {
            match method.text("METHOD")?.as_str() {
                "delete" => remove(table, &name)?,
                "table_att_unset" => unset(table, name)?,
                other => {
                    let line = format!("METHOD '{other}' is not supported; there are: delete, table_att_unset");
                    return Err(Error::wrong(method.at, line));
                }
            }
            options.end("METHOD and NAME")
        }
        (Some(method), None) => Err(Error::wrong(method.at, "METHOD needs a NAME")),
        (None, Some(name)) => {
            let family = find_or_add(table, &name)?;
            options.into_rest().iter().try_for_each(|pair| family::set(family, pair))
        }
        (None, None) => options.end("NAME for a family; METADATA, MAX_FILESIZE, READONLY, SPLIT_ENABLED, SPLIT_POLICY for the table; METHOD, 'delete'"),
    }
}

/// The family of this name; a new one if the table has none.
fn find_or_add<'a>(table: &'a mut TableDescriptor, name: &Value) -> Result<&'a mut FamilyDescriptor> {
    let bytes = family_name(name)?;
    let index = if let Some((index, _)) = table.family(&bytes) {
        index
    } else {
        table.families.push(FamilyDescriptor::new(bytes));
        table.families.len() - 1
    };
    table.families.get_mut(index).ok_or_else(|| Error::wrong(name.at, "the table has no such family"))
}

fn remove(table: &mut TableDescriptor, name: &Value) -> Result<()> {
    let bytes = family_name(name)?;
    match table.family(&bytes) {
        Some((index, _)) => table.families.remove(index),
        None => return Err(Error::store(name.at)(table.unknown_family(&bytes))),
    };
    Ok(())
}

fn unset(table: &mut TableDescriptor, names: Value) -> Result<()> {
    for name in names.list() {
        let key = name.text("NAME")?;
        refuse_own(&key, &name)?;
        if table.attributes.remove(&key).is_none() {
            return Err(Error::wrong(name.at, format!("the table has no attribute '{key}'")));
        }
    }
    Ok(())
}

/// Keeps a table's own settings among its attributes.
pub(super) fn set_own(table: &mut TableDescriptor, options: &mut Options) -> Result<()> {
    for name in TABLE_SETTINGS {
        if let Some(value) = options.take(name) {
            let text = match value.data {
                Data::Bool(flag) => flag.to_string(),
                _ => value.text(name)?,
            };
            table.attributes.insert(name.to_owned(), text);
        }
    }
    Ok(())
}

/// Keeps `METADATA` with the table.
pub(super) fn set_metadata(table: &mut TableDescriptor, metadata: Value) -> Result<()> {
    for pair in metadata.map("METADATA")? {
        refuse_own(&pair.name, &pair.value)?;
        table.attributes.insert(pair.name, pair.value.text("METADATA")?);
    }
    Ok(())
}

fn refuse_own(key: &str, value: &Value) -> Result<()> {
    if key.starts_with(OWN_ATTRIBUTES) {
        return Err(Error::wrong(value.at, format!("'{key}' is how the table is laid out and cannot be changed")));
    }
    Ok(())
}
