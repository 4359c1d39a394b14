//! Repairs append cells: a query that reads one writes its points back in order.
//!
//! *Source*: OpenTSDB 2.4 `AppendDataPoints.parseKeyValue`, which overwrites the cell and so may lose what another
//! client appends at the same time. Here the change is made only if the cell is still as it was read.

use basalt_schema::{ColumnKind, DATA_FAMILY, Schema, mended_append};
use basalt_store::{CheckAndMutate, Comparison, Durability, MutationBatch, RowView};
use bytes::Bytes;

/// Puts the points of a row's append cells in order (rule S-APPEND-REPAIR). The query answers from what it read in any case, so
/// a store that refuses writes now fails no query. A cell that changes before the repair is left to the next reader.
pub(super) fn mend_appends(schema: &Schema, row: &RowView<'_>) {
    for cell in row.cells().filter(|cell| ColumnKind::of(cell.qualifier) == ColumnKind::Appended) {
        let Ok(Some(mended)) = mended_append(cell.value) else { continue };
        let mut mutation = MutationBatch::new(Durability::Async);
        let put = mutation.row(row.key()).and_then(|mut entry| {
            // At its own time: it is not to become newer than the row's other cells, one of which may correct a point of it.
            entry.put(DATA_FAMILY, cell.qualifier, Some(cell.timestamp), &mended)?;
            Ok(())
        });
        let check = CheckAndMutate {
            row: Bytes::copy_from_slice(row.key()),
            family: Bytes::from_static(DATA_FAMILY),
            qualifier: Bytes::copy_from_slice(cell.qualifier),
            comparison: Comparison::Equal,
            expected: Some(Bytes::copy_from_slice(cell.value)),
            mutation,
        };
        if put.is_ok() {
            schema.store().check_and_mutate(&schema.tables().data, check).wait().ok();
        }
    }
}

#[cfg(test)]
mod tests {
    use basalt_schema::{APPEND_QUALIFIER, BaseTime, LargerOrSmaller, Salting, SchemaConfig};
    use basalt_store::Get;

    use super::*;
    use crate::fixture::{Fixture, text};
    use crate::{QueryRequest, SubQuery};

    /// A row's append cell after a query at `now_ms`.
    fn after_query(config: SchemaConfig, now_ms: i64) -> (String, Vec<u8>) {
        let fixture = Fixture::of(SchemaConfig { salting: Salting::NONE, ..config });
        let tsuid = fixture.schema.resolve("m", &[("host", "a")]).unwrap();
        fixture.schema.index().add(&tsuid).unwrap();
        let base = BaseTime::of_seconds(1_700_000_000);
        let key = fixture.schema.layout().series_key(&tsuid).row_key(base);
        // Ten seconds, five seconds, ten seconds again.
        fixture.store(&key, &APPEND_QUALIFIER, &[0, 0xA0, 1, 0, 0x50, 2, 0, 0xA0, 3]);
        let request = QueryRequest {
            start: Some("1699999000".into()),
            end: Some("1700000800".into()),
            queries: vec![SubQuery::from_metric_text("sum:m").unwrap()],
            ..QueryRequest::default()
        };
        let engine = fixture.engine(false, crate::Limits::default());
        let answers = engine.run(&request, now_ms, &crate::Cancel::new()).unwrap();
        let get = Get::rows(vec![Bytes::from(key)]);
        let batch = fixture.schema.store().get(&fixture.schema.tables().data, get).wait().unwrap();
        let cell = batch.rows().next().and_then(|row| row.cells().next().map(|cell| cell.value.to_vec()));
        (text(&answers[0].series[0]), cell.unwrap())
    }

    const HOUR_MS: i64 = 1_699_999_200_000;

    #[test]
    fn s_append_repair_a_row_older_than_an_hour_is_put_in_order() {
        let config = || SchemaConfig { repair_appends: true, ..SchemaConfig::default() };
        let points = "1699999205 2, 1699999210 3";
        let mended = vec![0, 0x50, 2, 0, 0xA0, 3];
        let as_it_was = vec![0, 0xA0, 1, 0, 0x50, 2, 0, 0xA0, 3];
        assert_eq!(after_query(config(), HOUR_MS + 3_600_001), (points.into(), mended));
        assert_eq!(after_query(config(), HOUR_MS + 3_600_000), (points.into(), as_it_was.clone()));
        assert_eq!(after_query(SchemaConfig::default(), HOUR_MS * 2), (points.into(), as_it_was));
    }

    /// A point that was put by itself after those of the cell, as by a daemon without appends, stays the newer.
    #[test]
    fn s_append_repair_the_cell_keeps_its_time() {
        let config = SchemaConfig { salting: Salting::NONE, repair_appends: true, ..SchemaConfig::default() };
        let mut fixture = Fixture::of(config);
        let tsuid = fixture.schema.resolve("m", &[("host", "a")]).unwrap();
        let key = fixture.schema.layout().series_key(&tsuid).row_key(BaseTime::of_seconds(1_700_000_000));
        fixture.store(&key, &APPEND_QUALIFIER, &[0, 0xA0, 1, 0, 0x50, 2]);
        fixture.put("m 1699999210 7 host=a");
        let cells = || {
            let get = Get::rows(vec![Bytes::from(key.clone())]);
            let batch = fixture.schema.store().get(&fixture.schema.tables().data, get).wait().unwrap();
            let row = batch.row(0).unwrap();
            row.cells().map(|cell| (cell.value.to_vec(), cell.timestamp)).collect::<Vec<_>>()
        };
        let before = cells();
        let request = QueryRequest {
            start: Some("1699999000".into()),
            end: Some("1700000800".into()),
            queries: vec![SubQuery::from_metric_text("sum:m").unwrap()],
            ..QueryRequest::default()
        };
        for _ in 0..2 {
            fixture.advance(1_000);
            let engine = fixture.engine(false, crate::Limits::default());
            let answers = engine.run(&request, HOUR_MS * 2, &crate::Cancel::new()).unwrap();
            assert_eq!(text(&answers[0].series[0]), "1699999205 2, 1699999210 7");
        }
        let after = cells();
        assert!(
            after
                .contains(&(vec![0, 0x50, 2, 0, 0xA0, 1], before.iter().find(|(value, _)| value.len() > 1).unwrap().1))
        );
    }

    #[test]
    fn s_dtcs_the_larger_or_the_smaller_value_wins() {
        for (kept, expected) in
            [(LargerOrSmaller::Larger, "1699999200 7"), (LargerOrSmaller::Smaller, "1699999200 -1.5")]
        {
            let mut fixture = Fixture::of(SchemaConfig { data_times: Some(kept), ..SchemaConfig::default() });
            // Three cells of one instant: another width, another kind.
            for value in ["300", "7", "-1.5"].iter().skip(usize::from(kept == LargerOrSmaller::Larger)) {
                fixture.put(&format!("m 1699999200 {value} host=a"));
            }
            let series = fixture.ask("1699999000", "1700000800", "sum:m").unwrap();
            assert_eq!(text(&series[0]), expected);
        }
    }
}
