//! A table's design as a file: TOML, alone or in the `#:` comments of a script for the shell.

use basalt_store::advise::{Access, Design, FamilyPlan, KeyField, Kind};
use bytes::Bytes;
use serde::Deserialize;

/// The design of OpenTSDB's data table.
pub(crate) const EXAMPLE: &str = include_str!("advise/opentsdb.toml");

/// What begins a line of a script that is the shell's comment and a line of a design.
pub(crate) const SCRIPT_MARK: &str = "#:";

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct DesignText {
    #[serde(default)]
    table: String,
    #[serde(default)]
    key: Vec<KeyText>,
    #[serde(default)]
    family: Vec<FamilyText>,
    #[serde(default)]
    access: Vec<AccessText>,
    #[serde(default)]
    splits: Vec<String>,
    #[serde(default)]
    rows: Vec<Vec<String>>,
    writes_per_second: Option<u64>,
    regions: Option<u64>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct KeyText {
    name: String,
    kind: String,
    bytes: Option<u32>,
    #[serde(default)]
    of: Vec<String>,
    buckets: Option<u32>,
    step: Option<u64>,
    values: Option<u64>,
    top_percent: Option<u32>,
    delimiter: Option<String>,
    pad: Option<String>,
    #[serde(default)]
    hex: bool,
    #[serde(default)]
    newest_first: bool,
    #[serde(default)]
    reversed: bool,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct FamilyText {
    name: String,
    versions: Option<u32>,
    min_versions: Option<u32>,
    ttl_seconds: Option<u64>,
    block_bytes: Option<u32>,
    #[serde(default)]
    explicit_times: bool,
    columns: Option<u64>,
    #[serde(default)]
    qualifiers: Vec<String>,
    qualifier_bytes: Option<u64>,
    #[serde(default)]
    value_bytes: Vec<u64>,
    rows: Option<u64>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct AccessText {
    name: String,
    #[serde(default)]
    equals: Vec<String>,
    range: Option<String>,
    #[serde(default)]
    newest_first: bool,
    #[serde(default)]
    families: Vec<String>,
    weight: Option<u64>,
}

/// Reads a design.
///
/// # Errors
///
/// What is wrong and where, without the file's name.
pub(crate) fn read(text: &str) -> Result<Design, String> {
    let of_script = text.lines().any(|line| line.starts_with(SCRIPT_MARK)).then(|| {
        // The other lines stay as empty ones, so that faults are told by the script's lines.
        text.lines().map(|line| line.strip_prefix(SCRIPT_MARK).unwrap_or_default()).collect::<Vec<_>>().join("\n")
    });
    let text = of_script.as_deref().unwrap_or(text);
    let told: DesignText = toml::from_str(text).map_err(|cause| crate::config::one_line(text, &cause))?;
    if told.key.is_empty() {
        return Err("there is no [[key]]: a design begins with the row key's fields".to_owned());
    }
    let plain_count = told.key.iter().filter(|key| !matches!(key.kind.as_str(), "hash" | "bucket" | "random")).count();
    if let Some(row) = told.rows.iter().find(|row| row.len() != plain_count) {
        return Err(format!("a row of `rows` has {} values, and {plain_count} fields of the key take one", row.len()));
    }
    let mut splits = told.splits.iter().map(|key| bytes(key)).collect::<Result<Vec<_>, _>>()?;
    splits.sort();
    Ok(Design {
        table: told.table,
        fields: told.key.into_iter().map(field).collect::<Result<_, _>>()?,
        families: told.family.into_iter().map(family).collect(),
        accesses: told.access.into_iter().map(access).collect(),
        splits,
        rows: told.rows,
        writes_per_second: told.writes_per_second,
        regions: told.regions,
    })
}

fn field(told: KeyText) -> Result<KeyField, String> {
    let name = told.name;
    let kind = Kind::named(&told.kind).ok_or_else(|| {
        let known: Vec<&str> = Kind::ALL.iter().map(|(name, _)| *name).collect();
        format!("`{name}` has the kind `{}`; there are: {}", told.kind, known.join(", "))
    })?;
    if matches!(kind, Kind::Hash | Kind::Bucket) && told.of.is_empty() {
        return Err(format!("`{name}` needs `of`, the fields that it is made of"));
    }
    if (kind == Kind::Bucket && told.buckets.is_none()) || told.buckets == Some(0) {
        return Err(format!("`{name}` needs `buckets`, a number above 0"));
    }
    let one = |what: &str, text: Option<String>| {
        let Some(text) = text else { return Ok(None) };
        match bytes(&text)?.as_ref() {
            [byte] => Ok(Some(*byte)),
            _ => Err(format!("{what} of `{name}` is one byte, such as \"_\" or \"\\\\x00\"")),
        }
    };
    let (delimiter, pad) = (one("delimiter", told.delimiter)?, one("pad", told.pad)?);
    Ok(KeyField {
        name,
        kind,
        bytes: told.bytes,
        of: told.of,
        buckets: told.buckets,
        step: told.step,
        values: told.values,
        top_percent: told.top_percent,
        delimiter,
        pad,
        hex: told.hex,
        newest_first: told.newest_first,
        reversed: told.reversed,
    })
}

fn family(told: FamilyText) -> FamilyPlan {
    let plan = FamilyPlan::new(told.name);
    FamilyPlan {
        versions: told.versions.unwrap_or(plan.versions),
        min_versions: told.min_versions.unwrap_or_default(),
        ttl_seconds: told.ttl_seconds,
        block_bytes: told.block_bytes.unwrap_or(plan.block_bytes),
        explicit_times: told.explicit_times,
        columns: told.columns,
        qualifiers: told.qualifiers,
        qualifier_bytes: told.qualifier_bytes,
        value_bytes: told.value_bytes,
        rows: told.rows,
        ..plan
    }
}

fn access(told: AccessText) -> Access {
    Access {
        name: told.name,
        equals: told.equals,
        range: told.range,
        newest_first: told.newest_first,
        families: told.families,
        weight: told.weight.unwrap_or(1),
    }
}

/// Text with `\xHH` for bytes, as the shell has it.
fn bytes(text: &str) -> Result<Bytes, String> {
    let mut out = Vec::new();
    let mut rest = text.as_bytes();
    while let Some((first, more)) = rest.split_first() {
        let digit = |at: usize| more.get(at).and_then(|byte| char::from(*byte).to_digit(16));
        if *first == b'\\' && more.first() == Some(&b'x') {
            let value = digit(1).zip(digit(2)).and_then(|(high, low)| u8::try_from(high << 4 | low).ok());
            out.push(value.ok_or_else(|| format!("`{text}`: two hexadecimal digits come after \\x"))?);
            rest = more.get(3..).unwrap_or_default();
        } else {
            out.push(*first);
            rest = more;
        }
    }
    Ok(out.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_wrong_in_a_design_is_told_by_its_name_or_line() {
        let key = "[[key]]\nname = 'a'\nkind = ";
        for (text, expected) in [
            (String::new(), "there is no [[key]]"),
            (format!("{key}'txt'"), "there are: text, digits"),
            (format!("{key}'hash'"), "needs `of`"),
            (format!("{key}'bucket'\nof = ['b']"), "needs `buckets`"),
            (format!("{key}'text'\ndelimiter = 'ab'"), "delimiter of `a` is one byte"),
            (format!("{key}'text'\npad = '\\x0'"), "two hexadecimal digits"),
            (format!("{key}'text'\nsize = 1"), "line 4: unknown field `size`"),
            (format!("rows = [['x', 'y']]\n{key}'text'"), "has 2 values, and 1 fields"),
            (format!("list\n#: {}'text'\n#:oops", key.replace('\n', "\n#:")), "line 5: "),
        ] {
            let said = read(&text).unwrap_err();
            assert!(said.contains(expected), "{text}: {said}");
        }
    }

    #[test]
    fn bytes_are_written_as_in_the_shell() {
        assert_eq!(bytes("a\\x00\\xfFb\\").unwrap(), &b"a\0\xffb\\"[..]);
    }
}
