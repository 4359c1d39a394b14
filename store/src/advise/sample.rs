//! What a sample of rows tells: lengths of keys, collisions, bytes that break a field's end.

use std::collections::BTreeMap;

use super::Findings;
use super::design::{Design, KeyField, Kind};

/// Bytes of a hash, and of a number that stands for a name.
const HASH_BYTES: u64 = 16;
const NUMBER_BYTES: u64 = 8;
/// A number that is longer than this as digits is shorter as a number.
const DIGITS_MAX: usize = 8;

/// Lengths of the sample's keys in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyBytes {
    /// The shortest.
    pub shortest: u64,
    /// The one in the middle.
    pub median: u64,
    /// The longest.
    pub longest: u64,
    /// Each one with a hash of 16 bytes in place of each name.
    pub hashed: u64,
    /// Each one with a number of 8 bytes in place of each name.
    pub numbered: u64,
}

/// Judges the sample, and tells how long its keys are (`S-KEY-12`).
pub(super) fn judge(design: &Design, findings: &mut Findings) -> Option<KeyBytes> {
    let plain: Vec<&KeyField> = design.fields.iter().filter(|field| field.is_plain()).collect();
    collisions(design, findings);
    for (at, field) in plain.iter().enumerate() {
        let values: Vec<&str> = design.rows.iter().filter_map(|row| row.get(at)).map(String::as_str).collect();
        breaking(field, &values, findings);
        digits(field, &values, findings);
    }
    let bytes = lengths(design, &plain)?;
    if bytes.longest > bytes.median.saturating_mul(2) {
        let says = format!("the sample's longest key has {} bytes, the median {}", bytes.longest, bytes.median);
        findings.warning("S-KEY-11", says, "keep hashes or numbers for names: keys of one length cost the same");
    }
    if bytes.longest > bytes.numbered && plain.iter().any(|field| is_name(field)) {
        let says = format!(
            "with names the sample's keys have {} to {} bytes, with hashes {}, with numbers {}",
            bytes.shortest, bytes.longest, bytes.hashed, bytes.numbered
        );
        findings.note("S-KEY-12", says, "keep a number or a hash for each name, and the name in a column");
    }
    Some(bytes)
}

/// Whether a number could stand for it.
fn is_name(field: &KeyField) -> bool {
    field.kind == Kind::Text && field.width().is_none()
}

fn lengths(design: &Design, plain: &[&KeyField]) -> Option<KeyBytes> {
    let made: u64 = design.fields.iter().filter(|field| !field.is_plain()).filter_map(KeyField::width).sum();
    let length = |row: &Vec<String>| {
        let fields = plain
            .iter()
            .zip(row)
            .map(|(field, value)| field.width().unwrap_or(value.len() as u64) + u64::from(field.delimiter.is_some()));
        made + fields.sum::<u64>()
    };
    let mut all: Vec<u64> = design.rows.iter().map(length).collect();
    all.sort_unstable();
    let first = design.rows.first()?;
    let with = |bytes: u64| {
        let fields = plain
            .iter()
            .zip(first)
            .map(|(field, value)| if is_name(field) { bytes } else { field.width().unwrap_or(value.len() as u64) });
        made + fields.sum::<u64>()
    };
    Some(KeyBytes {
        shortest: *all.first()?,
        median: *all.get((all.len() - 1) / 2)?,
        longest: *all.last()?,
        hashed: with(HASH_BYTES),
        numbered: with(NUMBER_BYTES),
    })
}

/// `S-KEY-5`: two rows of one key are one row.
fn collisions(design: &Design, findings: &mut Findings) {
    let has_random = design.fields.iter().any(|field| field.kind == Kind::Random);
    let mut times: BTreeMap<&[String], u64> = BTreeMap::new();
    for row in &design.rows {
        *times.entry(row).or_default() += 1;
    }
    let Some((row, count)) = times.iter().find(|(_, count)| **count > 1).filter(|_| !has_random) else { return };
    let says = format!("{count} rows of the sample have the key {}: the later ones overwrite the first", row.join(" "));
    findings.warning("S-KEY-5", says, "add a field that tells them apart, or mean them to be versions");
}

/// `S-KEY-8`, `S-KEY-9`: what ends or fills a field must not occur in it.
fn breaking(field: &KeyField, values: &[&str], findings: &mut Findings) {
    let name = &field.name;
    let holding = |byte: u8| values.iter().find(|value| value.bytes().any(|other| other == byte));
    if let Some((byte, value)) = field.delimiter.and_then(|byte| Some((byte, holding(byte)?))) {
        let says = format!("`{name}` ends with '{}', which is in its value {value}", byte.escape_ascii());
        findings.error("S-KEY-9", says, "take a byte that no value holds, such as \\x00, or a fixed width");
    }
    if let Some((byte, value)) = field.pad.and_then(|byte| Some((byte, holding(byte)?))) {
        let says = format!("`{name}` is padded with '{}', which is in its value {value}", byte.escape_ascii());
        findings.error("S-KEY-8", says, "pad with a byte that no value holds, such as \\x00");
    }
    let width = field.width().filter(|_| field.kind == Kind::Text);
    if let Some((width, value)) = width.and_then(|w| Some((w, values.iter().find(|v| v.len() as u64 > w)?))) {
        let says = format!("`{name}` has {width} bytes, and its value {value} has {}", value.len());
        findings.error("S-KEY-8", says, "make the field as wide as its longest value, or keep a hash of it");
    }
}

/// `S-SIZE-7`: a number is shorter as a number.
fn digits(field: &KeyField, values: &[&str], findings: &mut Findings) {
    let is_number = |value: &&str| value.len() > DIGITS_MAX && value.bytes().all(|byte| byte.is_ascii_digit());
    let is_told = field.kind == Kind::Digits && field.width().is_none_or(|width| width > DIGITS_MAX as u64);
    let is_seen = field.kind == Kind::Text && !values.is_empty() && values.iter().all(is_number);
    if is_told || is_seen {
        let says = format!("`{}` keeps numbers as digits", field.name);
        let advice = "keep 8 bytes, big-endian, which sort as the numbers do; of signed ones flip the sign bit";
        findings.note("S-SIZE-7", says, advice);
    }
}
