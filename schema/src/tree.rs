//! Trees: series put in an order of branches and leaves, by rules over their names.
//!
//! ```text
//! row  tree id, 2 bytes                 tree              the definition, JSON
//!                                       tree_rule:L:O     the rule of level L and order O, JSON
//! row  tree id, 01                      tree_collision:   + TSUID = the TSUID that had the place before it
//! row  tree id, 02                      tree_not_matched: + TSUID = the rules that did not match it
//! row  tree id, 4 bytes a level         branch            {"path", "displayName"}
//!                                       leaf:             + 4 bytes = {"displayName", "tsuid"}
//! ```
//!
//! All in family `t`. The 4 bytes are Java's hash of a display name; the root's row is the tree id alone. *Source*:
//! OpenTSDB 2.4 `Tree`, `TreeRule`, `Branch`, `Leaf` (rules S-TREE, M-TREE).
//!
//! `rule` holds the rules, `branch` reads what is stored of a tree, `trial` makes a path of a series' names, `growth`
//! stores it, `live` does both for new series.

mod branch;
mod growth;
mod live;
mod rule;
mod trial;

use std::collections::BTreeMap;

use basalt_store::{Columns, Durability, Filter, Get, ListOperator, RowView, Scan};
use bytes::Bytes;
use serde::{Deserialize, Serialize};

use crate::json_cell::{EditMode, JsonCell};
use crate::tables::DATA_FAMILY;
use crate::{Error, Result, Schema, meta_json};

pub use branch::{Branch, Leaf};
pub use growth::TreeSync;
pub(crate) use live::LiveTrees;
pub use rule::{RuleEdit, RuleKind, TreeRule};
pub use trial::{CompiledTree, TreeTrial};

const TREE_QUALIFIER: &[u8] = b"tree";
const RULE_PREFIX: &[u8] = b"tree_rule:";
const COLLISION_PREFIX: &[u8] = b"tree_collision:";
const NOT_MATCHED_PREFIX: &[u8] = b"tree_not_matched:";
const BRANCH_QUALIFIER: &[u8] = b"branch";
const LEAF_PREFIX: &[u8] = b"leaf:";
const COLLISION_SUFFIX: u8 = 1;
const NOT_MATCHED_SUFFIX: u8 = 2;

/// The number of a tree: 1 to 65535.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(transparent)]
pub struct TreeId(u16);

impl TreeId {
    /// The largest number.
    pub const MAX: u16 = u16::MAX;

    /// # Errors
    /// `Invalid`: not 1 to 65535.
    pub fn new(number: i64) -> Result<Self> {
        match u16::try_from(number) {
            Ok(id) if id > 0 => Ok(Self(id)),
            _ => Err(Error::InvalidTreeId),
        }
    }

    /// The tree that a branch's id begins with.
    ///
    /// # Errors
    /// `Invalid`: fewer than two bytes, or tree 0.
    pub fn of_branch(branch_id: &[u8]) -> Result<Self> {
        let bytes = branch_id.first_chunk::<2>().ok_or(Error::InvalidTreeId)?;
        Self::new(u16::from_be_bytes(*bytes).into())
    }

    /// The number.
    pub const fn number(self) -> u16 {
        self.0
    }

    /// Its two bytes: the row of the definition, and of the root.
    pub const fn bytes(self) -> [u8; 2] {
        self.0.to_be_bytes()
    }
}

/// A tree's definition and rules. Serialized as OpenTSDB answers it.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Tree {
    /// What people call it.
    pub name: String,
    /// In a line.
    pub description: String,
    /// At length.
    pub notes: String,
    /// Whether series are processed through it.
    pub enabled: bool,
    /// By level, then order; `None` for a tree without rules.
    pub rules: Option<BTreeMap<i32, BTreeMap<i32, TreeRule>>>,
    /// When it was made, seconds; 0 where nobody said.
    pub created: i64,
    /// Its number.
    pub tree_id: TreeId,
    /// Whether a series must match a rule of every level.
    pub strict_match: bool,
    /// Whether collisions and series that do not match are kept.
    pub store_failures: bool,
}

/// What of a definition is set; `None` is not given.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TreeEdit {
    /// As in [`Tree`].
    pub name: Option<String>,
    /// As in [`Tree`].
    pub description: Option<String>,
    /// As in [`Tree`].
    pub notes: Option<String>,
    /// As in [`Tree`].
    pub strict_match: Option<bool>,
    /// As in [`Tree`].
    pub enabled: Option<bool>,
    /// As in [`Tree`].
    pub store_failures: Option<bool>,
}

/// The definition's JSON.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Stored {
    #[serde(deserialize_with = "meta_json::text")]
    name: String,
    #[serde(deserialize_with = "meta_json::text")]
    description: String,
    #[serde(deserialize_with = "meta_json::text")]
    notes: String,
    strict_match: bool,
    created: i64,
    enabled: bool,
    store_failures: bool,
}

impl TreeEdit {
    /// Whether nothing is given.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    fn applied(&self, stored: Stored, mode: EditMode) -> Stored {
        let created = stored.created;
        let kept = if mode == EditMode::Merge { stored } else { Stored::default() };
        Stored {
            name: self.name.clone().unwrap_or(kept.name),
            description: self.description.clone().unwrap_or(kept.description),
            notes: self.notes.clone().unwrap_or(kept.notes),
            strict_match: self.strict_match.unwrap_or(kept.strict_match),
            created,
            enabled: self.enabled.unwrap_or(kept.enabled),
            store_failures: self.store_failures.unwrap_or(kept.store_failures),
        }
    }
}

impl Schema {
    /// Every tree, by number. *Cost*: a scan of the tree table that seeks from definition to definition.
    ///
    /// # Errors
    /// `Corrupt`: a cell that is no definition or no rule. The store's own.
    pub fn trees(&self) -> Result<Vec<Tree>> {
        let columns = Filter::List(
            ListOperator::One,
            vec![
                Filter::ColumnPrefix(Bytes::from_static(RULE_PREFIX)),
                Filter::ColumnPrefix(Bytes::from_static(TREE_QUALIFIER)),
            ],
        );
        let (mut start, mut found) = (vec![0, 1], Vec::new());
        // One row a scan: between two definitions lie all branches of the first one's tree.
        loop {
            let mut scan = Scan::range(start, Vec::new()).with_columns(Columns::family(DATA_FAMILY));
            scan.filter = Some(columns.clone());
            scan.limit_rows = Some(1);
            let mut scanner = self.store().scan(&self.tables().tree, scan)?;
            let Some(batch) = scanner.next_wait().transpose()? else { return Ok(found) };
            let Some(row) = batch.row(0) else { return Ok(found) };
            let id = TreeId::of_branch(row.key())?;
            if row.key().len() == 2 {
                found.extend(decode_tree(id, &row)?.filter(|(_, is_defined)| *is_defined).map(|(tree, _)| tree));
            }
            let Some(next) = id.0.checked_add(1) else { return Ok(found) };
            start = next.to_be_bytes().to_vec();
        }
    }

    /// A tree.
    ///
    /// # Errors
    /// As [`Schema::trees`].
    pub fn tree(&self, id: TreeId) -> Result<Option<Tree>> {
        let get = Get::row(id.bytes().to_vec()).with_columns(Columns::family(DATA_FAMILY));
        let batch = self.store().get(&self.tables().tree, get).wait()?;
        let row = batch.row(0).map(|row| decode_tree(id, &row)).transpose()?.flatten();
        Ok(row.map(|(tree, _)| tree))
    }

    /// Makes a tree with the number after the largest. Durable when it returns.
    ///
    /// # Errors
    /// `Invalid`: no name. `Throttled`: tree 65535 is taken. The store's own.
    pub fn create_tree(&self, edit: &TreeEdit, created: i64) -> Result<Option<Tree>> {
        if edit.name.as_deref().is_none_or(str::is_empty) {
            return Err(Error::UnnamedTree);
        }
        let mut last = self.trees()?.last().map_or(0, |tree| tree.tree_id.0);
        loop {
            last = last.checked_add(1).ok_or(Error::TreesExhausted)?;
            let id = TreeId(last);
            let stored = edit.applied(Stored { created, ..Stored::default() }, EditMode::Merge);
            let stored = meta_json::encode(&stored);
            if self.tree_cell(&id.bytes(), TREE_QUALIFIER).put_if_absent(&stored, Durability::Fsync)? {
                self.live_trees().forget();
                return self.tree(id);
            }
        }
    }

    /// Changes a tree's definition; `None` if there is no such tree. Durable when it returns.
    ///
    /// # Errors
    /// `Conflict`: others changed it at every attempt. As [`Schema::trees`].
    pub fn edit_tree(&self, id: TreeId, edit: &TreeEdit, mode: EditMode) -> Result<Option<Tree>> {
        if self.tree(id)?.is_none() {
            return Ok(None);
        }
        self.tree_cell(&id.bytes(), TREE_QUALIFIER).edit(|before| {
            let stored = before.map_or_else(|| Ok(Stored::default()), |bytes| meta_json::decode("tree", bytes))?;
            Ok((meta_json::encode(&edit.applied(stored, mode)), ()))
        })?;
        self.live_trees().forget();
        self.tree(id)
    }

    /// Deletes a tree's branches, leaves, collisions and mismatches, and with `definition` the rest of it too; says how
    /// many cells went. Durable when it returns.
    ///
    /// # Errors
    /// The store's own.
    pub fn delete_tree(&self, id: TreeId, definition: bool) -> Result<u64> {
        let scan = Scan::prefix(&id.bytes()).with_columns(Columns::family(DATA_FAMILY));
        let goes = |qualifier: &[u8]| {
            qualifier == BRANCH_QUALIFIER
                || [LEAF_PREFIX, COLLISION_PREFIX, NOT_MATCHED_PREFIX].iter().any(|kind| qualifier.starts_with(kind))
                || (definition && (qualifier == TREE_QUALIFIER || qualifier.starts_with(RULE_PREFIX)))
        };
        let deleted = self.delete_cells(&self.tables().tree, scan, goes)?;
        self.live_trees().forget();
        Ok(deleted)
    }

    fn tree_cell(&self, row: &[u8], qualifier: &[u8]) -> JsonCell<'_> {
        JsonCell {
            store: &**self.store(),
            table: &self.tables().tree,
            row: row.to_vec(),
            family: DATA_FAMILY,
            qualifier: qualifier.to_vec(),
            what: "tree",
        }
    }
}

/// A definition row, and whether it holds a definition: rules may stand alone. `None` for a row of neither.
fn decode_tree(id: TreeId, row: &RowView<'_>) -> Result<Option<(Tree, bool)>> {
    let (mut stored, mut rules) = (None, BTreeMap::<i32, BTreeMap<i32, TreeRule>>::new());
    let mut is_empty = true;
    for cell in row.cells() {
        is_empty = false;
        if cell.qualifier == TREE_QUALIFIER {
            stored = Some(meta_json::decode::<Stored>("tree", cell.value)?);
        } else if cell.qualifier.starts_with(RULE_PREFIX) {
            let rule = TreeRule::decode(cell.value)?;
            rules.entry(rule.level).or_default().insert(rule.order, rule);
        }
    }
    if is_empty {
        return Ok(None);
    }
    let is_defined = stored.is_some();
    let Stored { name, description, notes, strict_match, created, enabled, store_failures } =
        stored.unwrap_or_default();
    let rules = Some(rules).filter(|rules| !rules.is_empty());
    let tree = Tree { name, description, notes, enabled, rules, created, tree_id: id, strict_match, store_failures };
    Ok(Some((tree, is_defined)))
}

/// Java's `compareToIgnoreCase`, near enough: by lower-case characters.
fn ignoring_case(text: &str) -> String {
    text.to_lowercase()
}

#[cfg(test)]
mod tests;
