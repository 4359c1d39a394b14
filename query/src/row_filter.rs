//! Tag filters in words that a cluster of HBase understands: a pattern over row keys, so that rows of other series do not
//! cross the network.
//!
//! The pattern takes every row that the filters take, and may take more: what a list of values or the mere presence of a key says
//! is in it, patterns and negations are not. *Source*: OpenTSDB 2.4 `QueryUtil.getRowKeyUIDRegex`, which filters so too.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use basalt_schema::{BaseTime, Schema, Uid, UidKind, UidWidth};
use basalt_store::{Comparator, Comparison, Filter};

use crate::filter::{FilterKind, TagFilter};
use crate::row_range::Listed;
use crate::{Error, Result, names};

/// Values of a key beyond which only the key is asked for: a pattern is compiled by every server of the table.
const VALUES_MAX: usize = 1_000;

/// Series of a metric that must be known before they say anything about the rest.
const KNOWN_SERIES_MIN: u64 = 16;

/// What a row's key must hold.
#[derive(Debug, Clone)]
pub(crate) struct RowFilter {
    /// All of it.
    pub(crate) pattern: Filter,
    /// One of the keys of which values are listed: the one that rows are sorted by before the others.
    pub(crate) listed: Option<Listed>,
}

/// What a row's key must hold; `None` where that is nothing beyond its metric, or no more than that tags are there which most
/// series known of the metric have: to hold a pattern against rows that it takes costs a server more than to give some too many.
///
/// Names that nobody knows ask for nothing here: what they mean is told by whoever plans the query.
///
/// # Errors
/// The store's own: a name that it does not tell for now may be one that rows have.
pub(crate) fn of(schema: &Schema, metric: Uid, filters: &[TagFilter]) -> Result<Option<RowFilter>> {
    let mut wanted: BTreeMap<Uid, Option<Vec<Uid>>> = BTreeMap::new();
    let takes_lacking = |filter: &TagFilter| {
        matches!(filter.kind(), FilterKind::NotKey | FilterKind::NotLiteralOr | FilterKind::NotILiteralOr)
    };
    for filter in filters.iter().filter(|filter| !takes_lacking(filter)) {
        // Strictly a list may be forgotten over a negation of its key (`plan::Lists`), so that other values count.
        let may_be_forgotten = filters.iter().any(|other| takes_lacking(other) && other.tagk() == filter.tagk());
        let Some(tagk) = known(schema, UidKind::Tagk, filter.tagk())? else { continue };
        let values = filter.literals().filter(|_| !may_be_forgotten).map(|values| {
            let known = values.filter_map(|value| known(schema, UidKind::Tagv, value).transpose());
            known.collect::<Result<Vec<Uid>>>()
        });
        match (wanted.entry(tagk).or_insert_with(|| Some(Vec::new())), values.transpose()?) {
            // Several lists of one key are joined or cut, as the mode has it: their union holds either.
            (Some(all), Some(values)) => all.extend(values),
            (all, _) => *all = None,
        }
    }
    if most_have(schema, metric, &wanted) {
        return Ok(None);
    }
    for values in wanted.values_mut().flatten() {
        values.sort_unstable();
        values.dedup();
    }
    let listed = wanted.iter().find_map(|(&tagk, values)| Some(Listed { tagk, values: values.clone()? }));
    let regex = pattern(schema, wanted).and_then(|pattern| regex::bytes::Regex::new(&pattern).ok());
    let filter = |regex| Filter::Row(Comparison::Equal, Comparator::Regex(regex));
    Ok(regex.map(|regex| RowFilter { pattern: filter(regex), listed }))
}

/// The UID of a name; `None` where nobody has it.
fn known(schema: &Schema, kind: UidKind, name: &str) -> Result<Option<Uid>> {
    match names::uid(schema, kind, name) {
        Err(Error::UnknownName { .. }) => Ok(None),
        uid => uid.map(Some),
    }
}

/// Whether only tags are asked for, whatever their values, and three series of four that are known have them. Of listed values
/// what is known says nothing: whoever asks for the same ones again and again knows no others.
fn most_have(schema: &Schema, metric: Uid, wanted: &BTreeMap<Uid, Option<Vec<Uid>>>) -> bool {
    let index = schema.index();
    let known = index.series_count(metric);
    if known < KNOWN_SERIES_MIN || wanted.values().any(Option::is_some) {
        return false;
    }
    let have = wanted.keys().map(|&tagk| index.with_key(metric, tagk)).reduce(|some, more| some & more);
    have.is_some_and(|have| have.len() >= known / 4 * 3)
}

/// Byte by byte: `(?s-u)` says so to Rust's patterns and to Java's.
fn pattern(schema: &Schema, wanted: BTreeMap<Uid, Option<Vec<Uid>>>) -> Option<String> {
    if wanted.is_empty() {
        return None;
    }
    let layout = schema.layout();
    let widths = layout.widths;
    let before = layout.salting.width() + widths.metric.bytes() + BaseTime::BYTES;
    let pair = widths.tagk.bytes() + widths.tagv.bytes();
    let mut text = format!("(?s-u)^.{{{before}}}(?:.{{{pair}}})*");
    for (tagk, values) in wanted {
        push(&mut text, tagk, widths.tagk);
        match values.filter(|values| values.len() <= VALUES_MAX) {
            None => write!(text, ".{{{}}}", widths.tagv.bytes()).ok()?,
            Some(values) => {
                text.push_str("(?:");
                for (place, value) in values.into_iter().enumerate() {
                    text.push_str(if place == 0 { "" } else { "|" });
                    push(&mut text, value, widths.tagv);
                }
                text.push(')');
            }
        }
        write!(text, "(?:.{{{pair}}})*").ok()?;
    }
    text.push('$');
    Some(text)
}

fn push(text: &mut String, uid: Uid, width: UidWidth) {
    for byte in uid.encode(width).iter() {
        // A text cannot fail to grow.
        let _infallible = write!(text, "\\x{byte:02x}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SubQuery;
    use crate::fixture::Fixture;
    use basalt_store::ErrorKind;

    #[test]
    fn lists_and_keys_are_asked_of_the_cluster_and_the_rest_is_not() {
        let fixture = Fixture::with(&["m 1700000000 1 host=a dc=x", "m 1700000000 1 host=b dc=x"]);
        let schema = &fixture.schema;
        let metric = schema.uids().of(UidKind::Metric).uid("m").unwrap();
        let uid = |kind, name: &str| {
            let table = schema.uids().of(kind);
            let uid = table.uid(name).unwrap();
            format!("\\x00\\x00\\x{:02x}", uid.number())
        };
        let check = |text: &str, expected: Option<Vec<String>>| {
            let sub = SubQuery::from_metric_text(text).unwrap();
            let told = of(schema, metric, &sub.filters).unwrap().map(|filter| match filter.pattern {
                Filter::Row(Comparison::Equal, Comparator::Regex(regex)) => regex.as_str().to_owned(),
                other => panic!("{other:?}"),
            });
            let expected = expected.map(|parts| {
                let parts: Vec<_> = parts.iter().map(|part| format!("{part}(?:.{{6}})*")).collect();
                format!("(?s-u)^.{{8}}(?:.{{6}})*{}$", parts.concat())
            });
            assert_eq!(told, expected, "{text}");
        };
        let (host, dc) = (uid(UidKind::Tagk, "host"), uid(UidKind::Tagk, "dc"));
        let (a, b, x) = (uid(UidKind::Tagv, "a"), uid(UidKind::Tagv, "b"), uid(UidKind::Tagv, "x"));
        check("sum:m", None);
        check("sum:m{host=a}", Some(vec![format!("{host}(?:{a})")]));
        check("sum:m{host=b|a}", Some(vec![format!("{host}(?:{a}|{b})")]));
        check("sum:m{host=*}", Some(vec![format!("{host}.{{3}}")]));
        check("sum:m{host=wildcard(a*)}", Some(vec![format!("{host}.{{3}}")]));
        check("sum:m{host=not_literal_or(a)}", None);
        check("sum:m{nosuch=a}", None);
        let mut both = [(host.clone(), a), (dc, x)];
        both.sort();
        let both = both.map(|(key, value)| format!("{key}(?:{value})"));
        check("sum:m{host=a}{dc=x}", Some(both.to_vec()));
        check("sum:m{host=a}{host=wildcard(*)}", Some(vec![format!("{host}.{{3}}")]));
        check("sum:m{host=not_literal_or(b)}{host=a}", Some(vec![format!("{host}.{{3}}")]));
    }

    #[test]
    fn what_most_series_have_is_not_asked_of_the_cluster() {
        let mut fixture = Fixture::with(&[]);
        for host in 0..15 {
            fixture.put(&format!("m 1700000000 1 host=h{host}"));
        }
        let asks = |fixture: &Fixture, text: &str| {
            let metric = fixture.schema.uids().of(UidKind::Metric).uid("m").unwrap();
            of(&fixture.schema, metric, &SubQuery::from_metric_text(text).unwrap().filters).unwrap().is_some()
        };
        assert!(asks(&fixture, "sum:m{host=*}"), "too few are known");
        fixture.put("m 1700000000 1 host=h15");
        assert!(!asks(&fixture, "sum:m{host=*}"));
        assert!(!asks(&fixture, "sum:m{host=wildcard(h*)}"));
        assert!(asks(&fixture, "sum:m{host=h1}"));
        for dc in 0..8 {
            fixture.put(&format!("m 1700000000 1 dc=d{dc}"));
        }
        assert!(asks(&fixture, "sum:m{host=*}"), "sixteen of twenty-four have it");
        assert!(asks(&fixture, "sum:m{dc=*}"));
    }

    /// Else the pattern would leave a listed name's series out, and the answer would not say so.
    #[test]
    fn a_name_that_is_not_told_for_now_is_no_unknown_one() {
        let fixture = Fixture::with(&["m 1700000000 1 host=a", "m 1700000000 1 host=b"]);
        // Where tables are shared, names are read from the store; each get of them fails in its turn.
        let ask = || fixture.ask_shared("1700000000", "1700000001", "none:m{host=a|b}");
        assert_eq!(ask().unwrap().len(), 2);
        let mut failed = 0;
        for nth in 1..=10 {
            fixture.fail_name_get(nth);
            match ask() {
                Ok(series) => assert_eq!(series.len(), 2, "where get {nth} failed"),
                Err(error) => {
                    assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
                    failed += 1;
                }
            }
        }
        assert!(failed >= 4, "the metric, the key and two values are asked for: {failed} failed");
    }
}
