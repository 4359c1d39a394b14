//! A scenario: what is put into fresh tables, and what is then asked.
//!
//! One JSON file of `tests/golden/scenarios/` each; `tests/golden/README.md` describes every field. Nothing in a
//! scenario is an answer: those are recorded beside it.

use std::path::Path;

use anyhow::Context as _;
use serde::Deserialize;
use serde_json::Value;

/// One file of `tests/golden/scenarios/`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Scenario {
    /// What it is meant to show, for a reader.
    pub(crate) about: String,
    /// The oracle's profile, and with it the settings a replaying server needs.
    #[serde(default = "plain")]
    pub(crate) profile: String,
    /// `start=…&end=…` of every step that is a `get`.
    #[serde(default)]
    pub(crate) range: String,
    /// In order; they share one set of tables.
    pub(crate) steps: Vec<Step>,
}

/// One of: points to put (`seed`), a query by GET (`get`), any HTTP request (`http`), telnet lines (`telnet`).
#[derive(Debug, Default, Clone, Deserialize)]
#[serde(deny_unknown_fields, default)]
#[expect(clippy::struct_excessive_bools, reason = "the file's own switches, each independent of the others")]
pub(crate) struct Step {
    /// Checklist codes that the exchange stands for.
    pub(crate) codes: Vec<String>,
    /// Points in import form (`metric timestamp value tag=value …`), put with `sync` and expected to be stored.
    pub(crate) seed: Vec<String>,
    /// What follows the scenario's range in `GET /api/query?`.
    pub(crate) get: Option<String>,
    /// Method and target, as in `POST /api/put?details`.
    pub(crate) http: Option<String>,
    /// A JSON body.
    pub(crate) json: Option<Value>,
    /// A body that is sent as written, for what `json` cannot say.
    pub(crate) body: Option<String>,
    /// Further request headers.
    pub(crate) headers: Vec<(String, String)>,
    /// Compress the body.
    pub(crate) gzip: bool,
    /// Send the body in chunks.
    pub(crate) chunked: bool,
    /// Send body or lines in ISO-8859-1, which has no character above U+00FF.
    pub(crate) latin1: bool,
    /// Lines of one telnet connection, which then says `exit`.
    pub(crate) telnet: Vec<String>,
    /// The order of the answer's series is not defined.
    pub(crate) unordered: bool,
    /// JSON pointers to parts of the answer that are not compared.
    pub(crate) free: Vec<String>,
    /// Compare keys and types only: the values are the server's own.
    pub(crate) shape: bool,
}

fn plain() -> String {
    "plain".to_owned()
}

impl Scenario {
    /// Reads one scenario.
    ///
    /// # Errors
    /// When the file cannot be read or has a field that no scenario has.
    pub(crate) fn read(path: &Path) -> anyhow::Result<Self> {
        let text = std::fs::read_to_string(path).with_context(|| format!("{}", path.display()))?;
        let scenario: Self = serde_json::from_str(&text).with_context(|| format!("{}", path.display()))?;
        anyhow::ensure!(!scenario.about.is_empty(), "{}: says nothing about itself", path.display());
        Ok(scenario)
    }

    /// How many of the steps are exchanges with a recorded answer.
    pub(crate) fn exchanges_count(&self) -> usize {
        self.exchanges().count()
    }

    /// The steps that have a recorded answer, in order.
    pub(crate) fn exchanges(&self) -> impl Iterator<Item = &Step> {
        self.steps.iter().filter(|step| step.seed.is_empty())
    }
}

impl Step {
    /// Method and target of an HTTP step.
    pub(crate) fn request_line(&self, range: &str) -> Option<(String, String)> {
        if let Some(query) = &self.get {
            return Some(("GET".to_owned(), format!("/api/query?{range}&{query}")));
        }
        let (method, target) = self.http.as_deref()?.split_once(' ')?;
        Some((method.to_owned(), target.to_owned()))
    }

    /// The body as sent, before compression and chunking.
    pub(crate) fn body_bytes(&self) -> Option<Vec<u8>> {
        match (&self.json, &self.body) {
            (Some(json), _) => Some(self.encoded(&json.to_string())),
            (None, Some(text)) => Some(self.encoded(text)),
            (None, None) => None,
        }
    }

    /// The telnet lines as sent.
    pub(crate) fn telnet_bytes(&self) -> Vec<u8> {
        self.telnet.iter().flat_map(|line| self.encoded(&format!("{line}\n"))).collect()
    }

    /// `?` stands for what ISO-8859-1 does not have.
    fn encoded(&self, text: &str) -> Vec<u8> {
        if self.latin1 {
            text.chars().map(|sign| u8::try_from(sign).unwrap_or(b'?')).collect()
        } else {
            text.as_bytes().to_vec()
        }
    }

    /// The request in one line, for the recorded file and for a failure's report.
    pub(crate) fn describe(&self, range: &str) -> String {
        let Some((method, target)) = self.request_line(range) else {
            return format!("telnet{} {}", if self.latin1 { " [latin1]" } else { "" }, self.telnet.join(" ⏎ "));
        };
        let mut line = format!("{method} {target}");
        line.extend(self.headers.iter().map(|(name, value)| format!(" [{name}: {value}]")));
        for (on, word) in [(self.gzip, " [gzip]"), (self.chunked, " [chunked]"), (self.latin1, " [latin1]")] {
            line.push_str(if on { word } else { "" });
        }
        let body = self.json.as_ref().map(Value::to_string).or_else(|| self.body.clone());
        line.extend(body.iter().flat_map(|body| [" ", body]));
        line
    }
}

/// The scenarios' names in order: every `*.json` of the folder.
///
/// # Errors
/// When the folder cannot be read.
pub(crate) fn names(folder: &Path) -> anyhow::Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in std::fs::read_dir(folder).with_context(|| format!("{}", folder.display()))? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "json") {
            names.extend(path.file_stem().map(|stem| stem.to_string_lossy().into_owned()));
        }
    }
    names.sort();
    Ok(names)
}
