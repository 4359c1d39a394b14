//! What a put asks to be told, and what it is told.

use std::time::Duration;

use basalt_ingest::{PointError, PutReport};
use serde::{Serialize, Serializer};

use crate::http::error::ApiError;
use crate::http::params::Params;

/// The flags of a put.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Flags {
    pub(crate) summary: bool,
    pub(crate) details: bool,
    pub(crate) sync: bool,
    /// How long to wait for durability with `sync`; without it time-outs are told too, as by OpenTSDB, and there are none.
    pub(crate) sync_timeout: Option<Duration>,
}

impl Flags {
    pub(super) fn of(params: &Params, strict: bool) -> Result<Self, ApiError> {
        let patience = match params.last("sync_timeout") {
            Some("") if !strict => 0,
            Some(text) => text.parse::<i32>().map_err(|_| ApiError::sync_timeout(text, strict))?,
            None => 0,
        };
        let patience = u64::try_from(patience).unwrap_or_default();
        Ok(Self {
            summary: params.has("summary"),
            details: params.has("details"),
            sync: params.has("sync"),
            sync_timeout: (patience > 0).then(|| Duration::from_millis(patience)),
        })
    }

    /// How long to wait, if not for as long as it takes.
    pub(super) fn patience(self) -> Option<Duration> {
        self.sync_timeout.filter(|_| self.sync)
    }
}

/// What `summary` and `details` give, member by member in OpenTSDB's order.
#[derive(Debug, Serialize)]
#[serde(bound = "PutErrors<'a, F>: Serialize")]
pub(crate) struct PutAnswer<'a, F> {
    success: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    timeouts: Option<u64>,
    failed: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    errors: Option<PutErrors<'a, F>>,
}

/// The errors of a report, each made when it is written.
#[derive(Debug)]
pub(crate) struct PutErrors<'a, F>(&'a [PointError], &'a F);

#[derive(Debug, Serialize)]
struct PutErrorEntry<E: Serialize> {
    datapoint: Option<E>,
    error: String,
}

impl<E: Serialize, F: Fn(usize) -> Option<E>> Serialize for PutErrors<'_, F> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self(errors, echo) = self;
        serializer.collect_seq(
            errors.iter().map(|error| PutErrorEntry { datapoint: echo(error.index), error: error.problem.http_text() }),
        )
    }
}

impl<'a, F> PutAnswer<'a, F> {
    /// `timed_out` of the report's failures ran out of time.
    pub(crate) fn new(flags: Flags, report: &'a PutReport, timed_out: u64, echo: &'a F) -> Self {
        Self {
            success: report.stored,
            timeouts: flags.sync_timeout.map(|_| timed_out),
            failed: report.rejected + report.failed - timed_out,
            errors: flags.details.then(|| PutErrors(&report.errors, echo)),
        }
    }
}
