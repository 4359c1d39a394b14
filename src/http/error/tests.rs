//! Which status an outcome has.

use std::cell::Cell;
use std::time::Duration;

use basalt_ingest::{PointError, Problem, PutReport};

use super::*;
use crate::bodies::BodyPool;
use crate::http::put::Flags;

fn storage(kind: ErrorKind) -> Problem {
    Problem::Storage { kind, text: "x".into() }
}

/// Status and whether the client may come back, of a put of which one point was stored.
fn check(problems: &[Problem], flags: &str, strict: bool, expected: (u16, bool)) {
    let flags = Flags {
        summary: flags.contains("summary"),
        details: flags.contains("details"),
        sync: true,
        sync_timeout: flags.contains("timeout").then_some(Duration::from_secs(1)),
    };
    let rejected = problems.iter().filter(|problem| problem.class().is_rejection()).count() as u64;
    let errors = problems.iter().enumerate();
    let report = PutReport {
        stored: 1,
        rejected,
        failed: problems.len() as u64 - rejected,
        errors: errors.map(|(index, problem)| PointError { index, problem: problem.clone() }).collect(),
    };
    let response = put_outcome(flags, &report, |_| None::<()>, &BodyPool::new(1 << 20), strict).into_response();
    let found = (response.status().as_u16(), response.headers().contains_key(RETRY_AFTER));
    assert_eq!(found, expected, "{problems:?} {flags:?}");
}

/// `W-PUT-SUMMARY`, `W-PUT-DETAILS`, `W-PUT-SYNCTIMEOUT`, `W-PUT-THROTTLE`.
#[test]
fn a_put_has_the_status_of_the_worst_that_a_retry_can_mend() {
    let bad = Problem::EmptyMetric;
    let full = Problem::Throttled { text: "x".into() };
    check(&[], "", false, (204, false));
    check(&[], "summary", false, (200, false));
    for flags in ["", "summary", "details"] {
        check(std::slice::from_ref(&bad), flags, false, (400, false));
        check(&[bad.clone(), full.clone()], flags, false, (503, true));
        check(&[storage(ErrorKind::ReadOnly)], flags, false, (503, true));
        check(&[storage(ErrorKind::Corrupt)], flags, false, (500, false));
        check(&[Problem::TimedOut], flags, false, (400, false));
        let refused = storage(ErrorKind::Invalid);
        check(std::slice::from_ref(&refused), flags, false, (400, false));
        check(&[bad.clone(), refused.clone(), Problem::TimedOut], flags, false, (400, false));
        check(&[refused, storage(ErrorKind::ReadOnly)], flags, false, (503, true));
    }
}

/// `W-PUT-THROTTLE`: whoever sends a batch again must know what for, and of the bad points beside it nothing can be done.
#[test]
fn a_put_that_may_be_sent_again_tells_why() {
    let told = |problems: &[Problem], strict: bool| {
        let rejected = problems.iter().filter(|problem| problem.class().is_rejection()).count() as u64;
        let failed = problems.len() as u64 - rejected;
        let errors = problems.iter().cloned().enumerate().map(|(index, problem)| PointError { index, problem });
        let report = PutReport { stored: 1, rejected, failed, errors: errors.collect() };
        let flags = Flags { summary: false, details: false, sync: false, sync_timeout: None };
        put_outcome(flags, &report, |_| None::<()>, &BodyPool::new(1 << 20), strict).unwrap_err().details.unwrap()
    };
    let (bad, full) = (Problem::EmptyMetric, storage(ErrorKind::ReadOnly));
    let refused = storage(ErrorKind::Invalid);
    assert_eq!(told(&[bad.clone(), refused.clone(), full.clone()], false), full.http_text());
    assert_eq!(told(&[storage(ErrorKind::Corrupt)], false), storage(ErrorKind::Corrupt).http_text());
    for (problems, strict) in [([bad, refused], false), ([full.clone(), full], true)] {
        assert!(told(&problems, strict).starts_with("Please see the TSD logs"), "{problems:?}");
    }
}

#[test]
fn a_strict_put_has_opentsdbs_status() {
    check(&[storage(ErrorKind::Unavailable)], "", true, (400, false));
    check(&[storage(ErrorKind::Unavailable)], "summary", true, (200, false));
    check(&[storage(ErrorKind::Invalid)], "summary", true, (200, false));
    check(&[storage(ErrorKind::Unavailable), Problem::EmptyMetric], "details", true, (400, false));
}

/// Without room for its details a report has none, and they are made as far as there is room alone. What is told takes its share
/// until it is sent.
#[tokio::test]
async fn a_report_has_the_details_that_there_is_room_for() {
    const ERRORS: usize = 50_000;
    let flags = Flags { summary: false, details: true, sync: false, sync_timeout: None };
    let errors = (0..ERRORS).map(|index| PointError { index, problem: Problem::EmptyMetric }).collect();
    let report = PutReport { stored: 1, rejected: ERRORS as u64, failed: 0, errors };
    for (pool_bytes, expected) in [(4 << 20, true), ((1 << 20) + 1, false)] {
        let (pool, made) = (BodyPool::new(pool_bytes), Cell::new(0));
        let echo = |index: usize| {
            made.set(made.get() + 1);
            Some(index)
        };
        let response = put_outcome(flags, &report, echo, &pool, false).unwrap();
        assert_eq!(response.status(), StatusCode::BAD_REQUEST);
        assert_eq!((made.get() == ERRORS, pool.used_bytes() > 0), (expected, expected));
        let body = axum::body::to_bytes(response.into_body(), 4 << 20).await.unwrap();
        let told: Value = serde_json::from_slice(&body).unwrap();
        assert_eq!((told["success"].as_u64(), told.get("errors").is_some()), (Some(1), expected));
        drop(body);
        assert_eq!(pool.used_bytes(), 0);
    }
}

/// What the server did wrong rides along with the answer on every path; what a request did wrong, or a bound, does not.
#[test]
fn an_answer_carries_the_trouble_it_stands_for() {
    use basalt_query::Error;
    let carried = |response: &Response| response.extensions().get::<Trouble>().cloned();
    let error = ApiError::of_query(&Error::Store(basalt_store::Error::Closed), false);
    let closed = Trouble::caused(ErrorKind::Unavailable, &basalt_store::Error::Closed);
    assert!(closed.is_some());
    assert_eq!((carried(&error.classic(true)), carried(&error.into_response())), (closed.clone(), closed));
    for quiet in [
        ApiError::of_query(&Error::Cancelled, false),
        ApiError::of_query(&Error::TooManyPoints { limit: 1 }, false),
        ApiError::of_query(&Error::MemoryTaken { limit_bytes: 1, wanted_bytes: 1 }, false),
        ApiError::overloaded("x"),
        ApiError::fault("x".to_owned(), true),
    ] {
        assert_eq!(carried(&quiet.into_response()), None);
    }
    assert_eq!(carried(&ApiError::internal("x").into_response()), Trouble::of(ErrorKind::Bug, "x"));
    assert!(carried(&panicked(Box::new(()))).is_some());
    let problems = [Problem::EmptyMetric, storage(ErrorKind::Corrupt)].into_iter().enumerate();
    let errors = problems.map(|(index, problem)| PointError { index, problem }).collect();
    let report = PutReport { stored: 1, rejected: 1, failed: 1, errors };
    for details in [false, true] {
        let flags = Flags { summary: false, details, sync: false, sync_timeout: None };
        let response = put_outcome(flags, &report, |_| None::<()>, &BodyPool::new(1 << 20), false).into_response();
        assert_eq!(carried(&response), Trouble::of(ErrorKind::Corrupt, "x"), "{details}");
    }
}

fn gone() -> basalt_store::Error {
    basalt_store::Error::UnknownTable { table: "tsdb".into() }
}

#[test]
fn a_query_over_a_budget_is_told_by_its_own_status() {
    use basalt_query::Error;
    for (cause, status) in [
        (Error::TooManyPoints { limit: 1 }, 413),
        (Error::TooManyMadeUp { limit: 1 }, 413),
        (Error::DeadlineExceeded { limit_ms: 1 }, 408),
        (Error::TooMuchMemory { limit_bytes: 1 }, 413),
        (Error::MemoryTaken { limit_bytes: 1, wanted_bytes: 1 }, 503),
        (Error::NoTurn, 503),
        (Error::UnknownName { kind: "metrics", name: "x".into() }, 400),
        (Error::Cancelled, 503),
        (Error::WorkerPanicked, 500),
        // A table that somebody dropped is not the request's fault.
        (gone().into(), 500),
        (basalt_schema::Error::from(gone()).into(), 500),
    ] {
        assert_eq!(ApiError::of_query(&cause, false).status().as_u16(), status, "{cause}");
    }
}

/// `A-ANNOT`, `M-UIDMETA`, `M-TSMETA`, `M-TREE`: a bound is 413 wherever it is met, and what others overtook is told in OpenTSDB's words.
#[test]
fn a_failure_of_the_schema_has_one_status_and_the_words_of_what_is_edited() {
    use basalt_schema::{Error, UidKind};
    let check = |error: ApiError, expected: (u16, &str, Option<&str>)| {
        assert_eq!((error.status().as_u16(), error.message(), error.details.as_deref()), expected);
    };
    let edits = |cause: &Error| [ApiError::of_edit(cause, "X"), ApiError::of_uid_meta(cause)];
    for bound in [
        Error::TooManyAnnotations { max: 1 },
        Error::TooManyMetas { max: 1 },
        Error::TooManyBranches { max: 1 },
        Error::TooManyTreeFailures { max: 1 },
        Error::TooMuchText { what: "x", max: 1 },
    ] {
        let all = edits(&bound).into_iter().chain([ApiError::of_schema(&bound)]);
        all.for_each(|error| check(error, (413, &bound.to_string(), None)));
    }
    let lost = Error::EditLost { what: "tree", attempts: 4 };
    let another = Some("This may be caused by another process modifying storage data");
    let [edit, meta] = edits(&lost);
    check(edit, (500, "Failed to save the X to storage", another));
    check(meta, (500, "Failed to save the UIDMeta to storage", another));
    check(ApiError::of_schema(&lost), (500, "the tree was changed by others at each of 4 attempts", None));
    check(Error::InvalidTreeId.into(), (400, "Invalid Tree ID", Some("Invalid Tree ID")));
    let unknown = Error::NoSuchName { kind: UidKind::Metric, name: "x".into() };
    let text = unknown.to_string();
    check(ApiError::of_ts_meta(&unknown, "none"), (404, "none", Some(&text)));
    check(unknown.into(), (400, &text, None));
}
