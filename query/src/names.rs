//! Names of one answer: its series share most of them, so each is asked for once. And the UIDs of a request's names.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use basalt_schema::{Schema, Uid, UidKind};
use basalt_store::ErrorKind;
use foldhash::fast::RandomState;

use crate::last::TagNames;
use crate::{Error, Result};

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
