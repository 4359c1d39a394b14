//! Put and import lines: any bytes are a point or refused with words.

#![no_main]

use basalt_ingest::{decode_text, parse_import_line, parse_put_line};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|line: &[u8]| {
    let text = decode_text(line);
    for read in [parse_put_line(&text), parse_import_line(&text)] {
        match read {
            Ok(point) => {
                assert!(point.timestamp > 0);
                assert!(point.metric.is_some_and(|metric| !metric.is_empty()));
                assert!(point.value.is_some_and(|value| !value.is_empty()));
                assert!(point.tags.decode().iter().all(|(key, value)| !key.is_empty() && value.is_some()));
            }
            Err(problem) => {
                assert!(problem.telnet_text("put").starts_with("put: "));
                assert!(!problem.http_text().is_empty());
            }
        }
    }
});
