//! The HBase shell's dialect on any store: lines in, tables of cells out.
//!
//! ```text
//! lines ──► lexer ──► parser ──► command ──► store
//!           tokens    statements    └──────► print (tables or JSON)
//! ```
//!
//! The dialect is what HBase's users type, not Ruby: commands with strings, numbers, lists and dictionaries; no
//! variables, no methods, no Java. Whatever is typed ends as an answer or an error with its place. Answers look as
//! HBase 2.6 prints them into a file: without columns cut to a terminal's width, cell times as dates in UTC, and
//! without the lines that tell how long a command took.

mod admin;
mod alter;
mod arguments;
mod binary;
mod column;
mod command;
mod date;
mod error;
mod family;
mod filter;
mod lexer;
mod namespace;
mod parser;
mod print;
mod read;
mod region;
mod session;
mod snapshot;
mod splits;
mod table;
mod value;
mod write;

use std::io::Write;
use std::sync::Arc;

use basalt_store::Store;

use self::error::{Error, Result};
pub use self::error::{Failed, Place, Reason};
use self::lexer::{Begun, Lexed};
use self::print::Printer;
pub use self::print::Style;
use self::session::Session;

/// Longest command in bytes; a bracket that is never closed must not eat the memory.
const COMMAND_BYTES_MAX: usize = 1 << 20;

/// Whether more lines are wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// A new command may begin.
    Command,
    /// The command that was begun goes on.
    Rest,
    /// `exit` was typed.
    End,
}

/// Someone else who does commands and prints what they answer, such as a running daemon.
pub trait Elsewhere: std::fmt::Debug {
    /// Does whole commands, the first of which stands on this line.
    ///
    /// # Errors
    ///
    /// The first command that fails, or why nobody did them.
    fn run(&mut self, commands: &[u8], line: u32) -> std::result::Result<Next, Failed>;

    /// Prints as it is, such as a prompt.
    ///
    /// # Errors
    ///
    /// The output is gone.
    fn say(&mut self, text: &str) -> std::io::Result<()>;
}

/// Who does what the commands say.
#[derive(Debug)]
enum Runner<'a> {
    /// This process, on a store of its own.
    Here(Session<'a>),
    /// Someone else, such as a running daemon.
    There(Box<dyn Elsewhere + 'a>),
}

/// A shell that is fed line by line.
#[derive(Debug)]
pub struct Shell<'a> {
    runner: Runner<'a>,
    /// The lines of a command that is not whole yet.
    buffer: Vec<u8>,
    /// What was read of them.
    begun: Begun,
    /// The number of the buffer's first line.
    first_line: u32,
    /// How many lines were fed.
    lines_count: u32,
}

impl<'a> Shell<'a> {
    /// A shell on this store that prints to `out`.
    pub fn new(store: Arc<dyn Store>, out: &'a mut dyn Write, style: Style) -> Self {
        Self::of(Runner::Here(Session::new(store, Printer::new(out, style))))
    }

    /// A shell whose commands someone else does.
    pub fn elsewhere(there: impl Elsewhere + 'a) -> Self {
        Self::of(Runner::There(Box::new(there)))
    }

    fn of(runner: Runner<'a>) -> Self {
        Self { runner, buffer: Vec::new(), begun: Begun::at_line(1), first_line: 1, lines_count: 0 }
    }

    /// The same for someone elsewhere, for whom no file of this machine is opened.
    #[must_use]
    pub fn remote(mut self) -> Self {
        if let Runner::Here(session) = &mut self.runner {
            session.opens_files = false;
        }
        self
    }

    /// The same with its next line being of this number.
    #[must_use]
    pub const fn at_line(mut self, line: u32) -> Self {
        self.lines_count = line.saturating_sub(1);
        self
    }

    /// Takes a line and runs the commands that it completes.
    ///
    /// # Errors
    ///
    /// The first command that fails; what was begun is forgotten, and the next line begins a new one.
    pub fn feed(&mut self, line: &[u8]) -> std::result::Result<Next, Failed> {
        self.lines_count = self.lines_count.saturating_add(1);
        if self.buffer.is_empty() {
            self.first_line = self.lines_count;
            self.begun = Begun::at_line(self.first_line);
        }
        let read_bytes = self.buffer.len();
        self.buffer.extend_from_slice(line);
        if !line.ends_with(b"\n") {
            self.buffer.push(b'\n');
        }
        if self.buffer.len() > COMMAND_BYTES_MAX {
            let at = Place { line: self.first_line, column: 1 };
            self.forget();
            return Err(Failed(Error::wrong(at, format!("the command is longer than {COMMAND_BYTES_MAX} bytes"))));
        }
        self.run(read_bytes, false).inspect_err(|_| self.forget()).map_err(Failed)
    }

    /// Ends the script: a command that is not whole is an error.
    ///
    /// # Errors
    ///
    /// What is missing, or the answers that could not be written.
    pub fn end(&mut self) -> std::result::Result<(), Failed> {
        self.run(self.buffer.len(), true).map(drop).map_err(Failed)
    }

    /// Prints as it is, such as a prompt.
    ///
    /// # Errors
    ///
    /// The output is gone.
    pub fn say(&mut self, text: &str) -> std::result::Result<(), Failed> {
        match &mut self.runner {
            Runner::Here(session) => session.say(text),
            Runner::There(there) => there.say(text).map_err(Error::output(Place::BEGIN)),
        }
        .map_err(Failed)
    }

    /// Forgets a command that was begun.
    pub fn forget(&mut self) {
        self.buffer.clear();
        self.begun = Begun::at_line(self.line_number());
    }

    /// The tables' names, as far as they can be had at once.
    pub fn tables(&self) -> Vec<String> {
        match &self.runner {
            Runner::Here(session) => session.tables(),
            Runner::There(_) => Vec::new(),
        }
    }

    /// The number of the line that comes next.
    pub const fn line_number(&self) -> u32 {
        self.lines_count.saturating_add(1)
    }

    /// Runs what the buffer holds if it is whole; so many of its bytes were read before.
    fn run(&mut self, read_bytes: usize, is_end: bool) -> Result<Next> {
        match self.begun.lex(self.buffer.get(read_bytes..).unwrap_or_default())? {
            Lexed::Open(missing) if is_end => Err(missing),
            Lexed::Open(_) => Ok(Next::Rest),
            Lexed::Whole(tokens) => {
                let text = std::mem::take(&mut self.buffer);
                let statements = parser::statements(tokens)?;
                match &mut self.runner {
                    // What is no command is found here, so that nothing of a wrong line is sent.
                    Runner::There(_) if statements.is_empty() => Ok(Next::Command),
                    Runner::There(there) => there.run(&text, self.first_line).map_err(|failed| failed.0),
                    Runner::Here(session) => session.run_all(statements),
                }
            }
        }
    }
}

/// Every command's name.
pub fn command_names() -> impl Iterator<Item = &'static str> {
    command::COMMANDS.iter().map(|command| command.name)
}

#[cfg(test)]
mod tests;
