use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use basalt_store::{CellKind, SeqNo, Timestamp};

use super::super::super::runs::Run;
use super::super::{Ends, NewEntry, Slot};
use super::*;
use crate::id::FamilyId;
use crate::io::{Rng, SplitMix};
use crate::mutation::LoggedCell;

/// A cell's address and number, such that they sort as cells do.
type Key = (Vec<u8>, Reverse<u64>, Reverse<u8>, Reverse<u64>);

/// A row beside what it should hold.
#[derive(Debug, Default)]
struct Checked {
    slot: Option<Slot>,
    expected: BTreeMap<Key, Vec<u8>>,
}

fn key(qualifier: &[u8], time: u64, kind: CellKind, sequence: u64) -> Key {
    (qualifier.to_vec(), Reverse(time), Reverse(kind.code()), Reverse(sequence))
}

fn below(bound: usize, rng: &mut SplitMix) -> usize {
    usize::try_from(rng.below(bound as u64)).unwrap()
}

fn put(number: u64) -> Key {
    key(&u16::try_from(number).unwrap().to_be_bytes(), 7, CellKind::Put, 9)
}

fn new_entry(key: &Key, value: &[u8], arena: &mut Arena) -> NewEntry {
    let (qualifier, Reverse(time), Reverse(kind), Reverse(sequence)) = key;
    let kinds = [CellKind::Put, CellKind::DeleteColumn];
    let kind = kinds.into_iter().find(|one| one.code() == *kind).unwrap();
    let cell = LoggedCell { family: FamilyId(1), kind, timestamp: Timestamp(*time), qualifier, value };
    NewEntry::keep(&cell, SeqNo(*sequence), arena).0
}

impl Checked {
    fn insert(&mut self, key: Key, value: &[u8], runs: &mut Runs, arena: &mut Arena) {
        let new = new_entry(&key, value, arena);
        match &mut self.slot {
            Some(slot) => slot.insert(new, runs, arena),
            None => self.slot = Some(Slot::One(new.entry())),
        }
        self.expected.insert(key, value.to_vec());
    }

    fn row(&self) -> &RowRuns {
        match &self.slot {
            Some(Slot::Many(row)) => row,
            other => panic!("{other:?}"),
        }
    }

    /// Whether all are puts, of one version each, and of one length up to four; or it is a single put.
    fn is_plain(&self) -> bool {
        let qualifiers: BTreeSet<_> = self.expected.keys().map(|(qualifier, ..)| qualifier).collect();
        let lengths: BTreeSet<_> = qualifiers.iter().map(|qualifier| qualifier.len()).collect();
        let are_puts = self.expected.keys().all(|(_, _, kind, _)| kind.0 == CellKind::Put.code());
        let are_short = lengths.len() == 1 && (1..=4).contains(lengths.first().unwrap());
        are_puts && (self.expected.len() == 1 || are_short && qualifiers.len() == self.expected.len())
    }

    /// Compares all that readers see, and some of what they see from a column on.
    fn check(&self, rng: &mut SplitMix, runs: &Runs, arena: &Arena) {
        let Some(slot) = &self.slot else { return };
        let held = |entry: &Entry| {
            let ((qualifier, value), (time, sequence)) = (entry.bytes(arena), entry.stamped(arena));
            (key(qualifier, time.0, entry.kind, sequence.0), value.to_vec())
        };
        let expected: Vec<_> = self.expected.iter().map(|(key, value)| (key.clone(), value.clone())).collect();
        let found: Vec<_> = slot.cells_from(runs, |_| Ordering::Greater).map(held).collect();
        assert_eq!((found == expected, slot.len()), (true, expected.len()));
        for _ in 0..3 {
            let at = below(expected.len(), rng);
            let column = &expected[at].0.0;
            let found: Vec<_> = slot.cells_from(runs, |entry| entry.bytes(arena).0.cmp(column)).map(held).collect();
            let from = expected.partition_point(|(key, _)| &key.0 < column);
            assert!(found == expected[from..], "from {column:?}");
        }
        let is_plain = self.is_plain();
        assert_eq!(slot.is_plain(), is_plain, "{:?}", self.expected.keys());
        let ends = slot
            .ends_if_plain(runs)
            .map(|Ends { first, before_last, last }| [Some(first), before_last, Some(last)].map(|end| end.map(held)));
        let expected_ends = [expected.first(), expected.iter().nth_back(1), expected.last()];
        assert_eq!(ends, is_plain.then_some(expected_ends.map(Option::<&_>::cloned)));
    }
}

/// Rows that share their memory, each by stretches up, down, here and there, and of versions of one column; some cells come
/// once more just as they were, with another value. Qualifiers are of none to 14 bytes: in entries and not, as marks and not.
#[test]
fn late_cells_lie_as_in_a_sorted_map() {
    for seed in 0..60_usize {
        let (mut rng, mut runs, mut arena) = (SplitMix::new(seed as u64), Runs::default(), Arena::default());
        let (columns, lengths) = (10 << (seed % 7), [&[2][..], &[2, 4], &[5, 6, 4], &[0, 1, 3, 14]][seed % 4]);
        let mut rows = [(); 3].map(|()| Checked::default());
        let (mut numbers, mut sequence) = ([0_u64; 3], 0);
        for _ in 0..60 {
            let chosen = below(3, &mut rng);
            let (row, number) = (&mut rows[chosen], &mut numbers[chosen]);
            let (way, is_one_change) = (rng.below(5), rng.chance(1, 2));
            for _ in 0..=rng.below(90) {
                sequence += u64::from(!is_one_change);
                *number = match way {
                    0 | 1 => *number + 1,
                    2 => *number + columns - 1,
                    3 => rng.below(columns),
                    _ => *number,
                } % columns;
                let length = lengths[usize::try_from(*number).unwrap() % lengths.len()];
                let qualifier = [&number.to_be_bytes()[6..], &[7; 12]].concat()[..length].to_vec();
                let time = if is_one_change { 1000 } else { rng.below(3) + sequence / 50 };
                let kind = if rng.chance(1, 50) { CellKind::DeleteColumn } else { CellKind::Put };
                let value = rng.next_u64().to_be_bytes();
                row.insert(key(&qualifier, time, kind, sequence), &value, &mut runs, &mut arena);
                if rng.chance(1, 20) {
                    let at = below(row.expected.len(), &mut rng);
                    let again = row.expected.keys().nth(at).unwrap().clone();
                    row.insert(again, b"again", &mut runs, &mut arena);
                }
            }
        }
        for row in &rows {
            row.check(&mut rng, &runs, &arena);
        }
    }
}

/// Numbers below `count`, each once, by stretches of up to `longest` that ascend or descend.
fn stretches(rng: &mut SplitMix, count: u64, longest: u64) -> Vec<u64> {
    let (mut begins, mut all) = (vec![0], Vec::new());
    while begins.last().is_some_and(|last| *last < count) {
        begins.push((begins[begins.len() - 1] + 1 + rng.below(longest)).min(count));
    }
    let mut pairs: Vec<_> = begins.windows(2).map(|pair| pair[0]..pair[1]).collect();
    while !pairs.is_empty() {
        let stretch = pairs.swap_remove(below(pairs.len(), rng));
        if rng.chance(1, 3) { all.extend(stretch.rev()) } else { all.extend(stretch) }
    }
    all
}

/// Points that come once each in whatever order are plain; one version, other length or tombstone among them and they are not.
#[test]
fn rows_of_late_points_are_plain_until_one_is_not() {
    let (mut plain, mut other) = (0, 0);
    for seed in 0..400 {
        let (mut rng, mut runs, mut arena) = (SplitMix::new(seed), Runs::default(), Arena::default());
        let (count, longest) = (2 + rng.below(600), 1 + rng.below(100));
        let mut row = Checked::default();
        let numbers = stretches(&mut rng, count, longest);
        let spoiled = below(2 * numbers.len(), &mut rng);
        for (index, number) in numbers.iter().enumerate() {
            row.insert(put(2 * number), b"v", &mut runs, &mut arena);
            if index == spoiled {
                let number = u16::try_from(2 * numbers[below(index + 1, &mut rng)]).unwrap();
                let (same, next) = (number.to_be_bytes(), (number + 1).to_be_bytes());
                let spoiler = match rng.below(4) {
                    0 => key(&same, 6 + 2 * rng.below(2), CellKind::Put, 9),
                    1 => key(&[&same[..], b"1"].concat(), 7, CellKind::Put, 9),
                    2 => key(&next, 7, CellKind::DeleteColumn, 9),
                    _ => key(&same, 7, CellKind::Put, 10 - 2 * rng.below(2)),
                };
                row.insert(spoiler, b"v", &mut runs, &mut arena);
            }
        }
        row.check(&mut rng, &runs, &arena);
        *(if row.is_plain() { &mut plain } else { &mut other }) += 1;
    }
    assert!(plain > 100 && other > 100, "{plain} and {other}");
}

/// What comes again, behind newer ones, into gaps or backwards: each is found beside the one before it, and runs stay short and
/// have little room to spare.
#[test]
fn late_cells_in_order_are_found_at_once_and_fill_their_runs() {
    let again = |times: u64| (0..times).flat_map(|time| (0..600).map(move |number| (number, time))).collect();
    let once = |numbers: Vec<u64>| numbers.into_iter().map(|number| (number, 0)).collect();
    let gaps = || [0, 200, 400].into_iter().flat_map(|gap| gap + 10..gap + 150);
    let all = || 0..600_u64;
    let kept = || all().filter(|number| !gaps().any(|gap| gap == *number));
    let ways: [(&str, Vec<(u64, u64)>); 7] = [
        ("twice", again(2)),
        ("five times", again(5)),
        ("behind newer ones", once((300..600).chain(0..300).collect())),
        ("backwards", once(all().rev().collect())),
        ("into gaps", once(kept().chain(gaps()).collect())),
        ("into gaps backwards", once(kept().chain(gaps().rev()).collect())),
        // Runs of 4, 8, 16, 32 and 32 end where the gap begins.
        ("between two runs backwards", once((0..92).chain(232..600).chain((92..232).rev()).collect())),
    ];
    for (way, cells) in ways {
        let (mut runs, mut arena, mut row, mut sought) = (Runs::default(), Arena::default(), Checked::default(), 0);
        for (number, time) in cells {
            let (qualifier, Reverse(seven), kind, sequence) = put(number);
            let key = (qualifier, Reverse(seven + time), kind, sequence);
            if let Some(Slot::Many(row)) = &row.slot {
                let entry = new_entry(&key, b"v", &mut arena).entry();
                let late = Latecomer { entry, mark: entry.mark(), arena: &arena };
                let is_late = runs.last(row.last).is_some_and(|last| !late.is_behind(last));
                sought += usize::from(is_late && row.find_near(&late, &runs).is_none());
            }
            row.insert(key, b"v", &mut runs, &mut arena);
        }
        row.check(&mut SplitMix::new(1), &runs, &arena);
        assert!(sought <= 5, "{way}: {sought} are looked for in the whole row");
        let (longest, room) =
            row.row().runs().fold((0, 0), |(longest, room), run| (run.len().max(longest), room + run.room()));
        assert!(longest <= APPENDED_CELLS_MAX, "{way}: a run of {longest}");
        assert!(room * 5 <= row.expected.len() * 8, "{way}: room for {room}, and {}", row.expected.len());
    }
}

/// A counter's row, where each version comes before the others, and one of columns in no order: longer ones have longer runs.
#[test]
fn long_rows_have_longer_runs() {
    for is_counter in [true, false] {
        let (mut rng, mut runs, mut arena) = (SplitMix::new(1), Runs::default(), Arena::default());
        let mut row = Checked::default();
        for number in 0..60_000_u64 {
            let qualifier = if is_counter { 7 } else { u32::try_from(rng.below(1 << 30)).unwrap() };
            let key = key(&qualifier.to_be_bytes(), number, CellKind::Put, number);
            row.insert(key, b"v", &mut runs, &mut arena);
        }
        row.check(&mut rng, &runs, &arena);
        let longest = row.row().runs().map(Run::len).max().unwrap();
        assert!(longest > APPENDED_CELLS_MAX && longest <= RUN_CELLS_MAX, "{longest}");
        assert!(row.row().before().len() < 2 * SHORT_RUNS_MAX);
    }
}

/// Prints what a point takes by how its row's points come, in 5,000 rows of 600 at once, by stretches:
/// `cargo test -p basalt-engine --release --lib -- --ignored what_late_points_take --nocapture`.
#[test]
#[ignore = "a measurement, not a check"]
fn what_late_points_take() {
    let mut any = (0..600).collect::<Vec<u64>>();
    let mut rng = SplitMix::new(1);
    (1..600).for_each(|at| any.swap(at, below(at + 1, &mut rng)));
    let tenth_is_late = |at: u64| if at % 10 == 3 && at > 10 { at - 10 } else { at };
    let ways: [(&str, usize, Vec<u64>); 6] = [
        ("in order, then four times again", 600, (0..5).flat_map(|_| 0..600).collect()),
        ("the newer half, then the older one", 300, (300..600).chain(0..300).collect()),
        ("every second one, then the others", 300, (0..600).step_by(2).chain((1..600).step_by(2)).collect()),
        ("backwards", 600, (0..600).rev().collect()),
        ("every tenth ten late", 600, (0..600).map(tenth_is_late).collect()),
        ("in no order", 600, any),
    ];
    for (way, stretch, numbers) in ways {
        let (mut runs, mut arena, mut time) = (Runs::default(), Arena::default(), 0);
        let mut rows: Vec<Option<Slot>> = (0..5000).map(|_| None).collect();
        for stretch in numbers.chunks(stretch) {
            let begun = std::time::Instant::now();
            for number in stretch {
                time += 1;
                let qualifier = u16::try_from(*number).unwrap().to_be_bytes();
                let key = key(&qualifier, time, CellKind::Put, time);
                for row in &mut rows {
                    let new = new_entry(&key, b"v", &mut arena);
                    match row {
                        Some(slot) => slot.insert(new, &mut runs, &arena),
                        None => *row = Some(Slot::One(new.entry())),
                    }
                }
            }
            println!("{way}: {} ns", begun.elapsed().as_nanos() / (stretch.len() * rows.len()) as u128);
        }
    }
}
