//! A server's answer to a put with `details`.

use basalt_ingest::REFUSED_FOR_GOOD;
use serde::Deserialize;

use crate::exit::{Exit, Failure};
use crate::import::block::Refused;
use crate::import::target::Unstored;
use crate::peer::Answer;

/// How the errors of good points begin that could not be stored now; the others are of bad points, which never will be.
/// *Source*: OpenTSDB 2.4 `PutDataPointRpc`; a server that is not strict answers 503 beside. Of ours, a point that the store
/// refuses for good says so ([`REFUSED_FOR_GOOD`]).
const LATER: [&str; 4] = ["Please throttle", "Storage exception", "Write timedout", "Timeout exception"];

/// Why no point of a request counts as answered.
#[derive(Debug)]
pub(super) enum NoReport {
    /// The server asks to come back.
    Later(String),
    /// It refuses the request as such, or answers what is no report.
    Refused(String),
}

/// What `details` gives.
#[derive(Debug, Deserialize)]
struct Report {
    success: u64,
    failed: u64,
    #[serde(default)]
    errors: Vec<ReportError>,
}

#[derive(Debug, Deserialize)]
struct ReportError {
    #[serde(default)]
    datapoint: serde_json::Value,
    error: String,
}

/// Those of `points` that were refused. A server tells no line: each comes with the point itself.
pub(super) fn refused(answer: &Answer, points: usize) -> Result<Vec<Refused>, NoReport> {
    let report = serde_json::from_slice::<Report>(&answer.body);
    // A body that came too slowly, and a rate that is too high, are for now, too.
    if answer.status >= 500 || matches!(answer.status, 408 | 429) {
        let first = report.ok().and_then(|report| report.errors.into_iter().find(is_for_now));
        let said = first.map_or_else(|| answer.said(), |first| first.error);
        return Err(NoReport::Later(format!("{} {said}", answer.status)));
    }
    let report = match report {
        Ok(report) if answer.status == 200 || answer.status == 400 => report,
        _ => return Err(NoReport::Refused(format!("{} {}", answer.status, answer.said()))),
    };
    let answered = report.success + report.failed;
    if answered == points as u64 && report.failed > 0 && report.errors.is_empty() {
        // Ours leaves long details out where memory has no room for them.
        return Err(NoReport::Later(format!("{} points are refused without a word why", report.failed)));
    }
    if answered != points as u64 || report.errors.len() as u64 != report.failed {
        return Err(NoReport::Refused(format!("of {points} points {answered} are told of: {}", answer.said())));
    }
    if let Some(later) = report.errors.iter().find(|error| is_for_now(error)) {
        return Err(NoReport::Later(later.error.clone()));
    }
    let of = |error: ReportError| Refused { line: None, text: format!("{}: {}", error.error, error.datapoint) };
    Ok(report.errors.into_iter().map(of).collect())
}

fn is_for_now(error: &ReportError) -> bool {
    !error.error.starts_with(REFUSED_FOR_GOOD) && LATER.iter().any(|text| error.error.starts_with(text))
}

impl NoReport {
    pub(super) fn of(self, address: &str) -> Unstored {
        match self {
            Self::Later(said) => Unstored::later(format!("{address} cannot store now: {said}")),
            Self::Refused(said) => Failure::new(Exit::Failure, format!("{address} takes no points: {said}")).into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use basalt_ingest::Problem;
    use basalt_store::ErrorKind;

    use super::*;

    fn check(status: u16, body: &str, expected: Result<usize, bool>) {
        let answer = Answer { status, body: body.into(), body_bytes: body.len() as u64, closes: false };
        let found = refused(&answer, 3).map(|texts| texts.len()).map_err(|no| matches!(no, NoReport::Later(_)));
        assert_eq!(found, expected, "{status} {body}");
    }

    /// Silence, or an answer about other points, is never success.
    #[test]
    fn only_a_report_of_every_point_counts() {
        check(200, r#"{"success":3,"failed":0,"errors":[]}"#, Ok(0));
        check(400, r#"{"success":1,"failed":2,"errors":[{"error":"x","datapoint":{}},{"error":"y"}]}"#, Ok(2));
        check(200, r#"{"success":2,"failed":0,"errors":[]}"#, Err(false));
        check(400, r#"{"success":1,"failed":2,"errors":[{"error":"x"}]}"#, Err(false));
        check(400, r#"{"success":1,"failed":2}"#, Err(true));
        check(204, "", Err(false));
        check(400, r#"{"error":{"code":400}}"#, Err(false));
        check(413, "", Err(false));
        check(408, r#"{"error":{"code":408,"message":"late"}}"#, Err(true));
        check(429, "", Err(true));
        check(503, "{}", Err(true));
        check(500, r#"{"success":3,"failed":0,"errors":[]}"#, Err(true));
    }

    /// A good point that could not be stored now must not count as refused: it would be skipped for good.
    #[test]
    fn points_that_could_not_be_stored_now_are_told_from_bad_ones() {
        let later = [
            "Please throttle",
            "Please throttle writes: the series index is full",
            "Storage exception: the store is read-only",
            "Storage exception",
            "Write timedout",
            "Timeout exception",
        ];
        for (error, status) in later.into_iter().flat_map(|error| [(error, 200), (error, 400)]) {
            let errors = format!(r#"[{{"error":"Unknown metric"}},{{"error":"{error}"}}]"#);
            check(status, &format!(r#"{{"success":1,"failed":2,"errors":{errors}}}"#), Err(true));
        }
    }

    /// It is told for its line, and the import goes on behind it.
    #[test]
    fn a_point_that_the_store_refuses_for_good_is_refused() {
        let problem = |kind| Problem::Storage { kind, text: "row of 2 bytes".into() }.http_text();
        let (never, later) = (problem(ErrorKind::Invalid), problem(ErrorKind::ReadOnly));
        let report = |error: &str| {
            format!(r#"{{"success":1,"failed":2,"errors":[{{"error":"{never}"}},{{"error":"{error}"}}]}}"#)
        };
        check(400, &report("Unknown metric"), Ok(2));
        check(200, &report(&never), Ok(2));
        check(400, &report(&later), Err(true));
        let body = report(&later).into_bytes();
        let answer = Answer { status: 503, body_bytes: body.len() as u64, body, closes: false };
        let NoReport::Later(said) = refused(&answer, 3).unwrap_err() else { panic!("it is for now") };
        assert_eq!(said, format!("503 {later}"), "what is for now is told, not what is for good");
    }
}
