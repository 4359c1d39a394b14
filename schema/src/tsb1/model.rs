//! One cell of points as the columns keep it: how its offsets, kinds and values are told, and what is left over.
//!
//! Encoder and decoder meet here: the encoder makes a model of a cell, and takes it only if the cell comes back out of it.

use crate::value::exact_f32;
use crate::{PointKind, Qualifier, RowPoints};

use super::decimal::{self, Exception, WordKind, narrowed};
use super::head::{
    FORM_KINDS_SHIFT, FORM_MILLIS, Head, Kinds, MODE_EXCEPTIONS, MODE_PREDICTOR_SHIFT, RowPlanes, WIDTH_TIMES_SHIFT,
    gather_planes, has_base, has_centre, read_exceptions,
};
use super::number::{fold_sign, low_byte, low_half};
use super::predict::{self, Guess, Predictor};
use super::section::{Streams, id};
use super::summary::{Points, Summary};
use super::times::{self, Pace, Times};

/// Bit of a kind in the stream of kinds, above the four flags of a qualifier.
const KIND_MILLIS: u8 = 1 << 4;
/// Flags of a float on 8 and on 4 bytes.
const DOUBLE: u8 = 8 | 7;
const SINGLE: u8 = 8 | 3;

/// A cell of points. Reusable.
#[derive(Debug, Default)]
pub(super) struct Model {
    count: usize,
    kinds: Kinds,
    /// Whether offsets are in milliseconds, else in seconds.
    is_millis: bool,
    times: Times,
    time_residuals: Vec<u64>,
    guess: Guess,
    exponent: u8,
    residuals: Vec<u64>,
    /// Where the decoder met one plane: the residuals, in place of those above.
    narrow: Vec<u8>,
    is_narrow: bool,
    exceptions: Vec<Exception>,
    /// One byte a point; of use in a row of told kinds alone.
    told: Vec<u8>,

    points: RowPoints,
    offsets: Vec<u32>,
    words: Vec<u64>,
    numbers: Vec<i64>,
    steps: Vec<i64>,
}

impl Model {
    /// Takes a cell apart; `None` if it is no cell of points. Whether the model gives the cell back is for the caller to try.
    pub(super) fn take(&mut self, qualifier: &[u8], value: &[u8]) -> Option<()> {
        self.take_points(qualifier, value)?;
        let all = self.told.iter().fold((u8::MAX, 0), |(every, any), kind| (every & kind, any | kind));
        let is_mixed = (all.0 ^ all.1) & KIND_MILLIS != 0;
        self.is_millis = all.1 & KIND_MILLIS != 0;
        if !self.is_millis {
            self.offsets.iter_mut().for_each(|offset| *offset /= 1000);
        }
        self.kinds = if is_mixed { Kinds::Told } else { self.rule_of_kinds() };
        self.times = times::tell(&self.offsets, &mut self.time_residuals, &mut self.steps);
        self.take_numbers();
        Some(())
    }

    fn take_points(&mut self, qualifier: &[u8], value: &[u8]) -> Option<()> {
        self.points.take_cell(qualifier, value)?;
        let has_nan = |(word, kind): (&u64, &PointKind)| f64::from_bits(*word).is_nan() && kind.flags() == SINGLE;
        if self.points.values().iter().zip(self.points.kinds()).any(has_nan) {
            return None; // its bits need not survive a change of width
        }
        self.offsets.clear();
        self.words.clear();
        self.told.clear();
        self.offsets.extend_from_slice(self.points.offsets_ms());
        self.words.extend_from_slice(self.points.values());
        self.told.extend(self.points.kinds().iter().map(|kind| kind.code()));
        self.count = self.offsets.len();
        (self.count > 0).then_some(())
    }

    /// The shortest telling of kinds that are all of one resolution.
    fn rule_of_kinds(&self) -> Kinds {
        let flags = |flags: u8| self.told.iter().all(|kind| kind & !KIND_MILLIS == flags);
        let rule = |rule: fn(u64) -> u8| {
            self.told.iter().zip(&self.words).all(|(kind, word)| kind & !KIND_MILLIS == rule(*word))
        };
        if flags(DOUBLE) {
            Kinds::Doubles
        } else if flags(SINGLE) {
            Kinds::Singles
        } else if flags(0) || rule(int_flags) {
            Kinds::Ints
        } else if rule(shortest_flags) {
            Kinds::Shortest
        } else {
            Kinds::Told
        }
    }

    /// Tells the words as numbers, predicted, or as they are.
    fn take_numbers(&mut self) {
        self.is_narrow = false;
        self.exceptions.clear();
        self.exponent = 0;
        if self.kinds == Kinds::Ints {
            self.numbers.clear();
            self.numbers.extend(self.words.iter().map(|word| word.cast_signed()));
            self.guess = predict::guess(&self.numbers, &mut self.residuals);
            return;
        }
        let (words, told) = (&self.words, &self.told);
        let (numbers, exceptions) = (&mut self.numbers, &mut self.exceptions);
        let exponent = match self.kinds {
            Kinds::Singles => decimal::scale(words, |_| WordKind::Single, numbers, exceptions),
            Kinds::Told => decimal::scale(words, |at| told_word(told, at), numbers, exceptions),
            _ => decimal::scale(words, |_| WordKind::Double, numbers, exceptions),
        };
        if let Some(exponent) = exponent {
            self.exponent = exponent;
            self.guess = predict::guess(&self.numbers, &mut self.residuals);
            return;
        }
        self.exceptions.clear();
        self.guess = Guess { predictor: Predictor::Words, base: 0, centre: 0 };
        self.residuals.clear();
        if self.kinds == Kinds::Singles {
            self.residuals.extend(self.words.iter().map(|word| u64::from(narrowed(f64::from_bits(*word)).to_bits())));
        } else {
            self.residuals.extend_from_slice(&self.words);
        }
    }

    /// Writes qualifier and value of the cell, which replace what the two hold. `None`: the model tells no cell, as of words
    /// or of offsets that none holds.
    pub(super) fn give(&mut self, qualifier: &mut Vec<u8>, value: &mut Vec<u8>) -> Option<()> {
        self.restore_words()?;
        qualifier.clear();
        value.clear();
        let is_short = || self.words.iter().fold(0, |all, word| all | word.wrapping_add(0x80)) < 0x100;
        let flags = match self.kinds {
            Kinds::Ints => is_short().then_some(0),
            Kinds::Doubles => Some(DOUBLE),
            Kinds::Singles => Some(SINGLE),
            Kinds::Shortest | Kinds::Told => None,
        };
        match flags {
            // Fast path: nearly every hour of a collector.
            Some(flags) if self.times.pace == Pace::Regular && !self.is_millis => {
                times::fits_regular(self.times, self.count).then_some(())?;
                self.put_regular_qualifiers(qualifier, flags);
            }
            _ => {
                times::restore(self.times, &self.time_residuals, self.count, &mut self.offsets);
                times::fit(&self.offsets, self.is_millis).then_some(())?;
                self.put_all_qualifiers(qualifier, flags);
            }
        }
        let words = &self.words;
        match self.kinds {
            Kinds::Ints if flags.is_some() => value.extend(words.iter().map(|word| low_byte(*word))),
            Kinds::Ints => {
                for word in words {
                    put_low_bytes(value, *word, int_flags(*word));
                }
            }
            Kinds::Doubles => {
                value.resize(words.len() * 8, 0);
                let (outs, _) = value.as_chunks_mut::<8>();
                outs.iter_mut().zip(words).for_each(|(out, word)| *out = word.to_be_bytes());
            }
            Kinds::Singles => {
                value.extend(words.iter().flat_map(|word| narrowed(f64::from_bits(*word)).to_be_bytes()));
            }
            Kinds::Shortest => {
                for word in words {
                    put_float(value, *word, shortest_flags(*word));
                }
            }
            Kinds::Told => self.give_told(qualifier, value)?,
        }
        if self.count > 1 {
            value.push(self.is_mixed().into());
        }
        Some(())
    }

    /// Qualifiers in seconds a step apart, all of the same flags.
    fn put_regular_qualifiers(&self, out: &mut Vec<u8>, flags: u8) {
        let (mut offset, step) = (low_half(self.times.first), low_half(self.times.step.cast_unsigned()));
        out.resize(self.count * 2, 0);
        for out in out.as_chunks_mut::<2>().0 {
            *out = Qualifier::of_seconds(offset, flags);
            offset = offset.wrapping_add(step);
        }
    }

    /// Qualifiers of the same flags, or of those that the words say; told kinds have theirs put with their values.
    fn put_all_qualifiers(&self, out: &mut Vec<u8>, flags: Option<u8>) {
        let (offsets, words) = (&self.offsets, self.words.iter());
        match (flags, self.kinds) {
            (Some(flags), _) => put_qualifiers(out, offsets, std::iter::repeat(flags), self.is_millis),
            (None, Kinds::Told) => {}
            (None, Kinds::Ints) => put_qualifiers(out, offsets, words.map(|word| int_flags(*word)), self.is_millis),
            (None, _) => put_qualifiers(out, offsets, words.map(|word| shortest_flags(*word)), self.is_millis),
        }
    }

    /// Cells of seconds and milliseconds end on another byte.
    fn is_mixed(&self) -> bool {
        self.kinds == Kinds::Told && self.is_millis && self.told.iter().any(|kind| kind & KIND_MILLIS == 0)
    }

    fn give_told(&self, qualifier: &mut Vec<u8>, value: &mut Vec<u8>) -> Option<()> {
        for ((offset, word), kind) in self.offsets.iter().zip(&self.words).zip(&self.told) {
            let is_millis = kind & KIND_MILLIS != 0;
            let offset_ms = if self.is_millis { *offset } else { offset.wrapping_mul(1000) };
            let flags = kind & !KIND_MILLIS;
            let is_second = || offset_ms.is_multiple_of(1000) && times::fit(&[offset_ms / 1000], false);
            if kind & !(KIND_MILLIS | 0xF) != 0 || !(is_millis || is_second()) {
                return None;
            }
            put_qualifiers(qualifier, &[if is_millis { offset_ms } else { offset_ms / 1000 }], [flags], is_millis);
            if flags & 8 == 0 { put_low_bytes(value, *word, flags) } else { put_float(value, *word, flags) }
        }
        Some(())
    }

    fn restore_words(&mut self) -> Option<()> {
        self.words.clear();
        if self.guess.predictor == Predictor::Words {
            if self.kinds == Kinds::Singles {
                let widened = |bits: &u64| f64::from(f32::from_bits(low_half(*bits))).to_bits();
                self.words.extend(self.residuals.iter().map(widened));
            } else {
                self.words.extend_from_slice(&self.residuals);
            }
            return Some(());
        }
        self.words.resize(self.count, 0);
        if self.is_narrow {
            predict::restore(self.guess, self.narrow.iter().map(|byte| u64::from(*byte)), &mut self.words);
        } else {
            predict::restore(self.guess, self.residuals.iter().copied(), &mut self.words);
        }
        match self.kinds {
            Kinds::Ints => {}
            Kinds::Told => {
                for (at, word) in self.words.iter_mut().enumerate() {
                    *word = told_word(&self.told, at).word(word.cast_signed(), self.exponent);
                }
            }
            _ => decimal::divide(&mut self.words, self.exponent),
        }
        for (at, word) in &self.exceptions {
            *self.words.get_mut(*at)? = *word;
        }
        Some(())
    }

    /// Puts the model into the columns.
    pub(super) fn put(&self, streams: &mut Streams) {
        let form = self.times.pace as u8
            | if self.is_millis { FORM_MILLIS } else { 0 }
            | (self.kinds as u8) << FORM_KINDS_SHIFT;
        streams.put_byte(id::FORMS, form);
        streams.put_number(id::COUNTS, self.count as u64);
        streams.put_number(id::FIRSTS, self.times.first);
        if self.count > 1 {
            streams.put_number(id::STEPS, self.times.step.cast_unsigned());
        }
        let mut widths = 0;
        if !self.time_residuals.is_empty() {
            widths |= streams.put_planes(id::TIME_PLANES, &self.time_residuals) << WIDTH_TIMES_SHIFT;
        }
        if !self.residuals.is_empty() {
            widths |= streams.put_planes(id::VALUE_PLANES, &self.residuals);
        }
        streams.put_byte(id::WIDTHS, widths);
        let exceptions = if self.exceptions.is_empty() { 0 } else { MODE_EXCEPTIONS };
        let mode = self.exponent | (self.guess.predictor as u8) << MODE_PREDICTOR_SHIFT | exceptions;
        streams.put_byte(id::MODES, mode);
        if has_base(self.guess.predictor) {
            streams.put_number(id::BASES, self.guess.base.cast_unsigned());
        }
        if has_centre(self.guess.predictor) {
            streams.put_number(id::CENTRES, self.guess.centre.cast_unsigned());
        }
        if !self.exceptions.is_empty() {
            streams.put_varint(id::EXCEPTION_GAPS, self.exceptions.len() as u64);
            let mut next = 0;
            for (at, word) in &self.exceptions {
                streams.put_varint(id::EXCEPTION_GAPS, (at - next) as u64);
                streams.put_bytes(id::EXCEPTION_WORDS, &word.to_le_bytes());
                next = at + 1;
            }
        }
        if self.kinds == Kinds::Told {
            streams.put_bytes(id::KINDS, &self.told);
        }
        let is_regular = self.times.pace == Pace::Regular;
        Summary::put(self.summary(), self.guess.base, is_regular, streams);
    }

    /// What its points are together, once it has given its cell back.
    fn summary(&self) -> Option<Summary> {
        let is_of_numbers = self.guess.predictor != Predictor::Words && self.exceptions.is_empty();
        let Self { kinds, exponent, ref numbers, ref words, .. } = *self;
        let points = Points { kinds, exponent, offsets: &self.offsets, numbers, words };
        is_of_numbers.then(|| Summary::of(&points)).flatten()
    }

    /// Reads a model out of the columns; `form` is read already. `None` for one that makes no sense or has more than
    /// `points_max` points.
    pub(super) fn read(&mut self, form: u8, points_max: usize, streams: &mut Streams) -> Option<()> {
        let head = Head::read(form, points_max, streams)?;
        self.exceptions.clear();
        if head.has_exceptions {
            read_exceptions(head.count, streams, &mut self.exceptions)?;
        }
        self.take_head(&head);
        if head.time_width > 0 {
            streams.planes(id::TIME_PLANES, head.time_width, head.times_count(), &mut self.time_residuals)?;
        }
        self.is_narrow = head.is_narrow();
        if self.is_narrow {
            self.narrow.clear();
            self.narrow.extend_from_slice(streams.bytes(id::VALUE_PLANES, head.values_count())?);
        } else if head.value_width > 0 {
            streams.planes(id::VALUE_PLANES, head.value_width, head.values_count(), &mut self.residuals)?;
        }
        if head.is_told() {
            self.told.clear();
            self.told.extend_from_slice(streams.bytes(id::KINDS, head.count)?);
        }
        Summary::read(&head, streams)?;
        Some(())
    }

    /// Becomes what a head says; residuals, exceptions and told kinds are still to come.
    fn take_head(&mut self, head: &Head) {
        let Head { kinds, is_millis, count, times, exponent, guess, .. } = *head;
        (self.kinds, self.is_millis, self.count, self.times) = (kinds, is_millis, count, times);
        (self.exponent, self.guess) = (exponent, guess);
        self.time_residuals.clear();
        self.residuals.clear();
    }

    /// Becomes the row that a head and its planes tell, for [`Model::give`].
    pub(super) fn load(&mut self, head: &Head, planes: &RowPlanes<'_>, exceptions: &[Exception]) -> Option<()> {
        self.take_head(head);
        gather_planes(planes.times, head.times_count(), &mut self.time_residuals)?;
        gather_planes(planes.values, head.values_count(), &mut self.residuals)?;
        self.is_narrow = false;
        self.exceptions.clear();
        self.exceptions.extend_from_slice(exceptions);
        self.told.clear();
        self.told.extend_from_slice(planes.told);
        Some(())
    }
}

/// What a point of a told kind has as its word.
fn told_word(told: &[u8], at: usize) -> WordKind {
    match told.get(at).map(|kind| kind & !KIND_MILLIS) {
        Some(SINGLE) => WordKind::Single,
        Some(kind) if kind & 8 != 0 => WordKind::Double,
        _ => WordKind::Int,
    }
}

/// Flags of an integer on the fewest bytes.
#[inline]
fn int_flags(word: u64) -> u8 {
    let folded = fold_sign(word.cast_signed());
    if folded < 1 << 8 {
        0
    } else if folded < 1 << 16 {
        1
    } else if folded < 1 << 32 {
        3
    } else {
        7
    }
}

/// Flags of a float on 4 bytes if it is the same there.
#[inline]
fn shortest_flags(word: u64) -> u8 {
    if exact_f32(f64::from_bits(word)).is_some() { SINGLE } else { DOUBLE }
}

/// Appends qualifiers of one resolution; offsets are in its unit.
#[inline]
fn put_qualifiers(out: &mut Vec<u8>, offsets: &[u32], flags: impl IntoIterator<Item = u8>, is_millis: bool) {
    let start = out.len();
    if is_millis {
        out.resize(start + offsets.len() * 4, 0);
        let (outs, _) = out.get_mut(start..).unwrap_or_default().as_chunks_mut::<4>();
        for ((out, offset), flags) in outs.iter_mut().zip(offsets).zip(flags) {
            *out = Qualifier::of_millis(*offset, flags);
        }
    } else {
        out.resize(start + offsets.len() * 2, 0);
        let (outs, _) = out.get_mut(start..).unwrap_or_default().as_chunks_mut::<2>();
        for ((out, offset), flags) in outs.iter_mut().zip(offsets).zip(flags) {
            *out = Qualifier::of_seconds(*offset, flags);
        }
    }
}

/// Appends as many of the lowest bytes as the flags say, the highest first.
#[inline]
fn put_low_bytes(out: &mut Vec<u8>, word: u64, flags: u8) {
    let bytes = usize::from(flags & 7) + 1;
    out.extend_from_slice(word.to_be_bytes().get(8 - bytes..).unwrap_or_default());
}

/// Appends a float on 4 or 8 bytes.
#[inline]
fn put_float(out: &mut Vec<u8>, word: u64, flags: u8) {
    if flags == SINGLE {
        out.extend_from_slice(&narrowed(f64::from_bits(word)).to_be_bytes());
    } else {
        out.extend_from_slice(&word.to_be_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Those of a foreign block: no writer makes them.
    #[test]
    fn no_cell_has_offsets_that_no_qualifier_holds() {
        let check = |pace, kinds, is_millis, last: u64| {
            let gives = |first| {
                let mut model = Model { count: 2, kinds, is_millis, told: vec![0; 2], ..Model::default() };
                model.times = Times { pace, first, step: 0 };
                model.time_residuals = vec![0; pace.residuals_count(2)];
                model.guess.predictor = Predictor::Words;
                model.residuals = vec![1; 2];
                model.give(&mut Vec::new(), &mut Vec::new()).is_some()
            };
            assert_eq!((gives(last), gives(last + 1)), (true, false), "{pace:?} {kinds:?} {is_millis}");
        };
        for pace in [Pace::Regular, Pace::Grid, Pace::Steps] {
            check(pace, Kinds::Ints, false, 4095);
            check(pace, Kinds::Ints, true, 4_194_303);
            check(pace, Kinds::Told, false, 4095);
        }
        // Seconds in a row of milliseconds: the next second that is told in them has no place.
        let mut model = Model { count: 1, kinds: Kinds::Told, is_millis: true, told: vec![0], ..Model::default() };
        model.guess.predictor = Predictor::Words;
        model.residuals = vec![1];
        for (first, fits) in [(4_095_000, true), (4_095_001, false), (4_096_000, false)] {
            model.times = Times { pace: Pace::Regular, first, step: 0 };
            assert_eq!(model.give(&mut Vec::new(), &mut Vec::new()).is_some(), fits, "{first}");
        }
    }
}
