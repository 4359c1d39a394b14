//! The operations of a history, and the seeded choice of the next.

use bytes::Bytes;

use crate::{
    CellKind, Columns, Compaction, Comparison, FamilyColumns, Filter, Get, ListOperator, RowRange, Scan, TimeRange,
    Timestamp,
};

const ROWS: [&str; 6] = ["r0", "r1", "r2", "r3", "r4", "r5"];
const QUALIFIERS: [&str; 4] = ["", "p", "pq", "z"];
const VALUES: [&str; 4] = ["", "x", "y", "zz"];

/// One column of one row.
#[derive(Debug, Clone)]
pub(super) struct Target {
    pub(super) row: &'static str,
    /// `family:qualifier`, or a family.
    pub(super) column: String,
}

impl Target {
    /// Row, family and qualifier.
    pub(super) fn bytes(&self) -> (Bytes, Bytes, Bytes) {
        let (family, qualifier) = self.column.split_once(':').unwrap_or((&self.column, ""));
        let [family, qualifier] = [family, qualifier].map(|name| Bytes::copy_from_slice(name.as_bytes()));
        (Bytes::from_static(self.row.as_bytes()), family, qualifier)
    }
}

/// A change of one column or family.
#[derive(Debug, Clone)]
pub(super) struct Edit {
    pub(super) target: Target,
    pub(super) kind: CellKind,
    pub(super) time: Option<u64>,
    pub(super) value: &'static str,
}

/// One step of a history.
#[derive(Debug, Clone)]
pub(super) enum Operation {
    Apply(Vec<Edit>),
    Increment(Target, i64),
    Append(Target, &'static str),
    Check { target: Target, comparison: Comparison, expected: Option<&'static str>, edits: Vec<Edit> },
    Get(Get),
    Scan(Scan),
    Flush,
    Compact(Compaction),
    Reopen,
}

/// Chooses operations, the same for the same seed.
pub(super) struct Generator {
    state: u64,
    /// Where the clock is to stand at the next operation.
    pub(super) now: u64,
}

impl Generator {
    pub(super) fn new(seed: u64, now: u64) -> Self {
        Self { state: seed, now }
    }

    /// The next operation; moves the clock on, or not.
    pub(super) fn next(&mut self) -> Operation {
        self.now += [0, 0, 1, 7, 900].get(self.below(5)).copied().unwrap_or(0);
        match self.below(100) {
            0..45 => {
                let count = 1 + self.below(4);
                Operation::Apply((0..count).map(|_| self.edit(None)).collect())
            }
            45..53 => {
                Operation::Increment(self.column("n"), [1, -3, 0, i64::MAX].get(self.below(4)).copied().unwrap_or(1))
            }
            53..58 => Operation::Append(self.column("s"), self.pick(&VALUES)),
            58..65 => self.check(),
            65..75 => Operation::Get(self.get()),
            75..88 => Operation::Scan(self.scan()),
            88..93 => Operation::Flush,
            93..96 => Operation::Compact(Compaction::Minor),
            96..98 => Operation::Compact(Compaction::Major),
            _ => Operation::Reopen,
        }
    }

    /// A number below `bound`, which is not 0. `SplitMix64`: Steele, Lea, Flood, "Fast splittable pseudorandom number
    /// generators", OOPSLA 2014.
    fn below(&mut self, bound: usize) -> usize {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        let spread = (z ^ (z >> 31)) >> 32;
        usize::try_from(spread).unwrap_or(0) % bound
    }

    fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        let index = self.below(from.len());
        from[index]
    }

    /// A column that counters or texts have for themselves.
    fn column(&mut self, qualifier: &str) -> Target {
        let family = self.pick(&["a", "v"]);
        Target { row: self.pick(&ROWS), column: format!("{family}:{qualifier}") }
    }

    fn edit(&mut self, row: Option<&'static str>) -> Edit {
        use CellKind::{Delete, DeleteColumn, DeleteFamily, DeleteFamilyVersion, Put};
        let row = row.unwrap_or_else(|| self.pick(&ROWS));
        // One unknown family in a while: its row is refused whole.
        let family = if self.below(200) == 0 { "x" } else { self.pick(&["a", "a", "k", "n", "n", "t", "v"]) };
        let kind = match self.below(20) {
            0..11 => Put,
            11..14 => Delete,
            14..17 => DeleteColumn,
            17..19 => DeleteFamily,
            // Where one version is kept an exact delete may show an older one or not.
            _ if family == "v" => DeleteFamily,
            _ => DeleteFamilyVersion,
        };
        let mut time = self.time(family);
        if family == "v" && kind == Delete {
            time = None;
        }
        if kind == DeleteFamilyVersion {
            time = time.or(Some(self.now));
        }
        let column = match kind {
            DeleteFamily | DeleteFamilyVersion => family.to_owned(),
            Put => format!("{family}:{}", self.pick(&QUALIFIERS)),
            Delete | DeleteColumn => format!("{family}:{}", self.pick(&["", "p", "pq", "z", "n", "s"])),
        };
        let value = if kind == Put { self.pick(&VALUES) } else { "" };
        Edit { target: Target { row, column }, kind, time, value }
    }

    /// A time of one's own, or none.
    fn time(&mut self, family: &str) -> Option<u64> {
        let own = match family {
            // Never below a tombstone that one store may have dropped and the other kept.
            "k" => return None,
            // Around the edge of TTL.
            "t" => self.now - 70_000 + self.below(80_000) as u64,
            _ => 1 + self.below(12) as u64,
        };
        (self.below(3) > 0).then_some(own)
    }

    fn check(&mut self) -> Operation {
        use Comparison::{Equal, Greater, GreaterOrEqual, Less, LessOrEqual, NotEqual};
        let row = self.pick(&ROWS);
        let family = self.pick(&["a", "k", "n", "t", "v"]);
        let column = format!("{family}:{}", self.pick(&QUALIFIERS));
        let count = 1 + self.below(2);
        Operation::Check {
            target: Target { row, column },
            comparison: self.pick(&[Less, LessOrEqual, Equal, NotEqual, GreaterOrEqual, Greater]),
            expected: if self.below(3) == 0 { None } else { Some(self.pick(&VALUES)) },
            edits: (0..count).map(|_| self.edit(Some(row))).collect(),
        }
    }

    fn get(&mut self) -> Get {
        let (columns, time_range) = self.cells_wanted();
        let rows = (0..=self.below(3)).map(|_| Bytes::from_static(self.pick(&ROWS).as_bytes())).collect();
        Get { columns, time_range, versions: self.pick(&[1, 2, u32::MAX]), filter: self.filter(), ..Get::rows(rows) }
    }

    fn scan(&mut self) -> Scan {
        let (columns, time_range) = self.cells_wanted();
        let mut ends = [self.pick(&["", "r0", "r1", "r2"]), self.pick(&["", "r2", "r3", "r9"])];
        let reversed = self.below(3) == 0;
        if reversed {
            ends.reverse();
        }
        let [start, stop] = ends;
        Scan {
            start_inclusive: self.below(4) > 0,
            stop_inclusive: self.below(4) == 0,
            columns,
            time_range,
            versions: self.pick(&[1, 2, u32::MAX]),
            limit_rows: self.pick(&[None, None, Some(2)]),
            batch_cells: self.pick(&[None, None, Some(2)]),
            reversed,
            filter: self.filter(),
            batch_bytes: self.pick(&[1, 64, 1 << 16]),
            ..Scan::range(start, stop)
        }
    }

    /// Columns and times; times only in families where no version is ever in excess, or excess is for good.
    fn cells_wanted(&mut self) -> (Columns, TimeRange) {
        let with_times = self.below(3) == 0;
        let from: &[&'static str] = if with_times { &["a", "k", "n", "t"] } else { &["a", "k", "n", "t", "v"] };
        let count = if with_times { 1 + self.below(2) } else { self.below(3) };
        let families = (0..count).map(|_| FamilyColumns {
            family: self.pick(from).into(),
            qualifiers: (0..self.below(3)).map(|_| self.pick(&["", "p", "pq", "n", "none"]).into()).collect(),
        });
        let columns = Columns(families.collect());
        let min = [1, 5, self.now - 65_000, self.now - 5000].get(self.below(4)).copied().unwrap_or(0);
        let max = min + [1, 6, 3000, 70_000].get(self.below(4)).copied().unwrap_or(1);
        let range = TimeRange { min: Timestamp(min), max: Timestamp(max) };
        (columns, if with_times { range } else { TimeRange::ALL })
    }

    fn filter(&mut self) -> Option<Filter> {
        let leaf = |n| match n {
            0 => Filter::KeyOnly,
            1 => Filter::FirstKeyOnly,
            2 => Filter::Prefix("r1".into()),
            3 => Filter::ColumnPrefix("p".into()),
            _ => {
                let range =
                    |start: &'static str, stop: &'static str| RowRange { start: start.into(), stop: stop.into() };
                Filter::MultiRowRange(vec![range("r0", "r1"), range("r3", "r5")])
            }
        };
        match self.below(10) {
            n @ 0..5 => Some(leaf(n)),
            5 => {
                let operator = self.pick(&[ListOperator::All, ListOperator::One]);
                Some(Filter::List(operator, vec![leaf(self.below(5)), leaf(self.below(5))]))
            }
            _ => None,
        }
    }
}
