//! The put body against the answers of a running OpenTSDB 2.4.1, and against `serde_json` as a model.

use std::borrow::Cow;

use proptest::prelude::*;

use super::*;
use crate::decode_text;

/// What a point says, owned.
#[derive(Debug, PartialEq)]
struct Told {
    metric: Option<String>,
    timestamp: i64,
    value: Option<String>,
    tags: Option<Vec<(String, Option<String>)>>,
}

fn told(point: &RawPoint<'_>) -> Told {
    let text = |text: Option<RawText<'_>>| text.map(|text| text.decode().into_owned());
    let tags = point.tags.decode().into_iter().map(|(key, value)| (key.into_owned(), value.map(Cow::into_owned)));
    Told {
        metric: text(point.metric),
        timestamp: point.timestamp,
        value: text(point.value),
        tags: (point.tags != RawTags::Absent).then(|| tags.collect()),
    }
}

fn parse(body: &str) -> Result<Vec<Told>> {
    Ok(parse_put(body, &IngestLimits::default())?.iter().map(told).collect())
}

fn one(body: &str) -> Told {
    let mut points = parse(body).unwrap_or_else(|error| panic!("{body}: {error}"));
    assert_eq!(points.len(), 1, "{body}");
    points.remove(0)
}

fn check_refused(body: &str, message: &str) {
    let error = parse(body).expect_err(body);
    assert_eq!(error.message_and_details().0, message, "{body}");
    assert_eq!(error.kind(), basalt_store::ErrorKind::Invalid);
}

const UNPARSABLE: &str = "Unable to parse the given JSON";

#[test]
fn w_put_single_an_object_is_a_point() {
    let point =
        one(r#" {"metric":"sys.cpu.nice","timestamp":1346846400,"value":18,"tags":{"host":"web01","dc":"lga"}}"#);
    assert_eq!(point.metric.as_deref(), Some("sys.cpu.nice"));
    assert_eq!((point.timestamp, point.value.as_deref()), (1_346_846_400, Some("18")));
    assert_eq!(point.tags.unwrap(), [("host".into(), Some("web01".into())), ("dc".into(), Some("lga".into()))]);
}

#[test]
fn w_put_batch_an_array_is_many() {
    let points = parse("\r\n[ {} ,null,{\"metric\":\"m\"}\t] \0").unwrap();
    assert_eq!(points.len(), 3);
    assert_eq!(points[2].metric.as_deref(), Some("m"));
    let raw = parse_put("[null,{}]", &IngestLimits::default()).unwrap();
    assert_eq!((raw[0].form, raw[1].form), (Form::Null, Form::Object));
}

#[test]
fn w_put_errors_whole_bodies() {
    check_refused("", "Missing request content");
    check_refused(" \n", "Missing request content");
    check_refused("[]", "No datapoints found in content");
    for body in ["null", "\"x\"", "1", "\u{feff}{}", "/* c */{}"] {
        check_refused(body, "The JSON must start as an object or an array");
    }
    for body in [
        "[1]",
        "[\"a\"]",
        "[[]]",
        "[\"\"]",
        "[true]",
        "[{},]",
        "[{},,{}]",
        "[{}",
        "{\"metric\":\"a\",}",
        "{\"metric\":\"a\"",
        "{'metric':'a'}",
        "{metric:\"a\"}",
        "{\"metric\":\"a\nb\"}",
        "{\"metric\":\"a\\qb\"}",
    ] {
        check_refused(body, UNPARSABLE);
    }
}

#[test]
fn w_put_errors_text_after_the_points_is_refused_rather_than_lost() {
    for body in ["{} garbage", "{}{}", "{}\n{}", "[{}] x", "[{}]]"] {
        check_refused(body, UNPARSABLE);
    }
}

#[test]
fn w_put_strings_fields_take_what_jackson_takes() {
    let value = |text: &str| one(&format!("{{\"value\":{text}}}")).value;
    for (sent, read) in [
        ("1.50", "1.50"),
        ("\"1.50\"", "1.50"),
        ("true", "true"),
        ("\"null\"", "null"),
        ("NaN", "NaN"),
        ("Infinity", "Infinity"),
        ("+INF", "+INF"),
        ("-INF", "-INF"),
        ("-Infinity", "-Infinity"),
        ("1e999", "1e999"),
        ("\"\"", ""),
        ("\" 42\"", " 42"),
        ("-0", "-0"),
        ("\"\\u0034\"", "4"),
        ("123456789012345678901234567890", "123456789012345678901234567890"),
    ] {
        assert_eq!(value(sent).as_deref(), Some(read));
    }
    assert_eq!(value("null"), None);
    for sent in ["INF", "Nan", "+1", "01", ".5", "1.", "1e", "-", "{}", "[1]"] {
        check_refused(&format!("{{\"value\":{sent}}}"), UNPARSABLE);
    }
    assert_eq!(one(r#"{"metric":12}"#).metric.as_deref(), Some("12"));
    assert_eq!(one(r#"{"metric":NaN}"#).metric.as_deref(), Some("NaN"));
    check_refused(r#"{"metric":[]}"#, UNPARSABLE);
}

#[test]
fn w_put_strings_times_take_what_jackson_takes() {
    for (sent, read) in [
        ("1700000000", 1_700_000_000),
        ("\"1700000000\"", 1_700_000_000),
        ("\" +1700000000 \"", 1_700_000_000),
        ("1.7e9", 1_700_000_000),
        ("1700000000.9", 1_700_000_000),
        ("-1.5", -1),
        ("-5", -5),
        ("\"-5\"", -5),
        ("null", 0),
        ("\"\"", 0),
        ("\"null\"", 0),
        ("NaN", 0),
        ("9223372036854775807", i64::MAX),
    ] {
        assert_eq!(one(&format!("{{\"timestamp\":{sent}}}")).timestamp, read, "{sent}");
    }
    for sent in [
        "\"abc\"",
        "\"1700000000.9\"",
        "true",
        "{}",
        "[]",
        "99999999999999999999",
        "\"99999999999999999999\"",
        "1e30",
        "Infinity",
        "-INF",
        "\"NaN\"",
    ] {
        check_refused(&format!("{{\"timestamp\":{sent}}}"), UNPARSABLE);
    }
}

#[test]
fn w_put_strings_tags_take_what_jackson_takes() {
    let tags = |text: &str| one(&format!("{{\"tags\":{text}}}")).tags;
    assert_eq!(tags("null"), None);
    assert_eq!(tags("{}"), Some(vec![]));
    assert_eq!(tags(r#"{"a":1.50,"b":true,"c":null}"#).unwrap().len(), 3);
    for sent in ["\"\"", "[]", "1", r#"{"a":{}}"#, r#"{"a":[]}"#, r#"{"a":1"#, "{"] {
        check_refused(&format!("{{\"tags\":{sent}}}"), UNPARSABLE);
    }
}

#[test]
fn unknown_fields_are_skipped_and_the_last_of_a_field_wins() {
    let point = one(concat!(
        r#"{"Metric":"u","nest":{"a":[1,{"b":null}],"c":"\u0041"},"metric":"x","metr\u0069c":"m","value":1,"#,
        r#""value":"y","tags":{"host":"a","host":"b"},"tags":{"b":"c"},"timestamp":1,"timestamp":2}"#
    ));
    assert_eq!(point.metric.as_deref(), Some("m"));
    assert_eq!((point.value.as_deref(), point.timestamp), (Some("y"), 2));
    assert_eq!(point.tags.unwrap(), [("b".into(), Some("c".into()))]);
    assert_eq!(one(r#"{"metric":"m","metric":null}"#).metric, None);
}

#[test]
fn a_body_is_bounded_in_points() {
    let limits = IngestLimits { body_points_max: 2, ..IngestLimits::default() };
    assert!(parse_put("[{},{}]", &limits).is_ok());
    assert!(matches!(parse_put("[{},{},{}]", &limits), Err(Error::TooManyPoints { max: 2 })));
}

#[test]
fn what_is_no_utf_8_is_a_character_no_name_may_hold() {
    let text = decode_text(b"{\"metric\":\"a\xffb\"}");
    assert_eq!(one(&text).metric.as_deref(), Some("a\u{fffd}b"));
}

/// A valid document, with points in it more often than not.
fn document() -> impl Strategy<Value = serde_json::Value> {
    use serde_json::{Value, json};
    let scalar = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_filter("finite", |f| f.is_finite()).prop_map(Value::from),
        "[ -~é😀\"\\\\\n]{0,6}".prop_map(Value::from),
    ];
    let any_value = scalar.clone().prop_recursive(4, 24, 4, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            proptest::collection::btree_map("[a-c\"]{0,2}", inner, 0..4)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    });
    let tags = proptest::collection::btree_map("[a-c\"é]{0,2}", scalar.clone(), 0..4);
    let point = (scalar.clone(), any::<i64>(), scalar, tags, any_value).prop_map(|(metric, time, value, tags, other)| {
        json!({"metric": metric, "timestamp": time, "value": value, "tags": tags, "other": other})
    });
    proptest::collection::vec(point, 1..4).prop_map(Value::from)
}

/// A scalar as text, as the parser must tell it.
fn scalar_text(value: &serde_json::Value) -> Option<String> {
    match value {
        serde_json::Value::Null => None,
        serde_json::Value::String(text) => Some(text.clone()),
        other => Some(other.to_string()),
    }
}

fn check_against_model(document: &serde_json::Value, text: &str) {
    let points = parse(text).unwrap_or_else(|error| panic!("{text}: {error}"));
    let model = document.as_array().unwrap();
    assert_eq!(points.len(), model.len());
    for (point, model) in points.iter().zip(model) {
        assert_eq!(point.metric, scalar_text(&model["metric"]));
        assert_eq!(point.timestamp, model["timestamp"].as_i64().unwrap());
        assert_eq!(point.value, scalar_text(&model["value"]));
        let tags = model["tags"].as_object().unwrap().iter();
        let tags: Vec<_> = tags.map(|(key, value)| (key.clone(), scalar_text(value))).collect();
        assert_eq!(point.tags.as_ref().unwrap(), &tags);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn valid_documents_say_what_serde_json_says(document in document()) {
        check_against_model(&document, &document.to_string());
        check_against_model(&document, &serde_json::to_string_pretty(&document).unwrap());
    }

    #[test]
    fn what_serde_json_refuses_is_refused(document in document(), cut in any::<proptest::sample::Index>(), byte: u8) {
        let mut text = document.to_string().into_bytes();
        let at = cut.index(text.len());
        text[at] = byte;
        let text = decode_text(&text).into_owned();
        let model = serde_json::from_str::<serde_json::Value>(&text);
        // Only numbers that are not finite, and those beyond a double, are more here than in JSON.
        if model.is_err() && !text.contains("NaN") && !text.contains("INF") && !text.contains("Inf") && !text.contains('e')
            && text.trim_matches(|c: char| c <= ' ') == text {
            prop_assert!(parse(&text).is_err(), "{}", text);
        }
    }

    #[test]
    fn any_bytes_are_parsed_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..64)) {
        let _parsed = parse(&decode_text(&bytes));
    }

    #[test]
    fn any_brackets_are_parsed_or_refused(text in "[\\[{\"\\\\:,}\\]0-9a-fnut.e+ -]{0,48}") {
        let _parsed = parse(&format!("[{{\"metric\":{text}"));
        let _parsed = parse(&format!("{{\"tags\":{{{text}"));
    }
}
