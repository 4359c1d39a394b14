//! The rows of a history: what is put into them, what was asked of them, and what they hold.

use std::collections::BTreeMap;

use basalt_store::{FamilyDescriptor, MutationBatch, Scan, Store, TableDescriptor, TableName};

use super::told::Told;
use super::{appended, by_value, folded};
use crate::Engine;

const FAMILIES: [&[u8]; 2] = [b"f", b"g"];
/// A value begins with its number.
const NUMBER_BYTES: usize = 8;

/// What was asked of one row, in order: the value it then has, or none after a delete.
#[derive(Debug, Default)]
pub(super) struct RowLedger {
    /// The same for the family whose rows are folded,
    pub(super) folded: folded::Ledger,
    /// for the append cell in it,
    pub(super) appended: appended::Ledger,
    /// and for the family whose rows are folded by value.
    by_value: by_value::Ledger,
    asked: Vec<Option<u64>>,
    /// At least this many of them took effect, whatever happens.
    pub(super) floor: usize,
    /// At least this many of them were seen in this life.
    seen: usize,
    /// What else was seen last in this life.
    last: Option<(by_value::Numbers, Vec<u64>)>,
}

impl RowLedger {
    /// A change puts a value, or deletes what was; answers how many changes the row has had with this one.
    pub(super) fn ask(&mut self, change: u64, asked: Option<u64>) -> usize {
        self.asked.push(asked);
        self.folded.ask(change, asked);
        match asked {
            Some(number) => self.by_value.ask(change, by_value::Put::of(number)),
            None => self.appended.ask(change, None),
        }
        self.asked.len()
    }

    /// The first so many changes took effect, the last of them of this number, whatever happens.
    pub(super) fn is_sure(&mut self, count: usize, change: u64) {
        self.floor = self.floor.max(count);
        self.folded.is_sure(change);
        self.appended.is_sure(change, Vec::new());
        self.by_value.is_sure(change);
    }

    /// The row holds what one of the changes from the floor on left there, and none from before what was seen.
    pub(super) fn see(&mut self, row: &Row) -> Told {
        let value = match &*row.values {
            [] => None,
            [f, g] if f == g => number(f),
            _ => return Err("two values".to_owned()),
        };
        let from = self.floor.max(self.seen);
        let states = std::iter::once(None).chain(self.asked.iter().copied());
        let state = states.enumerate().skip(from).find(|(_, state)| *state == value);
        let (count, _) = state.ok_or_else(|| format!("{value:?}, not one of {:?} from {from} on", self.asked))?;
        self.seen = count;
        self.folded.see(&row.folded.numbers())?;
        self.appended.see(&row.appended)?;
        self.by_value.see(&row.by_value())?;
        self.last = Some((row.by_value(), row.appended.clone()));
        Ok(())
    }

    /// What was seen is there for good.
    pub(super) fn keep(&mut self) {
        self.floor = self.floor.max(self.seen);
        self.folded.keep();
        if let Some((numbers, appended)) = self.last.take() {
            self.by_value.keep(&numbers);
            self.appended.keep(appended);
        }
    }

    /// Nothing is seen yet of what a new life shows.
    pub(super) fn forget(&mut self) {
        self.seen = 0;
        self.last = None;
        self.folded.forget();
    }
}

/// The table of every history.
pub(super) fn table(name: TableName) -> TableDescriptor {
    let families = vec![
        FamilyDescriptor::new("f"),
        FamilyDescriptor::new("g").with_versions(3),
        folded::family(),
        by_value::family(),
    ];
    TableDescriptor::new(name, families)
}

/// Puts one value into all families of a row, or deletes those that tell when it was written.
pub(super) fn change(
    batch: &mut MutationBatch,
    key: &str,
    asked: Option<u64>,
    padding: u64,
) -> basalt_store::Result<()> {
    let mut changes = batch.row(key.as_bytes())?;
    let Some(number) = asked else {
        for family in FAMILIES.into_iter().chain([folded::FAMILY]) {
            changes.delete_family(family, None)?;
        }
        return Ok(());
    };
    let mut value = number.to_be_bytes().to_vec();
    value.resize(NUMBER_BYTES + usize::try_from(padding).unwrap_or(0), 7);
    for family in FAMILIES {
        changes.put(family, b"v", None, &value)?;
    }
    changes.put(folded::FAMILY, &[folded::column_of(number)], None, &number.to_be_bytes())?;
    by_value::Put::of(number).put(&mut changes)
}

pub(super) fn number(value: &[u8]) -> Option<u64> {
    value.first_chunk().map(|first| u64::from_be_bytes(*first))
}

/// A row: the values of its cells, and the cells of the families that are folded.
#[derive(Debug, Default)]
pub(super) struct Row {
    pub(super) values: Vec<Vec<u8>>,
    pub(super) folded: folded::Cells,
    appended: Vec<u64>,
    /// Qualifiers and values.
    by_value: Vec<(Vec<u8>, Vec<u8>)>,
}

impl Row {
    fn by_value(&self) -> by_value::Numbers {
        by_value::largest(self.by_value.iter().map(|(qualifier, value)| (&**qualifier, &**value)))
    }
}

impl PartialEq for Row {
    /// Whether they hold the same, however it is folded.
    fn eq(&self, other: &Self) -> bool {
        let is_folded_alike = self.folded.numbers() == other.folded.numbers() && self.by_value() == other.by_value();
        self.values == other.values && self.appended == other.appended && is_folded_alike
    }
}

/// Rows by their keys.
pub(super) type Content = BTreeMap<String, Row>;

pub(super) fn read_all(engine: &Engine, table: &TableName) -> basalt_store::Result<Content> {
    let mut scanner = engine.scan(table, Scan::all())?;
    let mut found = Content::new();
    while let Some(batch) = scanner.next_wait() {
        for row in batch?.rows() {
            let mut content = Row::default();
            for cell in row.cells() {
                let (qualifier, value) = (cell.qualifier.to_vec(), cell.value.to_vec());
                match cell.family {
                    folded::FAMILY if qualifier == folded::APPENDED => content.appended = appended::numbers(&value),
                    folded::FAMILY => content.folded.0.push((qualifier, value, cell.timestamp)),
                    by_value::FAMILY => content.by_value.push((qualifier, value)),
                    _ => content.values.push(value),
                }
            }
            found.insert(String::from_utf8_lossy(row.key()).into_owned(), content);
        }
    }
    Ok(found)
}
