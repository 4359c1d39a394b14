//! Annotations in the data table: read, merged, replaced, deleted.
//!
//! *Source*: OpenTSDB 2.4 `Annotation` (rules A-ANNOT, A-ANNOTS).

use std::collections::{BTreeMap, HashSet};
use std::ops::RangeInclusive;

use basalt_store::{
    Columns, Durability, Filter, FuzzyKey, ListOperator, MutationBatch, RowView, Scan, Timestamp, check_row_key,
};
use bytes::Bytes;

use crate::annotation::{misplaced_at, misplaced_to};
use crate::json_cell::{EditMode, JsonCell};
use crate::meta_json::{ANSWER_BYTES_MAX, TextRoom};
use crate::{
    Annotation, BaseTime, ColumnKind, DATA_FAMILY, Error, PointTime, Result, Schema, Tsuid, annotation_column,
    annotation_start_ms,
};

/// Edits of annotations that wait for the disk together; few enough for the queue of calls of a server of HBase.
const EDITS_AT_ONCE: usize = 128;
/// Deletes of a range, about, that wait for the disk together.
const DELETED_AT_ONCE: usize = 1_000;

/// Where an annotation is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AnnotationPlace {
    /// Its series; `None` for a global one.
    pub tsuid: Option<Tsuid>,
    /// When it begins.
    pub start: PointTime,
}

/// What of an annotation changes; `None` is not given.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AnnotationEdit {
    /// The series as the writer spelled it.
    pub tsuid: String,
    /// When it ends.
    pub end_time: Option<i64>,
    /// In a line.
    pub description: Option<String>,
    /// At length.
    pub notes: Option<String>,
    /// The writer's own members, all of them.
    pub custom: Option<BTreeMap<String, String>>,
}

impl AnnotationEdit {
    /// Whether anything is given.
    pub const fn is_empty(&self) -> bool {
        self.end_time.is_none() && self.description.is_none() && self.notes.is_none() && self.custom.is_none()
    }

    /// The bytes of the cell that it makes of one, and the annotation that they are.
    fn cell(&self, start: PointTime, before: Option<&[u8]>, mode: EditMode) -> Result<(Vec<u8>, Annotation)> {
        // What OpenTSDB misplaced there was put where it belongs.
        let before = before.map(Annotation::decode).transpose()?.filter(|note| !note.is_misplaced_in(start));
        let note = self.applied(start, before.as_ref(), mode);
        Ok((note.encode(), note))
    }

    fn applied(&self, start: PointTime, stored: Option<&Annotation>, mode: EditMode) -> Annotation {
        let sent = start.number().cast_signed();
        // One second may have been sent as seconds and as milliseconds: the smaller number is kept.
        let start_time = stored.map(|note| note.start_time).filter(|time| (1..sent).contains(time)).unwrap_or(sent);
        let kept = stored.filter(|_| mode == EditMode::Merge).cloned().unwrap_or_default();
        Annotation {
            tsuid: self.tsuid.clone(),
            description: self.description.clone().unwrap_or(kept.description),
            notes: self.notes.clone().unwrap_or(kept.notes),
            custom: self.custom.clone().or(kept.custom),
            start_time,
            end_time: self.end_time.unwrap_or(kept.end_time),
        }
    }
}

impl Schema {
    /// The annotation of a place.
    ///
    /// # Errors
    /// `Corrupt`: a cell that is no annotation. The store's own.
    pub fn annotation(&self, place: &AnnotationPlace) -> Result<Option<Annotation>> {
        let own = self.annotation_cell(place).read()?.map(|bytes| Annotation::decode(&bytes)).transpose()?;
        let own = own.filter(|note| !note.is_misplaced_in(place.start));
        if own.is_some() { Ok(own) } else { Ok(self.misplaced(place)?.map(|(_, note)| note)) }
    }

    /// The annotation of a place where OpenTSDB keeps it, if it does in another cell.
    fn misplaced(&self, place: &AnnotationPlace) -> Result<Option<(JsonCell<'_>, Annotation)>> {
        let Some(start) = misplaced_to(place.start) else { return Ok(None) };
        let cell = self.annotation_cell(&AnnotationPlace { start, ..place.clone() });
        let note = cell.read()?.map(|bytes| Annotation::decode(&bytes)).transpose()?;
        Ok(note.filter(|note| note.begins_at(place.start)).map(|note| (cell, note)))
    }

    /// The cell in which the annotation of a place is to be changed. One of another time that OpenTSDB misplaced there is copied
    /// to its own, as the change writes over it.
    fn cell_to_edit(&self, place: &AnnotationPlace) -> Result<JsonCell<'_>> {
        let own = self.annotation_cell(place);
        if let Some(start) = misplaced_at(place.start) {
            let bytes = own.read()?;
            if let Some(bytes) = bytes.filter(|bytes| Annotation::decode(bytes).is_ok_and(|note| note.begins_at(start)))
            {
                let its_own = self.annotation_cell(&AnnotationPlace { start, ..place.clone() });
                its_own.put_if_absent(&bytes, Durability::Fsync)?;
            }
        }
        match self.misplaced(place)? {
            Some((cell, _)) if own.read()?.is_none() => Ok(cell),
            _ => Ok(own),
        }
    }

    /// Changes an annotation, or makes it. Durable when it returns.
    ///
    /// # Errors
    /// `Conflict`: others changed it at every attempt. `Throttled`: a series new to a full index. `Corrupt`, and the
    /// store's own.
    pub fn edit_annotation(
        &self,
        place: &AnnotationPlace,
        edit: &AnnotationEdit,
        mode: EditMode,
    ) -> Result<Annotation> {
        let _writing = self.index().writing();
        self.index_annotation(place)?;
        let cell = self.cell_to_edit(place)?;
        cell.edit(|before| edit.cell(place.start, before, mode))
    }

    /// Changes many annotations, or makes them, in their order: one sees those before it. Gives those that are stored, and how
    /// it ended: after one that failed few others are begun. Durable when it returns. *Cost*: many share a wait for the disk.
    ///
    /// # Errors
    /// As [`Schema::edit_annotation`], of the first that failed.
    pub fn edit_annotations(
        &self,
        edits: &[(AnnotationPlace, AnnotationEdit)],
        mode: EditMode,
    ) -> (Vec<Annotation>, Result<()>) {
        let (mut edited, mut rest) = (Vec::with_capacity(edits.len()), edits);
        while !rest.is_empty() {
            let mut cells = HashSet::new();
            let is_apart = |(place, _): &&(AnnotationPlace, AnnotationEdit)| {
                let JsonCell { row, qualifier, .. } = self.annotation_cell(place);
                let elsewhere = misplaced_to(place.start).map(|start| annotation_column(start).1.to_vec());
                elsewhere.is_none_or(|qualifier| cells.insert((row.clone(), qualifier)))
                    && cells.insert((row, qualifier))
            };
            // One of a cell that another of them changes comes when that is there.
            let count = rest.iter().take(EDITS_AT_ONCE).take_while(is_apart).count();
            let (together, later) = rest.split_at(count);
            if let Err(error) = self.edit_together(together, mode, &mut edited) {
                return (edited, Err(error));
            }
            rest = later;
        }
        (edited, Ok(()))
    }

    /// Changes annotations of different cells. Those that are stored go to `edited`, also where one fails.
    fn edit_together(
        &self,
        edits: &[(AnnotationPlace, AnnotationEdit)],
        mode: EditMode,
        edited: &mut Vec<Annotation>,
    ) -> Result<()> {
        let _writing = self.index().writing();
        let mut outcome = Ok(());
        let mut under_way = Vec::with_capacity(edits.len());
        for (place, edit) in edits {
            let cell = self.index_annotation(place).and_then(|()| self.cell_to_edit(place));
            let begun = cell.and_then(|cell| {
                let (stored, note) = cell.begin_edit(|before| edit.cell(place.start, before, mode))?;
                Ok((cell, stored, note))
            });
            match begun {
                Ok(begun) => under_way.push(begun),
                Err(error) => {
                    outcome = Err(error);
                    break;
                }
            }
        }
        for ((place, edit), (cell, stored, note)) in edits.iter().zip(under_way) {
            let is_stored = stored.wait().map_err(Error::from).and_then(|stored| Ok(stored && cell.read()?.is_some()));
            let note = match is_stored {
                Ok(true) => Ok(note),
                // Others changed it meanwhile, or a tombstone of its millisecond hides it.
                Ok(false) => self.edit_annotation(place, edit, mode),
                Err(error) => Err(error),
            };
            match note {
                Ok(note) => edited.push(note),
                Err(error) => outcome = outcome.and(Err(error)),
            }
        }
        outcome
    }

    /// Before its row, as for points: a row without its series is not found. A series that no row can have is none: a TSUID is as long as
    /// its sender likes.
    fn index_annotation(&self, place: &AnnotationPlace) -> Result<()> {
        check_row_key(&self.annotation_cell(place).row)?;
        place.tsuid.as_ref().map_or(Ok(()), |tsuid| self.index().add(tsuid).map(drop))
    }

    /// Deletes an annotation; whether there was one. Durable when it returns.
    ///
    /// # Errors
    /// The store's own.
    pub fn delete_annotation(&self, place: &AnnotationPlace) -> Result<bool> {
        let own = self.annotation_cell(place);
        let is_own = |bytes: Vec<u8>| !Annotation::decode(&bytes).is_ok_and(|note| note.is_misplaced_in(place.start));
        let was_own = own.read()?.is_some_and(is_own) && own.delete()?;
        let elsewhere = self.misplaced(place)?;
        Ok(elsewhere.map_or(Ok(false), |(cell, _)| cell.delete())? || was_own)
    }

    /// The global annotations of the hours that `span_ms` touches, each with its time in milliseconds; by hour, within
    /// an hour in the order of their cells.
    ///
    /// # Errors
    /// `Throttled`: more than `max`, or more than 256 MiB of them. `Corrupt`, and the store's own.
    pub fn global_annotations(&self, span_ms: RangeInclusive<i64>, max: usize) -> Result<Vec<(i64, Annotation)>> {
        self.global_annotations_within(span_ms, max, TextRoom::new("annotations", ANSWER_BYTES_MAX))
    }

    fn global_annotations_within(
        &self,
        span_ms: RangeInclusive<i64>,
        max: usize,
        mut room: TextRoom,
    ) -> Result<Vec<(i64, Annotation)>> {
        let mut found = Vec::new();
        self.scan_annotations(None, &span_ms, |_, cells| {
            for cell in cells {
                if found.len() == max {
                    return Err(Error::TooManyAnnotations { max });
                }
                room.take(cell.value.len())?;
                found.push((cell.start_ms, Annotation::decode(cell.value)?));
            }
            Ok(())
        })?;
        Ok(found)
    }

    /// Deletes the annotations that begin within `span_ms`, of a series or the global ones; how many there were.
    /// Durable when it returns.
    ///
    /// # Errors
    /// The store's own.
    pub fn delete_annotations(&self, tsuid: Option<&Tsuid>, span_ms: RangeInclusive<i64>) -> Result<u64> {
        let mut deleted = 0;
        let mut batch = MutationBatch::new(Durability::Fsync);
        self.scan_annotations(tsuid, &span_ms, |row, cells| {
            for cell in cells.iter().filter(|cell| span_ms.contains(&cell.start_ms)) {
                // The cell's own time: one of the server's would hide a put of the same millisecond.
                batch.row(row)?.delete_column(DATA_FAMILY, cell.qualifier, Some(cell.timestamp))?;
                deleted += 1;
            }
            if batch.cells_count() < DELETED_AT_ONCE {
                return Ok(());
            }
            self.apply(&self.tables().data, std::mem::replace(&mut batch, MutationBatch::new(Durability::Fsync)))
        })?;
        self.apply(&self.tables().data, batch)?;
        Ok(deleted)
    }

    fn annotation_cell(&self, place: &AnnotationPlace) -> JsonCell<'_> {
        let (base, qualifier) = annotation_column(place.start);
        let row = match &place.tsuid {
            Some(tsuid) => self.layout().series_key(tsuid).row_key(base),
            None => self.layout().global_annotations_key(base),
        };
        let (store, table, qualifier) = (&**self.store(), &self.tables().data, qualifier.to_vec());
        JsonCell { store, table, row, family: DATA_FAMILY, qualifier, what: "annotation" }
    }

    /// Hands the annotations of each row in the hours that `span_ms` touches to `each`.
    fn scan_annotations(
        &self,
        tsuid: Option<&Tsuid>,
        span_ms: &RangeInclusive<i64>,
        mut each: impl FnMut(&[u8], &[AnnotationCell<'_>]) -> Result<()>,
    ) -> Result<()> {
        let base = |time_ms: i64| BaseTime::of_seconds(u32::try_from(time_ms.max(0) / 1000).unwrap_or(u32::MAX));
        let place = |base| match tsuid {
            Some(tsuid) => self.layout().series_key(tsuid).row_key(base),
            None => self.layout().global_annotations_key(base),
        };
        let (first, last) = (place(base(*span_ms.start())), place(base(*span_ms.end())));
        let hour = self.layout().base_offset()..self.layout().tags_offset();
        let mask: Vec<u8> = (0..first.len()).map(|at| u8::from(hour.contains(&at))).collect();
        // Longer keys match by their beginning, so the length is compared below.
        let row_len = first.len();
        let fuzzy = Filter::FuzzyRow(vec![FuzzyKey { key: first.clone().into(), mask: mask.into() }]);
        let annotations = Filter::ColumnPrefix(Bytes::from_static(&[ColumnKind::ANNOTATION]));
        let mut scan = Scan::range(first, last)
            .with_columns(Columns::family(DATA_FAMILY))
            .with_filter(Filter::List(ListOperator::All, vec![fuzzy, annotations]));
        scan.stop_inclusive = true;
        let mut scanner = self.store().scan(&self.tables().data, scan)?;
        while let Some(batch) = scanner.next_wait() {
            let batch = batch?;
            for row in batch.rows().filter(|row| row.key().len() == row_len) {
                let base_ms = i64::from(self.layout().decode(row.key())?.base().seconds()) * 1000;
                each(row.key(), &annotation_cells(base_ms, &row))?;
            }
        }
        Ok(())
    }
}

/// A cell that holds an annotation.
struct AnnotationCell<'a> {
    start_ms: i64,
    qualifier: &'a [u8],
    timestamp: Timestamp,
    value: &'a [u8],
}

fn annotation_cells<'a>(base_ms: i64, row: &RowView<'a>) -> Vec<AnnotationCell<'a>> {
    let cells = row.cells().filter_map(|cell| {
        let start_ms = annotation_start_ms(base_ms, cell.qualifier, cell.value)?;
        Some(AnnotationCell { start_ms, qualifier: cell.qualifier, timestamp: cell.timestamp, value: cell.value })
    });
    cells.collect()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use basalt_store::{ErrorKind, ManualClock, MemoryStore};

    use super::*;
    use crate::{Salting, SchemaConfig};

    const HOUR: i64 = 1_699_999_200;

    fn schema() -> Schema {
        let store = Arc::new(MemoryStore::new(Arc::new(ManualClock::default())));
        let config = SchemaConfig { salting: Salting::new(1, 20).unwrap(), ..SchemaConfig::default() };
        Schema::open(store, config).unwrap()
    }

    fn place(tsuid: Option<&Tsuid>, start: i64) -> AnnotationPlace {
        AnnotationPlace { tsuid: tsuid.cloned(), start: PointTime::from_number(start).unwrap() }
    }

    fn saying(description: &str) -> AnnotationEdit {
        AnnotationEdit { description: Some(description.into()), ..AnnotationEdit::default() }
    }

    #[test]
    fn edits_merge_or_replace() {
        // A-ANNOT
        let schema = schema();
        let place = place(None, HOUR + 5);
        assert_eq!(schema.annotation(&place).unwrap(), None);
        let custom = Some(BTreeMap::from([("a".to_owned(), "b".to_owned())]));
        let first = AnnotationEdit { notes: Some("n".into()), custom, end_time: Some(9), ..saying("one") };
        schema.edit_annotation(&place, &first, EditMode::Merge).unwrap();
        let merged = schema.edit_annotation(&place, &saying("two"), EditMode::Merge).unwrap();
        assert_eq!((&*merged.description, &*merged.notes, merged.end_time), ("two", "n", 9));
        assert_eq!(schema.annotation(&place).unwrap(), Some(merged));
        let replaced = schema.edit_annotation(&place, &saying("three"), EditMode::Replace).unwrap();
        let expected = Annotation { start_time: HOUR + 5, description: "three".into(), ..Annotation::default() };
        assert_eq!(replaced, expected);
        assert!(schema.delete_annotation(&place).unwrap() && !schema.delete_annotation(&place).unwrap());
        assert_eq!(schema.annotation(&place).unwrap(), None);
    }

    #[test]
    fn one_second_is_one_place_in_either_resolution() {
        let schema = schema();
        schema.edit_annotation(&place(None, (HOUR + 5) * 1000), &saying("ms"), EditMode::Merge).unwrap();
        let note = schema.edit_annotation(&place(None, HOUR + 5), &AnnotationEdit::default(), EditMode::Merge).unwrap();
        assert_eq!((&*note.description, note.start_time), ("ms", HOUR + 5));
    }

    /// `A-ANNOT`: of many in one call each sees those before it, in either resolution, and one that fails takes none of these back.
    #[test]
    fn a_annot_many_edits_are_made_in_their_order() {
        let schema = schema();
        let notes = AnnotationEdit { notes: Some("n".into()), ..AnnotationEdit::default() };
        let edits = [
            (place(None, HOUR), saying("one")),
            (place(None, HOUR + 1), saying("other")),
            (place(None, HOUR), notes),
            (place(None, HOUR * 1000), saying("two")),
        ];
        let (edited, outcome) = schema.edit_annotations(&edits, EditMode::Merge);
        outcome.unwrap();
        let told: Vec<_> = edited.iter().map(|note| (&*note.description, &*note.notes)).collect();
        assert_eq!(told, [("one", ""), ("other", ""), ("one", "n"), ("two", "n")]);
        assert_eq!(schema.annotation(&place(None, HOUR)).unwrap().as_ref(), edited.last());
        let (edited, _) = schema.edit_annotations(&edits[..1], EditMode::Replace);
        assert_eq!((&*edited[0].description, &*edited[0].notes), ("one", ""));
    }

    #[test]
    fn edits_before_one_that_fails_are_stored_and_told() {
        let config = SchemaConfig { salting: Salting::new(1, 20).unwrap(), series_max: 1, ..SchemaConfig::default() };
        let store = Arc::new(MemoryStore::new(Arc::new(ManualClock::default())));
        let schema = Schema::open(store, config).unwrap();
        let [first, second] = ["a", "b"].map(|host| schema.resolve("m", &[("host", host)]).unwrap());
        let edits = [Some(&first), Some(&second), None].map(|tsuid| (place(tsuid, HOUR), saying("x")));
        let (edited, outcome) = schema.edit_annotations(&edits, EditMode::Merge);
        assert!(matches!(outcome, Err(Error::IndexFull { max: 1 })), "{outcome:?}");
        assert_eq!(edited.len(), 1);
        let stored = edits.map(|(place, _)| schema.annotation(&place).unwrap().is_some());
        assert_eq!(stored, [true, false, false]);
    }

    /// `S-ANNOT`: of the real OpenTSDB's cell, 801 s into the hour of 1700001000; a second in a thousand lies so.
    #[test]
    fn s_annot_what_opentsdb_misplaced_is_found_changed_and_deleted() {
        let (start, other) = (1_700_001_000, HOUR + 801);
        let misplace = |schema: &Schema| {
            let note = Annotation { start_time: start, description: "old".into(), ..Annotation::default() };
            let cell = schema.annotation_cell(&place(None, other));
            assert!(cell.put_if_absent(&note.encode(), Durability::Fsync).unwrap());
        };
        let told = |schema: &Schema, at| schema.annotation(&place(None, at)).unwrap().map(|note| note.description);
        let listed = |schema: &Schema| {
            let found = schema.global_annotations(0..=i64::MAX, 10).unwrap();
            found.into_iter().map(|(start_ms, note)| (start_ms / 1000, note.description)).collect::<Vec<_>>()
        };
        let old = schema();
        misplace(&old);
        assert_eq!(
            (told(&old, start), told(&old, start * 1000), told(&old, other)),
            (Some("old".into()), Some("old".into()), None)
        );
        assert_eq!(listed(&old), [(start, "old".to_owned())]);
        let notes = AnnotationEdit { notes: Some("n".into()), ..AnnotationEdit::default() };
        let edited = old.edit_annotation(&place(None, start), &notes, EditMode::Merge).unwrap();
        assert_eq!((&*edited.description, &*edited.notes), ("old", "n"));
        assert_eq!(listed(&old).len(), 1, "it stays where it is");
        assert!(!old.delete_annotation(&place(None, other)).unwrap());
        assert!(old.delete_annotation(&place(None, start)).unwrap() && listed(&old).is_empty());

        // One of the time whose cell it is in takes its place and nothing of it, alone or among many.
        let both = schema();
        misplace(&both);
        both.edit_annotation(&place(None, other), &notes, EditMode::Merge).unwrap();
        assert_eq!(listed(&both), [(other, String::new()), (start, "old".to_owned())]);
        let many = schema();
        misplace(&many);
        let edits = [(place(None, start), notes), (place(None, other), saying("other"))];
        many.edit_annotations(&edits, EditMode::Merge).1.unwrap();
        assert_eq!(listed(&many), [(other, "other".to_owned()), (start, "old".to_owned())]);
        assert_eq!(many.annotation(&place(None, start)).unwrap().unwrap().notes, "n");
        let span = start * 1000..=start * 1000;
        let cleared = schema();
        misplace(&cleared);
        for schema in [&cleared, &many] {
            assert_eq!(schema.delete_annotations(None, span.clone()).unwrap(), 1);
        }
        assert!(listed(&cleared).is_empty() && listed(&many).len() == 1);
    }

    #[test]
    fn writers_at_once_lose_nothing() {
        let schema = schema();
        let edits = [
            saying("d"),
            AnnotationEdit { notes: Some("n".into()), ..AnnotationEdit::default() },
            AnnotationEdit { end_time: Some(7), ..AnnotationEdit::default() },
        ];
        std::thread::scope(|scope| {
            for edit in &edits {
                scope.spawn(|| schema.edit_annotation(&place(None, HOUR), edit, EditMode::Merge).unwrap());
            }
        });
        let note = schema.annotation(&place(None, HOUR)).unwrap().unwrap();
        assert_eq!((&*note.description, &*note.notes, note.end_time), ("d", "n", 7));
    }

    #[test]
    fn a_series_whose_row_has_no_key_is_not_in_the_index() {
        let schema = schema();
        let known = schema.resolve("m", &[("host", "a")]).unwrap().to_string();
        let of_pairs = |count: usize| {
            let (metric, pair) = known.split_at(6);
            Tsuid::parse(&[metric, &pair.repeat(count)].concat(), schema.layout().widths).unwrap()
        };
        // Salt, metric and base time take 8 bytes of 32,767.
        let edits =
            [(5459, HOUR), (5460, HOUR)].map(|(pairs, start)| (place(Some(&of_pairs(pairs)), start), saying("x")));
        let (edited, outcome) = schema.edit_annotations(&edits, EditMode::Merge);
        assert_eq!((edited.len(), outcome.unwrap_err().kind()), (1, ErrorKind::Invalid));
        let [_, (refused, edit)] = &edits;
        assert_eq!(schema.edit_annotation(refused, edit, EditMode::Merge).unwrap_err().kind(), ErrorKind::Invalid);
        assert_eq!(schema.index().len(), 1);
    }

    #[test]
    fn ranges_are_read_and_deleted_by_start_and_by_series() {
        // A-ANNOTS; salted, where OpenTSDB's own range delete of a series finds nothing.
        let schema = schema();
        let tsuids = ["a", "b"].map(|host| schema.resolve("m", &[("host", host)]).unwrap());
        let longer = schema.resolve("m", &[("host", "a"), ("other", "x")]).unwrap();
        for tsuid in [None, Some(&tsuids[0]), Some(&tsuids[1]), Some(&longer)] {
            for start in [HOUR, HOUR + 10, (HOUR + 10) * 1000 + 500, HOUR + 3600, HOUR + 7200] {
                schema.edit_annotation(&place(tsuid, start), &saying("x"), EditMode::Merge).unwrap();
            }
        }
        let globals = |from: i64, to: i64| schema.global_annotations(from * 1000..=to * 1000, 10);
        let starts = globals(HOUR, HOUR + 3600).unwrap().into_iter().map(|(start_ms, _)| start_ms - HOUR * 1000);
        assert_eq!(
            starts.collect::<Vec<_>>(),
            [0, 10_500, 10_000, 3_600_000],
            "within an hour milliseconds come first"
        );
        assert!(matches!(schema.global_annotations(0..=i64::MAX, 4), Err(Error::TooManyAnnotations { max: 4 })));
        let within = |bytes| schema.global_annotations_within(0..=i64::MAX, 10, TextRoom::new("annotations", bytes));
        assert!(matches!(within(300), Err(Error::TooMuchText { what: "annotations", max: 300 })));
        assert_eq!(within(500).unwrap().len(), 5);
        let span = (HOUR + 1) * 1000..=(HOUR + 3600) * 1000;
        assert_eq!(schema.delete_annotations(Some(&tsuids[0]), span.clone()).unwrap(), 3);
        assert_eq!(schema.delete_annotations(Some(&tsuids[0]), span.clone()).unwrap(), 0);
        assert_eq!(schema.delete_annotations(None, span).unwrap(), 3);
        assert_eq!(globals(HOUR, HOUR + 7200).unwrap().len(), 2);
        for tsuid in [&tsuids[1], &longer] {
            assert_eq!(schema.delete_annotations(Some(tsuid), 0..=i64::MAX).unwrap(), 5);
        }
        assert_eq!(schema.delete_annotations(Some(&tsuids[0]), 0..=i64::MAX).unwrap(), 2);
    }
}
