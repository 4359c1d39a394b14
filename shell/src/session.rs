//! A shell's state between commands: the store, and where answers go.

use std::io;
use std::sync::Arc;

use basalt_store::{MutationBatch, Store, TableDescriptor, TableName};

use super::Next;
use super::arguments::Arguments;
use super::command;
use super::error::{Error, Place, Result};
use super::parser::Statement;
use super::print::Printer;

/// A shell's state.
#[derive(Debug)]
pub(crate) struct Session<'a> {
    pub(super) store: Arc<dyn Store>,
    pub(super) printer: Printer<'a>,
    /// Whether commands may read files of this machine.
    pub(super) opens_files: bool,
}

impl<'a> Session<'a> {
    pub(super) fn new(store: Arc<dyn Store>, printer: Printer<'a>) -> Self {
        Self { store, printer, opens_files: true }
    }

    /// Does what statements say, up to the first that fails.
    pub(super) fn run_all(&mut self, statements: Vec<Statement>) -> Result<Next> {
        for statement in statements {
            if self.run(statement)? == Next::End {
                self.flush()?;
                return Ok(Next::End);
            }
        }
        self.flush()?;
        Ok(Next::Command)
    }

    /// Does what a statement says.
    fn run(&mut self, statement: Statement) -> Result<Next> {
        if matches!(statement.command.as_str(), "exit" | "quit") {
            return Ok(Next::End);
        }
        let command = command::find(&statement)?;
        let arguments = Arguments::new(statement.at, command.usage, statement.arguments);
        (command.run)(self, arguments)?;
        Ok(Next::Command)
    }

    /// Prints by `print`, whose failure is this place's.
    pub(super) fn print(&mut self, at: Place, print: impl FnOnce(&mut Printer<'a>) -> io::Result<()>) -> Result<()> {
        print(&mut self.printer).map_err(Error::output(at))
    }

    fn flush(&mut self) -> Result<()> {
        self.printer.flush().map_err(Error::output(Place::BEGIN))
    }

    pub(super) fn say(&mut self, text: &str) -> Result<()> {
        self.printer.raw(text).map_err(Error::output(Place::BEGIN))
    }

    /// The tables' names; none where the store does not answer.
    pub(super) fn tables(&self) -> Vec<String> {
        self.store.list_tables().unwrap_or_default().iter().map(ToString::to_string).collect()
    }

    /// The settings of a table that is there.
    pub(super) fn described(&self, at: Place, table: &TableName) -> Result<TableDescriptor> {
        self.store.describe_table(table).map_err(Error::store(at))
    }

    /// Applies changes; the first row that is refused is the error.
    pub(super) fn apply(&self, at: Place, table: &TableName, batch: MutationBatch) -> Result<()> {
        let applied = self.store.apply(table, batch).wait().map_err(Error::store(at))?;
        applied.all_stored().map_err(Error::store(at))
    }
}
