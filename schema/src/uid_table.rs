//! The map between the names and UIDs of one kind, kept in the UID table.
//!
//! ```text
//! forward   row = name bytes   id:<kind>   = UID          reverse   row = UID bytes   name:<kind> = name bytes
//! counter   row = 00           id:<kind>   = last UID given out, 8 bytes big-endian
//! ```
//!
//! A UID is assigned in three steps: the counter is incremented, the reverse cell is put if absent, the forward cell is put
//! if absent. Reverse comes before forward, so that a crash leaves an orphan at worst (a UID that nobody uses), never a name
//! whose UID has no name. Who loses the last step to another daemon takes the winner's UID; the own one is the orphan.
//!
//! Names are UTF-8. OpenTSDB writes Latin-1: a name that has no row in UTF-8 is looked for in that too, and rows keep the
//! bytes that they have. *Source*: OpenTSDB 2.4 `UniqueId` (rules S-UID-FWD, -REV, -COUNTER, -CAS, -WIDTH, -RANDOM, -RENAME, -DELETE).

mod assign;
mod stored;
mod suggest;

pub use stored::decode_name;

use std::collections::{BTreeSet, HashMap};
use std::hash::{BuildHasher, Hash};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use basalt_store::{Clock, Columns, Durability, Scan, Store, TableName};
use quick_cache::sync::{Cache, DefaultLifecycle, GuardResult};
use quick_cache::{Equivalent, Weighter};

use crate::generation::Generation;
use crate::tables::{UID_ID_FAMILY, UID_NAME_FAMILY};
use crate::{Error, NameRole, NameRules, Result, Uid, UidDice, UidFilter, UidKind, UidWidth, hex};

/// Row of the counters.
pub(crate) const COUNTER_ROW: &[u8] = &[0];

/// The most UIDs that one get asks the names of.
const NAMES_PER_GET: usize = 4096;
/// Names are few beside what memory holds where they are at most one in so many.
const ROOM_PART: u64 = 4;

/// The names and UIDs of one kind. All calls may wait for the store: call them on threads that may block.
///
/// ```
/// use std::sync::Arc;
/// use basalt_schema::{Schema, SchemaConfig, UidKind};
/// use basalt_store::{ManualClock, MemoryStore};
/// let store = Arc::new(MemoryStore::new(Arc::new(ManualClock::default())));
/// let schema = Schema::open(store, SchemaConfig::default())?;
/// let metrics = schema.uids().of(UidKind::Metric);
/// let uid = metrics.uid_or_create("sys.cpu.user")?;
/// assert_eq!(metrics.hex(uid), "000001");
/// assert_eq!(metrics.suggest("sys", 25)?, ["sys.cpu.user"]);
/// assert!(metrics.uid("sys.cpu").is_err());
/// # Ok::<(), basalt_schema::Error>(())
/// ```
#[derive(Debug)]
pub struct UidTable {
    store: Arc<dyn Store>,
    table: TableName,
    kind: UidKind,
    width: UidWidth,
    rules: Arc<NameRules>,
    /// Name → UID. Its guard for an absent key is what makes one assignment of a name at a time in this process.
    uids: Cache<String, Uid, Places, foldhash::quality::RandomState>,
    /// UID → name.
    names: Cache<Uid, Arc<str>, Places, foldhash::fast::RandomState>,
    /// How many changes made stale what was read before. Guards the agreement of table and caches: who loads notes it before the
    /// read, and puts what was read into a cache with it held, if it is the same still; who changes raises it after the change, and
    /// takes out of the caches before letting go. Held for no call of the store, so that no look-up waits for another name's. Taken
    /// before a cache's own locks, after a cache's guard for an absent key.
    changes: Mutex<u64>,
    /// Held by who renames or deletes, beyond all calls of the store: one at a time. Taken before `changes`; look-ups do not take it.
    changing: Mutex<()>,
    generation: Arc<Generation>,
    /// Draws UIDs; `None` counts them up.
    dice: Option<UidDice>,
    /// UIDs that are not drawn at random: points lie there.
    avoided: OnceLock<BTreeSet<Uid>>,
    /// The largest UID that occurs, where the counter may be behind it. Relaxed: stored before anybody draws.
    largest_met: AtomicU64,
    /// How far the counter was when it was last seen. Relaxed: whoever sees it late asks the store once more.
    counter_seen: AtomicU64,
    filter: Arc<UidFilter>,
    /// When meta objects of new names are made; `None` makes none.
    meta_clock: Option<Arc<dyn Clock>>,
    rejected: AtomicU64,
    collisions: AtomicU64,
}

/// Names that were read, by UID.
type Names = HashMap<Uid, Arc<str>, foldhash::fast::RandomState>;

/// Bytes of a place in the caches.
const PLACE_BYTES: usize = 256;
/// What an entry takes beside its name, about.
const ENTRY_BYTES: usize = 100;

/// How many places of a cache an entry takes: one, unless its name is long. So a cache's places bound its bytes.
#[derive(Debug, Clone, Copy)]
struct Places;

impl Places {
    const fn of(name: &str) -> u64 {
        (ENTRY_BYTES + name.len()).div_ceil(PLACE_BYTES) as u64
    }
}

impl Weighter<String, Uid> for Places {
    fn weight(&self, name: &String, _: &Uid) -> u64 {
        Self::of(name)
    }
}

impl Weighter<Uid, Arc<str>> for Places {
    fn weight(&self, _: &Uid, name: &Arc<str>) -> u64 {
        Self::of(name)
    }
}

/// A cache of so many places.
fn cache<K: Hash + Eq, V: Clone, H: BuildHasher + Default + Clone>(places: usize) -> Cache<K, V, Places, H>
where
    Places: Weighter<K, V>,
{
    Cache::with(places, places as u64, Places, H::default(), DefaultLifecycle::default())
}

/// What a [`UidTable`] is made of.
pub(crate) struct UidTableParts {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) table: TableName,
    pub(crate) kind: UidKind,
    pub(crate) width: UidWidth,
    pub(crate) rules: Arc<NameRules>,
    pub(crate) cache_entries: usize,
    pub(crate) generation: Arc<Generation>,
    pub(crate) dice: Option<UidDice>,
    pub(crate) filter: Arc<UidFilter>,
    pub(crate) meta_clock: Option<Arc<dyn Clock>>,
}

/// How much of a kind's UIDs is given out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UidUsage {
    /// UIDs given out, orphans included.
    pub used: u64,
    /// UIDs left.
    pub available: u64,
}

impl UidTable {
    pub(crate) fn new(parts: UidTableParts) -> Self {
        let UidTableParts { store, table, kind, width, rules, cache_entries, generation, dice, filter, meta_clock } =
            parts;
        Self {
            store,
            table,
            kind,
            width,
            rules,
            uids: cache(cache_entries),
            names: cache(cache_entries),
            changes: Mutex::default(),
            changing: Mutex::default(),
            generation,
            dice,
            avoided: OnceLock::new(),
            largest_met: AtomicU64::new(0),
            counter_seen: AtomicU64::new(0),
            filter,
            meta_clock,
            rejected: AtomicU64::new(0),
            collisions: AtomicU64::new(0),
        }
    }

    /// The kind of its names.
    pub const fn kind(&self) -> UidKind {
        self.kind
    }

    /// The width of its UIDs.
    pub const fn width(&self) -> UidWidth {
        self.width
    }

    /// The UID of a name. *Cost*: a look-up in memory, or a get. A name that is unknown is asked for again each time.
    ///
    /// # Errors
    /// `NotFound`: no such name. `Corrupt`: a cell that is no UID. The store's own.
    pub fn uid(&self, name: &str) -> Result<Uid> {
        self.cached_uid(name, || self.stored_uid(name)?.ok_or_else(|| self.no_such_name(name)))
    }

    /// The UID of a name, which is given one if it has none. Of many callers at once one assigns, the others wait for it.
    ///
    /// The steps are written with [`Durability::Async`]: the batch that uses the UID is synced after them in the same log.
    ///
    /// # Errors
    /// `Invalid`: a name that the rules refuse, or no UID left on this width. `Corrupt`, and the store's own.
    pub fn uid_or_create(&self, name: &str) -> Result<Uid> {
        self.cached_uid(name, || match self.stored_uid(name)? {
            Some(uid) => Ok(uid),
            None => self.assign(name, Durability::Async),
        })
    }

    /// Gives a name its first UID, durable when it returns.
    ///
    /// # Errors
    /// `Conflict`: the name has one already. The others as [`UidTable::uid_or_create`].
    pub fn create(&self, name: &str) -> Result<Uid> {
        if let Some(uid) = self.stored_uid(name)? {
            return Err(Error::NameExists { kind: self.kind, name: name.into(), id: self.hex(uid).into() });
        }
        self.assign(name, Durability::Fsync)
    }

    /// The name of a UID. *Cost*: a look-up in memory, or a get.
    ///
    /// # Errors
    /// `NotFound`: no such UID. The store's own.
    pub fn name(&self, uid: Uid) -> Result<Arc<str>> {
        self.cached(&self.names, &uid, || self.stored_name(uid)?.ok_or_else(|| self.no_such_id(uid)))
    }

    /// The names of many UIDs, in their order. *Cost*: one get for all that are not in memory.
    ///
    /// # Errors
    /// As [`UidTable::name`].
    pub fn names(&self, uids: &[Uid]) -> Result<Vec<Arc<str>>> {
        let mut missing: Vec<Uid> = uids.iter().copied().filter(|uid| !self.names.contains_key(uid)).collect();
        missing.sort_unstable();
        missing.dedup();
        let mut read = Names::default();
        for chunk in missing.chunks(NAMES_PER_GET) {
            read.extend(self.load_names(chunk, true)?);
        }
        // A name may have left the bounded cache since; then it is read alone.
        uids.iter().map(|uid| read.get(uid).map_or_else(|| self.name(*uid), |name| Ok(Arc::clone(name)))).collect()
    }

    /// The names of those of many UIDs that have one, in no order. The UIDs ascend.
    ///
    /// *Cost*: for those that are not in memory a scan where UIDs lie close together, a third of a microsecond each, else a get for some
    /// thousand. What was read stays in memory with `keeps`: not wise where there are more than fit, which push out all others.
    ///
    /// # Errors
    /// The store's own.
    pub fn names_found(&self, uids: &[Uid], keeps: bool) -> Result<Vec<(Uid, Arc<str>)>> {
        let (mut found, mut missing) = (Vec::with_capacity(uids.len()), Vec::new());
        for uid in uids {
            match self.names.get(uid) {
                Some(name) => found.push((*uid, name)),
                None => missing.push(*uid),
            }
        }
        for chunk in missing.chunks(NAMES_PER_GET) {
            found.extend(self.load_names(chunk, keeps)?);
        }
        Ok(found)
    }

    /// Whether a UID's name is in memory.
    pub fn is_kept(&self, uid: Uid) -> bool {
        self.names.contains_key(&uid)
    }

    /// Whether so many names are few beside what memory holds.
    pub fn is_room_for(&self, names: usize) -> bool {
        names as u64 <= self.names.capacity() / ROOM_PART
    }

    /// How many UIDs are used and left.
    ///
    /// # Errors
    /// The store's own.
    pub fn usage(&self) -> Result<UidUsage> {
        let cell = self.stored_cell(COUNTER_ROW, UID_ID_FAMILY)?;
        let used = match cell.as_deref().map(<[u8; 8]>::try_from) {
            None => 0,
            Some(Ok(bytes)) => u64::from_be_bytes(bytes),
            Some(Err(_)) => return Err(self.corrupt("the counter", COUNTER_ROW, cell.as_deref(), 8)),
        };
        self.see_counter(used);
        Ok(self.usage_of(used))
    }

    /// As [`UidTable::usage`], as far as it was seen when it was last asked for, or a UID given out here. *Cost*: none.
    pub fn usage_seen(&self) -> UidUsage {
        self.usage_of(self.counter_seen.load(Ordering::Relaxed))
    }

    /// Who drew when none was left raised the counter all the same.
    const fn usage_of(&self, counter: u64) -> UidUsage {
        let all = self.width.uid_max().number();
        let used = if counter < all { counter } else { all };
        UidUsage { used, available: all - used }
    }

    fn see_counter(&self, counter: u64) {
        self.counter_seen.store(counter, Ordering::Relaxed);
    }

    /// Names and UIDs that are kept in memory, those of both directions.
    pub fn kept_count(&self) -> u64 {
        (self.uids.len() + self.names.len()) as u64
    }

    /// New names that the filter refused.
    pub fn rejected_count(&self) -> u64 {
        self.rejected.load(Ordering::Relaxed)
    }

    /// Random UIDs that turned out to be taken.
    pub fn collisions_count(&self) -> u64 {
        self.collisions.load(Ordering::Relaxed)
    }

    /// Reads up to `max` names into memory.
    pub(crate) fn preload(&self, max: u64) -> Result<u64> {
        let mut scan = Scan::all().with_columns(Columns::column(UID_NAME_FAMILY, self.kind.qualifier()));
        scan.limit_rows = Some(max.max(1));
        let mut scanner = self.store.scan(&self.table, scan)?;
        let mut read = 0;
        while let Some(batch) = scanner.next_wait().transpose()? {
            for row in batch.rows().filter(|row| row.key().len() == self.width.bytes()) {
                let (Some(uid), Some(cell)) = (Uid::decode(row.key()), row.cells().next()) else { continue };
                let name: Arc<str> = decode_name(cell.value).into();
                // The forward map decides; an orphan's name belongs to another UID, or to none, and one renamed meanwhile too.
                let before = *self.changes();
                if self.stored_uid(&name)? != Some(uid) {
                    continue;
                }
                self.keep(before, || {
                    self.uids.insert(name.to_string(), uid);
                    self.names.insert(uid, name);
                });
                read += 1;
            }
        }
        Ok(read)
    }

    /// Forgets the names kept in memory.
    pub(crate) fn clear_caches(&self) {
        let mut changes = self.changes();
        *changes += 1;
        self.uids.clear();
        self.names.clear();
    }

    /// A UID in upper-case hex, as users see it.
    pub fn hex(&self, uid: Uid) -> String {
        hex::upper(&uid.encode(self.width))
    }

    /// The UID of a name from the cache, or from `load`, which one caller a name runs at a time.
    fn cached_uid(&self, name: &str, load: impl FnOnce() -> Result<Uid>) -> Result<Uid> {
        self.cached(&self.uids, name, load)
    }

    /// What is kept of a key, or what `load` gives, which one caller a key runs at a time. It is kept unless a change overtook it.
    fn cached<Q, K, V, H>(&self, cache: &Cache<K, V, Places, H>, key: &Q, load: impl FnOnce() -> Result<V>) -> Result<V>
    where
        Q: Hash + Equivalent<K> + ToOwned<Owned = K> + ?Sized,
        K: Eq + Hash,
        V: Clone,
        H: BuildHasher + Clone,
        Places: Weighter<K, V>,
    {
        match cache.get_value_or_guard(key, None) {
            GuardResult::Value(value) => Ok(value),
            GuardResult::Guard(guard) => {
                let before = *self.changes();
                let value = load()?;
                // It fails where the key was taken out: then it is kept no more than one that is stale.
                self.keep(before, || drop(guard.insert(value.clone())));
                Ok(value)
            }
            GuardResult::Timeout => load(),
        }
    }

    /// Has `insert` put into the caches what was read after `before` was noted, if nothing made it stale since.
    fn keep(&self, before: u64, insert: impl FnOnce()) {
        let changes = self.changes();
        if *changes == before {
            insert();
        }
    }

    /// The names of some UIDs, ascending, past the cache, which keeps them where this says so.
    fn load_names(&self, uids: &[Uid], keeps: bool) -> Result<Vec<(Uid, Arc<str>)>> {
        let before = *self.changes();
        let found = self.stored_names(uids)?;
        if keeps {
            self.keep(before, || found.iter().for_each(|(uid, name)| self.names.insert(*uid, Arc::clone(name))));
        }
        Ok(found)
    }

    fn changes(&self) -> MutexGuard<'_, u64> {
        self.changes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    const fn role(&self) -> NameRole {
        match self.kind {
            UidKind::Metric => NameRole::Metric,
            UidKind::Tagk => NameRole::TagName,
            UidKind::Tagv => NameRole::TagValue,
        }
    }

    fn no_such_name(&self, name: &str) -> Error {
        Error::NoSuchName { kind: self.kind, name: name.into() }
    }

    fn no_such_id(&self, uid: Uid) -> Error {
        let id = if uid > self.width.uid_max() {
            uid.number().to_be_bytes().map(u8::cast_signed).into()
        } else {
            uid.encode(self.width).iter().map(|byte| byte.cast_signed()).collect()
        };
        Error::NoSuchId { kind: self.kind, id }
    }
}

#[cfg(test)]
mod tests;
