//! The report on a batch of points.

use serde::ser::{Serialize, SerializeMap, Serializer};

use crate::Problem;
use crate::raw_point::{Form, RawPoint, RawTags, Tag};

/// A point that was not stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PointError {
    /// Index of the point in its batch.
    pub index: usize,
    /// What is wrong.
    pub problem: Problem,
}

/// The outcome of a batch. Every point of it is in exactly one of the three counts.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PutReport {
    /// Points stored as durably as was asked. Of several points of one series at one instant only the last can be read.
    pub stored: u64,
    /// Points that are wrong.
    pub rejected: u64,
    /// Points that the store did not take, or whose fate is unknown.
    pub failed: u64,
    /// One entry for each point that is not stored: the rejected points in order, then the failed ones in order.
    pub errors: Vec<PointError>,
}

impl PutReport {
    /// Whether every point is stored.
    pub fn is_all_stored(&self) -> bool {
        self.errors.is_empty()
    }
}

/// A point as the details of a put show it: `{"metric":…,"timestamp":…,"value":"…","tags":{…}}`, absent fields left
/// out, values as the text that was sent; `null` for a point that was `null`.
#[derive(Debug, Clone, Copy)]
pub struct DatapointEcho<'a>(pub &'a RawPoint<'a>);

impl Serialize for DatapointEcho<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let point = self.0;
        if point.form == Form::Null {
            return serializer.serialize_none();
        }
        let mut map = serializer.serialize_map(None)?;
        echo_into(point, &mut map)?;
        map.end()
    }
}

/// Writes a point's fields.
pub(crate) fn echo_into<M: SerializeMap>(point: &RawPoint<'_>, map: &mut M) -> Result<(), M::Error> {
    if let Some(metric) = point.metric {
        map.serialize_entry("metric", &metric.decode())?;
    }
    map.serialize_entry("timestamp", &point.timestamp)?;
    if let Some(value) = point.value {
        map.serialize_entry("value", &value.decode())?;
    }
    if point.tags != RawTags::Absent {
        map.serialize_entry("tags", &TagsEcho(&point.tags.decode()))?;
    }
    Ok(())
}

struct TagsEcho<'a>(&'a [Tag<'a>]);

impl Serialize for TagsEcho<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(key, value)| (key, value)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{IngestLimits, parse_put};

    #[test]
    fn w_put_details_points_are_echoed_as_sent() {
        let echo = |body: &str| {
            let points = parse_put(body, &IngestLimits::default()).unwrap();
            serde_json::to_string(&DatapointEcho(&points[0])).unwrap()
        };
        assert_eq!(echo("{}"), r#"{"timestamp":0}"#);
        assert_eq!(echo("[null]"), "null");
        assert_eq!(
            echo(r#"{"tags":{"host":null,"b":1.50},"value":1.50,"timestamp":"7","metric":"a\u00e9","x":1}"#),
            r#"{"metric":"aé","timestamp":7,"value":"1.50","tags":{"host":null,"b":"1.50"}}"#
        );
        assert_eq!(echo(r#"{"tags":{}}"#), r#"{"timestamp":0,"tags":{}}"#);
    }
}
