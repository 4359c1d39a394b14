//! Lines of telnet: points good and bad, in odd spacing and of odd numbers, and other commands between them.

use super::super::draw::Draw;
use super::super::world::World;
use crate::golden::scenario::Step;

/// Values that a point may have, or nearly so.
const VALUES: &[&str] = &[
    "1",
    "-1",
    "0",
    "-0",
    "+1",
    "1.5",
    "-1.5",
    ".5",
    "1.",
    "1e3",
    "1E-3",
    "1e400",
    "1e-400",
    "0x10",
    "0x1p3",
    "NaN",
    "nan",
    "Infinity",
    "-Infinity",
    "inf",
    "1f",
    "1d",
    "1L",
    "1,5",
    "1_000",
    "9223372036854775807",
    "9223372036854775808",
    "-9223372036854775808",
    "0.1234567890123456789",
    "00012",
    "",
    "x",
    "1;",
    "'1'",
    "true",
];

/// The same of times, but for milliseconds beyond 32 bits of seconds, which OpenTSDB loses.
const TIMES: &[&str] = &[
    "0",
    "-1",
    "1",
    "x",
    "",
    "1.5",
    "now",
    "1h-ago",
    "2023/11/14",
    "99999999999",
    "99999999999999",
    "1700000000.123",
    "1700000000.1234",
    "1700000000.1",
    "1700000000123",
    "17000000001234",
    "0x65",
    "+1700000000",
    "4294967295",
    "4294967296",
];

pub(super) fn draw(draw: &mut Draw, world: &World) -> Step {
    let lines =
        (0..draw.between(1, 4)).map(|place| if draw.chance(15) { command(draw) } else { point(draw, world, place) });
    Step { telnet: lines.collect(), latin1: draw.chance(10), ..Step::default() }
}

/// No `diediedie`, none whose answer is the server's own, no letter beyond ASCII that makes a name, and no `exit`: OpenTSDB reads on
/// as far as one packet goes.
fn command(draw: &mut Draw) -> String {
    let line = draw.word(&[
        "put",
        "nosuch",
        "nosuch x y",
        "",
        " ",
        "\t",
        "dropcaches",
        "dropcaches x",
        "DROPCACHES",
        "rollup",
        "rollup 1h-sum",
        "rollup 1h-sum a 1700000000 1 host=a",
        "histogram",
        "histogram a 1700000000 0 00 host=a",
        "histogram a 1700000000 1:2 host=a",
        "auth",
        "auth basic a b",
        "fail",
        "put put put put put=put",
        "?",
        "\u{1}",
        "{\"a\": 1}",
    ]);
    line.to_owned()
}

fn point(draw: &mut Draw, world: &World, place: u64) -> String {
    let series = draw.pick(&world.series).clone();
    let at = world.from + draw.below((world.to - world.from) / 8) * 8 + place;
    let (metric, tags) = (series.metric.clone(), series.tags_text(" "));
    match draw.below(32) {
        0 => format!("put {metric} {at} {tags}"),
        1 => format!("put {metric} {at} 1"),
        2 => format!(
            "put {metric} {at} 1 {}",
            draw.word(&["host", "host=", "=a", "=", "host=a=b", "a b", "host=a,dc=b", "host==a", "host =a", "host= a"])
        ),
        3 => format!("put {metric} {at} 1 {tags} {}", draw.word(&["host=other", "host", "x", "=", "dc=lga", "host=a"])),
        4 => format!("put {} {at} 1 {tags}", draw.word(&["a!b", "a b", "", "a:b", "a{b}", "a,b", "a=b"])),
        5 => format!(
            "put {metric} {at} 1 {}",
            draw.word(&["host=a!b", "host=a:b", "ho!st=a", "host=a*", "host=*", "a:b=c", "host=a|b", "host={a}"])
        ),
        6 => {
            let many: Vec<String> = (0..draw.between(7, 10)).map(|tag| format!("t{tag}=a")).collect();
            format!("put {metric} {at} x {}", many.join(" "))
        }
        7 => format!("put {metric}  {at} 2 {tags}"),
        8 => format!(" put {metric} {at} 2 {tags}"),
        9 => format!("put {metric} {at} 2 {tags} "),
        10 => format!("put {metric} {at} 2 {tags}\r"),
        11 => format!("put\t{metric} {at} 2 {tags}"),
        12 => format!("put {metric} {at}  2  {tags}"),
        13 => format!("put {metric} {at}.250 2 {tags}"),
        14 => format!("put {metric} {} 2 {tags}", at * 1000 + 5),
        15 => format!("put {metric} {at} x{} {tags}", "y".repeat(draw.index(3) * 700)),
        16..19 => format!("put {metric} {} 1 {tags}", draw.word(TIMES)),
        19..26 => format!("put {metric} {at} {} {tags}", draw.word(VALUES)),
        _ => format!("put {metric} {at} {}.5 {tags}", draw.below(100)),
    }
}
