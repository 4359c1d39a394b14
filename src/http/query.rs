//! `/api/query` and `/api/query/gexp`: read the request, run it on a thread of its own, stream the answer.
//!
//! ```text
//! request ─ check ─ seat ─ thread: run ─ write ─► bounded channel ─► body
//!                            ▲ cancel                                │ dropped when the client hangs up
//!                            └───────────────────────────────────────┘
//! ```

mod read;

pub(super) use read::{from_params, is_small, read};

use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::extract::{Request, State};
use axum::http::Method;
use axum::response::Response;
use basalt_query::{
    Cancel, Formulas, GetParameters, Held, Query, QueryEngine, QueryRequest, SeriesAnnotation, SubAnswer,
};

use super::answer::Answer;
use super::call::Call;
use super::charset;
use super::content;
use super::error::ApiError;
use super::form::{Form, counts, lines};
use super::graph::DrawError;
use super::json;
use super::params::Params;
use super::query_stats::QueryStats;
use super::whole::{self, Sending, Sink, count_refusal};
use crate::app::App;
use crate::auth::{Permission, Role};
use crate::clock;
use crate::config::Mode;
use crate::register::{Asker, Entry, Outcome, Question};
use crate::seats::Seat;
use read::read_params;

/// The query string. By `DELETE`, or a GET that means it, what it matches is to be deleted.
pub(crate) async fn get(State(app): State<Arc<App>>, asker: Asker, call: Call) -> Result<Response, ApiError> {
    let delete = deletes(&app, &call, asker.role).inspect_err(|refused| count_refusal(&app, refused))?;
    let from_call = || from_params(&call.params, delete, app.config.compat.strict);
    let (request, seat) = read(&app, is_small(call.params.texts()), from_call).await?;
    run(app, asker, request, seat, Form::Api).await
}

/// A JSON body; `arrays` stays a parameter of the query string.
pub(crate) async fn post(
    State(app): State<Arc<App>>,
    asker: Asker,
    params: Params,
    request: Request,
) -> Result<Response, ApiError> {
    let (parts, body) = request.into_parts();
    let bytes = charset::read(&app, &parts.headers, body).await?;
    if bytes.is_empty() {
        return Err(ApiError::missing_body());
    }
    json::check_size(&bytes)?;
    let strict = app.config.compat.strict;
    let from_json = || QueryRequest::from_json(&bytes).map_err(|cause| ApiError::of_query(&cause, strict));
    let (mut request, seat) = read(&app, is_small([&*bytes]), from_json).await?;
    request.arrays = params.has("arrays");
    run(app, asker, request, seat, Form::Api).await
}

/// The query string with formulas (`exp`); what they are made of is not answered itself.
pub(crate) async fn formulas(State(app): State<Arc<App>>, asker: Asker, call: Call) -> Result<Response, ApiError> {
    call.meant().inspect_err(|refused| count_refusal(&app, refused))?;
    let params = call.params;
    let texts: Vec<&str> = params.all("exp").collect();
    let (options, strict) = (app.query_options, app.config.compat.strict);
    let of_formulas = |parameters: &GetParameters<'_>| QueryRequest::from_formulas(parameters, &texts, options);
    let from_texts = || read_params(&params, false, strict, of_formulas);
    let ((request, formulas), seat) = read(&app, is_small(params.texts()), from_texts).await?;
    run_with(app, asker, (request, Some(formulas)), seat, Form::Api).await
}

/// Checks a request, waits for its turn unless it has a seat, runs it on a thread and gives what it answers.
pub(crate) async fn run(
    app: Arc<App>,
    asker: Asker,
    request: QueryRequest,
    seat: Option<Seat>,
    form: Form,
) -> Result<Response, ApiError> {
    run_with(app, asker, (request, None), seat, form).await
}

async fn run_with(
    app: Arc<App>,
    asker: Asker,
    (request, formulas): (QueryRequest, Option<Formulas>),
    seat: Option<Seat>,
    form: Form,
) -> Result<Response, ApiError> {
    let (twins, role) = (app.config.query.allow_duplicates, asker.role);
    let entry = app.register.enter(asker, question(&request), twins).map_err(ApiError::bad_twice)?;
    let entry = Arc::new(entry);
    let outcome = match may_run(&app, role, &request) {
        Ok(()) => start(Arc::clone(&app), Arc::clone(&entry), (request, formulas), seat, form).await,
        Err(refused) => Err(refused),
    };
    if let Err(error) = &outcome {
        count_refusal(&app, error);
        entry.end(refused(error));
    }
    outcome
}

/// Whether a query that deletes may: in a body as well, where OpenTSDB looks only at the method.
fn may_run(app: &App, role: Role, request: &QueryRequest) -> Result<(), ApiError> {
    if request.delete { may_delete(app, role) } else { Ok(()) }
}

/// Whether what a query string matches is to be deleted; told before the request is read, as OpenTSDB does. Where deleting is
/// off a GET that means it is refused; to OpenTSDB it is one like any other, which `strict` keeps.
fn deletes(app: &App, call: &Call, role: Role) -> Result<bool, ApiError> {
    if call.meant()? != Method::DELETE {
        return Ok(false);
    }
    let is_any_other = app.config.compat.strict && call.method == Method::GET && !app.config.query.allow_delete;
    if is_any_other { Ok(false) } else { may_delete(app, role).map(|()| true) }
}

fn may_delete(app: &App, role: Role) -> Result<(), ApiError> {
    if !app.config.query.allow_delete || app.config.server.mode != Mode::ReadWrite {
        return Err(ApiError::delete_refused());
    }
    if role.may(Permission::Operate) { Ok(()) } else { Err(ApiError::not_allowed()) }
}

/// The request as the list of queries tells it; without its sub queries if they are long.
fn question(request: &QueryRequest) -> Question {
    let text = |request: &QueryRequest| serde_json::to_string(&request.echo()).unwrap_or_default();
    Question::new(text(request), || text(&QueryRequest { queries: Vec::new(), ..request.clone() }))
}

fn refused(error: &ApiError) -> Outcome {
    let status = error.status();
    Outcome {
        code: status.as_u16(),
        reason: status.canonical_reason().unwrap_or_default(),
        exception: Some(error.message().to_owned()),
        sent: false,
        stats: serde_json::json!({}),
    }
}

async fn start(
    app: Arc<App>,
    entry: Arc<Entry>,
    (request, formulas): (QueryRequest, Option<Formulas>),
    seat: Option<Seat>,
    form: Form,
) -> Result<Response, ApiError> {
    let began = Instant::now();
    let now_ms = clock::signed_now_ms();
    let query = request
        .check(now_ms, app.query_options)
        .map_err(|cause| ApiError::of_query(&cause, app.config.compat.strict))?;
    let query = if formulas.is_some() { query.for_formulas() } else { query };
    let seat = match seat {
        Some(seat) => seat,
        None => app.seats.take().await.map_err(ApiError::overloaded)?,
    };
    let strict = app.config.compat.strict;
    let work = Work { entry, began, request, form: form.clone(), query, formulas, strict };
    let body = whole::on_thread(&app, seat, move |sending| work.run(sending)).await?;
    Ok(form.dress(content::body_of(form.content_type(), body)))
}

/// One query on its thread.
struct Work {
    entry: Arc<Entry>,
    /// When the request came.
    began: Instant,
    request: QueryRequest,
    form: Form,
    query: Query,
    /// What is answered in place of the sub queries.
    formulas: Option<Formulas>,
    strict: bool,
}

/// What is to be written.
struct Found {
    answers: Vec<SubAnswer>,
    globals: Vec<SeriesAnnotation>,
    /// Where a picture is asked for.
    png: Vec<u8>,
    _held: Held,
}

impl Work {
    fn run(self, sending: &mut Sending<'_>) {
        match self.find(sending) {
            Err(error) => {
                self.entry.end(refused(&error));
                sending.refuse(error);
            }
            Ok(mut found) => {
                let mut written = Vec::with_capacity(found.answers.len());
                let sent = sending.send(|sink| self.write(&mut found, &mut written, sink));
                self.told(&found.answers, &written, sent);
                if sent {
                    sending.until_read();
                }
            }
        }
        if let Some(took_ms) = sending.slow_ms() {
            tracing::info!(
                took_ms,
                start_ms = self.query.start_ms,
                end_ms = self.query.end_ms,
                metrics = ?self.request.queries.iter().filter_map(|sub| sub.metric.as_deref()).collect::<Vec<_>>(),
                "slow query"
            );
        }
    }

    /// All that can fail: what is to be written, a picture drawn.
    fn find(&self, sending: &Sending<'_>) -> Result<Found, ApiError> {
        let Sending { app, queries, cancel, .. } = sending;
        let refused = |cause| ApiError::of_query(&cause, self.strict);
        let answers = match &self.formulas {
            Some(formulas) => queries.run_formulas(formulas, &self.query, cancel),
            None => queries.run_checked(&self.query, cancel),
        };
        let answers = answers.map_err(refused)?;
        let (globals, held) = self.globals(queries, cancel).map_err(refused)?;
        let mut found = Found { answers, globals, png: Vec::new(), _held: held };
        if let Form::Picture(picture) = &self.form {
            let range = (self.query.start_ms, self.query.end_ms);
            found.png = picture.draw(&found.answers, &found.globals, range, cancel).map_err(|error| match error {
                DrawError::Cancelled => refused(basalt_query::Error::Cancelled),
                DrawError::Failed(cause) => ApiError::internal(cause),
            })?;
            app.metrics.graph_latency.record(self.began.elapsed());
        }
        Ok(found)
    }

    /// Hands pieces of the answer to `sink` and gives back the last one; `None` when nobody reads any more.
    fn write(&self, found: &mut Found, written: &mut Vec<Duration>, sink: Sink<'_>) -> Option<Vec<u8>> {
        let Found { answers, globals, png, .. } = found;
        match &self.form {
            Form::Api => {
                Answer::new(&self.request, answers, self.strict, self.began).with_globals(globals).write(written, sink)
            }
            Form::Lines => lines(answers, sink),
            Form::Counts => {
                let took_ms = u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX);
                Some(counts(answers, took_ms))
            }
            Form::Picture(_) => Some(std::mem::take(png)),
        }
    }

    /// Adds the query to those that ended well.
    fn told(&self, answers: &[SubAnswer], written: &[Duration], sent: bool) {
        let took = self.began.elapsed();
        let stats = QueryStats { answers, written, strict: self.strict };
        let mut stats = stats.overall(took);
        stats.insert("totalTime".to_owned(), serde_json::json!(took.as_secs_f64() * 1_000.0));
        self.entry.end(Outcome { code: 200, reason: "OK", exception: None, sent, stats: stats.into() });
    }

    /// The global annotations of the range, if they are asked for.
    fn globals(&self, queries: &QueryEngine, cancel: &Cancel) -> basalt_query::Result<(Vec<SeriesAnnotation>, Held)> {
        if !self.request.global_annotations || self.request.no_annotations {
            return Ok((Vec::new(), Held::default()));
        }
        queries.global_annotations(&self.query, cancel)
    }
}

#[cfg(test)]
mod tests {
    use basalt_ingest::Door;
    use http_body_util::BodyExt as _;

    use super::read::SMALL_BYTES_MAX;
    use super::*;
    use crate::config::Config;

    fn asker() -> Asker {
        Asker {
            remote: String::new(),
            address: String::new(),
            headers: serde_json::json!({}),
            role: Role::Administrator,
        }
    }

    /// `Q-GET-TSUID`
    #[test]
    fn q_get_tsuid_has_a_second_name_unless_strict() {
        let uri = "/api/query?start=1&tsuids=sum:000001000001000001".parse().unwrap();
        let params = Params::of(&uri).unwrap();
        assert_eq!(from_params(&params, false, false).unwrap().queries[0].tsuids, ["000001000001000001"]);
        assert_eq!(from_params(&params, false, true).unwrap_err().status().as_u16(), 400);
    }

    /// `Q-LIMIT`
    #[tokio::test(start_paused = true)]
    async fn q_limit_long_requests_are_read_with_a_seat() {
        let app = App::in_memory(|config| (config.query.max_concurrent, config.query.max_waiting) = (1, 1)).await;
        let seat = app.seats.take().await.unwrap();
        let large = "x".repeat(SMALL_BYTES_MAX);
        for (text, is_read) in [(r#"{"host":"web*"}"#, true), (&large, true), (&format!("{large}x"), false)] {
            let outcome = read(&app, is_small([text.as_bytes()]), || Ok(())).await;
            assert_eq!(outcome.is_ok(), is_read, "{text}");
        }
        assert!(is_small([&large.as_bytes()[1..], b"x"]) && !is_small([large.as_bytes(), b"x"]));
        assert_eq!(app.metrics.queries_shed.get(), 1);
        drop(seat);
    }

    /// `Q-LIMIT`: nor is it sent away for those that came later.
    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn q_limit_a_request_waits_for_its_turn_once() {
        let app =
            Arc::new(App::in_memory(|config| (config.query.max_concurrent, config.query.max_waiting) = (1, 2)).await);
        let point = r#"{"metric":"m","timestamp":1,"value":1,"tags":{"host":"a"}}"#;
        let points = app.ingest.parse_put(point).unwrap();
        assert!(app.ingest.submit(&points, Door::Http).unwrap().await.is_all_stored());
        let seat = app.seats.take().await.unwrap();
        let blanks = " ".repeat(SMALL_BYTES_MAX);
        let body = format!(r#"{{"start":1,"end":9,"queries":[{{"metric":"m","aggregator":"sum"}}]{blanks}}}"#);
        let first = tokio::spawn(post(State(Arc::clone(&app)), asker(), Params::default(), Request::new(body.into())));
        let wait_for = async |count: u64| {
            while app.seats.waiting_count() < count {
                tokio::task::yield_now().await;
            }
        };
        wait_for(1).await;
        let of_the_next = Arc::clone(&app);
        let next = tokio::spawn(async move { of_the_next.seats.take().await });
        wait_for(2).await;
        drop(seat);
        let answer = first.await.unwrap().unwrap();
        assert!(!answer.into_body().collect().await.unwrap().to_bytes().is_empty());
        next.await.unwrap().unwrap();
    }

    /// `Q-LIMIT`: some pieces of an answer lie between its thread and a client that does not read.
    #[tokio::test]
    async fn q_limit_an_answer_is_memory_until_its_end_is_read() {
        let app = Arc::new(App::in_memory(|_| {}).await);
        let point = |time: u32| format!(r#"{{"metric":"m","timestamp":{time},"value":{time},"tags":{{"a":"b"}}}}"#);
        let body = format!("[{}]", (1..=9_000).map(point).collect::<Vec<_>>().join(","));
        let points = app.ingest.parse_put(&body).unwrap();
        assert!(app.ingest.submit(&points, Door::Http).unwrap().await.is_all_stored());
        let request = br#"{"start":1,"end":9001,"queries":[{"metric":"m","aggregator":"sum"}]}"#;
        let request = QueryRequest::from_json(request).unwrap();
        let answer = run(Arc::clone(&app), asker(), request, None, Form::Api).await.unwrap();
        let is_over = || app.queries().memory_used_bytes() == 0 || app.metrics.queries_running.get() == 0;
        for _ in 0..100_000 {
            assert!(!is_over());
            tokio::task::yield_now().await;
        }
        let text = answer.into_body().collect().await.unwrap().to_bytes();
        assert!(text.len() > 100_000 && text.ends_with(b"}]"), "{}", text.len());
        while app.queries().memory_used_bytes() > 0 || app.seats.take().await.is_err() {
            tokio::task::yield_now().await;
        }
    }

    /// `Q-LIMIT`: and is not refused for what others hold for a while.
    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn q_limit_a_query_waits_for_the_memory_that_another_one_holds() {
        let small = |config: &mut Config| (config.query.memory_bytes, config.query.max_concurrent) = (2 << 20, 16);
        let app = Arc::new(App::in_memory(small).await);
        let point = |time: u32| format!(r#"{{"metric":"m","timestamp":{time},"value":{time},"tags":{{"a":"b"}}}}"#);
        let body = format!("[{}]", (1..=20_000).map(point).collect::<Vec<_>>().join(","));
        let points = app.ingest.parse_put(&body).unwrap();
        assert!(app.ingest.submit(&points, Door::Http).unwrap().await.is_all_stored());
        let ask = |end: u32| {
            let text = format!(r#"{{"start":1,"end":{end},"queries":[{{"metric":"m","aggregator":"sum"}}]}}"#);
            run(Arc::clone(&app), asker(), QueryRequest::from_json(text.as_bytes()).unwrap(), None, Form::Api)
        };
        let read = async |answer: Response| answer.into_body().collect().await.unwrap().to_bytes();
        let mut unread = Vec::new();
        let waits = loop {
            let next = tokio::spawn(ask(20_001 + u32::try_from(unread.len()).unwrap()));
            while !next.is_finished() && app.seats.waiting_count() == 0 {
                tokio::task::yield_now().await;
            }
            if !next.is_finished() {
                break next;
            }
            unread.push(next.await.unwrap().unwrap());
        };
        // It runs no more until its turn.
        while app.metrics.queries_running.get() > unread.len() as u64 {
            tokio::task::yield_now().await;
        }
        let mut texts = Vec::new();
        for answer in unread {
            texts.push(read(answer).await);
        }
        texts.push(read(waits.await.unwrap().unwrap()).await);
        assert!(texts.len() > 1 && texts.windows(2).all(|two| two[0] == two[1]));
    }

    /// `H-OVERRIDE`: also where formulas ask.
    #[tokio::test]
    async fn h_override_of_a_formula_is_a_method() {
        let app = Arc::new(App::in_memory(|_| {}).await);
        let uri = "/api/query/gexp?start=1&exp=scale(sum:m,2)&method_override=patch".parse().unwrap();
        let (method, params, body) = (Method::GET, Params::of(&uri).unwrap(), axum::body::Bytes::new());
        let call = Call { method, params, body, strict: false };
        let refused = formulas(State(app), asker(), call).await.unwrap_err();
        assert_eq!(refused.status().as_u16(), 405);
    }

    /// What an operator is alerted of: more seats do not help where the store does not answer.
    #[tokio::test]
    async fn who_is_at_fault_for_an_unanswered_query_is_counted() {
        let app = App::in_memory(|_| {}).await;
        let of_store = |cause: basalt_store::Error| ApiError::of_query(&cause.into(), false);
        count_refusal(&app, &of_store(basalt_store::Error::Closed));
        count_refusal(&app, &ApiError::of_query(&basalt_query::Error::DeadlineExceeded { limit_ms: 1 }, false));
        count_refusal(&app, &ApiError::overloaded("no seat"));
        count_refusal(&app, &of_store(basalt_store::Error::Throttled { what: "scans" }));
        count_refusal(&app, &ApiError::bad("no metric"));
        assert!(read(&app, true, || Err::<(), _>(ApiError::bad("no such parameter"))).await.is_err());
        let metrics = &app.metrics;
        let counts = (metrics.queries_failed.get(), metrics.queries_shed.get(), metrics.queries_bad.get());
        assert_eq!(counts, (2, 2, 2));
    }
}
