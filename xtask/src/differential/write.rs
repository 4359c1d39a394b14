//! Random requests that change something: points good and bad by both doors, names, annotations, deletes.
//!
//! Only names that are known, or one new name a call: OpenTSDB gives the UIDs of several in no order.

mod rollup;
mod telnet;
mod tree;

use serde_json::{Map, Value, json};

use super::ask::{http, http_json};
use super::draw::Draw;
use super::spoil::{self, target};
use super::world::{Series, World};
use crate::golden::scenario::Step;

/// Of a hundred requests, so many are about trees.
const TREES_PERCENT: u64 = 15;

/// One request, the `index`th of its world.
pub(crate) fn draw(draw: &mut Draw, world: &World, index: u64) -> Step {
    if world.keeps_rollups() && draw.chance(60) {
        return rollup::draw(draw, world);
    }
    if draw.chance(20) {
        return if draw.chance(60) { odd(draw, world, index) } else { odd_line(draw, world, index) };
    }
    if draw.chance(TREES_PERCENT) {
        return tree::draw(draw, world);
    }
    match draw.below(20) {
        0..10 => put(draw, world, index),
        10 | 19 => telnet::draw(draw, world),
        11..14 => annotation(draw, world),
        14 => annotations(draw, world),
        15 => assign(draw, world, index),
        16 => rename(draw, world, index),
        17 => meta(draw, world),
        18 if draw.chance(30) => delete(draw, world),
        _ => damaged_put(draw, world),
    }
}

/// One whose line is made odd, and has no callback: OpenTSDB takes any, ours refuses what is no name before it changes anything.
fn odd_line(draw: &mut Draw, world: &World, index: u64) -> Step {
    loop {
        let step = match draw.below(8) {
            0 => put(draw, world, index),
            1..3 => annotation(draw, world),
            3 => annotations(draw, world),
            4 => assign(draw, world, index),
            5 => rename(draw, world, index),
            6 => tree::draw(draw, world),
            _ => meta(draw, world),
        };
        let odd = target::line(draw, step);
        if !odd.describe("").contains("jsonp") {
            return odd;
        }
    }
}

/// One whose body is made odd.
fn odd(draw: &mut Draw, world: &World, index: u64) -> Step {
    loop {
        let step = match draw.below(7) {
            0..2 => put(draw, world, index),
            2 => annotation(draw, world),
            3 => annotations(draw, world),
            4 if draw.chance(50) => assign(draw, world, index),
            4 => rename(draw, world, index),
            5 => tree::draw(draw, world),
            _ => meta(draw, world),
        };
        // Of several notes OpenTSDB stores those before a bad one, ours none (A-ANNOTS).
        let notes =
            step.json.as_ref().and_then(Value::as_array).filter(|_| step.describe("").contains("/annotation/bulk"));
        if step.json.is_some() && notes.is_none_or(|notes| notes.len() < 2) {
            return spoil::whole_body(draw, &step);
        }
    }
}

/// One to five points, each at a time of its own.
fn put(draw: &mut Draw, world: &World, index: u64) -> Step {
    let count = if draw.chance(40) { 1 } else { draw.between(2, 5) };
    let mut points: Vec<Value> = (0..count).map(|place| point(draw, world, place)).collect();
    if count == 1 && draw.chance(10) {
        points = vec![json!({"metric": draw.pick(&world.metrics), "timestamp": world.from, "value": index,
            "tags": {"host": format!("new{index}")}})];
    }
    let flags = draw.word(&[
        "?sync",
        "?sync&details",
        "?sync&summary",
        "?sync&details&summary",
        "?details",
        "?summary",
        "",
        "?sync&details&sync_timeout=60000",
        "?sync=true&summary",
    ]);
    let mut step =
        http_json(format!("POST /api/put{flags}"), if count == 1 { points.remove(0) } else { json!(points) });
    step.gzip = draw.chance(15);
    step.chunked = draw.chance(10);
    step
}

fn point(draw: &mut Draw, world: &World, place: u64) -> Value {
    let series = draw.pick(&world.series).clone();
    let at = world.from + draw.below((world.to - world.from) / 8) * 8 + place;
    let mut point = Map::new();
    point.insert("metric".into(), json!(series.metric));
    point.insert("timestamp".into(), if draw.chance(80) { json!(at) } else { json!(at * 1000 + 1) });
    point.insert("value".into(), value(draw));
    let tags: Map<_, _> = series.tags.iter().map(|(key, value)| (key.clone(), json!(value))).collect();
    point.insert("tags".into(), Value::Object(tags));
    if draw.chance(30) {
        spoil(draw, &mut point);
    }
    Value::Object(point)
}

fn value(draw: &mut Draw) -> Value {
    match draw.below(8) {
        0..3 => json!(draw.below(100_000)),
        3 => json!(-1.5),
        4 => json!("42"),
        5 => json!("1.25e3"),
        6 => json!(draw.below(1000).to_string() + ".125"),
        _ => json!(f64::from(u32::try_from(draw.below(1 << 20)).unwrap_or_default()) / 64.0),
    }
}

/// Makes a point one that is refused, or nearly so.
fn spoil(draw: &mut Draw, point: &mut Map<String, Value>) {
    let (key, value) = match draw.below(22) {
        0 => ("metric", json!("")),
        1 => ("metric", json!("a b")),
        2 => ("metric", json!("a:b")),
        3 => ("metric", Value::Null),
        4 => ("value", json!("")),
        5 => ("value", json!("x")),
        6 => ("value", Value::Null),
        7 => ("value", json!("NaN")),
        8 => ("value", json!("9223372036854775808")),
        9 => ("value", json!("1e400")),
        10 => ("timestamp", json!(0)),
        11 => ("timestamp", json!(-5)),
        12 => ("timestamp", json!("abc")),
        13 => ("timestamp", json!(99_999_999_999_999_u64)),
        14 => ("tags", json!({})),
        15 => ("tags", Value::Null),
        16 => ("tags", json!({"host": ""})),
        17 => ("tags", json!({"host": "a b"})),
        18 => ("tags", json!({"": "a"})),
        19 => ("tags", (0..9).map(|n| (format!("t{n}"), json!("v"))).collect::<Map<_, _>>().into()),
        20 => ("value", json!(true)),
        _ => ("unknown", json!({"any": [1, 2]})),
    };
    point.insert(key.to_owned(), value);
}

/// A body that is no list of points, or not JSON.
fn damaged_put(draw: &mut Draw, world: &World) -> Step {
    let good = Value::Array(vec![point(draw, world, 0)]).to_string();
    let body = match draw.below(8) {
        0 => String::new(),
        1 => "[]".to_owned(),
        2 => "{}".to_owned(),
        3 => "null".to_owned(),
        4 => "[null]".to_owned(),
        5 => "[1]".to_owned(),
        6 => good.chars().take(draw.index(good.len())).collect(),
        _ => good.replacen('"', "", 1),
    };
    let flags = draw.word(&["", "?details", "?summary&sync"]);
    Step { http: Some(format!("POST /api/put{flags}")), body: Some(body), ..Step::default() }
}

fn annotation(draw: &mut Draw, world: &World) -> Step {
    let at = world.from + 1 + draw.below(4) * 60;
    let tsuid = if draw.chance(30) || world.tsuids.is_empty() { None } else { Some(draw.pick(&world.tsuids).clone()) };
    let method = draw.word(&["GET", "POST", "POST", "PUT", "DELETE"]);
    if draw.chance(40) {
        let tsuid = tsuid.map(|tsuid| format!("&tsuid={tsuid}")).unwrap_or_default();
        let text = draw.word(&["", "&description=d1", "&notes=n1", "&end_time=1800000000"]);
        let line = match method {
            "GET" => format!("GET /api/annotation?start_time={at}{tsuid}"),
            "DELETE" => format!("DELETE /api/annotation?start_time={at}{tsuid}"),
            _ => {
                let verb = method.to_ascii_lowercase();
                format!("GET /api/annotation?start_time={at}{tsuid}{text}&method_override={verb}")
            }
        };
        return http(line);
    }
    let mut body = Map::new();
    body.insert("startTime".into(), json!(at));
    if let Some(tsuid) = tsuid {
        body.insert("tsuid".into(), json!(tsuid));
    }
    for (key, value) in [
        ("description", json!("text")),
        ("notes", json!("n")),
        ("endTime", json!(at + 60)),
        ("custom", json!({"owner": "x"})),
    ] {
        if draw.chance(50) {
            body.insert(key.to_owned(), value);
        }
    }
    let method = if method == "GET" { "POST" } else { method };
    http_json(format!("{method} /api/annotation"), Value::Object(body))
}

fn annotations(draw: &mut Draw, world: &World) -> Step {
    let (from, to) = (world.from - 60, world.from + draw.below(600));
    match draw.below(3) {
        0 => http(format!("GET /api/annotations?start_time={from}&end_time={to}")),
        1 => {
            let notes: Vec<Value> = (0..draw.between(1, 3))
                .map(|place| json!({"startTime": world.from + 1 + place * 60, "description": format!("bulk {place}")}))
                .collect();
            http_json("POST /api/annotation/bulk".to_owned(), json!(notes))
        }
        _ => {
            // In salted tables OpenTSDB does not find a series' annotations of a range, so that they stay; ours go.
            let count = usize::from(world.profile != "salted");
            let tsuids: Vec<&String> = world.tsuids.iter().take(count).collect();
            let body = json!({"startTime": from, "endTime": to, "tsuids": tsuids, "global": draw.chance(50)});
            http_json("DELETE /api/annotation/bulk".to_owned(), body)
        }
    }
}

fn assign(draw: &mut Draw, world: &World, index: u64) -> Step {
    let kind = draw.word(&["metric", "tagk", "tagv"]);
    let known = draw.pick(&world.metrics);
    let name = match draw.below(4) {
        0 => "a b".to_owned(),
        1 if kind == "metric" => known.clone(),
        _ => format!("assigned{index}"),
    };
    if draw.chance(50) {
        return http(format!("GET /api/uid/assign?{kind}={}", name.replace(' ', "%20")));
    }
    http_json("POST /api/uid/assign".to_owned(), json!({ kind: [name] }))
}

fn rename(draw: &mut Draw, world: &World, index: u64) -> Step {
    let old = if draw.chance(10) { "no.such" } else { draw.pick(&world.metrics).as_str() };
    let new = if draw.chance(20) { draw.pick(&world.metrics).clone() } else { format!("renamed{index}") };
    if draw.chance(50) {
        return http(format!("GET /api/uid/rename?metric={old}&name={new}"));
    }
    http_json("POST /api/uid/rename".to_owned(), json!({"metric": old, "name": new}))
}

fn meta(draw: &mut Draw, world: &World) -> Step {
    let mut body = Map::new();
    for key in ["displayName", "description", "notes"] {
        if draw.chance(50) {
            body.insert(key.to_owned(), json!(format!("{key} {}", draw.below(3))));
        }
    }
    let method = draw.word(&["POST", "PUT"]);
    let path = if draw.chance(60) || world.tsuids.is_empty() {
        body.insert("uid".into(), json!(format!("{:06}", draw.between(1, 4))));
        body.insert("type".into(), json!(draw.word(&["metric", "tagk", "tagv"])));
        "uidmeta"
    } else {
        body.insert("tsuid".into(), json!(draw.pick(&world.tsuids)));
        "tsmeta"
    };
    let mut step = http_json(format!("{method} /api/uid/{path}"), Value::Object(body));
    step.free = vec!["/created".to_owned()];
    step
}

/// A range of one metric, ten minutes at most.
pub(super) fn delete(draw: &mut Draw, world: &World) -> Step {
    let Series { metric, .. } = draw.pick(&world.series);
    let from = world.from + draw.below(world.to - world.from);
    http(format!("DELETE /api/query?start={from}&end={}&m=sum:{metric}", from + draw.between(1, 600)))
}

#[cfg(test)]
mod tests {
    use super::{World, odd, odd_line};
    use crate::differential::draw::Draw;

    #[test]
    fn what_opentsdb_alone_would_take_is_not_drawn() {
        let mut drawn = Draw::new(7);
        let world = World::draw(&mut drawn, "plain", 1_700_000_000);
        for index in 0..3000 {
            let line = odd_line(&mut drawn, &world, index).describe("");
            assert!(!line.contains("jsonp"), "{line}");
            let step = odd(&mut drawn, &world, index);
            let body = step.body.as_deref().unwrap_or_default();
            assert!(!body.contains("\\ud83d\""), "{body}");
            let is_bulk = step.describe("").starts_with("POST /api/annotation/bulk");
            assert!(!is_bulk || !body.contains("bulk 1"), "{body}");
        }
    }
}
