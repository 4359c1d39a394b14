//! What a schema is opened with.

use std::sync::Arc;

use basalt_store::{Clock, FamilyDescriptor, ManualClock};

use crate::{Duplicates, LargerOrSmaller, NameRules, Rollups, Salting, UidDice, UidFilter, UidKind, UidWidths};

/// Settings of the tables. Salt and widths are fixed when the tables are made; fold and block encoding are set then and
/// altered as any family's settings are; the rest may change at every start.
#[derive(Debug, Clone)]
#[expect(clippy::struct_excessive_bools, reason = "each is a switch of its own")]
pub struct SchemaConfig {
    /// Table of points (`tsd.storage.hbase.data_table`).
    pub data_table: String,
    /// Table of UIDs (`tsd.storage.hbase.uid_table`).
    pub uid_table: String,
    /// Table of trees (`tsd.storage.hbase.tree_table`).
    pub tree_table: String,
    /// Table of series' meta data (`tsd.storage.hbase.meta_table`).
    pub meta_table: String,
    /// Bytes of UIDs (`tsd.storage.uid.width.*`).
    pub widths: UidWidths,
    /// How rows are salted (`tsd.storage.salt.*`).
    pub salting: Salting,
    /// Which kinds of names an unknown one is given a UID of (`tsd.core.auto_create_*`).
    pub auto_create: AutoCreate,
    /// The most tags of a point (`tsd.storage.max_tags`).
    pub tags_max: usize,
    /// Characters allowed in names beside the usual (`tsd.core.tag.allow_specialchars`).
    pub extra_characters: String,
    /// Names kept in memory, for each kind and in each direction, within 256 bytes of memory each: a name of more than 156 bytes
    /// takes the place of several.
    pub uid_cache_entries: usize,
    /// The most series that the index holds. Beyond it new series are refused.
    pub series_max: u32,
    /// Whether other processes write these tables too. The series index then holds what this one has seen, and is
    /// completed from row keys by whoever needs all series; else it is read at open and stays whole.
    pub is_shared: bool,
    /// Whether the points of a row are appended to one cell (`tsd.storage.enable_appends`).
    pub appends: bool,
    /// Whether the points of a row that come together are put as one cell, where cells do not bear points' own times. Every reader
    /// of the tables must then take the newest of two points at one instant (`tsd.storage.fix_duplicates`).
    pub joins: bool,
    /// Whether a query puts the points of an old append cell in order (`tsd.storage.repair_appends`).
    pub repair_appends: bool,
    /// Whether a point's cell bears the point's own time (`tsd.storage.use_otsdb_timestamp`), and who wins then.
    pub data_times: Option<LargerOrSmaller>,
    /// The ID that histograms of the simple codec are stored under (`tsd.core.histograms.config`); `None`: there are none.
    pub histogram_id: Option<u8>,
    /// Which rollups are kept (`tsd.rollups.*`).
    pub rollups: Option<Rollups>,
    /// Registered name of the fold of the data family; `None` for a store without one.
    pub fold: Option<Box<str>>,
    /// Registered name of the data family's block encoding.
    pub block_encoding: Box<str>,
    /// The data family's BLOCKSIZE, in bytes before encoding.
    pub block_bytes: u32,
    /// Metrics get UIDs drawn at random (`tsd.core.uid.random_metrics`); `None` counts them up.
    pub random_metrics: Option<UidDice>,
    /// Which new names get a UID (`tsd.uidfilter.*`).
    pub uid_filter: UidFilter,
    /// What is kept of names and series as points come.
    pub realtime: Realtime,
    /// When meta objects are made.
    pub clock: Arc<dyn Clock>,
}

impl Default for SchemaConfig {
    fn default() -> Self {
        Self {
            data_table: "tsdb".into(),
            uid_table: "tsdb-uid".into(),
            tree_table: "tsdb-tree".into(),
            meta_table: "tsdb-meta".into(),
            widths: UidWidths::default(),
            salting: Salting::EMBEDDED,
            auto_create: AutoCreate::default(),
            tags_max: NameRules::TAGS_MAX_DEFAULT,
            extra_characters: String::new(),
            uid_cache_entries: 1 << 20,
            series_max: 100_000_000,
            is_shared: false,
            appends: false,
            joins: false,
            repair_appends: false,
            data_times: None,
            histogram_id: None,
            rollups: None,
            fold: None,
            block_encoding: "NONE".into(),
            block_bytes: FamilyDescriptor::BLOCK_BYTES_DEFAULT,
            random_metrics: None,
            uid_filter: UidFilter::none(),
            realtime: Realtime::default(),
            clock: Arc::new(ManualClock::default()),
        }
    }
}

impl SchemaConfig {
    /// What becomes of two values at one instant.
    pub const fn duplicates(&self) -> Duplicates {
        match self.data_times {
            None => Duplicates::NewestWins,
            Some(kept) => Duplicates::ByValue(kept),
        }
    }
}

/// Which kinds of names get a UID when a point first brings them; all, unless told otherwise. OpenTSDB's default for
/// metrics is not to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AutoCreate {
    /// Metrics.
    pub metric: bool,
    /// Keys of tags.
    pub tagk: bool,
    /// Values of tags.
    pub tagv: bool,
}

impl AutoCreate {
    /// Whether names of `kind` are created.
    pub const fn allows(self, kind: UidKind) -> bool {
        match kind {
            UidKind::Metric => self.metric,
            UidKind::Tagk => self.tagk,
            UidKind::Tagv => self.tagv,
        }
    }
}

impl Default for AutoCreate {
    fn default() -> Self {
        Self { metric: true, tagk: true, tagv: true }
    }
}

/// Which meta objects and counters come by themselves, as points do.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "each is a switch of its own in OpenTSDB's configuration")]
pub struct Realtime {
    /// A meta object for each name that is given a UID (`tsd.core.meta.enable_realtime_uid`).
    pub names: bool,
    /// A meta object for each series that is written to (`tsd.core.meta.enable_realtime_ts`).
    pub series: bool,
    /// A counter of points for each series (`tsd.core.meta.enable_tsuid_incrementing`).
    pub count: bool,
    /// A counter that stays 1 and tells by its time when the last point came (`tsd.core.meta.enable_tsuid_tracking`).
    pub track: bool,
    /// New meta objects of series go into every enabled tree (`tsd.core.tree.enable_processing`).
    pub trees: bool,
    /// As OpenTSDB does, where that surprises; in trees too.
    pub strict: bool,
}

impl Realtime {
    /// Whether a series gets a meta object when it is first written to.
    pub(crate) const fn makes_objects(self) -> bool {
        self.series && (self.track || !self.strict)
    }

    /// Whether anything is written for each batch of points.
    pub const fn counts(self) -> bool {
        if self.strict { self.track && (self.count || !self.series) } else { self.track || self.count }
    }

    /// Whether the counter grows, or is set to 1 again and again.
    pub(crate) const fn increments(self) -> bool {
        self.count && (self.series || !self.strict)
    }
}
