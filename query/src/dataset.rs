//! An output series before it has names: what expressions compute with, since joining is by UIDs.

use std::collections::BTreeSet;
use std::ops::RangeInclusive;
use std::sync::Arc;

use basalt_schema::Uid;

use crate::Result;
use crate::answer::{Number, Point, ScanStats, Series, SeriesAnnotation, Steps};
use crate::names::Names;
use crate::plan::Plan;
use crate::request::Query;

/// Memory charged for a few UIDs of a set: a leaf of its tree.
const LEAF_BYTES: usize = 104;
/// How many UIDs a leaf has at least, unless it is the only one.
const LEAF_UIDS_MIN: usize = 5;

/// What a sub query came to.
#[derive(Debug, Default)]
pub(crate) struct Computed {
    /// Its output series, in the order of the answer.
    pub(crate) datasets: Vec<Dataset>,
    /// The interval of the rollups read; `None` for points.
    pub(crate) rollup: Option<Arc<str>>,
    /// What they took.
    pub(crate) stats: ScanStats,
    /// How long each step took.
    pub(crate) steps: Steps,
    /// Of a delete, the plans that read points in place of rollups, and of which time, ms.
    pub(crate) in_place: Vec<(Plan, RangeInclusive<i64>)>,
}

impl Computed {
    /// Keeps a plan that read in place of another for what deletes afterwards.
    pub(crate) fn take_in_place(&mut self, query: &Query, plan: Plan) {
        self.in_place.extend(query.delete.then_some((plan, query.start_ms..=query.end_ms)));
    }
}

/// An output series by its UIDs.
#[derive(Debug, Clone, Default)]
pub(crate) struct Dataset {
    /// What tells its group from the others of the sub query.
    pub(crate) group: Vec<Uid>,
    /// The metrics it is made of; none: it has no name.
    pub(crate) metrics: BTreeSet<Uid>,
    /// A name given in place of the metric's; then tags and keys are not told.
    pub(crate) alias: Option<String>,
    /// What follows the metric's name.
    pub(crate) suffix: String,
    /// Tags whose value all members share that have them: by their keys, none twice.
    pub(crate) tags: Vec<(Uid, Uid)>,
    /// Keys of tags whose values differ.
    pub(crate) aggregated: BTreeSet<Uid>,
    /// TSUIDs of the members, upper-case hex, sorted.
    pub(crate) tsuids: Vec<String>,
    /// Annotations of the members.
    pub(crate) annotations: Vec<SeriesAnnotation>,
    /// The list of annotations is written even where it is empty.
    pub(crate) lists_annotations: bool,
    /// By time; no time twice.
    pub(crate) points: Vec<Point>,
}

impl Dataset {
    /// Memory that it takes.
    pub(crate) fn bytes(&self) -> u64 {
        self.description_bytes() + (self.points.capacity() * size_of::<Point>()) as u64
    }

    /// Memory that it takes beside its points.
    pub(crate) fn description_bytes(&self) -> u64 {
        let uids = self.group.capacity() + 2 * self.tags.capacity();
        let leaves = self.metrics.len().div_ceil(LEAF_UIDS_MIN) + self.aggregated.len().div_ceil(LEAF_UIDS_MIN);
        let names = self.suffix.capacity() + self.alias.as_ref().map_or(0, String::capacity);
        let lists = texts_bytes(&self.tsuids) + notes_bytes(&self.annotations);
        (size_of::<Self>() + uids * size_of::<Uid>() + leaves * LEAF_BYTES + names + lists) as u64
    }

    /// The values of its tags.
    pub(crate) fn tag_values(&self) -> impl Iterator<Item = Uid> + '_ {
        self.tags.iter().map(|(_, value)| *value)
    }

    /// The series as it is answered. The name of several metrics is that of the least UID, as in OpenTSDB.
    ///
    /// # Errors
    /// `NotFound`: a UID whose name is gone. The store's own.
    pub(crate) fn named(self, names: &mut Names<'_>) -> Result<Series> {
        let mut series = Series {
            tsuids: self.tsuids,
            annotations: self.annotations,
            lists_annotations: self.lists_annotations,
            points: self.points,
            ..Series::default()
        };
        let tags = names.tags(&self.tags)?;
        if let Some(mut alias) = self.alias {
            for (key, value) in &tags {
                alias = alias.replace(&format!("@{key}"), value);
            }
            series.metric = alias.into();
            return Ok(series);
        }
        if let Some(metric) = self.metrics.first() {
            series.metric = names.metric(*metric)?;
        }
        if !self.suffix.is_empty() {
            series.metric = format!("{}{}", series.metric, self.suffix).into();
        }
        series.tags = tags;
        series.aggregate_tags = names.keys(&self.aggregated)?;
        Ok(series)
    }

    /// The series of a group before an instant joined with that of the same group from it on.
    /// A tag of two values is aggregated; strictly the later one's is told.
    pub(crate) fn followed_by(mut self, later: Self, strict: bool) -> Self {
        self.points.extend(later.points);
        self.metrics.extend(later.metrics);
        for (key, value) in later.tags {
            let place = self.tags.binary_search_by_key(&key, |(key, _)| *key);
            match place.map(|at| self.tags.get_mut(at)) {
                Ok(Some(known)) if strict => known.1 = value,
                Ok(Some(known)) if known.1 != value => drop(self.aggregated.insert(key)),
                Ok(_) => {}
                Err(at) => self.tags.insert(at, (key, value)),
            }
        }
        self.aggregated.extend(later.aggregated);
        self.tags.retain(|(key, _)| !self.aggregated.contains(key));
        self.tsuids.extend(later.tsuids);
        self.tsuids.sort();
        self.tsuids.dedup();
        self.annotations.extend(later.annotations);
        self
    }

    /// The same series with other values.
    pub(crate) fn map(mut self, of: impl Fn(Number) -> Number) -> Self {
        for point in &mut self.points {
            point.number = of(point.number);
        }
        self
    }
}

/// Memory that TSUIDs take.
pub(crate) fn texts_bytes(texts: &[String]) -> usize {
    texts.iter().map(|text| text.capacity() + size_of::<String>()).sum()
}

/// Memory that annotations take.
pub(crate) fn notes_bytes(notes: &[SeriesAnnotation]) -> usize {
    notes.iter().map(|note| note.json.len() + size_of::<SeriesAnnotation>()).sum()
}
