//! A random data set: a few metrics, their series, and the points of each, as seed lines.
//!
//! Series share or lack tags, points are aligned or not, in seconds or milliseconds, integers or not, with gaps,
//! out of order and overwritten.

use super::draw::Draw;

/// An hour's first second, as row keys have it.
const EPOCH: u64 = 1_699_999_200;
const HOUR: u64 = 3600;

const HOSTS: &[&str] = &["a", "b", "web01", "web02", "Web01", "x.y-z_1"];
const ZONES: &[&str] = &["lga", "phx"];
const CPUS: &[&str] = &["0", "1", "2"];

/// The tag of what was joined across series before it was written, and its values.
pub(crate) const AGGREGATE_KEY: &str = "_aggregate";
pub(crate) const PRE_AGGREGATES: &[&str] = &["SUM", "MAX"];

/// The metric of histograms.
pub(crate) const HISTOGRAMS: &str = "histo.m";

/// What there is to be asked for.
#[derive(Debug)]
pub(crate) struct World {
    /// The points, as [`crate::golden::scenario::Step::seed`] wants them.
    pub(crate) lines: Vec<String>,
    pub(crate) metrics: Vec<String>,
    pub(crate) series: Vec<Series>,
    /// Seconds: no point is before `from` or after `to`, but for those of `now.*`.
    pub(crate) from: u64,
    pub(crate) to: u64,
    /// Seconds: the clock when it was made.
    pub(crate) now: u64,
    /// What else the servers keep: the oracle's profile.
    pub(crate) profile: String,
    /// Asked of a server once the points are in.
    pub(crate) tsuids: Vec<String>,
}

/// A metric with tags.
#[derive(Debug, Clone)]
pub(crate) struct Series {
    pub(crate) metric: String,
    pub(crate) tags: Vec<(String, String)>,
}

impl Series {
    /// `k=v` of each tag, with `between` between.
    pub(crate) fn tags_text(&self, between: &str) -> String {
        let pairs: Vec<String> = self.tags.iter().map(|(key, value)| format!("{key}={value}")).collect();
        pairs.join(between)
    }
}

/// How the values of a metric look.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Integers,
    Counter,
    Doubles,
    Mixed,
}

/// How the times of a metric's points lie.
#[derive(Debug, Clone, Copy)]
struct Pace {
    /// Milliseconds between two points.
    step_ms: u64,
    aligned: bool,
    /// Of a hundred points, so many are left out.
    gaps: u64,
    in_ms: bool,
}

impl World {
    pub(crate) fn draw(draw: &mut Draw, profile: &str, now: u64) -> Self {
        // Over two years, so that clocks change in some.
        let from = EPOCH - draw.below(730) * 24 * HOUR + draw.below(2) * draw.below(HOUR);
        let span =
            *draw.pick(&[600, 3000, 2 * HOUR, 7 * HOUR, 30 * HOUR, 12 * 24 * HOUR, 100 * 24 * HOUR, 400 * 24 * HOUR]);
        let mut world = Self {
            lines: Vec::new(),
            metrics: Vec::new(),
            series: Vec::new(),
            from,
            to: from + span,
            now,
            profile: profile.to_owned(),
            tsuids: Vec::new(),
        };
        for index in 0..draw.between(2, 4) {
            let name = format!("{}.{index}", draw.word(&["sys.cpu", "Sys.cpu", "net-if/in", "q_1"]));
            world.add_metric(draw, name, span);
        }
        world.add_recent(draw);
        if world.keeps_rollups() {
            world.add_names_of_rollups();
        }
        world
    }

    /// Whether rollups, pre-aggregates and histograms are kept.
    pub(crate) fn keeps_rollups(&self) -> bool {
        self.profile == "rollup"
    }

    /// Names that later requests bring in several at once, which OpenTSDB gives UIDs in no order; and a metric that
    /// histograms are written to.
    fn add_names_of_rollups(&mut self) {
        for value in PRE_AGGREGATES {
            self.lines.push(format!("golden.names 1000000000 1 {AGGREGATE_KEY}={value}"));
        }
        for host in ["a", "b"] {
            let series = Series { metric: HISTOGRAMS.to_owned(), tags: vec![("host".to_owned(), host.to_owned())] };
            self.lines.push(format!("{HISTOGRAMS} {} 1 host={host}", self.from));
            self.series.push(series);
        }
        self.metrics.push(HISTOGRAMS.to_owned());
    }

    fn add_metric(&mut self, draw: &mut Draw, name: String, span: u64) {
        let kind =
            *draw.pick(&[Kind::Integers, Kind::Integers, Kind::Counter, Kind::Doubles, Kind::Doubles, Kind::Mixed]);
        let count = draw.between(3, 40);
        let in_ms = draw.chance(25);
        let step_ms = if in_ms && draw.chance(50) { draw.between(1, 2000) } else { span * 1000 / count / 1000 * 1000 };
        let pace = Pace { step_ms: step_ms.max(1), aligned: draw.chance(50), gaps: *draw.pick(&[0, 0, 10, 50]), in_ms };
        let keys = draw.between(1, 3);
        for _ in 0..draw.between(1, 5) {
            let mut tags = vec![("host".to_owned(), draw.word(HOSTS).to_owned())];
            if keys > 1 && draw.chance(80) {
                tags.push(("dc".to_owned(), draw.word(ZONES).to_owned()));
            }
            if keys > 2 && draw.chance(70) {
                tags.push(("cpu".to_owned(), draw.word(CPUS).to_owned()));
            }
            let series = Series { metric: name.clone(), tags };
            let known = self.series.iter().any(|other| other.metric == name && other.tags == series.tags);
            if !known {
                self.add_points(draw, &series, kind, pace, count);
                self.series.push(series);
            }
        }
        self.metrics.push(name);
    }

    fn add_points(&mut self, draw: &mut Draw, series: &Series, kind: Kind, pace: Pace, count: u64) {
        let late = if draw.chance(30) { pace.step_ms * draw.below(count) } else { 0 };
        let mut counter = draw.below(1000);
        let mut points = Vec::new();
        for index in 0..count {
            let shift = if pace.aligned { 0 } else { draw.below(pace.step_ms) };
            let at = self.from * 1000 + late + index * pace.step_ms + shift;
            if draw.chance(pace.gaps) || at / 1000 > self.to {
                continue;
            }
            counter = if draw.chance(8) { draw.below(50) } else { counter + draw.below(5000) };
            points.push((at, value(draw, kind, counter)));
        }
        if points.is_empty() {
            points.push((self.from * 1000, "1".to_owned()));
        }
        if draw.chance(40) {
            let (one, other) = (draw.index(points.len()), draw.index(points.len()));
            points.swap(one, other);
        }
        if draw.chance(30) {
            let (at, _) = *draw.pick(&points);
            points.push((at, value(draw, kind, counter)));
        }
        for (at, value) in points {
            let at = if pace.in_ms && draw.chance(95) { at } else { at / 1000 };
            self.lines.push(format!("{} {at} {value} {}", series.metric, series.tags_text(" ")));
        }
    }

    /// A few points by the clock, for those who ask for the newest.
    fn add_recent(&mut self, draw: &mut Draw) {
        let name = "now.m".to_owned();
        for host in ["a", "b"] {
            let series = Series { metric: name.clone(), tags: vec![("host".to_owned(), host.to_owned())] };
            for back in [draw.between(1, 30), 3 * HOUR + draw.below(HOUR)] {
                let value = value(draw, Kind::Mixed, 1);
                self.lines.push(format!("{name} {} {value} host={host}", self.now - back));
            }
            self.series.push(series);
        }
        self.metrics.push(name);
    }
}

/// A number as a client would write it.
fn value(draw: &mut Draw, kind: Kind, counter: u64) -> String {
    let whole = |draw: &mut Draw| match draw.below(20) {
        0 => "0".to_owned(),
        1 => format!("{}", draw.between(1, 1 << 62)),
        2 => format!("-{}", draw.between(1, 1 << 40)),
        3..=6 => format!("-{}", draw.below(1000)),
        _ => draw.below(1000).to_string(),
    };
    let broken = |draw: &mut Draw| match draw.below(12) {
        0 => format!("{}e{}", draw.between(1, 99), draw.between(1, 30)),
        1 => format!("{}.5E-{}", draw.between(1, 9), draw.between(1, 12)),
        2 => format!("-{}.{}", draw.below(100), draw.between(1, 99)),
        3 => format!("{}.0", draw.below(100)),
        _ => format!("{}.{}", draw.below(1000), draw.between(1, 999)),
    };
    match kind {
        Kind::Integers => whole(draw),
        Kind::Counter => counter.to_string(),
        Kind::Mixed if draw.chance(50) => whole(draw),
        Kind::Doubles | Kind::Mixed => broken(draw),
    }
}
