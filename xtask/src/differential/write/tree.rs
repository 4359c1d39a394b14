//! Trees: made, changed, tried on series, read and deleted; by query string and by body.

use serde_json::{Map, Value, json};

use super::super::ask::{http, http_json};
use super::super::draw::Draw;
use super::super::world::World;
use crate::golden::scenario::Step;

/// Trees there may be, and one more.
const TREES: u64 = 3;

pub(super) fn draw(draw: &mut Draw, world: &World) -> Step {
    match draw.below(20) {
        0..4 => tree(draw),
        4..9 => rule(draw),
        9..11 => rules(draw),
        11 => read(draw, "branch"),
        12..15 => tried(draw, world),
        15 => failures(draw, world),
        16 => http(format!(
            "GET /api/tree{}",
            draw.word(&["", "?treeid=1", "?treeid=2", "?treeid=9", "?treeid=x", "/nosuch"])
        )),
        17 => http(format!(
            "DELETE /api/tree?treeid={}{}",
            draw.between(1, TREES),
            draw.word(&["", "&definition=true", "&definition=x"])
        )),
        _ => meta(draw, world),
    }
}

fn tree(draw: &mut Draw) -> Step {
    let mut body = Map::new();
    if draw.chance(50) {
        body.insert("treeId".into(), json!(draw.between(1, TREES)));
    }
    if draw.chance(70) {
        body.insert("name".into(), json!(draw.word(&["one", "two", ""])));
    }
    for key in ["description", "notes"] {
        if draw.chance(30) {
            body.insert(key.into(), json!(format!("{key} {}", draw.below(3))));
        }
    }
    for key in ["strictMatch", "enabled", "storeFailures"] {
        if draw.chance(30) {
            body.insert(key.into(), json!(draw.chance(60)));
        }
    }
    asked(draw, "tree", body, &["POST", "POST", "PUT", "GET", "DELETE"])
}

/// By a body, or by a query string in the names that it has there.
fn asked(draw: &mut Draw, path: &str, body: Map<String, Value>, methods: &[&'static str]) -> Step {
    let method = draw.word(methods);
    let mut step = if draw.chance(60) {
        http_json(format!("{method} /api/{path}"), Value::Object(body))
    } else {
        let pairs: Vec<String> =
            body.iter().map(|(key, value)| format!("{}={}", in_line(key), escaped(value))).collect();
        http(format!("{method} /api/{path}?{}", pairs.join("&")))
    };
    step.free = vec!["/created".to_owned()];
    step
}

/// `treeId` is `treeid` there, `storeFailures` is `store_failures`.
fn in_line(key: &str) -> String {
    if key == "treeId" {
        return "treeid".to_owned();
    }
    key.chars().fold(String::new(), |text, sign| {
        if sign.is_uppercase() { format!("{text}_{}", sign.to_lowercase()) } else { format!("{text}{sign}") }
    })
}

fn escaped(value: &Value) -> String {
    let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let sign =
        |sign: char| if sign.is_ascii_alphanumeric() { sign.to_string() } else { format!("%{:02X}", u32::from(sign)) };
    text.chars().map(sign).collect()
}

fn rule_of(draw: &mut Draw, tree: u64) -> Map<String, Value> {
    let mut rule = Map::new();
    rule.insert("treeId".into(), json!(tree));
    rule.insert("level".into(), json!(draw.below(4)));
    rule.insert("order".into(), json!(draw.below(2)));
    if draw.chance(90) {
        rule.insert(
            "type".into(),
            json!(draw.word(&[
                "METRIC",
                "TAGK",
                "TAGK",
                "METRIC_CUSTOM",
                "TAGK_CUSTOM",
                "TAGV_CUSTOM",
                "metric",
                "nosuch"
            ])),
        );
    }
    let parts: &[(&str, &[&str])] = &[
        ("field", &["host", "dc", "cpu", "nosuch"]),
        ("customField", &["owner", "x"]),
        ("separator", &[".", "-", "\\.", "_", "", "0"]),
        ("regex", &["^(.).*", "(\\w+)\\.(\\w+)", ".*(\\d)", "^web(.*)$", "(", "nosuch", "(?i)WEB(.)"]),
        ("displayFormat", &["{ovalue}", "{value}", "{tag_name}: {value}", "{tsuid}", "{nosuch}", "x", "{value"]),
        ("description", &["d"]),
        ("notes", &["n"]),
    ];
    for (key, texts) in parts {
        if draw.chance(30) {
            rule.insert((*key).into(), json!(draw.word(texts)));
        }
    }
    if draw.chance(25) {
        rule.insert("regexGroupIdx".into(), json!(draw.below(3)));
    }
    rule
}

fn rule(draw: &mut Draw) -> Step {
    let tree = draw.between(1, TREES);
    let rule = rule_of(draw, tree);
    asked(draw, "tree/rule", rule, &["POST", "POST", "POST", "PUT", "GET", "DELETE"])
}

fn rules(draw: &mut Draw) -> Step {
    let tree = draw.between(1, TREES);
    let rules: Vec<Value> = (0..draw.between(1, 3))
        .map(|_| {
            let tree = if draw.chance(5) { tree + 1 } else { tree };
            Value::Object(rule_of(draw, tree))
        })
        .collect();
    match draw.below(6) {
        0 => http(format!("DELETE /api/tree/rules?treeid={tree}")),
        1 => http_json("PUT /api/tree/rules".to_owned(), json!(rules)),
        _ => http_json("POST /api/tree/rules".to_owned(), json!(rules)),
    }
}

fn read(draw: &mut Draw, path: &str) -> Step {
    let asked = draw.word(&[
        "treeid=1",
        "treeid=2",
        "branch=0001",
        "branch=00010001BECD",
        "branch=000",
        "branch=zz",
        "",
        "treeid=0",
    ]);
    http(format!("GET /api/tree/{path}?{asked}"))
}

/// What a tree would make of series.
fn tried(draw: &mut Draw, world: &World) -> Step {
    let tree = draw.between(1, TREES);
    let list: Vec<&str> = world.tsuids.iter().map(String::as_str).filter(|_| draw.chance(50)).collect();
    if draw.chance(50) {
        return http(format!("GET /api/tree/test?treeid={tree}&tsuids={}", list.join(",")));
    }
    http_json("POST /api/tree/test".to_owned(), json!({"treeId": tree, "tsuids": list.join(",")}))
}

fn failures(draw: &mut Draw, world: &World) -> Step {
    let kind = draw.word(&["collisions", "notmatched"]);
    let tsuids = world.tsuids.first().filter(|_| draw.chance(30)).map(|tsuid| format!("&tsuids={tsuid}"));
    http(format!("GET /api/tree/{kind}?treeid={}{}", draw.between(1, TREES), tsuids.unwrap_or_default()))
}

/// The object of a series, without which no tree looks at it, and custom fields that rules read.
fn meta(draw: &mut Draw, world: &World) -> Step {
    if draw.chance(60) {
        let series = draw.pick(&world.series);
        let create = draw.word(&["&create=true", "&create=true", "", "&create=false"]);
        let line = format!("POST /api/uid/tsmeta?m={}{{{}}}{create}", series.metric, series.tags_text(","));
        return http_json(line, json!({"description": "made", "custom": {"owner": draw.word(&["ann", "bob"])}}));
    }
    let kind = draw.word(&["metric", "tagk", "tagv"]);
    let body = json!({"uid": format!("{:06}", draw.between(1, 4)), "type": kind, "custom": {"owner": draw.word(&["ann.x", "bob"]), "x": 1}});
    let mut step = http_json(format!("{} /api/uid/uidmeta", draw.word(&["POST", "PUT"])), body);
    step.free = vec!["/created".to_owned()];
    step
}

#[cfg(test)]
mod tests {
    use super::{escaped, in_line};
    use serde_json::json;

    #[test]
    fn members_have_other_names_in_a_query_string() {
        let names = ["treeId", "regexGroupIdx", "notes"].map(in_line);
        assert_eq!(names, ["treeid", "regex_group_idx", "notes"]);
        assert_eq!([escaped(&json!("^(a)")), escaped(&json!(true))], ["%5E%28a%29", "true"]);
    }
}
