//! Every endpoint with every parameter that it, or OpenTSDB's of the same name, reads.

use serde_json::Value;

use super::payloads::Payload;

/// One path.
#[derive(Debug)]
pub(super) struct Endpoint {
    pub(super) path: &'static str,
    /// Tried with each parameter; all but GET with each member of the body too.
    pub(super) methods: &'static [&'static str],
    /// Beside the one under attack, so that the request gets as far as it can.
    pub(super) given: &'static str,
    pub(super) parameters: &'static str,
    /// A body that is right; each member and each name in it is attacked in turn. Empty for none.
    pub(super) body: &'static str,
}

const GET: &[&str] = &["GET"];
const BOTH: &[&str] = &["GET", "POST"];
const ALL: &[&str] = &["GET", "POST", "PUT", "DELETE"];

const fn endpoint(
    path: &'static str,
    methods: &'static [&'static str],
    given: &'static str,
    parameters: &'static str,
    body: &'static str,
) -> Endpoint {
    Endpoint { path, methods, given, parameters, body }
}

/// What `/q` takes in any form.
const GRAPH: &str = "start end m tsuid o tz timezone wxh yrange y2range ylabel y2label yformat y2format xformat ylog y2log key \
    nokey title bgcolor fgcolor smooth style nocache ignore traceid show_tsuids jsonp _";

/// What any endpoint of the API takes.
pub(super) const ENDPOINTS: &[Endpoint] = &[
    endpoint("/", GET, "", "x", ""),
    endpoint("/q", GET, "start=1h-ago&m=sum:m", GRAPH, ""),
    endpoint("/q?ascii", GET, "start=1h-ago&m=sum:m", GRAPH, ""),
    endpoint("/q?json", GET, "start=1h-ago&m=sum:m", GRAPH, ""),
    endpoint("/q?png", GET, "start=1h-ago&m=sum:m", GRAPH, ""),
    endpoint("/q?html", GET, "start=1h-ago&m=sum:m", GRAPH, ""),
    endpoint("/s", GET, "", "file path", ""),
    endpoint("/suggest", GET, "type=metrics", "type q max jsonp", ""),
    endpoint("/aggregators", GET, "", "jsonp", ""),
    endpoint("/logs", GET, "", "level logger json", ""),
    endpoint("/stats", GET, "", "json include", ""),
    endpoint("/version", GET, "", "json x", ""),
    endpoint("/dropcaches", GET, "", "x", ""),
    endpoint("/favicon.ico", GET, "", "x", ""),
    endpoint("/nosuch", GET, "", "json x", ""),
    endpoint("/healthz", GET, "", "x", ""),
    endpoint("/readyz", GET, "", "x", ""),
    endpoint("/metrics", GET, "", "x", ""),
    endpoint(
        "/api/put",
        BOTH,
        "",
        "summary details sync sync_timeout serializer jsonp method_override",
        r#"[{"metric":"m","timestamp":1700000001,"value":1,"tags":{"h":"a"}}]"#,
    ),
    endpoint(
        "/api/rollup",
        BOTH,
        "details",
        "summary details sync sync_timeout",
        r#"[{"metric":"m","timestamp":1700000001,"value":1,"tags":{"h":"a"},"interval":"1h","aggregator":"sum","groupByAggregator":"sum"}]"#,
    ),
    endpoint(
        "/api/histogram",
        BOTH,
        "details",
        "summary details sync sync_timeout",
        r#"[{"metric":"m","timestamp":1700000001,"id":1,"value":"AAAA","overflow":1,"underflow":1,"buckets":{"0,1":2},"tags":{"h":"a"}}]"#,
    ),
    endpoint(
        "/api/query",
        ALL,
        "start=1h-ago&m=sum:m",
        "start end m tsuid tsuids timezone use_calendar padding no_annotations global_annotations show_tsuids ms show_query \
         show_stats show_summary arrays jsonp method_override serializer traceid",
        r#"{"start":1700000000,"end":1700000100,"timezone":"UTC","useCalendar":false,"delete":false,"queries":[{"metric":"m",
            "aggregator":"sum","downsample":"1m-avg","tsuids":[],"rate":true,"rateOptions":{"counter":true,"counterMax":5,
            "resetValue":1,"dropResets":false},"filters":[{"type":"wildcard","tagk":"h","filter":"*","groupBy":true}],
            "tags":{"h":"a"},"explicitTags":false,"percentiles":[1.0],"rollupUsage":"ROLLUP_RAW","showHistogramBuckets":false}],
            "msResolution":true,"showTSUIDs":true,"showQuery":true,"showSummary":true,"showStats":true,"globalAnnotations":true}"#,
    ),
    endpoint(
        "/api/query/last",
        BOTH,
        "timeseries=m",
        "timeseries tsuids resolve back_scan jsonp",
        r#"{"queries":[{"metric":"m","tags":{"h":"a"}},{"tsuids":["000001000001000001"]}],"resolveNames":true,"backScan":1}"#,
    ),
    endpoint("/api/query/gexp", GET, "start=1h-ago&exp=scale(sum:m,2)", "start end exp m timezone jsonp", ""),
    endpoint(
        "/api/query/exp",
        BOTH,
        "",
        "jsonp",
        r#"{"name":"n","time":{"start":"1h-ago","end":"now","timezone":"UTC","aggregator":"sum","downsampler":{"interval":"1m",
            "aggregator":"avg","fillPolicy":{"policy":"zero"}}},"filters":[{"id":"f","tags":[{"type":"wildcard","tagk":"h",
            "filter":"*","groupBy":true}]}],"metrics":[{"id":"a","metric":"m","filter":"f","aggregator":"sum",
            "fillPolicy":{"policy":"zero"},"timeOffset":"0"}],"expressions":[{"id":"e","expr":"a + a","join":{"operator":"union",
            "useQueryTags":true,"includeAggTags":true}}],"outputs":[{"id":"e","alias":"x"}]}"#,
    ),
    endpoint("/api/suggest", BOTH, "type=metrics", "type q max jsonp", r#"{"type":"metrics","q":"m","max":5}"#),
    endpoint("/api/aggregators", BOTH, "", "jsonp", ""),
    endpoint("/api/version", BOTH, "", "jsonp json", ""),
    endpoint("/api/config", BOTH, "", "jsonp", ""),
    endpoint("/api/config/filters", BOTH, "", "jsonp", ""),
    endpoint("/api/dropcaches", BOTH, "", "jsonp", ""),
    endpoint("/api/serializers", BOTH, "", "jsonp", ""),
    endpoint("/api/status", BOTH, "", "jsonp", ""),
    endpoint("/api/stats", BOTH, "", "jsonp", ""),
    endpoint("/api/stats/jvm", BOTH, "", "jsonp", ""),
    endpoint("/api/stats/query", BOTH, "", "jsonp", ""),
    endpoint("/api/stats/threads", BOTH, "", "jsonp", ""),
    endpoint("/api/stats/region_clients", BOTH, "", "jsonp", ""),
    endpoint("/api/logs", BOTH, "", "level logger jsonp", ""),
    endpoint(
        "/api/annotation",
        ALL,
        "start_time=1700000000",
        "start_time end_time tsuid description notes custom method_override jsonp",
        r#"{"startTime":1700000000,"endTime":1700000001,"tsuid":"000001000001000001","description":"d","notes":"n","custom":{"a":"b"}}"#,
    ),
    endpoint(
        "/api/annotation/bulk",
        ALL,
        "start_time=1700000000&global",
        "start_time end_time tsuids global method_override jsonp",
        r#"[{"startTime":1700000000,"endTime":1700000001,"description":"d","notes":"n","custom":{"a":"b"}}]"#,
    ),
    endpoint("/api/annotations", ALL, "start_time=1700000000", "start_time end_time method_override jsonp", ""),
    endpoint("/api/uid/assign", BOTH, "", "metric tagk tagv jsonp", r#"{"metric":["a"],"tagk":["b"],"tagv":["c"]}"#),
    endpoint("/api/uid/rename", BOTH, "metric=m", "metric tagk tagv name jsonp", r#"{"metric":"zz","name":"yy"}"#),
    endpoint(
        "/api/uid/uidmeta",
        ALL,
        "uid=000001&type=metric",
        "uid type display_name description notes method_override jsonp",
        r#"{"uid":"000001","type":"metric","displayName":"d","description":"e","notes":"n","custom":{"a":"b"},"created":1}"#,
    ),
    endpoint(
        "/api/uid/tsmeta",
        ALL,
        "tsuid=000001000001000001",
        "tsuid m create display_name description notes units data_type retention max min method_override jsonp",
        r#"{"tsuid":"000001000001000001","displayName":"d","description":"e","notes":"n","custom":{"a":"b"},"units":"u",
            "dataType":"t","retention":1,"max":2,"min":1,"created":1}"#,
    ),
    endpoint(
        "/api/search/lookup",
        BOTH,
        "m=m",
        "m limit start_index use_meta query jsonp",
        r#"{"metric":"m","tags":[{"key":"h","value":"a"}],"limit":5,"startIndex":0,"useMeta":true}"#,
    ),
    endpoint("/api/search/tsmeta", BOTH, "query=*", "query limit start_index jsonp", r#"{"query":"*","limit":1}"#),
    endpoint(
        "/api/tree",
        ALL,
        "treeid=1",
        "treeid name description notes strict_match enabled store_failures definition method_override jsonp",
        r#"{"treeId":1,"name":"n","description":"d","notes":"n","strictMatch":false,"enabled":false,"storeFailures":false}"#,
    ),
    endpoint("/api/tree/branch", GET, "treeid=1", "treeid branch jsonp", ""),
    endpoint(
        "/api/tree/rule",
        ALL,
        "treeid=1&level=0&order=0",
        "treeid level order type field custom_field regex separator description notes regex_group_idx display_format \
         method_override jsonp",
        r#"{"treeId":1,"level":0,"order":0,"type":"METRIC","field":"f","customField":"c","regex":"(a)","separator":".",
            "description":"d","notes":"n","regexGroupIdx":0,"displayFormat":"{value}"}"#,
    ),
    endpoint(
        "/api/tree/rules",
        ALL,
        "treeid=1",
        "treeid method_override jsonp",
        r#"[{"treeId":1,"level":0,"order":0,"type":"METRIC","regex":"(a)"}]"#,
    ),
    endpoint(
        "/api/tree/test",
        BOTH,
        "treeid=1&tsuids=000001000001000001",
        "treeid tsuids jsonp",
        r#"{"treeId":1,"tsuids":["000001000001000001"]}"#,
    ),
    endpoint(
        "/api/tree/collisions",
        BOTH,
        "treeid=1",
        "treeid tsuids jsonp",
        r#"{"treeId":1,"tsuids":["000001000001000001"]}"#,
    ),
    endpoint(
        "/api/tree/notmatched",
        BOTH,
        "treeid=1",
        "treeid tsuids jsonp",
        r#"{"treeId":1,"tsuids":["000001000001000001"]}"#,
    ),
];

impl Endpoint {
    /// The target with one parameter under attack; it comes last, so that it counts.
    pub(super) fn target_with(&self, name: &str, payload: &Payload) -> String {
        let mark = if self.path.contains('?') { '&' } else { '?' };
        format!("{}{mark}{}&{name}={}", self.path, self.given, payload.escaped())
    }

    /// The body with the payload in place of each value, and of each name, one at a time.
    pub(super) fn bodies_with(&self, payload: &Payload) -> Vec<String> {
        if self.body.is_empty() {
            return Vec::new();
        }
        let whole: Value = serde_json::from_str(self.body).unwrap();
        let mut bodies = vec![payload.text.clone(), Value::String(payload.text.clone()).to_string()];
        for place in 0..places(&whole) {
            let mut body = whole.clone();
            replace(&mut body, &mut place.clone(), payload);
            bodies.push(body.to_string());
        }
        bodies
    }
}

/// Values that hold no others, and names of members.
fn places(value: &Value) -> usize {
    match value {
        Value::Array(items) => items.iter().map(places).sum(),
        Value::Object(members) => members.values().map(|member| 1 + places(member)).sum(),
        _ => 1,
    }
}

/// Puts the payload in the place that `left` counts down to; `true` when it is done.
fn replace(value: &mut Value, left: &mut usize, payload: &Payload) -> bool {
    let mut take = || {
        let here = *left == 0;
        *left = left.wrapping_sub(1);
        here
    };
    match value {
        Value::Array(items) => items.iter_mut().any(|item| replace(item, left, payload)),
        Value::Object(members) => {
            let names: Vec<String> = members.keys().cloned().collect();
            for name in names {
                if *left == 0 {
                    let member = members.remove(&name).unwrap();
                    members.insert(payload.text.clone(), member);
                    return true;
                }
                *left -= 1;
                if replace(&mut members[&name], left, payload) {
                    return true;
                }
            }
            false
        }
        scalar => {
            let here = take();
            if here {
                *scalar = Value::String(payload.text.clone());
            }
            here
        }
    }
}
