//! How the answer to a query is written: the API's JSON, or as `/q` has it: lines, counts or a picture.

use std::sync::Arc;

use axum::http::HeaderValue;
use axum::http::header::CACHE_CONTROL;
use axum::response::Response;
use basalt_query::{Number, Series, SubAnswer};
use serde_json::json;

use super::content::JSON;
use super::graph::Picture;
use super::number::write_double;

/// A piece of lines is handed on when it is at least this long.
const PIECE_BYTES: usize = 64 << 10;

/// How an answer is written.
#[derive(Clone, Debug)]
pub(crate) enum Form {
    /// The API's JSON.
    Api,
    /// Lines of text, as `/q?ascii` has them.
    Lines,
    /// Counts, as `/q?json` has them.
    Counts,
    /// A picture, as `/q?png` has it.
    Picture(Arc<Picture>),
}

impl Form {
    pub(super) fn content_type(&self) -> &'static str {
        match self {
            Self::Api => JSON,
            Self::Lines => "text/plain",
            Self::Counts => "application/json",
            Self::Picture(_) => "image/png",
        }
    }

    /// Says how long a picture may be shown again.
    pub(super) fn dress(&self, mut response: Response) -> Response {
        if let Self::Picture(picture) = self
            && let Ok(age) = HeaderValue::from_str(&format!("max-age={}", picture.max_age_s))
        {
            response.headers_mut().insert(CACHE_CONTROL, age);
        }
        response
    }
}

/// Writes `metric second value tag=value …` lines, doubles as Java does, NaN left out. Pieces go to `sink` as those of
/// an answer of the API do; the last one is given back, `None` when nobody reads any more.
pub(crate) fn lines(answers: &[SubAnswer], mut sink: impl FnMut(Vec<u8>) -> bool) -> Option<Vec<u8>> {
    let mut out = Vec::new();
    for series in answers.iter().flat_map(|answer| &answer.series) {
        let tags: String = series.tags.iter().flat_map(|(key, value)| [" ", &**key, "=", &**value]).collect();
        for point in &series.points {
            if matches!(point.number, Number::Double(value) if value.is_nan()) {
                continue;
            }
            out.extend_from_slice(format!("{} {} ", series.metric, point.time_ms / 1_000).as_bytes());
            match point.number {
                Number::Integer(value) => out.extend_from_slice(value.to_string().as_bytes()),
                Number::Double(value) => write_double(&mut out, value),
            }
            out.extend_from_slice(tags.as_bytes());
            out.push(b'\n');
            if out.len() >= PIECE_BYTES {
                sink(std::mem::take(&mut out)).then_some(())?;
            }
        }
    }
    Some(out)
}

/// What a page shows beside the graph: points drawn and read, the keys aggregated over by sub query, milliseconds taken.
pub(crate) fn counts(answers: &[SubAnswer], took_ms: u64) -> Vec<u8> {
    let drawn = |series: &Series| {
        series.points.iter().filter(|point| !matches!(point.number, Number::Double(value) if value.is_nan())).count()
    };
    let keys = |answer: &SubAnswer| {
        let mut keys: Vec<String> = answer
            .series
            .iter()
            .flat_map(|series| series.aggregate_tags.iter().map(|key| (**key).to_owned()))
            .collect();
        keys.sort();
        keys.dedup();
        keys
    };
    let told = json!({
        "plotted": answers.iter().flat_map(|answer| &answer.series).map(drawn).sum::<usize>(),
        "points": answers.iter().map(|answer| answer.stats.points).sum::<u64>(),
        "etags": answers.iter().map(keys).collect::<Vec<_>>(),
        "timing": took_ms,
    });
    told.to_string().into_bytes()
}
