//! `/api/annotation` and `/api/annotations`: remarks at a time, one by one and the global ones of a range; `bulk` is in
//! [`super::annotation_bulk`].

use std::sync::Arc;

use axum::extract::State;
use axum::http::Method;
use axum::response::{IntoResponse, Response};
use basalt_query::{TimeContext, parse_time};
use basalt_schema::{Annotation, AnnotationEdit, AnnotationPlace, EditMode, PointTime, Schema, Tsuid, UidWidths};

use super::call::{Call, mode_of};
use super::error::{self, ApiError};
use super::fields::{Fault, Fields};
use super::json;
use crate::app::App;
use crate::clock;

/// Global annotations answered at most.
const ANNOTATIONS_MAX: usize = 100_000;

/// Of an end before the epoch.
pub(super) const NO_END: &str = "The end timestamp has not been set";

/// An annotation as a request names it.
#[derive(Debug)]
pub(super) struct Note {
    /// As spelled; empty for a global one.
    tsuid: String,
    /// Seconds or milliseconds; 0 when it is not given.
    start: i64,
    edit: AnnotationEdit,
}

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

impl Note {
    fn of_call(call: &Call, app: &App) -> Result<Self, ApiError> {
        let strict = app.config.compat.strict;
        if call.body.is_empty() {
            return Self::of_params(call, app, strict);
        }
        call.object(Self::of_fields).map_err(|fault| ApiError::bad_body(fault, strict))
    }

    pub(super) fn of_fields(fields: &Fields) -> Result<Self, Fault> {
        let tsuid = fields.text("tsuid")?.unwrap_or_default();
        Ok(Self {
            start: fields.integer("startTime")?.unwrap_or(0),
            edit: AnnotationEdit {
                tsuid: tsuid.clone(),
                end_time: fields.integer("endTime")?.filter(|time| *time != 0),
                description: fields.change("description")?,
                notes: fields.change("notes")?,
                custom: fields.pairs("custom")?,
            },
            tsuid,
        })
    }

    fn of_params(call: &Call, app: &App, strict: bool) -> Result<Self, ApiError> {
        let text = |name: &str| call.params.text(name);
        let time = |name: &str| text(name).map(|text| parse_ms(app, &text)).transpose();
        let start_ms = time("start_time").map_err(|fault| ApiError::fault(fault, strict))?;
        let start_ms = start_ms.filter(|time| *time > 0).ok_or_else(|| ApiError::bad("Missing start time"))?;
        let end_ms = time("end_time").map_err(|fault| ApiError::fault(fault, strict))?;
        let tsuid = text("tsuid").unwrap_or_default();
        // OpenTSDB forgets the milliseconds of an address.
        let number = |ms: i64| if strict || ms % 1000 == 0 { ms / 1000 } else { ms };
        Ok(Self {
            start: number(start_ms),
            edit: AnnotationEdit {
                tsuid: tsuid.clone(),
                end_time: end_ms.map(number),
                description: text("description"),
                notes: text("notes"),
                custom: None,
            },
            tsuid,
        })
    }

    /// Where it is kept, or why there is no such place.
    pub(super) fn place(&self, schema: &Schema) -> Result<AnnotationPlace, Fault> {
        if self.start < 1 {
            return Err("The start timestamp has not been set".into());
        }
        let start = PointTime::from_number(self.start).map_err(|cause| cause.to_string())?;
        Ok(AnnotationPlace { tsuid: series_of(&self.tsuid, schema.layout().widths)?, start })
    }

    /// Whether its series is one.
    ///
    /// OpenTSDB takes any TSUID, and queries of its metric then fail over the UIDs that have no names. Ours must have
    /// them, unless `strict`.
    pub(super) fn check(&self, schema: &Schema, place: &AnnotationPlace, strict: bool) -> Result<(), ApiError> {
        match &place.tsuid {
            Some(tsuid) if !strict && !self.edit.is_empty() => Ok(schema.names(tsuid).map(drop)?),
            _ => Ok(()),
        }
    }

    /// Writes one that was checked; `None` if it says nothing new.
    fn write(&self, schema: &Schema, place: &AnnotationPlace, mode: EditMode) -> Result<Option<Annotation>, ApiError> {
        if self.edit.is_empty() {
            return Ok(None);
        }
        let edited = schema.edit_annotation(place, &self.edit, mode);
        edited.map(Some).map_err(|cause| ApiError::of_edit(&cause, "Annotation"))
    }

    /// What it changes.
    pub(super) fn edit(self) -> AnnotationEdit {
        self.edit
    }

    /// As OpenTSDB tells of it in an error.
    pub(super) fn told(&self) -> String {
        let description = self.edit.description.as_deref().unwrap_or_default();
        format!("TSUID: {} Start: {}  Description: {description}", self.tsuid, self.start)
    }
}

/// The series of a TSUID in hex; `None` of an empty one.
pub(super) fn series_of(tsuid: &str, widths: UidWidths) -> Result<Option<Tsuid>, Fault> {
    if tsuid.is_empty() {
        return Ok(None);
    }
    Tsuid::parse(tsuid, widths).map(Some).map_err(|cause| cause.to_string())
}

/// Any form of time a query takes, in milliseconds.
pub(super) fn parse_ms(app: &App, text: &str) -> Result<i64, Fault> {
    let options = &app.query_options;
    let now_ms = clock::signed_now_ms();
    let context = TimeContext { now_ms, zone: options.default_zone, compat: options.compat };
    parse_time(text, &context).map_err(|cause| cause.to_string())
}

/// A path below `/api/annotation` or `/api/annotations`: one that ends in `bulk` is about many.
pub(crate) async fn below(app: State<Arc<App>>, uri: axum::http::Uri, call: Call) -> Response {
    if uri.path().ends_with("bulk") {
        return super::annotation_bulk::many(app, call).await.into_response();
    }
    if uri.path().starts_with("/api/annotations") {
        return range(app, call).await.into_response();
    }
    one(app, call).await.into_response()
}
