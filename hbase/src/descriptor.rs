//! Namespaces and tables as HBase keeps them: attributes by name, all in text.

use std::collections::BTreeMap;

use basalt_store::{
    BloomFilter, Compression, Error, FamilyDescriptor, KeepDeletedCells, NamespaceDescriptor, Result, TableDescriptor,
    TableName,
};
use bytes::Bytes;

use crate::error::Error as OwnError;
use crate::pb::cluster::{ColumnFamilySchema, TableName as NameMessage, TableSchema};
use crate::pb::master::NamespaceDescriptor as NamespaceMessage;
use crate::pb::rpc::{BytesBytesPair, NameStringPair};

/// HBase's "for ever".
const FOREVER: u64 = i32::MAX.unsigned_abs() as u64;
/// A setting of ours that HBase has no word for rides along as a family's own.
const OWN_FOLD: &str = "basalt.fold";
/// What HBase keeps with a table by itself, and refuses to see changed: it is not told, and so not taken away.
const HIDDEN: [&str; 2] = ["IS_META", "hbase.store.file-tracker.impl"];

pub(crate) fn name(table: &TableName) -> NameMessage {
    NameMessage {
        namespace: Bytes::copy_from_slice(table.namespace().as_bytes()),
        qualifier: Bytes::copy_from_slice(table.qualifier().as_bytes()),
    }
}

/// # Errors
/// `Invalid`: a name that none of our rules allows.
pub(crate) fn told_name(name: &NameMessage) -> Result<TableName> {
    format!("{}:{}", String::from_utf8_lossy(&name.namespace), String::from_utf8_lossy(&name.qualifier)).parse()
}

fn pair(key: &str, value: impl Into<String>) -> BytesBytesPair {
    BytesBytesPair { first: Bytes::copy_from_slice(key.as_bytes()), second: value.into().into() }
}

fn flag(flag: bool) -> &'static str {
    if flag { "true" } else { "false" }
}

/// A new table's settings; `compression` is what a compressed family is made with.
pub(crate) fn schema(table: &TableDescriptor, compression: &str) -> TableSchema {
    TableSchema {
        table_name: Some(name(&table.name)),
        attributes: table_attributes(table),
        column_families: table.families.iter().map(|family| family_schema(family, compression)).collect(),
        configuration: Vec::new(),
    }
}

/// An altered table's settings: what HBase has of it, but for what is to be otherwise. What we have no word for stays.
///
/// # Errors
/// `Corrupt`: as [`told_table`].
pub(crate) fn altered(table: &TableDescriptor, compression: &str, before: &TableSchema) -> Result<TableSchema> {
    let family = |family: &FamilyDescriptor| {
        let before = before.column_families.iter().find(|before| before.name == family.name);
        let Some(before) = before else { return Ok(family_schema(family, compression)) };
        let told = told_family(before)?;
        // A codec of the cluster's is another's to change.
        let held = texts(&before.attributes).remove("COMPRESSION").filter(|_| told.compression != Compression::None);
        let compression = held.as_deref().unwrap_or(compression);
        let (told, wanted) = (family_schema(&told, compression), family_schema(family, compression));
        let attributes = changed(&before.attributes, &told.attributes, wanted.attributes);
        Ok(ColumnFamilySchema { attributes, ..before.clone() })
    };
    let told = table_attributes(&told_table(before)?);
    Ok(TableSchema {
        table_name: before.table_name.clone(),
        attributes: changed(&before.attributes, &told, table_attributes(table)),
        column_families: table.families.iter().map(family).collect::<Result<_>>()?,
        configuration: before.configuration.clone(),
    })
}

/// What HBase has, but for those of our words that were told otherwise or not at all.
fn changed(before: &[BytesBytesPair], told: &[BytesBytesPair], wanted: Vec<BytesBytesPair>) -> Vec<BytesBytesPair> {
    let of = |pairs: &[BytesBytesPair], key: &Bytes| pairs.iter().find(|pair| pair.first == key).cloned();
    let is_kept = |pair: &&BytesBytesPair| of(told, &pair.first) == of(&wanted, &pair.first);
    let mut pairs: Vec<_> = before.iter().filter(is_kept).cloned().collect();
    pairs.extend(wanted.into_iter().filter(|pair| !told.contains(pair)));
    pairs
}

fn table_attributes(table: &TableDescriptor) -> Vec<BytesBytesPair> {
    table.attributes.iter().map(|(key, value)| pair(key, &**value)).collect()
}

fn family_schema(family: &FamilyDescriptor, compression: &str) -> ColumnFamilySchema {
    let compression = if family.compression == Compression::None { family.compression.name() } else { compression };
    let signed = |number: u32| number.min(i32::MAX.unsigned_abs()).to_string();
    let mut attributes = vec![
        pair("VERSIONS", signed(family.versions)),
        pair("MIN_VERSIONS", signed(family.min_versions)),
        pair("TTL", family.ttl_seconds.unwrap_or(FOREVER).min(FOREVER).to_string()),
        pair("KEEP_DELETED_CELLS", family.keep_deleted.name()),
        pair("BLOOMFILTER", family.bloom.name()),
        pair("COMPRESSION", compression),
        pair("DATA_BLOCK_ENCODING", &*family.block_encoding),
        pair("BLOCKSIZE", signed(family.block_bytes)),
        pair("IN_MEMORY", flag(family.in_memory)),
        pair("BLOCKCACHE", flag(family.block_cache)),
        pair("NEW_VERSION_BEHAVIOR", flag(family.new_version_behavior)),
    ];
    attributes.extend(family.fold.as_deref().map(|fold| pair(OWN_FOLD, fold)));
    ColumnFamilySchema { name: family.name.clone(), attributes, configuration: Vec::new() }
}

/// # Errors
/// `Corrupt`: a value that HBase does not write.
pub(crate) fn told_table(schema: &TableSchema) -> Result<TableDescriptor> {
    let none = || OwnError::malformed("a table's settings", "they name no table");
    let name = told_name(schema.table_name.as_ref().ok_or_else(none)?)?;
    let families = schema.column_families.iter().map(told_family).collect::<Result<_>>()?;
    let mut table = TableDescriptor::new(name, families);
    table.attributes = texts(&schema.attributes);
    table.attributes.retain(|key, _| !HIDDEN.contains(&&**key));
    Ok(table)
}

fn texts(pairs: &[BytesBytesPair]) -> BTreeMap<String, String> {
    let text = |bytes: &Bytes| String::from_utf8_lossy(bytes).into_owned();
    pairs.iter().map(|pair| (text(&pair.first), text(&pair.second))).collect()
}

fn told_family(schema: &ColumnFamilySchema) -> Result<FamilyDescriptor> {
    let set = texts(&schema.attributes);
    let text = |key: &str| set.get(key).map(String::as_str);
    let is_set = |key: &str, otherwise: bool| text(key).map_or(otherwise, |value| value.eq_ignore_ascii_case("true"));
    let mut family = FamilyDescriptor::new(schema.name.clone());
    family.versions = number(text("VERSIONS"), family.versions)?;
    family.min_versions = number(text("MIN_VERSIONS"), 0)?;
    family.ttl_seconds = Some(ttl(text("TTL"))?).filter(|&seconds| seconds < FOREVER);
    let keep_deleted = text("KEEP_DELETED_CELLS").map(str::to_ascii_uppercase);
    family.keep_deleted = keep_deleted.and_then(|name| KeepDeletedCells::named(&name)).unwrap_or_default();
    family.bloom = text("BLOOMFILTER").and_then(BloomFilter::named).unwrap_or_default();
    let compression = text("COMPRESSION").unwrap_or("NONE").to_ascii_uppercase();
    family.compression = Compression::named(&compression).unwrap_or(Compression::Zstd);
    family.block_encoding = text("DATA_BLOCK_ENCODING").unwrap_or("NONE").into();
    family.block_bytes = number(text("BLOCKSIZE"), family.block_bytes)?;
    family.in_memory = is_set("IN_MEMORY", false);
    family.block_cache = is_set("BLOCKCACHE", true);
    family.new_version_behavior = is_set("NEW_VERSION_BEHAVIOR", false);
    family.fold = text(OWN_FOLD).map(Into::into);
    Ok(family)
}

fn number(text: Option<&str>, otherwise: u32) -> Result<u32> {
    text.map_or(Ok(otherwise), |text| text.trim().parse().map_err(|_| wrong(text)))
}

fn ttl(text: Option<&str>) -> Result<u64> {
    match text.map(str::trim) {
        None | Some("FOREVER") => Ok(FOREVER),
        Some(text) => text.parse().map_err(|_| wrong(text)),
    }
}

fn wrong(text: &str) -> Error {
    OwnError::malformed("a family's settings", format!("'{text}' is no number")).into()
}

pub(crate) fn namespace(namespace: &NamespaceDescriptor) -> NamespaceMessage {
    let set = |(name, value): (&String, &String)| NameStringPair { name: name.clone(), value: value.clone() };
    NamespaceMessage {
        name: Bytes::copy_from_slice(namespace.name.as_bytes()),
        configuration: namespace.properties.iter().map(set).collect(),
    }
}

pub(crate) fn told_namespace(message: NamespaceMessage) -> NamespaceDescriptor {
    let mut namespace = NamespaceDescriptor::new(&*String::from_utf8_lossy(&message.name));
    namespace.properties = message.configuration.into_iter().map(|set| (set.name, set.value)).collect();
    namespace
}

#[cfg(test)]
mod tests {
    use super::*;
    use prost::Message as _;

    #[test]
    fn s_cf_7_every_setting_comes_back() {
        let mut family = FamilyDescriptor::new("t").with_versions(7).with_ttl(3600);
        family.min_versions = 2;
        family.keep_deleted = KeepDeletedCells::Ttl;
        family.bloom = BloomFilter::RowColumn;
        family.block_encoding = "DIFF".into();
        family.block_bytes = 4096;
        (family.in_memory, family.block_cache, family.new_version_behavior) = (true, false, true);
        family.fold = Some("hours".into());
        for compression in [Compression::None, Compression::Zstd] {
            family.compression = compression;
            let families = vec![family.clone(), FamilyDescriptor::new("u")];
            let table = TableDescriptor::new("ns:t".parse().unwrap(), families).with_attribute("MAX_FILESIZE", "7");
            assert_eq!(told_table(&schema(&table, "SNAPPY")).unwrap(), table);
        }
    }

    /// A table of OpenTSDB's own script, as HBase 2.6 describes it: `TTL => FOREVER`, no word of ours.
    #[test]
    fn what_others_made_is_read_by_hbases_words() {
        let attributes = [("VERSIONS", "1"), ("TTL", "FOREVER"), ("COMPRESSION", "LZO"), ("BLOOMFILTER", "ROW")];
        let attributes = attributes.map(|(key, value)| pair(key, value)).to_vec();
        let schema = ColumnFamilySchema { name: "t".into(), attributes, configuration: Vec::new() };
        let family = told_family(&schema).unwrap();
        assert_eq!(family, FamilyDescriptor::new("t"));
    }

    /// `hbase.compression` is NONE unless it is set.
    #[test]
    fn s_cf_7_what_the_cluster_does_not_compress_is_told_so() {
        let table = |versions, compression| {
            let family = FamilyDescriptor { compression, ..FamilyDescriptor::new("f").with_versions(versions) };
            TableDescriptor::new("t".parse().unwrap(), vec![family])
        };
        let held = |schema: &TableSchema| texts(&schema.column_families[0].attributes).remove("COMPRESSION").unwrap();
        let mut before = schema(&table(1, Compression::Zstd), "NONE");
        // As older versions of ours wrote what was wanted.
        before.column_families[0].attributes.push(pair("basalt.compression", "ZSTD"));
        assert_eq!(told_table(&before).unwrap(), table(1, Compression::None));
        let other = altered(&table(3, Compression::None), "SNAPPY", &before).unwrap();
        assert_eq!(held(&other), "NONE");
        let compressed = altered(&table(1, Compression::Zstd), "SNAPPY", &before).unwrap();
        assert_eq!(held(&compressed), "SNAPPY");
        // The setting is no longer that: an alteration of something else keeps the cluster's, one of it takes it away.
        assert_eq!(held(&altered(&table(3, Compression::Zstd), "NONE", &compressed).unwrap()), "SNAPPY");
        assert_eq!(held(&altered(&table(1, Compression::None), "NONE", &compressed).unwrap()), "NONE");
        let bare = ColumnFamilySchema { name: "f".into(), ..ColumnFamilySchema::default() };
        assert_eq!(told_family(&bare).unwrap().compression, Compression::None);
    }

    #[test]
    fn what_hbase_keeps_by_itself_is_neither_told_nor_lost() {
        let table = TableDescriptor::new("t".parse().unwrap(), vec![FamilyDescriptor::new("f")]);
        let mut before = schema(&table, "GZ");
        before.attributes.extend(HIDDEN.map(|key| pair(key, "DEFAULT")));
        assert_eq!(told_table(&before).unwrap(), table);
        let altered = altered(&table, "GZ", &before).unwrap();
        assert_eq!(altered.attributes, HIDDEN.map(|key| pair(key, "DEFAULT")));
    }

    fn field(tag: u8, bytes: &[u8]) -> Vec<u8> {
        let mut out = vec![tag << 3 | 2];
        prost::encode_length_delimiter(bytes.len(), &mut out).unwrap();
        [&out[..], bytes].concat()
    }

    type Word<'a> = (&'a str, &'a [u8]);

    fn pairs(tag: u8, pairs: &[Word<'_>]) -> Vec<u8> {
        let one = |(key, value): &Word<'_>| field(tag, &[field(1, key.as_bytes()), field(2, value)].concat());
        pairs.iter().flat_map(one).collect()
    }

    /// A table that others made, as the bytes that HBase sends: words and values that we have none for.
    fn foreign_table(table: &[Word<'_>], family: &[Word<'_>]) -> Vec<u8> {
        let name = field(1, &[field(1, b"default"), field(2, b"t")].concat());
        let own = pairs(3, &[("hbase.hstore.blockingStoreFiles", b"50")]);
        let family = [field(1, b"f"), pairs(2, family), own].concat();
        [name, pairs(2, table), field(3, &family), pairs(4, &[("hbase.old", b"1")])].concat()
    }

    #[test]
    fn s_cf_7_an_alteration_changes_what_it_says_and_nothing_else() {
        let table_words: [Word<'_>; 2] = [("NORMALIZATION_ENABLED", b"true"), ("BYTES", b"\xff\xfe")];
        let family_words: [Word<'_>; 6] = [
            ("COMPRESSION", b"LZO"),
            ("REPLICATION_SCOPE", b"1"),
            ("TTL", b"FOREVER"),
            ("BLOOMFILTER", b"ROWPREFIX_FIXED_LENGTH"),
            ("BYTES", b"\xff\xfe"),
            ("VERSIONS", b"3"),
        ];
        let before = TableSchema::decode(&foreign_table(&table_words, &family_words)[..]).unwrap();
        let mut table = told_table(&before).unwrap();
        let same = altered(&table, "NONE", &before).unwrap();
        assert_eq!(same.encode_to_vec(), foreign_table(&table_words, &family_words));
        table.families[0].versions = 7;
        let table = table.with_attribute("MINE", "1");
        let altered = altered(&table, "NONE", &before).unwrap().encode_to_vec();
        let table_words = [&table_words[..], &[("MINE", b"1")]].concat();
        let family_words = [&family_words[..5], &[("VERSIONS", b"7")]].concat();
        assert_eq!(altered, foreign_table(&table_words, &family_words));
    }

    #[test]
    fn s_cf_7_an_alteration_takes_away_what_is_told_no_more() {
        let mut family = FamilyDescriptor::new("f");
        (family.fold, family.compression) = (Some("hours".into()), Compression::None);
        let families = vec![family.clone(), FamilyDescriptor::new("g")];
        let before = TableDescriptor::new("t".parse().unwrap(), families).with_attribute("MAX_FILESIZE", "7");
        (family.fold, family.compression) = (None, Compression::Zstd);
        let after = TableDescriptor::new("t".parse().unwrap(), vec![family, FamilyDescriptor::new("h")]);
        let altered = altered(&after, "SNAPPY", &schema(&before, "SNAPPY")).unwrap();
        assert_eq!(told_table(&altered).unwrap(), after);
        assert!(altered.column_families[0].attributes.contains(&pair("COMPRESSION", "SNAPPY")));
    }
}
