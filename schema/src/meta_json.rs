//! JSON of cells that say something of a name, a series or a time: annotations and meta objects.
//!
//! Read leniently, since OpenTSDB's versions differ in what they leave out: an absent or `null` member is an empty one, and
//! unknown members are passed over.

use std::collections::BTreeMap;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer, Serialize};

use crate::{Error, Result};

/// The writer's own members.
pub(crate) type Pairs = Option<BTreeMap<String, String>>;

/// # Panics
/// Never: texts, numbers and maps with text keys are always JSON.
pub(crate) fn encode(value: &impl Serialize) -> Vec<u8> {
    let bytes = serde_json::to_vec(value);
    assert!(bytes.is_ok(), "BUG: {:?}", bytes.err());
    bytes.unwrap_or_default()
}

/// # Errors
/// `Corrupt`: no JSON of this shape.
pub(crate) fn decode<T: DeserializeOwned>(what: &'static str, bytes: &[u8]) -> Result<T> {
    serde_json::from_slice(bytes).map_err(|cause| Error::CorruptObject { what, reason: cause.to_string().into() })
}

/// A text, or `null`.
pub(crate) fn text<'de, D: Deserializer<'de>>(deserializer: D) -> std::result::Result<String, D::Error> {
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}

/// Texts by name, or `null`; members that are `null` are left out.
pub(crate) fn pairs<'de, D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Pairs, D::Error> {
    let found = Option::<BTreeMap<String, Option<String>>>::deserialize(deserializer)?;
    Ok(found.map(|found| found.into_iter().filter_map(|(name, value)| Some((name, value?))).collect()))
}
