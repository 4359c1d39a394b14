//! An answer as recorded, and the file of a scenario's answers.

use std::path::Path;

use anyhow::Context as _;
use serde::Deserialize;
use serde_json::Value;

use super::client::Response;

/// What a server answered to one exchange.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Answer {
    /// The exchange's own line, to tell that scenario and answers belong together.
    pub(crate) request: String,
    /// HTTP status; none for telnet.
    #[serde(default)]
    pub(crate) status: Option<u16>,
    /// `Content-Type`, where there is a body.
    #[serde(default, rename = "type")]
    pub(crate) content_type: Option<String>,
    /// The body where it is JSON.
    #[serde(default)]
    pub(crate) json: Option<Value>,
    /// The body, or the telnet reply, where it is not.
    #[serde(default)]
    pub(crate) text: Option<String>,
    /// That JSON as it came, number for number, where it just came.
    #[serde(skip)]
    pub(crate) raw: Option<String>,
}

impl Answer {
    pub(crate) fn http(request: String, response: &Response) -> Self {
        let text = String::from_utf8_lossy(&response.body).into_owned();
        let json: Option<Value> = serde_json::from_str(&text).ok();
        let is_empty = text.is_empty();
        Self {
            request,
            status: Some(response.status),
            content_type: response.header("content-type").filter(|_| !is_empty).map(str::to_owned),
            raw: json.is_some().then(|| text.clone()),
            text: (json.is_none() && !is_empty).then_some(text),
            json,
        }
    }

    pub(crate) fn telnet(request: String, text: String) -> Self {
        Self { request, status: None, content_type: None, json: None, text: Some(text), raw: None }
    }

    /// The body in one line, for a failure's report.
    pub(crate) fn body(&self) -> String {
        match (&self.raw, &self.json, &self.text) {
            (Some(raw), _, _) => raw.trim_end().to_owned(),
            (None, Some(json), _) => json.to_string(),
            (None, None, Some(text)) => format!("{text:?}"),
            (None, None, None) => "(empty)".to_owned(),
        }
    }
}

/// A file of `tests/golden/answers/`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Recording {
    /// Who answered, with version and profile.
    pub(crate) server: String,
    /// The command that recorded the file.
    pub(crate) command: String,
    /// One answer an exchange, in order.
    pub(crate) exchanges: Vec<Answer>,
}

impl Recording {
    /// Reads a recording.
    ///
    /// # Errors
    /// When the file is missing or not a recording.
    pub(crate) fn read(path: &Path) -> anyhow::Result<Self> {
        let text = std::fs::read_to_string(path).with_context(|| format!("{}", path.display()))?;
        let recording: Self = serde_json::from_str(&text).with_context(|| format!("{}", path.display()))?;
        let told = !recording.server.is_empty() && !recording.command.is_empty();
        anyhow::ensure!(told, "{}: does not say how it was made", path.display());
        Ok(recording)
    }
}
