//! Requests about names and series: newest points, suggestions, look-ups, meta objects; and the service's own.

use serde_json::json;

use super::super::draw::Draw;
use super::super::world::World;
use super::{http, http_json, series};
use crate::golden::scenario::Step;

pub(crate) fn last(draw: &mut Draw, world: &World) -> Step {
    let series = if draw.chance(70) {
        let recent: Vec<_> = world.series.iter().filter(|series| series.metric == "now.m").collect();
        (*draw.pick(&recent)).clone()
    } else {
        series(draw, world)
    };
    let back = draw.below(6);
    let tags = if draw.chance(80) { series.tags_text(",") } else { String::new() };
    if draw.chance(60) {
        let resolve = if draw.chance(60) { "&resolve" } else { "" };
        let back = if draw.chance(70) { format!("&back_scan={back}") } else { String::new() };
        let braces = if tags.is_empty() { String::new() } else { format!("{{{tags}}}") };
        return http(format!("GET /api/query/last?timeseries={}{braces}{resolve}{back}", series.metric));
    }
    let query = if draw.chance(30) && !world.tsuids.is_empty() {
        json!({"tsuids": [draw.pick(&world.tsuids)]})
    } else {
        let tags: serde_json::Map<_, _> = series.tags.iter().map(|(key, value)| (key.clone(), json!(value))).collect();
        json!({"metric": series.metric, "tags": tags})
    };
    let body = json!({"queries": [query], "resolveNames": draw.chance(60), "backScan": back});
    http_json("POST /api/query/last".to_owned(), body)
}

pub(crate) fn suggest(draw: &mut Draw, world: &World) -> Step {
    let kind = draw.word(&["metrics", "tagk", "tagv", "metrics", "nosuch"]);
    let name = match kind {
        "metrics" => draw.pick(&world.metrics).clone(),
        "tagk" => "host".to_owned(),
        _ => draw.word(&["web01", "a", "lga"]).to_owned(),
    };
    let prefix: String = name.chars().take(draw.index(name.len() + 1)).collect();
    let max = draw.word(&["", "&max=1", "&max=3", "&max=1000000", "&max=x", "&max=0", "&max=-1"]);
    if draw.chance(30) {
        return http_json("POST /api/suggest".to_owned(), json!({"type": kind, "q": prefix, "max": draw.below(5)}));
    }
    http(format!("GET /api/suggest?type={kind}&q={prefix}{max}"))
}

/// By the data table, or by the meta table where one is kept.
pub(crate) fn lookup(draw: &mut Draw, world: &World) -> Step {
    let series = series(draw, world);
    let count = draw.index(3);
    let tags: Vec<_> = series
        .tags
        .iter()
        .map(|(key, value)| match draw.below(5) {
            0 => json!({"key": "*", "value": value}),
            1 => json!({"key": key, "value": "*"}),
            _ => json!({"key": key, "value": value}),
        })
        .take(count)
        .collect();
    let by_meta = world.profile == "meta" && draw.chance(60);
    let body = json!({"metric": series.metric, "tags": tags, "useMeta": by_meta, "limit": 1000});
    let mut step = http_json("POST /api/search/lookup".to_owned(), body);
    step.free = vec!["/time".to_owned()];
    step
}

pub(crate) fn meta(draw: &mut Draw, world: &World) -> Step {
    if draw.chance(50) {
        let kind = draw.word(&["metric", "tagk", "tagv", "metrics"]);
        let uid = format!("{:06}", draw.between(1, 9));
        let mut step = http(format!("GET /api/uid/uidmeta?uid={uid}&type={kind}"));
        step.free = vec!["/created".to_owned()];
        return step;
    }
    let mut step = if draw.chance(50) && !world.tsuids.is_empty() {
        http(format!("GET /api/uid/tsmeta?tsuid={}", draw.pick(&world.tsuids)))
    } else {
        let series = series(draw, world);
        http(format!("GET /api/uid/tsmeta?m={}{{{}}}", series.metric, series.tags_text(",")))
    };
    step.free = vec!["/created".to_owned()];
    step
}

/// Endpoints without data, wrong methods and paths that lead nowhere.
pub(crate) fn service(draw: &mut Draw) -> Step {
    let path = draw.word(&[
        "/api/aggregators",
        "/aggregators",
        "/api/config/filters",
        "/api/version",
        "/api/v1/aggregators",
        "/api/nosuch",
        "/nosuch",
        "/api/v2/query",
        "/api",
        "/api/",
        "/api/suggest",
        "/api/put",
        "/api/query/nosuch",
        "/api/uid",
        "/api/uid/nosuch",
        "/api/annotation",
        "/api/annotations",
        "/api/search",
        "/api/search/nosuch",
        "/api/dropcaches",
        "/API/Aggregators",
        "/api/query",
        "/api/query/exp",
        "/api/query/gexp",
        "/api/query/last",
        "/suggest?type=metrics",
        "/api/uid/assign",
        "/api/uid/rename",
        "/api/uid/uidmeta",
        "/api/uid/tsmeta",
        "/api/search/tsmeta",
        "/q?ascii",
    ]);
    let method = draw.word(&["GET", "GET", "GET", "POST", "PUT", "DELETE"]);
    let mut step = http(format!("{method} {path}"));
    step.unordered = path.to_ascii_lowercase().ends_with("aggregators");
    step.shape = path.ends_with("version") || path.ends_with("filters");
    step
}
