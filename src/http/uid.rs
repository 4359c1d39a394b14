//! `/api/uid/assign` and `/api/uid/rename`: UIDs for names, and names for UIDs.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::extract::State;
use axum::http::Method;
use axum::response::Response;
use basalt_schema::{Error, NameRole, Schema, UidKind};
use basalt_store::ErrorKind;
use serde_json::json;

use super::call::Call;
use super::error::{self, ApiError};
use super::fields::Fields;
use crate::app::App;

/// How a request names the kinds, in the order of a row key.
const KINDS: [&str; 3] = ["metric", "tagk", "tagv"];

/// Names assigned in one call: each waits for the disk.
const NAMES_MAX: usize = 10_000;

/// Names by the kind as the request spelled it.
type Names = BTreeMap<String, Vec<String>>;
/// What became of them: `metric` and, if any was refused, `metric_errors`.
type Outcome = BTreeMap<String, BTreeMap<String, String>>;

/// Gives each name its first UID.
pub(crate) async fn assign(State(app): State<Arc<App>>, call: Call) -> Result<Response, ApiError> {
    let names = match call.method {
        Method::GET => names_of_params(&call),
        Method::POST => names_of_body(&call)?,
        other => return Err(ApiError::method(&other)),
    };
    if names.is_empty() {
        return Err(ApiError::bad("Missing values to assign UIDs"));
    }
    let count = names.values().map(Vec::len).sum();
    if count > NAMES_MAX {
        return Err(ApiError::too_many("names", count, NAMES_MAX));
    }
    let strict = app.config.compat.strict;
    let outcome = app.with_schema(move |schema| assign_all(schema, names, strict)).await?;
    error::uid_outcome(!outcome.keys().any(|kind| kind.ends_with("_errors")), &outcome)
}

fn names_of_params(call: &Call) -> Names {
    let given = KINDS.iter().filter_map(|kind| {
        let mut names: Vec<String> = call.params.last(kind)?.split(',').map(str::to_owned).collect();
        // Java's `split` drops empty pieces at the end.
        while names.last().is_some_and(String::is_empty) {
            names.pop();
        }
        (!names.is_empty()).then(|| ((*kind).to_owned(), names))
    });
    given.collect()
}

fn names_of_body(call: &Call) -> Result<Names, ApiError> {
    call.content()?;
    let names = |fields: &Fields| {
        fields.names().map(|kind| Ok((kind.to_owned(), fields.texts(kind)?.unwrap_or_default()))).collect()
    };
    call.object(names).map_err(|fault| ApiError::bad_json(&fault))
}

fn assign_all(schema: &Schema, names: Names, strict: bool) -> Result<Outcome, ApiError> {
    let mut outcome = Outcome::new();
    for (kind, names) in names {
        let (mut assigned, mut refused) = (BTreeMap::new(), BTreeMap::new());
        for name in names {
            match assign_one(schema, &kind, &name, strict)? {
                Ok(uid) => assigned.insert(name, uid),
                Err(reason) => refused.insert(name, reason),
            };
        }
        if !refused.is_empty() {
            outcome.insert(format!("{kind}_errors"), refused);
        }
        outcome.insert(kind, assigned);
    }
    Ok(outcome)
}

/// The UID in hex, or why there is none. A store that fails ends the whole request, and under `strict` a name that the
/// filter refuses or that no UID is left for does too, as in OpenTSDB.
fn assign_one(schema: &Schema, spelled: &str, name: &str, strict: bool) -> Result<Result<String, String>, ApiError> {
    if let Err(reason) = check_name(schema, spelled, name) {
        return Ok(Err(reason));
    }
    let Some(kind) = kind_of(spelled) else { return Ok(Err("Unknown type name".into())) };
    let table = schema.uids().of(kind);
    match table.create(name) {
        Ok(uid) => Ok(Ok(table.hex(uid))),
        Err(cause @ (Error::NameFiltered { .. } | Error::UidsExhausted { .. })) if strict => {
            Err(ApiError::stumble(cause.to_string()))
        }
        Err(cause) if matches!(cause.kind(), ErrorKind::Invalid | ErrorKind::Conflict) => Ok(Err(cause.to_string())),
        Err(cause) => Err(cause.into()),
    }
}

/// Gives a UID another name.
pub(crate) async fn rename(State(app): State<Arc<App>>, call: Call) -> Result<Response, ApiError> {
    let wanted = match call.method {
        Method::GET => Rename::of_params(&call),
        Method::POST => Rename::of_body(&call)?,
        other => return Err(ApiError::method(&other)),
    };
    let wanted = wanted.ok_or_else(|| ApiError::bad("Missing necessary values to rename UID"))?;
    let outcome = app.with_schema(move |schema| wanted.run(schema)).await?;
    match outcome {
        Ok(()) => error::uid_outcome(true, &json!({ "result": "true" })),
        Err(reason) => error::uid_outcome(false, &json!({ "result": "false", "error": reason })),
    }
}

/// A rename asked for.
#[derive(Debug)]
struct Rename {
    /// The kind as spelled.
    kind: String,
    from: String,
    to: String,
}

impl Rename {
    fn of_params(call: &Call) -> Option<Self> {
        let mut kinds = KINDS.iter().filter(|kind| call.params.given(kind).is_some());
        let (kind, None) = (kinds.next()?, kinds.next()) else { return None };
        Some(Self { kind: (*kind).to_owned(), from: call.params.text(kind)?, to: call.params.text("name")? })
    }

    /// `None` where a value is missing or `null`, or more than one kind is named: OpenTSDB would rename any one of them.
    fn of_body(call: &Call) -> Result<Option<Self>, ApiError> {
        let bad = |fault: String| ApiError::bad_json(&fault);
        call.content()?;
        let fields = call.fields().map_err(bad)?;
        let mut kinds = fields.names().filter(|name| *name != "name" && !matches!(fields.text(name), Ok(None)));
        let (Some(kind), None) = (kinds.next(), kinds.next()) else { return Ok(None) };
        let values = fields.text(kind).map_err(bad)?.zip(fields.text("name").map_err(bad)?);
        Ok(values.map(|(from, to)| Self { kind: kind.to_owned(), from, to }))
    }

    fn run(&self, schema: &Schema) -> Result<Result<(), String>, ApiError> {
        for name in [&self.from, &self.to] {
            if let Err(reason) = check_name(schema, &self.kind, name) {
                return Ok(Err(reason));
            }
        }
        let Some(kind) = kind_of(&self.kind) else { return Ok(Err("Unknown type name".into())) };
        match schema.uids().of(kind).rename(&self.from, &self.to) {
            Ok(()) => Ok(Ok(())),
            Err(Error::NoSuchName { name, .. }) => Ok(Err(format!("Name(\"{name}\") does not exist"))),
            Err(cause @ (Error::RenameTaken { .. } | Error::NameTooLong { .. })) => Ok(Err(cause.to_string())),
            Err(cause) => Err(cause.into()),
        }
    }
}

/// `metric`, `tagk` or `tagv` in any case; the plural is unknown here.
fn kind_of(spelled: &str) -> Option<UidKind> {
    let lower = spelled.to_lowercase();
    KINDS.contains(&lower.as_str()).then(|| UidKind::parse(&lower)).flatten()
}

/// The rules' refusal, which here names the kind as the request spelled it.
fn check_name(schema: &Schema, spelled: &str, name: &str) -> Result<(), String> {
    match schema.rules().check(NameRole::Metric, name) {
        Ok(()) => Ok(()),
        Err(Error::IllegalCharacter { name, character, .. }) => {
            Err(format!("Invalid {spelled} (\"{name}\"): illegal character: {character}"))
        }
        Err(_) => Err(format!("Invalid {spelled}: empty string")),
    }
}
