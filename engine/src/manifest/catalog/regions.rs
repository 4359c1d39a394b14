//! Regions that take the place of others: the edit of a split, applied.

use bytes::Bytes;

use super::super::entry::{FileEntry, FilledRegion, RegionEntry, RegionsEdit};
use super::{Catalog, Misfit, check_sequence, misfit};

impl Catalog {
    pub(super) fn replace_regions(&mut self, edit: &RegionsEdit) -> Result<(), Misfit> {
        let table = self.tables.get(&edit.table).ok_or(misfit("table of regions", edit.table.0.into()))?;
        let of_first = || misfit("regions that are replaced", edit.removed.first().map_or(0, |id| id.0));
        let place = table.regions.windows(edit.removed.len().max(1)).position(|ids| ids == edit.removed);
        let place = place.ok_or_else(of_first)?;
        let removed: Option<Vec<&RegionEntry>> = edit.removed.iter().map(|id| self.regions.get(id)).collect();
        let removed = removed.ok_or_else(of_first)?;
        let (Some(first), Some(last)) = (removed.first(), removed.last()) else { return Err(of_first()) };
        if !tiles(&edit.added, &first.start, &last.end) {
            return Err(of_first());
        }
        for filled in &edit.added {
            check_sequence(filled.flushed)?;
            let known = |file: &FileEntry| removed.iter().any(|old| old.files.contains(file));
            if let Some(file) = filled.files.iter().find(|file| !known(file)) {
                return Err(misfit("file of a new region", file.id.0));
            }
            if self.regions.contains_key(&filled.region.id) {
                return Err(misfit("id of a new region", filled.region.id.0));
            }
        }
        self.put_regions(edit, place)
    }

    fn put_regions(&mut self, edit: &RegionsEdit, place: usize) -> Result<(), Misfit> {
        self.regions.retain(|id, _| !edit.removed.contains(id));
        for FilledRegion { region, flushed, files } in &edit.added {
            let (start, end) = (region.start.clone(), region.end.clone());
            let entry = RegionEntry { table: edit.table, start, end, flushed: *flushed, files: files.clone() };
            self.regions.insert(region.id, entry);
            let next = region.id.0.checked_add(1).ok_or(misfit("id of a new region", region.id.0))?;
            self.marks.next_region = self.marks.next_region.max(next);
        }
        if let Some(table) = self.tables.get_mut(&edit.table) {
            let added = edit.added.iter().map(|filled| filled.region.id);
            table.regions.splice(place..place + edit.removed.len(), added);
        }
        Ok(())
    }
}

/// Whether regions lie one behind the other from `start` to `end`.
fn tiles(added: &[FilledRegion], start: &Bytes, end: &Bytes) -> bool {
    let mut at = Some(start);
    for FilledRegion { region, .. } in added {
        if at != Some(&region.start) || (!region.end.is_empty() && region.end <= region.start) {
            return false;
        }
        // No region comes behind the one without an end.
        at = Some(&region.end).filter(|end| !end.is_empty());
    }
    at.unwrap_or(&Bytes::new()) == end
}
