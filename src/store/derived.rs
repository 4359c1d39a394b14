//! What is kept beside points: histograms and rollups, as their JSON settings say; and the namespaces that tables are named in.

use std::path::Path;

use basalt_schema::{NameRole, NameRules, Rollup, RollupSettings, Rollups, SchemaConfig};
use basalt_store::{NamespaceDescriptor, Store, TableName};

use crate::aside;
use crate::config::Config;
use crate::exit::Failure;

/// The one codec of histograms that is built in, under its name in OpenTSDB's settings.
const SIMPLE_CODEC: &str = "net.opentsdb.core.SimpleHistogramDecoder";

/// The ID of the simple codec, if histograms are kept.
///
/// # Errors
///
/// Exit code 3: a setting that is no JSON of codecs, or names one that is not there.
pub(super) fn histogram_id(config: &Config) -> Result<Option<u8>, Failure> {
    let wrong = |why: String| Failure::config(format!("setting `schema.histograms`: {why}"));
    let Some(json) = text_of(&config.schema.histograms).map_err(wrong)? else { return Ok(None) };
    let codecs: std::collections::BTreeMap<String, i64> =
        serde_json::from_str(&json).map_err(|cause| wrong(cause.to_string()))?;
    let mut simple = None;
    for (name, id) in codecs {
        if name != SIMPLE_CODEC {
            return Err(wrong(format!("Unable to find a decoder named '{name}'")));
        }
        let id = u8::try_from(id).map_err(|_| wrong(format!("ID for codec '{name}' must be from 0 to 255.")))?;
        simple = Some(id);
    }
    Ok(simple)
}

/// The rollups, if any are kept.
///
/// # Errors
///
/// Exit code 3: what is wrong with the configuration, in OpenTSDB's words.
pub(super) fn rollups(config: &Config) -> Result<Option<Rollups>, Failure> {
    let wrong = |why: String| Failure::config(format!("setting `rollups.config`: {why}"));
    if !config.rollups.enable {
        return Ok(None);
    }
    let Some(json) = text_of(&config.rollups.config).map_err(wrong)? else { return Ok(None) };
    let settings = RollupSettings {
        tag_key: config.rollups.agg_tag_key.clone(),
        raw_tag_value: config.rollups.raw_agg_tag_value.clone(),
        tag_raw: config.rollups.tag_raw,
        block_derived: config.rollups.block_derived,
        split_queries: config.rollups.split_query,
    };
    check_tag(config)?;
    Rollups::parse(&json, settings).map(Some).map_err(wrong)
}

/// Checks the tag that tells how series were joined: each rollup has its key, and would be refused for it.
fn check_tag(config: &Config) -> Result<(), Failure> {
    let rules = NameRules::new(&config.schema.allow_specialchars, config.schema.max_tags.into());
    let check = |setting: &str, role: NameRole, name: &str| {
        rules.check(role, name).map_err(|cause| Failure::config(format!("setting `{setting}`: {cause}")))
    };
    check("rollups.agg_tag_key", NameRole::TagName, &config.rollups.agg_tag_key)?;
    if config.rollups.tag_raw {
        check("rollups.raw_agg_tag_value", NameRole::TagValue, &config.rollups.raw_agg_tag_value)?;
    }
    Ok(())
}

/// What a person should know of the rollups, one line each.
pub(super) fn warnings(rollups: &Rollups) -> Vec<String> {
    let lacking = rollups.iter().filter(|rollup| rollup.lacks_slots());
    let warning = |rollup: &Rollup| {
        let (name, slots, most) = (rollup.name(), rollup.slots_count(), Rollup::SLOTS_MAX);
        format!(
            "setting `rollups.config`: a row of {name} has {slots} intervals, and qualifiers tell {most}: points behind those \
             are refused; a shorter rowSpan, with new tables, or a longer interval has a place for all"
        )
    };
    lacking.map(warning).collect()
}

/// Has the namespaces that these settings name tables in, in a store that is only there to try them: which there are is the real one's
/// to say. A name that is none is left to who makes its table.
///
/// # Errors
///
/// What the store says.
pub(super) fn make_namespaces(trial: &dyn Store, schema: &SchemaConfig) -> basalt_store::Result<()> {
    let plain = [&schema.data_table, &schema.uid_table, &schema.tree_table, &schema.meta_table];
    let plain = plain.into_iter().filter_map(|name| name.parse::<TableName>().ok());
    let of_rollup = |rollup: &Rollup| [rollup.table().clone(), rollup.preaggregate_table().clone()];
    for table in plain.chain(schema.rollups.iter().flat_map(Rollups::iter).flat_map(of_rollup)) {
        if trial.describe_namespace(table.namespace()).is_err() {
            trial.create_namespace(NamespaceDescriptor::new(table.namespace()))?;
        }
    }
    Ok(())
}

/// JSON, or what the `.json` file of that name holds; nothing for an empty setting.
fn text_of(setting: &str) -> Result<Option<String>, String> {
    match setting.trim() {
        "" => Ok(None),
        path if Path::new(path).extension().is_some_and(|end| end == "json") => {
            aside::read_text(Path::new(path)).map(Some).map_err(|cause| format!("cannot read {path}: {cause}"))
        }
        json if json.starts_with('{') => Ok(Some(json.to_owned())),
        other => Err(format!("`{other}` is neither JSON in braces nor the name of a .json file")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn s_histo_codecs_are_named_as_opentsdb_names_them() {
        let mut config = Config::default();
        assert!(matches!(histogram_id(&config), Ok(None)));
        for (setting, id) in [
            (format!(r#"{{"{SIMPLE_CODEC}": 42}}"#), Some(Some(42))),
            (format!(r#"{{"{SIMPLE_CODEC}": 256}}"#), None),
            (r#"{"a.b.C": 1}"#.to_owned(), None),
            ("[".to_owned(), None),
            ("/nowhere/histograms.json".to_owned(), None),
        ] {
            config.schema.histograms.clone_from(&setting);
            assert_eq!(histogram_id(&config).ok(), id, "{setting}");
        }
        config.schema.histograms = "/etc/histograms.conf".to_owned();
        let line = histogram_id(&config).unwrap_err().line;
        assert!(
            line.contains("`/etc/histograms.conf` is neither JSON in braces nor the name of a .json file"),
            "{line}"
        );
    }

    #[test]
    fn s_rollup_config_is_read_from_text_or_file() {
        let json = r#"{"aggregationIds":{"sum":0},"intervals":[
            {"table":"t","preAggregationTable":"p","interval":"1h","rowSpan":"1d"}]}"#;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("rollups.json");
        std::fs::write(&path, json).unwrap();
        let mut config = Config::default();
        config.rollups.enable = true;
        for setting in [json.to_owned(), path.display().to_string()] {
            config.rollups.config = setting;
            assert!(rollups(&config).unwrap().is_some_and(|rollups| rollups.by_name("1h").is_some()));
        }
        config.rollups.enable = false;
        assert!(matches!(rollups(&config), Ok(None)));
        config.rollups.enable = true;
        config.rollups.config = "{}".to_owned();
        assert!(rollups(&config).unwrap_err().line.contains("no intervals were found"));
    }

    /// `S-PREAGG`: each rollup has the tag, so a start says that it is no name, and not the first rollup.
    #[test]
    fn s_preagg_the_tag_that_tells_how_series_were_joined_has_a_name() {
        let told = |key: &str, value: &str, tag_raw: bool| {
            let mut config = Config::default();
            config.rollups.enable = true;
            config.rollups.config = r#"{"aggregationIds":{"sum":0},"intervals":[
                {"table":"t","preAggregationTable":"p","interval":"1h","rowSpan":"1d"}]}"#
                .to_owned();
            config.rollups.tag_raw = tag_raw;
            (config.rollups.agg_tag_key, config.rollups.raw_agg_tag_value) = (key.to_owned(), value.to_owned());
            rollups(&config).err().map(|failure| failure.line).unwrap_or_default()
        };
        assert_eq!(told("_agg", "RAW", true), "");
        for key in ["", "a b"] {
            let line = told(key, "RAW", false);
            assert!(line.contains("setting `rollups.agg_tag_key`: Invalid tag name"), "{line}");
        }
        assert_eq!(told("_agg", "", false), "", "no rollup has it");
        assert!(told("_agg", "", true).contains("setting `rollups.raw_agg_tag_value`: Invalid tag value"));
    }

    /// What OpenTSDB takes starts here too; its rows may have more intervals than slots.
    #[test]
    fn s_rollup_config_of_rows_with_too_few_slots_is_warned_of() {
        let mut config = Config::default();
        config.rollups.enable = true;
        config.rollups.config = r#"{"aggregationIds":{"sum":0},"intervals":[
            {"table":"t","preAggregationTable":"p","interval":"10m","rowSpan":"1n"},
            {"table":"t","preAggregationTable":"p","interval":"1h","rowSpan":"1n"}]}"#
            .to_owned();
        let told = crate::store::warnings(&config);
        assert!(matches!(&told[..], [line] if line.contains("a row of 10m has 4608 intervals")), "{told:?}");
        config.rollups.enable = false;
        assert!(crate::store::warnings(&config).is_empty());
    }
}
