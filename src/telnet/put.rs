//! A run of `put` lines to `ingest`, and the error lines of those that are not stored.
//!
//! A full store is no error here, nor is a full disk: the points that were turned away are offered again, and meanwhile
//! nothing is read from the connection, which is all that a sender needs to slow down.

use std::borrow::Cow;
use std::time::Duration;

use basalt_ingest::{
    Door, Error, Ingest, PointError, Problem, PutReport, RawPoint, Submission, decode_line, parse_histogram_line,
    parse_rollup_line,
};
use basalt_store::ErrorKind;
use tokio::task::block_in_place;
use tokio::time::{Instant, sleep};

use super::reply;
use crate::app::App;
use crate::http::report_lines;

/// How long points are offered again before their sender is told.
const PATIENCE: Duration = Duration::from_secs(30);
/// The first pause between two offers, and the longest.
const PAUSE_MIN: Duration = Duration::from_millis(20);
const PAUSE_MAX: Duration = Duration::from_secs(1);

/// What a line puts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PutKind {
    /// A point.
    Put,
    /// A rollup or pre-aggregate.
    Rollup,
    /// A histogram.
    Histogram,
}

impl PutKind {
    /// The command.
    pub(crate) const fn word(self) -> &'static str {
        match self {
            Self::Put => "put",
            Self::Rollup => "rollup",
            Self::Histogram => "histogram",
        }
    }
}

/// Stores `lines`, all of one kind; returns when all that can be stored are durable, with one text for each line that is
/// not, in the lines' order.
pub(crate) async fn put_lines(app: &App, door: Door, kind: PutKind, lines: &[&[u8]]) -> Vec<String> {
    let ingest = &app.ingest;
    let texts: Vec<_> = lines.iter().map(|line| decode_line(line)).collect();
    let refused = match kind {
        PutKind::Put => offer_points(app, door, parse_puts(ingest, door, &texts)).await,
        PutKind::Rollup => {
            let rollups = parse(ingest, door, &texts, parse_rollup_line);
            let submit = |rollups: &[_]| ingest.submit_rollups(rollups, door);
            offer_all((app, door), rollups, |_| Ok(None), submit, |_, _| {}).await
        }
        PutKind::Histogram => {
            let histograms = parse(ingest, door, &texts, parse_histogram_line);
            let submit = |histograms: &[_]| ingest.submit_histograms(histograms, door);
            offer_all((app, door), histograms, |_| Ok(None), submit, |_, _| {}).await
        }
    };
    texts_of(app, kind, refused)
}

/// Stores points that were read from lines; returns as [`put_lines`].
pub(crate) async fn put_points(app: &App, door: Door, points: Vec<RawPoint<'_>>) -> Vec<String> {
    let parsed = Parsed { places: (0..points.len()).collect(), points, refused: Vec::new() };
    texts_of(app, PutKind::Put, offer_points(app, door, parsed).await)
}

fn texts_of(app: &App, kind: PutKind, mut refused: Vec<(usize, Problem)>) -> Vec<String> {
    report_lines(app, kind.word(), &refused);
    refused.sort_by_key(|(place, _)| *place);
    refused.iter().map(|(_, problem)| reply::put_error(kind.word(), problem)).collect()
}

async fn offer_points(app: &App, door: Door, points: Parsed<RawPoint<'_>>) -> Vec<(usize, Problem)> {
    let told = |points: &[_], errors: &[_]| app.publisher.points(points, errors);
    let known = |points: &[_]| app.ingest.submit_known(points, door);
    offer_all((app, door), points, known, |points| app.ingest.submit(points, door), told).await
}

/// What lines say, and those that say nothing, by their places.
struct Parsed<T> {
    places: Vec<usize>,
    points: Vec<T>,
    refused: Vec<(usize, Problem)>,
}

fn parse_puts<'t>(ingest: &Ingest, door: Door, texts: &'t [Cow<'_, str>]) -> Parsed<RawPoint<'t>> {
    let all = ingest.parse_put_lines(texts.iter().map(|text| &**text));
    sorted_out(ingest, door, all.into_iter())
}

fn parse<'t, T>(
    ingest: &Ingest,
    door: Door,
    texts: &'t [Cow<'_, str>],
    read: impl Fn(&'t str) -> Result<T, Problem>,
) -> Parsed<T> {
    sorted_out(ingest, door, texts.iter().map(|text| read(text)))
}

fn sorted_out<T>(ingest: &Ingest, door: Door, all: impl ExactSizeIterator<Item = Result<T, Problem>>) -> Parsed<T> {
    let count = all.len();
    let mut parsed =
        Parsed { places: Vec::with_capacity(count), points: Vec::with_capacity(count), refused: Vec::new() };
    for (place, read) in all.enumerate() {
        match read {
            Ok(point) => {
                parsed.places.push(place);
                parsed.points.push(point);
            }
            Err(problem) => {
                ingest.reject_line(door, &problem);
                parsed.refused.push((place, problem));
            }
        }
    }
    parsed
}

/// Offers points until all are stored or refused, or patience is over; `told` hears what became of each offer.
async fn offer_all<T: Clone>(
    (app, door): (&App, Door),
    parsed: Parsed<T>,
    known: impl Fn(&[T]) -> basalt_ingest::Result<Option<Submission>>,
    submit: impl Fn(&[T]) -> basalt_ingest::Result<Submission>,
    told: impl Fn(&[T], &[PointError]),
) -> Vec<(usize, Problem)> {
    let Parsed { mut places, mut points, mut refused } = parsed;
    let until = Instant::now() + PATIENCE;
    let mut pause = PAUSE_MIN;
    while !points.is_empty() {
        app.room.wait().await;
        let submitted = match known(&points) {
            Ok(Some(submission)) => Ok(submission),
            // A new name is looked up and made in the tables, which blocks.
            Ok(None) => match app.may_ask(points.len(), door).await {
                Ok(_seat) => block_in_place(|| submit(&points)),
                Err(cause) => Err(cause),
            },
            Err(cause) => Err(cause),
        };
        let report = match submitted {
            Ok(submission) => submission.await,
            Err(cause) => refuse_all(&cause, points.len()),
        };
        told(&points, &report.errors);
        let last = Instant::now() >= until || app.open_store().is_poisoned();
        let (mut places_left, mut points_left) = (Vec::new(), Vec::new());
        for error in report.errors {
            let (Some(place), Some(point)) = (places.get(error.index), points.get(error.index)) else { continue };
            if is_for_later(&error.problem) && !last {
                places_left.push(*place);
                points_left.push(point.clone());
            } else {
                refused.push((*place, error.problem));
            }
        }
        (places, points) = (places_left, points_left);
        if points.is_empty() {
            break;
        }
        sleep(pause).await;
        pause = (pause * 2).min(PAUSE_MAX);
    }
    refused
}

/// Whether there was no room for a point: in memory, on the disk or among open files.
fn is_for_later(problem: &Problem) -> bool {
    matches!(problem, Problem::Throttled { .. } | Problem::Storage { kind: ErrorKind::ReadOnly, .. })
}

fn refuse_all(cause: &Error, count: usize) -> PutReport {
    let problem = Problem::Throttled { text: cause.to_string().into() };
    let errors = (0..count).map(|index| PointError { index, problem: problem.clone() });
    PutReport { failed: count as u64, errors: errors.collect(), ..PutReport::default() }
}
