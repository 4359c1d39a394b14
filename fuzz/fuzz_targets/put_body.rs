//! The body of `POST /api/put`: any bytes are points or refused.

#![no_main]

use basalt_ingest::{DatapointEcho, Form, IngestLimits, decode_text, parse_put};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|body: &[u8]| {
    let text = decode_text(body);
    let limits = IngestLimits { body_points_max: 1000, ..IngestLimits::default() };
    match parse_put(&text, &limits) {
        Ok(points) => {
            assert!(!points.is_empty() && points.len() <= limits.body_points_max);
            for point in &points {
                let echo = serde_json::to_value(DatapointEcho(point)).expect("what was taken is JSON");
                assert_eq!(echo.is_null(), point.form == Form::Null);
            }
        }
        Err(error) => {
            assert!(!error.message_and_details().0.is_empty());
            // An array of empty objects and nulls is a put whatever else may be wrong.
            if let Ok(serde_json::Value::Array(elements)) = serde_json::from_str(&text) {
                let plain = |e: &serde_json::Value| e.is_null() || e.as_object().is_some_and(serde_json::Map::is_empty);
                assert!(elements.is_empty() || elements.len() > limits.body_points_max || !elements.iter().all(plain));
            }
        }
    }
});
