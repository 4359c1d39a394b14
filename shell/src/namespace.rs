//! Commands about namespaces.

use std::fmt::Write as _;

use basalt_store::NamespaceDescriptor;
use serde_json::json;

use super::arguments::{Arguments, Options};
use super::error::{Error, Place, Result};
use super::session::Session;
use super::value::Pair;

/// `create_namespace`
pub(super) fn create(session: &mut Session<'_>, mut arguments: Arguments) -> Result<()> {
    let mut namespace = NamespaceDescriptor::new(name(&mut arguments)?);
    set(&mut namespace, arguments.options()?.into_rest())?;
    session.store.create_namespace(namespace).map_err(Error::store(arguments.at))
}

/// `alter_namespace`
pub(super) fn alter(session: &mut Session<'_>, mut arguments: Arguments) -> Result<()> {
    let at = arguments.at;
    let name = name(&mut arguments)?;
    let mut options = arguments.options()?;
    let mut namespace = session.store.describe_namespace(&name).map_err(Error::store(at))?;
    let method = options.take("METHOD").ok_or_else(|| Error::wrong(at, "METHOD is missing: 'set' or 'unset'"))?;
    match method.text("METHOD")?.as_str() {
        "set" => set(&mut namespace, options.into_rest())?,
        "unset" => unset(&mut namespace, options, at)?,
        other => {
            let line = format!("METHOD '{other}' is not supported; there are: set, unset");
            return Err(Error::wrong(method.at, line));
        }
    }
    session.store.alter_namespace(namespace).map_err(Error::store(at))
}

fn set(namespace: &mut NamespaceDescriptor, pairs: Vec<Pair>) -> Result<()> {
    for pair in pairs {
        let value = pair.value.text(&pair.name)?;
        namespace.properties.insert(pair.name, value);
    }
    Ok(())
}

fn unset(namespace: &mut NamespaceDescriptor, mut options: Options, at: Place) -> Result<()> {
    let names = options.take("NAME").ok_or_else(|| Error::wrong(at, "NAME is missing: the property to unset"))?;
    for name in names.list() {
        let key = name.text("NAME")?;
        if namespace.properties.remove(&key).is_none() {
            return Err(Error::wrong(name.at, format!("the namespace has no property '{key}'")));
        }
    }
    options.end("METHOD and NAME")
}

/// `describe_namespace`
pub(super) fn describe(session: &mut Session<'_>, mut arguments: Arguments) -> Result<()> {
    let name = name(&mut arguments)?;
    arguments.end()?;
    let namespace = session.store.describe_namespace(&name).map_err(Error::store(arguments.at))?;
    let mut described = format!("{{NAME => '{name}'");
    for (key, value) in &namespace.properties {
        write!(described, ", {key} => '{value}'").unwrap_or_default();
    }
    described.push('}');
    session.print(arguments.at, |printer| {
        printer.line("DESCRIPTION")?;
        printer.answer(&described, || json!({"namespace": name, "properties": namespace.properties}))?;
        printer.count(1)
    })
}

/// `drop_namespace`
pub(super) fn drop_namespace(session: &mut Session<'_>, mut arguments: Arguments) -> Result<()> {
    let name = name(&mut arguments)?;
    arguments.end()?;
    session.store.drop_namespace(&name).map_err(Error::store(arguments.at))
}

/// `list_namespace`
pub(super) fn list(session: &mut Session<'_>, mut arguments: Arguments) -> Result<()> {
    let pattern = arguments.pattern("list_namespace")?;
    let namespaces = session.store.list_namespaces().map_err(Error::store(arguments.at))?;
    let names: Vec<_> = namespaces.iter().map(|namespace| &*namespace.name).filter(|n| pattern.fits(n)).collect();
    session.print(arguments.at, |printer| {
        printer.line("NAMESPACE")?;
        names.iter().try_for_each(|name| printer.answer(name, || json!({"namespace": name})))?;
        printer.count(names.len() as u64)
    })
}

/// `list_namespace_tables`
pub(super) fn tables(session: &mut Session<'_>, mut arguments: Arguments) -> Result<()> {
    let name = name(&mut arguments)?;
    arguments.end()?;
    let tables = session.store.list_namespace_tables(&name).map_err(Error::store(arguments.at))?;
    session.print(arguments.at, |printer| {
        printer.line("TABLE")?;
        for table in &tables {
            printer.answer(table.qualifier(), || json!({"table": table.to_string()}))?;
        }
        printer.count(tables.len() as u64)
    })
}

fn name(arguments: &mut Arguments) -> Result<String> {
    arguments.required("namespace")?.text("the namespace")
}
