//! What a query took, in OpenTSDB's names: `showStats` beside each series (`Q-SHOWSTATS`), `showSummary` after the last
//! (`Q-SHOWSUMMARY`), and the list of ended queries (`O-STATS-QUERY`).
//!
//! Times are milliseconds with decimals. OpenTSDB exchanges some maxima and averages and counts the points of the last
//! series only; here each figure is what its name says. *Source*: OpenTSDB 2.4 `QueryStats`.

use std::time::Duration;

use basalt_query::{ScanStats, Series, SubAnswer};
use serde_json::{Map, Value, json};

/// A query that was computed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct QueryStats<'a> {
    pub(crate) answers: &'a [SubAnswer],
    /// Time taken to write each answer's series, in the answers' order.
    pub(crate) written: &'a [Duration],
    /// OpenTSDB's members alone.
    pub(crate) strict: bool,
}

impl QueryStats<'_> {
    /// Beside a series that took `writing` to be written.
    pub(crate) fn of_series(&self, answer: &SubAnswer, series: &Series, writing: Duration) -> Value {
        let mut told = Map::new();
        told.insert("queryIndex".into(), answer.index.into());
        told.insert("emittedDPs".into(), series.points.len().into());
        told.insert("serializationTime".into(), ms(writing));
        steps(&mut told, answer);
        self.extras(&mut told, &answer.stats);
        told.into()
    }

    /// The whole query with its sub queries and their scans; `took` is the time until the answer is written.
    pub(crate) fn summary(&self, took: Duration) -> Value {
        let mut told = self.overall(took);
        for (place, answer) in self.answers.iter().enumerate() {
            told.insert(format!("queryIdx_{:02}", answer.index), self.of_sub(place, answer));
        }
        told.into()
    }

    /// The whole query in one figure each.
    pub(crate) fn overall(&self, took: Duration) -> Map<String, Value> {
        let scans: Vec<&ScanStats> =
            self.answers.iter().flat_map(|answer| &answer.steps.scans).map(|scan| &scan.1).collect();
        let of_scans = |pick: fn(&ScanStats) -> Duration| scans.iter().map(|scan| pick(scan)).collect::<Vec<_>>();
        let of_subs = |pick: fn(&SubAnswer) -> Duration| self.answers.iter().map(pick).collect::<Vec<_>>();
        let store = of_scans(|scan| scan.store_time);
        let whole_scans = of_scans(|scan| scan.store_time + scan.decode_time);
        let scan = of_subs(|answer| answer.steps.scan_time);
        let compute = of_subs(|answer| answer.steps.compute_time);
        let names = of_subs(|answer| answer.steps.name_time);
        let mut told = Map::new();
        put(
            &mut told,
            &[
                ("avgHBaseTime", average(&store)),
                ("maxHBaseTime", maximum(&store)),
                ("avgScannerTime", average(&whole_scans)),
                ("avgScannerUidToStringTime", Duration::ZERO),
                ("maxScannerUidToStringTime", Duration::ZERO),
                ("avgQueryScanTime", average(&scan)),
                ("maxQueryScanTime", maximum(&scan)),
                ("processingPreWriteTime", took),
            ],
        );
        let has_series = self.answers.iter().any(|answer| !answer.series.is_empty());
        if has_series {
            put(
                &mut told,
                &[
                    ("avgAggregationTime", average(&compute)),
                    ("maxAggregationTime", maximum(&compute)),
                    ("maxUidToStringTime", maximum(&names)),
                    ("avgSerializationTime", average(self.written)),
                    ("maxSerializationTime", maximum(self.written)),
                ],
            );
        }
        let mut total = ScanStats::default();
        for answer in self.answers {
            let stats = &answer.stats;
            total.rows += stats.rows;
            total.rows_kept += stats.rows_kept;
            total.cells += stats.cells;
            total.cells_left_out += stats.cells_left_out;
            total.bytes += stats.bytes;
            total.points += stats.points;
            total.emitted_points += stats.emitted_points;
        }
        counts(&mut told, &total);
        if has_series {
            told.insert("emittedDPs".into(), total.emitted_points.into());
        }
        told.insert("successfulScan".into(), scans.len().into());
        self.extras(&mut told, &total);
        told
    }

    fn of_sub(&self, place: usize, answer: &SubAnswer) -> Value {
        let scans: Vec<&ScanStats> = answer.steps.scans.iter().map(|scan| &scan.1).collect();
        let store: Vec<Duration> = scans.iter().map(|scan| scan.store_time).collect();
        let whole: Vec<Duration> = scans.iter().map(|scan| scan.store_time + scan.decode_time).collect();
        let mut told = Map::new();
        steps(&mut told, answer);
        counts(&mut told, &answer.stats);
        self.extras(&mut told, &answer.stats);
        put(
            &mut told,
            &[
                ("avgHBaseTime", average(&store)),
                ("maxHBaseTime", maximum(&store)),
                ("avgScannerTime", average(&whole)),
                ("avgScannerUidToStringTime", Duration::ZERO),
                ("maxScannerUidToStringTime", Duration::ZERO),
            ],
        );
        if !answer.series.is_empty() {
            put(&mut told, &[("serializationTime", self.written.get(place).copied().unwrap_or_default())]);
            told.insert("emittedDPs".into(), answer.stats.emitted_points.into());
        }
        told.insert("queryIndex".into(), answer.index.into());
        told.insert("successfulScan".into(), scans.len().into());
        let scan = |(index, (name, stats)): (usize, &(String, ScanStats))| {
            let mut told = Map::new();
            counts(&mut told, stats);
            self.extras(&mut told, stats);
            told.insert("scannerId".into(), name.as_str().into());
            told.insert("hbaseTime".into(), ms(stats.store_time));
            told.insert("compactionTime".into(), ms(stats.decode_time));
            told.insert("scannerTime".into(), ms(stats.store_time + stats.decode_time));
            told.insert("scannerUidToStringTime".into(), ms(Duration::ZERO));
            told.insert("successfulScan".into(), 1.into());
            (format!("scannerIdx_{index:02}"), Value::from(told))
        };
        told.insert(
            "scannerStats".into(),
            answer.steps.scans.iter().enumerate().map(scan).collect::<Map<_, _>>().into(),
        );
        told.into()
    }

    /// Members that OpenTSDB names and 2.4.1 leaves out of scans.
    fn extras(&self, told: &mut Map<String, Value>, stats: &ScanStats) {
        if !self.strict {
            told.insert("rowsFromStorage".into(), stats.rows.into());
            told.insert("columnsFromStorage".into(), stats.cells.into());
            told.insert("bytesFromStorage".into(), stats.bytes.into());
        }
    }
}

/// Rows and points before and after filtering. Cells of rows that are left out count as a point each.
fn counts(told: &mut Map<String, Value>, stats: &ScanStats) {
    told.insert("rowsPreFilter".into(), stats.rows.into());
    told.insert("rowsPostFilter".into(), stats.rows_kept.into());
    told.insert("dpsPreFilter".into(), (stats.points + stats.cells_left_out).into());
    told.insert("dpsPostFilter".into(), stats.points.into());
    // Filters are answered by the series index: no name is looked up for them.
    told.insert("uidPairsResolved".into(), 0.into());
}

/// The steps of a sub query; those after the scan only where there was something to aggregate.
fn steps(told: &mut Map<String, Value>, answer: &SubAnswer) {
    let steps = &answer.steps;
    put(
        told,
        &[
            ("queryScanTime", steps.scan_time),
            ("saltScannerMergeTime", steps.merge_time),
            ("groupByTime", steps.group_time),
        ],
    );
    if !answer.series.is_empty() {
        put(told, &[("aggregationTime", steps.compute_time), ("uidToStringTime", steps.name_time)]);
    }
}

fn put(told: &mut Map<String, Value>, times: &[(&str, Duration)]) {
    told.extend(times.iter().map(|(name, time)| ((*name).to_owned(), ms(*time))));
}

fn ms(time: Duration) -> Value {
    json!(time.as_secs_f64() * 1_000.0)
}

fn average(times: &[Duration]) -> Duration {
    u32::try_from(times.len())
        .ok()
        .and_then(|count| times.iter().sum::<Duration>().checked_div(count))
        .unwrap_or_default()
}

fn maximum(times: &[Duration]) -> Duration {
    times.iter().max().copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `Q-SHOWSUMMARY`.
    #[test]
    fn averages_and_maxima_are_what_they_are_called() {
        let times = [Duration::from_millis(1), Duration::from_millis(5)];
        assert_eq!((average(&times), maximum(&times)), (Duration::from_millis(3), Duration::from_millis(5)));
        assert_eq!((average(&[]), maximum(&[])), (Duration::ZERO, Duration::ZERO));
        let written = [Duration::from_millis(2)];
        let sub = SubAnswer { index: 3, series: vec![Series::default()], ..SubAnswer::default() };
        let told = QueryStats { answers: &[sub], written: &written, strict: true }.summary(Duration::from_millis(9));
        assert_eq!(told["processingPreWriteTime"], 9.0);
        assert_eq!(told["queryIdx_03"]["serializationTime"], 2.0);
    }
}
