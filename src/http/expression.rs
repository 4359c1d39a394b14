//! `/api/query/exp`: expressions over metrics (`E-EXP`, `E-EXP-JOIN`, `E-EXP-NEST`).

use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use basalt_query::{Cancel, ExpressionRequest, OutputAnswer, QueryEngine};
use serde_json::{Map, Value, json};

use super::call::Call;
use super::error::ApiError;
use super::number::{write_double, write_integer};
use super::whole;
use crate::app::App;
use crate::clock;

/// A piece is handed on when it is at least this long.
const PIECE_BYTES: usize = 64 << 10;
/// Room behind a piece for what ends it: a column's tags at most.
const ROOM_BYTES: usize = 4 << 10;

/// A JSON body.
pub(crate) async fn post(State(app): State<Arc<App>>, call: Call) -> Result<Response, ApiError> {
    call.content()?;
    let now_ms = clock::signed_now_ms();
    let options = app.query_options;
    let compute = move |queries: &QueryEngine, cancel: &Cancel| {
        let request = ExpressionRequest::from_json(&call.body)?;
        let plan = request.check(now_ms, options)?;
        queries.run_expressions(&plan, cancel).map(|outputs| (request, outputs))
    };
    whole::in_pieces(app, "/api/query/exp", compute, |(request, outputs), sink| write(request, outputs, sink)).await
}

/// An answer under way: what is written and not yet handed on.
struct Writing<'a> {
    out: Vec<u8>,
    /// Says whether anybody still reads.
    sink: &'a mut dyn FnMut(Vec<u8>) -> bool,
}

impl Writing<'_> {
    fn text(&mut self, text: &str) {
        self.out.extend_from_slice(text.as_bytes());
    }

    /// Hands on what makes a piece; `None` when nobody reads any more.
    fn hand_on(&mut self) -> Option<()> {
        if self.out.len() < PIECE_BYTES {
            return Some(());
        }
        let room = Vec::with_capacity(PIECE_BYTES + ROOM_BYTES);
        (self.sink)(std::mem::replace(&mut self.out, room)).then_some(())
    }
}

/// The outputs, and the request as it was understood. Hands pieces to `sink` and gives back the last one; `None` when nobody reads any
/// more. An answer shorter than a piece never meets the sink.
fn write(
    request: &ExpressionRequest,
    outputs: &[OutputAnswer],
    sink: &mut dyn FnMut(Vec<u8>) -> bool,
) -> Option<Vec<u8>> {
    let mut writing = Writing { out: b"{\"outputs\":[".to_vec(), sink };
    for (place, output) in outputs.iter().enumerate() {
        if place > 0 {
            writing.text(",");
        }
        write_output(&mut writing, output)?;
    }
    writing.text(&format!("],\"query\":{}}}", json!(request)));
    Some(writing.out)
}

fn write_output(writing: &mut Writing<'_>, output: &OutputAnswer) -> Option<()> {
    writing.text(&format!("{{\"id\":{}", json!(output.id)));
    if let Some(alias) = &output.alias {
        writing.text(&format!(",\"alias\":{}", json!(alias)));
    }
    writing.text(",\"dps\":[");
    for (place, (time_ms, values)) in output.rows().enumerate() {
        if place > 0 {
            writing.text(",");
        }
        writing.text("[");
        write_integer(&mut writing.out, time_ms);
        for value in values {
            writing.text(",");
            write_double(&mut writing.out, *value);
            // A row may be longer than a piece.
            writing.hand_on()?;
        }
        writing.text("]");
    }
    let meta = json!({
        "firstTimestamp": output.first_ms,
        "lastTimestamp": output.last_ms,
        "setCount": output.times_ms.len(),
        "series": output.series.len(),
    });
    writing.text(&format!("],\"dpsMeta\":{meta}"));
    if !output.series.is_empty() {
        write_columns(writing, output)?;
    }
    writing.text("}");
    Some(())
}

/// What stands in each place of a row.
fn write_columns(writing: &mut Writing<'_>, output: &OutputAnswer) -> Option<()> {
    let metrics: Vec<&str> = output.metrics.iter().map(|name| &**name).collect();
    writing.text(&format!(",\"meta\":[{}", json!({ "index": 0, "metrics": ["timestamp"] })));
    for (place, series) in output.series.iter().enumerate() {
        let tags: Map<String, Value> =
            series.tags.iter().map(|(key, value)| (key.to_string(), json!(**value))).collect();
        let aggregated: Vec<&str> = series.aggregated.iter().map(|key| &**key).collect();
        let column =
            json!({ "index": place + 1, "metrics": metrics, "commonTags": tags, "aggregatedTags": aggregated });
        writing.text(&format!(",{column}"));
        writing.hand_on()?;
    }
    writing.text("]");
    Some(())
}

#[cfg(test)]
mod tests {
    use basalt_query::OutputSeries;

    use super::*;

    fn request() -> ExpressionRequest {
        ExpressionRequest::from_json(br#"{"outputs":[{"id":"e"}]}"#).unwrap()
    }

    fn output(series_count: usize, rows_count: usize) -> OutputAnswer {
        let series = OutputSeries { tags: vec![("host".into(), "a\"".into())], aggregated: vec!["dc".into()] };
        OutputAnswer {
            id: "e".into(),
            alias: Some("\u{e9}".into()),
            times_ms: (1..=rows_count).map(|time_ms| i64::try_from(time_ms).unwrap()).collect(),
            values: vec![1.5; rows_count * series_count],
            first_ms: 1,
            last_ms: 9,
            metrics: vec!["m".into(), "n".into()],
            series: vec![series; series_count],
            ..OutputAnswer::default()
        }
    }

    /// The answer in pieces.
    fn pieces(outputs: &[OutputAnswer]) -> Vec<String> {
        let mut pieces = Vec::new();
        let last = write(&request(), outputs, &mut |piece| {
            pieces.push(piece);
            true
        });
        pieces.extend(last);
        pieces.into_iter().map(|piece| String::from_utf8(piece).unwrap()).collect()
    }

    /// Objects have their members in the order of their names, but for the outer ones.
    #[test]
    fn e_exp_an_answer_is_written_to_the_byte() {
        let query = json!(request());
        let column = |index: usize| {
            format!(r#"{{"aggregatedTags":["dc"],"commonTags":{{"host":"a\""}},"index":{index},"metrics":["m","n"]}}"#)
        };
        let (first, second) = (column(1), column(2));
        let whole = format!(
            r#"{{"id":"e","alias":"é","dps":[[1,1.5,1.5],[2,1.5,1.5]],"dpsMeta":{{"firstTimestamp":1,"lastTimestamp":9,"series":2,"setCount":2}},"meta":[{{"index":0,"metrics":["timestamp"]}},{first},{second}]}}"#
        );
        let empty = r#"{"id":"","dps":[],"dpsMeta":{"firstTimestamp":0,"lastTimestamp":0,"series":0,"setCount":0}}"#;
        let expected = format!(r#"{{"outputs":[{whole},{empty}],"query":{query}}}"#);
        assert_eq!(pieces(&[output(2, 2), OutputAnswer::default()]), [expected]);
        assert_eq!(pieces(&[]), [format!(r#"{{"outputs":[],"query":{query}}}"#)]);
    }

    /// Long by its rows, by one row, and by its columns: in pieces that are together what it is whole, and no longer where nobody reads.
    #[test]
    fn a_long_answer_comes_in_pieces_and_ends_where_nobody_reads() {
        for (series_count, rows_count) in [(1, 30_000), (30_000, 1), (5_000, 0)] {
            let long = output(series_count, rows_count);
            let found = pieces(std::slice::from_ref(&long));
            let (last, full) = found.split_last().unwrap();
            assert!(full.len() > 2 && last.len() < PIECE_BYTES + ROOM_BYTES);
            assert!(full.iter().all(|piece| (PIECE_BYTES..PIECE_BYTES + ROOM_BYTES).contains(&piece.len())));
            let read: Value = serde_json::from_str(&found.concat()).unwrap();
            let rows = read["outputs"][0]["dps"].as_array().unwrap();
            assert_eq!(rows.len(), rows_count);
            assert!(rows.iter().all(|row| row.as_array().unwrap().len() == series_count + 1));
            assert_eq!(read["outputs"][0]["meta"].as_array().unwrap().len(), series_count + 1);
            let mut asked = 0;
            let nobody = &mut |_| {
                asked += 1;
                asked < 2
            };
            assert_eq!((write(&request(), &[long], nobody), asked), (None, 2));
        }
    }
}
