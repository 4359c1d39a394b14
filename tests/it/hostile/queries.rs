//! Queries made to hurt: absurd times and intervals, and far too many of everything.

use serde_json::{Value, json};

use super::attack::{Attack, each};

/// An answer, or a refusal, by what is not there yet too.
const EITHER: &[u16] = &[200, 400, 404, 413, 501];

pub(super) fn all() -> impl Iterator<Item = Attack> {
    intervals().chain(times()).chain(numbers()).chain(many()).chain(deep())
}

fn query(name: &str, text: &str) -> Attack {
    let attack = Attack::get(&format!("{name}: {text}"), &format!("/api/query?{text}"));
    attack.answered_by(EITHER)
}

fn intervals() -> impl Iterator<Item = Attack> {
    let downsamples = [
        "1ms-avg-zero",
        "1ms-avg-nan",
        "1ms-sum-null",
        "1s-avg-zero",
        "1ms-count",
        "2ms-p99-zero",
        "0ms-avg",
        "0all-avg",
        "9223372036854775807ms-avg",
        "9223372036854775807y-avg",
        "99999999999999999999999999s-avg",
        "-1s-avg",
        "9999999999y-avg",
        "1msc-avg",
        "1sc-avg-zero",
        "100000dc-avg-zero",
        "1yc-avg-zero",
        "999999999nc-avg",
        "1000000000000000mc-avg",
        "1m-avg-avg-avg-avg",
        "1-avg",
        "ms-avg",
        "1x-avg",
        "1m-",
        "1m",
        "0.0000001s-avg",
    ];
    let ranges = [
        "start=0&end=9999999999999",
        "start=1&end=4294967295",
        "start=1699999000&end=1700001000",
        "start=2000y-ago&end=1ms-ago",
        "start=1700000000&end=9999999999999",
    ];
    ranges.into_iter().flat_map(move |range| {
        let query = move |text: &str| query("interval", &format!("{range}&m=sum:{text}:m"));
        downsamples.into_iter().map(query)
    })
}

fn times() -> impl Iterator<Item = Attack> {
    let times = [
        "0",
        "-1",
        "9223372036854775807",
        "9223372036854775808",
        "99999999999999999999999",
        "1e400",
        "1.7976931348623157e308",
        "2970/13/32",
        "0000/00/00-00:00:00",
        "999999999/01/01",
        "1970/01/01-99:99:99",
        "9223372036854775807y-ago",
        "9999999999999999999999y-ago",
        "0s-ago",
        "-5s-ago",
        "1ms-ago",
        "now",
        "1700000000.9999999999999999999",
        "1/1/1",
        "9999999999999.999",
        "%00",
        "%F0%9F%92%A9",
        "1700000000%0a",
        "292278994/08/17-07:12:55",
    ];
    times.into_iter().flat_map(|time| {
        ["", "&timezone=Pacific/Apia", "&timezone=America/New_York"].into_iter().flat_map(move |zone| {
            [
                query("start", &format!("start={time}&m=sum:1h-avg-zero:m{zone}")),
                query("end", &format!("start=1&end={time}&m=sum:1nc-avg:m{zone}&use_calendar")),
            ]
        })
    })
}

fn numbers() -> impl Iterator<Item = Attack> {
    let large =
        ["9223372036854775807", "2147483647", "9223372036854775808", "-1", "99999999999999999999999999", "1e9", "NaN"];
    large.into_iter().flat_map(|number| {
        [
            format!("/api/suggest?type=tagv&max={number}"),
            format!("/api/search/lookup?m=m&limit={number}"),
            format!("/api/search/tsmeta?query=*&limit={number}&start_index={number}"),
            format!("/api/query/last?timeseries=m&back_scan={number}&resolve"),
            format!("/api/put?sync&sync_timeout={number}"),
            format!("/api/query?start=1&m=sum:rate%7Bcounter,{number},{number}%7D:m"),
            format!("/api/query?start=1&m=sum:percentiles%5B{number}%5D:m"),
            format!("/api/query/gexp?start=1&exp=highestMax(sum:m,{number})"),
            format!("/api/query/gexp?start=1&exp=movingAverage(sum:m,{number})"),
            format!("/api/query/gexp?start=1&exp=timeShift(sum:m,'{number}s')"),
            format!("/q?start=1&m=sum:m&ascii&wxh={number}x{number}"),
            format!("/q?start=1&m=sum:m&png&wxh={number}x{number}"),
            format!("/api/annotation?start_time={number}"),
            format!("/api/annotation/bulk?start_time=1&end_time={number}&global&method_override=delete"),
            format!("/api/uid/uidmeta?type=metric&uid={number}"),
            format!("/api/tree?treeid={number}"),
        ]
        .map(|target| Attack::get(&target, &target).answered_by(&[200, 400, 404, 405, 413, 501]))
    })
}

/// More of something than the bound on values lets pass, and as many as it does.
const COUNTS: [usize; 2] = [10_000, 100_000];

fn list(count: usize, one: impl Fn(usize) -> Value) -> Value {
    Value::Array((0..count).map(one).collect())
}

fn members(count: usize, value: &Value) -> Value {
    Value::Object((0..count).map(|n| (format!("k{n}"), value.clone())).collect())
}

fn filter(n: usize) -> Value {
    json!({ "type": "wildcard", "tagk": format!("k{n}"), "filter": "*", "groupBy": true })
}

fn tsuid(n: usize) -> Value {
    json!(format!("000001000001{n:06X}"))
}

/// Far too many of what a request may repeat.
fn many() -> impl Iterator<Item = Attack> {
    let bodies = COUNTS.into_iter().flat_map(|count| {
        let each = [many_in_a_query(count), many_in_expressions(count), many_in_other_bodies(count)];
        each.into_iter().flatten().map(move |(name, path, body)| {
            Attack::post(&format!("{count} {name}"), path, "", body.to_string().into_bytes()).answered_by(EITHER)
        })
    });
    bodies.chain(many_in_an_address())
}

type Body = (&'static str, &'static str, Value);

fn many_in_a_query(count: usize) -> Vec<Body> {
    let all = |queries: Value| json!({ "start": 1, "queries": queries });
    let one = |name: &str, value: Value| {
        let mut query = json!({ "metric": "m", "aggregator": "sum" });
        query[name] = value;
        all(json!([query]))
    };
    let filtered = |kind: &str, text: String| one("filters", json!([{ "type": kind, "tagk": "h", "filter": text }]));
    let regex = |n: usize| json!({ "type": "regexp", "tagk": "h", "filter": format!("(a|b)+{n}") });
    let bodies = [
        ("sub queries", all(list(count, |n| json!({ "metric": format!("m{n}"), "aggregator": "sum" })))),
        ("same sub queries", all(list(count, |_| json!({ "metric": "m", "aggregator": "sum" })))),
        ("filters", one("filters", list(count, filter))),
        ("regular expressions", one("filters", list(count, regex))),
        ("tags", one("tags", members(count, &json!("*")))),
        ("TSUIDs", one("tsuids", list(count, tsuid))),
        ("percentiles", one("percentiles", list(count, |n| json!(n)))),
        ("alternatives", filtered("literal_or", "x|".repeat(10 * count))),
        ("stars", filtered("wildcard", "*a".repeat(10 * count))),
        ("choices", filtered("regexp", "a|".repeat(10 * count))),
    ];
    bodies.into_iter().map(|(name, body)| (name, "/api/query", body)).collect()
}

fn many_in_expressions(count: usize) -> Vec<Body> {
    let with = |name: &str, value: Value| {
        let time = json!({ "start": "1", "aggregator": "sum" });
        let mut body = json!({ "time": time, "metrics": [{ "id": "a", "metric": "m" }] });
        body[name] = value;
        body
    };
    let set = |n: usize| json!({ "id": format!("f{n}"), "tags": [filter(n)] });
    let bodies = [
        ("expressions", with("expressions", list(count, |n| json!({ "id": format!("e{n}"), "expr": "a + a" })))),
        ("metrics", with("metrics", list(count, |n| json!({ "id": format!("e{n}"), "metric": "m" })))),
        ("filter sets", with("filters", list(count, set))),
        ("filters of one set", with("filters", json!([{ "id": "f", "tags": list(count, filter) }]))),
        ("outputs", with("outputs", list(count, |n| json!({ "id": format!("e{n}") })))),
        ("same outputs", with("outputs", list(count, |_| json!({ "id": "a" })))),
    ];
    bodies.into_iter().map(|(name, body)| (name, "/api/query/exp", body)).collect()
}

fn many_in_other_bodies(count: usize) -> Vec<Body> {
    let tags = list(count, |n| json!({ "key": format!("k{n}"), "value": "*" }));
    let mut bodies = vec![
        ("look-ups", "/api/query/last", json!({ "queries": list(count, |n| json!({ "metric": format!("m{n}") })) })),
        ("TSUIDs", "/api/query/last", json!({ "queries": [{ "tsuids": list(count, tsuid) }] })),
        ("kinds of names", "/api/uid/assign", members(count, &json!(["a"]))),
        ("tags", "/api/search/lookup", json!({ "metric": "m", "tags": tags })),
        (
            "tree rules",
            "/api/tree/rules",
            list(count, |n| json!({ "treeId": 1, "level": n, "order": n, "type": "METRIC" })),
        ),
    ];
    // Fewer than the bound are stored, and what is stored takes its place.
    if count > 10_000 {
        bodies.extend([
            ("names", "/api/uid/assign", json!({ "metric": list(count, |n| json!(format!("u{n}"))) })),
            ("annotations", "/api/annotation/bulk", list(count, |n| json!({ "startTime": n + 1, "notes": "n" }))),
            ("custom members", "/api/annotation", json!({ "startTime": 1, "custom": members(count, &json!("v")) })),
        ]);
    }
    bodies
}

fn many_in_an_address() -> impl Iterator<Item = Attack> {
    let get = |name: &str, piece: &str| {
        let repeated = piece.repeat(60_000 / piece.len());
        query(name, &format!("start=1&m=sum:m{repeated}"))
    };
    [
        get("many m", "&m=sum:m"),
        get("many tsuid", "&tsuid=sum:000001000001000001"),
        get("many tags", "%7Bh=a%7D"),
        query("tags", &format!("start=1&m=sum:m%7B{}h=*%7D", "h=*,".repeat(10_000))),
        query("colons", &format!("start=1&m=sum{}m", ":".repeat(50_000))),
        query("braces", &format!("start=1&m=sum:m{}", "%7B".repeat(15_000))),
        query("distinct m", &format!("start=1{}", each(5_000, |n| format!("&m=sum:m{n}")))),
    ]
    .into_iter()
}

/// Formulas and expressions that nest.
fn deep() -> impl Iterator<Item = Attack> {
    let expression = |name: &str, text: String| {
        let body = json!({ "time": { "start": "1", "aggregator": "sum" }, "metrics": [{ "id": "a", "metric": "m" }],
            "expressions": [{ "id": "e", "expr": text }] });
        Attack::post(name, "/api/query/exp", "", body.to_string().into_bytes()).answered_by(EITHER)
    };
    let formula = |text: String| {
        Attack::get("a deep formula", &format!("/api/query/gexp?start=1&exp={text}")).answered_by(EITHER)
    };
    [
        expression("100,000 parentheses", "(".repeat(100_000) + "a" + &")".repeat(100_000)),
        expression("8,000 parentheses", "(".repeat(8_000) + "a" + &")".repeat(8_000)),
        expression("8,000 minus signs", "-".repeat(8_000) + "a"),
        expression("8,000 exclamation marks", "!".repeat(8_000) + "a"),
        expression("8,000 sums", "a".to_owned() + &"+a".repeat(8_000)),
        expression("3,000 choices", "a?".repeat(3_000) + "a" + &":a".repeat(3_000)),
        expression("no end", "a + ".repeat(3_000)),
        formula("sum(".repeat(10_000)),
        formula("absolute(".repeat(30) + "sum:m" + &")".repeat(30)),
        formula("sumSeries(".to_owned() + &"sum:m,".repeat(8_000) + "sum:m)"),
        formula("a".repeat(60_000)),
        formula("'".repeat(20_000)),
    ]
    .into_iter()
}
