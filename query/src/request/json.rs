//! The JSON of a request, read as leniently as OpenTSDB's parser reads it: numbers for texts, texts for numbers and
//! flags, `null` for what is absent, unknown fields ignored.

use std::collections::BTreeMap;
use std::fmt;
use std::marker::PhantomData;

use serde::Deserialize;
use serde::de::{self, DeserializeOwned, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::Value;
use serde_json::value::RawValue;

use super::grammar::drop_repeated;
use super::{FILTERS_MAX, QueryRequest, RateOptions, SUB_QUERIES_MAX, SubQuery};
use crate::filter::{FilterKind, TagFilter};
use crate::{Error, Result};

impl QueryRequest {
    /// Reads the body of a POST.
    ///
    /// # Errors
    /// `Invalid`: no JSON of a query; the reason is in [`Error::details`].
    pub fn from_json(body: &[u8]) -> Result<Self> {
        // A list would be read as the fields in their order.
        if body.trim_ascii_start().first().is_some_and(|first| *first != b'{') {
            return Err(Error::Json { reason: "the body is not an object".into() });
        }
        let mut request: Self = read(body).map_err(|error| Error::Json { reason: error.to_string().into() })?;
        drop_repeated(&mut request.queries);
        request.lacks_queries = request.queries.is_empty() && lacks_queries(body);
        Ok(request)
    }
}

/// Whether a body that can be read has no list of sub queries, not even an empty one.
fn lacks_queries(body: &[u8]) -> bool {
    #[derive(Deserialize)]
    struct Body {
        queries: Option<IgnoredAny>,
    }
    read(body).is_ok_and(|body: Body| body.queries.is_none())
}

/// Reads a body, of whose repeated members the last counts and behind whose first value nothing does, as to Jackson.
pub(crate) fn read<T: DeserializeOwned>(body: &[u8]) -> serde_json::Result<T> {
    match first(body) {
        // Rare, and refused by derived readers; a tree keeps the last.
        Err(error) if error.to_string().starts_with("duplicate field") => serde_json::from_value(first(body)?),
        read => read,
    }
}

fn first<T: DeserializeOwned>(body: &[u8]) -> serde_json::Result<T> {
    T::deserialize(&mut serde_json::Deserializer::from_slice(body))
}

/// The sub queries of a body; `null` is none. They are counted while they are read, as a body has room for very many.
pub(super) fn sub_queries<'de, D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Vec<SubQuery>, D::Error> {
    deserializer.deserialize_option(SubQueriesVisitor)
}

struct SubQueriesVisitor;

impl<'de> Visitor<'de> for SubQueriesVisitor {
    type Value = Vec<SubQuery>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of sub queries")
    }

    fn visit_none<E: de::Error>(self) -> std::result::Result<Vec<SubQuery>, E> {
        Ok(Vec::new())
    }

    fn visit_unit<E: de::Error>(self) -> std::result::Result<Vec<SubQuery>, E> {
        Ok(Vec::new())
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> std::result::Result<Vec<SubQuery>, D::Error> {
        deserializer.deserialize_seq(self)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> std::result::Result<Vec<SubQuery>, A::Error> {
        let (mut queries, mut filters) = (Vec::new(), 0);
        while let Some(body) = list.next_element::<OrderedBody>()? {
            filters += body.filters_count();
            if queries.len() == SUB_QUERIES_MAX {
                return Err(too_many("sub queries", SUB_QUERIES_MAX));
            }
            if filters > FILTERS_MAX {
                return Err(too_many("filters", FILTERS_MAX));
            }
            queries.push(SubQuery::try_from(body).map_err(de::Error::custom)?);
        }
        Ok(queries)
    }
}

fn too_many<E: de::Error>(what: &'static str, limit: usize) -> E {
    E::custom(Error::TooMany { what, limit })
}

/// A list of at most `MAX`; `null` is none.
pub(crate) fn at_most<'de, const MAX: usize, D, T>(deserializer: D) -> std::result::Result<Option<Vec<T>>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    let list: Option<AtMost<MAX, T>> = Option::deserialize(deserializer)?;
    Ok(list.map(|list| list.0))
}

struct AtMost<const MAX: usize, T>(Vec<T>);

impl<'de, const MAX: usize, T: Deserialize<'de>> Deserialize<'de> for AtMost<MAX, T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        deserializer.deserialize_seq(AtMostVisitor(PhantomData))
    }
}

struct AtMostVisitor<const MAX: usize, T>(PhantomData<T>);

impl<'de, const MAX: usize, T: Deserialize<'de>> Visitor<'de> for AtMostVisitor<MAX, T> {
    type Value = AtMost<MAX, T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> std::result::Result<AtMost<MAX, T>, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = list.next_element()? {
            if items.len() == MAX {
                return Err(too_many("items in one list", MAX));
            }
            items.push(item);
        }
        Ok(AtMost(items))
    }
}

/// An object whose fields' order is still known: of `tags` and `filters` OpenTSDB keeps what comes last.
#[derive(Debug, Default)]
pub(super) struct OrderedBody {
    fields: serde_json::Map<String, Value>,
    tags: BTreeMap<String, Text>,
    filters: Vec<FilterBody>,
    tags_last: bool,
}

impl<'de> Deserialize<'de> for OrderedBody {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        deserializer.deserialize_map(OrderedVisitor)
    }
}

impl OrderedBody {
    fn filters_count(&self) -> usize {
        self.filters.len() + self.tags.len()
    }
}

struct OrderedVisitor;

impl<'de> Visitor<'de> for OrderedVisitor {
    type Value = OrderedBody;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a sub query")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> std::result::Result<OrderedBody, A::Error> {
        let mut body = OrderedBody::default();
        while let Some(name) = map.next_key::<String>()? {
            match name.as_str() {
                "tags" => {
                    body.tags = map.next_value::<Option<_>>()?.unwrap_or_default();
                    body.tags_last = true;
                }
                "filters" => {
                    body.filters = map.next_value::<Option<_>>()?.unwrap_or_default();
                    body.tags_last = false;
                }
                _ => {
                    body.fields.insert(name, map.next_value()?);
                }
            }
        }
        Ok(body)
    }
}

/// A sub query of a body but for its `tags` and `filters`.
#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
#[expect(clippy::struct_excessive_bools, reason = "each is a switch of the wire format")]
pub(super) struct SubQueryBody {
    #[serde(deserialize_with = "text")]
    aggregator: Option<String>,
    #[serde(deserialize_with = "text")]
    metric: Option<String>,
    #[serde(deserialize_with = "texts")]
    tsuids: Vec<String>,
    #[serde(deserialize_with = "text")]
    downsample: Option<String>,
    #[serde(deserialize_with = "flag")]
    rate: bool,
    rate_options: Option<RateOptions>,
    #[serde(deserialize_with = "flag")]
    explicit_tags: bool,
    #[serde(deserialize_with = "flag")]
    pre_aggregate: bool,
    #[serde(deserialize_with = "text")]
    rollup_usage: Option<String>,
    #[serde(deserialize_with = "list")]
    percentiles: Vec<Number>,
    #[serde(deserialize_with = "flag")]
    show_histogram_buckets: bool,
    #[serde(rename = "useFuzzyFilter", deserialize_with = "denied")]
    no_fuzzy_filter: bool,
    #[serde(rename = "useMultiGets", deserialize_with = "denied")]
    no_multi_gets: bool,
}

#[derive(Debug, Deserialize, Default)]
#[serde(default)]
struct FilterBody {
    #[serde(rename = "type", deserialize_with = "text")]
    kind: Option<String>,
    #[serde(deserialize_with = "text")]
    tagk: Option<String>,
    #[serde(deserialize_with = "text")]
    filter: Option<String>,
    #[serde(rename = "groupBy", alias = "group_by", deserialize_with = "flag")]
    group_by: bool,
}

#[derive(Deserialize)]
struct Number(#[serde(deserialize_with = "double")] f64);

impl TryFrom<OrderedBody> for SubQuery {
    /// Text for the parser's own error.
    type Error = String;

    fn try_from(ordered: OrderedBody) -> std::result::Result<Self, String> {
        let body = SubQueryBody::deserialize(Value::Object(ordered.fields)).map_err(|error| error.to_string())?;
        let not_key = Some(FilterKind::NotKey.name());
        let names_not_key = ordered.filters.iter().any(|filter| filter.kind.as_deref() == not_key);
        let last_is_empty = if ordered.tags_last { ordered.tags.is_empty() } else { ordered.filters.is_empty() };
        let filters =
            read_filters(ordered.filters, ordered.tags, ordered.tags_last).map_err(|error| error.to_string())?;
        let filters_are_none = filters.is_empty();
        Ok(Self {
            aggregator: body.aggregator,
            metric: body.metric,
            tsuids: body.tsuids,
            downsample: body.downsample,
            rate: body.rate,
            rate_options: body.rate_options,
            filters,
            names_not_key,
            clears_filters: last_is_empty && !filters_are_none,
            explicit_tags: body.explicit_tags,
            pre_aggregate: body.pre_aggregate,
            rollup_usage: body.rollup_usage,
            percentiles: body.percentiles.into_iter().map(|number| number.0).collect(),
            show_histogram_buckets: body.show_histogram_buckets,
            no_fuzzy_filter: body.no_fuzzy_filter,
            no_multi_gets: body.no_multi_gets,
        })
    }
}

impl<'de> Deserialize<'de> for TagFilter {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        FilterBody::deserialize(deserializer)?.read().map_err(de::Error::custom)
    }
}

impl FilterBody {
    fn read(self) -> Result<TagFilter> {
        let [kind, tagk, text] = [self.kind, self.tagk, self.filter].map(Option::unwrap_or_default);
        TagFilter::new(&kind, &tagk, &text, self.group_by)
    }
}

/// The filters of a sub query, or those that its `tags` stand for: whichever came last in the body, if both say
/// something.
fn read_filters(bodies: Vec<FilterBody>, tags: BTreeMap<String, Text>, tags_last: bool) -> Result<Vec<TagFilter>> {
    let mut from_filters = Vec::with_capacity(bodies.len());
    for filter in bodies {
        from_filters.push(filter.read()?);
    }
    let mut from_tags = Vec::new();
    for (tagk, value) in tags {
        TagFilter::add_grouping(&mut from_tags, TagFilter::from_value(&tagk, &value.0)?);
    }
    let tags_win = !from_tags.is_empty() && (tags_last || from_filters.is_empty());
    Ok(if tags_win { from_tags } else { from_filters })
}

/// A text, or a number or flag as it is written; `null` is none.
pub(crate) fn text<'de, D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Option<String>, D::Error> {
    let written = Box::<RawValue>::deserialize(deserializer)?;
    match written.get().as_bytes().first() {
        Some(b'n') => Ok(None),
        Some(b'"') => serde_json::from_str(written.get()).map(Some).map_err(de::Error::custom),
        Some(b'[' | b'{') => Err(de::Error::custom("expected a text")),
        _ => Ok(Some(written.get().to_owned())),
    }
}

/// A [`text`] among others; `null` is an empty one.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct Text(#[serde(deserialize_with = "text_or_empty")] String);

fn text_or_empty<'de, D: Deserializer<'de>>(deserializer: D) -> std::result::Result<String, D::Error> {
    text(deserializer).map(Option::unwrap_or_default)
}

/// A list of texts; `null` is an empty one.
pub(crate) fn texts<'de, D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Vec<String>, D::Error> {
    Ok(list::<D, Text>(deserializer)?.into_iter().map(|text| text.0).collect())
}

/// Texts by name; `null` is none.
pub(crate) fn texts_by_name<'de, D>(deserializer: D) -> std::result::Result<Option<BTreeMap<String, String>>, D::Error>
where
    D: Deserializer<'de>,
{
    let texts = Option::<BTreeMap<String, Text>>::deserialize(deserializer)?;
    Ok(texts.map(|texts| texts.into_iter().map(|(name, text)| (name, text.0)).collect()))
}

/// A flag, or a text or number that stands for one; `null` is false.
pub(crate) fn flag<'de, D: Deserializer<'de>>(deserializer: D) -> std::result::Result<bool, D::Error> {
    match Value::deserialize(deserializer)? {
        Value::Null => Ok(false),
        Value::Bool(flag) => Ok(flag),
        Value::Number(number) => Ok(number.as_f64() != Some(0.0)),
        Value::String(text) => match text.trim() {
            "true" | "True" | "TRUE" => Ok(true),
            "false" | "False" | "FALSE" | "" | "null" => Ok(false),
            _ => Err(de::Error::custom(format!("only \"true\" or \"false\" recognized, not \"{text}\""))),
        },
        Value::Array(_) | Value::Object(_) => Err(de::Error::custom("expected a flag")),
    }
}

/// Whether a [`flag`] that is set unless given is not.
fn denied<'de, D: Deserializer<'de>>(deserializer: D) -> std::result::Result<bool, D::Error> {
    flag(deserializer).map(|flag| !flag)
}

/// A list; `null` is an empty one.
pub(crate) fn list<'de, D, T>(deserializer: D) -> std::result::Result<Vec<T>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}

/// A 64-bit integer, or a text or fraction that stands for one; `null`, also as a text, and an empty text are 0.
#[expect(clippy::cast_possible_truncation, reason = "a fraction is cut, as Java narrows it")]
pub(crate) fn integer<'de, D: Deserializer<'de>>(deserializer: D) -> std::result::Result<i64, D::Error> {
    match Value::deserialize(deserializer)? {
        Value::Null => Ok(0),
        Value::Number(number) => number
            .as_i64()
            .or_else(|| number.as_f64().filter(|v| v.abs() < 9.3e18).map(|v| v as i64))
            .ok_or_else(|| de::Error::custom(format!("number {number} is out of range"))),
        Value::String(text) if matches!(text.trim(), "" | "null") => Ok(0),
        Value::String(text) => {
            text.trim().parse().map_err(|_| de::Error::custom(format!("\"{text}\" is not a number")))
        }
        Value::Bool(_) | Value::Array(_) | Value::Object(_) => Err(de::Error::custom("expected a number")),
    }
}

/// A number, or a text that stands for one.
pub(crate) fn double<'de, D: Deserializer<'de>>(deserializer: D) -> std::result::Result<f64, D::Error> {
    match Value::deserialize(deserializer)? {
        Value::Number(number) => number.as_f64().ok_or_else(|| de::Error::custom("number out of range")),
        Value::String(text) => {
            text.trim().parse().map_err(|_| de::Error::custom(format!("\"{text}\" is not a number")))
        }
        _ => Err(de::Error::custom("expected a number")),
    }
}
