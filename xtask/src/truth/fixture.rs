//! HBase, and the memory store beside it, as fixtures of the conformance suite.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::Result;
use basalt_store::conformance::Fixture;
use basalt_store::{Clock, ManualClock, MemoryStore, Store, Timestamp};

use super::driver::{Driver, fresh_folder};
use super::store::HBase;

/// What the driver takes for the clock on the wall (`TruthRegion.WALL`).
const WALL: Timestamp = Timestamp(u64::MAX);

/// How HBase is closed and opened again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reopening {
    /// Each region is closed and opened from its files: a second or two.
    Regions,
    /// The process ends in good order and another begins on its data: some twenty seconds.
    Process,
}

/// A real HBase whose regions read the asker's clock.
#[derive(Debug)]
pub(super) struct HBaseFixture {
    store: Option<Arc<HBase>>,
    clock: ManualClock,
    /// The time that HBase was last told. Relaxed: whoever sets the clock is the one who asks next.
    told_ms: AtomicU64,
    name: String,
    folder: PathBuf,
    reopening: Reopening,
    pub(super) version: String,
}

impl HBaseFixture {
    /// HBase on no data, in a folder of this name.
    pub(super) fn start(name: &str, reopening: Reopening) -> Result<Self> {
        let folder = fresh_folder(name)?;
        let hbase = HBase::of(Driver::start(&folder)?)?;
        let version = hbase.version().to_owned();
        let store = Some(Arc::new(hbase));
        Ok(Self {
            store,
            clock: ManualClock::new(Timestamp(0)),
            told_ms: AtomicU64::new(u64::MAX),
            name: name.to_owned(),
            folder,
            reopening,
            version,
        })
    }

    /// Whether HBase let a question go unanswered; it answers none since.
    pub(super) fn is_stuck(&self) -> bool {
        self.store.as_ref().is_none_or(|hbase| hbase.is_stuck())
    }

    /// Another HBase on no data, in place of one that is stuck.
    pub(super) fn renew(&mut self) -> Result<()> {
        // It must be gone before its folder is emptied.
        self.store = None;
        *self = Self::start(&self.name.clone(), self.reopening)?;
        Ok(())
    }

    fn hbase(&self) -> Arc<HBase> {
        self.store.clone().unwrap_or_else(|| unreachable!("HBase is there but while it restarts"))
    }

    /// Makes it as new.
    pub(super) fn empty(&self) -> Result<()> {
        Ok(self.hbase().empty()?)
    }

    /// Gives its regions the clock on the wall, and says where its master listens: from here on it is an HBase as any.
    pub(super) fn by_the_wall(&self) -> Result<String> {
        self.hbase().set_clock(WALL)?;
        self.told_ms.store(WALL.0, Ordering::Relaxed);
        Ok(format!("localhost:{}", self.hbase().master_port()))
    }
}

impl Fixture for HBaseFixture {
    fn store(&self) -> Arc<dyn Store> {
        // The clock is handed over whenever the store is: it only changes in between.
        let (hbase, now) = (self.hbase(), self.clock.now());
        if self.told_ms.swap(now.0, Ordering::Relaxed) != now.0 {
            told(hbase.set_clock(now));
        }
        hbase
    }

    fn clock(&self) -> &ManualClock {
        &self.clock
    }

    fn reopen(&mut self) {
        drop(self.store());
        match self.reopening {
            // It stays as it is for whoever asks why.
            _ if self.is_stuck() => {}
            Reopening::Regions => told(self.hbase().reopen()),
            Reopening::Process => {
                self.store = None;
                self.told_ms.store(u64::MAX, Ordering::Relaxed);
                match Driver::start(&self.folder).and_then(HBase::of) {
                    Ok(hbase) => self.store = Some(Arc::new(hbase)),
                    Err(error) => unreachable!("HBase does not start again: {error:#}"),
                }
            }
        }
    }
}

/// A fixture has no way to fail but to end the rule.
fn told(answer: basalt_store::Result<()>) {
    if let Err(error) = answer {
        unreachable!("HBase: {error}");
    }
}

/// The reference, which has nothing to reopen from.
#[derive(Debug)]
pub(super) struct MemoryFixture {
    clock: Arc<ManualClock>,
    store: Arc<MemoryStore>,
}

impl Default for MemoryFixture {
    fn default() -> Self {
        let clock = Arc::new(ManualClock::new(Timestamp(0)));
        let store = Arc::new(MemoryStore::new(Arc::<ManualClock>::clone(&clock)));
        Self { clock, store }
    }
}

impl Fixture for MemoryFixture {
    fn store(&self) -> Arc<dyn Store> {
        Arc::<MemoryStore>::clone(&self.store)
    }

    fn clock(&self) -> &ManualClock {
        &self.clock
    }

    fn reopen(&mut self) {}
}
