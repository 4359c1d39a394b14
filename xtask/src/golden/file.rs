//! The text of a file of answers: an exchange a few lines, and each JSON body exactly as it came.

use serde_json::Value;

use super::answer::{Answer, Recording};

/// The whole file.
pub(crate) fn text(recording: &Recording) -> String {
    let exchanges: Vec<String> = recording.exchanges.iter().map(exchange).collect();
    let (server, command) = (quote(&recording.server), quote(&recording.command));
    let exchanges = exchanges.join(",\n");
    format!("{{\n\"server\": {server},\n\"command\": {command},\n\"exchanges\": [\n{exchanges}\n]\n}}\n")
}

fn exchange(answer: &Answer) -> String {
    let mut lines = vec![format!("{{\"request\": {}", quote(&answer.request))];
    if let Some(status) = answer.status {
        let content_type = answer.content_type.as_deref().map(|name| format!(", \"type\": {}", quote(name)));
        lines.push(format!(" \"status\": {status}{}", content_type.unwrap_or_default()));
    }
    lines.extend(answer.raw.as_ref().map(|raw| format!(" \"json\": {}", raw.trim_end())));
    lines.extend(answer.text.as_ref().map(|text| format!(" \"text\": {}", quote(text))));
    lines.join(",\n") + "}"
}

fn quote(text: &str) -> String {
    Value::from(text).to_string()
}
