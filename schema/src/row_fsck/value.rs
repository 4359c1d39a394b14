//! Whether a point's value is what its qualifier says.

use crate::value::{Value, decode_word, repair_lone};
use crate::{Door, InlineBytes, PointKind, Severity, StoredPoint, ValueBytes};

/// What is to be done about a value.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Verdict {
    /// Nothing.
    Good,
    /// An integer on 8 bytes that needs fewer.
    Shorter { kind: PointKind, value: ValueBytes },
    /// A float that early versions wrote wrongly.
    Repaired { value: ValueBytes, severity: Severity, text: &'static str },
    /// Its length is not the one that is told, and readers take it by its own: the kind that tells that.
    OfOwnLength { kind: PointKind, value: ValueBytes, text: String },
    /// It cannot be known what it was.
    Bad { text: String },
}

/// Whether a point within a joined cell has a value.
pub(super) fn is_readable(point: &StoredPoint<'_>) -> bool {
    decode_word(point.qualifier.kind, point.value).is_some()
}

/// Checks a value against its kind.
pub(super) fn check(kind: PointKind, value: &[u8]) -> Verdict {
    match check_as_told(kind, value) {
        Verdict::Bad { text } => match of_own_length(kind, value) {
            Some((kind, value)) => Verdict::OfOwnLength { kind, value, text },
            None => Verdict::Bad { text },
        },
        verdict => verdict,
    }
}

fn check_as_told(kind: PointKind, value: &[u8]) -> Verdict {
    if kind.is_float() { check_float(kind, value) } else { check_integer(kind, value) }
}

/// What readers make of a lone value of another length than is told (rule S-VAL-FLOATFIX), on as few bytes as it takes.
fn of_own_length(kind: PointKind, value: &[u8]) -> Option<(PointKind, ValueBytes)> {
    let (kind, value) = repair_lone(kind, value)?;
    match check_as_told(kind, value) {
        Verdict::Good => Some((kind, InlineBytes::new(value))),
        Verdict::Shorter { kind, value } => Some((kind, value)),
        _ => None,
    }
}

fn check_float(kind: PointKind, value: &[u8]) -> Verdict {
    let told = kind.value_bytes();
    let found = value.len();
    match (told, value) {
        (4, &[0xFF, 0xFF, 0xFF, 0xFF, ref rest @ ..]) if found == 8 && !kind.is_millis() => Verdict::Repaired {
            value: InlineBytes::new(rest),
            severity: Severity::Error,
            text: "Floating point value with 0xFF most significant bytes, probably caused by sign extension bug \
                   present in revisions [96908436..607256fc].",
        },
        (4, &[0, 0, 0, 0, ref rest @ ..]) if found == 8 => Verdict::Repaired {
            value: InlineBytes::new(rest),
            severity: Severity::Warning,
            text: "Floating point value was marked as 4 bytes long but was actually 8 bytes long",
        },
        (4, _) if found == 8 => Verdict::Bad {
            text: "Floating point value was marked as 4 bytes long but was actually 8 bytes long and the first four \
                   bytes were not zeroed"
                .to_owned(),
        },
        (8, _) if found == 4 => Verdict::Bad {
            text: "This floating point value was marked as 8 bytes long but was only 4 bytes.".to_owned(),
        },
        _ if decode_word(kind, value).is_some() => Verdict::Good,
        _ if matches!(found, 4 | 8) => Verdict::Bad {
            text: format!("This floating point value was marked as {told} bytes long but was {found} bytes."),
        },
        _ => Verdict::Bad {
            text: format!(
                "This floating point value must be encoded either on 4 or 8 bytes, but it's on {found} bytes."
            ),
        },
    }
}

fn check_integer(kind: PointKind, value: &[u8]) -> Verdict {
    let (told, found) = (kind.value_bytes(), value.len());
    let Some(number) = Value::decode(kind, value) else {
        return Verdict::Bad { text: format!("The integer value is {found} bytes long but should be {told} bytes.") };
    };
    match number.encode(Door::Http) {
        // Those on fewer than 8 bytes were written by versions that shorten.
        Ok((shorter, bytes)) if found == 8 && bytes.len() < 8 => {
            Verdict::Shorter { kind: shorter.with_millis(kind.is_millis()), value: bytes }
        }
        _ => Verdict::Good,
    }
}
