//! Order-0 entropy coder over bytes: static rANS, 12-bit frequencies, 16 interleaved 32-bit states, 16-bit words.
//!
//! Symbol i belongs to lane i mod 16, so that a decoder can step all lanes at once. The stored form is: number of symbols − 1;
//! for each the gap to the one before (the first: its value) and its frequency − 1 as a varint; the 16 states; the words.
//!
//! *Source*: J. Duda, "Asymmetric numeral systems", 2013; interleaving after F. Giesen, 2014.

#[cfg(target_arch = "x86_64")]
mod avx2;

use super::number::{Input, low_byte, put_varint};

/// Interleaved states.
const LANES: usize = 16;
const FREQUENCY_BITS: u32 = 12;
/// All frequencies of a table together.
const SCALE: u32 = 1 << FREQUENCY_BITS;
const SLOT_MASK: u32 = SCALE - 1;
/// A state below this takes in one word.
const STATE_MIN: u32 = 1 << 16;

/// How often each byte occurs.
pub(super) type Counts = [u32; 256];

/// Counts the bytes.
pub(super) fn count(bytes: &[u8]) -> Counts {
    // Four tables, so that a run of one byte does not wait for its own counter.
    let mut tables = [[0_u32; 256]; 4];
    let (groups, rest) = bytes.as_chunks::<4>();
    for group in groups {
        for (table, byte) in tables.iter_mut().zip(group) {
            bump(table, *byte);
        }
    }
    let [mut counts, others @ ..] = tables;
    for byte in rest {
        bump(&mut counts, *byte);
    }
    for other in &others {
        counts.iter_mut().zip(other).for_each(|(sum, more)| *sum += more);
    }
    counts
}

fn bump(table: &mut Counts, byte: u8) {
    if let Some(counter) = table.get_mut(usize::from(byte)) {
        *counter += 1;
    }
}

/// Frequencies that add up to 4096; at least one for each symbol that occurs.
#[derive(Debug)]
pub(super) struct Frequencies([u32; 256]);

impl Frequencies {
    /// The frequencies of counts; `None` with fewer than two symbols.
    pub(super) fn of(counts: &Counts) -> Option<Self> {
        let total: u64 = counts.iter().map(|count| u64::from(*count)).sum();
        let mut order: Vec<usize> = Vec::with_capacity(256);
        let mut frequencies = [0_u32; 256];
        for (symbol, (frequency, count)) in frequencies.iter_mut().zip(counts).enumerate() {
            if *count > 0 {
                let exact = u64::from(*count) * u64::from(SCALE) / total;
                *frequency = u32::try_from(exact).unwrap_or(SCALE).max(1);
                order.push(symbol);
            }
        }
        if order.len() < 2 {
            return None;
        }
        // What rounding lost or won is spread from the most frequent symbol on, where it costs least.
        order.sort_by_key(|symbol| std::cmp::Reverse(counts.get(*symbol).copied()));
        let mut sum: u32 = frequencies.iter().sum();
        while sum != SCALE {
            for symbol in &order {
                let Some(frequency) = frequencies.get_mut(*symbol) else { continue };
                if sum < SCALE {
                    *frequency += 1;
                    sum += 1;
                } else if sum > SCALE && *frequency > 1 {
                    *frequency -= 1;
                    sum -= 1;
                }
            }
        }
        Some(Self(frequencies))
    }

    /// Bytes that the stored form will take, within a few.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "an estimate, positive and far below 2⁵³"
    )]
    pub(super) fn estimate_bytes(&self, counts: &Counts) -> usize {
        let symbols = self.0.iter().filter(|frequency| **frequency > 0).count();
        let bits: f64 = (self.0.iter().zip(counts))
            .filter(|(_, count)| **count > 0)
            .map(|(frequency, count)| f64::from(*count) * (f64::from(SCALE) / f64::from(*frequency)).log2())
            .sum();
        (bits / 8.0) as usize + 3 * symbols + 4 * LANES
    }

    fn encode_into(&self, out: &mut Vec<u8>) {
        let used = || (0_u8..=255).zip(&self.0).filter(|(_, frequency)| **frequency > 0);
        out.push(low_byte(used().count() as u64 - 1));
        let mut last = 0;
        for (symbol, frequency) in used() {
            out.push(symbol - last);
            put_varint(out, u64::from(*frequency) - 1);
            last = symbol;
        }
    }

    /// Frequency and first slot of each symbol.
    fn spans(&self) -> [(u32, u32); 256] {
        let mut spans = [(0, 0); 256];
        let mut start = 0;
        for (span, frequency) in spans.iter_mut().zip(&self.0) {
            *span = (*frequency, start);
            start += frequency;
        }
        spans
    }
}

/// Appends the stored form of `bytes`, whose frequencies are given; `words` is working memory.
pub(super) fn encode_into(bytes: &[u8], frequencies: &Frequencies, words: &mut Vec<u16>, out: &mut Vec<u8>) {
    frequencies.encode_into(out);
    let spans = frequencies.spans();
    let mut states = [STATE_MIN; LANES];
    words.clear();
    let mut put = |state: &mut u32, byte: u8| {
        let Some((frequency, start)) = spans.get(usize::from(byte)).copied().filter(|span| span.0 > 0) else { return };
        if u64::from(*state) >= u64::from(frequency) << (32 - FREQUENCY_BITS) {
            words.push(low_word(*state));
            *state >>= 16;
        }
        *state = ((*state / frequency) << FREQUENCY_BITS) + *state % frequency + start;
    };
    let (groups, rest) = bytes.as_chunks::<LANES>();
    for (state, byte) in states.iter_mut().zip(rest).rev() {
        put(state, *byte);
    }
    for group in groups.iter().rev() {
        for (state, byte) in states.iter_mut().zip(group).rev() {
            put(state, *byte);
        }
    }
    for state in states {
        out.extend_from_slice(&state.to_le_bytes());
    }
    for word in words.iter().rev() {
        out.extend_from_slice(&word.to_le_bytes());
    }
}

#[expect(clippy::cast_possible_truncation, reason = "the lower half is what is asked for")]
const fn low_word(state: u32) -> u16 {
    state as u16
}

/// Decodes; keeps its tables from one section to the next.
#[derive(Debug)]
pub(super) struct Decoder {
    /// For each slot: symbol, frequency, and the slot's number within the symbol's, in 8, 12 and 12 bits.
    slots: Box<[u32; SCALE as usize]>,
}

impl Default for Decoder {
    fn default() -> Self {
        Self { slots: Box::new([0; SCALE as usize]) }
    }
}

impl Decoder {
    /// Fills `out` with the symbols of a stored form. `None`: it is none, or one of another length.
    pub(super) fn decode_into(&mut self, stored: &[u8], out: &mut [u8]) -> Option<()> {
        let mut input = Input::new(stored);
        self.read_table(&mut input)?;
        let mut states = [0_u32; LANES];
        for state in &mut states {
            *state = u32::from_le_bytes(input.array()?);
        }
        let (mut words, odd) = input.rest().as_chunks::<2>();
        let (groups, rest) = out.as_chunks_mut::<LANES>();
        // The scalar loop below does what vectors leave, which without AVX2 is all.
        #[cfg(target_arch = "x86_64")]
        let (done, used) = avx2::decode_groups(&self.slots, &mut states, words, groups).unwrap_or_default();
        #[cfg(not(target_arch = "x86_64"))]
        let (done, used) = (0, 0);
        words = words.get(used..)?;
        for group in groups.iter_mut().skip(done) {
            words = decode_group(&self.slots, &mut states, words, group)?;
        }
        for (state, symbol) in states.iter_mut().zip(rest) {
            *symbol = self.slots.step(state, &mut words)?;
        }
        let whole = odd.is_empty() && words.is_empty() && states == [STATE_MIN; LANES];
        whole.then_some(())
    }

    fn read_table(&mut self, input: &mut Input<'_>) -> Option<()> {
        let symbols = usize::from(input.u8()?) + 1;
        let mut slots = &mut self.slots[..];
        let mut symbol = 0_u8;
        for number in 0..symbols {
            let gap = input.u8()?;
            if gap == 0 && number > 0 {
                return None;
            }
            symbol = symbol.checked_add(gap)?;
            // A symbol that fills the table has no place in 12 bits; such a section is one byte repeated.
            let frequency = u32::try_from(input.varint()?).ok().filter(|less| *less < SLOT_MASK)? + 1;
            let (own, others) = slots.split_at_mut_checked(frequency as usize)?;
            let head = u32::from(symbol) << 24 | frequency << FREQUENCY_BITS;
            own.iter_mut().zip(head..).for_each(|(slot, entry)| *slot = entry);
            slots = others;
        }
        slots.is_empty().then_some(())
    }
}

/// Sixteen symbols, one a lane; the words that are left.
#[inline]
fn decode_group<'a>(
    slots: &[u32; SCALE as usize],
    states: &mut [u32; LANES],
    mut words: &'a [[u8; 2]],
    group: &mut [u8; LANES],
) -> Option<&'a [[u8; 2]]> {
    let Some(window) = words.first_chunk::<LANES>() else {
        // Slow path: near the end each word is looked for.
        for (state, symbol) in states.iter_mut().zip(group) {
            *symbol = slots.step(state, &mut words)?;
        }
        return Some(words);
    };
    let mut taken = 0_usize;
    for (state, symbol) in states.iter_mut().zip(group) {
        let (found, next) = slots.look_up(*state);
        *symbol = found;
        let is_low = next < STATE_MIN;
        let word = u32::from(u16::from_le_bytes(window.get(taken % LANES).copied().unwrap_or_default()));
        *state = if is_low { next << 16 | word } else { next };
        taken += usize::from(is_low);
    }
    words.get(taken..)
}

/// One step of a lane.
trait Slots {
    fn look_up(&self, state: u32) -> (u8, u32);

    fn step(&self, state: &mut u32, words: &mut &[[u8; 2]]) -> Option<u8>;
}

impl Slots for [u32; SCALE as usize] {
    /// The symbol, and the state after it, which may lack a word. No state overflows: (2¹² − 1) × 2²⁰ + 2¹² < 2³².
    #[inline]
    #[expect(clippy::indexing_slicing, reason = "the mask keeps the slot below 4096")]
    fn look_up(&self, state: u32) -> (u8, u32) {
        let entry = self[(state & SLOT_MASK) as usize];
        let next = ((entry >> FREQUENCY_BITS) & SLOT_MASK) * (state >> FREQUENCY_BITS) + (entry & SLOT_MASK);
        (low_byte(u64::from(entry >> 24)), next)
    }

    #[inline]
    fn step(&self, state: &mut u32, words: &mut &[[u8; 2]]) -> Option<u8> {
        let (symbol, next) = self.look_up(*state);
        *state = next;
        if next < STATE_MIN {
            let (word, rest) = words.split_first()?;
            *state = next << 16 | u32::from(u16::from_le_bytes(*word));
            *words = rest;
        }
        Some(symbol)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn stored(bytes: &[u8]) -> Option<Vec<u8>> {
        let mut out = Vec::new();
        encode_into(bytes, &Frequencies::of(&count(bytes))?, &mut Vec::new(), &mut out);
        Some(out)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(128))]
        #[test]
        fn symbols_are_read_as_written(
            bytes in prop_oneof![
                proptest::collection::vec(any::<u8>(), 2..700),
                proptest::collection::vec(prop_oneof![20 => Just(3_u8), 1 => any::<u8>()], 2..5000),
            ],
            cut in any::<prop::sample::Index>(),
        ) {
            let Some(stored) = stored(&bytes) else { return Ok(()) };
            let mut out = vec![0; bytes.len()];
            prop_assert!(Decoder::default().decode_into(&stored, &mut out).is_some());
            prop_assert_eq!(&out, &bytes);
            prop_assert!(Decoder::default().decode_into(&stored[..cut.index(stored.len())], &mut out).is_none());
        }
    }

    #[test]
    fn vectors_and_their_scalar_twin_give_the_same() {
        let bytes: Vec<u8> = (0..5000_u32).map(|n| low_byte(u64::from(n * n % 251 * (n % 3)))).collect();
        let stored = stored(&bytes).unwrap();
        let mut decoder = Decoder::default();
        let (mut by_vectors, mut by_scalars) = (vec![0; bytes.len()], vec![0; bytes.len()]);
        decoder.decode_into(&stored, &mut by_vectors).unwrap();
        let mut input = Input::new(&stored);
        decoder.read_table(&mut input).unwrap();
        let mut states = [0; LANES].map(|_: u32| u32::from_le_bytes(input.array().unwrap()));
        let mut words = input.rest().as_chunks::<2>().0;
        let (groups, _) = by_scalars.as_chunks_mut::<LANES>();
        for group in groups {
            words = decode_group(&decoder.slots, &mut states, words, group).unwrap();
        }
        assert_eq!(by_scalars[..4992], by_vectors[..4992]);
        assert_eq!(by_vectors, bytes);
    }

    #[test]
    fn rare_symbols_keep_a_frequency_beside_a_frequent_one() {
        let mut counts = [1; 256];
        counts[7] = 1_000_000;
        let frequencies = Frequencies::of(&counts).unwrap();
        assert_eq!(frequencies.0.iter().sum::<u32>(), SCALE);
        assert!(frequencies.0.iter().all(|frequency| *frequency >= 1));
    }
}
