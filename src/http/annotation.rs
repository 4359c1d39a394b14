//! `/api/annotation` and `/api/annotations`: remarks at a time, one by one, the global ones of a range, and many ([`bulk`]).

mod bulk;
mod note;

use std::sync::Arc;

use axum::extract::State;
use axum::http::Method;
use axum::response::{IntoResponse, Response};
use basalt_schema::{Annotation, PointTime};

use super::call::{Call, mode_of};
use super::error::{self, ApiError};
use super::json;
use crate::app::App;
use crate::clock;
use note::{NO_END, Note};

pub(super) use note::series_of;

/// Global annotations answered at most.
const ANNOTATIONS_MAX: usize = 100_000;

/// One annotation.
pub(crate) async fn one(State(app): State<Arc<App>>, call: Call) -> Result<Response, ApiError> {
    let method = call.meant()?;
    let note = Note::of_call(&call, &app)?;
    if method == Method::GET { fetch(&app, note).await } else { change(&app, &method, note).await }
}

/// The global annotations of a range; any other method means one annotation, as in OpenTSDB.
pub(crate) async fn range(State(app): State<Arc<App>>, call: Call) -> Result<Response, ApiError> {
    let method = call.meant()?;
    let note = Note::of_call(&call, &app)?;
    if method == Method::GET { fetch_range(&app, note).await } else { change(&app, &method, note).await }
}

async fn fetch(app: &Arc<App>, note: Note) -> Result<Response, ApiError> {
    let strict = app.config.compat.strict;
    let found = app
        .with_schema(move |schema| {
            let place = note.place(schema).map_err(|fault| ApiError::fault(fault, strict))?;
            Ok(schema.annotation(&place)?)
        })
        .await?;
    json::ok(&found.ok_or_else(|| ApiError::not_found("Unable to locate annotation in storage"))?)
}

async fn change(app: &Arc<App>, method: &Method, note: Note) -> Result<Response, ApiError> {
    let strict = app.config.compat.strict;
    if *method == Method::DELETE {
        return app
            .with_schema(move |schema| {
                let place = note.place(schema);
                let place =
                    place.map_err(|fault| ApiError::bad_with("Unable to delete Annotation information", fault))?;
                Ok(schema.delete_annotation(&place)?)
            })
            .await
            .map(|_| error::done());
    }
    let mode = mode_of(method);
    let edited = app
        .with_schema(move |schema| {
            let place = note.place(schema).map_err(ApiError::bad_twice)?;
            note.check(schema, &place, strict)?;
            note.write(schema, &place, mode)
        })
        .await?;
    if let Some(note) = &edited {
        app.publisher.one(note);
    }
    error::edited(edited.as_ref())
}

/// Without an end the range ends now. OpenTSDB compares seconds with milliseconds here and looks at the note's end where the range ends: `strict` does too.
async fn fetch_range(app: &Arc<App>, note: Note) -> Result<Response, ApiError> {
    let strict = app.config.compat.strict;
    let from = note.start;
    let now_ms = clock::signed_now_ms();
    let to = note.edit.end_time.unwrap_or(now_ms);
    if to < 0 {
        return Err(ApiError::fault(NO_END.into(), strict));
    }
    let millis = |time: i64| PointTime::from_number(time).map_or(i64::MAX, |time| time.millis().cast_signed());
    let (from_ms, to_ms) = (millis(from), millis(to));
    // By now nothing is to come; OpenTSDB notices a start after it in milliseconds alone, and here nobody named an end.
    if note.edit.end_time.is_none() && from_ms > now_ms {
        return json::ok(&[(); 0]);
    }
    if to_ms < from_ms {
        return Err(ApiError::fault("The end timestamp cannot be less than the start timestamp".into(), strict));
    }
    let wanted = move |start_ms: i64, note: &Annotation| {
        if strict { note.start_time >= from && note.end_time <= to } else { (from_ms..=to_ms).contains(&start_ms) }
    };
    app.with_seat(move |schema, pool| {
        let mut found = schema.global_annotations(from_ms..=to_ms, ANNOTATIONS_MAX)?;
        found.retain(|(start_ms, note)| wanted(*start_ms, note));
        if !strict {
            found.sort_by_key(|(start_ms, _)| *start_ms);
        }
        json::counted(pool, &found.into_iter().map(|(_, note)| note).collect::<Vec<_>>())
    })
    .await
}

/// A path below `/api/annotation` or `/api/annotations`: one that ends in `bulk` is about many.
pub(crate) async fn below(app: State<Arc<App>>, uri: axum::http::Uri, call: Call) -> Response {
    if uri.path().ends_with("bulk") {
        return bulk::many(app, call).await.into_response();
    }
    if uri.path().starts_with("/api/annotations") {
        return range(app, call).await.into_response();
    }
    one(app, call).await.into_response()
}
