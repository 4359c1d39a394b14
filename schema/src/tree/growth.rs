//! Puts series into trees: branches and leaves are stored where there are none yet.
//!
//! Each step is a put-if-absent, so daemons may grow one tree at once, and doing it again changes nothing. OpenTSDB means
//! to keep collisions and mismatches, but reads them before its own writes have answered, or a list that is never made:
//! seldom or never is one stored. Here they are, except under `strict`.

use basalt_store::{Columns, Durability, MutationBatch, Scan};

use super::branch::{StoredBranch, StoredLeaf, leaf_qualifier};
use super::trial::CompiledTree;
use super::{
    BRANCH_QUALIFIER, COLLISION_PREFIX, COLLISION_SUFFIX, DATA_FAMILY, NOT_MATCHED_PREFIX, NOT_MATCHED_SUFFIX,
};
use crate::meta_sync::is_of_one_series;
use crate::tables::UID_NAME_FAMILY;
use crate::{Result, Schema, TsMeta, Tsuid, meta_json};

/// What became of series that were put into trees.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TreeSync {
    /// Trees that are enabled.
    pub trees: u64,
    /// Series with a meta object.
    pub series: u64,
    /// Places they have now, one a series and tree at most.
    pub leaves: u64,
    /// Places that another series had.
    pub collisions: u64,
    /// Times that a tree's rules gave no place.
    pub not_matched: u64,
    /// Series that were passed over, as one of their names is gone or a cell is damaged.
    pub skipped: u64,
}

/// What became of one series in one tree.
enum Grown {
    Leaf,
    Collision,
    Nowhere,
}

impl Schema {
    /// Puts every series that has a meta object into every enabled tree. Durable when it returns.
    ///
    /// *Cost*: a scan of the meta table; a few checked puts a series and tree.
    ///
    /// # Errors
    /// `Corrupt`: the definition of a tree. The store's own.
    pub fn sync_trees(&self) -> Result<TreeSync> {
        let trees: Vec<_> = self.trees()?.iter().filter(|tree| tree.enabled).map(CompiledTree::new).collect();
        let mut sync = TreeSync { trees: trees.len() as u64, ..TreeSync::default() };
        if trees.is_empty() {
            return Ok(sync);
        }
        let scan = Scan::all().with_columns(Columns::column(UID_NAME_FAMILY, &b"ts_meta"[..]));
        let mut scanner = self.store().scan(&self.tables().meta, scan)?;
        while let Some(batch) = scanner.next_wait() {
            for row in batch?.rows() {
                let Ok(tsuid) = Tsuid::from_bytes(row.key(), self.layout().widths) else { continue };
                let grown = self.ts_meta(&tsuid).and_then(|meta| match meta {
                    Some(meta) => self.grow_all(&trees, &tsuid, &meta, &mut sync),
                    None => Ok(()),
                });
                match grown {
                    Err(error) if is_of_one_series(&error) => sync.skipped += 1,
                    grown => grown?,
                }
            }
        }
        self.store().sync().wait()?;
        Ok(sync)
    }

    pub(super) fn grow_all(
        &self,
        trees: &[CompiledTree],
        tsuid: &Tsuid,
        meta: &TsMeta,
        sync: &mut TreeSync,
    ) -> Result<()> {
        sync.series += 1;
        for tree in trees {
            match self.grow(tree, tsuid, meta)? {
                Grown::Leaf => sync.leaves += 1,
                Grown::Collision => sync.collisions += 1,
                Grown::Nowhere => sync.not_matched += 1,
            }
        }
        Ok(())
    }

    /// Puts one series into one tree. Durable with the next write at level `Fsync`.
    fn grow(&self, tree: &CompiledTree, tsuid: &Tsuid, meta: &TsMeta) -> Result<Grown> {
        let mut branch = StoredBranch::root();
        self.put_branch(tree, &branch)?;
        let trial = tree.try_series(meta);
        let keeps_failures = tree.store_failures && !self.config().realtime.strict;
        let Some((names, leaf)) = trial.place else {
            if tree.strict_match && !trial.not_matched.is_empty() && keeps_failures {
                let column = [NOT_MATCHED_PREFIX, tsuid.as_bytes()].concat();
                self.put_failure(tree, NOT_MATCHED_SUFFIX, &column, trial.not_matched.as_bytes())?;
            }
            return Ok(Grown::Nowhere);
        };
        for name in &names {
            branch = branch.below(name);
            self.put_branch(tree, &branch)?;
        }
        let Some(display_name) = leaf else { return Ok(Grown::Nowhere) };
        let cell = self.tree_cell(&branch.row(tree.id), &leaf_qualifier(&display_name));
        let stored = meta_json::encode(&StoredLeaf { display_name, tsuid: tsuid.to_string() });
        if cell.put_if_absent(&stored, Durability::Async)? {
            return Ok(Grown::Leaf);
        }
        let Some(there) = cell.read()? else { return Ok(Grown::Nowhere) };
        let there: StoredLeaf = meta_json::decode("leaf", &there)?;
        if there.tsuid == tsuid.to_string() {
            return Ok(Grown::Leaf);
        }
        if keeps_failures {
            let column = [COLLISION_PREFIX, tsuid.as_bytes()].concat();
            self.put_failure(tree, COLLISION_SUFFIX, &column, there.tsuid.as_bytes())?;
        }
        Ok(Grown::Collision)
    }

    fn put_branch(&self, tree: &CompiledTree, branch: &StoredBranch) -> Result<bool> {
        let cell = self.tree_cell(&branch.row(tree.id), BRANCH_QUALIFIER);
        cell.put_if_absent(&meta_json::encode(branch), Durability::Async)
    }

    fn put_failure(&self, tree: &CompiledTree, suffix: u8, qualifier: &[u8], value: &[u8]) -> Result<()> {
        let [high, low] = tree.id.bytes();
        let mut batch = MutationBatch::new(Durability::Async);
        batch.row(&[high, low, suffix])?.put(DATA_FAMILY, qualifier, None, value)?;
        self.apply(&self.tables().tree, batch)
    }
}
