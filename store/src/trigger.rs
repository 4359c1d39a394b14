//! What runs with every change of a row before it is stored: constraints, which refuse, and triggers, which add.
//!
//! Constraints are data: attributes of the table (HBase: `Constraint`). Triggers are code, registered by name with the
//! store and named by the table (HBase: a region observer); what they add is of the same table and is logged in one
//! record with the change, so that no crash parts the two (rule S-IDX-6).

use std::fmt::Debug;
use std::ops::Bound;
use std::sync::Arc;

use bytes::Bytes;

use crate::{CellKind, Error, MutationBatch, Result, RowMutation, TableDescriptor, Timestamp};

/// The attribute that names a table's triggers, parted by commas, in the order they run.
const TRIGGERS: &str = "TRIGGERS";
/// The beginning of attributes that are constraints; the rest of the key is the constraint's name.
const CONSTRAINT: &str = "CONSTRAINT.";

/// Code that runs with each change of a row of the tables that name it.
///
/// It is called with the row's lock held, on the writer's thread: it may read the row through the [`RowChange`], and
/// must not call the store.
pub trait Trigger: Send + Sync + Debug {
    /// The name by which tables call it.
    fn name(&self) -> &str;

    /// Adds changes of other rows of the table to `more`, or refuses the change. What it adds runs no trigger, and locks
    /// no row: rows that a trigger writes are not for increments. An increment or append comes as the put it makes.
    ///
    /// # Errors
    /// Any, by which the row is refused.
    fn before(&self, change: &RowChange<'_>, more: &mut MutationBatch) -> Result<()>;
}

/// A change that is about to be stored.
pub struct RowChange<'a> {
    /// The row's changes.
    pub row: RowMutation<'a>,
    /// The time that changes without one get.
    pub stamp: Timestamp,
    newest: &'a Newest<'a>,
}

/// Reads the newest visible cell of a column of the row.
pub type Newest<'a> = dyn Fn(&[u8], &[u8]) -> Result<Option<(Timestamp, Bytes)>> + 'a;

impl Debug for RowChange<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RowChange").field("row", &self.row).field("stamp", &self.stamp).finish_non_exhaustive()
    }
}

impl<'a> RowChange<'a> {
    /// A change of a row whose cells are read by `newest`.
    pub fn new(row: RowMutation<'a>, stamp: Timestamp, newest: &'a Newest<'a>) -> Self {
        Self { row, stamp, newest }
    }

    /// Time and value of a column's newest cell before the change.
    ///
    /// # Errors
    /// As a get's.
    pub fn newest(&self, family: &[u8], qualifier: &[u8]) -> Result<Option<(Timestamp, Bytes)>> {
        (self.newest)(family, qualifier)
    }
}

/// A table's constraints and triggers.
#[derive(Debug, Default)]
pub struct Guards {
    constraints: Vec<Constraint>,
    triggers: Vec<Arc<dyn Trigger>>,
}

impl Guards {
    /// What a table's attributes ask for.
    ///
    /// Cost: two look-ups in the table's attributes where there is nothing, and no allocation.
    ///
    /// # Errors
    /// `Invalid`: a constraint that does not read, a trigger that is not registered.
    pub fn of(table: &TableDescriptor, registered: &[Arc<dyn Trigger>]) -> Result<Self> {
        let keys = table.attributes.range::<str, _>((Bound::Included(CONSTRAINT), Bound::Unbounded));
        let keys = keys.take_while(|(key, _)| key.starts_with(CONSTRAINT));
        let constraints = keys.map(|(key, text)| Constraint::parse(key, text)).collect::<Result<_>>()?;
        let names = table.attributes.get(TRIGGERS).map_or("", String::as_str);
        let find = |name: &str| {
            let found = registered.iter().find(|trigger| trigger.name() == name).map(Arc::clone);
            let reason = || format!("no trigger '{name}' is registered").into();
            found.ok_or_else(|| Error::InvalidArgument { what: TRIGGERS, reason: reason() })
        };
        let names = names.split(',').map(str::trim).filter(|name| !name.is_empty());
        Ok(Self { constraints, triggers: names.map(find).collect::<Result<_>>()? })
    }

    /// Whether changes pass unseen.
    pub fn is_empty(&self) -> bool {
        self.constraints.is_empty() && self.triggers.is_empty()
    }

    /// Holds a change against the constraints and lets the triggers add to it.
    ///
    /// # Errors
    /// `Invalid`: a constraint does not hold. What a trigger refuses.
    pub fn before(&self, change: &RowChange<'_>, more: &mut MutationBatch) -> Result<()> {
        self.constraints.iter().try_for_each(|constraint| constraint.check(change.row))?;
        self.triggers.iter().try_for_each(|trigger| trigger.before(change, more))?;
        let reads = more.rows().any(|row| row.cells().any(|c| c.kind == CellKind::Delete && c.timestamp.is_none()));
        if reads {
            let reason = "a trigger may not delete whatever version is the newest: it must say its time".into();
            return Err(Error::InvalidArgument { what: TRIGGERS, reason });
        }
        Ok(())
    }
}

/// A range that a column's values, written in digits, must lie in: `FAMILY:QUALIFIER BETWEEN LOW AND HIGH`.
#[derive(Debug)]
struct Constraint {
    name: Box<str>,
    family: Box<[u8]>,
    qualifier: Box<[u8]>,
    low: i64,
    high: i64,
}

impl Constraint {
    fn parse(key: &str, text: &str) -> Result<Self> {
        let name = key.strip_prefix(CONSTRAINT).unwrap_or(key);
        let parsed = || {
            let (column, range) = text.split_once(" BETWEEN ")?;
            let (low, high) = range.split_once(" AND ")?;
            let (family, qualifier) = column.trim().split_once(':')?;
            let [family, qualifier] = [family, qualifier].map(|part| part.as_bytes().into());
            let (low, high) = (low.trim().parse().ok()?, high.trim().parse().ok()?);
            Some(Self { name: name.into(), family, qualifier, low, high })
        };
        let reason = || format!("'{name}' is no 'FAMILY:QUALIFIER BETWEEN LOW AND HIGH': '{text}'").into();
        parsed().ok_or_else(|| Error::InvalidArgument { what: "constraint", reason: reason() })
    }

    fn check(&self, row: RowMutation<'_>) -> Result<()> {
        let puts = row.cells().filter(|cell| cell.kind == CellKind::Put);
        let column = puts.filter(|cell| cell.family == &*self.family && cell.qualifier == &*self.qualifier);
        for cell in column {
            let number = std::str::from_utf8(cell.value).ok().and_then(|text| text.parse::<i64>().ok());
            if number.is_none_or(|number| !(self.low..=self.high).contains(&number)) {
                let value = cell.value.escape_ascii().to_string().into();
                return Err(Error::ConstraintBroken { constraint: self.name.clone(), value });
            }
        }
        Ok(())
    }
}
