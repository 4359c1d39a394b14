//! Opens the store that the configuration names.

use std::sync::Arc;

use basalt_schema::{AutoCreate, Salting, Schema, SchemaConfig, UidWidth, UidWidths};
use basalt_store::{ErrorKind, MemoryStore, Store};

use crate::clock::WallClock;
use crate::config::{self, Config, StoreKind};
use crate::exit::{Exit, Failure};

/// Opens store and tables.
///
/// *Cost*: recovery of the log, then a scan of the data table's keys; call it on a thread that may
/// block.
///
/// # Errors
///
/// One line with exit code 4 (folder in use), 5 (damage), 75 (disk full), 3 (settings other than
/// those the tables were made with), 1 for the rest.
pub(crate) fn open(config: &Config) -> Result<Schema, Failure> {
    let store: Arc<dyn Store> = match config.store.kind {
        StoreKind::Memory => Arc::new(MemoryStore::new(Arc::new(WallClock))),
        StoreKind::Embedded => {
            return Err(Failure::config("store embedded is not part of this version yet: choose memory"));
        }
        StoreKind::Hbase => {
            return Err(Failure::config("store hbase is not part of this version yet: choose embedded or memory"));
        }
    };
    Schema::open(store, schema_config(&config.schema)?).map_err(|cause| {
        let exit = match cause.kind() {
            ErrorKind::Invalid => Exit::Config,
            ErrorKind::Corrupt => Exit::Damage,
            ErrorKind::ReadOnly => Exit::TryLater,
            _ => Exit::Failure,
        };
        Failure::new(exit, format!("cannot open the tables: {cause}"))
    })
}

fn schema_config(config: &config::Schema) -> Result<SchemaConfig, Failure> {
    let wrong = |cause: basalt_schema::Error| Failure::config(format!("settings of `schema`: {cause}"));
    let width = |bytes| UidWidth::new(bytes).map_err(wrong);
    Ok(SchemaConfig {
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
        ..SchemaConfig::default()
    })
}
