//! A report as one HTML file: the table, and plots as SVG, without a script or anything from elsewhere.

use std::fmt::Write as _;

use super::recorder::SECONDS_MAX;
use super::report::{Line, Report};
use crate::http::page::escape;

const WIDTH: f64 = 720.0;
const HEIGHT: f64 = 220.0;
/// Room for the marks at the left and below.
const LEFT: f64 = 70.0;
const BELOW: f64 = 30.0;
/// Marks at an axis.
const MARKS: u32 = 4;

/// The whole page.
pub(crate) fn page(report: &Report) -> String {
    let mut html = String::from(HEAD);
    add(
        &mut html,
        format_args!("<h1>basalt bench</h1><p>{}</p><pre>{}</pre>", escape(&report.url), escape(&report.command)),
    );
    add(&mut html, format_args!("<pre>{}</pre>", escape(&report.table())));
    for line in &report.lines {
        add(&mut html, format_args!("<h2>{}</h2>", escape(&line.name)));
        // One bar says nothing.
        if line.done_each_second.len() > 2 {
            let seconds = (0_u32..).map(f64::from).zip(line.done_each_second.iter().map(|done| as_f64(*done)));
            let of_day = if line.done_each_second.len() < SECONDS_MAX { "" } else { " of the first day" };
            let title = format!("{} in each second{of_day}", report.unit);
            html += &plot(&title, &seconds.collect::<Vec<_>>(), Axis::Plain);
        }
        html += &plot("latency, ms, by the share of requests", &quantiles(line), Axis::Nines);
    }
    html + "</body></html>\n"
}

const HEAD: &str = "<!DOCTYPE html><html lang=\"en\"><head><meta charset=\"utf-8\"><title>basalt bench</title><style>\
    body{font:15px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem;color:#222}\
    pre{background:#f4f4f2;padding:.7rem;overflow-x:auto;font-size:13px}h2{margin-top:2rem;font-size:1.1rem}\
    svg{display:block;margin:.6rem 0}text{font:12px system-ui,sans-serif;fill:#444}</style></head><body>";

/// How places along a plot are marked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Axis {
    Plain,
    /// The share of requests by its nines: 0.9 is 1, 0.99 is 2.
    Nines,
}

/// The curve of latencies, its shares as numbers of nines.
fn quantiles(line: &Line) -> Vec<(f64, f64)> {
    let whole = line.latency_curve.iter().filter(|(share, _)| *share < 1.0);
    whole.map(|(share, ms)| (-(1.0 - share).log10(), *ms)).collect()
}

/// A line through points, which come in order of x.
fn plot(title: &str, points: &[(f64, f64)], axis: Axis) -> String {
    let right = points.last().map_or(1.0, |(x, _)| *x).max(1e-9);
    let top = points.iter().map(|(_, y)| *y).fold(0.0, f64::max).max(1e-9) * 1.05;
    let at = |x: f64, y: f64| (LEFT + x / right * (WIDTH - LEFT - 10.0), (HEIGHT - BELOW) * (1.0 - y / top) + 14.0);
    let mut svg = format!("<svg width=\"{WIDTH}\" height=\"{}\" role=\"img\" aria-label=\"{title}\">", HEIGHT + 14.0);
    add(&mut svg, format_args!("<text x=\"{LEFT}\" y=\"11\">{title}</text>"));
    for mark in 0..=MARKS {
        let part = f64::from(mark) / f64::from(MARKS);
        let ((left, y), (x, bottom)) = (at(0.0, top * part), at(right * part, 0.0));
        add(&mut svg, format_args!("<path d=\"M{left:.1} {y:.1}H{WIDTH}\" stroke=\"#ddd\" fill=\"none\"/>"));
        let beside = left - 6.0;
        add(
            &mut svg,
            format_args!(
                "<text x=\"{beside:.1}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>",
                y + 4.0,
                short(top * part)
            ),
        );
        let under = match axis {
            Axis::Plain => format!("{} s", short(right * part)),
            Axis::Nines => format!("{:.4} %", 100.0 * (1.0 - 10_f64.powf(-right * part))),
        };
        add(
            &mut svg,
            format_args!("<text x=\"{x:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{under}</text>", bottom + 16.0),
        );
    }
    svg += "<path fill=\"none\" stroke=\"#1f6feb\" stroke-width=\"1.5\" d=\"";
    for (index, (x, y)) in points.iter().enumerate() {
        let (x, y) = at(*x, *y);
        add(&mut svg, format_args!("{}{x:.1} {y:.1}", if index == 0 { 'M' } else { 'L' }));
    }
    svg + "\"/></svg>"
}

/// A number with few digits.
fn short(number: f64) -> String {
    match number {
        n if n >= 1e6 => format!("{:.2}M", n / 1e6),
        n if n >= 1e4 => format!("{:.0}k", n / 1e3),
        n if n >= 10.0 => format!("{n:.0}"),
        n => format!("{n:.2}"),
    }
}

#[expect(clippy::cast_precision_loss, reason = "a place in a picture; counts stay below 2⁵³")]
fn as_f64(count: u64) -> f64 {
    count as f64
}

fn add(text: &mut String, arguments: std::fmt::Arguments<'_>) {
    // Writing to a string cannot fail.
    text.write_fmt(arguments).unwrap_or_default();
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::super::Run;
    use super::super::recorder::Recorder;
    use super::*;

    fn report() -> Report {
        let mut seen = Recorder::default();
        for ms in 1..=5_000 {
            seen.answered(Duration::from_millis(ms), Duration::from_millis(ms % 40 + 1), 500);
        }
        let line = Line::new("put <&>", &Run { seen, took: Duration::from_secs(5), cpu: Duration::from_secs(1) });
        Report {
            command: "basalt bench \"x\"".to_owned(),
            url: "http://h".to_owned(),
            start: 0,
            unit: "points",
            lines: vec![line],
        }
    }

    #[test]
    fn a_page_has_its_plots_and_nothing_from_elsewhere() {
        let page = page(&report());
        assert_eq!(page.matches("<svg").count(), 2);
        assert!(page.contains("put &lt;&amp;&gt;") && !page.contains("put <&>"));
        assert!(!page.contains("src=") && !page.contains("<script") && !page.contains("NaN") && !page.contains("inf"));
    }

    #[test]
    fn a_table_has_a_line_for_each_kind_and_says_what_failed() {
        let mut report = report();
        assert_eq!(report.table().lines().count(), 2);
        assert!(report.table().contains("2500000"), "{}", report.table());
        report.lines[0].failed = 3;
        report.lines[0].first_failure = Some("413 too large".to_owned());
        assert!(report.table().ends_with("put <&>: 3 of 5000 requests failed, first: 413 too large\n"));
        assert_eq!(report.failed().unwrap(), "3 requests failed, first: 413 too large");
        report.lines[0].refused_points = 2;
        assert!(report.table().ends_with("put <&>: 2 points were refused, first: 413 too large\n"));
        assert_eq!(report.failed().unwrap(), "3 requests failed and 2 points were refused, first: 413 too large");
        report.lines[0].gave_up = 1;
        assert!(report.table().ends_with("put <&>: 1 connections gave up, as requests were lost or refused\n"));
        report.lines[0].empty = 4_996;
        assert!(page(&report).contains("put &lt;&amp;&gt;: 4996 of 4997 answers were empty\n"));
        assert!(report.empty().is_empty());
        report.lines[0].empty += 1;
        assert_eq!(report.empty(), ["put <&>"]);
    }

    #[test]
    fn a_run_of_nothing_has_a_page() {
        let nothing = Run { seen: Recorder::default(), took: Duration::ZERO, cpu: Duration::ZERO };
        let nothing = Line::new("n", &nothing);
        let report = Report { lines: vec![nothing], ..report() };
        let page = page(&report);
        assert!(!page.contains("NaN") && !page.contains("inf"), "{page}");
    }
}
