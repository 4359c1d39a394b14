//! `/api/suggest` and its elder `/suggest`: names by prefix.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Request, State};
use axum::response::Response;
use basalt_schema::{Schema, UidKind};

use super::charset;
use super::error::ApiError;
use super::fields::Fields;
use super::json::{self, Rest};
use super::params::Params;
use crate::app::App;
use crate::bodies::BodyPool;

/// Suggestions when the request does not say how many.
const SUGGESTIONS_DEFAULT: usize = 25;
/// Suggestions at most, whatever the request says.
const SUGGESTIONS_MAX: usize = 100_000;
/// More than this are a large answer: some MB.
const SUGGESTIONS_FEW: usize = 1_000;

/// What is asked for, checked.
struct SuggestRequest {
    kind: UidKind,
    prefix: String,
    max: usize,
}

impl SuggestRequest {
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
    let ask = SuggestRequest::new(params.required("type")?, params.last("q").unwrap_or_default(), params.last("max"))?;
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
    let fields = Fields::parse(&bytes, Rest::Left).map_err(|fault| ApiError::bad_json(&fault))?;
    let text = |name| fields.text(name).map_err(|fault| ApiError::bad_json(&fault));
    let (kind, prefix, max) = (text("type")?, text("q")?, text("max")?);
    let kind = kind.filter(|kind| !kind.is_empty()).ok_or_else(|| ApiError::bad("Missing 'type' parameter"))?;
    answer(&app, SuggestRequest::new(&kind, &prefix.unwrap_or_default(), max.as_deref())?).await
}

async fn answer(app: &Arc<App>, ask: SuggestRequest) -> Result<Response, ApiError> {
    let SuggestRequest { kind, prefix, max } = ask;
    let find = move |schema: &Schema, pool: &Arc<BodyPool>| {
        let names = schema.uids().of(kind).suggest(&prefix, max)?;
        json::counted(pool, &names)
    };
    if max > SUGGESTIONS_FEW {
        return app.with_seat(find).await;
    }
    let pool = Arc::clone(&app.bodies);
    app.with_schema(move |schema| find(schema, &pool)).await
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As other answers that may be as large as a query's.
    #[tokio::test(start_paused = true)]
    async fn many_suggestions_take_a_querys_seat_and_count_as_a_body() {
        let app =
            Arc::new(App::in_memory(|config| (config.query.max_concurrent, config.query.max_waiting) = (1, 1)).await);
        let fill = |schema: &Schema| {
            for name in 0..1_100 {
                schema.resolve("m", &[("host", &format!("{name:01000}"))]).unwrap();
            }
            Ok(())
        };
        app.with_schema(fill).await.unwrap();
        let ask =
            async |max: usize| answer(&app, SuggestRequest::new("tagv", "", Some(&max.to_string())).unwrap()).await;
        let status = |answer: Result<Response, ApiError>| {
            answer.map_or_else(|error| error.status(), |answer| answer.status()).as_u16()
        };
        let seat = app.seats.take().await.unwrap();
        assert_eq!((status(ask(1_000).await), status(ask(1_001).await)), (200, 503));
        drop(seat);
        let answer = ask(100_000).await.unwrap();
        assert_eq!(app.bodies.used_bytes(), 2 << 20);
        drop(answer);
        assert_eq!(app.bodies.used_bytes(), 0);
    }
}
