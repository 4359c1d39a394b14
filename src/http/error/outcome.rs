//! Answers with a status of their own to what was done, or to a part of it.

use std::sync::Arc;

use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use basalt_ingest::{Problem, ProblemClass, PutReport};
use basalt_store::ErrorKind;
use bytes::Bytes;
use serde::Serialize;

use super::ApiError;
use super::trouble::Trouble;
use crate::bodies::BodyPool;
use crate::http::content::JSON;
use crate::http::put::{Flags, PutAnswer};
use crate::http::{body, json};

/// The answer to a put by what became of its points.
///
/// 400 says that points are bad, or refused by the store for good, and sending them again is in vain;
/// where good points could not be stored it is 503 (a client that drops batches on 400 must keep
/// these), or 500 when the store is damaged. Under `strict` what the store did not take is OpenTSDB's
/// 200 with a report, or 400 without one.
///
/// A report has its share of `pool` while it is made and sent; where there is no room, the details are left out.
pub(crate) fn put_outcome<E: Serialize>(
    flags: Flags,
    report: &PutReport,
    echo: impl Fn(usize) -> Option<E>,
    pool: &Arc<BodyPool>,
    strict: bool,
) -> Result<Response, ApiError> {
    let of_class = |wanted: fn(&Problem) -> bool| report.errors.iter().filter(|error| wanted(&error.problem)).count();
    let timed_out = of_class(|problem| problem.class() == ProblemClass::TimedOut) as u64;
    let refused = of_class(is_refused) as u64;
    let told = flags.summary || flags.details;
    let status = if report.errors.is_empty() {
        if told { StatusCode::OK } else { StatusCode::NO_CONTENT }
    } else if of_class(is_damage) > 0 && !strict {
        StatusCode::INTERNAL_SERVER_ERROR
    } else if report.failed > timed_out + refused && !strict {
        StatusCode::SERVICE_UNAVAILABLE
    } else if report.rejected == 0 && timed_out == 0 && told && strict {
        StatusCode::OK
    } else {
        StatusCode::BAD_REQUEST
    };
    if status == StatusCode::NO_CONTENT {
        return Ok(status.into_response());
    }
    let mut error = ApiError::new(status, "One or more data points had errors")
        .details("Please see the TSD logs or append \"details\" to the put request")
        .with_retry();
    error.trouble = report.errors.iter().find_map(|error| Trouble::of_point(&error.problem));
    if told {
        let tell = |flags| PutAnswer::new(flags, report, timed_out, &echo);
        let body = body::kept(pool, |to| Ok(serde_json::to_writer(to, &tell(flags))?));
        let brief = || serde_json::to_vec(&tell(Flags { details: false, ..flags })).map(Bytes::from);
        let body = body.map_or_else(brief, Ok).map_err(|cause| ApiError::internal(cause.to_string()))?;
        return Ok(error.dressed(JSON, body));
    }
    let is_ours = |problem: &Problem| !problem.class().is_rejection() && !is_refused(problem);
    let ours = report.errors.iter().find(|error| is_ours(&error.problem));
    if let Some(first) = ours.filter(|_| status.is_server_error()) {
        error.details = Some(first.problem.http_text());
    }
    if timed_out > 0 {
        error.message = format!(
            "The put call has timedout with {} successful writes, {} failed writes and {timed_out} timed out writes.",
            report.stored,
            report.rejected + report.failed - timed_out,
        );
    }
    Err(error)
}

/// 204: done, and nothing to say.
pub(crate) fn done() -> Response {
    StatusCode::NO_CONTENT.into_response()
}

/// What an edit made; 304 where it says nothing new.
pub(crate) fn edited(made: Option<&impl Serialize>) -> Result<Response, ApiError> {
    made.map_or_else(|| Ok(StatusCode::NOT_MODIFIED.into_response()), json::ok)
}

/// The answer of `/api/uid/assign` and `/api/uid/rename`, which has one shape for good and bad.
pub(crate) fn uid_outcome(is_good: bool, told: &impl Serialize) -> Result<Response, ApiError> {
    let body = serde_json::to_string(told).map_err(|cause| ApiError::internal(cause.to_string()))?;
    let status = if is_good { StatusCode::OK } else { StatusCode::BAD_REQUEST };
    Ok((status, [(CONTENT_TYPE, JSON)], body).into_response())
}

fn is_damage(problem: &Problem) -> bool {
    matches!(problem, Problem::Storage { kind: ErrorKind::Corrupt | ErrorKind::Bug, .. })
}

/// A point that the store will never take, such as one whose cell is over its bound.
fn is_refused(problem: &Problem) -> bool {
    matches!(problem, Problem::Storage { kind: ErrorKind::Invalid, .. })
}

/// `response` as a 302: its `Location` is the answer.
pub(crate) fn found(mut response: Response) -> Response {
    *response.status_mut() = StatusCode::FOUND;
    response
}
