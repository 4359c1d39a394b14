//! The family of a history whose rows are folded by value, as a schema folds the points of tables whose cells bear the times of their
//! points: two instants with two columns each, of which the larger number is what a reader takes.
//!
//! Of two numbers of one column the later stays, whichever is larger, as long as the earlier is in no folded cell. When a row is folded is
//! nobody's business, so a ledger keeps every state that there may be; nothing but a put changes what is read.

use std::collections::{BTreeMap, BTreeSet};

use basalt_store::{FamilyDescriptor, Fold, FoldedRow, Result, RowBuilder, RowPut, Timestamp};

/// The family.
pub(super) const FAMILY: &[u8] = b"v";

const INSTANTS: [u8; 2] = *b"01";
/// The first byte of a column, by the width of what is in it. Its second is the instant.
const WIDTHS: [u8; 2] = *b"ab";
/// The first byte of a folded column. The others are its instants.
const FOLDED: u8 = b'=';

const NUMBER_BYTES: usize = size_of::<u64>();

/// The numbers of a row by their instants.
pub(super) type Numbers = BTreeMap<u8, u64>;

pub(super) fn family() -> FamilyDescriptor {
    FamilyDescriptor { fold: Some(Largest.name().into()), ..FamilyDescriptor::new("v") }
}

/// A number of one column.
#[derive(Debug, Clone, Copy)]
pub(super) struct Put {
    width: usize,
    instant: u8,
    number: u64,
}

impl Put {
    /// That of a change: one is not always larger than those before.
    pub(super) fn of(drawn: u64) -> Put {
        let [first, second] = INSTANTS;
        let instant = if drawn.is_multiple_of(2) { first } else { second };
        Put { width: usize::from((drawn / 2).is_multiple_of(3)), instant, number: drawn * 7919 % 1009 }
    }

    /// Adds it to a row, at the time of its instant.
    ///
    /// # Errors
    /// Those of the mutation.
    pub(super) fn put(self, changes: &mut RowBuilder<'_>) -> Result<()> {
        let Put { width, instant, number } = self;
        let column = [WIDTHS.get(width).copied().unwrap_or_default(), instant];
        changes.put(FAMILY, &column, Some(Timestamp(instant.into())), &number.to_be_bytes())?;
        Ok(())
    }
}

/// Joins a row's cells; the largest number of an instant stays.
#[derive(Debug)]
pub(super) struct Largest;

impl Fold for Largest {
    fn name(&self) -> &'static str {
        "largest"
    }

    fn needs_whole_rows(&self) -> bool {
        true
    }

    fn fold(&self, puts: &[RowPut<'_>], out: &mut FoldedRow) -> bool {
        let [_, _, ..] = puts else { return false };
        let numbers = largest(puts.iter().map(|put| (put.qualifier, put.value)));
        let qualifier: Vec<u8> = std::iter::once(FOLDED).chain(numbers.keys().copied()).collect();
        let value: Vec<u8> = numbers.values().flat_map(|number| number.to_be_bytes()).collect();
        let timestamp = puts.iter().map(|put| put.timestamp).max().unwrap_or_default();
        let seq = puts.iter().map(|put| put.seq).max().unwrap_or_default();
        out.push(RowPut { qualifier: &qualifier, timestamp, seq, value: &value });
        true
    }
}

/// What cells hold, however they are folded.
pub(super) fn largest<'c>(cells: impl Iterator<Item = (&'c [u8], &'c [u8])>) -> Numbers {
    let mut largest = Numbers::new();
    for (qualifier, value) in cells {
        let (numbers, _) = value.as_chunks::<NUMBER_BYTES>();
        for (instant, number) in qualifier.iter().skip(1).zip(numbers) {
            let number = u64::from_be_bytes(*number);
            largest.entry(*instant).and_modify(|largest| *largest = number.max(*largest)).or_insert(number);
        }
    }
    largest
}

/// What lies at an instant of a row: in a folded cell, and in columns.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
struct State {
    folded: Option<u64>,
    lone: [Option<u64>; WIDTHS.len()],
}

impl State {
    fn number(&self) -> Option<u64> {
        self.folded.into_iter().chain(self.lone.into_iter().flatten()).max()
    }

    fn with(mut self, put: Put) -> State {
        if let Some(lone) = self.lone.get_mut(put.width) {
            *lone = Some(put.number);
        }
        self
    }

    fn folded(&self) -> State {
        State { folded: self.number(), ..State::default() }
    }
}

/// What there may be at an instant, and the puts that may have come since, each with its change.
#[derive(Debug)]
struct Possible {
    states: BTreeSet<State>,
    since: Vec<(u64, Put)>,
}

impl Default for Possible {
    fn default() -> Self {
        Self { states: BTreeSet::from([State::default()]), since: Vec::new() }
    }
}

impl Possible {
    /// The states after one put, which each of them may be folded in.
    fn after(states: &BTreeSet<State>, put: Put) -> BTreeSet<State> {
        let after = states.iter().flat_map(|state| [state.with(put), state.folded().with(put)]);
        after.flat_map(|state| [state, state.folded()]).collect()
    }

    /// The states after so many of the puts, none of which is sure.
    fn after_some(&self, count: usize) -> BTreeSet<State> {
        let mut states = self.states.clone();
        for (_, put) in self.since.iter().take(count) {
            states.append(&mut Self::after(&states, *put));
        }
        states
    }

    fn is_sure(&mut self, change: u64) {
        let Some(at) = self.since.iter().position(|(asked, _)| *asked == change) else { return };
        let before = self.after_some(at);
        if let Some((_, put)) = self.since.drain(..=at).next_back() {
            self.states = Self::after(&before, put);
        }
    }
}

/// What was asked of the instants of a row.
#[derive(Debug, Default)]
pub(super) struct Ledger {
    instants: BTreeMap<u8, Possible>,
}

impl Ledger {
    /// A change puts a number.
    pub(super) fn ask(&mut self, change: u64, put: Put) {
        self.instants.entry(put.instant).or_default().since.push((change, put));
    }

    /// A change took effect, whatever happens.
    pub(super) fn is_sure(&mut self, change: u64) {
        self.instants.values_mut().for_each(|possible| possible.is_sure(change));
    }

    /// Each instant has a number that it may have; from then on no other, but by a put.
    ///
    /// # Errors
    /// One that does not, in words.
    pub(super) fn see(&mut self, found: &Numbers) -> std::result::Result<(), String> {
        for instant in INSTANTS {
            let possible = self.instants.entry(instant).or_default();
            let number = found.get(&instant).copied();
            let mut states = possible.after_some(possible.since.len());
            states.retain(|state| state.number() == number);
            if states.is_empty() {
                let Possible { states, since } = possible;
                return Err(format!("{number:?} at instant {instant}, not of {states:?} after some of {since:?}"));
            }
            if possible.since.is_empty() {
                possible.states = states;
            }
        }
        Ok(())
    }

    /// What is found is there for good.
    pub(super) fn keep(&mut self, found: &Numbers) {
        for (instant, possible) in &mut self.instants {
            let mut states = possible.after_some(possible.since.len());
            states.retain(|state| state.number() == found.get(instant).copied());
            *possible = Possible { states, since: Vec::new() };
        }
    }
}
