//! What a command's argument may be, and how a command asks for the type it needs.

use bytes::Bytes;

use super::error::{Error, Place, Result};

/// An argument and where it stands.
#[derive(Clone, Debug)]
pub(crate) struct Value {
    pub(crate) at: Place,
    pub(crate) data: Data,
}

/// An argument's data.
#[derive(Clone, Debug)]
pub(crate) enum Data {
    Nil,
    Bool(bool),
    Integer(i64),
    /// A string, or a constant such as `NAME`, which stands for its own name.
    Text(Bytes),
    List(Vec<Value>),
    Map(Vec<Pair>),
}

/// An entry of a dictionary.
#[derive(Clone, Debug)]
pub(crate) struct Pair {
    pub(crate) at: Place,
    pub(crate) name: String,
    pub(crate) value: Value,
}

impl Value {
    /// The bytes of a string, or a number's digits, as the HBase shell does.
    pub(crate) fn bytes(&self, what: &str) -> Result<Bytes> {
        match &self.data {
            Data::Text(text) => Ok(text.clone()),
            Data::Integer(number) => Ok(number.to_string().into()),
            _ => Err(self.not(what, "a string")),
        }
    }

    /// A string that is UTF-8.
    pub(crate) fn text(&self, what: &str) -> Result<String> {
        String::from_utf8(self.bytes(what)?.into()).map_err(|_| self.not(what, "a string of UTF-8"))
    }

    /// A whole number, negative ones too.
    pub(crate) fn integer(&self, what: &str) -> Result<i64> {
        match &self.data {
            Data::Integer(number) => Ok(*number),
            _ => Err(self.not(what, "a whole number")),
        }
    }

    /// A whole number from `least` up to what `T` holds.
    pub(crate) fn number<T: TryFrom<i64>>(&self, what: &str, least: i64) -> Result<T> {
        let number = self.integer(what)?;
        let wrong = || Error::wrong(self.at, format!("{what} {number} is out of range: at least {least}"));
        if number < least {
            return Err(wrong());
        }
        T::try_from(number).map_err(|_| Error::wrong(self.at, format!("{what} {number} is too large")))
    }

    /// `true` or `false`, as a word or a string.
    pub(crate) fn boolean(&self, what: &str) -> Result<bool> {
        match &self.data {
            Data::Bool(told) => Ok(*told),
            Data::Text(text) if text.eq_ignore_ascii_case(b"true") => Ok(true),
            Data::Text(text) if text.eq_ignore_ascii_case(b"false") => Ok(false),
            _ => Err(self.not(what, "true or false")),
        }
    }

    /// A list, or a lone value as a list of one.
    pub(crate) fn list(self) -> Vec<Self> {
        match self.data {
            Data::List(list) => list,
            _ => vec![self],
        }
    }

    /// A dictionary's entries.
    pub(crate) fn map(self, what: &str) -> Result<Vec<Pair>> {
        let refusal = self.not(what, "a dictionary {NAME => value}");
        match self.data {
            Data::Map(pairs) => Ok(pairs),
            _ => Err(refusal),
        }
    }

    /// The error for a value of the wrong type.
    pub(crate) fn not(&self, what: &str, wanted: &str) -> Error {
        let found = match &self.data {
            Data::Nil => "nil".to_owned(),
            Data::Bool(told) => told.to_string(),
            Data::Integer(number) => format!("the number {number}"),
            Data::Text(text) => format!("the string '{}'", super::binary::string_binary(text)),
            Data::List(_) => "a list".to_owned(),
            Data::Map(_) => "a dictionary".to_owned(),
        };
        Error::wrong(self.at, format!("{what} takes {wanted}, not {found}"))
    }
}
