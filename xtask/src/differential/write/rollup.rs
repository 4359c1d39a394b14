//! Rollups, pre-aggregates and histograms, as a client that made them would write them.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use super::super::ask::http_json;
use super::super::draw::Draw;
use super::super::spoil;
use super::super::world::{HISTOGRAMS, PRE_AGGREGATES, World};
use crate::golden::scenario::Step;

/// Intervals that the profile keeps, and their seconds; but for the one whose rollups lie among the points, where `count` has
/// the mark of an annotation and every query fails.
const INTERVALS: &[(&str, u64)] = &[("10m", 600), ("1h", 3600), ("1d", 86400)];

/// Points of one call.
const POINTS_MAX: u64 = 20;

/// Of a hundred bodies, so many are made odd.
const ODD_PERCENT: u64 = 20;

pub(super) fn draw(draw: &mut Draw, world: &World) -> Step {
    let step = match draw.below(10) {
        0..6 => rollups(draw, world),
        6 => return telnet(draw, world),
        7 => pre_aggregates(draw, world),
        _ => histograms(draw, world),
    };
    if draw.chance(ODD_PERCENT) { spoil::whole_body(draw, &step) } else { step }
}

/// One series and interval, one function after the other: the buckets of the data's range.
fn rollups(draw: &mut Draw, world: &World) -> Step {
    let series = draw.pick(&world.series).clone();
    let tags: Map<_, _> = series.tags.iter().map(|(key, value)| (key.clone(), json!(value))).collect();
    let (interval, seconds) = *draw.pick(INTERVALS);
    let first = world.from / seconds;
    let buckets = (world.to / seconds - first + 1).min(POINTS_MAX);
    // Each bucket of a function once in a call: which of two OpenTSDB takes depends on the millisecond of its store.
    let mut drawn = BTreeSet::new();
    let functions: &[&str] = if draw.chance(40) { &["sum", "count"] } else { &["SUM", "max", "MIN", "count"] };
    let points: Vec<Value> = (0..draw.between(1, POINTS_MAX))
        .filter_map(|_| {
            let bucket = first + draw.below(buckets);
            let function = if draw.chance(3) { "last" } else { draw.word(functions) };
            if !drawn.insert((function, bucket)) {
                return None;
            }
            let at = bucket * seconds + if draw.chance(10) { draw.below(seconds) } else { 0 };
            let mut point = Map::new();
            point.insert("metric".into(), json!(series.metric));
            point.insert("timestamp".into(), json!(at));
            point.insert("value".into(), if draw.chance(70) { json!(draw.below(1000)) } else { json!(2.25) });
            point.insert("tags".into(), Value::Object(tags.clone()));
            point.insert("interval".into(), json!(if draw.chance(3) { "7m" } else { interval }));
            point.insert("aggregator".into(), json!(function));
            Some(Value::Object(point))
        })
        .collect();
    http_json(format!("POST /api/rollup{}", draw.word(&["?sync", "?sync&details", "?sync&summary"])), json!(points))
}

/// Points joined across series, raw or by interval; the servers add the tag that says how.
fn pre_aggregates(draw: &mut Draw, world: &World) -> Step {
    let series = draw.pick(&world.series).clone();
    let by = *draw.pick(PRE_AGGREGATES);
    let at = world.from + draw.below(world.to - world.from);
    let mut point = Map::new();
    point.insert("metric".into(), json!(series.metric));
    point.insert("timestamp".into(), json!(at));
    point.insert("value".into(), json!(draw.below(100)));
    point.insert("tags".into(), json!({"host": "a"}));
    point.insert("groupByAggregator".into(), json!(by));
    if draw.chance(50) {
        let (interval, seconds) = *draw.pick(INTERVALS);
        point.insert("timestamp".into(), json!(at / seconds * seconds));
        point.insert("interval".into(), json!(interval));
        point.insert("aggregator".into(), json!("sum"));
    }
    http_json("POST /api/rollup?sync&details".to_owned(), Value::Object(point))
}

fn telnet(draw: &mut Draw, world: &World) -> Step {
    let series = draw.pick(&world.series).clone();
    let (interval, seconds) = *draw.pick(INTERVALS);
    let at = world.from / seconds * seconds;
    let (metric, tags) = (&series.metric, series.tags_text(" "));
    let line = match draw.below(6) {
        0 => format!("rollup {interval} {metric} {at} 1 {tags}"),
        1 => format!("rollup 7m-sum {metric} {at} 1 {tags}"),
        2 => format!("rollup {interval}-sum {metric} {at} x {tags}"),
        _ => format!("rollup {interval}-sum {metric} {at} {} {tags}", draw.below(100)),
    };
    Step { telnet: vec![line], ..Step::default() }
}

fn histograms(draw: &mut Draw, world: &World) -> Step {
    let points: Vec<Value> = (0..draw.between(1, 4))
        .map(|_| {
            let at = world.from + draw.below(world.to - world.from);
            let [first, second] = [draw.below(100), draw.below(100)];
            let mut point = json!({"metric": HISTOGRAMS, "timestamp": at, "tags": {"host": draw.word(&["a", "b"])},
                "buckets": {"0,1.75": first, "1.75,3.5": second}});
            if let Some(point) = point.as_object_mut().filter(|_| draw.chance(30)) {
                point.insert("overflow".into(), json!(draw.below(5)));
            }
            point
        })
        .collect();
    http_json("POST /api/histogram?sync&details".to_owned(), json!(points))
}
