//! A differing request made small: fewer requests before it, fewer points, fewer parts.

use serde_json::Value;

use crate::golden::scenario::Step;

/// What leads to a difference.
#[derive(Debug, Clone)]
pub(crate) struct Script {
    /// The points, put first.
    pub(crate) lines: Vec<String>,
    /// Requests that change something, in order.
    pub(crate) before: Vec<Step>,
    /// The one whose answers differ.
    pub(crate) step: Step,
    /// It changes nothing, so that it may be asked again without filling the tables anew.
    pub(crate) only_reads: bool,
}

/// Most trials for one difference.
const TRIALS_MAX: u32 = 150;

/// The smallest script found for which `differs` still holds.
///
/// # Errors
/// Those of `differs`.
pub(crate) fn shrink(
    script: Script,
    mut differs: impl FnMut(&Script) -> anyhow::Result<bool>,
) -> anyhow::Result<Script> {
    let (mut best, mut trials_left) = (script, TRIALS_MAX);
    loop {
        let size = weight(&best);
        for reduce in [without_parts, without_requests, without_points] {
            let mut place = 0;
            while let Some(smaller) = reduce(&best, place) {
                if trials_left == 0 {
                    return Ok(best);
                }
                trials_left -= 1;
                if differs(&smaller)? {
                    best = smaller;
                } else {
                    place += 1;
                }
            }
        }
        if weight(&best) >= size {
            return Ok(best);
        }
    }
}

fn weight(script: &Script) -> usize {
    let step = script.step.describe("").len();
    script.lines.len() + script.before.len() + step
}

fn without_requests(script: &Script, place: usize) -> Option<Script> {
    let before = cut(&script.before, place)?;
    Some(Script { before, ..script.clone() })
}

fn without_points(script: &Script, place: usize) -> Option<Script> {
    let lines = cut(&script.lines, place)?;
    Some(Script { lines, ..script.clone() })
}

/// The list without its `place`th piece: of all, then of halves, quarters, and so on down to single items.
fn cut<T: Clone>(list: &[T], place: usize) -> Option<Vec<T>> {
    let (mut first, mut pieces) = (0, 1);
    while !list.is_empty() {
        if place < first + pieces {
            let length = list.len().div_ceil(pieces);
            let start = ((place - first) * length).min(list.len());
            let end = (start + length).min(list.len());
            let kept = [&list[..start], &list[end..]].concat();
            return Some(kept);
        }
        if pieces >= list.len() {
            return None;
        }
        first += pieces;
        pieces = (pieces * 2).min(list.len());
    }
    None
}

fn without_parts(script: &Script, place: usize) -> Option<Script> {
    let step = smaller_steps(&script.step).into_iter().nth(place)?;
    Some(Script { step, ..script.clone() })
}

/// Every step that is this one with one part less.
fn smaller_steps(step: &Step) -> Vec<Step> {
    let mut smaller = Vec::new();
    if let Some(json) = &step.json {
        smaller.extend(smaller_values(json).into_iter().map(|json| Step { json: Some(json), ..step.clone() }));
    }
    if let Some((path, query)) = step.http.as_deref().and_then(|line| line.split_once('?')) {
        let targets = smaller_queries(query).into_iter().map(|query| format!("{path}?{query}"));
        smaller.extend(targets.map(|target| Step { http: Some(target), ..step.clone() }));
    }
    if step.telnet.len() > 1 {
        let lines = (0..step.telnet.len()).map(|place| without(&step.telnet, place));
        smaller.extend(lines.map(|telnet| Step { telnet, ..step.clone() }));
    }
    if step.gzip || step.chunked {
        smaller.push(Step { gzip: false, chunked: false, ..step.clone() });
    }
    smaller
}

fn smaller_queries(query: &str) -> Vec<String> {
    let pieces: Vec<&str> = query.split('&').collect();
    // Without `nocache` OpenTSDB's /q answers what it answered before.
    let places = (0..pieces.len()).filter(|&place| pieces[place] != "nocache");
    let mut smaller: Vec<String> = places.map(|place| without(&pieces, place).join("&")).collect();
    for (place, piece) in pieces.iter().enumerate() {
        for shorter in smaller_parameters(piece) {
            let mut pieces = pieces.clone();
            pieces[place] = &shorter;
            smaller.push(pieces.join("&"));
        }
    }
    smaller
}

/// `m=…` without one of its middle parts, or without one of its braces.
fn smaller_parameters(piece: &str) -> Vec<String> {
    let mut smaller = Vec::new();
    let parts: Vec<&str> = piece.split(':').collect();
    for place in 1..parts.len().saturating_sub(1) {
        smaller.push(without(&parts, place).join(":"));
    }
    for (open, _) in piece.match_indices('{') {
        let Some(length) = piece[open..].find('}') else { continue };
        smaller.push([&piece[..open], &piece[open + length + 1..]].concat());
        let inside = &piece[open + 1..open + length];
        let filters: Vec<&str> = inside.split(',').collect();
        for place in 0..filters.len() {
            let fewer = without(&filters, place).join(",");
            smaller.push([&piece[..=open], &fewer, &piece[open + length..]].concat());
        }
    }
    smaller
}

/// Every value that is this one with one member or item less, at any depth.
fn smaller_values(value: &Value) -> Vec<Value> {
    let mut smaller = Vec::new();
    match value {
        Value::Object(object) => {
            for (key, inner) in object {
                let mut fewer = object.clone();
                fewer.remove(key);
                smaller.push(Value::Object(fewer));
                for inner in smaller_values(inner) {
                    let mut other = object.clone();
                    other.insert(key.clone(), inner);
                    smaller.push(Value::Object(other));
                }
            }
        }
        Value::Array(items) => {
            for (place, inner) in items.iter().enumerate() {
                smaller.push(Value::Array(without(items, place)));
                for inner in smaller_values(inner) {
                    let mut other = items.clone();
                    other[place] = inner;
                    smaller.push(Value::Array(other));
                }
            }
        }
        _ => {}
    }
    smaller
}

fn without<T: Clone>(list: &[T], place: usize) -> Vec<T> {
    let mut fewer = list.to_vec();
    fewer.remove(place);
    fewer
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{Script, shrink, smaller_queries, smaller_values};
    use crate::golden::scenario::Step;

    /// Only one point, one earlier request and one part of the request matter: they are what is left.
    #[test]
    fn what_does_not_matter_goes() {
        let step = |line: &str| Step { http: Some(line.to_owned()), ..Step::default() };
        let script = Script {
            lines: (0..40).map(|n| format!("m {n} 1 a=b")).collect(),
            before: (0..5).map(|n| step(&format!("GET /{n}"))).collect(),
            step: step("GET /api/query?start=1&ms&m=sum:1m-avg:rate:m{a=b,c=*}{d=e}"),
            only_reads: false,
        };
        let smallest = shrink(script, |script| {
            let line = script.step.http.clone().unwrap_or_default();
            let asked = line.contains("m=sum") && line.contains("c=*");
            let had = script.lines.iter().any(|line| line.starts_with("m 17 "));
            let done = script.before.iter().any(|step| step.http.as_deref() == Some("GET /3"));
            Ok(asked && had && done)
        });
        let smallest = smallest.unwrap();
        assert_eq!(smallest.lines, ["m 17 1 a=b"]);
        assert_eq!(smallest.before.len(), 1);
        assert_eq!(smallest.step.http.as_deref(), Some("GET /api/query?m=sum:m{c=*}"));
    }

    #[test]
    fn every_part_may_go() {
        assert_eq!(smaller_queries("a&m=s:r:x"), ["m=s:r:x", "a", "a&m=s:x"]);
        assert_eq!(smaller_values(&json!({"a": [1, {"b": 2}]})).len(), 4);
    }
}
