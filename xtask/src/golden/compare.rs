//! When two answers are the same. Each rule here is listed in `tests/golden/README.md`.

use serde_json::Value;

use super::answer::Answer;
use super::scenario::Step;

/// Differences reported for one exchange; more add nothing.
const DIFFERENCES_MAX: usize = 8;

/// What differs, a line each, with the path to it; empty when the two answers are the same.
pub(crate) fn differences(step: &Step, expected: &Answer, got: &Answer) -> Vec<String> {
    let mut found = Vec::new();
    if expected.status != got.status {
        found.push(format!("status: expected {:?}, got {:?}", expected.status, got.status));
    }
    if media_type(expected) != media_type(got) {
        found.push(format!("type: expected {:?}, got {:?}", expected.content_type, got.content_type));
    }
    match (&expected.json, &got.json) {
        (Some(expected), Some(got)) => {
            let (expected, got) = (prepared(step, expected), prepared(step, got));
            compare("", &expected, &got, step.shape, &mut found);
        }
        (None, None) if step.shape && lines_count(expected) == lines_count(got) => {}
        (None, None) if expected.text == got.text => {}
        _ => found.push(format!("body: expected {}, got {}", expected.body(), got.body())),
    }
    found.truncate(DIFFERENCES_MAX);
    found
}

fn lines_count(answer: &Answer) -> usize {
    answer.text.as_deref().unwrap_or_default().lines().count()
}

/// Content type without its parameters' spelling: `charset=UTF-8` and `charset=utf-8` are one.
fn media_type(answer: &Answer) -> Option<String> {
    answer.content_type.as_ref().map(|value| value.to_ascii_lowercase().replace(' ', ""))
}

/// The answer without its free parts, and sorted where its order is not defined.
fn prepared(step: &Step, answer: &Value) -> Value {
    let mut answer = answer.clone();
    for pointer in &step.free {
        let Some((parent, key)) = pointer.rsplit_once('/') else {
            continue;
        };
        if let Some(Value::Object(object)) = answer.pointer_mut(parent) {
            object.remove(key);
        }
    }
    sort_sets(&mut answer);
    if let Value::Array(series) = &mut answer
        && step.unordered
    {
        series.sort_by_key(series_name);
    }
    answer
}

/// Sorts the lists that are sets: OpenTSDB gives them in the order of a hash table.
fn sort_sets(value: &mut Value) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(sort_sets),
        Value::Object(object) => {
            for (key, value) in object.iter_mut() {
                match value {
                    Value::Array(items) if key == "aggregateTags" || key == "tsuids" => {
                        items.sort_by_key(Value::to_string);
                    }
                    value => sort_sets(value),
                }
            }
        }
        _ => {}
    }
}

/// What a series is sorted by; anything else is sorted by itself.
fn series_name(series: &Value) -> String {
    if !series.is_object() {
        return series.to_string();
    }
    let part = |key| series.get(key).map(Value::to_string).unwrap_or_default();
    format!("{} {} {}", part("metric"), part("tags"), part("aggregateTags"))
}

fn compare(path: &str, expected: &Value, got: &Value, shape: bool, found: &mut Vec<String>) {
    match (expected, got) {
        (Value::Object(left), Value::Object(right)) => {
            for (key, value) in left {
                match right.get(key) {
                    Some(other) => compare(&format!("{path}/{key}"), value, other, shape, found),
                    None => found.push(format!("{path}/{key}: expected {value}, got nothing")),
                }
            }
            for (key, value) in right.iter().filter(|(key, _)| !left.contains_key(*key)) {
                found.push(format!("{path}/{key}: expected nothing, got {value}"));
            }
        }
        (Value::Array(left), Value::Array(right)) if left.len() == right.len() => {
            for (index, (value, other)) in left.iter().zip(right).enumerate() {
                compare(&format!("{path}/{index}"), value, other, shape, found);
            }
        }
        (Value::Number(left), Value::Number(right)) if shape || same_number(left, right) => {}
        (Value::String(_), Value::String(_)) if shape => {}
        (left, right) if left == right => {}
        (left, right) => found.push(format!("{path}: expected {left}, got {right}")),
    }
}

/// By value: 300 is 300.0, and 0.5 is 5.0E-1. Integers beyond 2^53 are compared as integers.
fn same_number(left: &serde_json::Number, right: &serde_json::Number) -> bool {
    let whole =
        |number: &serde_json::Number| number.as_i64().map(i128::from).or_else(|| number.as_u64().map(i128::from));
    match (whole(left), whole(right)) {
        (Some(left), Some(right)) => left == right,
        _ => left.as_f64() == right.as_f64(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(body: &str) -> Answer {
        let text = format!(r#"{{"request": "", "status": 200, "type": "application/json", "json": {body}}}"#);
        serde_json::from_str(&text).unwrap()
    }

    #[track_caller]
    fn check(step: &Step, expected: &str, got: &str, same: bool) {
        let found = differences(step, &answer(expected), &answer(got));
        assert_eq!(found.is_empty(), same, "{found:?}");
    }

    #[test]
    fn numbers_are_compared_by_value() {
        let step = Step::default();
        check(&step, "[300]", "[300.0]", true);
        check(&step, "[300.0]", "[3.0E2]", true);
        check(&step, "[300]", "[301]", false);
        check(&step, "[0.1]", "[0.10000000000000002]", false);
        check(&step, "[9223372036854775807]", "[9223372036854775806]", false);
        check(&step, "[\"NaN\"]", "[null]", false);
        check(&step, "[1]", "[\"1\"]", false);
    }

    #[test]
    fn keys_have_no_order_and_none_may_be_missing_or_extra() {
        let step = Step::default();
        check(&step, r#"{"a": 1, "b": 2}"#, r#"{"b": 2, "a": 1}"#, true);
        check(&step, r#"{"a": 1, "b": 2}"#, r#"{"a": 1}"#, false);
        check(&step, r#"{"a": 1}"#, r#"{"a": 1, "b": 2}"#, false);
    }

    #[test]
    fn series_keep_their_order_unless_told() {
        let left =
            r#"[{"metric": "m", "tags": {"h": "a"}, "dps": {}}, {"metric": "m", "tags": {"h": "b"}, "dps": {}}]"#;
        let right =
            r#"[{"metric": "m", "tags": {"h": "b"}, "dps": {}}, {"metric": "m", "tags": {"h": "a"}, "dps": {}}]"#;
        check(&Step::default(), left, right, false);
        check(&Step { unordered: true, ..Step::default() }, left, right, true);
    }

    #[test]
    fn sets_free_parts_and_shapes() {
        let step = Step::default();
        check(&step, r#"[{"aggregateTags": ["a", "b"]}]"#, r#"[{"aggregateTags": ["b", "a"]}]"#, true);
        check(&step, r#"[{"aggregateTags": ["a", "b"]}]"#, r#"[{"aggregateTags": ["a"]}]"#, false);
        let free = Step { free: vec!["/error/details".to_owned()], ..Step::default() };
        check(&free, r#"{"error": {"code": 400, "details": "x"}}"#, r#"{"error": {"code": 400}}"#, true);
        check(&free, r#"{"error": {"code": 400, "details": "x"}}"#, r#"{"error": {"code": 500}}"#, false);
        let shape = Step { shape: true, ..Step::default() };
        check(&shape, r#"{"version": "2"}"#, r#"{"version": "3"}"#, true);
        check(&shape, r#"{"version": "2"}"#, r#"{"version": 3}"#, false);
    }
}
