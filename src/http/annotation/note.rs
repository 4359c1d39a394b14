//! An annotation as a request names it: where it is kept, and what it says.

use basalt_query::{TimeContext, parse_time};
use basalt_schema::{Annotation, AnnotationEdit, AnnotationPlace, EditMode, PointTime, Schema, Tsuid, UidWidths};

use crate::app::App;
use crate::clock;
use crate::http::call::Call;
use crate::http::error::ApiError;
use crate::http::fields::{Fault, Fields};

/// Of an end before the epoch.
pub(super) const NO_END: &str = "The end timestamp has not been set";

/// An annotation as a request names it.
#[derive(Debug)]
pub(super) struct Note {
    /// As spelled; empty for a global one.
    pub(super) tsuid: String,
    /// Seconds or milliseconds; 0 when it is not given.
    pub(super) start: i64,
    pub(super) edit: AnnotationEdit,
}

impl Note {
    pub(super) fn of_call(call: &Call, app: &App) -> Result<Self, ApiError> {
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
    pub(super) fn write(
        &self,
        schema: &Schema,
        place: &AnnotationPlace,
        mode: EditMode,
    ) -> Result<Option<Annotation>, ApiError> {
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
pub(in crate::http) fn series_of(tsuid: &str, widths: UidWidths) -> Result<Option<Tsuid>, Fault> {
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
