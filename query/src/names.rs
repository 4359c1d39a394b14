//! Names of one answer: its series share most of them, so each is asked for once. And the UIDs of a request's names.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use basalt_schema::{Schema, Uid, UidKind};
use basalt_store::ErrorKind;
use foldhash::fast::RandomState;

use crate::{Error, Result};

/// One in so many: a prime, so that each of a series' tags has its turn.
const LOOKED_AT: usize = 61;

/// A tag's key and value.
pub type TagNames = (Arc<str>, Arc<str>);

/// The names that an answer has met so far. *Bounds*: as many as the answer's series have.
#[derive(Debug)]
pub(crate) struct Names<'a> {
    schema: &'a Schema,
    metrics: HashMap<Uid, Arc<str>, RandomState>,
    tagks: HashMap<Uid, Arc<str>, RandomState>,
    tagvs: HashMap<Uid, Arc<str>, RandomState>,
}

impl<'a> Names<'a> {
    pub(crate) fn new(schema: &'a Schema) -> Self {
        Self { schema, metrics: HashMap::default(), tagks: HashMap::default(), tagvs: HashMap::default() }
    }

    /// The name of a metric.
    ///
    /// # Errors
    /// `NotFound`: a UID whose name is gone. The store's own. So too below.
    pub(crate) fn metric(&mut self, uid: Uid) -> Result<Arc<str>> {
        name(self.schema, &mut self.metrics, UidKind::Metric, uid)
    }

    /// Reads the names of many tags' values at once, as far as they have one: an answer may have a million, and over HBase each
    /// that is asked for alone is a call. Does nothing where those looked at, one in some, are in memory.
    ///
    /// # Errors
    /// The store's own.
    pub(crate) fn load_values<V: Iterator<Item = Uid>>(&mut self, values: impl Fn() -> V) -> Result<()> {
        let table = self.schema.uids().of(UidKind::Tagv);
        let is_here = |value: &Uid| self.tagvs.contains_key(value) || table.is_kept(*value);
        // Fast path: all are.
        if values().step_by(LOOKED_AT).all(|value| is_here(&value)) {
            return Ok(());
        }
        let mut missing: Vec<Uid> = values().filter(|value| !self.tagvs.contains_key(value)).collect();
        missing.sort_unstable();
        missing.dedup();
        self.tagvs.extend(table.names_found(&missing, table.is_room_for(missing.len()))?);
        Ok(())
    }

    /// The names of tags, in their order.
    pub(crate) fn tags(&mut self, tags: &[(Uid, Uid)]) -> Result<Vec<(Arc<str>, Arc<str>)>> {
        let mut names = Vec::with_capacity(tags.len());
        for (key, value) in tags {
            names.push(self.tag(*key, *value)?);
        }
        Ok(names)
    }

    /// The names of tag keys, by their UIDs.
    pub(crate) fn keys(&mut self, keys: &BTreeSet<Uid>) -> Result<Vec<Arc<str>>> {
        keys.iter().map(|key| name(self.schema, &mut self.tagks, UidKind::Tagk, *key)).collect()
    }

    /// The names of a tag.
    pub(crate) fn tag(&mut self, key: Uid, value: Uid) -> Result<TagNames> {
        let key = name(self.schema, &mut self.tagks, UidKind::Tagk, key)?;
        Ok((key, name(self.schema, &mut self.tagvs, UidKind::Tagv, value)?))
    }
}

fn name(schema: &Schema, known: &mut HashMap<Uid, Arc<str>, RandomState>, kind: UidKind, uid: Uid) -> Result<Arc<str>> {
    if let Some(name) = known.get(&uid) {
        return Ok(Arc::clone(name));
    }
    let name = schema.uids().of(kind).name(uid)?;
    known.insert(uid, Arc::clone(&name));
    Ok(name)
}

/// The UID of a name; to a query an unknown one is a mistake of the request.
///
/// # Errors
/// `Invalid`: nobody has the name. The store's own.
pub(crate) fn uid(schema: &Schema, kind: UidKind, name: &str) -> Result<Uid> {
    schema.uids().of(kind).uid(name).map_err(|error| match error.kind() {
        ErrorKind::NotFound => Error::UnknownName { kind: kind.qualifier(), name: name.into() },
        _ => error.into(),
    })
}
