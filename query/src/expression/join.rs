//! Joining: which series of several lists belong together, by their tags.
//!
//! *Source*: OpenTSDB 2.4 `UnionIterator`, `IntersectionIterator`.

use std::collections::{BTreeMap, BTreeSet};

use basalt_schema::Uid;

use crate::dataset::Dataset;

/// The series of one variable.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Column<'a> {
    /// In the order of the answer.
    pub(crate) series: &'a [Dataset],
    /// Keys of the tags it was filtered by.
    pub(crate) filtered: Option<&'a BTreeSet<Uid>>,
    /// In place of a value that is not there.
    pub(crate) fill: f64,
}

/// How series are joined.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Rule {
    /// Only where every list has one.
    pub(crate) intersect: bool,
    /// Only by the tags that were filtered by.
    pub(crate) filtered_tags: bool,
    /// By the keys of tags whose values differ, too.
    pub(crate) aggregated_keys: bool,
}

/// Series that belong together: of each column the index of one, or none. Ordered by the UIDs of their tags.
pub(crate) type Row = Vec<Option<usize>>;

/// Joins the columns. Where two series of one column have the same tags, the later is taken.
pub(crate) fn join(columns: &[Column<'_>], rule: Rule) -> Vec<Row> {
    let mut rows: BTreeMap<Vec<Uid>, Row> = BTreeMap::new();
    for (place, column) in columns.iter().enumerate() {
        for (index, series) in column.series.iter().enumerate() {
            let row = rows.entry(key(series, column, rule)).or_insert_with(|| vec![None; columns.len()]);
            if let Some(member) = row.get_mut(place) {
                *member = Some(index);
            }
        }
    }
    if rule.intersect {
        rows.retain(|_, row| row.iter().all(Option::is_some));
    }
    rows.into_values().collect()
}

/// Tags, then keys. A series without a common tag has the empty key, whatever its other keys.
fn key(series: &Dataset, column: &Column<'_>, rule: Rule) -> Vec<Uid> {
    if series.tags.is_empty() {
        return Vec::new();
    }
    let counts = |key: &Uid| !rule.filtered_tags || column.filtered.is_some_and(|keys| keys.contains(key));
    let tags = series.tags.iter().filter(|(key, _)| counts(key)).flat_map(|(key, value)| [*key, *value]);
    let keys = series.aggregated.iter().copied().filter(|_| rule.aggregated_keys);
    tags.chain(keys).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn uid(number: u64) -> Uid {
        Uid::decode(&number.to_be_bytes()).unwrap()
    }

    fn series(tags: &[(u64, u64)], keys: &[u64]) -> Dataset {
        Dataset {
            tags: tags.iter().map(|(key, value)| (uid(*key), uid(*value))).collect(),
            aggregated: keys.iter().copied().map(uid).collect(),
            ..Dataset::default()
        }
    }

    fn check(rule: Rule, expected: &[[Option<usize>; 2]]) {
        let left = [series(&[(1, 2), (2, 9)], &[]), series(&[(1, 1), (2, 9)], &[3])];
        let right = [series(&[(1, 1), (2, 8)], &[]), series(&[(1, 2), (2, 9)], &[]), series(&[(1, 1), (2, 9)], &[])];
        let host = BTreeSet::from([uid(1)]);
        let column = |series| Column { series, filtered: Some(&host), fill: 0.0 };
        let rows = join(&[column(&left), column(&right)], rule);
        assert_eq!(rows, expected.iter().map(|row| row.to_vec()).collect::<Vec<_>>(), "{rule:?}");
    }

    /// `E-EXP-JOIN`
    #[test]
    fn series_are_joined_by_their_tags() {
        let all = Rule { intersect: false, filtered_tags: false, aggregated_keys: true };
        check(all, &[[None, Some(0)], [None, Some(2)], [Some(1), None], [Some(0), Some(1)]]);
        check(Rule { intersect: true, ..all }, &[[Some(0), Some(1)]]);
        check(Rule { aggregated_keys: false, ..all }, &[[None, Some(0)], [Some(1), Some(2)], [Some(0), Some(1)]]);
        let filtered = Rule { filtered_tags: true, aggregated_keys: false, ..all };
        check(filtered, &[[Some(1), Some(2)], [Some(0), Some(1)]]);
    }
}
