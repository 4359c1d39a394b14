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

/// The most text that is read for one answer. Each object may be as long as a cell.
pub(crate) const ANSWER_BYTES_MAX: usize = 256 << 20;

/// Counts text that is read for one answer.
#[derive(Debug)]
pub(crate) struct TextRoom {
    what: &'static str,
    max: usize,
    left: usize,
}

impl TextRoom {
    pub(crate) const fn new(what: &'static str, max: usize) -> Self {
        Self { what, max, left: max }
    }

    /// # Errors
    /// `Throttled`: there is no room for so many bytes more.
    pub(crate) fn take(&mut self, bytes: usize) -> Result<()> {
        let full = || Error::TooMuchText { what: self.what, max: self.max };
        self.left = self.left.checked_sub(bytes).ok_or_else(full)?;
        Ok(())
    }
}

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

/// Doubles of which those that are no numbers are texts, as Java's JSON library writes them.
pub(crate) mod double {
    use serde::de::Error as _;
    use serde::{Deserialize, Deserializer, Serializer};

    /// What may stand where a double is wanted.
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Spelled {
        Number(f64),
        Text(String),
    }

    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes every field by reference")]
    pub(crate) fn serialize<S: Serializer>(value: &f64, serializer: S) -> Result<S::Ok, S::Error> {
        match *value {
            value if value.is_finite() => serializer.serialize_f64(value),
            value if value.is_nan() => serializer.serialize_str("NaN"),
            value if value > 0.0 => serializer.serialize_str("Infinity"),
            _ => serializer.serialize_str("-Infinity"),
        }
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<f64, D::Error> {
        match Spelled::deserialize(deserializer)? {
            Spelled::Number(value) => Ok(value),
            Spelled::Text(text) => text.parse().map_err(D::Error::custom),
        }
    }
}
