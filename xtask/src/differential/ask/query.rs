//! `/api/query` by GET and by POST, and the classic `/q`.

use serde_json::{Map, Value, json};

use super::super::draw::Draw;
use super::super::world::{Series, World};
use super::{aggregator, downsample, filter, http, http_json, range, rate, series, time};
use crate::golden::scenario::Step;

/// Switches of a GET.
const SWITCHES: &[&str] = &[
    "ms",
    "arrays",
    "show_tsuids",
    "no_annotations",
    "global_annotations",
    "show_query",
    "padding",
    "ms=true",
    "ms=false",
    "timezone=America/New_York",
    "use_calendar",
    "nosuch",
    "no_annotations=false",
    "show_query&show_tsuids",
    "show_stats",
    "show_stats=true",
    "show_summary",
    "show_stats&show_summary",
];

/// The same of a POST.
const MEMBERS: &[&str] = &[
    "msResolution",
    "showTSUIDs",
    "noAnnotations",
    "globalAnnotations",
    "showQuery",
    "padding",
    "showStats",
    "showSummary",
];

pub(crate) fn get(draw: &mut Draw, world: &World) -> Step {
    let (start, end) = range(draw, world);
    let mut parts = vec![format!("start={}", time(draw, start))];
    if draw.chance(97) {
        parts.push(format!("end={}", time(draw, end)));
    }
    if draw.chance(45) {
        parts.push(draw.word(SWITCHES).to_owned());
    }
    if draw.chance(15) {
        parts.push(draw.word(SWITCHES).to_owned());
    }
    for _ in 0..subs_count(draw) {
        if draw.chance(8) && !world.tsuids.is_empty() {
            // OpenTSDB does not read these parts of a list of TSUIDs.
            let mut sub = sub_parts(draw, world, end.saturating_sub(start));
            sub.retain(|part| {
                !part.to_lowercase().starts_with("rollup_") && !["pre-agg", "explicit_tags"].contains(&part.as_str())
            });
            parts.push(format!("tsuid={}:{}", sub.join(":"), tsuids(draw, world)));
        } else {
            parts.push(format!("m={}", sub(draw, world, end.saturating_sub(start))));
        }
    }
    if draw.chance(1) {
        parts.swap_remove(0);
    }
    let mut query = parts.join("&");
    if !query.contains("end=") && fills(&query) {
        query = format!("{query}&end={end}");
    }
    http(format!("GET /api/query?{query}"))
}

fn subs_count(draw: &mut Draw) -> u64 {
    if draw.chance(85) { 1 } else { draw.between(2, 3) }
}

/// Whether points are made up: up to now there would be millions.
fn fills(query: &str) -> bool {
    ["-nan", "-null", "-zero"].iter().any(|fill| query.contains(fill))
}

/// Aggregator and what may stand between it and the metric.
fn sub_parts(draw: &mut Draw, world: &World, seconds: u64) -> Vec<String> {
    let mut parts = vec![aggregator(draw).to_owned()];
    if draw.chance(50) {
        parts.push(downsample_in(draw, world, seconds));
    }
    if draw.chance(25) {
        parts.push(rate(draw).0);
    }
    if draw.chance(8) {
        parts.push("explicit_tags".to_owned());
    }
    if world.keeps_rollups() {
        parts.extend(rollup_usage(draw).map(str::to_owned));
        if draw.chance(8) {
            parts.push("pre-agg".to_owned());
        }
        if draw.chance(8) {
            parts.push(draw.word(&["percentiles[50,99.9]", "percentiles[75]", "show-histogram-buckets"]).to_owned());
        }
    }
    if parts.len() > 2 && draw.chance(20) {
        parts.swap(1, 2);
    }
    parts
}

fn sub(draw: &mut Draw, world: &World, seconds: u64) -> String {
    let series = series(draw, world);
    let first = if draw.chance(55) { filters_text(draw, &series) } else { String::new() };
    let second = if draw.chance(20) { filters_text(draw, &series) } else { String::new() };
    let filters = match (first.is_empty(), second.is_empty()) {
        (true, true) => String::new(),
        (false, true) => format!("{{{first}}}"),
        _ => format!("{{{first}}}{{{second}}}"),
    };
    format!("{}:{}{filters}", sub_parts(draw, world, seconds).join(":"), series.metric)
}

/// A few filters as `k=v`, each of a kind of its own.
fn filters_text(draw: &mut Draw, series: &Series) -> String {
    let count = if draw.chance(75) { 1 } else { 2 };
    let texts: Vec<String> = (0..count)
        .map(|_| {
            if draw.chance(50) {
                let (key, value) = draw.pick(&series.tags).clone();
                return match draw.below(4) {
                    0 => format!("{key}={value}"),
                    1 => format!("{key}={value}|a"),
                    _ => format!("{key}=*"),
                };
            }
            let (kind, key, text) = filter(draw);
            format!("{key}={kind}({text})")
        })
        .collect();
    texts.join(",")
}

/// A downsampling specifier; where rollups are kept, often one that a rollup answers.
fn downsample_in(draw: &mut Draw, world: &World, seconds: u64) -> String {
    const ROLLUPS: &[&str] = &[
        "1m-sum", "10m-sum", "10m-max", "30m-min", "1h-sum", "1h-count", "1h-avg", "2h-max", "6h-sum", "1d-min",
        "1d-avg",
    ];
    if world.keeps_rollups() && draw.chance(60) {
        return draw.word(ROLLUPS).to_owned();
    }
    downsample(draw, seconds)
}

/// How rollups are used, now and then.
fn rollup_usage(draw: &mut Draw) -> Option<&'static str> {
    draw.chance(30).then(|| {
        draw.word(&["ROLLUP_RAW", "ROLLUP_NOFALLBACK", "ROLLUP_FALLBACK", "ROLLUP_FALLBACK_RAW", "rollup_nofallback"])
    })
}

fn tsuids(draw: &mut Draw, world: &World) -> String {
    let first = draw.pick(&world.tsuids).clone();
    if draw.chance(60) { first } else { format!("{first},{}", draw.pick(&world.tsuids)) }
}

pub(crate) fn post(draw: &mut Draw, world: &World) -> Step {
    let (start, end) = range(draw, world);
    let mut body = Map::new();
    body.insert("start".into(), if draw.chance(60) { json!(start) } else { json!(time(draw, start)) });
    if draw.chance(97) {
        body.insert("end".into(), if draw.chance(60) { json!(end * 1000) } else { json!(time(draw, end)) });
    }
    for _ in 0..draw.below(3) {
        body.insert(draw.word(MEMBERS).to_owned(), json!(draw.chance(80)));
    }
    if draw.chance(20) {
        let zone = draw.word(&[
            "America/New_York",
            "Europe/London",
            "Asia/Kolkata",
            "UTC",
            "Australia/Lord_Howe",
            "America/Sao_Paulo",
            "Asia/Kathmandu",
            "Pacific/Apia",
            "Europe/Berlin",
            "America/St_Johns",
            "Pacific/Chatham",
            "EST",
            "GMT+3",
            "Etc/GMT-5",
            "nosuch",
            "",
        ]);
        body.insert("timezone".into(), json!(zone));
        body.insert("useCalendar".into(), json!(draw.chance(80)));
    }
    let seconds = end.saturating_sub(start);
    let count = subs_count(draw);
    let queries: Vec<Value> = (0..count).map(|_| post_sub(draw, world, seconds)).collect();
    if fills(&json!(queries).to_string()) {
        body.insert("end".into(), json!(end));
    }
    body.insert("queries".into(), Value::Array(queries));
    if draw.chance(1) {
        body.remove(draw.word(&["start", "queries"]));
    }
    let target = if draw.chance(10) { "POST /api/query?arrays" } else { "POST /api/query" };
    http_json(target.to_owned(), Value::Object(body))
}

fn post_sub(draw: &mut Draw, world: &World, seconds: u64) -> Value {
    let series = series(draw, world);
    let mut sub = Map::new();
    sub.insert("aggregator".into(), json!(aggregator(draw)));
    if draw.chance(8) && !world.tsuids.is_empty() {
        let list: Vec<&String> = (0..draw.between(1, 2)).map(|_| draw.pick(&world.tsuids)).collect();
        sub.insert("tsuids".into(), json!(list));
    } else {
        sub.insert("metric".into(), json!(series.metric));
    }
    if draw.chance(50) {
        sub.insert("downsample".into(), json!(downsample_in(draw, world, seconds)));
    }
    if draw.chance(25) {
        sub.insert("rate".into(), json!(true));
        let (_, options) = rate(draw);
        if !options.is_null() {
            sub.insert("rateOptions".into(), options);
        }
    }
    if draw.chance(20) {
        let (key, value) = draw.pick(&series.tags).clone();
        let value = match draw.below(6) {
            0..3 => "*".to_owned(),
            3 => format!("{value}|a"),
            4 => draw
                .word(&["wildcard(*)", "literal_or(a|b)", "w*", "iliteral_or(WEB01)", "regexp(.*)", "nosuch(a)", ""])
                .to_owned(),
            _ => value,
        };
        sub.insert("tags".into(), json!({ key: value }));
    }
    if draw.chance(40) {
        let filters: Vec<Value> = (0..draw.between(1, 2))
            .map(|_| {
                let (kind, key, text) = filter(draw);
                json!({"type": kind, "tagk": key, "filter": text, "groupBy": draw.chance(50)})
            })
            .collect();
        sub.insert("filters".into(), Value::Array(filters));
    }
    if world.keeps_rollups() {
        sub.extend(rollup_usage(draw).map(|usage| ("rollupUsage".to_owned(), json!(usage))));
        if draw.chance(8) {
            sub.insert("preAggregate".into(), json!(true));
        }
        if draw.chance(8) {
            sub.insert("percentiles".into(), draw.pick(&[json!([50]), json!([1, 99.9]), json!([100, 75])]).clone());
        }
    }
    if draw.chance(8) {
        sub.insert("explicitTags".into(), json!(true));
    }
    Value::Object(sub)
}

/// The older path, as lines or as counts.
pub(crate) fn classic(draw: &mut Draw, world: &World) -> Step {
    let (start, end) = range(draw, world);
    let mut parts = vec![format!("start={}", time(draw, start))];
    if draw.chance(95) {
        parts.push(format!("end={}", time(draw, end)));
    }
    for _ in 0..subs_count(draw) {
        parts.push(format!("m={}", sub(draw, world, end.saturating_sub(start))));
        if draw.chance(15) {
            parts.push(format!("o={}", draw.word(&["", "axis%20x1y2", "axis%20x1y1"])));
        }
    }
    for _ in 0..draw.below(3) {
        let wish = draw.word(&[
            "wxh=400x300",
            "wxh=x",
            "wxh=0x0",
            "yrange=[0:100]",
            "ylog",
            "ylabel=a",
            "title=t",
            "key=out",
            "nokey",
            "style=linespoint",
            "smooth=csplines",
            "bgcolor=xffffff",
            "fgcolor=x000000",
            "tz=UTC",
            "tz=America/New_York",
            "ms",
            "show_tsuids",
            "global_annotations",
        ]);
        parts.push(wish.to_owned());
    }
    parts.push(if draw.chance(80) { "ascii" } else { "json" }.to_owned());
    let mut query = parts.join("&");
    if !query.contains("end=") && fills(&query) {
        query = format!("{query}&end={end}");
    }
    let mut step = http(format!("GET /q?{query}&nocache"));
    step.free = ["/timing", "/cachehit"].map(str::to_owned).to_vec();
    step
}
