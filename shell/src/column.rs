//! Columns as they are typed: `family`, `family:qualifier`, and when reading `family:qualifier:toLong`.

use std::fmt::Write as _;

use basalt_store::{Columns, FamilyColumns};
use bytes::Bytes;

use super::binary::string_binary;
use super::error::{Error, Place, Result};
use super::value::Value;

/// How a value is printed; the names are those of HBase's `Bytes` methods.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Converter {
    #[default]
    StringBinary,
    String,
    Hex,
    Boolean,
    Short,
    Int,
    Long,
    Float,
    Double,
}

impl Converter {
    /// The converter of this name, or of `c(org.apache.hadoop.hbase.util.Bytes).name`.
    fn named(name: &str) -> Option<Self> {
        Some(match name.strip_prefix("c(org.apache.hadoop.hbase.util.Bytes).").unwrap_or(name) {
            "toStringBinary" => Self::StringBinary,
            "toString" => Self::String,
            "toHex" => Self::Hex,
            "toBoolean" => Self::Boolean,
            "toShort" => Self::Short,
            "toInt" => Self::Int,
            "toLong" => Self::Long,
            "toFloat" => Self::Float,
            "toDouble" => Self::Double,
            _ => return None,
        })
    }

    /// The converter that the value of `FORMATTER` names.
    pub(crate) fn of(value: &Value) -> Result<Self> {
        let name = value.text("FORMATTER")?;
        Self::named(&name).ok_or_else(|| Error::wrong(value.at, format!("no formatter is called {name}")))
    }

    /// These bytes as text; the error names the length that does not fit.
    pub(crate) fn print(self, bytes: &[u8], at: Place) -> Result<String> {
        let printed = match self {
            Self::StringBinary => Some(string_binary(bytes)),
            Self::String => Some(String::from_utf8_lossy(bytes).into_owned()),
            Self::Hex => Some(hex(bytes)),
            Self::Boolean => <[u8; 1]>::try_from(bytes).ok().map(|[byte]| (byte != 0).to_string()),
            Self::Short => bytes.try_into().ok().map(|bytes| i16::from_be_bytes(bytes).to_string()),
            Self::Int => bytes.try_into().ok().map(|bytes| i32::from_be_bytes(bytes).to_string()),
            Self::Long => bytes.try_into().ok().map(|bytes| i64::from_be_bytes(bytes).to_string()),
            Self::Float => bytes.try_into().ok().map(|bytes| format!("{:?}", f32::from_be_bytes(bytes))),
            Self::Double => bytes.try_into().ok().map(|bytes| format!("{:?}", f64::from_be_bytes(bytes))),
        };
        printed
            .ok_or_else(|| Error::wrong(at, format!("{} bytes are no {self:?}: {}", bytes.len(), string_binary(bytes))))
    }
}

fn hex(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(2 * bytes.len());
    for byte in bytes {
        write!(text, "{byte:02x}").unwrap_or_default();
    }
    text
}

/// A column, or a whole family.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Column {
    pub(crate) family: Bytes,
    /// `None` where no colon was typed: the whole family.
    pub(crate) qualifier: Option<Bytes>,
}

impl Column {
    /// A column to write: all after the first colon is the qualifier.
    pub(crate) fn of(value: &Value) -> Result<Self> {
        let column = value.bytes("the column")?;
        let at = column.iter().position(|byte| *byte == b':');
        let (family, qualifier) = match at {
            Some(colon) => (column.slice(..colon), Some(column.slice(colon + 1..))),
            None => (column, None),
        };
        if family.is_empty() {
            return Err(Error::wrong(value.at, "a column is 'family:qualifier'; the family is missing"));
        }
        Ok(Self { family, qualifier })
    }

    /// The qualifier; a column without a colon has the empty one.
    pub(crate) fn qualifier(&self) -> &[u8] {
        self.qualifier.as_deref().unwrap_or_default()
    }
}

/// The columns of a read, and how their values are printed.
#[derive(Debug, Default)]
pub(crate) struct Selected {
    columns: Vec<(Column, Option<Converter>)>,
}

impl Selected {
    /// Adds a column; a last part that is a converter's name is one, any other belongs to the qualifier.
    pub(crate) fn push(&mut self, value: &Value) -> Result<()> {
        let mut column = Column::of(value)?;
        let mut converter = None;
        if let Some(qualifier) = &mut column.qualifier
            && let Some(colon) = qualifier.iter().position(|byte| *byte == b':')
        {
            let name = String::from_utf8_lossy(qualifier.get(colon + 1..).unwrap_or_default()).into_owned();
            converter = Converter::named(&name);
            if converter.is_some() {
                qualifier.truncate(colon);
            } else if name.starts_with("c(") {
                return Err(Error::wrong(value.at, format!("no formatter is called {name}")));
            }
        }
        self.columns.push((column, converter));
        Ok(())
    }

    /// What to ask the store for.
    pub(crate) fn columns(&self) -> Columns {
        let mut families: Vec<FamilyColumns> = Vec::new();
        for (column, _) in &self.columns {
            let index = families.iter().position(|asked| asked.family == column.family).unwrap_or_else(|| {
                families.push(FamilyColumns { family: column.family.clone(), qualifiers: Vec::new() });
                families.len() - 1
            });
            if let (Some(asked), Some(qualifier)) = (families.get_mut(index), &column.qualifier)
                && !asked.qualifiers.contains(qualifier)
            {
                asked.qualifiers.push(qualifier.clone());
            }
        }
        // A family asked for whole is whole, whatever columns of it are named beside.
        for asked in &mut families {
            if self.columns.iter().any(|(column, _)| column.qualifier.is_none() && column.family == asked.family) {
                asked.qualifiers.clear();
            }
        }
        Columns(families)
    }

    /// The converter of a column that was asked for with one.
    pub(crate) fn converter(&self, family: &[u8], qualifier: &[u8]) -> Option<Converter> {
        let is_it = |column: &Column| column.family == family && column.qualifier.as_deref() == Some(qualifier);
        self.columns.iter().find(|(column, _)| is_it(column)).and_then(|(_, converter)| *converter)
    }
}

#[cfg(test)]
mod tests {
    use super::super::value::Data;
    use super::*;

    fn value(text: &'static str) -> Value {
        Value { at: Place { line: 1, column: 1 }, data: Data::Text(text.into()) }
    }

    fn selected(columns: &[&'static str]) -> Selected {
        let mut selected = Selected::default();
        for column in columns {
            selected.push(&value(column)).unwrap();
        }
        selected
    }

    #[test]
    fn a_converter_is_told_from_a_qualifier_with_a_colon() {
        let read = selected(&["f:q:toLong", "f:a:b", "g:", "h"]);
        let asked = read.columns();
        let told: Vec<_> = asked.0.iter().map(|asked| (&asked.family[..], asked.qualifiers.len())).collect();
        assert_eq!(told, [(&b"f"[..], 2), (b"g", 1), (b"h", 0)]);
        assert_eq!(&asked.0[0].qualifiers[1][..], b"a:b");
        assert_eq!(read.converter(b"f", b"q"), Some(Converter::Long));
        assert_eq!(read.converter(b"f", b"a:b"), None);
        assert!(Selected::default().push(&value("f:q:c(My.Class).toX")).is_err());
        assert!(Column::of(&value(":q")).is_err());
    }

    #[test]
    fn a_family_asked_whole_is_whole() {
        assert_eq!(selected(&["f:q", "f"]).columns(), Columns::family("f"));
    }

    #[test]
    fn converters_want_their_length() {
        let at = Place { line: 1, column: 1 };
        assert_eq!(Converter::Long.print(&[0, 0, 0, 0, 0, 0, 0, 1], at).unwrap(), "1");
        assert_eq!(Converter::Double.print(&1.5f64.to_be_bytes(), at).unwrap(), "1.5");
        let refused = Converter::Int.print(b"abc", at).unwrap_err().to_string();
        assert_eq!(refused, "line 1, column 1: 3 bytes are no Int: abc");
    }
}
