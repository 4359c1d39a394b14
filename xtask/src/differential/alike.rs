//! What is taken out of both answers before they are compared, beside the rules of `tests/golden/README.md`.

use serde_json::{Value, json};

use crate::golden::answer::Answer;
use crate::golden::scenario::Step;

/// Takes out of an answer what is its server's own.
///
/// 1. `filterTagKs` of a query's echo: UIDs in base 64, filled in only on some ways through OpenTSDB.
/// 2. A look-up in the data table lists a series once for every row of it in OpenTSDB, and counts so; in the order of the
///    rows, which salt shuffles.
/// 3. Annotations of one instant have no order.
/// 4. Newest points of several series, and their meta objects, come as OpenTSDB's rows arrive.
/// 5. When an object was made, and when a series was written last, is each server's own clock.
/// 6. Of what a query took, the numbers and a summary's scans are each server's own; so is all that `/api/stats` and `/version` tell.
///    `groupByTime` is left out by OpenTSDB where nothing is aggregated.
/// 7. A callback's JSON is compared as JSON.
/// 8. Numbers in lines of `/q`, and values of newest points, are compared by value: Java 17 writes some doubles with a digit too many.
pub(crate) fn prepare(step: &Step, answer: &mut Answer) {
    if let Some(text) = &mut answer.text
        && step.http.as_deref().is_some_and(|line| line.contains(" /q?"))
    {
        *text = text.lines().map(by_value).collect();
    }
    if let Some((callback, json)) = answer.text.as_deref().and_then(called_back) {
        answer.content_type = answer.content_type.take().map(|name| format!("{name} by {callback}"));
        (answer.text, answer.json) = (None, Some(json));
    }
    if answer.status == Some(200) && step.http.as_deref().is_some_and(is_about_itself) {
        answer.text = None;
        answer.json = answer.json.take().map(|json| if json.is_array() { json!([]) } else { json!({}) });
    }
    let Some(json) = &mut answer.json else { return };
    drop_key(json, "filterTagKs");
    hide_figures(json);
    hide_clock(json);
    sort_annotations(json);
    if step.http.as_deref().is_some_and(|line| line.contains("/api/query/last")) {
        values_by_value(json);
    }
    let as_they_arrive = ["/api/query/last", "/api/uid/tsmeta?m="];
    if step.http.as_deref().is_some_and(|line| as_they_arrive.iter().any(|path| line.contains(path)))
        && let Value::Array(found) = json
    {
        found.sort_by_key(Value::to_string);
    }
    if step.http.as_deref().is_some_and(|line| line.contains("/api/search/lookup")) {
        once_each(json);
    }
}

/// A request for what a server tells of itself.
fn is_about_itself(line: &str) -> bool {
    let target = line.split_once(' ').map_or("", |(_, target)| target).to_ascii_lowercase();
    ["/api/stats", "/api/v1/stats", "/stats", "/version"].iter().any(|path| target.starts_with(path))
}

/// What a query took, beside its series and after them.
fn hide_figures(value: &mut Value) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(hide_figures),
        Value::Object(object) => {
            for key in ["stats", "statsSummary"] {
                if let Some(figures) = object.get_mut(key) {
                    drop_key(figures, "scannerStats");
                    drop_key(figures, "groupByTime");
                    zero(figures);
                }
            }
            object.values_mut().for_each(hide_figures);
        }
        _ => {}
    }
}

fn zero(value: &mut Value) {
    match value {
        Value::Number(_) => *value = 0.into(),
        Value::Array(items) => items.iter_mut().for_each(zero),
        Value::Object(object) => object.values_mut().for_each(zero),
        _ => {}
    }
}

/// `name(JSON)`.
fn called_back(text: &str) -> Option<(String, Value)> {
    let (name, rest) = text.split_once('(')?;
    let json = serde_json::from_str(rest.trim_end().strip_suffix(')')?).ok()?;
    Some((name.to_owned(), json))
}

/// A line with its words that are doubles in one form.
fn by_value(line: &str) -> String {
    let word = |word: &str| match word.parse::<f64>() {
        Ok(value) if word.contains('.') => format!("{value:e} "),
        _ => format!("{word} "),
    };
    let mut words: Vec<String> = line.split(' ').map(word).collect();
    // Tags come in the order of a hash table.
    words.get_mut(3..).unwrap_or_default().sort();
    words.concat() + "\n"
}

/// Newest points, whose values are texts.
fn values_by_value(newest: &mut Value) {
    for point in newest.as_array_mut().into_iter().flatten() {
        if let Some(Value::String(value)) = point.get_mut("value") {
            *value = by_value(value);
        }
    }
}

fn drop_key(value: &mut Value, name: &str) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(|item| drop_key(item, name)),
        Value::Object(object) => {
            object.remove(name);
            object.values_mut().for_each(|value| drop_key(value, name));
        }
        _ => {}
    }
}

/// Times that are the moment of a write become 1; 0 stays, which says that there was none.
fn hide_clock(value: &mut Value) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(hide_clock),
        Value::Object(object) => {
            for key in ["created", "lastReceived"] {
                if let Some(time) = object.get_mut(key)
                    && time.as_u64().is_some_and(|time| time > 0)
                {
                    *time = 1.into();
                }
            }
            object.values_mut().for_each(hide_clock);
        }
        _ => {}
    }
}

fn once_each(lookup: &mut Value) {
    let Some(object) = lookup.as_object_mut() else { return };
    object.remove("totalResults");
    if let Some(Value::Array(results)) = object.get_mut("results") {
        let mut seen = Vec::new();
        results.retain(|series| {
            let is_new = !seen.contains(series);
            seen.push(series.clone());
            is_new
        });
        results.sort_by_key(Value::to_string);
    }
}

fn sort_annotations(answer: &mut Value) {
    // As `/api/annotations` lists them.
    if let Value::Array(notes) = answer
        && notes.iter().all(|note| note.get("startTime").is_some())
    {
        notes.sort_by_key(Value::to_string);
    }
    for series in answer.as_array_mut().into_iter().flatten() {
        let Some(Value::Array(notes)) = series.get_mut("annotations") else { continue };
        notes.sort_by_key(|note| (note.get("startTime").and_then(Value::as_u64), note.to_string()));
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{called_back, drop_key, hide_clock, hide_figures, once_each, values_by_value};

    #[test]
    fn a_callback_is_given_json() {
        assert_eq!(called_back("cb({\"a\": 1})\n"), Some(("cb".to_owned(), json!({"a": 1}))));
        assert_eq!(called_back("Error (x)"), None);
    }

    #[test]
    fn what_is_the_servers_own_goes() {
        let mut echo = json!([{"query": {"filterTagKs": ["AAAB"], "index": 0}}]);
        drop_key(&mut echo, "filterTagKs");
        assert_eq!(echo, json!([{"query": {"index": 0}}]));
        let mut meta = json!([{"created": 1_700_000_001, "metric": {"created": 0}}]);
        hide_clock(&mut meta);
        assert_eq!(meta, json!([{"created": 1, "metric": {"created": 0}}]));
        let mut took =
            json!([{"dps": {"1": 2}, "stats": {"emittedDPs": 3}}, {"statsSummary": {"scannerStats": {}, "a": [1.5]}}]);
        hide_figures(&mut took);
        assert_eq!(took, json!([{"dps": {"1": 2}, "stats": {"emittedDPs": 0}}, {"statsSummary": {"a": [0]}}]));
        let [mut long, mut short] = [json!([{"value": "7.999999999999999E23"}]), json!([{"value": "8.0E23"}])];
        values_by_value(&mut long);
        values_by_value(&mut short);
        assert_eq!(long, short);
        let mut lookup = json!({"results": [{"tsuid": "1"}, {"tsuid": "1"}, {"tsuid": "2"}], "totalResults": 3});
        once_each(&mut lookup);
        assert_eq!(lookup, json!({"results": [{"tsuid": "1"}, {"tsuid": "2"}]}));
    }
}
