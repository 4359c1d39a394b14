//! What is stored of a tree: branches with their children and leaves, and what found no place.
//!
//! *Source*: OpenTSDB 2.4 `Branch`, `Leaf`, `Tree.fetchCollisions`.

use std::collections::BTreeMap;

use basalt_store::{CellView, Columns, ErrorKind, FamilyColumns, Scan};
use bytes::Bytes;
use serde::{Deserialize, Serialize};

use super::{
    BRANCH_QUALIFIER, COLLISION_PREFIX, COLLISION_SUFFIX, DATA_FAMILY, LEAF_PREFIX, NOT_MATCHED_PREFIX,
    NOT_MATCHED_SUFFIX, TreeId, ignoring_case,
};
use crate::java::java_hash;
use crate::{Error, Result, Schema, Tsuid, hex, meta_json};

/// Children and leaves answered of one branch at most, and series of one tree that found no place: some 50 MB of JSON.
const ENTRIES_MAX: usize = 100_000;

/// Cells of a row that the store gives at once.
const CELLS_AT_ONCE: u32 = 1_000;

/// A branch with what hangs on it. Serialized as OpenTSDB answers it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Branch {
    /// Series, by display name without regard to case; `None` for none.
    pub leaves: Option<Vec<Leaf>>,
    /// Branches one level below, in the same order; `None` for none.
    pub branches: Option<Vec<Branch>>,
    /// Display names from the root, which is 0, down to this one.
    pub path: BTreeMap<u32, String>,
    /// What people see.
    pub display_name: String,
    /// Its tree.
    pub tree_id: TreeId,
    /// Its row in upper-case hex.
    pub branch_id: String,
    /// Levels below the root.
    pub depth: u32,
}

/// A series on a branch. Serialized as OpenTSDB answers it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Leaf {
    /// Its metric; empty where names were not asked for.
    pub metric: String,
    /// Its tags; `None` where names were not asked for.
    pub tags: Option<BTreeMap<String, String>>,
    /// The series in upper-case hex.
    pub tsuid: String,
    /// What people see.
    pub display_name: String,
}

/// A branch's JSON.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct StoredBranch {
    pub(super) path: BTreeMap<u32, String>,
    pub(super) display_name: String,
}

/// A leaf's JSON.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct StoredLeaf {
    #[serde(default)]
    pub(super) display_name: String,
    #[serde(default)]
    pub(super) tsuid: String,
}

impl StoredBranch {
    pub(super) fn root() -> Self {
        Self { path: BTreeMap::from([(0, "ROOT".to_owned())]), display_name: "ROOT".into() }
    }

    /// The branch of this name below. One that is called like its parent is the parent itself, as in OpenTSDB.
    pub(super) fn below(&self, display_name: &str) -> Self {
        let mut path = self.path.clone();
        let (depth, last) = path.last_key_value().map_or((0, ""), |(depth, name)| (depth + 1, name));
        if last != display_name {
            path.insert(depth, display_name.to_owned());
        }
        Self { path, display_name: display_name.to_owned() }
    }

    /// Its row.
    pub(super) fn row(&self, tree: TreeId) -> Vec<u8> {
        let mut row = tree.bytes().to_vec();
        row.extend(self.path.values().skip(1).flat_map(|name| java_hash(name).to_be_bytes()));
        row
    }

    pub(super) fn told(self, tree: TreeId, leaves: Vec<Leaf>, branches: Vec<Branch>) -> Branch {
        let branch_id = hex::upper(&self.row(tree));
        let Self { path, display_name } = self;
        let depth = path.last_key_value().map_or(0, |(depth, _)| *depth);
        let leaves = Some(leaves).filter(|leaves| !leaves.is_empty());
        let branches = Some(branches).filter(|branches| !branches.is_empty());
        Branch { leaves, branches, path, display_name, tree_id: tree, branch_id, depth }
    }
}

/// The column of a leaf.
pub(super) fn leaf_qualifier(display_name: &str) -> Vec<u8> {
    [LEAF_PREFIX, &java_hash(display_name).to_be_bytes()].concat()
}

impl Schema {
    /// A branch with its leaves and the branches one level below; `None` if there is none. Leaves whose names are gone
    /// are left out.
    ///
    /// *Cost*: a scan of the branch's row, then one a child, which seeks past what hangs below it.
    ///
    /// # Errors
    /// `Invalid`: an id that is none. `Throttled`: more than 100 000 children and leaves. `Corrupt`, and the store's own.
    pub fn tree_branch(&self, branch_id: &[u8]) -> Result<Option<Branch>> {
        let tree = TreeId::of_branch(branch_id)?;
        let Some(stored) = self.tree_cell(branch_id, BRANCH_QUALIFIER).read()? else { return Ok(None) };
        let stored: StoredBranch = meta_json::decode("branch", &stored)?;
        let mut leaves = self.leaves_of(branch_id)?;
        let mut branches = self.branches_below(tree, branch_id, ENTRIES_MAX.saturating_sub(leaves.len()))?;
        leaves.sort_by_cached_key(|leaf| ignoring_case(&leaf.display_name));
        branches.sort_by_cached_key(|branch| ignoring_case(&branch.display_name));
        // OpenTSDB's sorted sets know no case, so of `Web01` and `web01` one is not shown.
        if self.config().realtime.strict {
            leaves.dedup_by_key(|leaf| ignoring_case(&leaf.display_name));
            branches.dedup_by_key(|branch| ignoring_case(&branch.display_name));
        }
        Ok(Some(stored.told(tree, leaves, branches)))
    }

    fn leaves_of(&self, branch_id: &[u8]) -> Result<Vec<Leaf>> {
        let mut leaves = Vec::new();
        self.each_tree_cell(branch_id.to_vec(), Columns::family(DATA_FAMILY), &mut |cell| {
            if !cell.qualifier.starts_with(LEAF_PREFIX) {
                return Ok(());
            }
            if leaves.len() == ENTRIES_MAX {
                return Err(Error::TooManyBranches { max: ENTRIES_MAX });
            }
            leaves.extend(self.leaf(cell)?);
            Ok(())
        })?;
        Ok(leaves)
    }

    /// Hands on the cells of a row, some at a time: it may have one for each series that there is.
    fn each_tree_cell(
        &self,
        row: Vec<u8>,
        columns: Columns,
        each: &mut dyn FnMut(&CellView<'_>) -> Result<()>,
    ) -> Result<()> {
        let row = Bytes::from(row);
        let scan = Scan {
            stop_inclusive: true,
            batch_cells: Some(CELLS_AT_ONCE),
            ..Scan::range(row.clone(), row).with_columns(columns)
        };
        let mut scanner = self.store().scan(&self.tables().tree, scan)?;
        while let Some(batch) = scanner.next_wait().transpose()? {
            batch.rows().flat_map(|row| row.cells()).try_for_each(|cell| each(&cell))?;
        }
        Ok(())
    }

    fn leaf(&self, cell: &CellView<'_>) -> Result<Option<Leaf>> {
        let StoredLeaf { display_name, tsuid } = meta_json::decode("leaf", cell.value)?;
        let Ok(series) = Tsuid::parse(&tsuid, self.layout().widths) else { return Ok(None) };
        let names = match self.names(&series) {
            Ok(names) => names,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        let tags = names.tags.iter().map(|(key, value)| (key.to_string(), value.to_string())).collect();
        Ok(Some(Leaf { metric: names.metric.to_string(), tags: Some(tags), tsuid, display_name }))
    }

    fn branches_below(&self, tree: TreeId, branch_id: &[u8], max: usize) -> Result<Vec<Branch>> {
        let columns = FamilyColumns {
            family: Bytes::from_static(DATA_FAMILY),
            qualifiers: vec![Bytes::from_static(BRANCH_QUALIFIER)],
        };
        let child_bytes = branch_id.len() + 4;
        let mut found = Vec::new();
        let mut next = [branch_id, &[0]].concat();
        loop {
            let mut scan = Scan::prefix(branch_id).with_columns(Columns(vec![columns.clone()]));
            scan.start = Bytes::from(next);
            scan.limit_rows = Some(1);
            let mut scanner = self.store().scan(&self.tables().tree, scan)?;
            let Some(batch) = scanner.next_wait().transpose()? else { return Ok(found) };
            let Some(row) = batch.row(0) else { return Ok(found) };
            if row.key().len() == child_bytes
                && let Some(cell) = row.cells().next()
            {
                if found.len() == max {
                    return Err(Error::TooManyBranches { max: ENTRIES_MAX });
                }
                let stored: StoredBranch = meta_json::decode("branch", cell.value)?;
                found.push(stored.told(tree, Vec::new(), Vec::new()));
            }
            // Past everything below this child, or past a row too short to be one.
            let cut = row.key().get(..child_bytes).unwrap_or(row.key());
            match Scan::prefix(cut).stop {
                stop if stop.is_empty() => return Ok(found),
                stop if row.key().len() >= child_bytes => next = stop.to_vec(),
                _ => next = [row.key(), &[0]].concat(),
            }
        }
    }

    /// Series that found their place taken, with the series that has it; all, or of these only.
    ///
    /// # Errors
    /// `Throttled`: more than 100 000. The store's own.
    pub fn tree_collisions(&self, tree: TreeId, tsuids: &[Vec<u8>]) -> Result<BTreeMap<String, String>> {
        self.tree_failures(tree, COLLISION_SUFFIX, COLLISION_PREFIX, tsuids)
    }

    /// Series that matched too few rules, with the rules they did not match; all, or of these only.
    ///
    /// # Errors
    /// `Throttled`: more than 100 000. The store's own.
    pub fn tree_mismatches(&self, tree: TreeId, tsuids: &[Vec<u8>]) -> Result<BTreeMap<String, String>> {
        self.tree_failures(tree, NOT_MATCHED_SUFFIX, NOT_MATCHED_PREFIX, tsuids)
    }

    fn tree_failures(
        &self,
        tree: TreeId,
        suffix: u8,
        prefix: &'static [u8],
        tsuids: &[Vec<u8>],
    ) -> Result<BTreeMap<String, String>> {
        let [high, low] = tree.bytes();
        let qualifiers = tsuids.iter().map(|tsuid| Bytes::from([prefix, tsuid].concat())).collect();
        let columns = Columns(vec![FamilyColumns { family: Bytes::from_static(DATA_FAMILY), qualifiers }]);
        let mut told = BTreeMap::new();
        self.each_tree_cell(vec![high, low, suffix], columns, &mut |cell| {
            let tsuid = cell.qualifier.strip_prefix(prefix).filter(|tsuid| !tsuid.is_empty());
            if let Some(tsuid) = tsuid {
                if told.len() == ENTRIES_MAX {
                    return Err(Error::TooManyTreeFailures { max: ENTRIES_MAX });
                }
                told.insert(hex::upper(tsuid), String::from_utf8_lossy(cell.value).into_owned());
            }
            Ok(())
        })?;
        Ok(told)
    }
}
