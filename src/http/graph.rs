//! Pictures of answers (`O-Q-PNG`).
//!
//! Parameters of a graph are typed values ([`plot`]), drawn in this process ([`draw`]): no text of a request reaches a
//! program, and none is written to a file.

mod draw;
mod format;
mod look;
pub(super) mod plot;
mod scale;

use basalt_query::{Cancel, Series, SeriesAnnotation, SubAnswer};
use basalt_schema::Annotation;
use chrono_tz::Tz;

pub(super) use draw::DrawError;
use look::Look;

/// A graph to be drawn of an answer.
#[derive(Debug)]
pub(crate) struct Picture {
    pub(super) look: Look,
    /// Which sub queries are drawn against the axis on the right.
    pub(super) right: Vec<bool>,
    pub(super) zone: Tz,
    /// How long the picture may be shown again.
    pub(crate) max_age_s: i64,
}

impl Picture {
    /// Draws the answers of a range of time, global annotations among them.
    ///
    /// # Errors
    ///
    /// As [`DrawError`].
    pub(crate) fn draw(
        &self,
        answers: &[SubAnswer],
        globals: &[SeriesAnnotation],
        (start_ms, end_ms): (i64, i64),
        cancel: &Cancel,
    ) -> Result<Vec<u8>, DrawError> {
        let all = answers.iter().flat_map(|answer| answer.series.iter().map(|series| (answer.index, series)));
        let mut notes: Vec<(i64, String)> =
            all.clone().flat_map(|(_, series)| &series.annotations).chain(globals).filter_map(note).collect();
        notes.sort();
        notes.dedup();
        let lines = all.map(|(index, series)| draw::Line {
            name: name(series),
            points: &series.points,
            right: self.right.get(index).copied().unwrap_or(false),
        });
        let graph = draw::Graph {
            look: &self.look,
            lines: lines.filter(|line| !line.is_empty()).collect(),
            notes,
            start_s: start_ms / 1_000,
            end_s: (end_ms / 1_000).max(start_ms / 1_000 + 1),
            zone: self.zone,
        };
        graph.png(cancel)
    }
}

/// `metric{key=value, …}`.
fn name(series: &Series) -> String {
    let tags: Vec<String> = series.tags.iter().map(|(key, value)| format!("{key}={value}")).collect();
    if tags.is_empty() { series.metric.to_string() } else { format!("{}{{{}}}", series.metric, tags.join(", ")) }
}

fn note(note: &SeriesAnnotation) -> Option<(i64, String)> {
    let told = Annotation::decode(&note.json).ok()?;
    Some((note.start_ms / 1_000, told.description))
}
