//! The one suite that every store is held to, over real files and over the simulated disk.

use std::path::{Path, PathBuf};

use basalt_store::conformance::{Fixture, history};
use basalt_store::{ManualClock, MemoryStore, Timestamp};

use super::*;
use crate::io::{FileSystem, OsFs, SimFs};

struct EngineFixture {
    engine: Option<Arc<Engine>>,
    fs: Arc<dyn FileSystem>,
    dir: PathBuf,
    clock: Arc<ManualClock>,
    _folder: Option<tempfile::TempDir>,
}

impl EngineFixture {
    fn on(fs: Arc<dyn FileSystem>, dir: PathBuf, folder: Option<tempfile::TempDir>) -> EngineFixture {
        let clock = Arc::new(ManualClock::new(Timestamp(1_000_000)));
        let mut fixture = EngineFixture { engine: None, fs, dir, clock, _folder: folder };
        fixture.reopen();
        fixture
    }

    fn on_files() -> EngineFixture {
        let folder = tempfile::tempdir().unwrap();
        EngineFixture::on(Arc::new(OsFs), folder.path().to_path_buf(), Some(folder))
    }

    fn on_simulated_disk() -> EngineFixture {
        EngineFixture::on(Arc::new(SimFs::new(1)), Path::new("/d").to_path_buf(), None)
    }
}

impl Fixture for EngineFixture {
    fn store(&self) -> Arc<dyn Store> {
        Arc::clone(self.engine.as_ref().unwrap()) as Arc<dyn Store>
    }

    fn clock(&self) -> &ManualClock {
        &self.clock
    }

    fn reopen(&mut self) {
        if let Some(engine) = self.engine.take() {
            engine.close().unwrap();
        }
        let options = EngineOptions {
            fs: Arc::clone(&self.fs),
            clock: Arc::clone(&self.clock) as Arc<dyn basalt_store::Clock>,
            triggers: basalt_store::conformance::triggers(),
            limits: Limits { memtables_bytes: 64 << 20, memtable_bytes: 64 << 20, ..small_limits() },
            ..EngineOptions::new(&self.dir)
        };
        self.engine = Some(Engine::open(options).unwrap());
    }
}

/// The reference, which keeps nothing that a reopening could lose.
struct MemoryFixture {
    store: Arc<dyn Store>,
    clock: Arc<ManualClock>,
}

impl MemoryFixture {
    fn new() -> MemoryFixture {
        let clock = Arc::new(ManualClock::new(Timestamp(1_000_000)));
        MemoryFixture { store: Arc::new(MemoryStore::new(Arc::clone(&clock) as Arc<dyn basalt_store::Clock>)), clock }
    }
}

impl Fixture for MemoryFixture {
    fn store(&self) -> Arc<dyn Store> {
        Arc::clone(&self.store)
    }

    fn clock(&self) -> &ManualClock {
        &self.clock
    }

    fn reopen(&mut self) {}
}

/// Random histories, the memory store beside the engine. `BASALT_HISTORIES` sets the count, and
/// `BASALT_HISTORIES_FROM` the first seed. Histories wait for their logs more than they work, so several are in flight.
#[test]
fn s_map_1_random_histories_are_answered_as_the_reference_does() {
    let set = |name| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let (count, from) = (set("BASALT_HISTORIES").unwrap_or(30), set("BASALT_HISTORIES_FROM").unwrap_or(0));
    let in_flight = if count > 1000 { 16 } else { 2 };
    std::thread::scope(|scope| {
        for first in from..from + in_flight {
            scope.spawn(move || {
                for seed in (first..from + count).step_by(usize::try_from(in_flight).unwrap()) {
                    let mut engine = EngineFixture::on_simulated_disk();
                    let told = history::run_history(seed, 200, &mut MemoryFixture::new(), &mut engine);
                    told.unwrap_or_else(|difference| panic!("{difference}"));
                }
            });
        }
    });
}

mod files {
    basalt_store::conformance_suite!(super::EngineFixture::on_files);
}

mod simulated {
    basalt_store::conformance_suite!(super::EngineFixture::on_simulated_disk);
}
