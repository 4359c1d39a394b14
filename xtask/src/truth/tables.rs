//! Namespaces, tables and regions, over the pipe.

use std::collections::BTreeMap;

use anyhow::{Context as _, Result};
use basalt_store::{
    BloomFilter, Compression, FamilyDescriptor, KeepDeletedCells, NamespaceDescriptor, RegionInfo, SnapshotInfo,
    TableDescriptor, Timestamp,
};
use bytes::Bytes;

use super::wire::{Ask, Told};

const KEEP: [KeepDeletedCells; 3] = [KeepDeletedCells::False, KeepDeletedCells::True, KeepDeletedCells::Ttl];
const BLOOM: [BloomFilter; 3] = [BloomFilter::None, BloomFilter::Row, BloomFilter::RowColumn];
const COMPRESSION: [Compression; 2] = [Compression::None, Compression::Zstd];

/// A setting's place in its list.
fn code<T: PartialEq>(all: &[T], one: &T) -> u8 {
    all.iter().position(|other| other == one).and_then(|at| u8::try_from(at).ok()).unwrap_or(u8::MAX)
}

fn setting<T: Copy>(all: &[T], code: u8) -> Result<T> {
    all.get(usize::from(code)).copied().with_context(|| format!("no setting {code}"))
}

fn settings(ask: Ask, settings: &BTreeMap<String, String>) -> Ask {
    ask.list(settings.iter(), |ask, (key, value)| ask.bytes(key).bytes(value))
}

fn told_settings(told: &mut Told<'_>) -> Result<BTreeMap<String, String>> {
    Ok(told.list(|told| Ok((told.text()?, told.text()?)))?.into_iter().collect())
}

pub(super) fn namespace(namespace: &NamespaceDescriptor) -> Ask {
    settings(Ask::default().bytes(&*namespace.name), &namespace.properties)
}

pub(super) fn told_namespace(told: &mut Told<'_>) -> Result<NamespaceDescriptor> {
    let mut namespace = NamespaceDescriptor::new(told.text()?);
    namespace.properties = told_settings(told)?;
    Ok(namespace)
}

pub(super) fn table(table: &TableDescriptor) -> Ask {
    let ask = Ask::default().bytes(table.name.to_string()).list(table.families.iter(), |ask, family| {
        ask.bytes(&family.name)
            .u32(family.versions)
            .u32(family.min_versions)
            .u64(family.ttl_seconds.unwrap_or(0))
            .u8(code(&KEEP, &family.keep_deleted))
            .u8(code(&BLOOM, &family.bloom))
            .u8(code(&COMPRESSION, &family.compression))
            .bytes(&*family.block_encoding)
            .u32(family.block_bytes)
            .flag(family.in_memory)
            .flag(family.block_cache)
            .flag(family.new_version_behavior)
            .bytes(family.fold.as_deref().unwrap_or_default())
    });
    settings(ask, &table.attributes)
}

pub(super) fn told_table(told: &mut Told<'_>) -> Result<TableDescriptor> {
    let name = told.text()?.parse()?;
    let families = told.list(|told| {
        let name = Bytes::copy_from_slice(told.bytes()?);
        let mut family = FamilyDescriptor::new(name).with_versions(told.u32()?);
        family.min_versions = told.u32()?;
        family.ttl_seconds = Some(told.u64()?).filter(|&seconds| seconds > 0);
        family.keep_deleted = setting(&KEEP, told.u8()?)?;
        family.bloom = setting(&BLOOM, told.u8()?)?;
        family.compression = setting(&COMPRESSION, told.u8()?)?;
        family.block_encoding = told.text()?.into();
        family.block_bytes = told.u32()?;
        family.in_memory = told.flag()?;
        family.block_cache = told.flag()?;
        family.new_version_behavior = told.flag()?;
        family.fold = Some(told.text()?).filter(|fold| !fold.is_empty()).map(Into::into);
        Ok(family)
    })?;
    let mut table = TableDescriptor::new(name, families);
    table.attributes = told_settings(told)?;
    Ok(table)
}

pub(super) fn told_snapshot(told: &mut Told<'_>) -> Result<SnapshotInfo> {
    let (name, table, created) = (told.text()?.into(), told.text()?.parse()?, Timestamp(told.u64()?));
    Ok(SnapshotInfo { name, table, created, regions_count: told.u64()?, files_count: 0, file_bytes: 0 })
}

pub(super) fn told_regions(told: &mut Told<'_>) -> Result<Vec<RegionInfo>> {
    told.list(|told| {
        Ok(RegionInfo {
            id: told.u64()?,
            start: Bytes::copy_from_slice(told.bytes()?),
            end: Bytes::copy_from_slice(told.bytes()?),
            file_bytes: told.u64()?,
            memtable_bytes: told.u64()?,
            files_count: told.u64()?,
            reads_count: told.u64()?,
            writes_count: told.u64()?,
        })
    })
}
