//! What is read by its layout beside what is read field by field.

use proptest::prelude::*;

use super::*;
use crate::IngestLimits;
use crate::decode_text;
use crate::foreign::{LAWS, cache, told};
use crate::put_body::{parse_known, parse_put};
use crate::series_cache::SeriesCache;

const POINT: &str = r#"{"metric":"sys.cpu","timestamp":1700000000,"value":42,"tags":{"host":"a"}}"#;

/// Whether `next` is read by the layout of `first`.
fn is_alike(first: &str, next: &str) -> bool {
    let text = format!("{next}, and more that ends it");
    let Some(layout) = Layout::of(first) else { return false };
    let mut point = RawPoint::NULL;
    let read = layout.read(&text, (&SeriesCache::new(1).read(1), &mut Before::default()), &mut point);
    read.is_some_and(|read| {
        let expected = parse_put(next, &IngestLimits::default()).unwrap()[0];
        assert_eq!((RawPoint { spelled: None, ..point }, read.bytes), (expected, next.len()));
        let at = |range: Range<usize>| next.get(range).unwrap();
        assert_eq!((at(read.metric), at(read.value)), (expected.metric.unwrap().raw(), expected.value.unwrap().raw()));
        true
    })
}

/// Whether `next` is read as one that differs from `first` in metric and value alone.
fn repeats(first: &str, next: &str) -> bool {
    let (longer, next) = (format!("{first}, and more"), format!("{next}, and more"));
    let (cache, mut layouts, mut point) = (SeriesCache::new(1), Layouts::new(), RawPoint::NULL);
    layouts.learn(first);
    assert!(layouts.read(&longer, &cache.read(1), &mut point).is_some());
    layouts.repeated.is_some_and(|repeated| repeated.read(&next, &cache.read(1), &mut point).is_some())
}

#[test]
fn a_point_repeats_the_one_before_but_for_metric_and_value() {
    assert!(repeats(POINT, &POINT.replace("sys.cpu", "é").replace("42", "-0.5")));
    let quoted = POINT.replace("42", "\"42\"");
    assert!(repeats(&quoted, &quoted.replace("42", "no number")));
    for next in [
        POINT.replace("1700000000", "1700000001"),
        POINT.replace("1700000000", "17000000000"),
        POINT.replace("\"a\"", "\"b\""),
        POINT.replace("}}", ",\"b\":\"c\"}}"),
        POINT.replace("42", "042"),
        POINT.replace("42", "42 "),
        POINT.replace("42", "\"42\""),
        POINT.replace("sys", "\\u0073ys"),
    ] {
        assert!(!repeats(POINT, &next), "{next}");
    }
    // The value first: each is read by its layout.
    let behind = r#"{"value":42,"metric":"sys.cpu","timestamp":1700000000,"tags":{"host":"a"}}"#;
    assert!(!repeats(behind, behind));
}

#[test]
fn points_that_are_written_alike_are_read_by_their_layout() {
    for (first, next) in [
        (POINT, POINT),
        (POINT, r#"{"metric":"é.cpu.user.x","timestamp":7,"value":-0.25,"tags":{}}"#),
        (
            "{ \"metric\": \"a\",\n \"value\" : \"1\", \"tags\" : {\"a\":\"b\"} , \"timestamp\": 1 }",
            "{ \"metric\": \"\",\n \"value\" : \"no number\", \"tags\" : { } , \"timestamp\": 1234567890123 }",
        ),
    ] {
        assert!(is_alike(first, next), "{next}");
    }
}

#[test]
fn the_first_point_is_read_by_its_layout_where_it_is_the_usual_one() {
    let (cache, mut point) = (SeriesCache::new(1), RawPoint::NULL);
    let text = format!("{POINT}, and more that ends it");
    assert_eq!(Layouts::new().read(&text, &cache.read(1), &mut point), Some(POINT.len()));
    let blank = text.replace(':', ": ");
    assert_eq!(Layouts::new().read(&blank, &cache.read(1), &mut point), None);
}

#[test]
fn what_is_written_otherwise_is_not() {
    for next in [
        POINT.replace("sys", "\\u0073ys"),
        POINT.replace("1700000000", "\"1700000000\""),
        POINT.replace("1700000000", "1700000000.5"),
        POINT.replace("1700000000", "-5"),
        POINT.replace("42", "\"42\""),
        POINT.replace("42", "4e2"),
        POINT.replace("42", "NaN"),
        POINT.replace("\"timestamp\":", "\"timestamp\": "),
        POINT.replace("\"value\"", "\"Value\""),
        POINT.replace("}}", "},\"more\":1}"),
        POINT.replace("{\"host\":\"a\"}", "null"),
    ] {
        assert!(!is_alike(POINT, &next), "{next}");
    }
    let limits = IngestLimits::default();
    let wrong_times = ["01700000000", "", "17000000000000000000"].map(|wrong| POINT.replace("1700000000", wrong));
    let wrong_values = ["042", "-", "4.", ".5", "4.e"].map(|wrong| POINT.replace("42", wrong));
    for next in wrong_times.into_iter().chain(wrong_values) {
        let (known, text) = (cache(&parse_put(POINT, &limits).unwrap()), format!("[{POINT},{next}]"));
        assert_eq!(told(parse_known(&text, &limits, &known.read(1))), told(parse_put(&text, &limits)), "{next}");
    }
}

#[test]
fn only_points_of_four_fields_with_the_metric_first_have_a_layout() {
    for text in [
        "null",
        "{}",
        r#"{"metric":"a","timestamp":1,"value":1,"value":{}}"#,
        r#"{"tags":{"host":"a"},"metric":"a","timestamp":1,"value":1}"#,
        r#"{"metric":"a","metric":"a","timestamp":1,"tags":{}}"#,
        r#"{"metr\u0069c":"a","timestamp":1,"value":1,"tags":{}}"#,
        r#"{"metric":"a","timestamp":1,"value":1,"tags":{}} "#,
        r#"{"metric":"a","timestamp":1,"value":1,"tags":{}"#,
    ] {
        assert!(Layout::of(text).is_none(), "{text}");
    }
}

/// A body as some collector writes it.
fn body() -> impl Strategy<Value = String> {
    // Mostly plain, or hardly two points would be alike.
    let value = prop_oneof![8 => "-?[1-9][0-9]{0,2}", 1 => "[0-9]\\.[0-9]{0,2}", 1 => "\"[0-9.]{0,3}\"", 1 => "1e2"];
    let tags = ["{\"host\":\"a\"}", "{\"b}\":\"}\"}", "{}", "null", "{ }"].map(Just);
    let [host, brace, none, null, blank] = tags;
    let tags = prop_oneof![8 => host, 1 => brace, 1 => none, 1 => null, 1 => blank];
    let metric = prop_oneof![8 => "\"[a-cé]{0,9}\"", 1 => Just("\"\\u0041\"".to_owned()), 1 => "7"];
    // Often that of the point before, or with a digit more.
    let time = prop_oneof![8 => "17", 4 => "170?0?", 4 => "[1-9][0-9]{0,17}", 1 => "\"[0-9]{1,3}\""];
    let point = (metric, time, value, tags);
    let order = Just(["metric", "timestamp", "value", "tags"]).prop_shuffle();
    let blank = prop_oneof![Just(""), Just(" "), Just("\n  ")];
    (proptest::collection::vec(point, 1..9), order, blank).prop_map(|(points, order, blank)| {
        let objects = points.iter().map(|(metric, time, value, tags)| {
            let fields = order.iter().map(|name| {
                let text = match *name {
                    "metric" => metric,
                    "timestamp" => time,
                    "value" => value,
                    _ => *tags,
                };
                format!("{blank}\"{name}\":{blank}{text}")
            });
            format!("{{{}{blank}}}", fields.collect::<Vec<_>>().join(","))
        });
        format!("[{}{blank}]", objects.collect::<Vec<_>>().join(",\n"))
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn bodies_say_the_same_with_and_without_their_layout(
        text in body(), cut in any::<proptest::sample::Index>(), byte in "[\"{}:,\\\\0-9. e]",
    ) {
        let law = LAWS.iter().find(|(name, _)| *name == "put_known").unwrap().1;
        law(text.as_bytes());
        let limits = IngestLimits::default();
        let known = cache(&parse_put(&text, &limits).unwrap_or_default());
        // A byte is changed, and the series stay known.
        let mut bytes = text.into_bytes();
        let at = cut.index(bytes.len());
        bytes[at] = byte.as_bytes()[0];
        let changed = decode_text(&bytes);
        prop_assert_eq!(
            told(parse_known(&changed, &limits, &known.read(1))), told(parse_put(&changed, &limits)), "{}", changed
        );
    }
}
