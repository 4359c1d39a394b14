//! `/api/suggest` and its elder `/suggest`: names by prefix.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Request, State};
use axum::response::Response;
use basalt_schema::UidKind;
use serde_json::Value;

use super::error::ApiError;
use super::params::Params;
use super::{charset, json};
use crate::app::App;

/// Suggestions when the request does not say how many.
const SUGGESTIONS_DEFAULT: usize = 25;
/// Suggestions at most, whatever the request says.
const SUGGESTIONS_MAX: usize = 100_000;

/// What is asked for, checked.
struct Ask {
    kind: UidKind,
    prefix: String,
    max: usize,
}

impl Ask {
    fn new(kind: &str, prefix: &str, max: Option<&str>) -> Result<Self, ApiError> {
        let max = match max.filter(|text| !text.is_empty()) {
            None => 0,
            Some(text) => text.parse::<i32>().map_err(|_| ApiError::bad("Unable to parse 'max' as a number"))?,
        };
        let kind = match kind {
            "metrics" => UidKind::Metric,
            "tagk" => UidKind::Tagk,
            "tagv" => UidKind::Tagv,
            other => return Err(ApiError::bad(format!("Invalid 'type' parameter:{other}"))),
        };
        let max = usize::try_from(max).ok().filter(|max| *max > 0).unwrap_or(SUGGESTIONS_DEFAULT);
        Ok(Self { kind, prefix: prefix.to_owned(), max: max.min(SUGGESTIONS_MAX) })
    }
}

/// By the query string.
pub(crate) async fn get(State(app): State<Arc<App>>, params: Params) -> Result<Response, ApiError> {
    let ask = Ask::new(params.required("type")?, params.last("q").unwrap_or_default(), params.last("max"))?;
    answer(&app, ask).await
}

/// By a JSON object; numbers may be texts.
pub(crate) async fn post(State(app): State<Arc<App>>, request: Request<Body>) -> Result<Response, ApiError> {
    let (parts, body) = request.into_parts();
    let bytes = charset::read(&app, &parts.headers, body).await?;
    if bytes.is_empty() {
        return Err(ApiError::missing_body());
    }
    json::check_size(&bytes)?;
    let Ok(Value::Object(members)) = serde_json::from_slice(&bytes) else {
        return Err(ApiError::bad_json("an object with `type`, `q` and `max` is expected"));
    };
    let text = |name: &str| match members.get(name) {
        Some(Value::String(text)) => Some(text.clone()),
        Some(Value::Number(number)) => Some(number.to_string()),
        Some(Value::Bool(flag)) => Some(flag.to_string()),
        _ => None,
    };
    let kind = text("type").filter(|kind| !kind.is_empty()).ok_or_else(|| ApiError::bad("Missing 'type' parameter"))?;
    answer(&app, Ask::new(&kind, &text("q").unwrap_or_default(), text("max").as_deref())?).await
}

async fn answer(app: &Arc<App>, ask: Ask) -> Result<Response, ApiError> {
    let names = app.suggest(ask.kind, ask.prefix, ask.max).await?;
    json::ok(&names)
}
