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
    "a mod 7",
    "a div b",
    "a eq b",
    "a lt b or b ge 10",
    "a gt 5 and not b",
    "a ne b ? 1 : 0",
    "a ? b : a ? 1 : 2",
    "a ?: b",
    "-a * b",
    "- -a",
    "a - -b",
    "!!a",
    "a + b - b + a",
    "a - b - a",
    "a / b / 2",
    "a * b % 100",
    "a + 1e3",
    "a * 0x10",
    "a * 010",
    "a + 1.",
    "a + .5",
    "a * 2L",
    "a * 2.5f",
    "a + 1/2",
    "a + 1.0/2",
    "a + 7 % 4",
    "a * 9223372036854775807",
    "a + true",
    "a > 0 == b > 0",
    "a < b < 10",
    "a&&b||a",
    "(a)",
    "( a + b )*2",
    "a+b*(a-b)/(a+1)",
    "a  +\tb",
    "A + b",
    "a_1 + a",
    "a + a",
    "e0 + e0",
    "e1 + a",
    "a b",
    ";",
    "a + b # c",
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
    if draw.chance(10) {
        let zone = draw.word(&["UTC", "America/New_York", "nosuch"]);
        time.insert("timezone".into(), json!(zone));
    }
    if draw.chance(15) {
        time.insert("start".into(), json!(super::time(draw, start)));
    }
    let mut metrics = Vec::new();
    let ids: &[&str] = if draw.chance(15) { &["a", "b", "e2", "c"] } else { &["a", "b"] };
    for id in ids {
        let mut metric = Map::new();
        metric.insert("id".into(), json!(id));
        metric.insert("metric".into(), json!(series(draw, world).metric));
        if draw.chance(95) {
            metric.insert("filter".into(), json!(if draw.chance(97) { "f1" } else { "f2" }));
        }
        if draw.chance(4) {
            metric.insert("timeOffset".into(), json!(draw.word(&["0", "1h-ago", "x"])));
        }
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
    let count = if draw.chance(20) { 3 } else { draw.between(1, 2) };
    let expressions: Vec<Value> = (0..count).map(|index| expression(draw, index)).collect();
    body.insert("expressions".into(), Value::Array(expressions));
    if draw.chance(50) {
        let outputs: Vec<Value> = (0..draw.between(1, 3))
            .map(|_| {
                let id = draw.word(&["e0", "e0", "a", "b", "e1", "nosuch", ""]);
                if draw.chance(50) { json!({"id": id, "alias": "out"}) } else { json!({ "id": id }) }
            })
            .collect();
        body.insert("outputs".into(), Value::Array(outputs));
    }
    if draw.chance(3) {
        body.remove(draw.word(&["time", "filters", "metrics", "expressions"]));
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
        let operator =
            if draw.chance(3) { draw.word(&["cross", "UNION", ""]) } else { draw.word(&["union", "intersection"]) };
        let join = json!({"operator": operator, "useQueryTags": draw.chance(40), "includeAggTags": draw.chance(30)});
        expression.insert("join".into(), join);
    }
    if draw.chance(40) {
        expression.insert("fillPolicy".into(), fill(draw));
    }
    Value::Object(expression)
}

fn fill(draw: &mut Draw) -> Value {
    match draw.below(5) {
        0 if draw.chance(10) => json!({"policy": draw.word(&["none", "NAN", "nosuch", ""]), "value": 1}),
        0 => json!({"policy": "nan"}),
        4 => json!({"policy": "scalar", "value": draw.below(3)}),
        1 => json!({"policy": "zero"}),
        2 => json!({"policy": "null"}),
        _ => json!({"policy": "scalar", "value": 7.5}),
    }
}

pub(crate) fn gexp(draw: &mut Draw, world: &World) -> Step {
    let (start, end) = range(draw, world);
    let mut used = Vec::new();
    let seconds = end.saturating_sub(start);
    let mut text = function(draw, world, seconds, 0, &mut used);
    if draw.chance(10) {
        let further = function(draw, world, seconds, 0, &mut used);
        text = format!("{text}&exp={further}");
    }
    let switch = match draw.below(20) {
        0..3 => "&ms",
        3 => "&arrays",
        4 => "&show_tsuids",
        5 => "&show_query",
        6 => "&no_annotations",
        _ => "",
    };
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
        1 | 2 => {
            let factor =
                draw.word(&["2", "0.5", "-3", "0", "1e3", "-0.25", "1e400", "x", "", "2,3", "NaN", "0x10", "2d"]);
            let blank = draw.word(&["", "", "%20"]);
            format!("scale({},{blank}{factor})", inner(draw, used))
        }
        3 | 4 => {
            let window = draw.word(&[
                "2", "3", "10", "'1min'", "'1hr'", "'30sec'", "'1day'", "'1sec'", "1", "0", "-1", "x", "'1h'", "'min'",
                "'0min'", "2.5", "",
            ]);
            format!("movingAverage({},{window})", inner(draw, used))
        }
        5 => format!("highestMax({},{})", inner(draw, used), draw.word(&["1", "2", "3", "100", "0", "-1", "x"])),
        6 => format!("highestCurrent({},{})", inner(draw, used), draw.between(1, 3)),
        7 => {
            let name = draw.word(&["x@host", "x", "@host.@dc", "@nosuch", "@host@host", "a%20b", "", "x,y", "@"]);
            format!("alias({},{name})", inner(draw, used))
        }
        _ => {
            let name = draw.word(&[
                "sumSeries",
                "diffSeries",
                "multiplySeries",
                "divideSeries",
                "sum",
                "difference",
                "multiply",
                "divide",
                "nosuch",
                "SumSeries",
            ]);
            let first = inner(draw, used);
            match draw.below(12) {
                0 => format!("{name}({first})"),
                1 => format!("{name}({first},{},{})", inner(draw, used), inner(draw, used)),
                2 => format!("{name}(%20{first}%20,%20{}%20)", inner(draw, used)),
                3 if draw.chance(20) => format!("{name}({first},{}", inner(draw, used)),
                _ => format!("{name}({first},{})", inner(draw, used)),
            }
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
