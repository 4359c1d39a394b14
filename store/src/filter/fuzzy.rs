//! Matching a row key against a key with holes, and finding the next key that could match.

use bytes::Bytes;

use super::FuzzyKey;

/// Where the next row that may match lies.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum FuzzyNext {
    /// At this key or after it.
    At(Bytes),
    /// Nowhere: every later row differs.
    None,
}

/// Whether the row has the key's bytes at the fixed places. A shorter row is held against the key's beginning.
pub(super) fn matches(key: &FuzzyKey, row: &[u8]) -> bool {
    mismatch(key, row).is_none()
}

/// The smallest key greater than `row` at which a matching row can lie; `row` itself does not match.
pub(super) fn next(key: &FuzzyKey, row: &[u8]) -> FuzzyNext {
    let Some((at, wanted, found)) = mismatch(key, row) else {
        // A match has a successor of its own; callers ask only about rows that do not match.
        return FuzzyNext::At(row.iter().copied().chain([0]).collect());
    };
    if found < wanted {
        return FuzzyNext::At(row.iter().copied().take(at).chain([wanted]).collect());
    }
    // Too large already: a hole before it must step up, the last one that can.
    let hole = row.iter().zip(key.mask.iter()).take(at).rposition(|(&byte, &mask)| mask != 0 && byte < u8::MAX);
    hole.map_or(FuzzyNext::None, |hole| {
        // What follows the hole is left off, not zeroed: a shorter row matches by its beginning.
        let stepped = row.iter().copied().enumerate().take(hole + 1);
        FuzzyNext::At(stepped.map(|(i, byte)| if i == hole { byte + 1 } else { byte }).collect())
    })
}

/// The first fixed place where they differ: its index, the key's byte, the row's.
fn mismatch(key: &FuzzyKey, row: &[u8]) -> Option<(usize, u8, u8)> {
    let places = row.iter().zip(key.key.iter().zip(key.mask.iter())).enumerate();
    places
        .map(|(i, (&found, (&wanted, &mask)))| (i, wanted, found, mask))
        .find_map(|(i, wanted, found, mask)| (mask == 0 && wanted != found).then_some((i, wanted, found)))
}
