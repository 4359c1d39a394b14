//! Our filter trees as HBase's, so that the cluster leaves out what nobody wants.

use basalt_store::{
    ColumnRange, ColumnTest, Comparator, Comparison, Error, Filter, FuzzyKey, ListOperator, Result, RowRange,
};
use bytes::Bytes;
use prost::Message;

use crate::pb::filter::{
    BinaryComparator, ByteArrayComparable, BytesFilter, ColumnCountGetFilter, ColumnPaginationFilter,
    ColumnRangeFilter, ColumnValueFilter, Comparator as ComparatorMessage, CompareFilter, ComparingFilter,
    Filter as FilterMessage, FilterList, FuzzyRowFilter, KeyOnlyFilter, MultiRowRangeFilter,
    MultipleColumnPrefixFilter, PageFilter, RegexStringComparator, RowRange as RowRangeMessage,
    SingleColumnValueExcludeFilter, SingleColumnValueFilter, SubstringComparator, TimestampsFilter, WrappingFilter,
};
use crate::pb::rpc::{BytesBytesPair, Empty};
use crate::request::comparison;

const PACKAGE: &str = "org.apache.hadoop.hbase.filter";
/// Java's `Pattern.DOTALL`, which HBase's shell and client set too.
const DOTALL: i32 = 0x20;

fn named(class: &str, message: &impl Message) -> FilterMessage {
    FilterMessage { name: format!("{PACKAGE}.{class}"), serialized_filter: Some(message.encode_to_vec().into()) }
}

/// # Errors
/// `Invalid`: a filter that HBase has no word for.
pub(crate) fn filter(tree: &Filter) -> Result<FilterMessage> {
    Ok(match tree {
        Filter::KeyOnly => named("KeyOnlyFilter", &KeyOnlyFilter { len_as_val: false }),
        Filter::FirstKeyOnly => named("FirstKeyOnlyFilter", &Empty {}),
        Filter::Prefix(prefix) => bytes("PrefixFilter", prefix),
        Filter::MultiRowRange(ranges) => {
            let row_range_list = ranges.iter().map(range).collect();
            named("MultiRowRangeFilter", &MultiRowRangeFilter { row_range_list })
        }
        Filter::FuzzyRow(keys) => {
            let fuzzy_keys_data = keys.iter().map(fuzzy).collect::<Result<_>>()?;
            named("FuzzyRowFilter", &FuzzyRowFilter { fuzzy_keys_data, is_mask_v2: Some(true) })
        }
        Filter::InclusiveStop(key) => bytes("InclusiveStopFilter", key),
        Filter::Row(how, with) => comparing("RowFilter", *how, with)?,
        Filter::Family(how, with) => comparing("FamilyFilter", *how, with)?,
        Filter::Qualifier(how, with) => comparing("QualifierFilter", *how, with)?,
        Filter::Value(how, with) => comparing("ValueFilter", *how, with)?,
        Filter::ColumnPrefix(prefix) => bytes("ColumnPrefixFilter", prefix),
        Filter::ColumnPrefixes(prefixes) => {
            let mut sorted_prefixes = prefixes.clone();
            sorted_prefixes.sort();
            named("MultipleColumnPrefixFilter", &MultipleColumnPrefixFilter { sorted_prefixes })
        }
        Filter::ColumnRange(range) => column_range(range),
        Filter::ColumnCount(count) => named("ColumnCountGetFilter", &ColumnCountGetFilter { limit: signed(*count) }),
        Filter::ColumnPage { limit, offset } => {
            let page = ColumnPaginationFilter { limit: signed(*limit), offset: Some(signed(*offset)) };
            named("ColumnPaginationFilter", &page)
        }
        Filter::ColumnValue(test) => column_value(test)?,
        Filter::SingleColumnValue { test, if_missing, latest_only, exclude } => {
            single_column(test, *if_missing, *latest_only, *exclude)?
        }
        Filter::Timestamps(times) => {
            let timestamps = times.iter().map(|time| i64::try_from(time.0).unwrap_or(i64::MAX)).collect();
            named("TimestampsFilter", &TimestampsFilter { timestamps })
        }
        Filter::Page(rows) => named("PageFilter", &PageFilter { page_size: i64::try_from(*rows).unwrap_or(i64::MAX) }),
        Filter::WhileMatch(within) => named("WhileMatchFilter", &WrappingFilter { filter: filter(within)? }),
        Filter::Skip(within) => named("SkipFilter", &WrappingFilter { filter: filter(within)? }),
        Filter::List(operator, filters) => {
            let operator = if *operator == ListOperator::All { 1 } else { 2 };
            let filters = filters.iter().map(filter).collect::<Result<_>>()?;
            named("FilterList", &FilterList { operator, filters })
        }
        other => return Err(no_word(&format!("{other:?}"))),
    })
}

/// The rows that a scan through this filter has at most, where the filter says so for the whole of it: HBase's page
/// counts each region's rows by themselves.
pub(crate) fn page(tree: &Filter) -> Option<u64> {
    match tree {
        Filter::Page(rows) => Some(*rows),
        Filter::List(ListOperator::All, filters) => filters.iter().filter_map(page).min(),
        _ => None,
    }
}

fn signed(number: u32) -> i32 {
    i32::try_from(number).unwrap_or(i32::MAX)
}

fn bytes(class: &str, bytes: &Bytes) -> FilterMessage {
    named(class, &BytesFilter { bytes: bytes.clone() })
}

fn range(range: &RowRange) -> RowRangeMessage {
    RowRangeMessage {
        start_row: Some(range.start.clone()),
        start_row_inclusive: Some(true),
        stop_row: Some(range.stop.clone()),
        stop_row_inclusive: Some(false),
    }
}

/// Servers turn masks of 0 and 1 into theirs, and take one of 255s alone for theirs already. A mask without holes must
/// come so: older servers take zeros alone for their own word for "any byte".
fn fuzzy(key: &FuzzyKey) -> Result<BytesBytesPair> {
    if key.key.len() != key.mask.len() {
        let reason = "a key and its mask differ in length".into();
        return Err(Error::InvalidArgument { what: "fuzzy row filter", reason });
    }
    let has_hole = key.mask.iter().any(|&byte| byte != 0);
    let second = if has_hole {
        key.mask.iter().map(|&byte| u8::from(byte != 0)).collect()
    } else {
        vec![0xff; key.mask.len()].into()
    };
    Ok(BytesBytesPair { first: key.key.clone(), second })
}

fn comparing(class: &str, how: Comparison, with: &Comparator) -> Result<FilterMessage> {
    let compare_filter = CompareFilter { compare_op: comparison(how), comparator: Some(comparator(with)?) };
    Ok(named(class, &ComparingFilter { compare_filter }))
}

fn column_range(range: &ColumnRange) -> FilterMessage {
    let message = ColumnRangeFilter {
        min_column: range.min.clone(),
        min_column_inclusive: Some(range.min_inclusive),
        max_column: range.max.clone(),
        max_column_inclusive: Some(range.max_inclusive),
    };
    named("ColumnRangeFilter", &message)
}

fn column_value(test: &ColumnTest) -> Result<FilterMessage> {
    let message = ColumnValueFilter {
        family: test.family.clone(),
        qualifier: test.qualifier.clone(),
        compare_op: comparison(test.comparison),
        comparator: comparator(&test.comparator)?,
    };
    Ok(named("ColumnValueFilter", &message))
}

fn single_column(test: &ColumnTest, if_missing: bool, latest_only: bool, exclude: bool) -> Result<FilterMessage> {
    let message = SingleColumnValueFilter {
        column_family: Some(test.family.clone()),
        column_qualifier: Some(test.qualifier.clone()),
        compare_op: comparison(test.comparison),
        comparator: comparator(&test.comparator)?,
        filter_if_missing: Some(if_missing),
        latest_version_only: Some(latest_only),
    };
    Ok(if exclude {
        let wrapped = SingleColumnValueExcludeFilter { single_column_value_filter: message };
        named("SingleColumnValueExcludeFilter", &wrapped)
    } else {
        named("SingleColumnValueFilter", &message)
    })
}

/// A comparator; also a condition's.
///
/// # Errors
/// `Invalid`: one that HBase has no word for.
pub(crate) fn comparator(with: &Comparator) -> Result<ComparatorMessage> {
    let comparable =
        |bytes: &Bytes| BinaryComparator { comparable: ByteArrayComparable { value: Some(bytes.clone()) } };
    let (class, message) = match with {
        Comparator::Binary(bytes) => ("BinaryComparator", comparable(bytes).encode_to_vec()),
        Comparator::BinaryPrefix(bytes) => ("BinaryPrefixComparator", comparable(bytes).encode_to_vec()),
        Comparator::Regex(regex) => {
            let pattern = regex.as_str();
            let message = RegexStringComparator {
                pattern: pattern.to_owned(),
                pattern_flags: DOTALL,
                // Latin-1 is a letter a byte.
                charset: if Comparator::is_of_bytes(pattern) { "ISO-8859-1" } else { "UTF-8" }.to_owned(),
                engine: Some("JAVA".to_owned()),
            };
            ("RegexStringComparator", message.encode_to_vec())
        }
        Comparator::Substring(text) => {
            ("SubstringComparator", SubstringComparator { substr: text.to_lowercase() }.encode_to_vec())
        }
        other => return Err(no_word(&format!("{other:?}"))),
    };
    Ok(ComparatorMessage { name: format!("{PACKAGE}.{class}"), serialized_comparator: Some(message.into()) })
}

fn no_word(what: &str) -> Error {
    Error::InvalidArgument { what: "filter", reason: format!("HBase has no word for {what}").into() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_filter_is_its_class_and_message() {
        let told = filter(&Filter::Prefix(Bytes::from_static(b"ab"))).unwrap();
        assert_eq!(told.name, "org.apache.hadoop.hbase.filter.PrefixFilter");
        assert_eq!(told.serialized_filter.unwrap(), b"\x0a\x02ab"[..]);
    }

    #[test]
    fn a_mask_without_holes_is_sent_as_servers_keep_it() {
        let of = |mask: &'static [u8]| {
            let key = FuzzyKey { key: Bytes::from_static(b"ab"), mask: Bytes::from_static(mask) };
            fuzzy(&key).map(|pair| pair.second)
        };
        assert_eq!(of(&[0, 0]).unwrap(), [0xff, 0xff][..]);
        assert_eq!(of(&[0, 1]).unwrap(), [0, 1][..]);
        assert!(of(&[0]).is_err());
    }

    #[test]
    fn a_pattern_of_bytes_is_of_a_letter_a_byte() {
        let of = |pattern: &str| {
            let regex = Comparator::Regex(regex::bytes::Regex::new(pattern).unwrap());
            let message = comparator(&regex).unwrap().serialized_comparator.unwrap();
            RegexStringComparator::decode(message).unwrap().charset
        };
        assert_eq!(of("(?s-u)^\\xff.$"), "ISO-8859-1");
        assert_eq!(of("^a"), "UTF-8");
    }

    #[test]
    fn a_page_bounds_the_whole_scan_where_every_row_must_pass_it() {
        let prefix = Filter::Prefix(Bytes::from_static(b"a"));
        let list = |operator, page| Filter::List(operator, vec![prefix.clone(), Filter::Page(page)]);
        assert_eq!(page(&list(ListOperator::All, 3)), Some(3));
        assert_eq!(page(&list(ListOperator::One, 3)), None);
        assert_eq!(page(&prefix), None);
    }
}
