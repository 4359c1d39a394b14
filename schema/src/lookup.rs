//! Series found by metric and tags in the series index, each with its names.
//!
//! ```text
//! metric ──────────────┐ none given: every metric
//! key = value ─────────┼─ and: one value of each key that is named
//! key = any ───────────┤
//! any = value ─────────┘ and: one of these values, under whatever key
//! ```
//!
//! OpenTSDB asks its meta table, which most installations do not fill, or scans all rows of the metric; the index knows
//! every series, each once. Of tables that others write too it knows what was seen: their row keys are read first.
//! *Source*: OpenTSDB 2.4 `TimeSeriesLookup` (rule M-LOOKUP).

use std::collections::{BTreeMap, BTreeSet};

use basalt_store::{Columns, ErrorKind, Filter, ListOperator, Scan, TableName};
use roaring::RoaringBitmap;

use crate::{BaseTime, DATA_FAMILY, Result, Schema, SeriesId, SeriesIndex, SeriesNames, Tsuid, Uid, UidKind};

/// What is looked for, in names.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Lookup {
    /// The metric; `None` is any.
    pub metric: Option<String>,
    /// Tags, key and value; `None` is any.
    pub tags: Vec<(Option<String>, Option<String>)>,
    /// Series passed over, in TSUID order.
    pub skip: usize,
    /// The most series answered.
    pub limit: usize,
    /// Only series that have a row in the data table now: the index remembers those whose points were deleted.
    pub with_rows: bool,
}

/// A series that was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundSeries {
    /// Its id.
    pub tsuid: Tsuid,
    /// Its names.
    pub names: SeriesNames,
}

/// What was found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LookupPage {
    /// Series in TSUID order, at most [`Lookup::limit`].
    pub series: Vec<FoundSeries>,
    /// How many match, whatever `skip` and `limit` say.
    pub total: u64,
}

/// The tags in UIDs.
#[derive(Debug, Default)]
struct TagUids {
    /// Values by key; no values are any.
    keys: BTreeMap<Uid, Option<BTreeSet<Uid>>>,
    /// Values under any key.
    values: BTreeSet<Uid>,
}

impl Schema {
    /// Finds series. One whose names are gone (a deleted UID) is counted and not answered.
    ///
    /// *Cost*: as [`Schema::lookup_tsuids`]; the names of the series answered are read in batches.
    ///
    /// # Errors
    /// `NotFound`: a name that is unknown. The store's own.
    pub fn lookup(&self, lookup: &Lookup) -> Result<LookupPage> {
        let (tsuids, total) = self.lookup_tsuids(lookup)?;
        Ok(LookupPage { series: self.named(&tsuids)?, total })
    }

    /// Finds series without their names, and how many there are.
    ///
    /// *Cost*: bitmap operations for each metric; the TSUIDs of all that match are looked at, those up to the end of the page held. With
    /// [`Lookup::with_rows`], and of [shared](crate::SchemaConfig::is_shared) tables, a scan of all row keys of each metric besides.
    ///
    /// # Errors
    /// As [`Schema::lookup`].
    pub fn lookup_tsuids(&self, lookup: &Lookup) -> Result<(Vec<Tsuid>, u64)> {
        let (index, is_shared) = (self.index(), self.config().is_shared);
        let metrics = match &lookup.metric {
            Some(name) => vec![self.uids().of(UidKind::Metric).uid(name)?],
            None if is_shared => {
                self.read_index()?;
                index.metrics()
            }
            None => index.metrics(),
        };
        let tags = self.tag_uids(&lookup.tags)?;
        let (mut tsuids, mut total, mut skip) = (Vec::new(), 0, lookup.skip);
        for metric in metrics {
            if is_shared && lookup.metric.is_some() && !lookup.with_rows {
                for table in self.tables_of_rollups_alone().chain([&self.tables().data]) {
                    self.with_rows(table, metric)?;
                }
            }
            let rows = lookup.with_rows.then(|| self.with_rows(&self.tables().data, metric)).transpose()?;
            let mut ids = tags.of(index, metric);
            if let Some(rows) = rows {
                ids &= rows;
            }
            let count = usize::try_from(ids.len()).unwrap_or(usize::MAX);
            total += ids.len();
            if skip >= count || tsuids.len() >= lookup.limit {
                skip = skip.saturating_sub(count);
                continue;
            }
            let room = lookup.limit - tsuids.len();
            tsuids.extend(index.first_tsuids(&ids, skip.saturating_add(room)).into_iter().skip(skip));
            skip = 0;
        }
        Ok((tsuids, total))
    }

    /// The series of a metric that have a row in a table, of which the index knows each afterwards.
    fn with_rows(&self, table: &TableName, metric: Uid) -> Result<RoaringBitmap> {
        let (layout, index) = (self.layout(), self.index());
        let mut found = RoaringBitmap::new();
        for salt in layout.salts() {
            let bound = |seconds| layout.range_start(salt, metric, BaseTime::of_seconds(seconds));
            let keys_only = Filter::List(ListOperator::All, vec![Filter::FirstKeyOnly, Filter::KeyOnly]);
            let scan = Scan::range(bound(0), bound(u32::MAX)).with_columns(Columns::family(DATA_FAMILY));
            let mut scanner = self.store().scan(table, scan.with_filter(keys_only))?;
            while let Some(batch) = scanner.next_wait() {
                for row in batch?.rows() {
                    let SeriesId(id) = index.add(&layout.decode(row.key())?.tsuid())?;
                    found.insert(id);
                }
            }
        }
        Ok(found)
    }

    fn tag_uids(&self, tags: &[(Option<String>, Option<String>)]) -> Result<TagUids> {
        let mut uids = TagUids::default();
        for (key, value) in tags {
            let key = key.as_deref().map(|key| self.uids().of(UidKind::Tagk).uid(key)).transpose()?;
            let value = value.as_deref().map(|value| self.uids().of(UidKind::Tagv).uid(value)).transpose()?;
            match (key, value) {
                (Some(key), None) => {
                    uids.keys.insert(key, None);
                }
                (Some(key), Some(value)) => {
                    if let Some(values) = uids.keys.entry(key).or_insert_with(|| Some(BTreeSet::new())) {
                        values.insert(value);
                    }
                }
                (None, Some(value)) => {
                    uids.values.insert(value);
                }
                (None, None) => {}
            }
        }
        Ok(uids)
    }

    /// Series with their names, without those that have none.
    ///
    /// # Errors
    /// The store's own.
    pub fn named(&self, tsuids: &[Tsuid]) -> Result<Vec<FoundSeries>> {
        self.load_names(tsuids)?;
        let mut found = Vec::with_capacity(tsuids.len());
        for tsuid in tsuids {
            match self.names(tsuid) {
                Ok(names) => found.push(FoundSeries { tsuid: tsuid.clone(), names }),
                Err(error) if error.kind() == ErrorKind::NotFound => {}
                Err(error) => return Err(error),
            }
        }
        Ok(found)
    }

    /// Brings the names of many series into the caches, by one get a kind and batch.
    fn load_names(&self, tsuids: &[Tsuid]) -> Result<()> {
        let widths = self.layout().widths;
        let pairs = || tsuids.iter().flat_map(|tsuid| tsuid.pairs(widths));
        let metrics: Vec<Uid> = tsuids.iter().map(|tsuid| tsuid.metric(widths)).collect();
        let (keys, values): (Vec<Uid>, Vec<Uid>) = pairs().map(|pair| (pair.key, pair.value)).unzip();
        for (kind, uids) in [(UidKind::Metric, metrics), (UidKind::Tagk, keys), (UidKind::Tagv, values)] {
            match self.uids().of(kind).names(&uids) {
                Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
        Ok(())
    }
}

impl TagUids {
    /// The series of a metric that have all of them.
    fn of(&self, index: &SeriesIndex, metric: Uid) -> RoaringBitmap {
        let mut found = index.series(metric);
        for (key, values) in &self.keys {
            found &= match values {
                None => index.with_key(metric, *key),
                Some(values) => index.with_any_value(metric, *key, values.iter().copied()),
            };
        }
        if !self.values.is_empty() && !found.is_empty() {
            let mut with_value = RoaringBitmap::new();
            for key in index.tag_keys(metric) {
                with_value |= index.with_any_value(metric, key, self.values.iter().copied());
            }
            found &= with_value;
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use basalt_store::{ManualClock, MemoryStore, MutationBatch};

    use super::*;
    use crate::{Door, PointTime, SchemaConfig, Value};

    const SERIES: [(&str, &[(&str, &str)]); 5] = [
        ("cpu", &[("host", "web01"), ("dc", "lga")]),
        ("cpu", &[("host", "web02"), ("dc", "lga")]),
        ("cpu", &[("host", "web03"), ("dc", "sea")]),
        ("mem", &[("rack", "web01")]),
        ("disk", &[("owner", "web02"), ("host", "db01")]),
    ];

    fn schema() -> Schema {
        let store = Arc::new(MemoryStore::new(Arc::new(ManualClock::default())));
        let schema = Schema::open(store, SchemaConfig::default()).unwrap();
        for (metric, tags) in SERIES {
            schema.index().add(&schema.resolve(metric, tags).unwrap()).unwrap();
        }
        schema
    }

    fn lookup(text: &str) -> Lookup {
        let any = |word: &str| (word != "*").then(|| word.to_owned());
        let (metric, tags) = text.split_once(' ').unwrap_or((text, ""));
        let tags = tags.split(' ').filter_map(|tag| tag.split_once('=')).map(|(key, value)| (any(key), any(value)));
        Lookup { metric: any(metric), tags: tags.collect(), limit: 100, ..Lookup::default() }
    }

    /// `expected`: which of [`SERIES`], in TSUID order.
    fn check(text: &str, expected: &[usize]) {
        let schema = schema();
        let page = schema.lookup(&lookup(text)).unwrap();
        let expected = expected.iter().map(|at| schema.find(SERIES[*at].0, SERIES[*at].1).unwrap());
        assert!(page.series.iter().map(|found| found.tsuid.clone()).eq(expected), "{text}: {page:?}");
        assert_eq!(page.total, page.series.len() as u64);
    }

    #[test]
    fn series_are_found_by_any_part_of_their_name() {
        // M-LOOKUP
        check("cpu", &[0, 1, 2]);
        check("*", &[0, 1, 2, 3, 4]);
        check("cpu host=*", &[0, 1, 2]);
        check("cpu host=web01", &[0]);
        check("cpu host=web01 host=web03", &[0, 2]);
        check("cpu host=web01 host=*", &[0, 1, 2]);
        check("cpu host=* host=web01", &[0, 1, 2]);
        check("cpu host=web01 dc=sea", &[]);
        check("* host=*", &[0, 1, 2, 4]);
        check("* *=web01", &[0, 3]);
        check("* *=web01 *=web02", &[0, 1, 3, 4]);
        check("* *=web02 owner=*", &[4]);
        check("cpu *=*", &[0, 1, 2]);
    }

    #[test]
    fn pages_go_across_metrics_and_count_all() {
        let schema = schema();
        let page = |skip, limit| schema.lookup(&Lookup { skip, limit, ..lookup("*") }).unwrap();
        assert_eq!((page(2, 2).series.len(), page(2, 2).total), (2, 5));
        assert_eq!(page(2, 2).series, page(0, 100).series[2..4]);
        assert_eq!(page(3, 100).series, page(0, 100).series[3..]);
        assert_eq!((page(9, 100).series.len(), page(0, 0).series.len()), (0, 0));
    }

    /// What another process wrote since the start, with a metric named and without.
    #[test]
    fn series_that_others_wrote_are_found_in_shared_tables() {
        let writer = schema();
        let config = SchemaConfig { is_shared: true, ..SchemaConfig::default() };
        let asker = Schema::open(Arc::clone(writer.store()), config).unwrap();
        for (at, (metric, tags)) in SERIES.iter().enumerate() {
            put(&writer, &writer.find(metric, tags).unwrap());
            assert!(asker.index().len() <= at, "nothing is read but when it is asked for");
            let page = asker.lookup(&lookup(metric)).unwrap();
            assert_eq!(page.series.last().unwrap().tsuid, writer.find(metric, tags).unwrap());
        }
        let config = SchemaConfig { is_shared: true, ..SchemaConfig::default() };
        let another = Schema::open(Arc::clone(writer.store()), config).unwrap();
        assert!(another.index().is_empty());
        assert_eq!(another.lookup(&lookup("*")).unwrap().total, SERIES.len() as u64);
    }

    fn put(schema: &Schema, tsuid: &Tsuid) {
        let time = PointTime::from_number(1_700_000_000).unwrap();
        let cell = crate::point_cell(time, Value::Int(1), Door::Http).unwrap();
        let key = schema.layout().series_key(tsuid).row_key(cell.base);
        let mut batch = MutationBatch::default();
        batch.row(&key).unwrap().put(DATA_FAMILY, &cell.qualifier_bytes(), None, &cell.value()).unwrap();
        schema.store().apply(&schema.tables().data, batch).wait().unwrap();
    }

    /// M-LOOKUP: what the data table has, and not what the index remembers.
    #[test]
    fn series_without_a_row_are_left_out_where_rows_are_asked_for() {
        let schema = schema();
        let tsuid = schema.find("cpu", SERIES[1].1).unwrap();
        put(&schema, &tsuid);
        let page = schema.lookup(&Lookup { with_rows: true, ..lookup("*") }).unwrap();
        assert_eq!((page.total, page.series.len(), &page.series[0].tsuid), (1, 1, &tsuid));
    }

    #[test]
    fn an_unknown_name_is_told_and_a_series_without_names_left_out() {
        let schema = schema();
        let error = schema.lookup(&lookup("cpu host=nosuch")).unwrap_err();
        assert_eq!(error.to_string(), "No such name for 'tagv': 'nosuch'");
        schema.uids().of(UidKind::Tagv).delete("web03").unwrap();
        let page = schema.lookup(&lookup("cpu")).unwrap();
        assert_eq!((page.series.len(), page.total), (2, 3));
    }
}
