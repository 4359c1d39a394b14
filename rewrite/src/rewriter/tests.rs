//! Each step and each crash and race between two of them, on the memory store.

mod damaged;

use std::sync::Mutex;

use basalt_schema::{APPEND_QUALIFIER, Duplicates, RowCell, RowPoints, SchemaConfig, Tsuid};
use basalt_store::{ManualClock, MemoryStore, RowChange, Store, Trigger};

use self::damaged::DamagedStore;
use super::*;

/// 2023-11-14T22:00:00Z, the start of an hour.
const BASE: BaseTime = BaseTime::of_seconds(1_699_999_200);
const QUIET_S: u64 = 120;

/// A cell: qualifier, value, and when it was written, in seconds after the hour's start.
type Cell = (Vec<u8>, Vec<u8>, u64);

struct World {
    clock: Arc<ManualClock>,
    damaged: Arc<DamagedStore>,
    schema: Arc<Schema>,
    rewriter: Rewriter,
    tsuids: Vec<Tsuid>,
}

impl World {
    fn new() -> Self {
        Self::with(RewriteLimits { quiet_ms: QUIET_S * 1000, ..RewriteLimits::default() })
    }

    fn with(limits: RewriteLimits) -> Self {
        let clock = Arc::new(ManualClock::new(Timestamp(BASE.millis())));
        let store = MemoryStore::new(Arc::clone(&clock) as Arc<dyn Clock>);
        let store = store.with_triggers(["puts", "deletes"].map(|sort| Arc::new(Busy(sort)) as _).to_vec());
        let damaged = Arc::new(DamagedStore { store, row: Mutex::default() });
        let schema = Arc::new(Schema::open(Arc::clone(&damaged) as Arc<dyn Store>, SchemaConfig::default()).unwrap());
        let tsuids = ["a", "b", "c"].map(|host| schema.resolve("m", &[("host", host)]).unwrap()).to_vec();
        for tsuid in &tsuids {
            schema.index().add(tsuid).unwrap();
        }
        let rewriter = Rewriter::new(Arc::clone(&schema), Arc::clone(&clock) as Arc<dyn Clock>, limits);
        Self { clock, damaged, schema, rewriter, tsuids }
    }

    fn store(&self) -> &Arc<dyn Store> {
        self.schema.store()
    }

    /// Shows the clock so many seconds after the hour's start.
    fn at(&self, seconds: u64) -> &Self {
        self.clock.set(Timestamp(BASE.millis() + seconds * 1000));
        self
    }

    fn key(&self, series: usize) -> Vec<u8> {
        self.schema.layout().series_key(&self.tsuids[series]).row_key(BASE)
    }

    fn id(&self, series: usize) -> SeriesId {
        self.schema.index().id(&self.tsuids[series]).unwrap()
    }

    fn apply(&self, change: impl FnOnce(&mut MutationBatch)) {
        let mut batch = MutationBatch::new(Durability::Fsync);
        change(&mut batch);
        let applied = self.store().apply(&self.schema.tables().data, batch).wait().unwrap();
        assert!(applied.failed.is_empty(), "{applied:?}");
    }

    /// Puts a cell at the clock's time, and notes its row.
    fn put(&self, series: usize, qualifier: &[u8], value: &[u8]) -> &Self {
        let key = self.key(series);
        self.apply(|batch| {
            batch.row(&key).unwrap().put(DATA_FAMILY, qualifier, None, value).unwrap();
        });
        self.rewriter.note([(self.id(series), BASE)]);
        self
    }

    /// Two points of the first series, within the hour, and the clock past its end.
    fn with_two_points() -> Self {
        let world = Self::new();
        world.at(5).put(0, &[0, 0], &[42]);
        world.at(6).put(0, &[0, 0x10], &[43]);
        world.at(3600 + QUIET_S + 60);
        world
    }

    fn cells(&self, series: usize) -> Vec<Cell> {
        let got = self.store().get(&self.schema.tables().data, Get::row(self.key(series))).wait().unwrap();
        let row = got.row(0);
        let cells = row.iter().flat_map(basalt_store::RowView::cells);
        cells.map(|c| (c.qualifier.to_vec(), c.value.to_vec(), (c.timestamp.0 - BASE.millis()) / 1000)).collect()
    }

    /// What a reader sees: offsets in milliseconds, and values.
    fn points(&self, series: usize) -> Vec<(u32, u64)> {
        let got = self.store().get(&self.schema.tables().data, Get::row(self.key(series))).wait().unwrap();
        let mut points = RowPoints::default();
        if let Some(row) = got.row(0) {
            points.decode(row.cells().map(RowCell::from), Duplicates::NewestWins).unwrap();
        }
        points.offsets_ms().iter().copied().zip(points.values().iter().copied()).collect()
    }

    /// Rewrites all that is due.
    fn rewrite(&self) -> &Self {
        while self.rewriter.rewrite(u64::MAX).unwrap() > 0 {}
        self
    }

    /// What a step is handed: the plan of the first series' row.
    fn planned(&self) -> Vec<RowPlan> {
        let planned = self.rewriter.read(BASE, &[self.id(0).0].into_iter().collect()).unwrap();
        assert_eq!(planned.len(), 1);
        planned
    }
}

fn cell(qualifier: &[u8], value: &[u8], time: u64) -> Cell {
    (qualifier.to_vec(), value.to_vec(), time)
}

/// 42 at +0 s, 43 at +1 s, joined.
fn joined() -> Cell {
    cell(&[0, 0, 0, 0x10], &[42, 43, 0], 6)
}

#[test]
fn an_hour_past_becomes_one_cell_of_its_newest_time() {
    let world = World::with_two_points();
    let annotation = cell(&[1, 0, 10], b"{}", 3600 + QUIET_S + 60);
    world.put(0, &annotation.0, &annotation.1).put(1, &[0, 0], &[7]);
    world.rewrite();
    assert_eq!(world.cells(0), [joined(), annotation]);
    let counts = world.rewriter.counts();
    assert_eq!((counts.rows_rewritten, counts.cells_written, counts.cells_deleted), (1, 1, 2));
}

/// What is asked grows with the points of the rows, not with these times the rows.
#[test]
fn a_folded_cell_is_looked_for_in_its_own_row_alone() {
    let world = World::new();
    for series in 0..3_u8 {
        // The first two have points at the same instants.
        let second = 0x10 + (series / 2) * 0x10;
        world.at(5).put(series.into(), &[0, 0], &[42]).put(series.into(), &[0, second], &[43]);
    }
    world.at(3600 + QUIET_S + 60);
    let series = (0..3).map(|series| world.id(series).0).collect();
    let planned = world.rewriter.read(BASE, &series).unwrap();
    let mut asked: Vec<_> = gets_of_new_cells(&planned)
        .iter()
        .map(|get| (get.rows.len(), get.columns.0.iter().map(|family| family.qualifiers.len()).sum::<usize>()))
        .collect();
    asked.sort_unstable();
    assert_eq!(asked, [(1, 1), (2, 1)]);
    let put = world.rewriter.put(planned).unwrap();
    assert_eq!(world.rewriter.seen(put).unwrap().len(), 3);
}

#[test]
fn a_row_waits_for_its_hours_end() {
    let world = World::with_two_points();
    world.at(3600 + QUIET_S).rewrite();
    assert_eq!((world.cells(0).len(), world.rewriter.quota(10_000)), (2, 0));
    world.at(3600 + QUIET_S + 1);
    assert_eq!(world.rewriter.quota(10_000), 100);
    assert_eq!(world.rewrite().cells(0), [joined()]);
    assert_eq!(world.rewriter.counts().queue_rows, 0);
}

#[test]
fn a_row_that_was_just_written_to_waits() {
    let world = World::with_two_points();
    // Noted before, so that it is due while its newest cell is young.
    world.put(0, &[0, 0x20], &[44]);
    let late = 3600 + QUIET_S + 60;
    assert_eq!(world.rewrite().cells(0).len(), 3);
    assert_eq!(world.rewriter.counts().queue_rows, 1);
    world.at(late + QUIET_S + 60).rewrite();
    assert_eq!(world.cells(0), [cell(&[0, 0, 0, 0x10, 0, 0x20], &[42, 43, 44, 0], late)]);
}

/// Where servers' clocks are known to agree, an operator need not wait for minutes.
#[test]
fn late_points_are_due_soon_where_the_quiet_time_is_short() {
    let world = World::with(RewriteLimits { quiet_ms: 1000, ..RewriteLimits::default() });
    world.at(7_000).put(0, &[0, 0], &[42]).put(0, &[0, 0x10], &[43]);
    assert_eq!((world.rewriter.counts().queue_rows, world.rewriter.counts().due_rows), (1, 0));
    assert_eq!(world.at(7_001).rewrite().cells(0).len(), 2);
    assert_eq!(world.at(7_002).rewriter.counts().due_rows, 1);
    assert_eq!(world.rewrite().cells(0), [cell(&[0, 0, 0, 0x10], &[42, 43, 0], 7_000)]);
}

#[test]
fn a_late_point_joins_the_cell_it_came_too_late_for() {
    let world = World::with_two_points();
    world.rewrite().at(9_000).put(0, &[0, 0x10], &[99]).put(0, &[0, 0x20], &[44]);
    assert_eq!(world.rewriter.counts().queue_rows, 1);
    world.at(9_300).rewrite();
    assert_eq!(world.cells(0), [cell(&[0, 0, 0, 0x10, 0, 0x20], &[42, 99, 44, 0], 9_000)]);
    let counts = world.rewriter.counts();
    assert_eq!((counts.duplicates_identical, counts.duplicates_variant, counts.hidden_rows), (0, 1, 0));
}

#[test]
fn of_an_overwritten_point_no_version_comes_back() {
    let world = World::with_two_points();
    world.at(3000).put(0, &[0, 0], &[50]).at(8_000).rewrite();
    // Joined: 50 at 3000 s, 43. The first 42 lay below 50, and is not to be seen now that 50's own cell is gone.
    assert_eq!(world.cells(0), [cell(&[0, 0, 0, 0x10], &[50, 43, 0], 3000)]);
}

#[test]
fn a_crash_before_the_put_leaves_the_row() {
    let world = World::with_two_points();
    drop(world.planned());
    assert_eq!(world.cells(0).len(), 2);
    assert_eq!(world.rewrite().cells(0), [joined()]);
}

#[test]
fn a_crash_between_put_and_delete_leaves_duplicates_that_read_as_one_point_each() {
    let world = World::with_two_points();
    let before = world.points(0);
    let put = world.rewriter.put(world.planned()).unwrap();
    assert_eq!((put.len(), world.cells(0).len()), (1, 3));
    assert_eq!(world.points(0), before);
    // The next process finds the folded cell there, and only deletes.
    let shared = SchemaConfig { is_shared: true, ..SchemaConfig::default() };
    let schema = Arc::new(Schema::open(Arc::clone(world.store()), shared).unwrap());
    assert!(schema.index().is_empty(), "it knows no series yet");
    let next = Rewriter::new(schema, Arc::clone(&world.clock) as _, RewriteLimits::default());
    assert_eq!(next.catch_up(0).unwrap(), 0, "the hour that is has no row");
    assert_eq!(next.catch_up(2).unwrap(), 1);
    world.at(4_200);
    while next.rewrite(10).unwrap() > 0 {}
    assert_eq!((world.cells(0), world.points(0)), (vec![joined()], before));
    assert_eq!((next.counts().cells_written, next.counts().cells_deleted), (0, 2));
}

#[test]
fn a_crash_after_the_delete_leaves_nothing_to_do() {
    let world = World::with_two_points();
    assert_eq!(world.rewrite().rewriter.catch_up(2).unwrap(), 1);
    world.at(4_200);
    let rewritten = world.rewriter.counts().rows_rewritten;
    assert_eq!(world.rewrite().cells(0), [joined()]);
    assert_eq!(world.rewriter.counts().rows_rewritten, rewritten);
}

/// OpenTSDB deletes whole columns, and so now and then a point that was overwritten meanwhile.
#[test]
fn a_put_that_races_the_rewrite_is_not_lost() {
    for step in 0..3 {
        let world = World::with_two_points();
        let race = |at: usize| {
            if at == step {
                world.put(0, &[0, 0x10], &[99]).put(0, &[0, 0x20], &[44]);
            }
        };
        let planned = world.planned();
        race(0);
        let put = world.rewriter.put(planned).unwrap();
        race(1);
        let seen = world.rewriter.seen(put).unwrap();
        race(2);
        world.rewriter.delete(&seen).unwrap();
        assert_eq!(world.points(0), [(0, 42), (1000, 99), (2000, 44)], "step {step}");
        world.at(9_000).rewrite();
        assert_eq!(world.points(0), [(0, 42), (1000, 99), (2000, 44)], "step {step}");
        assert_eq!(world.cells(0).len(), 1, "step {step}");
    }
}

#[test]
fn a_deletion_that_races_the_rewrite_stays_one() {
    for step in 0..2 {
        let world = World::with_two_points();
        let race = |at: usize| {
            if at == step {
                let key = world.key(0);
                world.apply(|batch| {
                    batch.row(&key).unwrap().delete_family(DATA_FAMILY, None).unwrap();
                });
            }
        };
        let planned = world.planned();
        race(0);
        let put = world.rewriter.put(planned).unwrap();
        race(1);
        world.rewriter.delete(&world.rewriter.seen(put).unwrap()).unwrap();
        assert_eq!(world.points(0), [], "step {step}");
    }
}

/// Another daemon may have deleted a joined cell at its own time, later than the times of the cells that are there now.
#[test]
fn where_a_tombstone_hides_the_folded_cell_nothing_is_deleted() {
    let world = World::with_two_points();
    world.rewrite();
    // Later than all cells of the row, over the column that the next rewrite puts.
    let (key, late) = (world.key(0), [0, 0, 0, 0x10, 0, 0x20]);
    world.apply(|batch| {
        let time = Some(Timestamp(BASE.millis() + 8_100_000));
        batch.row(&key).unwrap().delete_column(DATA_FAMILY, &late, time).unwrap();
    });
    world.at(8_000).put(0, &[0, 0x20], &[44]);
    let before = world.points(0);
    assert_eq!(before.len(), 3);
    world.at(8_400).rewrite();
    assert_eq!(world.points(0), before, "nothing may go that the folded cell does not stand for");
    assert_eq!((world.cells(0).len(), world.rewriter.counts().hidden_rows), (2, 1));
}

/// What was joined and deleted as a whole leaves no joined cell among the parts, and its tombstone all the same.
#[test]
fn nor_where_the_row_has_lone_points_only() {
    let world = World::with_two_points();
    let (key, late) = (world.key(0), Some(Timestamp(BASE.millis() + 1_000_000)));
    world.apply(|batch| {
        batch.row(&key).unwrap().delete_column(DATA_FAMILY, &[0, 0, 0, 0x10], late).unwrap();
    });
    let before = world.points(0);
    world.rewrite();
    assert_eq!((world.points(0), before.len()), (before, 2));
    assert_eq!((world.cells(0).len(), world.rewriter.counts().hidden_rows), (2, 1));
    // A late point gives another cell, over which nothing lies.
    world.at(9_000).put(0, &[0, 0x20], &[44]).at(9_300).rewrite();
    assert_eq!(world.cells(0), [cell(&[0, 0, 0, 0x10, 0, 0x20], &[42, 43, 44, 0], 9_000)]);
}

#[test]
fn appended_and_damaged_rows_and_those_of_their_points_times_stay_as_they_are() {
    let world = World::new();
    world.put(0, &[0, 0], &[1]).put(0, &APPEND_QUALIFIER, &[0, 0x10, 2]);
    world.put(1, &[0, 0x02], &[1, 2, 3]).put(1, &[0, 0x10], &[1]);
    let key = world.key(2);
    world.apply(|batch| {
        let mut row = batch.row(&key).unwrap();
        for second in [0, 1] {
            let time = Some(Timestamp(BASE.millis() + second * 1000));
            row.put(DATA_FAMILY, &[0, u8::try_from(second).unwrap() << 4], time, &[1]).unwrap();
        }
    });
    world.rewriter.note([(world.id(2), BASE)]);
    world.at(8_000).rewrite();
    assert_eq!([0, 1, 2].map(|series| world.cells(series).len()), [2, 2, 2]);
    let counts = world.rewriter.counts();
    assert_eq!((counts.rows_read, counts.rows_rewritten, counts.damaged_rows), (3, 0, 1));
}

#[test]
fn rows_wait_again_while_the_store_does_not_answer() {
    let world = World::with_two_points();
    let table = &world.schema.tables().data;
    world.store().disable_table(table).unwrap();
    assert!(world.rewriter.rewrite(10).is_err());
    assert_eq!((world.rewriter.counts().queue_rows, world.rewriter.counts().read_errors), (1, 1));
    world.store().enable_table(table).unwrap();
    assert_eq!(world.at(9_000).rewrite().cells(0), [joined()]);
}

/// Of the rows of a batch only the one at fault is left as it is; where the fault may pass, it waits too.
#[test]
fn a_row_that_cannot_be_read_holds_up_no_other() {
    for (error, waiting) in [
        (Error::Corrupt { file: "f".into(), offset: 0, expected: "a".into(), found: "b".into() }, 0),
        (Error::Throttled { what: "region" }, 3),
    ] {
        let world = World::new();
        for series in 0..3 {
            world.at(5).put(series, &[0, 0], &[42]);
            world.at(6).put(series, &[0, 0x10], &[43]);
        }
        world.at(3600 + QUIET_S + 60);
        *world.damaged.row.lock().unwrap() = Some((world.key(1), error.clone()));
        assert_eq!(world.rewriter.rewrite(10).unwrap_err().kind(), error.kind());
        assert_eq!(world.rewriter.counts().queue_rows, waiting);
        *world.damaged.row.lock().unwrap() = None;
        world.at(9_000).rewrite();
        let others = [0, 2].map(|series| world.cells(series));
        assert_eq!(others, [vec![joined()], vec![joined()]]);
        assert_eq!(world.cells(1).len(), if waiting == 0 { 2 } else { 1 });
    }
}

/// Has no room for one sort of changes, where the table names it.
#[derive(Debug)]
struct Busy(&'static str);

impl Trigger for Busy {
    fn name(&self) -> &'static str {
        self.0
    }

    fn before(&self, change: &RowChange<'_>, _more: &mut MutationBatch) -> Result<()> {
        let sort = if change.row.cells().any(|cell| cell.kind.is_tombstone()) { "deletes" } else { "puts" };
        if sort == self.0 { Err(Error::Throttled { what: "region" }) } else { Ok(()) }
    }
}

#[test]
fn rows_wait_again_where_their_region_is_busy() {
    for busy in ["puts", "deletes"] {
        let world = World::with_two_points();
        let free = world.store().describe_table(&world.schema.tables().data).unwrap();
        world.store().alter_table(free.clone().with_attribute("TRIGGERS", busy)).unwrap();
        assert_eq!(world.rewriter.rewrite(10).unwrap(), 1);
        let counts = world.rewriter.counts();
        assert_eq!((counts.queue_rows, counts.put_errors + counts.delete_errors), (1, 1), "{busy}");
        world.store().alter_table(free).unwrap();
        assert_eq!(world.at(9_000).rewrite().cells(0), [joined()], "{busy}");
    }
}

#[test]
fn a_put_that_fails_deletes_nothing() {
    let world = World::with_two_points();
    let planned = world.planned();
    world.store().disable_table(&world.schema.tables().data).unwrap();
    assert!(world.rewriter.put(planned).is_err());
    world.store().enable_table(&world.schema.tables().data).unwrap();
    assert_eq!(world.cells(0).len(), 2);
}

#[test]
fn a_full_queue_takes_no_more_and_says_how_many() {
    let world = World::with(RewriteLimits { queue_rows_max: 2, ..RewriteLimits::default() });
    for series in 0..3 {
        world.at(0).put(series, &[0, 0], &[1]).put(series, &[0, 0x10], &[2]);
    }
    let counts = world.rewriter.counts();
    assert_eq!((counts.queue_rows, counts.refused_rows), (2, 2));
    world.at(8_000).rewrite();
    // What was not taken is read as it is; and taken when it is written to again.
    assert_eq!([0, 1, 2].map(|series| world.cells(series).len()), [1, 1, 2]);
    assert_eq!(world.points(2).len(), 2);
    world.put(2, &[0, 0x20], &[3]).at(9_000).rewrite();
    assert_eq!((world.cells(2).len(), world.points(2).len()), (1, 3));
}

#[test]
fn an_hours_rows_are_spread_over_the_hour() {
    let limits = RewriteLimits { rows_min: 10, ..RewriteLimits::default() };
    let world = World::with(limits);
    let rows = 36_000;
    world.rewriter.note((0..rows).map(|series| (SeriesId(series), BASE)));
    assert_eq!(world.rewriter.quota(10_000), 0, "none is due");
    world.at(8_000);
    // Twice as fast as an hour would take: 200 of 36,000 in ten seconds.
    assert_eq!(world.rewriter.quota(10_000), 200);
    assert_eq!(world.rewriter.quota(1_000), 20);
    assert_eq!(world.rewriter.quota(100), 10, "the least");
    assert_eq!(world.rewriter.rewrite(50).unwrap(), 50);
    assert_eq!(world.rewriter.rewrite(u64::MAX).unwrap(), BATCH_ROWS, "a batch is bounded");
}
