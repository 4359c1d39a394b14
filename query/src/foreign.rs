//! What every reader of a client's text keeps to, whatever the text: the laws that fuzzing and property tests share.
//!
//! Each law takes any bytes and panics where the reader breaks its word. It is compiled for tests and for
//! `--cfg fuzzing` alone.

use std::borrow::Cow;

use crate::{
    ExpressionRequest, GetParameters, LastRequest, Options, QueryRequest, SubQuery, TimeContext, parse_duration,
    parse_time, parse_zone,
};

/// A law: any bytes are read or refused.
pub type Law = fn(&[u8]);

/// All laws of this crate by the names of their fuzz targets.
pub const LAWS: [(&str, Law); 6] = [
    ("query_text", query_text),
    ("query_body", query_body),
    ("query_last", query_last),
    ("expression", expression),
    ("formula", formula),
    ("date", date),
];

const NOW_MS: i64 = 1_700_000_000_000;

fn text(bytes: &[u8]) -> Cow<'_, str> {
    String::from_utf8_lossy(bytes)
}

fn modes() -> [Options; 2] {
    let mut strict = Options::default();
    strict.compat.strict = true;
    [Options::default(), strict]
}

/// Checks a request in both modes.
fn check(request: &QueryRequest) {
    for options in modes() {
        match request.check(NOW_MS, options) {
            Ok(query) => assert!(query.end_ms > query.start_ms, "BUG: an end before its start"),
            Err(error) => assert!(!error.to_string().is_empty(), "BUG: a refusal without words"),
        }
    }
}

/// `m=` and `tsuid=`.
fn query_text(bytes: &[u8]) {
    let text = text(bytes);
    for sub in [SubQuery::from_metric_text(&text), SubQuery::from_tsuid_text(&text)].into_iter().flatten() {
        assert!(sub.metric.is_some() || !sub.tsuids.is_empty(), "BUG: a query of nothing");
        check(&QueryRequest { start: Some("1".into()), queries: vec![sub], ..QueryRequest::default() });
    }
}

/// The body of `/api/query`.
fn query_body(bytes: &[u8]) {
    if let Ok(request) = QueryRequest::from_json(bytes) {
        assert!(request.queries.len() <= crate::SUB_QUERIES_MAX, "BUG: more sub queries than allowed");
        check(&request);
    }
}

/// The body and the texts of `/api/query/last`.
fn query_last(bytes: &[u8]) {
    drop(LastRequest::from_json(bytes));
    let text = text(bytes);
    drop(LastRequest::from_get(&[&text], &[], true, None));
    drop(LastRequest::from_get(&[], &[&text], true, Some(&text)));
}

/// The body of `/api/query/exp`, and an expression in one that is right.
fn expression(bytes: &[u8]) {
    let body = serde_json::json!({
        "time": { "start": "1", "aggregator": "sum" },
        "metrics": [{ "id": "a", "metric": "m" }, { "id": "b", "metric": "n" }],
        "expressions": [{ "id": "e", "expr": text(bytes) }],
    });
    for body in [bytes, body.to_string().as_bytes()] {
        let Ok(request) = ExpressionRequest::from_json(body) else { continue };
        for options in modes() {
            if let Err(error) = request.check(NOW_MS, options) {
                assert!(!error.to_string().is_empty(), "BUG: a refusal without words");
            }
        }
        assert!(serde_json::to_string(&request).is_ok(), "BUG: a request that cannot be echoed");
    }
}

/// A formula of `/api/query/gexp`.
fn formula(bytes: &[u8]) {
    let parameters = GetParameters { start: Some("1"), ..GetParameters::default() };
    for options in modes() {
        if let Ok((request, _)) = QueryRequest::from_formulas(&parameters, &[&text(bytes)], options) {
            check(&request);
        }
    }
}

/// Times, durations and zones.
fn date(bytes: &[u8]) {
    let text = text(bytes);
    if let Ok(duration) = parse_duration(&text) {
        assert!(duration.count > 0 && duration.millis > 0, "BUG: a duration of nothing");
    }
    drop(parse_zone(&text));
    for options in modes() {
        for zone in ["UTC", "Pacific/Apia", "America/New_York"] {
            let Ok(zone) = parse_zone(zone) else { continue };
            drop(parse_time(&text, &TimeContext { now_ms: NOW_MS, zone, compat: options.compat }));
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Words and signs of all grammars.
    const WORDS: &str = r#"sum|avg|m|rate|\{|\}|\(|\)|:|,|=|\*|\||1m-avg|1h|zero|"start"|"queries"|"metric"|"tags"|\[|\]|null|[0-9]{1,20}|-ago|/|-|\.|regexp|scale|a|b|\+|\?|&&|é"#;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(1_000))]

        #[test]
        fn any_text_of_a_client_is_read_or_refused(
            words in proptest::collection::vec(WORDS, 0..24),
            bytes in proptest::collection::vec(any::<u8>(), 0..80),
        ) {
            for (_, law) in LAWS {
                law(words.concat().as_bytes());
                law(&bytes);
            }
        }
    }
}
