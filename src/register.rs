//! Which queries run and which have ended (`O-STATS-QUERY`), and whether one is asked twice at a time.
//!
//! *Bounds*: as many running as there are connections, [`COMPLETED_MAX`] ended, each told in at most [`TEXT_BYTES_MAX`].
//! *Source*: OpenTSDB 2.4 `QueryStats`.

use std::collections::{BTreeMap, VecDeque};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use serde::ser::{Serialize, SerializeMap as _, Serializer};
use serde_json::{Value, json};

use crate::auth::Role;
use crate::clock;

/// Queries remembered after their end.
const COMPLETED_MAX: usize = 256;
/// Longest text of a query that is kept; a longer one is told without its sub queries, or not at all.
const TEXT_BYTES_MAX: usize = 64 << 10;
/// Longest part of a refusal that is kept.
const EXCEPTION_BYTES_MAX: usize = 1 << 10;
/// Longest that is told in short.
const SHORT_BYTES_MAX: usize = 1 << 10;

/// Who asks: told beside the query.
#[derive(Clone, Debug)]
pub(crate) struct Asker {
    /// Address and port.
    pub(crate) remote: String,
    /// Address alone.
    pub(crate) address: String,
    /// Request headers, secrets masked.
    pub(crate) headers: Value,
    /// What they may do.
    pub(crate) role: Role,
}

/// What is asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Question {
    /// As JSON, or the part of it that is told. Few are ever told, so that a tree of it is made for those alone.
    told: Arc<str>,
    /// Of the whole: to compare texts with all that have ended takes a while where they are long.
    digest: u64,
}

impl Question {
    /// A query by its JSON; `head` is what is told of one that is too long, unless it is too long itself.
    pub(crate) fn new(whole: String, head: impl FnOnce() -> String) -> Self {
        let mut hasher = DefaultHasher::new();
        whole.hash(&mut hasher);
        let told = if whole.len() <= TEXT_BYTES_MAX { whole } else { head() };
        let told = if told.len() <= TEXT_BYTES_MAX { told } else { "{}".to_owned() };
        Self { told: told.into(), digest: hasher.finish() }
    }
}

#[derive(Clone, Debug)]
struct Asked {
    asker: Asker,
    question: Question,
    began: Instant,
    began_ms: u64,
}

impl Asked {
    /// Whether it is the same query of the same address.
    fn is_twin(&self, address: &str, question: &Question) -> bool {
        self.asker.address == address && self.question == *question
    }

    /// The query's members.
    fn told(&self, in_short: bool) -> Value {
        if in_short && self.question.told.len() > SHORT_BYTES_MAX {
            return json!({});
        }
        serde_json::from_str(&self.question.told).unwrap_or_default()
    }

    fn headers(&self, in_short: bool) -> Value {
        if in_short { json!({}) } else { self.asker.headers.clone() }
    }
}

#[derive(Clone, Debug)]
struct Ended {
    asked: Asked,
    outcome: Outcome,
    at_ms: u64,
    executed: u64,
    running_count: usize,
}

/// What became of a query.
#[derive(Clone, Debug)]
pub(crate) struct Outcome {
    pub(crate) code: u16,
    pub(crate) reason: &'static str,
    /// Why there is no answer.
    pub(crate) exception: Option<String>,
    /// Whether all of the answer was handed to the connection.
    pub(crate) sent: bool,
    /// Figures, as `showSummary` names them.
    pub(crate) stats: Value,
}

#[derive(Clone, Debug, Default)]
struct State {
    next: u64,
    running: BTreeMap<u64, Asked>,
    /// The newest last.
    completed: VecDeque<Ended>,
}

/// All queries of the daemon.
#[derive(Debug, Default)]
pub(crate) struct Register {
    /// Guards the two lists for one change or one look; nothing else is locked under it.
    state: Mutex<State>,
}

/// A query's entry; it leaves the running ones when it is ended or dropped.
#[derive(Debug)]
pub(crate) struct Entry {
    register: Arc<Register>,
    id: u64,
}

impl Register {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes a query that begins.
    ///
    /// # Errors
    ///
    /// The same query of the same address runs already and `twins` are not allowed. OpenTSDB looks at address and port;
    /// a connection asks one thing at a time, so the port would make the switch idle.
    pub(crate) fn enter(self: &Arc<Self>, asker: Asker, question: Question, twins: bool) -> Result<Entry, String> {
        let mut state = self.state();
        let is_twin = |asked: &Asked| asked.is_twin(&asker.address, &question);
        if !twins && state.running.values().any(is_twin) {
            return Err(format!("Query is already executing for endpoint: {}", asker.remote));
        }
        let id = state.next;
        state.next += 1;
        let asked = Asked { asker, question, began: Instant::now(), began_ms: clock::now_ms() };
        state.running.insert(id, asked);
        Ok(Entry { register: Arc::clone(self), id })
    }

    /// Both lists as they are now.
    pub(crate) fn lists(&self) -> QueryLists {
        // Long queries take a while to be told: nobody is to wait for that.
        QueryLists { state: self.state().clone(), in_short: false }
    }
}

/// Both lists as OpenTSDB writes them. Each entry is made when it is written.
#[derive(Debug)]
pub(crate) struct QueryLists {
    state: State,
    in_short: bool,
}

impl QueryLists {
    /// The same without headers, and without queries longer than [`SHORT_BYTES_MAX`].
    pub(crate) fn in_short(self) -> Self {
        Self { in_short: true, ..self }
    }
}

impl Serialize for QueryLists {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self { state, in_short } = self;
        let running = |asked: &Asked| {
            json!({
                "query": asked.told(*in_short),
                "remote": asked.asker.remote,
                "user": null,
                "headers": asked.headers(*in_short),
                "queryStart": asked.began_ms,
                "elapsed": asked.began.elapsed().as_secs_f64() * 1_000.0,
            })
        };
        let completed = |ended: &Ended| {
            json!({
                "query": ended.asked.told(*in_short),
                "exception": ended.outcome.exception.as_deref().unwrap_or("null"),
                "executed": ended.executed,
                "user": null,
                "requestHeaders": ended.asked.headers(*in_short),
                "numRunningQueries": ended.running_count,
                "httpResponse": { "code": ended.outcome.code, "reasonPhrase": ended.outcome.reason },
                "queryStartTimestamp": ended.asked.began_ms,
                "queryCompletedTimestamp": ended.at_ms,
                "sentToClient": ended.outcome.sent,
                "stats": ended.outcome.stats,
            })
        };
        let mut told = serializer.serialize_map(Some(2))?;
        told.serialize_entry("completed", &Each(|| state.completed.iter().rev().map(completed)))?;
        told.serialize_entry("running", &Each(|| state.running.values().map(running)))?;
        told.end()
    }
}

/// A list that is made while it is written.
struct Each<F>(F);

impl<I: Iterator<Item = Value>, F: Fn() -> I> Serialize for Each<F> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq((self.0)())
    }
}

impl Entry {
    /// The query ended so. Only the first call counts.
    pub(crate) fn end(&self, outcome: Outcome) {
        // A refusal may say again what was asked, whatever that is.
        let outcome = Outcome { exception: outcome.exception.map(in_short), ..outcome };
        let mut state = self.register.state();
        let Some(asked) = state.running.remove(&self.id) else { return };
        let running_count = state.running.len();
        let is_same = |ended: &&mut Ended| {
            ended.outcome.code == outcome.code && ended.asked.is_twin(&asked.asker.address, &asked.question)
        };
        if let Some(before) = state.completed.iter_mut().find(is_same) {
            before.executed += 1;
            return;
        }
        if state.completed.len() == COMPLETED_MAX {
            state.completed.pop_front();
        }
        state.completed.push_back(Ended { asked, outcome, at_ms: clock::now_ms(), executed: 1, running_count });
    }
}

/// A refusal as it is kept.
fn in_short(text: String) -> String {
    if text.len() <= EXCEPTION_BYTES_MAX {
        return text;
    }
    let cut = text.get(..text.floor_char_boundary(EXCEPTION_BYTES_MAX)).unwrap_or_default();
    format!("{cut}…")
}

impl Drop for Entry {
    fn drop(&mut self) {
        self.register.state().running.remove(&self.id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(register: &Register) -> Value {
        serde_json::to_value(register.lists()).unwrap()
    }

    fn asker(port: u16) -> Asker {
        Asker {
            remote: format!("10.0.0.1:{port}"),
            address: "10.0.0.1".to_owned(),
            headers: json!({}),
            role: Role::Administrator,
        }
    }

    fn ended(code: u16) -> Outcome {
        Outcome { code, reason: "OK", exception: None, sent: true, stats: json!({}) }
    }

    fn question(text: &str) -> Question {
        Question::new(text.to_owned(), || "{}".to_owned())
    }

    /// `O-STATS-QUERY`: two that are told alike, as both are too long, are not the same.
    #[test]
    fn long_queries_are_twins_only_where_they_are_the_same() {
        let register = Arc::new(Register::default());
        let long = |metric: &str| question(&json!({ "metric": metric.repeat(TEXT_BYTES_MAX) }).to_string());
        let _first = register.enter(asker(1), long("a"), false).unwrap();
        let _other = register.enter(asker(2), long("b"), false).unwrap();
        register.enter(asker(3), long("a"), false).unwrap_err();
        assert_eq!(list(&register)["running"][1]["query"], json!({}));
    }

    /// `O-STATS-QUERY`.
    #[test]
    fn a_query_runs_once_is_told_and_then_counted() {
        let register = Arc::new(Register::default());
        let first = register.enter(asker(1), question(r#"{"start":"1"}"#), false).unwrap();
        let refused = register.enter(asker(2), question(r#"{"start":"1"}"#), false).unwrap_err();
        assert_eq!(refused, "Query is already executing for endpoint: 10.0.0.1:2");
        let twin = register.enter(asker(2), question(r#"{"start":"1"}"#), true).unwrap();
        assert_eq!(list(&register)["running"].as_array().unwrap().len(), 2);
        first.end(ended(200));
        twin.end(ended(200));
        twin.end(ended(400));
        drop(register.enter(asker(1), question(r#"{"start":"2"}"#), false));
        let told = list(&register);
        assert_eq!(told["running"], json!([]));
        assert_eq!(told["completed"].as_array().unwrap().len(), 1);
        assert_eq!(told["completed"][0]["executed"], 2);
        assert_eq!(told["completed"][0]["query"], json!({"start": "1"}));
        for start in 0..2 * COMPLETED_MAX {
            register.enter(asker(1), question(&json!({ "start": start }).to_string()), false).unwrap().end(ended(200));
        }
        assert_eq!(list(&register)["completed"].as_array().unwrap().len(), COMPLETED_MAX);
    }

    /// `O-STATS-QUERY`: a query without its sub queries may be long too, and a refusal may say again what was asked.
    #[test]
    fn what_is_kept_of_a_query_is_short_whatever_it_says() {
        let register = Arc::new(Register::default());
        let long = json!({ "start": "x".repeat(TEXT_BYTES_MAX) }).to_string();
        let entry = register.enter(asker(1), Question::new(long.clone(), || long), false).unwrap();
        assert_eq!(list(&register)["running"][0]["query"], json!({}));
        entry.end(Outcome { exception: Some("é".repeat(EXCEPTION_BYTES_MAX)), ..ended(400) });
        let told = list(&register)["completed"][0]["exception"].as_str().unwrap().to_owned();
        assert_eq!(told, "é".repeat(EXCEPTION_BYTES_MAX / 2) + "…");
    }
}
