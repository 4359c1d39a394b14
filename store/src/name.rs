//! Table names: `qualifier` or `namespace:qualifier`, safe in a file-system path.

use std::fmt;

use crate::{Error, Result};

/// The namespace of tables that name none.
pub(crate) const DEFAULT_NAMESPACE: &str = "default";

/// Whether a name is fit for a namespace; says why not.
pub(crate) fn check_namespace(name: &str) -> std::result::Result<(), &'static str> {
    match name {
        "" => Err("it is empty"),
        _ if !name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_') => {
            Err("a namespace has letters, digits and '_' only")
        }
        _ => Ok(()),
    }
}

/// A table's full name. `bar` and `default:bar` are the same table (rule S-NS-3).
///
/// ```
/// # use basalt_store::TableName;
/// let name: TableName = "tsdb-uid".parse()?;
/// assert_eq!((name.namespace(), name.qualifier()), ("default", "tsdb-uid"));
/// assert!("a/b".parse::<TableName>().is_err());
/// # Ok::<(), basalt_store::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TableName {
    namespace: Box<str>,
    qualifier: Box<str>,
}

impl TableName {
    /// The namespace, `default` when none was given.
    pub fn namespace(&self) -> &str {
        &self.namespace
    }

    /// The name within the namespace.
    pub fn qualifier(&self) -> &str {
        &self.qualifier
    }
}

impl fmt::Display for TableName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if &*self.namespace == DEFAULT_NAMESPACE {
            f.write_str(&self.qualifier)
        } else {
            write!(f, "{}:{}", self.namespace, self.qualifier)
        }
    }
}

impl std::str::FromStr for TableName {
    type Err = Error;

    /// Parses `qualifier` or `namespace:qualifier` (rules S-NAME-1, S-NS-2).
    ///
    /// # Errors
    /// `Invalid`: an empty part, a leading `.` or `-`, or a character other than letters, digits, `_`, `-`, `.`.
    fn from_str(text: &str) -> Result<Self> {
        let (namespace, qualifier) = text.split_once(':').unwrap_or((DEFAULT_NAMESPACE, text));
        let refuse = |reason| Error::InvalidName { what: "table name", name: text.into(), reason };
        if namespace.is_empty() || qualifier.is_empty() {
            return Err(refuse("a part of it is empty"));
        }
        check_namespace(namespace).map_err(refuse)?;
        if !qualifier.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'.')) {
            return Err(refuse("only letters, digits, '_', '-' and '.' are allowed"));
        }
        if qualifier.starts_with(['.', '-']) {
            return Err(refuse("it may not begin with '.' or '-'"));
        }
        Ok(Self { namespace: namespace.into(), qualifier: qualifier.into() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn s_name_1_names_are_path_safe() {
        for bad in ["a/b", "..", "", ":t", "n:", "-x", ".x", "a b", "n/s:t", "t\0"] {
            assert!(bad.parse::<TableName>().is_err(), "{bad:?}");
        }
        for good in ["t_1.x-y", "ns_1:t", "T"] {
            assert!(good.parse::<TableName>().is_ok(), "{good:?}");
        }
    }

    #[test]
    fn s_ns_3_no_namespace_is_the_default_one() {
        let (short, long): (TableName, TableName) = ("bar".parse().unwrap(), "default:bar".parse().unwrap());
        assert_eq!(short, long);
        assert_eq!(long.to_string(), "bar");
    }
}
