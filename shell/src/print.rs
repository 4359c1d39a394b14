//! Answers as a person or a program reads them: the HBase shell's tables as it prints them into a file, or one JSON
//! object a line.

use std::io::{self, Write};

use serde_json::Value as Json;

use super::date::date_time;

/// How answers look.
#[derive(Clone, Copy, Debug, Default)]
pub struct Style {
    /// One JSON object a line instead of tables.
    pub json: bool,
    /// Cell times as milliseconds since the epoch instead of dates.
    pub epoch: bool,
}

/// Where answers go.
pub(crate) struct Printer<'a> {
    out: &'a mut dyn Write,
    pub(crate) style: Style,
}

impl std::fmt::Debug for Printer<'_> {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Printer").field("style", &self.style).finish_non_exhaustive()
    }
}

impl<'a> Printer<'a> {
    pub(crate) fn new(out: &'a mut dyn Write, style: Style) -> Self {
        Self { out, style }
    }

    /// A line of a table, its head, its count, a remark: for people only.
    pub(crate) fn line(&mut self, text: &str) -> io::Result<()> {
        if self.style.json { Ok(()) } else { writeln!(self.out, "{text}") }
    }

    /// How many rows a table had.
    pub(crate) fn count(&mut self, rows: u64) -> io::Result<()> {
        self.line(&format!("{rows} row(s)"))
    }

    /// An answer: the line for people, the object for programs.
    pub(crate) fn answer(&mut self, text: &str, json: impl FnOnce() -> Json) -> io::Result<()> {
        if self.style.json { writeln!(self.out, "{}", json()) } else { writeln!(self.out, "{text}") }
    }

    /// A cell's time.
    pub(crate) fn time(&self, ms: u64) -> String {
        if self.style.epoch { ms.to_string() } else { date_time(ms) }
    }

    /// Text as it is, such as a prompt.
    pub(crate) fn raw(&mut self, text: &str) -> io::Result<()> {
        self.out.write_all(text.as_bytes())?;
        self.out.flush()
    }

    pub(crate) fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}
