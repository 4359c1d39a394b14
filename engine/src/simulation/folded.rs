//! The family of a history whose rows are folded, as a schema folds the points of an hour: four columns with a number each, of which a
//! flush or a compaction makes one cell. A row with an append cell is not folded.

use std::collections::BTreeMap;

use basalt_store::{FamilyDescriptor, Fold, FoldedRow, Result, RowBuilder, RowPut, Timestamp};

/// The family.
pub(super) const FAMILY: &[u8] = b"h";

/// The column of the append cell: a row that has one is not folded.
pub(super) const APPENDED: &[u8] = b"+";

/// Its other columns. A folded cell bears those that it holds, one behind the other.
const COLUMNS: [u8; 4] = *b"0123";

pub(super) const NUMBER_BYTES: usize = size_of::<u64>();

/// The numbers of a row by their columns.
pub(super) type Numbers = BTreeMap<u8, u64>;

pub(super) fn family() -> FamilyDescriptor {
    FamilyDescriptor { fold: Some(Columns.name().into()), ..FamilyDescriptor::new("h") }
}

/// The column that a number is put into.
pub(super) fn column_of(number: u64) -> u8 {
    let [zero, one, two, three] = COLUMNS;
    match number % 4 {
        0 => zero,
        1 => one,
        2 => two,
        _ => three,
    }
}

/// Joins a row's cells; the newest number of a column stays.
#[derive(Debug)]
pub(super) struct Columns;

impl Fold for Columns {
    fn name(&self) -> &'static str {
        "columns"
    }

    fn fold(&self, puts: &[RowPut<'_>], out: &mut FoldedRow) -> bool {
        let [_, _, ..] = puts else { return false };
        if puts.iter().any(|put| put.qualifier == APPENDED) {
            return false;
        }
        let newest = newest(puts.iter().map(|put| (put.qualifier, put.value, (put.timestamp, put.seq))));
        let qualifier: Vec<u8> = newest.keys().copied().collect();
        let value: Vec<u8> = newest.values().flat_map(|(_, number)| number.to_be_bytes()).collect();
        let timestamp = puts.iter().map(|put| put.timestamp).max().unwrap_or_default();
        let seq = puts.iter().map(|put| put.seq).max().unwrap_or_default();
        out.push(RowPut { qualifier: &qualifier, timestamp, seq, value: &value });
        true
    }
}

/// The newest number of each column, with its age; of one age the number that was drawn later.
fn newest<'c, A: Ord + Copy>(cells: impl Iterator<Item = (&'c [u8], &'c [u8], A)>) -> BTreeMap<u8, (A, u64)> {
    let mut newest: BTreeMap<u8, (A, u64)> = BTreeMap::new();
    for (qualifier, value, age) in cells {
        let (numbers, _) = value.as_chunks::<NUMBER_BYTES>();
        for (column, number) in qualifier.iter().zip(numbers) {
            let found = (age, u64::from_be_bytes(*number));
            newest.entry(*column).and_modify(|newest| *newest = found.max(*newest)).or_insert(found);
        }
    }
    newest
}

/// The cells of a row as they lie in the store: qualifier, value and time.
#[derive(Debug, Default)]
pub(super) struct Cells(pub(super) Vec<(Vec<u8>, Vec<u8>, Timestamp)>);

impl Cells {
    /// What they hold, however they are folded.
    pub(super) fn numbers(&self) -> Numbers {
        let cells = self.0.iter().map(|(qualifier, value, time)| (&**qualifier, &**value, *time));
        newest(cells).into_iter().map(|(column, (_, number))| (column, number)).collect()
    }

    /// Takes a column out of a row: the cells go that hold it, and what else they hold is put again.
    ///
    /// # Errors
    /// Those of the mutation.
    pub(super) fn delete(&self, column: u8, changes: &mut RowBuilder<'_>) -> Result<()> {
        let (mut others, numbers) = (Vec::new(), self.numbers());
        for (qualifier, ..) in self.0.iter().filter(|(qualifier, ..)| qualifier.contains(&column)) {
            changes.delete_column(FAMILY, qualifier, None)?;
            others.extend(qualifier.iter().filter(|other| **other != column));
        }
        others.sort_unstable();
        others.dedup();
        for other in others {
            if let Some(number) = numbers.get(other) {
                changes.put(FAMILY, &[*other], None, &number.to_be_bytes())?;
            }
        }
        Ok(())
    }
}

/// What a column may hold: what the last change that surely took effect left there, or any after it. Each with its change.
type Possible = Vec<(u64, Option<u64>)>;

/// What was asked of the columns of a row.
#[derive(Debug)]
pub(super) struct Ledger {
    columns: BTreeMap<u8, Possible>,
    /// What was seen last in this life.
    seen: Option<Numbers>,
}

impl Default for Ledger {
    fn default() -> Self {
        Self { columns: COLUMNS.iter().map(|column| (*column, vec![(0, None)])).collect(), seen: None }
    }
}

impl Ledger {
    /// A change puts a number into its column, or deletes all.
    pub(super) fn ask(&mut self, change: u64, asked: Option<u64>) {
        let only = asked.map(column_of);
        for (column, possible) in &mut self.columns {
            if only.is_none_or(|only| only == *column) {
                possible.push((change, asked));
            }
        }
    }

    /// A change deletes one column.
    pub(super) fn ask_delete(&mut self, change: u64, column: u8) {
        self.columns.entry(column).or_default().push((change, None));
    }

    /// A change took effect, whatever happens: what was before it is over.
    pub(super) fn is_sure(&mut self, change: u64) {
        for possible in self.columns.values_mut() {
            if let Some(at) = possible.iter().position(|(asked, _)| *asked == change) {
                possible.drain(..at);
            }
        }
    }

    /// Each column holds what it may.
    ///
    /// # Errors
    /// One that does not, in words.
    pub(super) fn see(&mut self, found: &Numbers) -> std::result::Result<(), String> {
        for (column, possible) in &self.columns {
            let number = found.get(column).copied();
            if possible.iter().all(|(_, asked)| *asked != number) {
                return Err(format!("{number:?} in column {column}, not one of {possible:?}"));
            }
        }
        self.seen = Some(found.clone());
        Ok(())
    }

    /// What was seen is there for good.
    pub(super) fn keep(&mut self) {
        let Some(seen) = &self.seen else { return };
        for (column, possible) in &mut self.columns {
            *possible = vec![(0, seen.get(column).copied())];
        }
    }

    /// Nothing is seen yet of what a new life shows.
    pub(super) fn forget(&mut self) {
        self.seen = None;
    }
}
