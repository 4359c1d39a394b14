//! The answer: points, and once each the metrics, sets of tags and tags that their series are of.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;

use basalt_schema::{Schema, TagPair, Uid, tag_pairs};
use foldhash::fast::RandomState;

use super::series::{TagSets, Wanted};
use crate::Result;
use crate::answer::{Number, Point};
use crate::names::{Names, TagNames};

/// The newest points of a request's series.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct LastAnswer {
    /// In the order of the request; series without a point are left out.
    pub points: Vec<LastPoint>,
    /// The metrics that [`LastPoint::metric`] tells.
    pub metrics: Vec<LastMetric>,
    /// The sets of tags that [`LastPoint::tags`] tells.
    pub tags: Vec<LastTags>,
    /// The names of the tags that [`LastTags::names`] tells.
    pub names: Vec<TagNames>,
}

/// The newest point of a series. The series' TSUID is the bytes of its metric's UID, then those of its tags'.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LastPoint {
    /// Which of the answer's metrics.
    pub metric: usize,
    /// Which of the answer's sets of tags.
    pub tags: usize,
    /// Milliseconds since the epoch.
    pub time_ms: i64,
    /// Its value.
    pub number: Number,
}

/// A metric of an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LastMetric {
    /// Its UID's bytes.
    pub uid: Box<[u8]>,
    /// Its name, if names were asked for.
    pub name: Option<Arc<str>>,
}

/// A set of tags of an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LastTags {
    /// The bytes of the pairs' UIDs.
    pub uids: Box<[u8]>,
    /// Which of the answer's names they have, by the UIDs of their keys, if names were asked for.
    pub names: Option<Box<[usize]>>,
}

/// Makes an answer of what was found for the series that were wanted.
#[derive(Debug)]
pub(super) struct Teller<'a> {
    schema: &'a Schema,
    sets: &'a TagSets,
    names: Option<Names<'a>>,
    answer: LastAnswer,
    metrics: HashMap<Uid, usize, RandomState>,
    /// Where in the answer the names of each tag are.
    tag_places: HashMap<TagPair, usize, RandomState>,
    /// Series come metric by metric: the one before.
    metric: Option<(Uid, usize)>,
    /// Where in the answer each set of tags is, if it is.
    set_places: Vec<Option<usize>>,
}

impl<'a> Teller<'a> {
    pub(super) fn new(schema: &'a Schema, sets: &'a TagSets, with_names: bool) -> Self {
        Self {
            schema,
            sets,
            names: with_names.then(|| Names::new(schema)),
            answer: LastAnswer::default(),
            metrics: HashMap::default(),
            tag_places: HashMap::default(),
            metric: None,
            set_places: vec![None; sets.len()],
        }
    }

    /// # Errors
    /// `NotFound`: a UID whose name is gone. The store's own.
    pub(super) fn tell(mut self, wanted: &[Wanted], found: Vec<Option<Point>>) -> Result<LastAnswer> {
        self.answer.points.reserve(found.len());
        if let Some(names) = &mut self.names {
            let widths = self.schema.layout().widths;
            let mut told = vec![false; self.sets.len()];
            for (series, _) in wanted.iter().zip(&found).filter(|(_, point)| point.is_some()) {
                if let Some(is_told) = told.get_mut(series.tags as usize) {
                    *is_told = true;
                }
            }
            names.load_values(|| {
                let sets = self.sets.iter().zip(&told).filter(|(_, is_told)| **is_told);
                sets.flat_map(|(tags, _)| tag_pairs(tags, widths).map(|pair| pair.value))
            })?;
        }
        for (series, point) in wanted.iter().zip(found) {
            let Some(Point { time_ms, number }) = point else { continue };
            let (metric, tags) = (self.metric(series.metric)?, self.tags(series.tags)?);
            self.answer.points.push(LastPoint { metric, tags, time_ms, number });
        }
        Ok(self.answer)
    }

    fn metric(&mut self, uid: Uid) -> Result<usize> {
        if let Some((last, place)) = self.metric
            && last == uid
        {
            return Ok(place);
        }
        let place = match self.metrics.entry(uid) {
            Entry::Occupied(known) => *known.get(),
            Entry::Vacant(new) => {
                let name = self.names.as_mut().map(|names| names.metric(uid)).transpose()?;
                let uid = uid.encode(self.schema.layout().widths.metric).as_slice().into();
                self.answer.metrics.push(LastMetric { uid, name });
                *new.insert(self.answer.metrics.len() - 1)
            }
        };
        self.metric = Some((uid, place));
        Ok(place)
    }

    fn tags(&mut self, set: u32) -> Result<usize> {
        if let Some(Some(place)) = self.set_places.get(set as usize) {
            return Ok(*place);
        }
        let uids = self.sets.get(set);
        let names = if self.names.is_some() { Some(self.names_of(uids)?) } else { None };
        self.answer.tags.push(LastTags { uids: uids.into(), names });
        let place = self.answer.tags.len() - 1;
        if let Some(known) = self.set_places.get_mut(set as usize) {
            *known = Some(place);
        }
        Ok(place)
    }

    /// Where in the answer the names of tags are, whose pairs these bytes are.
    fn names_of(&mut self, tags: &[u8]) -> Result<Box<[usize]>> {
        let widths = self.schema.layout().widths;
        let mut places = Vec::with_capacity(tags.len() / widths.pair_bytes());
        for pair in tag_pairs(tags, widths) {
            places.push(match (self.tag_places.entry(pair), &mut self.names) {
                (Entry::Occupied(known), _) => *known.get(),
                (Entry::Vacant(new), Some(names)) => {
                    self.answer.names.push(names.tag(pair.key, pair.value)?);
                    *new.insert(self.answer.names.len() - 1)
                }
                (Entry::Vacant(_), None) => continue,
            });
        }
        Ok(places.into())
    }
}
