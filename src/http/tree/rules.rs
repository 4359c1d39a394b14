//! `/api/tree/rule` and `/api/tree/rules`.

use std::sync::Arc;

use axum::http::Method;
use axum::response::Response;
use basalt_schema::{EditMode, RuleEdit, RuleKind, Schema, TreeId};

use super::super::call::{Call, mode_of};
use super::super::error::{self, ApiError};
use super::super::fields::{Fault, Fields};
use super::super::json;
use super::named::{no_tree, number, tree_id, unsupported};
use crate::app::App;

/// Rules that one call may bring.
const RULES_MAX: usize = 10_000;

/// A rule as a request names it.
#[derive(Debug)]
struct RuleRequest {
    tree: i64,
    edit: RuleEdit,
}

/// Reads, makes, changes or deletes one.
pub(super) async fn one(app: &Arc<App>, method: &Method, call: &Call) -> Result<Response, ApiError> {
    let strict = app.config.compat.strict;
    let request = if call.body.is_empty() {
        RuleRequest::of_params(call, strict)?
    } else {
        call.object(RuleRequest::of_fields).map_err(|fault| ApiError::bad_body(fault, strict))?
    };
    let mode = mode_of(method);
    let method = method.clone();
    app.with_schema(move |schema| {
        let RuleRequest { tree: number, edit } = &request;
        let id = TreeId::new(*number)?;
        let tree = schema.tree(id)?.ok_or_else(|| no_tree(*number))?;
        let found = || tree.rules.as_ref().and_then(|levels| levels.get(&edit.level)?.get(&edit.order));
        match method {
            Method::GET => json::ok(found().ok_or_else(|| request.not_found())?),
            Method::POST | Method::PUT => {
                let made = if edit.is_empty() { None } else { schema.edit_tree_rule(id, edit, mode)? };
                error::edited(made.as_ref())
            }
            Method::DELETE => {
                found().ok_or_else(|| request.not_found())?;
                schema.delete_tree_rule(id, edit.level, edit.order)?;
                Ok(error::done())
            }
            _ => Err(unsupported()),
        }
    })
    .await
}

/// Makes, changes, replaces or deletes many of one tree.
pub(super) async fn many(app: &Arc<App>, method: &Method, call: &Call) -> Result<Response, ApiError> {
    let strict = app.config.compat.strict;
    let (tree, rules) = if call.body.is_empty() { (tree_id(call)?, Vec::new()) } else { listed(call, strict)? };
    let method = method.clone();
    app.with_schema(move |schema| {
        let id = TreeId::new(tree)?;
        schema.tree(id)?.ok_or_else(|| no_tree(tree))?;
        match method {
            Method::POST | Method::PUT if rules.is_empty() => return Err(ApiError::bad("Missing tree rules")),
            Method::POST => rules.iter().try_for_each(|rule| merge(schema, id, &rule.edit, strict))?,
            Method::PUT => {
                let edits: Vec<RuleEdit> = rules.into_iter().map(|rule| rule.edit).collect();
                schema.replace_tree_rules(id, &edits)?;
            }
            Method::DELETE => schema.replace_tree_rules(id, &[])?,
            _ => return Err(unsupported()),
        }
        Ok(error::done())
    })
    .await
}

/// OpenTSDB stumbles over a rule that changes nothing.
fn merge(schema: &Schema, id: TreeId, edit: &RuleEdit, strict: bool) -> Result<(), ApiError> {
    let is_new = !edit.is_empty() && schema.edit_tree_rule(id, edit, EditMode::Merge)?.is_some();
    if strict && !is_new { Err(ApiError::stumble("No changes detected in the rule")) } else { Ok(()) }
}

fn listed(call: &Call, strict: bool) -> Result<(i64, Vec<RuleRequest>), ApiError> {
    let fields = call.list().map_err(|fault| ApiError::bad_body(fault, strict))?;
    if fields.len() > RULES_MAX {
        return Err(ApiError::too_many("rules", fields.len(), RULES_MAX));
    }
    let rules: Result<Vec<_>, Fault> = fields.iter().map(RuleRequest::of_fields).collect();
    let rules = rules.map_err(|fault| ApiError::bad_body(fault, strict))?;
    let tree = rules.first().ok_or_else(|| ApiError::bad("Missing tree rules"))?.tree;
    if rules.iter().any(|rule| rule.tree != tree) {
        return Err(ApiError::bad("All rules must belong to the same tree"));
    }
    Ok((tree, rules))
}

impl RuleRequest {
    fn of_params(call: &Call, strict: bool) -> Result<Self, ApiError> {
        let params = &call.params;
        let text = |name: &str| params.text(name);
        let wrong = |name: &str| format!("Unable to parse the '{name}' parameter");
        let tree = number(params.required("treeid")?, "Unable to parse 'tree' value")?;
        let kind = params.last("type").map(RuleKind::parse).transpose();
        let kind = kind.map_err(|cause| ApiError::bad_with(wrong("type"), cause.to_string()))?;
        let regex = text("regex");
        if let Some(Err(cause)) = regex.as_deref().map(RuleEdit::check_expression) {
            return Err(ApiError::bad_with(wrong("regex"), cause.to_string()));
        }
        let group = text("regex_group_idx").map(|group| number(&group, &wrong("regex_group_idx"))).transpose()?;
        let level = number(params.required("level")?, &wrong("level"))?;
        if level < 0 {
            return Err(ApiError::fault("Negative levels are not allowed".into(), strict));
        }
        let edit = RuleEdit {
            level,
            order: number(params.required("order")?, &wrong("order"))?,
            kind,
            field: text("field"),
            regex,
            separator: text("separator"),
            description: text("description"),
            notes: text("notes"),
            custom_field: text("custom_field"),
            regex_group_idx: group.filter(|group| *group != 0),
            display_format: text("display_format"),
        };
        Ok(Self { tree: tree.into(), edit })
    }

    fn of_fields(fields: &Fields) -> Result<Self, Fault> {
        let text = |name: &str| fields.text(name).map(|text| text.filter(|text| !text.is_empty()));
        let number = |name: &str| {
            let number = fields.integer(name)?.unwrap_or(0);
            i32::try_from(number).map_err(|_| format!("`{name}` is too large"))
        };
        let kind = fields.text("type")?.map(|kind| RuleKind::parse(&kind)).transpose();
        let regex = text("regex")?;
        regex.as_deref().map_or(Ok(()), RuleEdit::check_expression).map_err(|cause| cause.to_string())?;
        let level = number("level")?;
        if level < 0 {
            return Err("Negative levels are not allowed".into());
        }
        let edit = RuleEdit {
            level,
            order: number("order")?,
            kind: kind.map_err(|cause| cause.to_string())?,
            field: text("field")?,
            regex,
            separator: text("separator")?,
            description: text("description")?,
            notes: text("notes")?,
            custom_field: text("customField")?,
            regex_group_idx: Some(number("regexGroupIdx")?).filter(|group| *group != 0),
            display_format: text("displayFormat")?,
        };
        Ok(Self { tree: number("treeId")?.into(), edit })
    }

    fn not_found(&self) -> ApiError {
        let Self { tree, edit } = self;
        let kind = edit.kind.map_or("null", RuleKind::name);
        ApiError::not_found(&format!("Unable to locate rule: [{tree}:{}:{}:{kind}]", edit.level, edit.order))
    }
}
