//! Salt and widths of UIDs as the tables of a folder record them: who is given a folder alone must read it as it was made. What is set
//! must be so, all else is taken from there.

use basalt_schema::{Schema, SchemaConfig, UidWidth};
use basalt_store::Store;

use super::failure::no_tables;
use crate::config::Config;
use crate::exit::Failure;

/// Takes what the tables record and no setting says.
///
/// # Errors
///
/// The store's own.
pub(super) fn take(store: &dyn Store, config: &Config, schema: &mut SchemaConfig) -> Result<(), Failure> {
    let is_set = |setting: &str| config.is_set(&format!("schema.{}", setting.replace('.', "_")));
    Schema::take_recorded(store, schema, is_set).map_err(|cause| no_tables(&cause))
}

/// Has the configuration tell what is in force.
pub(crate) fn tell(schema: &SchemaConfig, config: &mut Config) {
    let (salting, widths, settings) = (schema.salting, schema.widths, &mut config.schema);
    let bytes = |width: UidWidth, set: u8| u8::try_from(width.bytes()).unwrap_or(set);
    settings.uid_width_metric = bytes(widths.metric, settings.uid_width_metric);
    settings.uid_width_tagk = bytes(widths.tagk, settings.uid_width_tagk);
    settings.uid_width_tagv = bytes(widths.tagv, settings.uid_width_tagv);
    settings.salt_width = u8::try_from(salting.width()).unwrap_or(settings.salt_width);
    if salting.width() > 0 {
        settings.salt_buckets = u16::try_from(salting.buckets()).unwrap_or(settings.salt_buckets);
    }
}
