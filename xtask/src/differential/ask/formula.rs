//! Expressions over metrics (`exp`) and functions over queries (`gexp`).

use serde_json::{Map, Value, json};

use super::super::draw::Draw;
use super::super::world::World;
use super::{downsample, filter, http, http_json, range, series};
use crate::golden::scenario::Step;

const EXPRESSIONS: &[&str] = &[
    "a + b",
    "a - b",
    "a * b",
    "a / b",
    "a % 7",
    "a + b * 2",
    "(a + b) / 2",
    "a > b",
    "a >= b ? a : b",
    "-a",
    "a * 1.5",
    "a == b",
    "a && b",
    "a || b",
    "!a",
    "a / 0",
    "a",
    "e0 + 1",
    "e0 * a",
    "1 + 1",
    "a +",
    "a + nosuch",
    "a != b",
    "a < 10",
];

/// Aggregators that give few surprises, so that what is compared is the expression.
const SIMPLE: &[&str] = &["sum", "avg", "max", "min", "count", "zimsum", "mimmax", "dev"];

pub(crate) fn exp(draw: &mut Draw, world: &World) -> Step {
    let (start, end) = range(draw, world);
    let mut time = Map::new();
    time.insert("start".into(), json!(start.to_string()));
    time.insert("end".into(), json!(end.to_string()));
    time.insert("aggregator".into(), json!(draw.word(SIMPLE)));
    if draw.chance(60) {
        let text = downsample(draw, end.saturating_sub(start));
        let interval = text.split('-').next().unwrap_or("1m").trim_end_matches('c').replace("0all", "1h");
        time.insert("downsampler".into(), json!({"interval": interval, "aggregator": draw.word(SIMPLE)}));
    }
    if draw.chance(10) {
        time.insert("rate".into(), json!(true));
    }
    let mut metrics = Vec::new();
    for id in ["a", "b"] {
        let mut metric = Map::new();
        metric.insert("id".into(), json!(id));
        metric.insert("metric".into(), json!(series(draw, world).metric));
        metric.insert("filter".into(), json!("f1"));
        if draw.chance(50) {
            metric.insert("aggregator".into(), json!(draw.word(SIMPLE)));
        }
        if draw.chance(60) {
            metric.insert("fillPolicy".into(), fill(draw));
        }
        metrics.push(Value::Object(metric));
    }
    let mut body = Map::new();
    body.insert("time".into(), Value::Object(time));
    body.insert("filters".into(), json!([{"id": "f1", "tags": filters(draw)}]));
    body.insert("metrics".into(), Value::Array(metrics));
    let count = draw.between(1, 2);
    let expressions: Vec<Value> = (0..count).map(|index| expression(draw, index)).collect();
    body.insert("expressions".into(), Value::Array(expressions));
    if draw.chance(50) {
        let id = draw.word(&["e0", "a", "b"]);
        body.insert("outputs".into(), json!([{"id": id, "alias": "out"}]));
    }
    http_json("POST /api/query/exp".to_owned(), Value::Object(body))
}

fn filters(draw: &mut Draw) -> Value {
    let filters: Vec<Value> = (0..draw.below(3))
        .map(|_| {
            let (kind, key, text) = filter(draw);
            json!({"type": kind, "tagk": key, "filter": text, "groupBy": draw.chance(80)})
        })
        .collect();
    if filters.is_empty() {
        return json!([{"type": "wildcard", "tagk": "host", "filter": "*", "groupBy": draw.chance(80)}]);
    }
    Value::Array(filters)
}

fn expression(draw: &mut Draw, index: u64) -> Value {
    let mut expression = Map::new();
    expression.insert("id".into(), json!(format!("e{index}")));
    expression.insert("expr".into(), json!(draw.word(EXPRESSIONS)));
    if draw.chance(50) {
        let operator = draw.word(&["union", "intersection"]);
        let join = json!({"operator": operator, "useQueryTags": draw.chance(40), "includeAggTags": draw.chance(30)});
        expression.insert("join".into(), join);
    }
    if draw.chance(40) {
        expression.insert("fillPolicy".into(), fill(draw));
    }
    Value::Object(expression)
}

fn fill(draw: &mut Draw) -> Value {
    match draw.below(4) {
        0 => json!({"policy": "nan"}),
        1 => json!({"policy": "zero"}),
        2 => json!({"policy": "null"}),
        _ => json!({"policy": "scalar", "value": 7.5}),
    }
}

pub(crate) fn gexp(draw: &mut Draw, world: &World) -> Step {
    let (start, end) = range(draw, world);
    let mut used = Vec::new();
    let text = function(draw, world, end.saturating_sub(start), 0, &mut used);
    let switch = if draw.chance(15) { "&ms" } else { "" };
    http(format!("GET /api/query/gexp?start={start}&end={end}{switch}&exp={text}"))
}

/// A function over a query, or over functions; no query twice, which OpenTSDB cannot.
fn function(draw: &mut Draw, world: &World, seconds: u64, depth: u32, used: &mut Vec<String>) -> String {
    let inner = |draw: &mut Draw, used: &mut Vec<String>| {
        if depth < 2 && draw.chance(30) {
            function(draw, world, seconds, depth + 1, used)
        } else {
            operand(draw, world, seconds, used)
        }
    };
    match draw.below(10) {
        0 => format!("absolute({})", inner(draw, used)),
        1 | 2 => format!("scale({},{})", inner(draw, used), draw.word(&["2", "0.5", "-3", "0"])),
        3 | 4 => {
            let window = draw.word(&["2", "3", "10", "'1min'", "'1hr'", "'30sec'"]);
            format!("movingAverage({},{window})", inner(draw, used))
        }
        5 => format!("highestMax({},{})", inner(draw, used), draw.between(1, 3)),
        6 => format!("highestCurrent({},{})", inner(draw, used), draw.between(1, 3)),
        7 => format!("alias({},x@host)", inner(draw, used)),
        _ => {
            let name = draw.word(&["sumSeries", "diffSeries", "multiplySeries", "divideSeries"]);
            let first = inner(draw, used);
            format!("{name}({first},{})", inner(draw, used))
        }
    }
}

fn operand(draw: &mut Draw, world: &World, seconds: u64, used: &mut Vec<String>) -> String {
    loop {
        let series = series(draw, world);
        let group = if draw.chance(60) { "{host=*}" } else { "" };
        let text = format!("{}:{}:{}{group}", draw.word(SIMPLE), downsample(draw, seconds), series.metric);
        if !used.contains(&text) {
            used.push(text.clone());
            return text;
        }
    }
}
