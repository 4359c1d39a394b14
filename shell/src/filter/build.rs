//! From a filter's name and arguments to the filter, as HBase's `ParseFilter` reads them.

use basalt_store::{ColumnRange, ColumnTest, Comparator, Comparison, Filter, Timestamp};
use bytes::Bytes;

use super::Argument;

/// Memory of a regular expression.
const REGEX_BYTES_MAX: usize = 1 << 20;

/// Every filter's name and how it is called.
const CALLS: &[(&str, &str)] = &[
    ("KeyOnlyFilter", ""),
    ("FirstKeyOnlyFilter", ""),
    ("PrefixFilter", "'row'"),
    ("InclusiveStopFilter", "'row'"),
    ("RowFilter", "=, 'binary:row'"),
    ("FamilyFilter", "=, 'binary:family'"),
    ("QualifierFilter", "=, 'binary:qualifier'"),
    ("ValueFilter", "=, 'binary:value'"),
    ("ColumnPrefixFilter", "'qualifier'"),
    ("MultipleColumnPrefixFilter", "'qualifier', 'other'"),
    ("ColumnRangeFilter", "'first', true, 'last', false"),
    ("ColumnCountGetFilter", "10"),
    ("ColumnPaginationFilter", "10, 0"),
    ("ColumnValueFilter", "'family', 'qualifier', =, 'binary:value'"),
    ("SingleColumnValueFilter", "'family', 'qualifier', =, 'binary:value' [, true, true]"),
    ("SingleColumnValueExcludeFilter", "'family', 'qualifier', =, 'binary:value' [, true, true]"),
    ("TimestampsFilter", "1, 2, 3"),
    ("PageFilter", "10"),
];

/// The filter of this name.
///
/// # Errors
/// What is wrong with the name or the arguments.
pub(super) fn filter(name: &str, arguments: &[Argument]) -> Result<Filter, String> {
    let &(_, call) = CALLS.iter().find(|(known, _)| *known == name).ok_or_else(|| {
        let known: Vec<_> = CALLS.iter().map(|(name, _)| *name).collect();
        format!("{name} is not supported; there are: {}", known.join(", "))
    })?;
    let takes = || match call {
        "" => format!("{name} takes no argument"),
        call => format!("{name} is called as in {name}({call})"),
    };
    let filter = match name {
        "RowFilter" | "FamilyFilter" | "QualifierFilter" | "ValueFilter" => compared(name, arguments)?,
        "ColumnValueFilter" | "SingleColumnValueFilter" | "SingleColumnValueExcludeFilter" => {
            by_column(name, arguments)?
        }
        _ => plain(name, arguments),
    };
    filter.ok_or_else(takes)
}

/// Filters without a comparison; `None` where the arguments do not fit.
fn plain(name: &str, arguments: &[Argument]) -> Option<Filter> {
    Some(match (name, arguments) {
        ("KeyOnlyFilter", []) => Filter::KeyOnly,
        ("FirstKeyOnlyFilter", []) => Filter::FirstKeyOnly,
        ("PrefixFilter", [row]) => Filter::Prefix(row.text()?),
        ("InclusiveStopFilter", [row]) => Filter::InclusiveStop(row.text()?),
        ("ColumnPrefixFilter", [prefix]) => Filter::ColumnPrefix(prefix.text()?),
        ("MultipleColumnPrefixFilter", [_, ..]) => {
            Filter::ColumnPrefixes(arguments.iter().map(Argument::text).collect::<Option<_>>()?)
        }
        ("ColumnRangeFilter", [min, min_inclusive, max, max_inclusive]) => Filter::ColumnRange(ColumnRange {
            min: Some(min.text()?),
            min_inclusive: min_inclusive.truth()?,
            max: Some(max.text()?),
            max_inclusive: max_inclusive.truth()?,
        }),
        ("ColumnCountGetFilter", [limit]) => Filter::ColumnCount(limit.number()?),
        ("ColumnPaginationFilter", [limit, offset]) => {
            Filter::ColumnPage { limit: limit.number()?, offset: offset.number()? }
        }
        ("TimestampsFilter", [_, ..]) => {
            let times = arguments.iter().map(|time| time.number().map(Timestamp));
            Filter::Timestamps(times.collect::<Option<_>>()?)
        }
        ("PageFilter", [size]) => Filter::Page(size.number()?),
        _ => return None,
    })
}

fn compared(name: &str, arguments: &[Argument]) -> Result<Option<Filter>, String> {
    let [comparison, comparator] = arguments else { return Ok(None) };
    let kind = match name {
        "RowFilter" => Filter::Row,
        "FamilyFilter" => Filter::Family,
        "QualifierFilter" => Filter::Qualifier,
        _ => Filter::Value,
    };
    test(comparison, comparator).map(|test| test.map(|(comparison, comparator)| kind(comparison, comparator)))
}

fn by_column(name: &str, arguments: &[Argument]) -> Result<Option<Filter>, String> {
    let [family, qualifier, comparison, comparator, switches @ ..] = arguments else { return Ok(None) };
    let (Some(family), Some(qualifier)) = (family.text(), qualifier.text()) else { return Ok(None) };
    let Some((comparison, comparator)) = test(comparison, comparator)? else { return Ok(None) };
    let test = ColumnTest { family, qualifier, comparison, comparator };
    let switches = match switches {
        [] => Some((false, true)),
        [if_missing, latest_only] => if_missing.truth().zip(latest_only.truth()),
        _ => None,
    };
    Ok(match (name, arguments.len(), switches) {
        ("ColumnValueFilter", 4, _) => Some(Filter::ColumnValue(test)),
        ("ColumnValueFilter", ..) | (_, _, None) => None,
        (_, _, Some((if_missing, latest_only))) => Some(Filter::SingleColumnValue {
            test,
            if_missing,
            latest_only,
            exclude: name == "SingleColumnValueExcludeFilter",
        }),
    })
}

/// A comparison and a comparator; `None` where the arguments do not fit.
fn test(comparison: &Argument, comparator: &Argument) -> Result<Option<(Comparison, Comparator)>, String> {
    let (Argument::Word(sign), Argument::Text(text)) = (comparison, comparator) else { return Ok(None) };
    let comparison = match sign.as_str() {
        "<" => Comparison::Less,
        "<=" => Comparison::LessOrEqual,
        "=" => Comparison::Equal,
        "!=" => Comparison::NotEqual,
        ">=" => Comparison::GreaterOrEqual,
        ">" => Comparison::Greater,
        other => return Err(format!("`{other}` is no comparison; there are < <= = != >= >")),
    };
    let wrong = || "a comparator is 'binary:', 'binaryprefix:', 'regexstring:' or 'substring:' and a text".to_owned();
    let colon = text.iter().position(|byte| *byte == b':').ok_or_else(wrong)?;
    let (kind, operand) = text.split_at_checked(colon).ok_or_else(wrong)?;
    let operand = operand.get(1..).unwrap_or_default();
    let bytes = || Bytes::copy_from_slice(operand);
    let comparator = match kind {
        b"binary" => Comparator::Binary(bytes()),
        b"binaryprefix" => Comparator::BinaryPrefix(bytes()),
        b"regexstring" | b"substring" if !matches!(comparison, Comparison::Equal | Comparison::NotEqual) => {
            return Err(format!("'{}:…' is found or not: it takes = or !=", String::from_utf8_lossy(kind)));
        }
        b"regexstring" => Comparator::Regex(regex(utf8(operand)?)?),
        b"substring" => Comparator::Substring(utf8(operand)?.to_owned()),
        _ => return Err(wrong()),
    };
    Ok(Some((comparison, comparator)))
}

fn utf8(operand: &[u8]) -> Result<&str, String> {
    std::str::from_utf8(operand).map_err(|_| "the comparator's text is not UTF-8".to_owned())
}

fn regex(pattern: &str) -> Result<regex::bytes::Regex, String> {
    // `.` is every letter, as HBase's shell has it (`Pattern.DOTALL`).
    regex::bytes::RegexBuilder::new(pattern).dot_matches_new_line(true).size_limit(REGEX_BYTES_MAX).build().map_err(
        |cause| {
            let cause = cause.to_string();
            format!("wrong regular expression: {}", cause.lines().last().unwrap_or_default())
        },
    )
}

impl Argument {
    fn text(&self) -> Option<Bytes> {
        match self {
            Self::Text(text) => Some(Bytes::copy_from_slice(text)),
            Self::Word(_) => None,
        }
    }

    fn number<N: std::str::FromStr>(&self) -> Option<N> {
        match self {
            Self::Word(word) => word.parse().ok(),
            Self::Text(_) => None,
        }
    }

    fn truth(&self) -> Option<bool> {
        match self {
            Self::Word(word) => word.to_ascii_lowercase().parse().ok(),
            Self::Text(_) => None,
        }
    }
}
