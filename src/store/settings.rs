//! The settings of OpenTSDB's tables, as the configuration gives them.

use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;

use basalt_schema::{
    AutoCreate, LargerOrSmaller, Realtime, Salting, SchemaConfig, UidDice, UidFilter, UidKind, UidWidth, UidWidths,
};

use super::derived;
use crate::clock::WallClock;
use crate::config::{self, Config, Mode};
use crate::exit::Failure;

/// The settings of OpenTSDB's tables, with what is kept beside points.
pub(super) fn settings(config: &Config) -> Result<SchemaConfig, Failure> {
    let mut schema = schema_config(config)?;
    schema.histogram_id = derived::histogram_id(config)?;
    schema.rollups = derived::rollups(config)?;
    Ok(schema)
}

fn schema_config(whole: &Config) -> Result<SchemaConfig, Failure> {
    let config = &whole.schema;
    let wrong = |cause: basalt_schema::Error| Failure::config(format!("settings of `schema`: {cause}"));
    let width = |bytes| UidWidth::new(bytes).map_err(wrong);
    Ok(SchemaConfig {
        data_table: config.data_table.clone(),
        uid_table: config.uid_table.clone(),
        tree_table: config.tree_table.clone(),
        meta_table: config.meta_table.clone(),
        uid_cache_entries: config.uid_cache_entries,
        widths: UidWidths {
            metric: width(config.uid_width_metric)?,
            tagk: width(config.uid_width_tagk)?,
            tagv: width(config.uid_width_tagv)?,
        },
        salting: match config.salt_width {
            0 => Salting::NONE,
            bytes => Salting::new(bytes, config.salt_buckets.into()).map_err(wrong)?,
        },
        auto_create: AutoCreate {
            metric: config.auto_create_metrics,
            tagk: config.auto_create_tagks,
            tagv: config.auto_create_tagvs,
        },
        tags_max: config.max_tags.into(),
        extra_characters: config.allow_specialchars.clone(),
        // The keys that the standard library draws from the operating system, anew for each number.
        random_metrics: whole.uid.random_metrics.then(|| UidDice::new(|| RandomState::new().hash_one(0))),
        uid_filter: uid_filter(&whole.uid)?,
        realtime: Realtime {
            names: whole.meta.realtime_uid,
            series: whole.meta.realtime_ts,
            count: whole.meta.tsuid_incrementing,
            track: whole.meta.tsuid_tracking,
            trees: whole.meta.tree_processing,
            strict: whole.compat.strict,
        },
        clock: Arc::new(WallClock),
        appends: config.enable_appends,
        repair_appends: config.repair_appends && whole.server.mode != Mode::ReadOnly,
        data_times: (config.use_otsdb_timestamp && !config.enable_appends).then_some(if config.use_max_value {
            LargerOrSmaller::Larger
        } else {
            LargerOrSmaller::Smaller
        }),
        ..SchemaConfig::default()
    })
}

fn uid_filter(config: &config::Uid) -> Result<UidFilter, Failure> {
    if !config.filter {
        return Ok(UidFilter::none());
    }
    let patterns = [&config.metric_patterns, &config.tagk_patterns, &config.tagv_patterns];
    let filter = UidKind::ALL
        .into_iter()
        .zip(patterns)
        .try_fold(UidFilter::none(), |filter, (kind, patterns)| filter.with(kind, patterns, &config.pattern_delimiter));
    filter.map_err(|cause| Failure::config(format!("settings of `uid`: {cause}")))
}
