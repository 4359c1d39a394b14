//! `/api/stats` and its elder `/stats`.

use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use serde_json::{Value, json};

use super::body;
use super::content::{self, JSON, TEXT};
use super::error::ApiError;
use super::json;
use super::params::Params;
use crate::app::{App, on_thread};
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

/// Which queries run and which have ended (`O-STATS-QUERY`). It is asked for where nothing else is answered: it waits for no seat, and is
/// told in short where there is no room among bodies.
pub(crate) async fn queries(State(app): State<Arc<App>>) -> Result<Response, ApiError> {
    let work = move || {
        let told = app.register.lists();
        let text = body::kept(&app.bodies, |to| Ok(serde_json::to_writer(to, &told)?));
        text.map_or_else(|| json::ok(&told.in_short()), |text| Ok(content::body_of(JSON, text)))
    };
    on_thread(work).await?
}

/// Lines for people, or a list of the same lines with `?json`.
pub(crate) async fn lines(State(app): State<Arc<App>>, params: Params) -> Result<Response, ApiError> {
    let mut lines = stat_lines(&app, clock::now_ms()).await;
    if params.has("json") {
        return json::ok(&lines);
    }
    lines.push(String::new());
    Ok(content::body_of(TEXT, lines.join("\n")))
}

#[cfg(test)]
mod tests {
    use std::iter;

    use http_body_util::BodyExt as _;

    use super::*;
    use crate::auth::Role;
    use crate::bodies::BodyPool;
    use crate::register::{Asker, Entry, Question};

    async fn app(bodies_bytes_max: Option<usize>) -> Arc<App> {
        let mut app = App::in_memory(|_| {}).await;
        if let Some(bytes_max) = bodies_bytes_max {
            app.bodies = BodyPool::new(bytes_max);
        }
        Arc::new(app)
    }

    /// A short query, and thirty of 50 kB.
    fn enter(app: &App) -> Vec<Entry> {
        let enter = |width: usize, place: usize| {
            let text = json!({ "start": "1", "timezone": format!("{place:0width$}") }).to_string();
            let headers = json!({ "user-agent": "curl" });
            let asker = Asker { remote: String::new(), address: String::new(), headers, role: Role::Administrator };
            app.register.enter(asker, Question::new(text, String::new), false).unwrap()
        };
        iter::once(enter(1, 0)).chain((0..30).map(|place| enter(50_000, place))).collect()
    }

    /// Some MB where queries are long: made on a thread that may take its time.
    #[tokio::test]
    async fn the_list_of_queries_counts_as_a_body() {
        let app = app(None).await;
        let entries = enter(&app);
        let answer = queries(State(Arc::clone(&app))).await.unwrap();
        assert_eq!((answer.status().as_u16(), app.bodies.used_bytes()), (200, 2 << 20));
        drop((answer, entries));
        assert_eq!(app.bodies.used_bytes(), 0);
    }

    /// `O-STATS-QUERY`: it is asked for when nothing else is answered.
    #[tokio::test(start_paused = true)]
    async fn the_list_of_queries_is_had_where_others_wait_and_in_short_where_bodies_have_no_room() {
        let app = app(Some(1 << 20)).await;
        let mut seats = Vec::new();
        while let Ok(seat) = app.lookers.take().await {
            seats.push(seat);
        }
        let entries = enter(&app);
        let answer = queries(State(Arc::clone(&app))).await.unwrap();
        let text = answer.into_body().collect().await.unwrap().to_bytes();
        let told: Value = serde_json::from_slice(&text).unwrap();
        let running = told["running"].as_array().unwrap();
        assert_eq!((running.len(), app.bodies.refused.get()), (entries.len(), 0));
        assert_eq!(running[0]["query"], json!({ "start": "1", "timezone": "0" }));
        assert_eq!((&running[1]["query"], &running[1]["headers"]), (&json!({}), &json!({})));
    }
}
