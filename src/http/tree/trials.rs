//! `/api/tree/test`, `/api/tree/collisions` and `/api/tree/notmatched`: what rules make of a series, and which series found
//! no place.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::http::Method;
use axum::response::Response;
use basalt_schema::{Branch, CompiledTree, Error, Schema, TreeId, TsMeta, Tsuid};
use serde::Serialize;

use super::super::call::Call;
use super::super::error::ApiError;
use super::super::fields::Fields;
use super::super::json::{self, Rest};
use super::named::{bytes_of, no_tree, number, unsupported};
use crate::app::App;

/// Series that one call may name.
const SERIES_MAX: usize = 10_000;
/// Bytes of what is told of them, as for meta objects.
const TOLD_BYTES_MAX: usize = 256 << 20;

/// Series of a tree as a request names them.
#[derive(Debug)]
struct TrialRequest {
    tree: i64,
    /// Hex, as given; `None` where `tsuids` is no list.
    tsuids: Option<Vec<String>>,
}

/// What became of one series.
#[derive(Debug, Serialize)]
struct TrialAnswer {
    meta: Option<TsMeta>,
    messages: Vec<String>,
    branch: Option<Branch>,
}

/// Tries series; nothing is stored.
pub(super) async fn test(app: &Arc<App>, method: &Method, call: &Call) -> Result<Response, ApiError> {
    let strict = app.config.compat.strict;
    let request = TrialRequest::of_call(call, strict)?;
    let takes = takes(method);
    app.with_seat(move |schema, pool| {
        let id = TreeId::new(request.tree)?;
        let tree = schema.tree(id)?.ok_or_else(|| no_tree(request.tree))?;
        let Some(tsuids) = request.tsuids else {
            return Err(ApiError::fault("tsuids is no list".into(), strict));
        };
        if tsuids.is_empty() {
            return Err(ApiError::bad("Missing or empty TSUID list"));
        }
        if !takes {
            return Err(unsupported());
        }
        json::counted(pool, &try_all(schema, &CompiledTree::new(&tree), tsuids, TOLD_BYTES_MAX)?)
    })
    .await
}

/// By the series' spellings, as OpenTSDB has it; at most `max` bytes of JSON.
fn try_all(
    schema: &Schema,
    tree: &CompiledTree,
    tsuids: Vec<String>,
    max: usize,
) -> Result<BTreeMap<String, TrialAnswer>, ApiError> {
    let (mut all, mut left) = (BTreeMap::new(), max);
    for hex in tsuids {
        let told = try_one(schema, tree, &hex)?;
        let bytes = serde_json::to_vec(&told).map_err(|cause| ApiError::internal(cause.to_string()))?.len();
        left = left.checked_sub(bytes).ok_or(Error::TooMuchText { what: "trials", max })?;
        all.insert(hex, told);
    }
    Ok(all)
}

fn try_one(schema: &Schema, tree: &CompiledTree, hex: &str) -> Result<TrialAnswer, ApiError> {
    let bytes = series_bytes(hex)?;
    let nothing = |message: String| Ok(TrialAnswer { meta: None, messages: vec![message], branch: None });
    // Bytes that are no series have no meta object either.
    let series = Tsuid::from_bytes(&bytes, schema.layout().widths).ok();
    match series.map(|tsuid| schema.ts_meta(&tsuid)).transpose() {
        Ok(Some(Some(meta))) => {
            let trial = tree.try_series(&meta);
            Ok(TrialAnswer { meta: Some(meta), messages: trial.messages, branch: Some(trial.branch) })
        }
        Ok(_) => nothing("Unable to locate TSUID meta data".into()),
        Err(cause @ Error::NoSuchId { .. }) => nothing(format!("TSUID was missing a UID name: {cause}")),
        Err(cause) => Err(cause.into()),
    }
}

/// Series whose place was taken, or that matched too few rules.
pub(super) async fn failures(
    app: &Arc<App>,
    method: &Method,
    call: &Call,
    is_collisions: bool,
) -> Result<Response, ApiError> {
    let request = TrialRequest::of_call(call, app.config.compat.strict)?;
    let takes = takes(method);
    app.with_seat(move |schema, pool| {
        let id = TreeId::new(request.tree)?;
        schema.tree(id)?.ok_or_else(|| no_tree(request.tree))?;
        if !takes {
            return Err(unsupported());
        }
        let no_list = || ApiError::bad_with("Unable to convert the given data to a list", "tsuids is no list");
        let tsuids = request.tsuids.ok_or_else(no_list)?;
        let tsuids = tsuids.iter().map(|hex| series_bytes(hex)).collect::<Result<Vec<_>, _>>()?;
        let found =
            if is_collisions { schema.tree_collisions(id, &tsuids) } else { schema.tree_mismatches(id, &tsuids) };
        json::counted(pool, &found?)
    })
    .await
}

fn takes(method: &Method) -> bool {
    matches!(*method, Method::GET | Method::POST | Method::PUT)
}

fn series_bytes(hex: &str) -> Result<Vec<u8>, ApiError> {
    bytes_of(hex).ok_or_else(|| ApiError::bad_twice(format!("contains illegal character for hexBinary: {hex}")))
}

impl TrialRequest {
    fn of_call(call: &Call, strict: bool) -> Result<Self, ApiError> {
        let request = if call.body.is_empty() {
            let tree = number(call.params.required("treeid")?, "Unable to parse 'tree' value")?;
            let tsuids = call.params.last("tsuids").map(|tsuids| tsuids.split(',').map(str::to_owned).collect());
            Self { tree: tree.into(), tsuids: Some(tsuids.unwrap_or_default()) }
        } else {
            let fields = Fields::parse(&call.body, Rest::Left).map_err(|fault| ApiError::bad_body(fault, strict))?;
            let tree = fields.integer("treeId").ok().flatten();
            let tree = tree.ok_or_else(|| ApiError::bad("Missing or invalid Tree ID"))?;
            Self { tree, tsuids: fields.texts("tsuids").ok().map(Option::unwrap_or_default) }
        };
        match request.tsuids.as_ref().map(Vec::len) {
            Some(count) if count > SERIES_MAX => Err(ApiError::too_many("series", count, SERIES_MAX)),
            _ => Ok(request),
        }
    }
}

#[cfg(test)]
mod tests {
    use basalt_schema::{SchemaConfig, TreeEdit, TsMetaEdit};
    use basalt_store::{ManualClock, MemoryStore};

    use super::*;

    #[test]
    fn what_is_told_of_all_series_has_a_bound() {
        let store = Arc::new(MemoryStore::new(Arc::new(ManualClock::default())));
        let schema = Schema::open(store, SchemaConfig::default()).unwrap();
        let edit = TreeEdit { name: Some("T".into()), ..TreeEdit::default() };
        let tree = CompiledTree::new(&schema.create_tree(&edit, 0).unwrap().unwrap());
        let tsuid = schema.resolve("m", &[("host", "a")]).unwrap();
        let notes = TsMetaEdit { notes: Some("x".repeat(1000)), ..TsMetaEdit::default() };
        schema.create_ts_meta(&tsuid, &notes).unwrap();
        let within = |max| try_all(&schema, &tree, vec![tsuid.to_string(), tsuid.to_string()], max);
        let one = serde_json::to_vec(&try_one(&schema, &tree, &tsuid.to_string()).unwrap()).unwrap().len();
        assert!(one > 1000);
        assert_eq!(within(2 * one).unwrap().len(), 1);
        assert_eq!(within(2 * one - 1).unwrap_err().status().as_u16(), 413);
    }
}
