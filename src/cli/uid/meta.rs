//! `uid metasync`, `metapurge`, `treesync`, `treepurge` (rules `C-META`, `C-TREE`).

use basalt_schema::{MetaPurge, MetaSync, Schema, TreeId, TreeSync};

use super::super::print;
use crate::exit::Failure;
use crate::progress::meanwhile;
use crate::store::failed;

/// Makes the meta objects that rows of points lack.
pub(super) fn sync(schema: &Schema) -> Result<(), Failure> {
    let done = meanwhile("syncing the meta objects", || schema.sync_metas())
        .map_err(|cause| failed("cannot sync the meta objects", &cause))?;
    let MetaSync { series, names_changed, series_made, counters_made, series_changed, skipped } = done;
    print(&format!(
        "{series} series, {skipped} passed over as a name or a cell of theirs is damaged\n\
         names:  {names_changed} objects made or changed\n\
         series: {series_made} objects made, {series_changed} changed, {counters_made} counters made\n"
    ))
}

/// Removes all meta objects and counters.
pub(super) fn purge(schema: &Schema) -> Result<(), Failure> {
    let done = meanwhile("purging the meta objects", || schema.purge_metas())
        .map_err(|cause| failed("cannot purge the meta objects", &cause))?;
    let MetaPurge { names, series } = done;
    print(&format!("names:  {names} objects removed\nseries: {series} objects and counters removed\n"))
}

/// Puts series into trees, where that is switched on.
pub(super) fn sync_trees(schema: &Schema) -> Result<(), Failure> {
    if !schema.config().realtime.trees {
        return print("WARN  Tree processing is disabled\n");
    }
    let done = meanwhile("putting series into trees", || schema.sync_trees())
        .map_err(|cause| failed("cannot sync the trees", &cause))?;
    let TreeSync { trees, series, leaves, collisions, not_matched, skipped } = done;
    if trees == 0 {
        return print("WARN  No enabled trees were found\n");
    }
    print(&format!(
        "{series} series through {trees} trees: {leaves} leaves, {collisions} collisions, {not_matched} not matched, \
         {skipped} passed over as a name or a cell of theirs is damaged\n"
    ))
}

/// Removes what a tree made, and with `definition` the tree.
pub(super) fn purge_tree(schema: &Schema, id: TreeId, definition: bool) -> Result<(), Failure> {
    let cells = meanwhile("purging the tree", || schema.delete_tree(id, definition))
        .map_err(|cause| failed("cannot purge the tree", &cause))?;
    print(&format!("Completed tree deletion for: {} ({cells} cells)\n", id.number()))
}
