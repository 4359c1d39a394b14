//! One line of a graph: its points become pixels, cut at the frame.

use basalt_query::Point;

use super::super::look::{Look, Rgb, Smooth, Style};
use super::super::scale::Scale;
use super::canvas::{Canvas, Frame, pixel};
use super::{Result, f64_of, points_enough};

/// Pixels between the points of a curve.
const CURVE_STEP: f64 = 2.0;
/// Pixels that a mark needs for itself.
const MARK_ROOM: usize = 12;

/// A series as it is drawn.
#[derive(Clone, Debug)]
pub(crate) struct Line<'a> {
    pub(crate) name: String,
    /// By time; those that are no finite numbers are not drawn.
    pub(crate) points: &'a [Point],
    /// Whether it belongs to the axis on the right.
    pub(crate) right: bool,
}

/// A point of the plane, in pixels.
type Spot = (f64, f64);

/// Where in a range of time a second lies, from 0 to 1.
#[expect(clippy::cast_precision_loss, reason = "seconds of four digit years are below 2^52")]
pub(super) fn place_of(second: i64, (start, end): (i64, i64)) -> f64 {
    (second - start) as f64 / (end - start).max(1) as f64
}

impl Line<'_> {
    /// Whether nothing of it can be drawn.
    pub(crate) fn is_empty(&self) -> bool {
        self.values(Smooth::Straight).next().is_none()
    }

    /// The seconds of its points and the values that the axis must hold.
    fn moments(&self, smooth: Smooth) -> impl Iterator<Item = (f64, f64)> + '_ {
        let mut sum = 0.0;
        self.points.iter().filter_map(moment).map(move |(second, value)| {
            sum += value;
            (second, if smooth == Smooth::Cumulative { sum } else { value })
        })
    }

    /// The values that the axis must hold.
    pub(super) fn values(&self, smooth: Smooth) -> impl Iterator<Item = f64> + '_ {
        self.moments(smooth).map(|(_, value)| value)
    }

    pub(super) fn paint(
        &self,
        canvas: &Canvas<'_>,
        frame: Frame,
        (scale, range): (&Scale, (i64, i64)),
        look: &Look,
        colour: Rgb,
    ) -> Result<()> {
        let spots = self.spots(frame, scale, range, look.smooth);
        if look.style != Style::LinesAndPoints {
            return mark_all(canvas, frame, spots, look.style, colour);
        }
        let thinned = if self.points.len() <= points_enough(look.width) { spots.collect() } else { thin(spots) };
        if look.smooth == Smooth::Curve {
            join(canvas, frame, &curve(&thinned), colour)?;
        } else {
            join(canvas, frame, &thinned, colour)?;
        }
        if thinned.len() * MARK_ROOM > usize::try_from(frame.right - frame.left).unwrap_or(0) {
            return Ok(());
        }
        mark_all(canvas, frame, thinned.into_iter(), look.style, colour)
    }

    fn spots(
        &self,
        frame: Frame,
        scale: &Scale,
        (start, end): (i64, i64),
        smooth: Smooth,
    ) -> impl Iterator<Item = Spot> {
        let (width, height) = (f64::from(frame.right - frame.left), f64::from(frame.bottom - frame.top));
        let whole = f64_of(usize::try_from((end - start).max(1)).unwrap_or(1));
        let start = place_of(start, (0, 1));
        self.moments(smooth).filter_map(move |(second, value)| {
            let across = f64::from(frame.left) + (second - start) / whole * width;
            let up = scale.place(value)?;
            Some((across, f64::from(frame.bottom) - up * height))
        })
    }
}

#[expect(clippy::cast_precision_loss, reason = "a pixel stands for far more than the last bits")]
fn moment(point: &Point) -> Option<(f64, f64)> {
    let value = point.number.as_double();
    value.is_finite().then_some((point.time_ms as f64 / 1_000.0, value))
}

/// Marks the points within the frame.
fn mark_all(
    canvas: &Canvas<'_>,
    frame: Frame,
    spots: impl Iterator<Item = Spot>,
    style: Style,
    colour: Rgb,
) -> Result<()> {
    let mut before = None;
    for spot in spots.filter(|spot| holds(frame, *spot)) {
        let at = (pixel(spot.0), pixel(spot.1));
        // Thousands of points on one pixel are one point.
        if before.replace(at) != Some(at) {
            mark(canvas, at, style, colour)?;
        }
    }
    Ok(())
}

fn holds(frame: Frame, (x, y): Spot) -> bool {
    (f64::from(frame.left)..=f64::from(frame.right)).contains(&x)
        && (f64::from(frame.top)..=f64::from(frame.bottom)).contains(&y)
}

/// Of more points than can be seen, the first, lowest, highest and last of each column of pixels.
fn thin(spots: impl Iterator<Item = Spot>) -> Vec<Spot> {
    let mut thinned = Vec::new();
    let mut column: Option<[Spot; 4]> = None;
    for spot in spots {
        match &mut column {
            Some([first, lowest, highest, last]) if pixel(first.0) == pixel(spot.0) => {
                *lowest = if spot.1 > lowest.1 { spot } else { *lowest };
                *highest = if spot.1 < highest.1 { spot } else { *highest };
                *last = spot;
            }
            _ => thinned.extend(column.replace([spot; 4]).into_iter().flatten()),
        }
    }
    thinned.extend(column.into_iter().flatten());
    thinned
}

/// A curve through the points that is as monotone as they are. *Source*: Fritsch and Carlson's tangents.
fn curve(spots: &[Spot]) -> Vec<Spot> {
    let mut points: Vec<Spot> = spots.to_vec();
    points.dedup_by(|next, kept| next.0 <= kept.0);
    if points.len() < 3 {
        return points;
    }
    let slope = |left: &Spot, right: &Spot| (right.1 - left.1) / (right.0 - left.0);
    let slopes: Vec<f64> = points.iter().zip(points.iter().skip(1)).map(|(left, right)| slope(left, right)).collect();
    let tangent = |place: usize| {
        let after = slopes.get(place).copied();
        let before = place.checked_sub(1).and_then(|place| slopes.get(place)).copied();
        match (before, after) {
            // The harmonic mean, or flat at a summit.
            (Some(before), Some(after)) if before * after > 0.0 => 2.0 * before * after / (before + after),
            (Some(_), Some(_)) | (None, None) => 0.0,
            (Some(one), None) | (None, Some(one)) => one,
        }
    };
    let mut path = Vec::new();
    for (place, (left, right)) in points.iter().zip(points.iter().skip(1)).enumerate() {
        let span = right.0 - left.0;
        let (out, into) = (tangent(place) * span, tangent(place + 1) * span);
        let steps = usize::try_from(pixel(span / CURVE_STEP)).unwrap_or(1).clamp(1, 4_096);
        for step in 0..steps {
            let at = f64_of(step) / f64_of(steps);
            let (square, cube) = (at * at, at * at * at);
            let y = left.1 * (2.0 * cube - 3.0 * square + 1.0)
                + out * (cube - 2.0 * square + at)
                + right.1 * (3.0 * square - 2.0 * cube)
                + into * (cube - square);
            path.push((left.0 + span * at, y));
        }
    }
    path.extend(points.last().copied());
    path
}

/// Joins the points within the frame.
fn join(canvas: &Canvas<'_>, frame: Frame, spots: &[Spot], colour: Rgb) -> Result<()> {
    let mut run: Vec<(i32, i32)> = Vec::new();
    for (left, right) in spots.iter().zip(spots.iter().skip(1)) {
        let Some((from, to)) = clip(frame, *left, *right) else { continue };
        let (from, to) = ((pixel(from.0), pixel(from.1)), (pixel(to.0), pixel(to.1)));
        if run.last() != Some(&from) {
            flush(canvas, &mut run, colour)?;
            run.push(from);
        }
        run.push(to);
    }
    flush(canvas, &mut run, colour)
}

fn flush(canvas: &Canvas<'_>, run: &mut Vec<(i32, i32)>, colour: Rgb) -> Result<()> {
    if run.len() > 1 {
        canvas.path(std::mem::take(run), colour, 1)?;
    }
    run.clear();
    Ok(())
}

/// The part of a segment within the frame. *Source*: Liang and Barsky.
fn clip(frame: Frame, from: Spot, to: Spot) -> Option<(Spot, Spot)> {
    let (dx, dy) = (to.0 - from.0, to.1 - from.1);
    let (mut enter, mut leave) = (0.0_f64, 1.0_f64);
    for (towards, room) in [
        (-dx, from.0 - f64::from(frame.left)),
        (dx, f64::from(frame.right) - from.0),
        (-dy, from.1 - f64::from(frame.top)),
        (dy, f64::from(frame.bottom) - from.1),
    ] {
        if towards.abs() < f64::EPSILON {
            if room < 0.0 {
                return None;
            }
        } else if towards < 0.0 {
            enter = enter.max(room / towards);
        } else {
            leave = leave.min(room / towards);
        }
    }
    let at = |share: f64| (from.0 + dx * share, from.1 + dy * share);
    (enter <= leave).then(|| (at(enter), at(leave)))
}

fn mark(canvas: &Canvas<'_>, at: (i32, i32), style: Style, colour: Rgb) -> Result<()> {
    match style {
        Style::LinesAndPoints | Style::Points => canvas.disc(at, 2, colour),
        Style::Circles => canvas.circle(at, 4, colour),
        Style::Dots => canvas.disc(at, 1, colour),
    }
}

/// How the line looks, for the key.
pub(super) fn sample(canvas: &Canvas<'_>, (x, y): (i32, i32), length: i32, style: Style, colour: Rgb) -> Result<()> {
    if style == Style::LinesAndPoints {
        canvas.line((x, y), (x + length, y), colour)?;
    }
    mark(canvas, (x + length / 2, y), style, colour)
}

#[cfg(test)]
mod tests {
    use super::*;

    const FRAME: Frame = Frame { left: 0, top: 0, right: 100, bottom: 100 };

    #[test]
    fn a_segment_is_cut_at_the_frame() {
        assert_eq!(clip(FRAME, (-50.0, 50.0), (150.0, 50.0)), Some(((0.0, 50.0), (100.0, 50.0))));
        assert_eq!(clip(FRAME, (50.0, -100.0), (50.0, 50.0)), Some(((50.0, 0.0), (50.0, 50.0))));
        assert_eq!(clip(FRAME, (-10.0, 0.0), (-10.0, 100.0)), None);
        assert_eq!(clip(FRAME, (0.0, 300.0), (100.0, 200.0)), None);
        assert_eq!(clip(FRAME, (5.0, 5.0), (6.0, 7.0)), Some(((5.0, 5.0), (6.0, 7.0))));
    }

    #[test]
    fn many_points_of_a_column_keep_their_extremes() {
        let spots: Vec<Spot> = (0..10_000).map(|place| (f64_of(place) / 1_000.0, f64_of(place % 7))).collect();
        let thinned = thin(spots.into_iter());
        assert!(thinned.len() <= 44, "{}", thinned.len());
        assert!(thinned.iter().any(|spot| spot.1 > 5.9) && thinned.iter().any(|spot| spot.1 < 0.1));
    }

    #[test]
    fn a_curve_swings_over_no_point() {
        let path = curve(&[(0.0, 0.0), (10.0, 10.0), (20.0, 10.0), (30.0, 0.0)]);
        assert!(path.iter().all(|(_, y)| (0.0..=10.000_001).contains(y)), "{path:?}");
        assert_eq!(path.first(), Some(&(0.0, 0.0)));
        assert_eq!(path.last(), Some(&(30.0, 0.0)));
    }
}
