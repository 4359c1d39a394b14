//! `/api/tree`: trees, their definitions and branches (rule `M-TREE`). Rules of trees are in `rules`, series tried against
//! them and series without a place in `trials`.
//!
//! Where OpenTSDB answers 500 to a request that is wrong, only `strict` does.

mod named;
mod rules;
mod trials;

use std::sync::Arc;

use axum::extract::{Path, State};
use axum::http::Method;
use axum::response::Response;
use basalt_schema::{TreeEdit, TreeId};

use super::call::{Call, mode_of};
use super::error::{self, ApiError};
use super::fields::Fault;
use super::json;
use crate::app::App;
use crate::clock;
use named::{bytes_of, no_tree, tree_id, unsupported};

/// A tree as a request names it.
#[derive(Debug, Default)]
struct TreeRequest {
    /// 0 for none.
    id: i64,
    edit: TreeEdit,
    /// Whether the definition goes too, of a DELETE.
    definition: bool,
    /// When one made now is made.
    created: i64,
}

/// Reads trees, makes, changes or deletes one.
pub(crate) async fn whole(State(app): State<Arc<App>>, call: Call) -> Result<Response, ApiError> {
    let method = call.meant()?;
    let strict = app.config.compat.strict;
    let request =
        if call.body.is_empty() { TreeRequest::of_params(&call)? } else { TreeRequest::of_body(&call, strict)? };
    match method {
        Method::GET if request.id == 0 => json::ok(&app.with_schema(|schema| Ok(schema.trees()?)).await?),
        Method::GET => {
            let id = TreeId::new(request.id)?;
            let found = app.with_schema(move |schema| Ok(schema.tree(id)?)).await?;
            json::ok(&found.ok_or_else(|| no_tree(request.id))?)
        }
        Method::POST | Method::PUT => edit(&app, &method, request).await,
        Method::DELETE => {
            app.with_schema(move |schema| {
                let id = TreeId::new(request.id)?;
                schema.tree(id)?.ok_or_else(|| no_tree(request.id))?;
                Ok(schema.delete_tree(id, request.definition)?)
            })
            .await?;
            Ok(error::done())
        }
        _ => Err(unsupported()),
    }
}

async fn edit(app: &Arc<App>, method: &Method, request: TreeRequest) -> Result<Response, ApiError> {
    let mode = mode_of(method);
    let edited = app
        .with_schema(move |schema| {
            if request.id <= 0 {
                return Ok(schema.create_tree(&request.edit, request.created)?);
            }
            let id = TreeId::new(request.id)?;
            schema.tree(id)?.ok_or_else(|| no_tree(request.id))?;
            if request.edit.is_empty() {
                return Ok(None);
            }
            Ok(schema.edit_tree(id, &request.edit, mode)?)
        })
        .await?;
    error::edited(edited.as_ref())
}

/// What lies below `/api/tree`.
pub(crate) async fn below(
    State(app): State<Arc<App>>,
    Path(kind): Path<String>,
    call: Call,
) -> Result<Response, ApiError> {
    let method = call.meant()?;
    match kind.as_str() {
        "branch" => branch(&app, &method, &call).await,
        "rule" => rules::one(&app, &method, &call).await,
        "rules" => rules::many(&app, &method, &call).await,
        "test" => trials::test(&app, &method, &call).await,
        "collisions" => trials::failures(&app, &method, &call, true).await,
        "notmatched" => trials::failures(&app, &method, &call, false).await,
        _ => Err(ApiError::not_found("This endpoint is not supported")),
    }
}

async fn branch(app: &Arc<App>, method: &Method, call: &Call) -> Result<Response, ApiError> {
    if *method != Method::GET {
        return Err(unsupported());
    }
    let tree = tree_id(call)?;
    let hex = call.params.last("branch").unwrap_or_default();
    let row = if hex.is_empty() {
        let tree = TreeId::new(tree).map_err(|_| ApiError::bad("Missing or invalid branch and tree IDs"))?;
        tree.bytes().to_vec()
    } else {
        branch_id(hex).map_err(ApiError::bad_twice)?
    };
    let shown = row.iter().fold(String::new(), |hex, byte| hex + &format!("{byte:02X}"));
    app.with_seat(move |schema, pool| {
        let tree = TreeId::of_branch(&row)?;
        let found = schema.tree_branch(&row)?;
        let number = tree.number();
        let missing = || ApiError::not_found(&format!("Unable to locate branch '{shown}' for tree '{number}'"));
        json::counted(pool, &found.ok_or_else(missing)?)
    })
    .await
}

fn branch_id(hex: &str) -> Result<Vec<u8>, Fault> {
    if hex.len() < 4 {
        return Err("Branch ID was too short".into());
    }
    bytes_of(hex).ok_or_else(|| format!("contains illegal character for hexBinary: {hex}"))
}

impl TreeRequest {
    fn of_params(call: &Call) -> Result<Self, ApiError> {
        let text = |name: &str| call.params.text(name);
        let flag = |name: &str| call.params.last(name).map(is_true);
        Ok(Self {
            id: tree_id(call)?,
            edit: TreeEdit {
                name: text("name"),
                description: text("description"),
                notes: text("notes"),
                strict_match: flag("strict_match"),
                enabled: flag("enabled"),
                store_failures: flag("store_failures"),
            },
            definition: flag("definition").unwrap_or_default(),
            created: now_s(),
        })
    }

    /// OpenTSDB gives a tree that comes in a body no time.
    fn of_body(call: &Call, strict: bool) -> Result<Self, ApiError> {
        let fields = call.fields().map_err(|fault| ApiError::bad_json(&fault))?;
        let mut request = Self { created: if strict { 0 } else { now_s() }, ..Self::default() };
        for name in fields.names() {
            let text = fields.text(name).map_err(|fault| ApiError::bad_json(&fault))?;
            let Some(text) = text else { continue };
            request.take(&name.to_lowercase(), text)?;
        }
        Ok(request)
    }

    fn take(&mut self, name: &str, text: String) -> Result<(), ApiError> {
        let edit = &mut self.edit;
        let some = |text: String| Some(text).filter(|text| !text.is_empty());
        match name {
            "treeid" => {
                let id = text.parse::<i32>().map_err(|_| ApiError::bad("Unable to parse 'tree' value"))?;
                self.id = id.into();
            }
            "name" => edit.name = some(text),
            "description" => edit.description = some(text),
            "notes" => edit.notes = some(text),
            "enabled" => edit.enabled = Some(is_true(&text)),
            "strictmatch" => edit.strict_match = Some(is_true(&text)),
            "storefailures" => edit.store_failures = Some(is_true(&text)),
            "definition" => self.definition = is_true(&text),
            _ => {}
        }
        Ok(())
    }
}

fn is_true(text: &str) -> bool {
    text.eq_ignore_ascii_case("true")
}

fn now_s() -> i64 {
    i64::try_from(clock::now_ms() / 1000).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use basalt_schema::{DATA_FAMILY, Schema};
    use basalt_store::MutationBatch;

    use super::super::params::Params;
    use super::*;

    async fn large_answers(app: &Arc<App>) -> [Result<Response, ApiError>; 3] {
        let ask = async |kind: &str| {
            let params = Params::of(&"/?treeid=1".parse().unwrap()).unwrap();
            let call = Call { method: Method::GET, params, body: bytes::Bytes::new(), strict: false };
            below(State(Arc::clone(app)), Path(kind.to_owned()), call).await
        };
        [ask("branch").await, ask("collisions").await, ask("notmatched").await]
    }

    /// As other answers that may be as large as a query's.
    #[tokio::test(start_paused = true)]
    async fn large_answers_take_a_querys_seat_and_count_as_bodies() {
        let app =
            Arc::new(App::in_memory(|config| (config.query.max_concurrent, config.query.max_waiting) = (1, 1)).await);
        let fill = |schema: &Schema| {
            schema.create_tree(&TreeEdit { name: Some("T".into()), ..TreeEdit::default() }, 0).unwrap();
            let text = "x".repeat(2 << 20);
            let branch = format!(r#"{{"path":{{"0":"ROOT"}},"displayName":"{text}"}}"#);
            let mut batch = MutationBatch::default();
            let mut put = |row: &[u8], qualifier: &str, value: &str| {
                batch.row(row).unwrap().put(DATA_FAMILY, qualifier.as_bytes(), None, value.as_bytes()).unwrap();
            };
            put(&[0, 1], "branch", &branch);
            put(&[0, 1, 1], "tree_collision:\x01", &text);
            put(&[0, 1, 2], "tree_not_matched:\x01", &text);
            schema.store().apply(&schema.tables().tree, batch).wait().unwrap();
            Ok(())
        };
        app.with_schema(fill).await.unwrap();
        let seat = app.seats.take().await.unwrap();
        for answer in large_answers(&app).await {
            assert_eq!(answer.unwrap_err().status().as_u16(), 503);
        }
        drop(seat);
        let answers = large_answers(&app).await;
        assert!(answers.iter().all(Result::is_ok), "{answers:?}");
        for (left, answer) in (0..answers.len() as u64).rev().zip(answers) {
            assert_eq!(app.bodies.used_bytes(), (left + 1) * (3 << 20));
            drop(answer);
        }
    }
}
