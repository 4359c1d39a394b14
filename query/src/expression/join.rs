//! Joining: which series of several lists belong together, by their tags.
//!
//! *Source*: OpenTSDB 2.4 `UnionIterator`, `IntersectionIterator`.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};

use basalt_schema::Uid;

use crate::Result;
use crate::cancel::Budget;
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

/// Rows, and what they hold of the query memory until it is given back.
#[derive(Debug)]
pub(crate) struct Joined {
    pub(crate) rows: Vec<Row>,
    pub(crate) bytes: u64,
}

/// Series looked at before the budget is asked whether to go on.
const SERIES_AT_ONCE: usize = 1_024;

/// Joins the columns. Where two series of one column have the same tags, the later is taken.
///
/// # Errors
/// A budget.
pub(crate) fn join(columns: &[Column<'_>], rule: Rule, budget: &Budget) -> Result<Joined> {
    let mut rows: BTreeMap<Vec<Uid>, Row> = BTreeMap::new();
    let mut bytes = 0;
    for (place, column) in columns.iter().enumerate() {
        for (index, series) in column.series.iter().enumerate() {
            if index % SERIES_AT_ONCE == 0 {
                budget.check()?;
            }
            let row = match rows.entry(key(series, column, rule)) {
                Entry::Occupied(row) => row.into_mut(),
                Entry::Vacant(free) => {
                    let took = row_bytes(columns.len(), free.key().len());
                    budget.reserve(took)?;
                    bytes += took;
                    free.insert(vec![None; columns.len()])
                }
            };
            if let Some(member) = row.get_mut(place) {
                *member = Some(index);
            }
        }
    }
    if rule.intersect {
        rows.retain(|_, row| row.iter().all(Option::is_some));
    }
    Ok(Joined { rows: rows.into_values().collect(), bytes })
}

/// What a row takes: itself twice, as the map's and as the list's, its members and its key.
fn row_bytes(columns: usize, uids: usize) -> u64 {
    let entry = 2 * size_of::<Row>() + size_of::<Vec<Uid>>();
    (entry + columns * size_of::<Option<usize>>() + uids * size_of::<Uid>()) as u64
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
    use crate::memory::MemoryPool;
    use crate::{Cancel, Error, Limits};

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

    fn budget(memory_bytes: u64) -> Budget {
        Budget::new(Limits::default(), &Cancel::new(), &MemoryPool::new(memory_bytes))
    }

    fn check(rule: Rule, expected: &[[Option<usize>; 2]]) {
        let left = [series(&[(1, 2), (2, 9)], &[]), series(&[(1, 1), (2, 9)], &[3])];
        let right = [series(&[(1, 1), (2, 8)], &[]), series(&[(1, 2), (2, 9)], &[]), series(&[(1, 1), (2, 9)], &[])];
        let host = BTreeSet::from([uid(1)]);
        let column = |series| Column { series, filtered: Some(&host), fill: 0.0 };
        let joined = join(&[column(&left), column(&right)], rule, &budget(0)).unwrap();
        assert_eq!(joined.rows, expected.iter().map(|row| row.to_vec()).collect::<Vec<_>>(), "{rule:?}");
    }

    /// Rows are as wide as there are variables, however few of them have a series of those tags.
    #[test]
    fn rows_count_as_memory_of_the_query() {
        let many: Vec<Dataset> = (1..=1_000).map(|host| series(&[(1, host)], &[])).collect();
        let other = [series(&[(2, 1)], &[])];
        let columns: Vec<Column<'_>> = (0..256)
            .map(|at| Column { series: if at == 0 { &many } else { &other }, filtered: None, fill: 0.0 })
            .collect();
        let rule = Rule { intersect: true, filtered_tags: false, aggregated_keys: true };
        let refused = join(&columns, rule, &budget(4_000_000)).unwrap_err();
        assert!(matches!(refused, Error::TooMuchMemory { .. }), "{refused}");
        let enough = budget(5_000_000);
        let joined = join(&columns, rule, &enough).unwrap();
        assert!(joined.rows.is_empty() && joined.bytes > 1_001 * 256 * 16);
        assert_eq!(enough.reserved(), joined.bytes);
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
