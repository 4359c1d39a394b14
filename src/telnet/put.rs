//! A run of `put` lines to `ingest`, and the error lines of those that are not stored.
//!
//! A full store is no error here: the points that were turned away are offered again, and meanwhile
//! nothing is read from the connection, which is all that a sender needs to slow down.

use std::time::Duration;

use basalt_ingest::{Door, Error, Ingest, Problem, ProblemClass, PutReport, RawPoint, decode_text, parse_put_line};
use bytes::Bytes;
use tokio::task::block_in_place;
use tokio::time::{Instant, sleep};

use super::reply;
use crate::publish::Publisher;

/// How long points are offered again before their sender is told.
const PATIENCE: Duration = Duration::from_secs(30);
/// The first pause between two offers, and the longest.
const PAUSE_MIN: Duration = Duration::from_millis(20);
const PAUSE_MAX: Duration = Duration::from_secs(1);

/// Stores `lines`; returns when all that can be stored are durable, with one text for each line
/// that is not, in the lines' order.
pub(crate) async fn put_lines(ingest: &Ingest, publisher: &Publisher, door: Door, lines: &[Bytes]) -> Vec<String> {
    let texts: Vec<_> = lines.iter().map(|line| decode_text(line)).collect();
    let mut refused: Vec<(usize, Problem)> = Vec::new();
    let mut places = Vec::with_capacity(lines.len());
    let mut points = Vec::with_capacity(lines.len());
    for (place, text) in texts.iter().enumerate() {
        match parse_put_line(text) {
            Ok(point) => {
                places.push(place);
                points.push(point);
            }
            Err(problem) => {
                ingest.reject_line(door, &problem);
                refused.push((place, problem));
            }
        }
    }
    let until = Instant::now() + PATIENCE;
    let mut pause = PAUSE_MIN;
    loop {
        let report = offer(ingest, door, &points).await;
        publisher.points(&points, &report.errors);
        let last = Instant::now() >= until;
        let (mut places_left, mut points_left) = (Vec::new(), Vec::new());
        for error in report.errors {
            let (Some(place), Some(point)) = (places.get(error.index), points.get(error.index)) else { continue };
            if error.problem.class() == ProblemClass::Throttled && !last {
                places_left.push(*place);
                points_left.push(*point);
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
    refused.sort_by_key(|(place, _)| *place);
    refused.iter().map(|(_, problem)| reply::put_error(problem)).collect()
}

/// One offer of points; a refusal of all of them is a refusal of each.
async fn offer(ingest: &Ingest, door: Door, points: &[RawPoint<'_>]) -> PutReport {
    // A new name is looked up and made in the tables, which blocks.
    match block_in_place(|| ingest.submit(points, door)) {
        Ok(submission) => submission.await,
        Err(cause) => refuse_all(&cause, points.len()),
    }
}

fn refuse_all(cause: &Error, count: usize) -> PutReport {
    let problem = Problem::Throttled { text: cause.to_string().into() };
    let errors = (0..count).map(|index| basalt_ingest::PointError { index, problem: problem.clone() });
    PutReport { failed: count as u64, errors: errors.collect(), ..PutReport::default() }
}
