//! The body of `/api/query/exp`, read as OpenTSDB reads it and written back as it echoes it.

use serde::ser::{SerializeStruct, Serializer};
use serde::{Deserialize, Serialize};

use crate::filter::TagFilter;
use crate::request::json::{at_most, double, flag, read, text};
use crate::{Error, ExpressionFault, Result};

/// How many outputs a request may name.
const OUTPUTS_MAX: usize = 256;

/// A request of `/api/query/exp`; serialized it is the `query` of the answer.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, Serialize)]
#[serde(default)]
pub struct ExpressionRequest {
    #[serde(deserialize_with = "text")]
    pub(super) name: Option<String>,
    pub(super) time: Option<Time>,
    #[serde(deserialize_with = "at_most::<64, _, _>")]
    pub(super) filters: Option<Vec<FilterSet>>,
    pub(super) metrics: Option<Vec<Metric>>,
    pub(super) expressions: Option<Vec<Expression>>,
    #[serde(deserialize_with = "at_most::<OUTPUTS_MAX, _, _>")]
    pub(super) outputs: Option<Vec<Output>>,
}

/// What all metrics share.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, Serialize)]
#[serde(default)]
pub(super) struct Time {
    #[serde(deserialize_with = "text")]
    pub(super) start: Option<String>,
    #[serde(deserialize_with = "text")]
    pub(super) end: Option<String>,
    #[serde(deserialize_with = "text")]
    pub(super) timezone: Option<String>,
    pub(super) downsampler: Option<Downsampler>,
    #[serde(deserialize_with = "text")]
    pub(super) aggregator: Option<String>,
    #[serde(deserialize_with = "flag")]
    pub(super) rate: bool,
}

/// Its fill policy is read and has no effect, as in OpenTSDB.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, Serialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Downsampler {
    #[serde(deserialize_with = "text")]
    pub(super) interval: Option<String>,
    #[serde(deserialize_with = "text")]
    pub(super) aggregator: Option<String>,
    pub(super) fill_policy: Option<FillPolicy>,
}

#[derive(Debug, Clone, Default, PartialEq, Deserialize, Serialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct FilterSet {
    #[serde(deserialize_with = "text")]
    pub(super) id: Option<String>,
    #[serde(deserialize_with = "at_most::<16, _, _>")]
    pub(super) tags: Option<Vec<TagFilter>>,
    #[serde(deserialize_with = "flag")]
    pub(super) explicit_tags: bool,
}

/// Its time offset must be a time and has no effect, as in OpenTSDB.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, Serialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Metric {
    #[serde(rename = "metric", deserialize_with = "text")]
    pub(super) name: Option<String>,
    #[serde(deserialize_with = "text")]
    pub(super) id: Option<String>,
    #[serde(deserialize_with = "text")]
    pub(super) filter: Option<String>,
    #[serde(deserialize_with = "text")]
    pub(super) aggregator: Option<String>,
    #[serde(deserialize_with = "text")]
    pub(super) time_offset: Option<String>,
    pub(super) fill_policy: Option<FillPolicy>,
}

#[derive(Debug, Clone, Default, PartialEq, Deserialize, Serialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Expression {
    #[serde(deserialize_with = "text")]
    pub(super) id: Option<String>,
    #[serde(deserialize_with = "text")]
    pub(super) expr: Option<String>,
    #[serde(serialize_with = "echo_join")]
    pub(super) join: Option<Join>,
    pub(super) fill_policy: Option<FillPolicy>,
}

#[derive(Debug, Clone, PartialEq, Deserialize, Serialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Join {
    pub(super) operator: Option<Operator>,
    #[serde(deserialize_with = "flag")]
    pub(super) use_query_tags: bool,
    #[serde(deserialize_with = "flag")]
    pub(super) include_agg_tags: bool,
}

impl Default for Join {
    fn default() -> Self {
        Self { operator: None, use_query_tags: false, include_agg_tags: true }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
#[serde(try_from = "String", rename_all = "lowercase")]
pub(super) enum Operator {
    Union,
    Intersection,
}

impl TryFrom<String> for Operator {
    type Error = String;

    fn try_from(text: String) -> std::result::Result<Self, String> {
        match text.to_ascii_lowercase().as_str() {
            "union" => Ok(Self::Union),
            "intersection" => Ok(Self::Intersection),
            _ => Err(format!("Unrecognized set operator: {text}")),
        }
    }
}

#[derive(Debug, Clone, Default, PartialEq, Deserialize, Serialize)]
#[serde(default)]
pub(super) struct Output {
    #[serde(deserialize_with = "text")]
    pub(super) id: Option<String>,
    #[serde(deserialize_with = "text")]
    pub(super) alias: Option<String>,
}

/// What stands in place of a value that is not there.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(try_from = "FillBody")]
pub(super) struct FillPolicy {
    policy: Policy,
    pub(super) value: f64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
enum Policy {
    None,
    Nan,
    Null,
    Zero,
    Scalar,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct FillBody {
    #[serde(deserialize_with = "text")]
    policy: Option<String>,
    #[serde(deserialize_with = "double")]
    value: f64,
}

impl TryFrom<FillBody> for FillPolicy {
    type Error = String;

    fn try_from(FillBody { policy, value }: FillBody) -> std::result::Result<Self, String> {
        let is_zero = value.abs() <= 0.0;
        let policy = policy.map(|policy| policy.to_ascii_lowercase());
        let nothing = is_zero || value.is_nan();
        let (policy, value) = match policy.as_deref() {
            Some("nan" | "none") if !nothing => return Err("The value for NONE and NAN must be NaN".to_owned()),
            Some("null") if !nothing => return Err("The value for NULL must be 0".to_owned()),
            Some("zero") if !is_zero => return Err("The value for ZERO must be 0".to_owned()),
            Some("none") => (Policy::None, f64::NAN),
            Some("nan") => (Policy::Nan, f64::NAN),
            Some("null") => (Policy::Null, f64::NAN),
            Some("zero") => (Policy::Zero, 0.0),
            Some("scalar") => (Policy::Scalar, value),
            Some(other) => return Err(format!("Unrecognized fill policy: {other}")),
            None if is_zero => (Policy::Zero, 0.0),
            None if value.is_nan() => (Policy::Nan, value),
            None => (Policy::Scalar, value),
        };
        Ok(Self { policy, value })
    }
}

impl Serialize for FillPolicy {
    fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        let mut out = serializer.serialize_struct("FillPolicy", 2)?;
        out.serialize_field("policy", &self.policy)?;
        if self.value.is_nan() {
            out.serialize_field("value", "NaN")?;
        } else {
            out.serialize_field("value", &self.value)?;
        }
        out.end()
    }
}

/// No join is a union, and echoed as one.
#[expect(clippy::ref_option, reason = "serde hands the field over so")]
fn echo_join<S: Serializer>(join: &Option<Join>, serializer: S) -> std::result::Result<S::Ok, S::Error> {
    let union = || Join { operator: Some(Operator::Union), ..Join::default() };
    join.clone().unwrap_or_else(union).serialize(serializer)
}

impl ExpressionRequest {
    /// Reads the body of a POST.
    ///
    /// # Errors
    /// `Invalid`: no JSON of such a request.
    pub fn from_json(body: &[u8]) -> Result<Self> {
        let refuse = |reason: &str| {
            let cause = Error::Json { reason: reason.into() };
            Error::Expression(ExpressionFault::Query(Box::new(cause)))
        };
        if body.trim_ascii_start().first().is_some_and(|first| *first != b'{') {
            return Err(refuse("the body is not an object"));
        }
        read(body).map_err(|error| refuse(&error.to_string()))
    }
}
