//! Random requests that change nothing: which kind, and the parts that several kinds share.

mod formula;
mod names;
mod query;

use serde_json::{Value, json};

use super::draw::Draw;
use super::spoil::{self, target};
use super::world::{Series, World};
use crate::golden::scenario::Step;

pub(super) const AGGREGATORS: &[&str] = &[
    "sum",
    "min",
    "max",
    "avg",
    "count",
    "dev",
    "median",
    "mult",
    "diff",
    "first",
    "last",
    "none",
    "zimsum",
    "mimmin",
    "mimmax",
    "pfsum",
    "squareSum",
    "p50",
    "p75",
    "p90",
    "p95",
    "p99",
    "p999",
    "ep50r3",
    "ep50r7",
    "ep75r3",
    "ep90r7",
    "ep95r3",
    "ep99r7",
    "ep999r3",
    "ep999r7",
];

/// Of a hundred requests, so many have a body made odd.
const ODD_PERCENT: u64 = 15;

/// Of a hundred others, so many ask for a packed answer.
const PACKED_PERCENT: u64 = 8;

/// What they ask for.
const CODINGS: &[&str] = &[
    "gzip",
    "deflate",
    "gzip, deflate",
    "deflate, gzip;q=0.5",
    "gzip;q=0",
    "identity",
    "*",
    "br",
    "GZIP",
    "x-gzip",
    "",
];

/// Most buckets a fill policy may make up in one answer.
const BUCKETS_MAX: u64 = 400;

/// One request.
pub(crate) fn draw(draw: &mut Draw, world: &World) -> Step {
    if draw.chance(ODD_PERCENT) {
        return if draw.chance(50) { odd(draw, world) } else { odd_line(draw, world) };
    }
    let mut step = match draw.below(100) {
        0..38 => query::get(draw, world),
        38..66 => query::post(draw, world),
        66..70 => query::classic(draw, world),
        70..78 => formula::exp(draw, world),
        78..84 => formula::gexp(draw, world),
        84..89 => names::last(draw, world),
        89..92 => names::suggest(draw, world),
        92..95 => names::lookup(draw, world),
        95..98 => names::meta(draw, world),
        _ => names::service(draw),
    };
    if draw.chance(PACKED_PERCENT) {
        step.headers.push(("Accept-Encoding".to_owned(), draw.word(CODINGS).to_owned()));
    }
    step
}

/// One whose line is made odd.
fn odd_line(draw: &mut Draw, world: &World) -> Step {
    let step = match draw.below(9) {
        0..2 => query::get(draw, world),
        2 => query::post(draw, world),
        3 => query::classic(draw, world),
        4 => formula::gexp(draw, world),
        5 => names::last(draw, world),
        6 => names::suggest(draw, world),
        7 => names::meta(draw, world),
        _ => names::service(draw),
    };
    let mut odd = target::reading(draw, &step);
    // Else it may be answered from a file that another data set left there.
    if let Some(line) = odd.http.as_mut().filter(|line| line.contains("/q?") && !line.contains("&nocache")) {
        line.push_str("&nocache");
    }
    if spoil::widens(&step, &odd) { step } else { odd }
}

/// One whose body is made odd.
fn odd(draw: &mut Draw, world: &World) -> Step {
    let make = *draw.pick(&[query::post, formula::exp, names::last, names::suggest, names::lookup]);
    loop {
        let step = make(draw, world);
        if step.json.is_some() {
            let odd = spoil::body(draw, step.clone());
            return if spoil::widens(&step, &odd) { step } else { odd };
        }
    }
}

/// A request without a body.
pub(super) fn http(line: String) -> Step {
    Step { http: Some(line), ..Step::default() }
}

/// A request with a JSON body.
pub(super) fn http_json(line: String, body: Value) -> Step {
    Step { http: Some(line), json: Some(body), ..Step::default() }
}

/// A series of the data, or now and then one that is not there.
pub(super) fn series(draw: &mut Draw, world: &World) -> Series {
    let mut series = draw.pick(&world.series).clone();
    if draw.chance(2) {
        "no.such".clone_into(&mut series.metric);
    }
    series
}

/// A start that all kinds of queries take, and an end, in seconds.
pub(super) fn range(draw: &mut Draw, world: &World) -> (u64, u64) {
    let span = world.to - world.from;
    match draw.below(10) {
        0..5 => (world.from - draw.below(100), world.to + draw.below(100)),
        5..8 => {
            let start = world.from + draw.below(span);
            (start, start + 1 + draw.below(span))
        }
        8 => (world.from - 3600, world.from + draw.between(1, span)),
        _ => (world.from, world.to),
    }
}

/// A time as text, in one of the forms; `at` in seconds.
pub(super) fn time(draw: &mut Draw, at: u64) -> String {
    match draw.below(16) {
        0..8 => at.to_string(),
        8 | 9 => format!("{}", at * 1000 + draw.below(1000)),
        10 => format!("{at}.{:03}", draw.below(1000)),
        11..14 => {
            // To the second, the minute, the day, or a place where there is no date.
            let date = date(at);
            let cut = *draw.pick(&[19, 19, 16, 16, 10, 13, 7]);
            date[..cut].replacen('-', draw.word(&["-", "-", "%20", "T"]), 1)
        }
        14 => draw.word(&["x", "1h", "1q-ago", "-ago", "h-ago", "99999999999999"]).to_owned(),
        _ => format!("{at}000ms"),
    }
}

/// `2023/11/14-22:13:20`, in UTC.
fn date(at: u64) -> String {
    let (days, second) = (at / 86400, at % 86400);
    // Days since 0000-03-01, in eras of 400 years; see any calendar algorithm.
    let shifted = days + 719_468;
    let (era, day_of_era) = (shifted / 146_097, shifted % 146_097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_index = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_index + 2) / 5 + 1;
    let month = if month_index < 10 { month_index + 3 } else { month_index - 9 };
    let year = year_of_era + era * 400 + u64::from(month <= 2);
    format!("{year:04}/{month:02}/{day:02}-{:02}:{:02}:{:02}", second / 3600, second / 60 % 60, second % 60)
}

pub(super) fn aggregator(draw: &mut Draw) -> &'static str {
    match draw.below(100) {
        0 if draw.chance(30) => "nosuch",
        0..30 => draw.word(&["sum", "avg", "max", "min", "none", "count"]),
        _ => draw.word(AGGREGATORS),
    }
}

/// A downsampling specifier over a range of so many seconds.
pub(super) fn downsample(draw: &mut Draw, seconds: u64) -> String {
    let function = loop {
        let name = aggregator(draw);
        if name != "none" || draw.chance(5) {
            break name;
        }
    };
    let fill = match draw.below(10) {
        0..5 => "",
        5 => "-none",
        6 => "-nan",
        7 => "-null",
        8 => "-zero",
        _ => draw.word(&["-nan", "-zero", "-scalar", "-what"]),
    };
    if draw.chance(8) {
        return format!("0all-{function}{fill}");
    }
    if draw.chance(2) {
        let wrong = [
            "1m",
            "m-avg",
            "1m-avg-",
            "1mavg",
            "-1m-avg",
            "1.5m-avg",
            "1q-avg",
            "1m-avg-nan-x",
            "0m-avg",
            "1m--nan",
            "all-avg",
            "1all-avg",
            "1mc-avg",
            "1M-avg",
            "1m-AVG",
            "0allc-sum",
        ];
        return draw.word(&wrong).to_owned();
    }
    let units: &[(&str, u64)] = &[
        ("ms", 0),
        ("s", 1),
        ("m", 60),
        ("h", 3600),
        ("d", 86400),
        ("w", 7 * 86400),
        ("n", 30 * 86400),
        ("y", 365 * 86400),
    ];
    loop {
        let (unit, length) = *draw.pick(units);
        let count = *draw.pick(&[1, 1, 1, 2, 3, 4, 5, 6, 7, 10, 12, 14, 15, 24, 30, 45, 60, 90, 100, 500]);
        let buckets = if length == 0 { seconds * 1000 / count } else { seconds / (length * count) };
        // Over intervals of decades the scan's end passes 32 bits, and OpenTSDB takes it for milliseconds.
        if length * count <= 10 * 365 * 86400 && buckets <= BUCKETS_MAX && (buckets > 0 || draw.chance(20)) {
            let calendar = if length >= 60 && draw.chance(20) { "c" } else { "" };
            return format!("{count}{unit}{calendar}-{function}{fill}");
        }
    }
}

/// A filter's type and text for a tag key that the metric has (or nearly so).
pub(super) fn filter(draw: &mut Draw) -> (&'static str, &'static str, String) {
    let (key, values): (_, &[&str]) = match draw.below(40) {
        0 => ("nokey", &["x"]),
        1..22 => ("host", &["a", "b", "web01", "web02", "Web01", "x.y-z_1", "nohost"]),
        22..34 => ("dc", &["lga", "phx"]),
        _ => ("cpu", &["0", "1", "2"]),
    };
    // Mistakes are drawn seldom: of two in one request either may be told first.
    let kind = if draw.chance(2) {
        "not_key"
    } else {
        draw.word(&[
            "literal_or",
            "iliteral_or",
            "not_literal_or",
            "not_iliteral_or",
            "wildcard",
            "iwildcard",
            "regexp",
        ])
    };
    let value = *draw.pick(values);
    let text = match kind {
        "wildcard" | "iwildcard" => match draw.below(6) {
            0 => draw.word(&["*", "*", "**", "*.*", "*0*1", "w**1"]).to_owned(),
            1 => format!("{}*", value.get(..1).unwrap_or_default()),
            2 => format!("*{}", value.get(value.len() - 1..).unwrap_or_default()),
            3 => "w*0*".to_owned(),
            4 => "w*1".to_owned(),
            _ => value.to_owned(),
        },
        "regexp" => draw
            .word(&[
                "web.*",
                "[ab]",
                "^a$",
                ".*",
                "0[12]",
                "WEB",
                "x.y",
                "(a",
                "lga|phx",
                "(?i)WEB",
                "\\d+$",
                "^web\\d{2}$",
                "[^a-w]",
                "a?",
                "^(a|b)$",
                "^.{3}$",
                "x\\.y",
                "\\w-\\w",
                "^$",
                "[a&&b]",
                "\\Qx.y\\E",
                "^\\p{Lu}",
            ])
            .to_owned(),
        "not_key" => String::new(),
        _ if draw.chance(40) => format!("{value}|{}", draw.pick(values)),
        _ if draw.chance(8) => {
            draw.word(&["", "|", "a|", "|a", "a||b", "a|a", "%20a", "A|B", "*", "web*", "a|b|web01|nohost"]).to_owned()
        }
        _ => value.to_owned(),
    };
    (kind, key, text)
}

/// `rateOptions`, and the same for `m`.
pub(super) fn rate(draw: &mut Draw) -> (String, Value) {
    match draw.below(11) {
        0..3 => ("rate".to_owned(), json!(null)),
        3 => ("rate{counter}".to_owned(), json!({"counter": true})),
        4 => ("rate{counter,65535}".to_owned(), json!({"counter": true, "counterMax": 65535})),
        5 => ("rate{counter,,10}".to_owned(), json!({"counter": true, "resetValue": 10})),
        6 => ("rate{dropcounter}".to_owned(), json!({"counter": true, "dropResets": true})),
        7 => (
            "rate{counter,,1}".to_owned(),
            json!({"counter": false, "counterMax": 100, "resetValue": 1, "dropResets": true}),
        ),
        8 if draw.chance(30) => {
            let text = draw.word(&[
                "rate{}",
                "rate{x}",
                "rate{counter,x}",
                "rate{counter,1,2,3}",
                "rate{counter,}",
                "rate{counter,,}",
                "rate{,1}",
                "rate{counter,-5}",
                "rate{counter,9223372036854775808}",
                "rate{dropcounter,100,5}",
                "rate{counter",
                "Rate",
            ]);
            (text.to_owned(), json!({"counter": "true", "counterMax": "100", "resetValue": -1}))
        }
        _ => {
            let (max, reset) = (draw.below(100_000), draw.below(500));
            let options =
                json!({"counter": true, "counterMax": max, "resetValue": reset, "dropResets": draw.chance(30)});
            (format!("rate{{counter,{max},{reset}}}"), options)
        }
    }
}
