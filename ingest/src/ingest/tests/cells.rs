//! Rollups and histograms whose rows the store refuses.

use basalt_schema::{RollupSettings, Rollups};

use super::*;
use crate::{parse_histograms, parse_rollups};

const DAY: i64 = 1_699_920_000;

fn bench_of_cells() -> Bench {
    let json = r#"{"aggregationIds":{"sum":0},"intervals":[
        {"table":"t1","preAggregationTable":"p1","interval":"1h","rowSpan":"1d"}]}"#;
    let rollups = Some(Rollups::parse(json, RollupSettings::default()).unwrap());
    let config = SchemaConfig { rollups, histogram_id: Some(0), ..SchemaConfig::default() };
    bench_with(config, IngestLimits::default())
}

impl Bench {
    /// All cells of a table: row key, qualifier, value.
    pub(super) fn cells_of(&self, table: &TableName) -> Vec<(Vec<u8>, Vec<u8>, Vec<u8>)> {
        let mut scanner = self.store.scan(table, Scan::range(Bytes::new(), Bytes::new())).unwrap();
        let mut cells = Vec::new();
        while let Some(batch) = scanner.next_wait() {
            for row in batch.unwrap().rows() {
                cells.extend(row.cells().map(|c| (row.key().to_vec(), c.qualifier.to_vec(), c.value.to_vec())));
            }
        }
        cells
    }

    /// Puts rollups `(host, hour of the day, value)`.
    fn put_rollups(&self, rollups: &[(&str, i64, i64)]) -> PutReport {
        let object = |(host, hour, value): &(&str, i64, i64)| {
            object("m", DAY + hour * 3600, &value.to_string(), host)
                .replace("\"tags\"", r#""interval":"1h","aggregator":"sum","tags""#)
        };
        let body = format!("[{}]", rollups.iter().map(object).collect::<Vec<_>>().join(","));
        let rollups = parse_rollups(&body, self.ingest.limits()).unwrap();
        self.ingest.submit_rollups(&rollups, Door::Http).unwrap().wait()
    }
}

fn indices(report: &PutReport) -> Vec<usize> {
    report.errors.iter().map(|error| error.index).collect()
}

/// Of two rollups in one row, neighbours or not, and of one of another row.
#[test]
fn a_refused_row_fails_all_its_rollups_and_no_other() {
    let bench = bench_of_cells();
    let rollups = [("a", 0, 1), ("a", 1, 2), ("b", 0, 3), ("a", 2, 4), ("a", 0, 5)];
    for (row, refused) in [(0, vec![0, 1, 3, 4]), (1, vec![2]), (2, vec![])] {
        bench.store.set(Fault::ThrottledRow(row));
        let report = bench.put_rollups(&rollups);
        assert_eq!(indices(&report), refused, "{row}");
        assert_eq!((report.stored, report.failed), ((5 - refused.len()) as u64, refused.len() as u64));
    }
    assert_eq!(bench.counts(Door::Http).superseded, 3);
    assert!(bench.counts(Door::Http).is_balanced());
}

#[test]
fn a_refused_row_fails_all_its_histograms() {
    let bench = bench_of_cells();
    let histogram = |second: i64| {
        format!(r#"{{"metric":"h","timestamp":{},"tags":{{"host":"a"}},"buckets":{{"0,1":{second}}}}}"#, DAY + second)
    };
    let body = format!("[{},{}]", histogram(1), histogram(2));
    let histograms = parse_histograms(&body, bench.ingest.limits()).unwrap();
    bench.store.set(Fault::ThrottledRow(0));
    assert_eq!(indices(&bench.ingest.submit_histograms(&histograms, Door::Http).unwrap().wait()), [0, 1]);
    bench.store.set(Fault::None);
    assert!(bench.ingest.submit_histograms(&histograms, Door::Http).unwrap().wait().is_all_stored());
    assert_eq!(bench.cells().len(), 2);
}

#[test]
fn of_rollups_of_one_column_the_last_is_written() {
    let bench = bench_of_cells();
    assert!(bench.put_rollups(&[("a", 0, 9), ("b", 0, 2), ("a", 1, 3), ("a", 0, 4)]).is_all_stored());
    assert_eq!(bench.counts(Door::Http).superseded, 1);
    let table = bench.schema.config().rollups.as_ref().unwrap().by_name("1h").unwrap().table().clone();
    let mut values: Vec<_> = bench.cells_of(&table).into_iter().map(|(_, _, value)| value).collect();
    values.sort_unstable();
    assert_eq!(values, [[2], [3], [4]]);
}
