//! `/api/uid/tsmeta`: what is said of a series (rule `M-TSMETA`).

use std::sync::Arc;

use axum::extract::State;
use axum::http::Method;
use axum::response::Response;
use basalt_query::NamedSeries;
use basalt_schema::{EditMode, Error, Schema, TsMeta, TsMetaEdit, Tsuid, UidKind};

use super::annotation::series_of;
use super::call::{Call, mode_of};
use super::error::{self, ApiError};
use super::fields::{Fault, Fields};
use super::json;
use crate::app::App;
use crate::clock;

/// Meta objects answered at most.
const METAS_MAX: usize = 100_000;

/// A series' meta object as a request names it.
#[derive(Debug)]
struct TsMetaRequest {
    /// Hex; empty where the series is named.
    tsuid: String,
    edit: TsMetaEdit,
}

/// Reads, changes, makes or deletes one; reads many of a metric.
pub(crate) async fn meta(State(app): State<Arc<App>>, call: Call) -> Result<Response, ApiError> {
    match call.meant()? {
        Method::GET if call.params.has("tsuid") => fetch(&app, &call).await,
        Method::GET => fetch_named(&app, &call).await,
        Method::DELETE => delete(&app, &call).await,
        method => edit(&app, &method, &call).await,
    }
}

async fn fetch(app: &Arc<App>, call: &Call) -> Result<Response, ApiError> {
    let strict = app.config.compat.strict;
    let hex = call.params.last("tsuid").unwrap_or_default().to_owned();
    let found = app
        .with_schema(move |schema| {
            let tsuid = tsuid_of(schema, &hex).map_err(|fault| ApiError::fault(fault, strict))?;
            schema.ts_meta(&tsuid).map_err(|cause| ApiError::of_ts_meta(&cause, "Unable to find one of the UIDs"))
        })
        .await?;
    json::ok(&found.ok_or_else(|| ApiError::not_found("Could not find Timeseries meta data"))?)
}

/// The objects of a metric's series. OpenTSDB knows no `*` for a value and stumbles over unknown tags: so does `strict`.
async fn fetch_named(app: &Arc<App>, call: &Call) -> Result<Response, ApiError> {
    let strict = app.config.compat.strict;
    let NamedSeries { metric, tags } = named(call)?;
    app.with_seat(move |schema, pool| {
        let unknown = |cause: Error| ApiError::of_ts_meta(&cause, "Unable to find one of the UIDs");
        let metric = schema.uids().of(UidKind::Metric).uid(&metric).map_err(unknown)?;
        let uids = tags.iter().map(|(key, value)| {
            let value = Some(value).filter(|value| strict || *value != "*");
            let value = value.map(|value| schema.uids().of(UidKind::Tagv).uid(value)).transpose()?;
            Ok((schema.uids().of(UidKind::Tagk).uid(key)?, value))
        });
        let uids = uids.collect::<Result<Vec<_>, Error>>();
        let uids = uids.map_err(|cause| if strict { ApiError::group_failed() } else { unknown(cause) })?;
        json::counted(pool, &schema.ts_metas(metric, &uids, METAS_MAX).map_err(unknown)?)
    })
    .await
}

async fn edit(app: &Arc<App>, method: &Method, call: &Call) -> Result<Response, ApiError> {
    let strict = app.config.compat.strict;
    let mut request = TsMetaRequest::of_call(call)?;
    let mode = mode_of(method);
    let named = request.tsuid.is_empty().then(|| named(call)).transpose()?;
    let may_create = call.params.last("create") == Some("true");
    let edited = app
        .with_schema(move |schema| match named {
            Some(named) => request.edit_named(schema, &named, mode, may_create.then_some(strict)),
            None => request.edit_by_id(schema, mode, strict),
        })
        .await?;
    error::edited(edited.as_ref())
}

async fn delete(app: &Arc<App>, call: &Call) -> Result<Response, ApiError> {
    let request = TsMetaRequest::of_call(call)?;
    app.with_schema(move |schema| {
        let refused = |fault| ApiError::bad_with("Unable to delete TSMeta information", fault);
        if request.tsuid.is_empty() {
            return Err(refused("Missing UID".into()));
        }
        let tsuid = tsuid_of(schema, &request.tsuid).map_err(refused)?;
        Ok(schema.delete_ts_meta(&tsuid)?)
    })
    .await?;
    Ok(error::done())
}

impl TsMetaRequest {
    fn of_call(call: &Call) -> Result<Self, ApiError> {
        if call.body.is_empty() {
            return Self::of_params(call);
        }
        call.object(Self::of_fields).map_err(|fault| ApiError::bad_json(&fault))
    }

    fn of_params(call: &Call) -> Result<Self, ApiError> {
        let text = |name: &str| call.params.text(name);
        let bad = |name: &str| ApiError::bad(format!("Unable to parse '{name}' value"));
        let double = |name: &str| text(name).map(|text| text.parse::<f64>().map_err(|_| bad(name))).transpose();
        let retention = text("retention").map(|text| text.parse::<i32>().map_err(|_| bad("retention")));
        Ok(Self {
            tsuid: text("tsuid").unwrap_or_default(),
            edit: TsMetaEdit {
                display_name: text("display_name"),
                description: text("description"),
                notes: text("notes"),
                created: None,
                custom: None,
                units: text("units"),
                data_type: text("data_type"),
                retention: retention.transpose()?.map(i64::from).filter(|days| *days != 0),
                max: double("max")?,
                min: double("min")?,
            },
        })
    }

    fn of_fields(fields: &Fields) -> Result<Self, Fault> {
        Ok(Self {
            tsuid: fields.text("tsuid")?.unwrap_or_default(),
            edit: TsMetaEdit {
                display_name: fields.change("displayName")?,
                description: fields.change("description")?,
                notes: fields.change("notes")?,
                created: fields.integer("created")?.filter(|time| *time != 0),
                custom: fields.pairs("custom")?,
                units: fields.change("units")?,
                data_type: fields.change("dataType")?,
                retention: days(fields)?.filter(|days| *days != 0),
                max: fields.double("max")?,
                min: fields.double("min")?,
            },
        })
    }

    /// `None` if it says nothing new.
    fn edit_by_id(&self, schema: &Schema, mode: EditMode, strict: bool) -> Result<Option<TsMeta>, ApiError> {
        if self.edit.is_empty() {
            return Ok(None);
        }
        let tsuid = tsuid_of(schema, &self.tsuid).map_err(ApiError::bad_twice)?;
        let edited = schema.edit_ts_meta(&tsuid, &self.edit, mode).map_err(|cause| match cause {
            Error::NoSuchId { .. } if strict => ApiError::stumble(cause.to_string()),
            cause => ApiError::of_ts_meta(&cause, "Unable to find one or more UIDs"),
        })?;
        edited.map(Some).ok_or_else(|| ApiError::bad_twice("Requested TSMeta did not exist".into()))
    }

    /// `create`: whether one that is not there is made, and then whether without a time, as OpenTSDB makes it.
    fn edit_named(
        &mut self,
        schema: &Schema,
        NamedSeries { metric, tags }: &NamedSeries,
        mode: EditMode,
        create: Option<bool>,
    ) -> Result<Option<TsMeta>, ApiError> {
        let failed = |cause: Error| ApiError::of_ts_meta(&cause, "Unable to find one or more UIDs");
        let tags: Vec<_> = tags.iter().map(|(key, value)| (&**key, &**value)).collect();
        let tsuid = schema.find(metric, &tags).map_err(failed)?;
        if schema.has_ts_meta(&tsuid).map_err(failed)? {
            if self.edit.is_empty() {
                return Ok(None);
            }
            return schema.edit_ts_meta(&tsuid, &self.edit, mode).map_err(failed);
        }
        let Some(strict) = create else {
            let refusal = "Could not find TSMeta, specify \"create=true\" to create a new one.";
            return Err(ApiError::bad(refusal));
        };
        if !strict && self.edit.created.is_none() {
            self.edit.created = i64::try_from(clock::now_ms() / 1000).ok();
        }
        schema.create_ts_meta(&tsuid, &self.edit).map_err(failed)
    }
}

/// `retention` in days. OpenTSDB could not read an object again whose number is beyond 32 bits.
fn days(fields: &Fields) -> Result<Option<i64>, Fault> {
    let days = fields.integer("retention")?;
    if days.is_some_and(|days| i32::try_from(days).is_err()) {
        return Err("`retention` is beyond 32 bits".into());
    }
    Ok(days)
}

fn tsuid_of(schema: &Schema, hex: &str) -> Result<Tsuid, Fault> {
    series_of(hex, schema.layout().widths)?.ok_or_else(|| "UID was empty".into())
}

/// The series that `m` names.
fn named(call: &Call) -> Result<NamedSeries, ApiError> {
    call.params.required("m")?.parse().map_err(|cause: basalt_query::Error| ApiError::bad_twice(cause.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::json::Rest;

    /// `M-TSMETA`: what OpenTSDB could not read again is refused.
    #[test]
    fn m_tsmeta_retention_is_of_32_bits() {
        let read = |value: &str| {
            Fields::parse(format!(r#"{{"retention":{value}}}"#).as_bytes(), Rest::Refused)
                .and_then(|fields| days(&fields))
        };
        assert_eq!(read("2147483647"), Ok(Some(2_147_483_647)));
        assert_eq!(read("-5"), Ok(Some(-5)));
        assert_eq!(read("null"), Ok(None));
        for beyond in ["2147483648", "-2147483649", "1e10", "\"2147483648\""] {
            assert_eq!(read(beyond), Err("`retention` is beyond 32 bits".into()), "{beyond}");
        }
    }
}
