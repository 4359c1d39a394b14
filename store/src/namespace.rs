//! Namespaces: groups of tables with properties, by which a group is bounded or closed to writes.
//!
//! One telling of the rules for every store of ours: [`Namespaces`] decides, the store keeps. Source of behaviour:
//! HBase 2.6, `NamespaceStateManager`, `TableNamespaceManager` and the namespace procedures.

use std::collections::BTreeMap;

use crate::name::{DEFAULT_NAMESPACE, check_namespace};
use crate::{Error, Result, TableName};

/// The namespace of the store's own tables, where users make none.
pub(crate) const SYSTEM_NAMESPACE: &str = "hbase";

/// The property that bounds a namespace's tables.
const TABLES_MAX: &str = "hbase.namespace.quota.maxtables";
/// The property that bounds the regions of a namespace's tables, all together.
const REGIONS_MAX: &str = "hbase.namespace.quota.maxregions";
/// The property, of a namespace and of a table, that closes it to writes when it is `true`.
pub(crate) const READ_ONLY: &str = "READONLY";

/// A namespace and its properties. Any property is kept; these mean something:
///
/// | property | meaning |
/// |---|---|
/// | `hbase.namespace.quota.maxtables` | how many tables it may hold, at least 1 |
/// | `hbase.namespace.quota.maxregions` | how many regions they may have in all, at least 1 |
/// | `READONLY` | `true`: changes of its tables' cells are refused |
///
/// ```
/// # use basalt_store::NamespaceDescriptor;
/// let namespace = NamespaceDescriptor::new("tenant").with_property("hbase.namespace.quota.maxtables", "2");
/// assert!(namespace.validate().is_ok());
/// assert!(namespace.with_property("hbase.namespace.quota.maxregions", "none").validate().is_err());
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamespaceDescriptor {
    /// Letters, digits and `_`.
    pub name: Box<str>,
    /// Sorted by name.
    pub properties: BTreeMap<String, String>,
}

impl NamespaceDescriptor {
    /// A namespace without properties.
    pub fn new(name: impl Into<Box<str>>) -> Self {
        Self { name: name.into(), properties: BTreeMap::new() }
    }

    /// The same namespace with one property more.
    #[must_use]
    pub fn with_property(mut self, key: impl Into<String>, value: impl Into<String>) -> Self {
        self.properties.insert(key.into(), value.into());
        self
    }

    /// # Errors
    /// `Invalid`: a name of other than letters, digits and `_`; a quota that is no whole number of at least 1.
    pub fn validate(&self) -> Result<()> {
        let refuse = |reason| Error::InvalidName { what: "namespace", name: self.name.clone(), reason };
        check_namespace(&self.name).map_err(refuse)?;
        self.bound(TABLES_MAX)?;
        self.bound(REGIONS_MAX).map(drop)
    }

    /// Whether these properties may be given to a namespace, which had those of `before`.
    ///
    /// # Errors
    /// `Invalid`: as [`NamespaceDescriptor::validate`]; a `READONLY` that is neither true nor false. One that is there already may stay.
    pub fn validate_change(&self, before: Option<&NamespaceDescriptor>) -> Result<()> {
        self.validate()?;
        check_read_only(&self.properties, before.map(|before| &before.properties))
    }

    /// Whether changes of its tables' cells are refused (rule S-NS-5).
    pub fn is_read_only(&self) -> bool {
        is_true(self.properties.get(READ_ONLY))
    }

    /// Refuses more regions than the quota has room for; a table that is split asks for one more (rule S-NS-4).
    ///
    /// # Errors
    /// `Invalid`: over the quota.
    pub fn check_regions(&self, regions_count: u64, more: u64) -> Result<()> {
        self.check_bound(REGIONS_MAX, regions_count.saturating_add(more))
    }

    /// Refuses a new table of so many regions beside those that are there.
    ///
    /// # Errors
    /// `Invalid`: over a quota.
    pub fn check_table(&self, tables_count: u64, regions_count: u64, more_regions: u64) -> Result<()> {
        self.check_bound(TABLES_MAX, tables_count.saturating_add(1))?;
        self.check_regions(regions_count, more_regions)
    }

    fn check_bound(&self, key: &'static str, wanted: u64) -> Result<()> {
        match self.bound(key)? {
            Some(limit) if wanted > limit => {
                Err(Error::OverQuota { namespace: self.name.clone(), quota: key, limit, wanted })
            }
            _ => Ok(()),
        }
    }

    fn bound(&self, key: &'static str) -> Result<Option<u64>> {
        let Some(text) = self.properties.get(key) else { return Ok(None) };
        match text.parse::<u64>() {
            Ok(limit) if limit > 0 => Ok(Some(limit)),
            _ => {
                let reason = format!("'{text}' is no whole number of at least 1").into();
                Err(Error::InvalidArgument { what: key, reason })
            }
        }
    }
}

/// Whether a property or attribute says `true`, in any case of letters.
pub(crate) fn is_true(value: Option<&String>) -> bool {
    value.is_some_and(|value| value.eq_ignore_ascii_case("true"))
}

/// Refuses a `READONLY` that is neither true nor false: a slip of the pen would open what is closed. One of before may stay.
pub(crate) fn check_read_only(set: &BTreeMap<String, String>, before: Option<&BTreeMap<String, String>>) -> Result<()> {
    let before = before.and_then(|before| before.get(READ_ONLY));
    match set.get(READ_ONLY) {
        Some(text) if !is_true(Some(text)) && !text.eq_ignore_ascii_case("false") && before != Some(text) => {
            let reason = format!("'{text}' is neither true nor false").into();
            Err(Error::InvalidArgument { what: READ_ONLY, reason })
        }
        _ => Ok(()),
    }
}

/// A store's namespaces, and which changes of them the rules allow. Pure: whoever keeps them asks before it acts.
///
/// `default` and `hbase` are always there (rule S-NS-3).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Namespaces(BTreeMap<Box<str>, NamespaceDescriptor>);

impl Default for Namespaces {
    fn default() -> Self {
        let predefined = [DEFAULT_NAMESPACE, SYSTEM_NAMESPACE].map(NamespaceDescriptor::new);
        Self(predefined.into_iter().map(|namespace| (namespace.name.clone(), namespace)).collect())
    }
}

impl Namespaces {
    /// All of them, sorted by name.
    pub fn iter(&self) -> impl Iterator<Item = &NamespaceDescriptor> {
        self.0.values()
    }

    /// One of them.
    ///
    /// # Errors
    /// `NotFound`.
    pub fn get(&self, name: &str) -> Result<&NamespaceDescriptor> {
        self.0.get(name).ok_or_else(|| Error::UnknownNamespace { namespace: name.into() })
    }

    /// Whether this one may be made.
    ///
    /// # Errors
    /// `Invalid`: see [`NamespaceDescriptor::validate_change`]. `Conflict`: it is there.
    pub fn check_create(&self, namespace: &NamespaceDescriptor) -> Result<()> {
        namespace.validate_change(None)?;
        match self.0.get(&namespace.name) {
            Some(there) => Err(Error::NamespaceExists { namespace: there.name.clone() }),
            None => Ok(()),
        }
    }

    /// Whether one may be set so. A quota below what is there already is taken: it refuses only more.
    ///
    /// # Errors
    /// `Invalid`: see [`NamespaceDescriptor::validate_change`]. `NotFound`.
    pub fn check_alter(&self, namespace: &NamespaceDescriptor) -> Result<()> {
        namespace.validate()?;
        namespace.validate_change(Some(self.get(&namespace.name)?))
    }

    /// Whether one that holds so many tables may go.
    ///
    /// # Errors
    /// `NotFound`; `Invalid`: a predefined one. `Conflict`: it holds tables (rule S-NS-2).
    pub fn check_drop(&self, name: &str, tables_count: u64) -> Result<()> {
        let namespace = self.get(name)?;
        if [DEFAULT_NAMESPACE, SYSTEM_NAMESPACE].contains(&name) {
            let reason = "it is predefined and cannot be dropped";
            return Err(Error::InvalidName { what: "namespace", name: name.into(), reason });
        }
        if tables_count > 0 {
            return Err(Error::NamespaceNotEmpty { namespace: namespace.name.clone(), tables_count });
        }
        Ok(())
    }

    /// Whether a table of so many regions may be made beside those of its namespace.
    ///
    /// # Errors
    /// `NotFound`: no such namespace. `Invalid`: over a quota.
    pub fn check_table(&self, table: &TableName, regions_count: u64, there: NamespaceLoad) -> Result<()> {
        self.get(table.namespace())?.check_table(there.tables_count, there.regions_count, regions_count)
    }

    /// Puts one there, or in place of the one of its name.
    pub fn set(&mut self, namespace: NamespaceDescriptor) {
        self.0.insert(namespace.name.clone(), namespace);
    }

    /// Takes one away; says whether it was there.
    pub fn remove(&mut self, name: &str) -> bool {
        self.0.remove(name).is_some()
    }
}

/// What a namespace holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct NamespaceLoad {
    /// Tables.
    pub tables_count: u64,
    /// Their regions, all together.
    pub regions_count: u64,
}

impl NamespaceLoad {
    /// The load of tables that have so many regions each.
    pub fn of(regions_counts: impl Iterator<Item = usize>) -> Self {
        regions_counts.fold(Self::default(), |load, regions| Self {
            tables_count: load.tables_count + 1,
            regions_count: load.regions_count.saturating_add(regions as u64),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{FamilyDescriptor, TableDescriptor};

    /// A slip in `READONLY` would open what it is to close: of a namespace, and of a table.
    #[test]
    fn s_ns_5_read_only_is_true_or_false() {
        let namespace = |value: &str| NamespaceDescriptor::new("n").with_property(READ_ONLY, value);
        let table = |value: &str| {
            let table = TableDescriptor::new("t".parse().unwrap(), vec![FamilyDescriptor::new("f")]);
            table.with_attribute(READ_ONLY, value)
        };
        check(&|value, before| namespace(value).validate_change(before.map(namespace).as_ref()));
        check(&|value, before| table(value).validate_change(before.map(table).as_ref()));
        // One that an older version let pass opens.
        namespace("bogus").validate().unwrap();
        table("bogus").validate().unwrap();
    }

    fn check(change: &dyn Fn(&str, Option<&str>) -> Result<()>) {
        for value in ["true", "False", "TRUE"] {
            change(value, None).unwrap();
        }
        for before in [None, Some("true")] {
            let told = change("bogus", before).unwrap_err().to_string();
            assert_eq!(told, "invalid READONLY: 'bogus' is neither true nor false");
        }
        // And may stay.
        change("bogus", Some("bogus")).unwrap();
    }

    #[test]
    fn s_ns_4_quotas_are_numbers_of_at_least_one() {
        for value in ["0", "-1", "", "two"] {
            let namespace = NamespaceDescriptor::new("n").with_property(TABLES_MAX, value);
            assert!(namespace.validate().is_err(), "{value:?}");
        }
        let bounded = NamespaceDescriptor::new("n").with_property(TABLES_MAX, "2").with_property(REGIONS_MAX, "5");
        assert!(bounded.check_table(1, 4, 1).is_ok());
        assert!(bounded.check_table(2, 2, 1).is_err());
        assert!(bounded.check_table(1, 4, 2).is_err());
    }
}
