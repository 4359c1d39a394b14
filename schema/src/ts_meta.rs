//! What is said of a series: its meta object and its counter.
//!
//! ```text
//! row  TSUID      family  name
//! ts_meta  JSON: tsuid, displayName, description, notes, created, custom, units, dataType, retention, max, min
//! ts_ctr   points counted, 8 bytes big-endian; the cell's time is when the last one came
//! ```
//!
//! A series has an object only where somebody made one; the series index needs none. *Source*: OpenTSDB 2.4 `TSMeta`,
//! `TSUIDQuery` (rules S-TSMETA, M-TSMETA).

use std::collections::{BTreeMap, HashMap};

use basalt_store::{CellView, Columns, Durability, Get, RowView, Scan};
use serde::{Deserialize, Serialize};

use crate::json_cell::{EditMode, JsonCell};
use crate::meta_json::{self, ANSWER_BYTES_MAX, Pairs, TextRoom};
use crate::tables::UID_NAME_FAMILY;
use crate::uid_meta::{UidMeta, earlier};
use crate::{Error, Result, Schema, TagPair, Tsuid, Uid, UidKind};

/// Meta objects of names that one answer keeps while it is made. What they say is part of the answer, and bounded with it.
const NAMES_KEPT_MAX: usize = 1 << 14;

pub(crate) const META_QUALIFIER: &[u8] = b"ts_meta";
/// The meta table's column of how many points a series has; its cell's time is that of the last.
pub const COUNTER_QUALIFIER: &[u8] = b"ts_ctr";

/// The meta object of a series, with those of its names. Serialized as OpenTSDB answers it.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct TsMeta {
    /// The series in upper-case hex.
    pub tsuid: String,
    /// Of its metric.
    pub metric: UidMeta,
    /// Of its tags: key, value, key, value, in the order of the TSUID.
    pub tags: Vec<UidMeta>,
    /// The members that are stored.
    #[serde(flatten)]
    pub said: TsMetaSaid,
    /// When its last counted point came, seconds; 0 where none is counted.
    pub last_received: u64,
    /// How many points were counted.
    pub total_datapoints: i64,
}

/// The members of a series' meta object that a writer may set.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct TsMetaSaid {
    /// A name for people.
    #[serde(deserialize_with = "meta_json::text")]
    pub display_name: String,
    /// In a line.
    #[serde(deserialize_with = "meta_json::text")]
    pub description: String,
    /// At length.
    #[serde(deserialize_with = "meta_json::text")]
    pub notes: String,
    /// When it was made, seconds; 0 where nobody said.
    pub created: i64,
    /// The writer's own members.
    #[serde(deserialize_with = "meta_json::pairs", skip_serializing_if = "Option::is_none")]
    pub custom: Option<BTreeMap<String, String>>,
    /// What is counted.
    #[serde(deserialize_with = "meta_json::text")]
    pub units: String,
    /// How it is counted.
    #[serde(deserialize_with = "meta_json::text")]
    pub data_type: String,
    /// For how long it is worth keeping, days; nothing acts on it.
    pub retention: i64,
    /// The largest value it may have; NaN for none.
    #[serde(with = "meta_json::double")]
    pub max: f64,
    /// The smallest.
    #[serde(with = "meta_json::double")]
    pub min: f64,
}

impl Default for TsMetaSaid {
    fn default() -> Self {
        Self {
            display_name: String::new(),
            description: String::new(),
            notes: String::new(),
            created: 0,
            custom: None,
            units: String::new(),
            data_type: String::new(),
            retention: 0,
            max: f64::NAN,
            min: f64::NAN,
        }
    }
}

/// What of a meta object changes; `None` is not given.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct TsMetaEdit {
    /// As in [`TsMetaSaid`].
    pub display_name: Option<String>,
    /// As in [`TsMetaSaid`].
    pub description: Option<String>,
    /// As in [`TsMetaSaid`].
    pub notes: Option<String>,
    /// As in [`TsMetaSaid`]; the earlier of two stays.
    pub created: Option<i64>,
    /// As in [`TsMetaSaid`], all of them.
    pub custom: Option<BTreeMap<String, String>>,
    /// As in [`TsMetaSaid`].
    pub units: Option<String>,
    /// As in [`TsMetaSaid`].
    pub data_type: Option<String>,
    /// As in [`TsMetaSaid`].
    pub retention: Option<i64>,
    /// As in [`TsMetaSaid`].
    pub max: Option<f64>,
    /// As in [`TsMetaSaid`].
    pub min: Option<f64>,
}

/// The cell's JSON.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Stored<'a> {
    tsuid: String,
    display_name: &'a str,
    description: &'a str,
    notes: &'a str,
    created: i64,
    custom: &'a Pairs,
    units: &'a str,
    data_type: &'a str,
    retention: i64,
    #[serde(with = "meta_json::double")]
    max: f64,
    #[serde(with = "meta_json::double")]
    min: f64,
}

impl TsMetaEdit {
    /// Whether anything is given.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    fn applied(&self, stored: TsMetaSaid, mode: EditMode) -> TsMetaSaid {
        let created = earlier(stored.created, self.created);
        let kept = if mode == EditMode::Merge { stored } else { TsMetaSaid::default() };
        TsMetaSaid {
            display_name: self.display_name.clone().unwrap_or(kept.display_name),
            description: self.description.clone().unwrap_or(kept.description),
            notes: self.notes.clone().unwrap_or(kept.notes),
            created,
            custom: self.custom.clone().or(kept.custom),
            units: self.units.clone().unwrap_or(kept.units),
            data_type: self.data_type.clone().unwrap_or(kept.data_type),
            retention: self.retention.unwrap_or(kept.retention),
            max: self.max.unwrap_or(kept.max),
            min: self.min.unwrap_or(kept.min),
        }
    }
}

impl TsMetaSaid {
    fn encode(&self, tsuid: &Tsuid) -> Vec<u8> {
        meta_json::encode(&Stored {
            tsuid: tsuid.to_string(),
            display_name: &self.display_name,
            description: &self.description,
            notes: &self.notes,
            created: self.created,
            custom: &self.custom,
            units: &self.units,
            data_type: &self.data_type,
            retention: self.retention,
            max: self.max,
            min: self.min,
        })
    }

    fn decode(bytes: &[u8]) -> Result<Self> {
        meta_json::decode("series meta object", bytes)
    }
}

/// Any bytes are an object or refused.
#[cfg(any(test, fuzzing))]
pub(crate) fn foreign(bytes: &[u8]) {
    drop(TsMetaSaid::decode(bytes));
}

/// What is said of the names of many series, most of which share their metric and keys: each is read once.
#[derive(Default)]
struct NameMetas(HashMap<(UidKind, Uid), UidMeta>);

impl NameMetas {
    fn of(&mut self, kind: UidKind, uid: Uid, read: impl FnOnce() -> Result<UidMeta>) -> Result<UidMeta> {
        if let Some(kept) = self.0.get(&(kind, uid)) {
            return Ok(kept.clone());
        }
        let meta = read()?;
        if self.0.len() < NAMES_KEPT_MAX {
            self.0.insert((kind, uid), meta.clone());
        }
        Ok(meta)
    }
}

/// What the two cells of a row say.
struct Row {
    said: TsMetaSaid,
    last_received: u64,
    total_datapoints: i64,
}

impl Schema {
    /// The meta object of a series, if it has one.
    ///
    /// # Errors
    /// `NotFound`: a UID without a name. `Corrupt`: a cell that is no meta object or no counter. The store's own.
    pub fn ts_meta(&self, tsuid: &Tsuid) -> Result<Option<TsMeta>> {
        let get = Get::row(tsuid.as_bytes().to_vec()).with_columns(Columns::family(UID_NAME_FAMILY));
        let batch = self.store().get(&self.tables().meta, get).wait()?;
        let row = batch.row(0).map(|row| decode_row(&row)).transpose()?.flatten();
        row.map(|row| self.ts_meta_of(tsuid, row, &mut NameMetas::default())).transpose()
    }

    /// The meta objects of a metric's series that have all these tags, in TSUID order.
    ///
    /// *Cost*: a scan of the metric's rows in the meta table, and a get for each name.
    ///
    /// # Errors
    /// `Throttled`: more than `max`, or more than 256 MiB of them. As [`Schema::ts_meta`].
    pub fn ts_metas(&self, metric: Uid, tags: &[(Uid, Option<Uid>)], max: usize) -> Result<Vec<TsMeta>> {
        self.ts_metas_within(metric, tags, max, TextRoom::new("meta objects", ANSWER_BYTES_MAX))
    }

    fn ts_metas_within(
        &self,
        metric: Uid,
        tags: &[(Uid, Option<Uid>)],
        max: usize,
        mut room: TextRoom,
    ) -> Result<Vec<TsMeta>> {
        let widths = self.layout().widths;
        let scan = Scan::prefix(&metric.encode(widths.metric)).with_columns(Columns::family(UID_NAME_FAMILY));
        let mut scanner = self.store().scan(&self.tables().meta, scan)?;
        let has = |pairs: &[TagPair], (key, value): &(Uid, Option<Uid>)| {
            pairs.iter().any(|pair| pair.key == *key && value.is_none_or(|value| pair.value == value))
        };
        let (mut found, mut of_names) = (Vec::new(), NameMetas::default());
        while let Some(batch) = scanner.next_wait() {
            for row in batch?.rows() {
                let Ok(tsuid) = Tsuid::from_bytes(row.key(), widths) else { continue };
                let pairs: Vec<TagPair> = tsuid.pairs(widths).collect();
                if !tags.iter().all(|tag| has(&pairs, tag)) {
                    continue;
                }
                let Some(row) = decode_row(&row)? else { continue };
                if found.len() == max {
                    return Err(Error::TooManyMetas { max });
                }
                let told = self.ts_meta_of(&tsuid, row, &mut of_names)?;
                // With what is said of its names, which comes again with each series.
                room.take(meta_json::encode(&told).len())?;
                found.push(told);
            }
        }
        Ok(found)
    }

    /// Whether a series has a meta object.
    ///
    /// # Errors
    /// The store's own.
    pub fn has_ts_meta(&self, tsuid: &Tsuid) -> Result<bool> {
        Ok(self.ts_meta_cell(tsuid).read()?.is_some())
    }

    /// Whether a series has a counter.
    pub(crate) fn has_ts_counter(&self, tsuid: &Tsuid) -> Result<bool> {
        Ok(self.ts_counter_cell(tsuid).read()?.is_some())
    }

    /// Changes the meta object of a series; `None` if it has none. Durable when it returns.
    ///
    /// # Errors
    /// `NotFound`: a UID without a name. `Conflict`: others changed it at every attempt. `Corrupt`, and the store's own.
    pub fn edit_ts_meta(&self, tsuid: &Tsuid, edit: &TsMetaEdit, mode: EditMode) -> Result<Option<TsMeta>> {
        self.names(tsuid)?;
        if !self.has_ts_meta(tsuid)? {
            return Ok(None);
        }
        self.ts_meta_cell(tsuid).edit(|before| {
            let stored = before.map_or_else(|| Ok(TsMetaSaid::default()), TsMetaSaid::decode)?;
            Ok((edit.applied(stored, mode).encode(tsuid), ()))
        })?;
        self.ts_meta(tsuid)
    }

    /// Sets the time of a series' meta object to an earlier one. Durable with the next write at level `Fsync`.
    pub(crate) fn set_back_ts_meta(&self, tsuid: &Tsuid, created: i64) -> Result<()> {
        let edit = TsMetaEdit { created: Some(created), ..TsMetaEdit::default() };
        self.ts_meta_cell(tsuid).edit_at(Durability::Async, |before| {
            let stored = before.map_or_else(|| Ok(TsMetaSaid::default()), TsMetaSaid::decode)?;
            Ok((edit.applied(stored, EditMode::Merge).encode(tsuid), ()))
        })
    }

    /// Makes the meta object of a series, and its counter where there is none. One that is there already is merged with. With
    /// [`Realtime::trees`](crate::Realtime::trees) the series goes into every enabled tree; what fails of that is counted. Durable
    /// when it returns.
    ///
    /// # Errors
    /// As [`Schema::edit_ts_meta`].
    pub fn create_ts_meta(&self, tsuid: &Tsuid, edit: &TsMetaEdit) -> Result<Option<TsMeta>> {
        self.names(tsuid)?;
        self.ts_counter_cell(tsuid).put_if_absent(&0i64.to_be_bytes(), Durability::Async)?;
        self.ts_meta_cell(tsuid).edit(|before| {
            let stored = before.map_or_else(|| Ok(TsMetaSaid::default()), TsMetaSaid::decode)?;
            Ok((edit.applied(stored, EditMode::Merge).encode(tsuid), ()))
        })?;
        let made = self.ts_meta(tsuid)?;
        if let Some(meta) = made.as_ref().filter(|_| self.config().realtime.trees) {
            self.note_in_trees(tsuid, meta);
        }
        Ok(made)
    }

    /// Deletes the meta object of a series; whether it had one. Its counter stays. Durable when it returns.
    ///
    /// # Errors
    /// The store's own.
    pub fn delete_ts_meta(&self, tsuid: &Tsuid) -> Result<bool> {
        let was_there = self.ts_meta_cell(tsuid).delete()?;
        // Where series get their objects by themselves, the next point makes it anew.
        self.uids().raise_generation();
        Ok(was_there)
    }

    /// Makes the meta object of a series that has none; whether it had none. Durable with the next write at level `Fsync`.
    pub(crate) fn make_ts_meta(&self, tsuid: &Tsuid, edit: &TsMetaEdit) -> Result<bool> {
        let object = edit.applied(TsMetaSaid::default(), EditMode::Merge).encode(tsuid);
        self.ts_meta_cell(tsuid).put_if_absent(&object, Durability::Async)
    }

    fn ts_meta_cell(&self, tsuid: &Tsuid) -> JsonCell<'_> {
        JsonCell {
            store: &**self.store(),
            table: &self.tables().meta,
            row: tsuid.as_bytes().to_vec(),
            family: UID_NAME_FAMILY,
            qualifier: META_QUALIFIER.into(),
            what: "series meta object",
        }
    }

    fn ts_counter_cell(&self, tsuid: &Tsuid) -> JsonCell<'_> {
        JsonCell { qualifier: COUNTER_QUALIFIER.into(), ..self.ts_meta_cell(tsuid) }
    }

    fn ts_meta_of(&self, tsuid: &Tsuid, row: Row, of_names: &mut NameMetas) -> Result<TsMeta> {
        let widths = self.layout().widths;
        let mut of = |kind, uid| of_names.of(kind, uid, || self.uid_meta(kind, uid));
        let mut tags = Vec::new();
        for pair in tsuid.pairs(widths) {
            tags.push(of(UidKind::Tagk, pair.key)?);
            tags.push(of(UidKind::Tagv, pair.value)?);
        }
        Ok(TsMeta {
            tsuid: tsuid.to_string(),
            metric: of(UidKind::Metric, tsuid.metric(widths))?,
            tags,
            said: row.said,
            last_received: row.last_received,
            total_datapoints: row.total_datapoints,
        })
    }
}

/// `None` for a row with a counter and no object: OpenTSDB writes the counter first.
fn decode_row(row: &RowView<'_>) -> Result<Option<Row>> {
    let cell = |qualifier: &[u8]| row.cells().find(|cell| cell.qualifier == qualifier);
    let Some(said) = cell(META_QUALIFIER) else { return Ok(None) };
    let (total_datapoints, last_received) = cell(COUNTER_QUALIFIER).map_or(Ok((0, 0)), |cell| decode_counter(&cell))?;
    Ok(Some(Row { said: TsMetaSaid::decode(said.value)?, last_received, total_datapoints }))
}

fn decode_counter(cell: &CellView<'_>) -> Result<(i64, u64)> {
    let count = <[u8; 8]>::try_from(cell.value).map_err(|_| Error::CorruptObject {
        what: "series counter",
        reason: format!("{} bytes instead of 8", cell.value.len()).into(),
    })?;
    Ok((i64::from_be_bytes(count), cell.timestamp.0 / 1000))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use basalt_store::{ManualClock, MemoryStore};

    use super::*;
    use crate::{SchemaConfig, UidMetaEdit};

    fn schema() -> (Schema, Tsuid, Tsuid) {
        let store = Arc::new(MemoryStore::new(Arc::new(ManualClock::default())));
        let schema = Schema::open(store, SchemaConfig::default()).unwrap();
        let one = schema.resolve("m", &[("host", "a"), ("dc", "x")]).unwrap();
        let two = schema.resolve("m", &[("host", "b")]).unwrap();
        (schema, one, two)
    }

    fn saying(description: &str) -> TsMetaEdit {
        TsMetaEdit { description: Some(description.into()), ..TsMetaEdit::default() }
    }

    #[test]
    fn the_cells_are_the_servers_byte_for_byte() {
        // S-TSMETA
        let (schema, _, tsuid) = schema();
        schema.create_ts_meta(&tsuid, &TsMetaEdit { max: Some(1.5), retention: Some(7), ..saying("d") }).unwrap();
        let stored = schema.ts_meta_cell(&tsuid).read().unwrap().unwrap();
        let expected = r#"{"tsuid":"000001000001000003","displayName":"","description":"d","notes":"","created":0,"custom":null,"units":"","dataType":"","retention":7,"max":1.5,"min":"NaN"}"#;
        assert_eq!(String::from_utf8(stored).unwrap(), expected);
        assert_eq!(schema.ts_counter_cell(&tsuid).read().unwrap().unwrap(), [0; 8]);
    }

    #[test]
    fn objects_are_made_merged_replaced_and_deleted() {
        // M-TSMETA
        let (schema, tsuid, _) = schema();
        assert_eq!(schema.edit_ts_meta(&tsuid, &saying("x"), EditMode::Merge).unwrap(), None);
        let made =
            schema.create_ts_meta(&tsuid, &TsMetaEdit { units: Some("%".into()), ..saying("d") }).unwrap().unwrap();
        assert_eq!((&*made.said.units, &*made.metric.name, made.tags.len()), ("%", "m", 4));
        assert_eq!([&*made.tags[0].name, &*made.tags[3].name], ["host", "x"]);
        let merged = schema.edit_ts_meta(&tsuid, &saying("d2"), EditMode::Merge).unwrap().unwrap();
        assert_eq!((&*merged.said.units, &*merged.said.description), ("%", "d2"));
        let replaced = schema.edit_ts_meta(&tsuid, &saying("d3"), EditMode::Replace).unwrap().unwrap();
        assert_eq!((&*replaced.said.units, &*replaced.said.description), ("", "d3"));
        assert!(schema.delete_ts_meta(&tsuid).unwrap());
        assert_eq!(schema.ts_meta(&tsuid).unwrap(), None, "its counter alone is no object");
    }

    /// `M-TSMETA`: what series share is read once, and no more is kept than has a bound.
    #[test]
    fn what_is_said_of_a_name_is_read_once_for_many_series() {
        let (schema, ..) = schema();
        let mut reads = 0;
        let mut metas = NameMetas::default();
        let mut of = |kind, uid: u64| {
            let read = || {
                reads += 1;
                schema.uid_meta(kind, Uid::new(1))
            };
            metas.of(kind, Uid::new(uid), read).unwrap().name
        };
        for _ in 0..3 {
            assert_eq!([of(UidKind::Metric, 1), of(UidKind::Tagk, 1), of(UidKind::Tagv, 1)], ["m", "host", "a"]);
        }
        for uid in 0..NAMES_KEPT_MAX as u64 + 10 {
            of(UidKind::Tagv, uid);
        }
        of(UidKind::Tagk, 1);
        assert_eq!((reads, metas.0.len()), (NAMES_KEPT_MAX + 12, NAMES_KEPT_MAX));
    }

    #[test]
    fn a_metrics_objects_are_found_by_their_tags() {
        let (schema, one, two) = schema();
        for tsuid in [&one, &two] {
            schema.create_ts_meta(tsuid, &saying("d")).unwrap();
        }
        let check = |tags: &[(Uid, Option<Uid>)], expected: &[&Tsuid]| {
            let found = schema.ts_metas(Uid::new(1), tags, 10).unwrap();
            assert!(found.iter().map(|meta| meta.tsuid.clone()).eq(expected.iter().map(ToString::to_string)));
        };
        check(&[], &[&one, &two]);
        check(&[(Uid::new(1), None)], &[&one, &two]);
        check(&[(Uid::new(1), Some(Uid::new(3)))], &[&two]);
        check(&[(Uid::new(1), None), (Uid::new(2), None)], &[&one]);
        check(&[(Uid::new(2), Some(Uid::new(1)))], &[]);
        assert!(matches!(schema.ts_metas(Uid::new(1), &[], 1), Err(Error::TooManyMetas { max: 1 })));
        assert!(schema.ts_metas(Uid::new(2), &[], 1).unwrap().is_empty());
        let notes = UidMetaEdit { notes: Some("n".repeat(10_000)), ..UidMetaEdit::default() };
        schema.edit_uid_meta(UidKind::Metric, Uid::new(1), &notes, EditMode::Merge).unwrap();
        let within = |bytes| schema.ts_metas_within(Uid::new(1), &[], 10, TextRoom::new("meta objects", bytes));
        assert!(matches!(within(15_000), Err(Error::TooMuchText { what: "meta objects", .. })), "they come twice");
        assert_eq!(within(25_000).unwrap().len(), 2);
    }
}
