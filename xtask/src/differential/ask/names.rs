//! Requests about names and series: newest points, suggestions, look-ups, meta objects; and the service's own.

use serde_json::json;

use super::super::draw::Draw;
use super::super::world::{Series, World};
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
        let first = if draw.chance(15) && !world.tsuids.is_empty() {
            let list: Vec<&str> = (0..draw.between(1, 3)).map(|_| draw.pick(&world.tsuids).as_str()).collect();
            format!("tsuids={}", list.join(","))
        } else {
            format!("timeseries={}{braces}", series.metric)
        };
        let further = match draw.below(12) {
            0 => format!("&timeseries={}", series.metric),
            1 => "&timeseries=now.m".to_owned(),
            2 => "&timeseries=now.m{host=*}".to_owned(),
            3 => "&timeseries=now.m{host=a|b}".to_owned(),
            4 if !world.tsuids.is_empty() => format!("&tsuids={}", draw.pick(&world.tsuids)),
            _ => String::new(),
        };
        return http(format!("GET /api/query/last?{first}{further}{resolve}{back}"));
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
    if draw.chance(40) {
        return lookup_by_line(draw, &series);
    }
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

/// The same by a query string.
fn lookup_by_line(draw: &mut Draw, series: &Series) -> Step {
    let tags = match draw.below(8) {
        0 => String::new(),
        1 => "{}".to_owned(),
        2 => "{host=*}".to_owned(),
        3 => "{*=a}".to_owned(),
        4 => "{host=a,dc=*}".to_owned(),
        _ => format!("{{{}}}", series.tags_text(",")),
    };
    let metric = if draw.chance(80) { series.metric.as_str() } else { draw.word(&["*", "", "nosuch"]) };
    let limit = draw.word(&["", "", "&limit=1000", "&limit=x", "&limit=-1", "&limit="]);
    let mut step = http(format!("GET /api/search/lookup?m={metric}{tags}&use_meta=false{limit}"));
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
        "/api/config",
        "/api/config/nosuch",
        "/api/stats",
        "/api/stats?jsonp=cb",
        "/api/stats/query",
        "/api/stats/jvm",
        "/api/stats/threads",
        "/api/stats/region_clients",
        "/api/stats/nosuch",
        "/stats",
        "/stats?json",
        "/version?json",
        "/api/serializers",
    ]);
    let method = draw.word(&["GET", "GET", "GET", "POST", "PUT", "DELETE"]);
    let mut step = http(format!("{method} {path}"));
    step.unordered = path.to_ascii_lowercase().ends_with("aggregators");
    step.shape = path.ends_with("version") || path.ends_with("filters");
    step
}
