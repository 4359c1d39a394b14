//! Lines from a person at a terminal: edited, remembered from one shell to the next, completed with Tab.

use std::path::PathBuf;

use rustyline::completion::{Completer, Pair};
use rustyline::error::ReadlineError;
use rustyline::highlight::Highlighter;
use rustyline::hint::Hinter;
use rustyline::history::FileHistory;
use rustyline::validate::Validator;
use rustyline::{CompletionType, Config, Context, Editor, Helper};

use crate::exit::{Exit, Failure};

/// How many lines are remembered.
const HISTORY_LINES_MAX: usize = 1_000;

/// What a person did at the prompt.
#[derive(Debug)]
pub(super) enum Typed {
    Line(String),
    /// Ctrl-C: what was begun is forgotten.
    Dropped,
    /// Ctrl-D.
    End,
}

/// A terminal with its history.
pub(super) struct Terminal {
    editor: Editor<Words, FileHistory>,
    history: Option<PathBuf>,
}

impl Terminal {
    /// Opens the terminal, with the history of `~/.basalt_history` if there is one.
    ///
    /// # Errors
    ///
    /// A terminal that cannot be had.
    pub(super) fn open() -> Result<Self, Failure> {
        let fail =
            |cause: ReadlineError| Failure::new(Exit::Failure, format!("cannot read from the terminal: {cause}"));
        let config = Config::builder()
            .completion_type(CompletionType::List)
            .max_history_size(HISTORY_LINES_MAX)
            .map_err(fail)?
            .auto_add_history(true)
            .build();
        let mut editor = Editor::with_config(config).map_err(fail)?;
        editor.set_helper(Some(Words::default()));
        let history = std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".basalt_history"));
        if let Some(path) = &history {
            // The first shell has none to load.
            editor.load_history(path).unwrap_or_default();
        }
        Ok(Self { editor, history })
    }

    /// The next line; `tables` are completed in it.
    ///
    /// # Errors
    ///
    /// A terminal that is gone.
    pub(super) fn read(&mut self, prompt: &str, tables: Vec<String>) -> Result<Typed, Failure> {
        if let Some(words) = self.editor.helper_mut() {
            words.tables = tables;
        }
        match self.editor.readline(prompt) {
            Ok(line) => Ok(Typed::Line(line)),
            Err(ReadlineError::Interrupted) => Ok(Typed::Dropped),
            Err(ReadlineError::Eof) => Ok(Typed::End),
            Err(cause) => Err(Failure::new(Exit::Failure, format!("cannot read the commands: {cause}"))),
        }
    }

    /// Keeps the history; a home that cannot be written only loses it.
    pub(super) fn close(mut self) {
        if let Some(path) = &self.history {
            self.editor.save_history(path).unwrap_or_default();
        }
    }
}

/// What Tab completes: a command where one begins, a table's name after a quote.
#[derive(Debug, Default)]
struct Words {
    tables: Vec<String>,
}

impl Words {
    /// Where the word before `at` begins, and the words that begin as it does.
    fn fitting(&self, line: &str, at: usize) -> (usize, Vec<String>) {
        let before = line.get(..at).unwrap_or_default();
        let begin = before.rfind([' ', ';', ',', '\'', '"']).map_or(0, |space| space + 1);
        let word = before.get(begin..).unwrap_or_default();
        let is_quoted = before.get(..begin).is_some_and(|head| head.ends_with(['\'', '"']));
        let names: Vec<&str> = if is_quoted {
            self.tables.iter().map(String::as_str).collect()
        } else {
            basalt_shell::command_names().collect()
        };
        (begin, names.into_iter().filter(|name| name.starts_with(word)).map(str::to_owned).collect())
    }
}

impl Completer for Words {
    type Candidate = Pair;

    fn complete(&self, line: &str, at: usize, _: &Context<'_>) -> rustyline::Result<(usize, Vec<Pair>)> {
        let (begin, names) = self.fitting(line, at);
        Ok((begin, names.into_iter().map(|name| Pair { display: name.clone(), replacement: name }).collect()))
    }
}

impl Hinter for Words {
    type Hint = String;
}

impl Highlighter for Words {}

impl Validator for Words {}

impl Helper for Words {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_and_tables_are_completed_each_in_its_place() {
        let words = Words { tables: vec!["tsdb".to_owned(), "tsdb-uid".to_owned()] };
        let check = |line: &str, begin: usize, names: &[&str]| {
            assert_eq!(words.fitting(line, line.len()), (begin, names.iter().map(|&name| name.to_owned()).collect()));
        };
        check("maj", 0, &["major_compact"]);
        check("scan 'tsdb-", 6, &["tsdb-uid"]);
        check("list; desc", 6, &["describe", "desc", "describe_namespace"]);
        check("nothing", 0, &[]);
    }
}
