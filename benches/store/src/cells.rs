//! The cells: made from their number, the same for every engine, without a list of them in memory.

/// Bytes of a row key: a prefix as keys have, then two words.
pub(crate) const ROW_BYTES: usize = 20;
/// Bytes of a qualifier.
pub(crate) const QUALIFIER_BYTES: usize = 4;
/// Bytes of a value.
pub(crate) const VALUE_BYTES: usize = 8;

const SEED: u64 = 0x0ba5_a1d5_eed0_0001;

/// In which order rows come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Order {
    /// Neighbours in time are nowhere near each other.
    Random,
    /// Ascending keys.
    Sorted,
}

/// A row key.
pub(crate) type Row = [u8; ROW_BYTES];

/// The key of the row with this number; no two numbers share one.
pub(crate) fn row(order: Order, number: u64) -> Row {
    let (first, second) = match order {
        Order::Random => (mix(number), number),
        Order::Sorted => (number, mix(number)),
    };
    let mut row = *b"host................";
    row[4..12].copy_from_slice(&first.to_be_bytes());
    row[12..].copy_from_slice(&second.to_be_bytes());
    row
}

/// The qualifier of a row's column.
pub(crate) fn qualifier(column: u64) -> [u8; QUALIFIER_BYTES] {
    let digit = |tens: u64| b'0' + (column / tens % 10) as u8;
    [b'c', digit(100), digit(10), digit(1)]
}

/// A cell's value.
pub(crate) fn value(row: u64, column: u64) -> [u8; VALUE_BYTES] {
    mix(row ^ column << 48).to_le_bytes()
}

/// The key of a cell in a store that knows keys and values only: row and qualifier joined.
pub(crate) fn joined(row: &Row, qualifier: [u8; QUALIFIER_BYTES]) -> [u8; ROW_BYTES + QUALIFIER_BYTES] {
    let mut key = [0; ROW_BYTES + QUALIFIER_BYTES];
    key[..ROW_BYTES].copy_from_slice(row);
    key[ROW_BYTES..].copy_from_slice(&qualifier);
    key
}

/// A number for a number, one to one (the finaliser of `SplitMix64`).
pub(crate) fn mix(number: u64) -> u64 {
    let mut word = number.wrapping_add(SEED).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    word ^ (word >> 31)
}
