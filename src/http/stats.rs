//! `/api/stats` and its elder `/stats`.

use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use serde_json::{Value, json};

use super::error::ApiError;
use super::json::{self, TEXT};
use super::params::Params;
use crate::app::App;
use crate::clock;
use crate::stats::{Form, Stat, collect, lines as stat_lines, shared_tags};

/// A list of points whose values are texts, as OpenTSDB has it.
pub(crate) async fn api(State(app): State<Arc<App>>) -> Result<Response, ApiError> {
    let seconds = clock::now_ms() / 1_000;
    let point = |Stat { name, tags: own, value }: Stat| {
        let mut tags = serde_json::Map::new();
        tags.extend(shared_tags(&app).into_iter().map(|(key, text)| (key.to_owned(), text.into())));
        tags.extend(own.into_iter().map(|(key, text)| (key.to_owned(), text.into())));
        json!({ "metric": name, "timestamp": seconds, "value": value.to_string(), "tags": tags })
    };
    json::ok(&collect(&app, Form::Api).await.into_iter().map(point).collect::<Vec<Value>>())
}

/// Which queries run and which have ended (`O-STATS-QUERY`).
pub(crate) async fn queries(State(app): State<Arc<App>>) -> Result<Response, ApiError> {
    let (register, pool) = (Arc::clone(&app.register), Arc::clone(&app.bodies));
    app.with_schema(move |_| json::counted(&pool, &register.told())).await
}

/// Lines for people, or a list of the same lines with `?json`.
pub(crate) async fn lines(State(app): State<Arc<App>>, params: Params) -> Result<Response, ApiError> {
    let mut lines = stat_lines(&app, clock::now_ms()).await;
    if params.has("json") {
        return json::ok(&lines);
    }
    lines.push(String::new());
    Ok(json::body_of(TEXT, lines.join("\n")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::auth::Role;
    use crate::config::{Config, StoreKind};
    use crate::register::{Asker, Question};

    /// Some MB where queries are long: made on a thread that may take its time.
    #[tokio::test]
    async fn the_list_of_queries_counts_as_a_body() {
        let mut config = Config::default();
        config.store.kind = StoreKind::Memory;
        let app = Arc::new(App::open(config).await.unwrap());
        let enter = |place: usize| {
            let text = json!({ "start": "1", "timezone": format!("{place:050000}") }).to_string();
            let asker =
                Asker { remote: String::new(), address: String::new(), headers: json!({}), role: Role::Administrator };
            app.register.enter(asker, Question::new(text, String::new), false).unwrap()
        };
        let entries: Vec<_> = (0..30).map(enter).collect();
        let answer = queries(State(Arc::clone(&app))).await.unwrap();
        assert_eq!((answer.status().as_u16(), app.bodies.used_bytes()), (200, 2 << 20));
        drop((answer, entries));
        assert_eq!(app.bodies.used_bytes(), 0);
    }
}
