//! Put bodies that a real OpenTSDB 2.4.1 answered with details, answered the same.

use std::sync::Arc;

use basalt_schema::{Schema, SchemaConfig};
use basalt_store::{ManualClock, MemoryStore, Store};
use serde_json::{Value, json};

use crate::{DatapointEcho, Door, Ingest, IngestLimits, parse_put};

fn answer(ingest: &Ingest, body: &str) -> Value {
    let points = match parse_put(body, ingest.limits()) {
        Ok(points) => points,
        Err(error) => return json!({"message": error.message_and_details().0}),
    };
    let report = ingest.submit(&points, Door::Http).unwrap().wait();
    let echo = |index: usize| serde_json::to_value(DatapointEcho(&points[index])).unwrap();
    let errors = report.errors.iter().map(|e| json!({"datapoint": echo(e.index), "error": e.problem.http_text()}));
    json!({"success": report.stored, "failed": report.rejected + report.failed, "errors": errors.collect::<Vec<_>>()})
}

/// The body without what the recorder notes of the request before it: `[gzip]`, `[Header: value]`.
fn without_notes(mut body: &str) -> &str {
    while let Some((note, rest)) = body.strip_prefix('[').and_then(|rest| rest.split_once("] ")) {
        if note.contains(['{', '[']) {
            break;
        }
        body = rest;
    }
    body
}

#[test]
fn w_put_details_are_those_that_were_recorded() {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new(Arc::new(ManualClock::default())));
    let schema = Arc::new(Schema::open(Arc::clone(&store), SchemaConfig::default()).unwrap());
    let ingest = Ingest::new(schema, store, IngestLimits::default());
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/golden/answers");
    let (mut compared, mut differing) = (0, Vec::new());
    for name in ["put-single", "put-batch", "put-errors", "put-encodings", "put-values"] {
        let recorded = std::fs::read(format!("{folder}/{name}.json")).unwrap();
        let recorded: Value = serde_json::from_slice(&recorded).unwrap();
        for exchange in recorded["exchanges"].as_array().unwrap() {
            let request = exchange["request"].as_str().unwrap();
            let mut words = request.splitn(3, ' ');
            let (Some("POST"), Some(path), Some(body)) = (words.next(), words.next(), words.next()) else { continue };
            if !path.starts_with("/api/put?details") {
                continue;
            }
            let body = without_notes(body);
            let mut expected = match &exchange["json"] {
                answer if answer["error"].is_object() => json!({"message": answer["error"]["message"]}),
                answer => answer.clone(),
            };
            // With `sync_timeout`; the daemon's to tell.
            expected.as_object_mut().unwrap().remove("timeouts");
            compared += 1;
            let told = answer(&ingest, body);
            if told != expected {
                differing.push(format!("{name}: {body}\n  told     {told}\n  recorded {expected}"));
            }
        }
    }
    assert!(differing.is_empty(), "{}", differing.join("\n"));
    assert!(compared > 50, "{compared} exchanges");
}
