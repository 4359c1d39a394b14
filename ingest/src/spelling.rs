//! What a point carries of its series' spelling, the bytes of metric and tags: a fingerprint, and where that was found.

use std::num::NonZeroU32;

/// A spelling's fingerprint, in two halves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Fingerprint {
    pub(crate) high: u64,
    pub(crate) low: u64,
}

impl Fingerprint {
    /// The hash by which its place is found: a part of the fingerprint, which is random enough.
    #[inline]
    pub(crate) fn word(self) -> u32 {
        u32::try_from(self.low >> 32).unwrap_or(0)
    }
}

/// A spelling and the place where it was found. Another spelling may have that place by now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Spelled {
    pub(crate) fingerprint: Fingerprint,
    pub(crate) place: u32,
    /// The value of the point, if it was read together with the spelling.
    pub(crate) value: Option<SmallValue>,
}

impl Spelled {
    /// Not looked for yet.
    pub(crate) const NOWHERE: u32 = u32::MAX;

    /// The same, with the value that was read.
    #[inline]
    pub(crate) const fn with_value(self, value: Option<SmallValue>) -> Self {
        Self { value, ..self }
    }
}

/// A value that is only a few digits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SmallValue(NonZeroU32);

impl SmallValue {
    /// `None` for one that is not small.
    #[inline]
    pub(crate) fn new(value: u32) -> Option<Self> {
        value.checked_add(1).and_then(NonZeroU32::new).map(Self)
    }

    #[inline]
    pub(crate) fn get(self) -> i64 {
        i64::from(self.0.get()) - 1
    }
}
