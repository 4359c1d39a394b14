//! Values of points: integers on the shortest of 1, 2, 4, 8 bytes, floats on 4 or 8, all big-endian.
//!
//! *Source*: OpenTSDB 2.4 `Internal.vleEncodeLong`, `TSDB.addPoint`, `Internal.fixFloatingPointValue`.

use crate::{Error, InlineBytes, PointKind, Result};

/// The bytes of one value.
pub type ValueBytes = InlineBytes<8>;

/// A point's value.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Value {
    /// An integer: it was written without `.`, `e` and `E`.
    Int(i64),
    /// A float, finite where it is written.
    Float(f64),
}

/// By which door a value came in: OpenTSDB stores floats on as many bytes as its door happens to (rule S-VAL-FLOAT).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Door {
    /// Telnet put: 4 bytes if the number survives them, else 8.
    Telnet,
    /// HTTP put: always 8 bytes.
    Http,
}

impl Value {
    /// The value's bytes and kind (in seconds; see [`PointKind::with_millis`]). *Cost*: no allocation.
    ///
    /// # Errors
    /// `Invalid`: NaN or infinite.
    #[inline]
    pub fn encode(self, door: Door) -> Result<(PointKind, ValueBytes)> {
        self.into_word(door).map(|(kind, word)| (kind, stored_bytes(kind, word)))
    }

    /// The value's kind (in seconds) and the word of [`crate::RowPoints`] that it is.
    ///
    /// # Errors
    /// As [`Value::encode`].
    #[inline]
    pub(crate) fn into_word(self, door: Door) -> Result<(PointKind, u64)> {
        match self {
            Self::Int(value) => Ok((PointKind::new(false, int_bytes(value)), value.cast_unsigned())),
            Self::Float(value) if !value.is_finite() => Err(Error::InvalidValue { value }),
            Self::Float(value) => {
                let is_short = door == Door::Telnet && exact_f32(value).is_some();
                Ok((PointKind::new(true, if is_short { 4 } else { 8 }), value.to_bits()))
            }
        }
    }

    /// Reads a value as `kind` says; `None` if the length is not what the kind says, or one that no value has.
    pub fn decode(kind: PointKind, bytes: &[u8]) -> Option<Self> {
        decode_word(kind, bytes).map(|word| Self::from_word(kind, word))
    }

    /// A value from the 64-bit word of [`crate::RowPoints`].
    pub const fn from_word(kind: PointKind, word: u64) -> Self {
        if kind.is_float() { Self::Float(f64::from_bits(word)) } else { Self::Int(word.cast_signed()) }
    }
}

/// The raw 64-bit word of a value: an integer sign-extended, a float widened to 64 bits.
pub(crate) fn decode_word(kind: PointKind, bytes: &[u8]) -> Option<u64> {
    if bytes.len() != kind.value_bytes() {
        return None;
    }
    if kind.is_float() {
        return match bytes.len() {
            4 => Some(f64::from(f32::from_be_bytes(*bytes.first_chunk()?)).to_bits()),
            8 => Some(u64::from_be_bytes(*bytes.first_chunk()?)),
            _ => None,
        };
    }
    let value = match bytes.len() {
        1 => i64::from(i8::from_be_bytes(*bytes.first_chunk()?)),
        2 => i64::from(i16::from_be_bytes(*bytes.first_chunk()?)),
        4 => i64::from(i32::from_be_bytes(*bytes.first_chunk()?)),
        8 => i64::from_be_bytes(*bytes.first_chunk()?),
        _ => return None,
    };
    Some(value.cast_unsigned())
}

/// Repairs the value of a lone point as OpenTSDB's readers do (rule S-VAL-FLOATFIX).
///
/// Early versions wrote 4-byte floats on 8 bytes, the first four zero, while the qualifier said 4. Any other length that
/// differs from the qualifier's is taken from the value, with the float bit kept. `None`: the first four are not zero.
pub(crate) fn repair_lone(kind: PointKind, value: &[u8]) -> Option<(PointKind, &[u8])> {
    if value.len() == kind.value_bytes() {
        return Some((kind, value));
    }
    if kind.is_float() && kind.value_bytes() == 4 && value.len() == 8 {
        return value.strip_prefix(&[0; 4]).map(|rest| (kind, rest));
    }
    let bytes = u8::try_from(value.len()).ok().filter(|bytes| matches!(bytes, 1..=8))?;
    Some((kind.with_value_bytes(bytes), value))
}

/// The bytes that a word was stored as; the very same, but for the payload of a 4-byte NaN.
#[inline]
pub(crate) fn stored_bytes(kind: PointKind, word: u64) -> ValueBytes {
    #[expect(clippy::cast_possible_truncation, reason = "the float came from 32 bits")]
    if kind.is_float() && kind.value_bytes() == 4 {
        return InlineBytes::of((f64::from_bits(word) as f32).to_be_bytes());
    }
    InlineBytes::last_of(word, kind.value_len())
}

/// The fewest bytes that an integer is stored on.
#[inline]
fn int_bytes(value: i64) -> u8 {
    if i8::try_from(value).is_ok() {
        1
    } else if i16::try_from(value).is_ok() {
        2
    } else if i32::try_from(value).is_ok() {
        4
    } else {
        8
    }
}

/// The number on 32 bits, if it is the same there.
#[expect(clippy::cast_possible_truncation, reason = "whether anything is lost is the question asked")]
pub(crate) fn exact_f32(value: f64) -> Option<f32> {
    let short = value as f32;
    (f64::from(short).to_bits() == value.to_bits()).then_some(short)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn check_int(value: i64, bytes: &[u8]) {
        let (kind, encoded) = Value::Int(value).encode(Door::Http).unwrap();
        assert_eq!(&*encoded, bytes);
        assert_eq!(Value::decode(kind, bytes), Some(Value::Int(value)));
    }

    #[test]
    fn integers_take_the_fewest_bytes() {
        // S-VAL-VLE
        check_int(42, &[0x2A]);
        check_int(-42, &[0xD6]);
        check_int(257, &[0x01, 0x01]);
        check_int(65537, &[0x00, 0x01, 0x00, 0x01]);
        check_int(4_294_967_296, &[0, 0, 0, 1, 0, 0, 0, 0]);
    }

    #[test]
    fn the_door_chooses_a_floats_width() {
        // S-VAL-FLOAT
        let width = |value, door| Value::Float(value).encode(door).unwrap().0.value_bytes();
        assert_eq!((width(42.5, Door::Telnet), width(42.5, Door::Http)), (4, 8));
        assert_eq!((width(0.1, Door::Telnet), width(-0.0, Door::Telnet)), (8, 4));
        for value in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
            assert!(Value::Float(value).encode(Door::Telnet).is_err());
        }
    }

    #[test]
    fn lone_values_are_repaired() {
        // S-VAL-FLOATFIX
        let short = PointKind::new(true, 4);
        let fixed = repair_lone(short, &[0, 0, 0, 0, 0x42, 0x2A, 0, 0]).unwrap();
        assert_eq!(Value::decode(fixed.0, fixed.1), Some(Value::Float(42.5)));
        assert_eq!(repair_lone(short, &[0, 0, 0, 1, 0x42, 0x2A, 0, 0]), None);
        let wide = repair_lone(PointKind::new(false, 1), &[0, 0, 0, 5]).unwrap();
        assert_eq!(Value::decode(wide.0, wide.1), Some(Value::Int(5)));
        assert_eq!(repair_lone(short, &[]), None);
        assert_eq!(repair_lone(short, &[0; 9]), None);
    }

    proptest! {
        #[test]
        fn what_is_encoded_is_decoded(integer: i64, shift in 0u32..64, bits: u64) {
            let float = f64::from_bits(bits);
            for value in [Value::Int(integer >> shift), Value::Float(float)] {
                for door in [Door::Telnet, Door::Http] {
                    let Ok((kind, bytes)) = value.encode(door) else {
                        prop_assert!(!float.is_finite());
                        continue;
                    };
                    prop_assert_eq!(Value::decode(kind, &bytes), Some(value));
                }
            }
        }

        #[test]
        fn any_bytes_are_read_or_refused(flags: u8, bytes in proptest::collection::vec(any::<u8>(), 0..12)) {
            let kind = crate::Qualifier::decode_first(&[0, flags]).unwrap().0.kind;
            if let Some((kind, bytes)) = repair_lone(kind, &bytes) {
                let _read = Value::decode(kind, bytes);
            }
        }
    }
}
