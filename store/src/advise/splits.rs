//! Whether every region of a pre-split table can hold a key.

use super::Findings;
use super::design::{Design, KeyField, Kind};

/// The digits of hexadecimal and of decimal text, in order.
const HEX_DIGITS: &[u8] = b"0123456789abcdef";
const DECIMAL_DIGITS: &[u8] = b"0123456789";

/// Judges the splits.
pub(super) fn judge(design: &Design, findings: &mut Findings) {
    let Some(first) = design.fields.first() else { return };
    let letters = letters(first);
    let is_text = letters == Some(HEX_DIGITS);
    if is_text {
        let says = format!("the key begins with `{}`, which is hexadecimal text", first.name);
        findings.note("S-SPLIT-5", says, "raw bytes are half as long; split the table by HexStringSplit");
    }
    if design.splits.is_empty() {
        return;
    }
    let splits: Vec<&[u8]> = design.splits.iter().map(AsRef::as_ref).collect();
    let starts = [&b""[..]].into_iter().chain(splits.iter().copied());
    let ends = splits.iter().copied().map(Some).chain([None]);
    let empty_count = starts.zip(ends).filter(|(start, end)| !is_reachable(first, letters, start, *end)).count();
    if empty_count == 0 {
        return;
    }
    let says = format!("{empty_count} of {} regions can hold no key", splits.len() + 1);
    if is_text {
        findings.error("S-SPLIT-3", says, "split by HexStringSplit: its keys are hexadecimal digits too");
    } else {
        findings.error("S-SPLIT-4", says, "split where keys begin: at the values of the key's first field");
    }
}

/// The bytes that a field of text is made of; none for any.
fn letters(field: &KeyField) -> Option<&'static [u8]> {
    match field.kind {
        Kind::Hex => Some(HEX_DIGITS),
        Kind::Hash if field.hex => Some(HEX_DIGITS),
        Kind::Digits => Some(DECIMAL_DIGITS),
        _ => None,
    }
}

/// Whether a key that begins with the field can be at or above `start` and below `end`.
fn is_reachable(field: &KeyField, letters: Option<&[u8]>, start: &[u8], end: Option<&[u8]>) -> bool {
    let lowest = match (letters, field.buckets, field.width()) {
        (Some(letters), _, width) => lowest_text(letters, width.unwrap_or(u64::MAX), start),
        (None, Some(count), Some(width)) if field.is_derived() => lowest_number(u64::from(count), width, start),
        _ => Some(start.to_vec()),
    };
    lowest.is_some_and(|lowest| end.is_none_or(|end| *lowest < *end))
}

/// The lowest key not below `start` that begins with a number below `count`, of `width` big-endian bytes.
fn lowest_number(count: u64, width: u64, start: &[u8]) -> Option<Vec<u8>> {
    let width = usize::try_from(width).ok().filter(|width| (1..=8).contains(width))?;
    let head: Vec<u8> = start.iter().copied().chain(std::iter::repeat(0)).take(width).collect();
    let value = head.iter().fold(0, |value: u64, byte| value << 8 | u64::from(*byte));
    (value < count).then(|| if start.len() > width { start.to_vec() } else { head })
}

/// The lowest key not below `start` whose first `width` bytes are such letters; anything may follow them.
fn lowest_text(letters: &[u8], width: u64, start: &[u8]) -> Option<Vec<u8>> {
    let lowest = *letters.first()?;
    let head = start.get(..usize::try_from(width).unwrap_or(usize::MAX).min(start.len())).unwrap_or(start);
    let fitting = head.iter().take_while(|byte| letters.contains(byte)).count();
    if fitting == head.len() {
        return Some(start.to_vec());
    }
    // The last byte that can be raised, at or before the first that is no letter.
    (0..=fitting).rev().find_map(|at| {
        let raised = letters.iter().find(|letter| Some(*letter) > head.get(at))?;
        let kept = head.get(..at)?;
        Some(kept.iter().chain([raised]).copied().chain(std::iter::once(lowest)).collect())
    })
}
