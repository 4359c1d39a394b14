//! Regions split in two: where, and when a store does it by itself.

use bytes::Bytes;

use crate::{Error, Result, TableDescriptor};

/// Bytes of files at which a region is split, unless its table says otherwise (HBase: `hbase.hregion.max.filesize`).
pub const REGION_BYTES_MAX_DEFAULT: u64 = 10 << 30;

/// Smaller sizes make regions without number (HBase refuses below 2 MiB too).
const REGION_BYTES_MAX_MIN: u64 = 2 << 20;

/// The table attributes that speak of splits, named as HBase's.
const MAX_FILESIZE: &str = "MAX_FILESIZE";
const SPLIT_POLICY: &str = "SPLIT_POLICY";
const SPLIT_ENABLED: &str = "SPLIT_ENABLED";

/// Which region is split, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SplitAt {
    /// The region that holds this key, in two, the second of which begins with it.
    Key(Bytes),
    /// The region that holds this row (empty: the table's first), where about half of its data lies on either side.
    MiddleOf(Bytes),
}

/// What a table's attributes say of splits.
///
/// | attribute | values | meaning |
/// |---|---|---|
/// | `MAX_FILESIZE` | bytes, 2 MiB at least | a region whose files are larger is split; 10 GiB by default |
/// | `SPLIT_POLICY` | a name | one that ends with `DisabledRegionSplitPolicy`: never by itself |
/// | `SPLIT_ENABLED` | `true`, `false` | `false`: never, not on request either |
///
/// Tables whose regions have a meaning of their own, such as salt buckets, are made with the disabled policy.
///
/// ```
/// # use basalt_store::*;
/// let table = TableDescriptor::new("t".parse()?, vec![FamilyDescriptor::new("f")]);
/// assert_eq!(SplitPolicy::of(&table)?.region_bytes_max, None);
/// let small = table.clone().with_attribute("MAX_FILESIZE", "33554432");
/// assert_eq!(SplitPolicy::of(&small)?.region_bytes_max, Some(32 << 20));
/// let salted = table.with_attribute("SPLIT_POLICY", SplitPolicy::DISABLED);
/// assert!(!SplitPolicy::of(&salted)?.by_itself);
/// # Ok::<(), Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SplitPolicy {
    /// Whether a store may split the table's regions for their size.
    pub by_itself: bool,
    /// Whether they may be split on request.
    pub on_request: bool,
    /// The size at which it does, where the table says one.
    pub region_bytes_max: Option<u64>,
}

impl SplitPolicy {
    /// The `SPLIT_POLICY` of tables that no store splits by itself: HBase's name for it.
    pub const DISABLED: &'static str = "org.apache.hadoop.hbase.regionserver.DisabledRegionSplitPolicy";

    /// Reads a table's attributes.
    ///
    /// # Errors
    /// `Invalid`: a size that is no number or too small, or a flag that is neither true nor false.
    pub fn of(table: &TableDescriptor) -> Result<Self> {
        let attribute = |name| table.attributes.get(name).map(|value| value.trim());
        let on_request = match attribute(SPLIT_ENABLED) {
            None => true,
            Some(flag) if flag.eq_ignore_ascii_case("true") => true,
            Some(flag) if flag.eq_ignore_ascii_case("false") => false,
            Some(flag) => return Err(refuse(SPLIT_ENABLED, format!("`{flag}` is neither true nor false"))),
        };
        let is_disabled = attribute(SPLIT_POLICY).is_some_and(|name| name.ends_with("DisabledRegionSplitPolicy"));
        let region_bytes_max = match attribute(MAX_FILESIZE) {
            // HBase's shell writes -1 for "as the server says".
            None | Some("-1") => None,
            Some(text) => Some(bytes_of(text)?),
        };
        Ok(Self { by_itself: on_request && !is_disabled, on_request, region_bytes_max })
    }

    /// The error of a split that the table forbids.
    ///
    /// # Errors
    /// `Invalid`: `SPLIT_ENABLED` is false.
    pub fn check_request(&self) -> Result<()> {
        let forbidden = || refuse("split", "the table has SPLIT_ENABLED => false".into());
        if self.on_request { Ok(()) } else { Err(forbidden()) }
    }
}

/// The error for a place where no region can be split.
pub fn no_split(reason: impl Into<Box<str>>) -> Error {
    Error::InvalidArgument { what: "split", reason: reason.into() }
}

fn bytes_of(text: &str) -> Result<u64> {
    let bytes: u64 = text.parse().map_err(|_| refuse(MAX_FILESIZE, format!("`{text}` is no number of bytes")))?;
    if bytes < REGION_BYTES_MAX_MIN {
        return Err(refuse(MAX_FILESIZE, format!("{bytes} bytes are less than {REGION_BYTES_MAX_MIN}")));
    }
    Ok(bytes)
}

fn refuse(what: &'static str, reason: String) -> Error {
    Error::InvalidArgument { what, reason: reason.into() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::FamilyDescriptor;

    fn policy(attributes: &[(&str, &str)]) -> Result<SplitPolicy> {
        let table = TableDescriptor::new("t".parse().unwrap(), vec![FamilyDescriptor::new("f")]);
        SplitPolicy::of(&attributes.iter().fold(table, |table, (key, value)| table.with_attribute(*key, *value)))
    }

    #[test]
    fn attributes_are_read_as_hbase_writes_them() {
        let check = |attributes: &[(&str, &str)], by_itself, on_request, region_bytes_max| {
            let expected = SplitPolicy { by_itself, on_request, region_bytes_max };
            assert_eq!(policy(attributes).unwrap(), expected, "{attributes:?}");
        };
        check(&[], true, true, None);
        check(&[("MAX_FILESIZE", "134217728")], true, true, Some(128 << 20));
        check(&[("MAX_FILESIZE", "-1")], true, true, None);
        check(&[("SPLIT_POLICY", SplitPolicy::DISABLED)], false, true, None);
        check(&[("SPLIT_POLICY", "org.apache.hadoop.hbase.regionserver.SteppingSplitPolicy")], true, true, None);
        check(&[("SPLIT_ENABLED", "false")], false, false, None);
        check(&[("SPLIT_ENABLED", "TRUE")], true, true, None);
    }

    #[test]
    fn values_that_mean_nothing_are_refused() {
        for (key, value) in [("MAX_FILESIZE", "big"), ("MAX_FILESIZE", "1024"), ("SPLIT_ENABLED", "perhaps")] {
            assert!(policy(&[(key, value)]).is_err(), "{key} {value}");
        }
        assert!(policy(&[("SPLIT_ENABLED", "false")]).unwrap().check_request().is_err());
    }
}
