//! A command's arguments, taken one after the other, and the options of its dictionary, taken by name.

use basalt_store::TableName;

use super::error::{Error, Place, Result};
use super::value::{Data, Pair, Value};

/// The arguments that a command has not yet taken.
#[derive(Debug)]
pub(crate) struct Arguments {
    /// Where the command stands.
    pub(crate) at: Place,
    usage: &'static str,
    rest: std::vec::IntoIter<Value>,
}

impl Arguments {
    pub(crate) fn new(at: Place, usage: &'static str, arguments: Vec<Value>) -> Self {
        Self { at, usage, rest: arguments.into_iter() }
    }

    /// The next argument, which must be there.
    pub(crate) fn required(&mut self, what: &str) -> Result<Value> {
        let missing = || Error::wrong(self.at, format!("the {what} is missing: {}", self.usage));
        self.rest.next().ok_or_else(missing)
    }

    /// The next argument, unless it is a dictionary or there is none.
    pub(crate) fn optional(&mut self) -> Option<Value> {
        match self.rest.as_slice().first()?.data {
            Data::Map(_) => None,
            Data::Nil => {
                self.rest.next();
                None
            }
            _ => self.rest.next(),
        }
    }

    /// All that are left.
    pub(crate) fn rest(&mut self) -> Vec<Value> {
        self.rest.by_ref().collect()
    }

    /// The next argument as a table's name.
    pub(crate) fn table(&mut self) -> Result<TableName> {
        let name = self.required("table name")?;
        table_name(&name)
    }

    /// The lone argument, a regular expression that the whole of a name must fit; without one every name does.
    pub(crate) fn pattern(&mut self, what: &str) -> Result<Pattern> {
        let pattern = self.optional();
        self.end()?;
        let Some(value) = pattern else { return Ok(Pattern(None)) };
        let text = value.text(what)?;
        let wrong = |_| Error::wrong(value.at, format!("'{text}' is no regular expression"));
        Ok(Pattern(Some(regex::Regex::new(&format!("^(?:{text})$")).map_err(wrong)?)))
    }

    /// The dictionary that ends the arguments; without one, an empty one.
    pub(crate) fn options(&mut self) -> Result<Options> {
        let pairs = match self.rest.next() {
            Some(value) => {
                let at = value.at;
                match value.data {
                    Data::Map(pairs) => pairs,
                    _ => return Err(self.too_many(at)),
                }
            }
            None => Vec::new(),
        };
        self.end()?;
        Ok(Options { pairs })
    }

    /// Refuses arguments that are left.
    pub(crate) fn end(&mut self) -> Result<()> {
        match self.rest.next() {
            Some(value) => Err(self.too_many(value.at)),
            None => Ok(()),
        }
    }

    fn too_many(&self, at: Place) -> Error {
        Error::wrong(at, format!("one argument too many: {}", self.usage))
    }
}

/// Which names a command is about.
#[derive(Debug)]
pub(crate) struct Pattern(Option<regex::Regex>);

impl Pattern {
    pub(crate) fn fits(&self, name: &str) -> bool {
        self.0.as_ref().is_none_or(|regex| regex.is_match(name))
    }
}

/// A value as a table's name.
pub(crate) fn table_name(value: &Value) -> Result<TableName> {
    value.text("the table name")?.parse().map_err(Error::store(value.at))
}

/// The named options that a command has not yet taken.
#[derive(Debug)]
pub(crate) struct Options {
    pairs: Vec<Pair>,
}

impl Options {
    pub(crate) const fn new(pairs: Vec<Pair>) -> Self {
        Self { pairs }
    }

    /// The option of this name; `nil` is none.
    pub(crate) fn take(&mut self, name: &str) -> Option<Value> {
        let index = self.pairs.iter().position(|pair| pair.name == name)?;
        let value = self.pairs.remove(index).value;
        (!matches!(value.data, Data::Nil)).then_some(value)
    }

    /// The options that are left, in the order they were given.
    pub(crate) fn into_rest(self) -> Vec<Pair> {
        self.pairs
    }

    /// Refuses options that are left, by name.
    pub(crate) fn end(self, known: &str) -> Result<()> {
        match self.pairs.first() {
            Some(pair) if known.is_empty() => {
                Err(Error::wrong(pair.at, format!("{} is not supported: there are no options here", pair.name)))
            }
            Some(pair) => Err(Error::wrong(pair.at, format!("{} is not supported; there are: {known}", pair.name))),
            None => Ok(()),
        }
    }
}
