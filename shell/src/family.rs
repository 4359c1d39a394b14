//! A column family's settings: as they are typed, and as `describe` shows them.

use std::borrow::Cow;
use std::fmt::Write as _;

use basalt_store::{BLOCK_ENCODINGS, BloomFilter, Compression, FamilyDescriptor, KeepDeletedCells};

use super::binary::string_binary;
use super::error::{Error, Result};
use super::value::{Data, Pair, Value};

/// The block encoding of rows of points. A store that does not know it keeps the name and lays blocks out row by row.
const COLUMNS: &str = "TSB1";

/// What a family can be told.
pub(crate) const SETTINGS: &str = "VERSIONS, MIN_VERSIONS, TTL, KEEP_DELETED_CELLS, BLOOMFILTER, COMPRESSION, \
                                   DATA_BLOCK_ENCODING, BLOCKSIZE, IN_MEMORY, BLOCKCACHE, NEW_VERSION_BEHAVIOR";

/// Makes one setting of a family what `pair` says.
///
/// # Errors
///
/// A setting that there is not, that this store does not have, or a value it cannot have.
pub(crate) fn set(family: &mut FamilyDescriptor, pair: &Pair) -> Result<()> {
    let value = &pair.value;
    match pair.name.as_str() {
        "VERSIONS" => family.versions = count(value, "VERSIONS", 1)?,
        "MIN_VERSIONS" => family.min_versions = count(value, "MIN_VERSIONS", 0)?,
        "TTL" => family.ttl_seconds = ttl(value)?,
        "KEEP_DELETED_CELLS" => family.keep_deleted = keep_deleted(value)?,
        "BLOOMFILTER" => {
            family.bloom = BloomFilter::named(&word(value, "BLOOMFILTER")?)
                .ok_or_else(|| value.not("BLOOMFILTER", "NONE, ROW or ROWCOL"))?;
        }
        "COMPRESSION" => {
            family.compression = Compression::named(&word(value, "COMPRESSION")?).ok_or_else(|| {
                value.not("COMPRESSION", "NONE, ZSTD, or another of HBase's names, which is stored by ZSTD")
            })?;
        }
        "DATA_BLOCK_ENCODING" => match word(value, "DATA_BLOCK_ENCODING")?.as_str() {
            name if BLOCK_ENCODINGS.contains(&name) || name == COLUMNS || *name == *family.block_encoding => {
                family.block_encoding = name.into();
            }
            _ => {
                return Err(
                    value.not("DATA_BLOCK_ENCODING", "one of NONE, PREFIX, DIFF, FAST_DIFF, ROW_INDEX_V1 and TSB1")
                );
            }
        },
        "BLOCKSIZE" => family.block_bytes = block_bytes(value)?,
        "IN_MEMORY" => family.in_memory = value.boolean("IN_MEMORY")?,
        "BLOCKCACHE" => family.block_cache = value.boolean("BLOCKCACHE")?,
        "NEW_VERSION_BEHAVIOR" => family.new_version_behavior = value.boolean("NEW_VERSION_BEHAVIOR")?,
        // What HBase's `describe` prints is taken where it says what is so here anyway.
        "REPLICATION_SCOPE" if amount(value) == Some(0) => {}
        name => {
            return Err(Error::wrong(pair.at, format!("{name} is no setting of a family here; there are: {SETTINGS}")));
        }
    }
    Ok(())
}

/// A family as `describe` shows it.
pub(crate) fn described(family: &FamilyDescriptor) -> String {
    let mut text = format!("{{NAME => '{}'", string_binary(&family.name));
    for (name, value) in settings(family) {
        write!(text, ", {name} => '{value}'").unwrap_or_default();
    }
    text.push('}');
    text
}

/// A family's settings in the order in which `describe` shows them.
pub(crate) fn settings(family: &FamilyDescriptor) -> Vec<(&'static str, Cow<'_, str>)> {
    let mut settings = vec![
        ("VERSIONS", family.versions.to_string().into()),
        ("KEEP_DELETED_CELLS", family.keep_deleted.name().into()),
        ("DATA_BLOCK_ENCODING", (&*family.block_encoding).into()),
        ("TTL", family.ttl_seconds.map_or("FOREVER".into(), |seconds| span(seconds).into())),
        ("MIN_VERSIONS", family.min_versions.to_string().into()),
        ("BLOOMFILTER", family.bloom.name().into()),
        ("IN_MEMORY", family.in_memory.to_string().into()),
        ("COMPRESSION", family.compression.name().into()),
        ("BLOCKSIZE", size(family.block_bytes).into()),
    ];
    // Shown where they are not what they are by default.
    if !family.block_cache {
        settings.push(("BLOCKCACHE", "false".into()));
    }
    if family.new_version_behavior {
        settings.push(("NEW_VERSION_BEHAVIOR", "true".into()));
    }
    if let Some(fold) = &family.fold {
        settings.push(("FOLD", (&**fold).into()));
    }
    settings
}

/// Seconds as HBase prints them: `86400 SECONDS (1 DAY)`.
fn span(seconds: u64) -> String {
    let many = |count: u64, unit: &str| format!("{count} {unit}{}", if count == 1 { "" } else { "S" });
    if seconds < 60 {
        return many(seconds, "SECOND");
    }
    let parts = [
        (seconds / 86_400, "DAY"),
        (seconds / 3_600 % 24, "HOUR"),
        (seconds / 60 % 60, "MINUTE"),
        (seconds % 60, "SECOND"),
    ];
    let parts: Vec<_> = parts.iter().filter(|(count, _)| *count > 0).map(|(count, unit)| many(*count, unit)).collect();
    format!("{seconds} SECONDS ({})", parts.join(" "))
}

/// Bytes as HBase prints them: `65536 B (64KB)`.
fn size(bytes: u32) -> String {
    let parts = [(bytes >> 30, "GB"), (bytes >> 20 & 1023, "MB"), (bytes >> 10 & 1023, "KB"), (bytes & 1023, "B")];
    let parts: Vec<_> =
        parts.iter().filter(|(count, _)| *count > 0).map(|(count, unit)| format!("{count}{unit}")).collect();
    if bytes < 1024 { format!("{bytes} B") } else { format!("{bytes} B ({})", parts.join(" ")) }
}

/// A number, or the digits of one, as `describe` prints it.
fn amount(value: &Value) -> Option<i64> {
    match &value.data {
        Data::Integer(number) => Some(*number),
        Data::Text(text) => std::str::from_utf8(text).ok()?.trim().parse().ok(),
        _ => None,
    }
}

fn count(value: &Value, what: &str, least: i64) -> Result<u32> {
    let number = amount(value).ok_or_else(|| value.not(what, "a whole number"))?;
    Value { at: value.at, data: Data::Integer(number) }.number(what, least)
}

/// Numbers with units, summed: `1 DAY 6 HOURS`, `64KB`; what stands in brackets says the same again.
fn measured(text: &str, units: &[(&str, u64)], plain: u64) -> Option<u64> {
    let mut rest = text.split('(').next().unwrap_or_default().trim();
    let mut sum = 0_u64;
    while !rest.is_empty() {
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        let (number, after) = rest.split_at_checked(digits)?;
        let after = after.trim_start();
        let letters = after.bytes().take_while(u8::is_ascii_alphabetic).count();
        let (unit, after) = after.split_at_checked(letters)?;
        let factor = match unit {
            "" => plain,
            _ => units.iter().find(|(name, _)| unit.eq_ignore_ascii_case(name))?.1,
        };
        sum = sum.checked_add(number.parse::<u64>().ok()?.checked_mul(factor)?)?;
        rest = after.trim_start();
    }
    Some(sum)
}

/// Seconds; `FOREVER` and HBase's largest number are none.
fn ttl(value: &Value) -> Result<Option<u64>> {
    const UNITS: [(&str, u64); 8] = [
        ("SECOND", 1),
        ("SECONDS", 1),
        ("MINUTE", 60),
        ("MINUTES", 60),
        ("HOUR", 3_600),
        ("HOURS", 3_600),
        ("DAY", 86_400),
        ("DAYS", 86_400),
    ];
    let wrong = || value.not("TTL", "seconds, such as 86400 or '1 DAY', or FOREVER");
    let seconds = match &value.data {
        Data::Integer(number) => u64::try_from(*number).map_err(|_| wrong())?,
        Data::Text(text) if text.eq_ignore_ascii_case(b"forever") => return Ok(None),
        Data::Text(_) => measured(&value.text("TTL")?, &UNITS, 1).ok_or_else(wrong)?,
        _ => return Err(wrong()),
    };
    if seconds == 0 {
        return Err(wrong());
    }
    Ok((seconds != u64::from(i32::MAX.unsigned_abs())).then_some(seconds))
}

fn block_bytes(value: &Value) -> Result<u32> {
    const UNITS: [(&str, u64); 3] = [("B", 1), ("KB", 1 << 10), ("MB", 1 << 20)];
    let wrong = || value.not("BLOCKSIZE", "bytes, such as 65536 or '64KB'");
    let bytes = match &value.data {
        Data::Integer(number) => u64::try_from(*number).ok(),
        Data::Text(_) => measured(&value.text("BLOCKSIZE")?, &UNITS, 1),
        _ => None,
    };
    bytes.filter(|bytes| *bytes > 0).and_then(|bytes| u32::try_from(bytes).ok()).ok_or_else(wrong)
}

fn keep_deleted(value: &Value) -> Result<KeepDeletedCells> {
    KeepDeletedCells::named(&word(value, "KEEP_DELETED_CELLS")?)
        .ok_or_else(|| value.not("KEEP_DELETED_CELLS", "FALSE, TRUE or TTL"))
}

/// A constant in capitals, however it was typed.
fn word(value: &Value, what: &str) -> Result<String> {
    match &value.data {
        Data::Bool(told) => Ok(told.to_string().to_uppercase()),
        _ => Ok(value.text(what)?.to_uppercase()),
    }
}

#[cfg(test)]
mod tests {
    use super::super::error::Place;
    use super::*;

    const AT: Place = Place { line: 1, column: 1 };

    fn text(text: &'static str) -> Data {
        Data::Text(text.into())
    }

    fn set_to(name: &str, data: Data) -> Result<FamilyDescriptor> {
        let mut family = FamilyDescriptor::new("f");
        set(&mut family, &Pair { at: AT, name: name.to_owned(), value: Value { at: AT, data } })?;
        Ok(family)
    }

    #[test]
    fn described_settings_can_be_typed_again() {
        let mut family = FamilyDescriptor::new("f").with_versions(5).with_ttl(90_061);
        family.keep_deleted = KeepDeletedCells::Ttl;
        family.bloom = BloomFilter::RowColumn;
        family.compression = Compression::None;
        family.in_memory = true;
        family.min_versions = 2;
        family.block_bytes = 70_000;
        family.block_encoding = "TSB1".into();
        family.block_cache = false;
        family.new_version_behavior = true;
        let mut again = FamilyDescriptor::new("f");
        for (name, value) in settings(&family) {
            let data = Data::Text(value.into_owned().into());
            set(&mut again, &Pair { at: AT, name: name.to_owned(), value: Value { at: AT, data } }).unwrap();
        }
        assert_eq!(again, family);
    }

    #[test]
    fn spans_and_sizes_read_as_hbase_prints_them() {
        assert_eq!(span(1), "1 SECOND");
        assert_eq!(span(86_400), "86400 SECONDS (1 DAY)");
        assert_eq!(span(90_061), "90061 SECONDS (1 DAY 1 HOUR 1 MINUTE 1 SECOND)");
        assert_eq!(size(65_536), "65536 B (64KB)");
        assert_eq!(size(512), "512 B");
        assert_eq!(set_to("TTL", text("1 day 2 HOURS")).unwrap().ttl_seconds, Some(93_600));
        assert_eq!(set_to("TTL", Data::Integer(2_147_483_647)).unwrap().ttl_seconds, None);
        assert_eq!(set_to("BLOCKSIZE", text("64KB")).unwrap().block_bytes, 65_536);
    }

    #[test]
    fn wrong_values_are_told() {
        for (name, data) in [
            ("TTL", text("1 FORTNIGHT")),
            ("TTL", Data::Integer(0)),
            ("TTL", text("99999999999999999999 DAYS")),
            ("VERSIONS", text("many")),
            ("VERSIONS", Data::Integer(0)),
            ("COMPRESSION", text("RAR")),
            ("BLOOMFILTER", text("ROWPREFIX_FIXED_LENGTH")),
            ("DATA_BLOCK_ENCODING", text("HUFFMAN")),
            ("BLOCKCACHE", text("maybe")),
            ("NEW_VERSION_BEHAVIOR", Data::Integer(1)),
            ("BLOCKSIZE", Data::Integer(-1)),
            ("IN_MEMORY", Data::Integer(1)),
            ("MOB_THRESHOLD", Data::Integer(1)),
        ] {
            let refused = set_to(name, data).unwrap_err().to_string();
            assert!(refused.contains(name), "{refused}");
        }
    }
}
