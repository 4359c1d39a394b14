//! `/api/annotation/bulk`: many annotations written in one call, and deleted by range (rule `A-ANNOTS`).

use std::sync::Arc;

use axum::extract::State;
use axum::http::Method;
use axum::response::Response;
use basalt_schema::{Schema, Tsuid};
use serde_json::json;

use super::note::{NO_END, Note, parse_ms, series_of};
use crate::app::App;
use crate::clock;
use crate::http::call::{Call, mode_of};
use crate::http::error::ApiError;
use crate::http::fields::{Fault, Fields};
use crate::http::json;

/// Annotations written, or series whose annotations are deleted, in one call. Many writes share a wait for the disk, each series of a
/// delete waits for itself.
const ITEMS_MAX: usize = 10_000;

/// Writes or deletes many.
pub(super) async fn many(State(app): State<Arc<App>>, call: Call) -> Result<Response, ApiError> {
    match call.meant()? {
        method @ (Method::POST | Method::PUT) => write(&app, &method, &call).await,
        Method::DELETE => delete(&app, &call).await,
        other => Err(ApiError::method(&other)),
    }
}

/// Answers what is stored now, in the order given, without those that said nothing new. One bad note refuses all, before
/// any is written.
async fn write(app: &Arc<App>, method: &Method, call: &Call) -> Result<Response, ApiError> {
    call.content()?;
    let notes = call
        .list()
        .and_then(|list| list.iter().map(Note::of_fields).collect::<Result<Vec<_>, Fault>>())
        .map_err(|fault| ApiError::bad_json(&fault))?;
    if notes.len() > ITEMS_MAX {
        return Err(ApiError::too_many("annotations", notes.len(), ITEMS_MAX));
    }
    let (mode, strict) = (mode_of(method), app.config.compat.strict);
    let (written, outcome) = app
        .with_schema(move |schema| {
            let placed = notes.into_iter().map(|note| {
                let place = note.place(schema);
                let place =
                    place.map_err(|fault| ApiError::bad_with(fault, format!("Annotation error: {}", note.told())))?;
                note.check(schema, &place, strict)?;
                Ok((place, note.edit()))
            });
            let placed: Vec<_> = placed.collect::<Result<_, ApiError>>()?;
            // What says nothing new is not written.
            let edits: Vec<_> = placed.into_iter().filter(|(_, edit)| !edit.is_empty()).collect();
            let (written, outcome) = schema.edit_annotations(&edits, mode);
            Ok((written, outcome.map_err(|cause| ApiError::of_edit(&cause, "Annotation"))))
        })
        .await?;
    // Also those before one that could not be stored.
    for note in &written {
        app.publisher.one(note);
    }
    outcome?;
    json::ok(&written)
}

/// A range of annotations to be deleted.
#[derive(Debug)]
struct Range {
    start_ms: i64,
    end_ms: i64,
    /// As spelled; `None` when there is no list.
    tsuids: Option<Vec<String>>,
    global: bool,
}

async fn delete(app: &Arc<App>, call: &Call) -> Result<Response, ApiError> {
    let range = if call.body.is_empty() { Range::of_params(app, call) } else { Range::of_body(app, call) }?;
    let (range, deleted) = app.with_schema(move |schema| range.delete(schema).map(|deleted| (range, deleted))).await?;
    json::ok(&json!({
        "tsuids": range.tsuids,
        "global": range.global,
        "startTime": range.start_ms,
        "endTime": range.end_ms,
        "totalDeleted": deleted,
    }))
}

/// Members of a body that deletes a range.
const MEMBERS: [&str; 5] = ["startTime", "endTime", "tsuids", "global", "totalDeleted"];

impl Range {
    fn of_params(app: &App, call: &Call) -> Result<Self, ApiError> {
        let start = call.params.required("start_time")?;
        let tsuids = call.params.given("tsuids");
        let tsuids = tsuids.map(|tsuids| tsuids.split(',').map(|tsuid| tsuid.trim().to_owned()).collect());
        Self::new(app, Some(start), call.params.last("end_time"), (tsuids, call.params.has("global")))
    }

    /// A member that there is not is refused: an end that is spelled wrongly would be now.
    fn of_body(app: &App, call: &Call) -> Result<Self, ApiError> {
        let read = |fields: &Fields| {
            if let Some(name) = fields.names().find(|name| !MEMBERS.contains(name)) {
                return Err(format!("Unrecognized field \"{name}\", not one of {}", MEMBERS.join(", ")));
            }
            let which = (fields.texts("tsuids")?, fields.flag("global")?.unwrap_or(false));
            Ok::<_, Fault>((fields.text("startTime")?, fields.text("endTime")?, which))
        };
        let (start, end, which) = call.object(read).map_err(|fault| ApiError::bad_json(&fault))?;
        Self::new(app, start.as_deref(), end.as_deref(), which)
    }

    /// `which`: series, and whether the global ones too. Without an end it is now.
    fn new(
        app: &App,
        start: Option<&str>,
        end: Option<&str>,
        which: (Option<Vec<String>>, bool),
    ) -> Result<Self, ApiError> {
        let (tsuids, global) = which;
        let given = |text: Option<&str>| text.filter(|text| !text.is_empty()).map(str::to_owned);
        let start = given(start).ok_or_else(|| ApiError::bad("Missing the start time value"))?;
        if !global && tsuids.as_ref().is_none_or(Vec::is_empty) {
            return Err(ApiError::bad("Missing the TSUIDs or global annotations flag"));
        }
        if let Some(count) = tsuids.as_ref().map(Vec::len).filter(|count| *count > ITEMS_MAX) {
            return Err(ApiError::too_many("TSUIDs", count, ITEMS_MAX));
        }
        let start_ms = parse_ms(app, &start).map_err(ApiError::bad_twice)?;
        let end_ms = given(end).map_or_else(|| Ok(clock::signed_now_ms()), |end| parse_ms(app, &end));
        let end_ms = end_ms.map_err(ApiError::bad_twice)?;
        if end_ms < 1 {
            return Err(ApiError::bad_twice(NO_END.into()));
        }
        if end_ms < start_ms {
            return Err(ApiError::bad_twice("The end timestamp cannot be less than the start timestamp".into()));
        }
        Ok(Self { start_ms, end_ms, tsuids, global })
    }

    fn delete(&self, schema: &Schema) -> Result<u64, ApiError> {
        let widths = schema.layout().widths;
        let series = self.tsuids.iter().flatten().map(|tsuid| series_of(tsuid, widths));
        let series: Vec<Option<Tsuid>> = series.collect::<Result<_, _>>().map_err(ApiError::bad_twice)?;
        // An empty TSUID is no series, and no wish to delete the global ones.
        let series = series.iter().flatten().map(Some);
        let which = self.global.then_some(None).into_iter().chain(series);
        let span_ms = self.start_ms..=self.end_ms;
        which.into_iter().try_fold(0, |total, tsuid| Ok(total + schema.delete_annotations(tsuid, span_ms.clone())?))
    }
}
