//! The series that are put into OpenTSDB: every form that a point is stored in, drawn from a seed.
//!
//! What its own tool cannot dump is left out: a point in seconds 80 to 95 of an hour that is alone in its row, or the first
//! of a compacted one, has a qualifier whose first byte is 5, and OpenTSDB 2.4.1 takes that for an append cell and ends
//! with an `ArrayIndexOutOfBoundsException` (`Internal.extractDataPoints`).

use crate::differential::draw::Draw;

/// The first second: a whole hour.
pub(crate) const START_S: u64 = 1_599_998_400;
/// Hosts; each is a series of every metric.
const HOSTS: u64 = 40;
/// Most seconds between two points of a series.
const STEP_S_MAX: u64 = 12;

/// How points of a metric are stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// Integers of every width.
    Ints,
    /// Floats whose sums are exact in any order.
    Floats,
    /// Floats that need 8 bytes.
    Decimals,
    /// Integers and floats in one series.
    Mixed,
    /// Milliseconds.
    Millis,
    /// Seconds and milliseconds in one row, integers and floats.
    Both,
}

/// All metrics, in the order in which they are dumped.
pub(crate) const METRICS: [(&str, Form); 6] = [
    ("dump.ints", Form::Ints),
    ("dump.floats", Form::Floats),
    ("dump.decimals", Form::Decimals),
    ("dump.mixed", Form::Mixed),
    ("dump.millis", Form::Millis),
    ("dump.both", Form::Both),
];

/// One series and its points in order of time.
#[derive(Debug)]
pub(crate) struct Series {
    pub(crate) metric: &'static str,
    pub(crate) host: u64,
    /// Time in seconds or milliseconds, and the value as it is sent.
    pub(crate) points: Vec<(u64, String)>,
}

impl Series {
    /// A point as a line of a dump, or of a put without the word.
    pub(crate) fn line(&self, (time, value): &(u64, String)) -> String {
        let (metric, host) = (self.metric, self.host);
        format!("{metric} {time} {value} host=h{host:02} dc={}", host % 4)
    }

    /// A point as an object of a put's body.
    pub(crate) fn json(&self, (time, value): &(u64, String)) -> String {
        let (metric, host) = (self.metric, self.host);
        format!(
            r#"{{"metric":"{metric}","timestamp":{time},"value":"{value}","tags":{{"host":"h{host:02}","dc":"{}"}}}}"#,
            host % 4
        )
    }
}

/// Series with `points` points in all.
pub(crate) fn draw(points: u64, seed: u64) -> Vec<Series> {
    let mut drawn = Draw::new(seed);
    let count = METRICS.len() as u64 * HOSTS;
    let mut all = Vec::new();
    for (metric, form) in METRICS {
        for host in 0..HOSTS {
            let number = all.len() as u64;
            let wanted = points / count + u64::from(number < points % count);
            let mut draw = drawn.fork();
            // Those of the first metric begin together, so that both sides meet the names in one order.
            let begin = if number < HOSTS { 0 } else { *draw.pick(&[0, 7, 79, 96, 600, 1_799, 3_599]) };
            all.push(Series { metric, host, points: points_of(&mut draw, form, begin, wanted) });
        }
    }
    all
}

fn points_of(draw: &mut Draw, form: Form, begin_s: u64, count: u64) -> Vec<(u64, String)> {
    let mut second = START_S + begin_s;
    let mut points = Vec::new();
    for _ in 0..count {
        let time = match form {
            Form::Millis => second * 1_000 + draw.below(1_000),
            // Never the first of a row, which would be read as it must not: see the module.
            Form::Both if draw.chance(50) => second * 1_000 + draw.below(1_000),
            _ => second,
        };
        points.push((time, value(draw, form)));
        second += draw.between(1, STEP_S_MAX);
    }
    points
}

fn value(draw: &mut Draw, form: Form) -> String {
    match form {
        Form::Ints | Form::Millis => int(draw),
        Form::Decimals => format!("{}.{:09}", draw.below(1_000), draw.below(1_000_000_000)),
        Form::Mixed | Form::Both if draw.chance(50) => draw.below(100_000).to_string(),
        Form::Floats | Form::Mixed | Form::Both => eighths(draw),
    }
}

/// Of 1, 2, 4 or 8 bytes.
fn int(draw: &mut Draw) -> String {
    let bits = *draw.pick(&[6, 14, 30, 52]);
    let sign = if draw.chance(50) { "-" } else { "" };
    format!("{sign}{}", 1 + draw.below((1 << bits) - 1))
}

fn eighths(draw: &mut Draw) -> String {
    format!("{}.{}", draw.below(10_000), draw.pick(&["125", "25", "375", "5", "625", "75", "875"]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_gives_so_many_points_each_at_its_own_time() {
        let all = draw(10_007, 3);
        assert_eq!(all.iter().map(|series| series.points.len()).sum::<usize>(), 10_007);
        assert!(all.iter().all(|series| series.points.iter().all(|point| series.line(point).split(' ').count() == 5)));
        let seconds = |time: u64| if time < 1 << 32 { time } else { time / 1_000 };
        for series in &all {
            assert!(series.points.is_sorted_by(|left, right| seconds(left.0) < seconds(right.0)), "{series:?}");
        }
        assert_eq!(draw(10_007, 3)[7].points, all[7].points);
    }
}
