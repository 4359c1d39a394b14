//! `/api/uid/uidmeta`: what is said of a name (rule `M-UIDMETA`).

use std::sync::Arc;

use axum::extract::State;
use axum::http::Method;
use axum::response::Response;
use basalt_schema::{Schema, Uid, UidKind, UidMetaEdit};

use super::call::{Call, mode_of};
use super::error::{self, ApiError};
use super::fields::{Fault, Fields};
use super::json;
use crate::app::App;

/// A name's meta object as a request names it.
#[derive(Debug)]
struct UidMetaRequest {
    /// Hex.
    uid: Option<String>,
    kind: Option<UidKind>,
    edit: UidMetaEdit,
}

/// Reads, changes or deletes one.
pub(crate) async fn meta(State(app): State<Arc<App>>, call: Call) -> Result<Response, ApiError> {
    match call.meant()? {
        Method::GET => fetch(&app, &call).await,
        Method::DELETE => delete(&app, &call).await,
        method => edit(&app, &method, &call).await,
    }
}

async fn fetch(app: &Arc<App>, call: &Call) -> Result<Response, ApiError> {
    let strict = app.config.compat.strict;
    let (kind, hex) = named(call, strict)?;
    let found = app
        .with_schema(move |schema| {
            let uid = uid_of(schema, kind, &hex).map_err(|fault| ApiError::fault(fault, strict))?;
            schema.uid_meta(kind, uid).map_err(|cause| ApiError::of_uid_meta(&cause))
        })
        .await?;
    json::ok(&found)
}

async fn edit(app: &Arc<App>, method: &Method, call: &Call) -> Result<Response, ApiError> {
    let request = UidMetaRequest::of_call(call, app.config.compat.strict)?;
    let mode = mode_of(method);
    let edited = app
        .with_schema(move |schema| {
            let (kind, hex) = request.named().map_err(ApiError::bad_twice)?;
            if request.edit.is_empty() {
                return Ok(None);
            }
            let uid = uid_of(schema, kind, hex).map_err(ApiError::bad_twice)?;
            let edited = schema.edit_uid_meta(kind, uid, &request.edit, mode);
            edited.map(Some).map_err(|cause| ApiError::of_uid_meta(&cause))
        })
        .await?;
    error::edited(edited.as_ref())
}

async fn delete(app: &Arc<App>, call: &Call) -> Result<Response, ApiError> {
    let request = UidMetaRequest::of_call(call, app.config.compat.strict)?;
    app.with_schema(move |schema| {
        let refused = |fault| ApiError::bad_with("Unable to delete UIDMeta information", fault);
        let (kind, hex) = request.named().map_err(refused)?;
        let uid = uid_of(schema, kind, hex).map_err(refused)?;
        schema.delete_uid_meta(kind, uid).map_err(|cause| ApiError::of_uid_meta(&cause))
    })
    .await?;
    Ok(error::done())
}

impl UidMetaRequest {
    fn of_call(call: &Call, strict: bool) -> Result<Self, ApiError> {
        if call.body.is_empty() {
            return Self::of_params(call, strict);
        }
        call.object(Self::of_fields).map_err(|fault| ApiError::bad_json(&fault))
    }

    fn of_params(call: &Call, strict: bool) -> Result<Self, ApiError> {
        let (kind, uid) = named(call, strict)?;
        let edit = UidMetaEdit {
            display_name: call.params.text("display_name"),
            description: call.params.text("description"),
            notes: call.params.text("notes"),
            ..UidMetaEdit::default()
        };
        Ok(Self { uid: Some(uid), kind: Some(kind), edit })
    }

    fn of_fields(fields: &Fields) -> Result<Self, Fault> {
        Ok(Self {
            uid: fields.text("uid")?.filter(|uid| !uid.is_empty()),
            kind: fields.text("type")?.map(|kind| kind_of(&kind)).transpose()?,
            edit: UidMetaEdit {
                display_name: fields.change("displayName")?,
                description: fields.change("description")?,
                notes: fields.change("notes")?,
                created: fields.integer("created")?.filter(|time| *time != 0),
                custom: fields.pairs("custom")?,
            },
        })
    }

    fn named(&self) -> Result<(UidKind, &str), Fault> {
        let uid = self.uid.as_deref().ok_or("Missing UID")?;
        Ok((self.kind.ok_or("Missing type")?, uid))
    }
}

/// What a query string names.
fn named(call: &Call, strict: bool) -> Result<(UidKind, String), ApiError> {
    let uid = call.params.required("uid")?.to_owned();
    let kind = kind_of(call.params.required("type")?).map_err(|fault| ApiError::fault(fault, strict))?;
    Ok((kind, uid))
}

fn kind_of(text: &str) -> Result<UidKind, Fault> {
    UidKind::parse(&text.to_lowercase()).ok_or_else(|| format!("Invalid type requested: {text}"))
}

/// Reads hex of the kind's width; a missing leading zero is taken as there.
fn uid_of(schema: &Schema, kind: UidKind, hex: &str) -> Result<Uid, Fault> {
    if let Some(character) = hex.chars().find(|character| !character.is_ascii_hexdigit()) {
        return Err(format!("`{character}` in `{hex}` is no hexadecimal digit"));
    }
    let (length, width) = (hex.len().div_ceil(2), schema.uids().of(kind).width().bytes());
    if length != width {
        return Err(format!("Wrong id.length = {length} which is != {width} required for '{kind}'"));
    }
    u64::from_str_radix(hex, 16).map(Uid::new).map_err(|cause| cause.to_string())
}
