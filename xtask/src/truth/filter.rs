//! Filter trees as bytes; `Filters.java` reads them.

use basalt_store::{ColumnTest, Comparator, Comparison, Error, Filter, ListOperator, Result};

use super::wire::Ask;

/// # Errors
/// `Invalid`: a filter that the driver has no word for.
pub(super) fn filter(ask: Ask, tree: &Filter) -> Result<Ask> {
    let bytes = |ask: Ask, bytes: &bytes::Bytes| ask.bytes(bytes);
    Ok(match tree {
        Filter::KeyOnly => ask.u8(0),
        Filter::FirstKeyOnly => ask.u8(1),
        Filter::Prefix(prefix) => ask.u8(2).bytes(prefix),
        Filter::MultiRowRange(ranges) => {
            ask.u8(3).list(ranges.iter(), |ask, range| ask.bytes(&range.start).bytes(&range.stop))
        }
        Filter::FuzzyRow(keys) => ask.u8(4).list(keys.iter(), |ask, fuzzy| ask.bytes(&fuzzy.key).bytes(&fuzzy.mask)),
        Filter::InclusiveStop(key) => ask.u8(5).bytes(key),
        Filter::Row(comparison, with) => comparator(ask.u8(6).u8(code(*comparison)), with)?,
        Filter::Family(comparison, with) => comparator(ask.u8(7).u8(code(*comparison)), with)?,
        Filter::Qualifier(comparison, with) => comparator(ask.u8(8).u8(code(*comparison)), with)?,
        Filter::Value(comparison, with) => comparator(ask.u8(9).u8(code(*comparison)), with)?,
        Filter::ColumnPrefix(prefix) => ask.u8(10).bytes(prefix),
        Filter::ColumnPrefixes(prefixes) => ask.u8(11).list(prefixes.iter(), bytes),
        Filter::ColumnRange(range) => ask
            .u8(12)
            .option(range.min.as_ref(), bytes)
            .flag(range.min_inclusive)
            .option(range.max.as_ref(), bytes)
            .flag(range.max_inclusive),
        Filter::ColumnCount(count) => ask.u8(13).u32(*count),
        Filter::ColumnPage { limit, offset } => ask.u8(14).u32(*limit).u32(*offset),
        Filter::ColumnValue(test) => column(ask.u8(15), test)?,
        Filter::SingleColumnValue { test, if_missing, latest_only, exclude } => {
            column(ask.u8(16), test)?.flag(*if_missing).flag(*latest_only).flag(*exclude)
        }
        Filter::Timestamps(times) => ask.u8(17).list(times.iter(), |ask, time| ask.u64(time.0)),
        Filter::Page(rows) => ask.u8(18).u64(*rows),
        Filter::WhileMatch(within) => filter(ask.u8(19), within)?,
        Filter::Skip(within) => filter(ask.u8(20), within)?,
        Filter::List(operator, list) => {
            let ask = ask.u8(21).u8(u8::from(*operator == ListOperator::One)).count(list.len());
            list.iter().try_fold(ask, filter)?
        }
        other => return Err(unknown(&format!("{other:?}"))),
    })
}

/// A comparison's place in `Cells.OPERATORS`.
pub(super) fn code(comparison: Comparison) -> u8 {
    match comparison {
        Comparison::Less => 0,
        Comparison::LessOrEqual => 1,
        Comparison::Equal => 2,
        Comparison::NotEqual => 3,
        Comparison::GreaterOrEqual => 4,
        Comparison::Greater => 5,
    }
}

fn column(ask: Ask, test: &ColumnTest) -> Result<Ask> {
    comparator(ask.bytes(&test.family).bytes(&test.qualifier).u8(code(test.comparison)), &test.comparator)
}

fn comparator(ask: Ask, comparator: &Comparator) -> Result<Ask> {
    Ok(match comparator {
        Comparator::Binary(bytes) => ask.u8(0).bytes(bytes),
        Comparator::BinaryPrefix(bytes) => ask.u8(1).bytes(bytes),
        Comparator::Regex(regex) => ask.u8(2).bytes(regex.as_str()),
        Comparator::Substring(text) => ask.u8(3).bytes(text),
        other => return Err(unknown(&format!("{other:?}"))),
    })
}

fn unknown(what: &str) -> Error {
    Error::InvalidArgument { what: "filter", reason: format!("the driver has no word for {what}").into() }
}
