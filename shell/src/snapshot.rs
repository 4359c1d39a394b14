//! Commands about snapshots.

use serde_json::json;

use super::arguments::{Arguments, table_name};
use super::error::{Error, Result};
use super::session::Session;

/// `snapshot`
pub(super) fn take(session: &mut Session<'_>, mut arguments: Arguments) -> Result<()> {
    let table = arguments.table()?;
    let name = name(&mut arguments)?;
    arguments.end()?;
    session.store.snapshot(&table, &name).map_err(Error::store(arguments.at))
}

/// `list_snapshots`
pub(super) fn list(session: &mut Session<'_>, mut arguments: Arguments) -> Result<()> {
    let pattern = arguments.pattern("list_snapshots")?;
    let mut snapshots = session.store.list_snapshots().map_err(Error::store(arguments.at))?;
    snapshots.retain(|snapshot| pattern.fits(&snapshot.name));
    session.print(arguments.at, |printer| {
        printer.line("SNAPSHOT  TABLE + CREATION TIME")?;
        for snapshot in &snapshots {
            let (table, time) = (snapshot.table.to_string(), snapshot.created.0);
            let line = format!(" {}  {table} ({})", snapshot.name, printer.time(time));
            printer.answer(&line, || json!({"snapshot": snapshot.name, "table": table, "created": time}))?;
        }
        printer.count(snapshots.len() as u64)
    })
}

/// `restore_snapshot`
pub(super) fn restore(session: &mut Session<'_>, mut arguments: Arguments) -> Result<()> {
    let name = name(&mut arguments)?;
    arguments.end()?;
    session.store.restore_snapshot(&name).map_err(Error::store(arguments.at))
}

/// `clone_snapshot`
pub(super) fn clone_snapshot(session: &mut Session<'_>, mut arguments: Arguments) -> Result<()> {
    let name = name(&mut arguments)?;
    let table = table_name(&arguments.required("new table's name")?)?;
    arguments.end()?;
    session.store.clone_snapshot(&name, &table).map_err(Error::store(arguments.at))
}

/// `delete_snapshot`
pub(super) fn delete(session: &mut Session<'_>, mut arguments: Arguments) -> Result<()> {
    let name = name(&mut arguments)?;
    arguments.end()?;
    session.store.delete_snapshot(&name).map_err(Error::store(arguments.at))
}

fn name(arguments: &mut Arguments) -> Result<String> {
    arguments.required("snapshot's name")?.text("the snapshot's name")
}
