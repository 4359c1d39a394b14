//! Edits as bytes. Byte map: `docs/formats/manifest.md`.

use std::collections::BTreeMap;

use basalt_store::{
    BloomFilter, Compression, FamilyDescriptor, KeepDeletedCells, NamespaceDescriptor, TableDescriptor, Timestamp,
};
use bytes::Bytes;

use super::entry::{Edit, FileEntry, FilledRegion, Marks, NewRegion, RegionsEdit, SnapshotEntry, SnapshotRegion};
use crate::field::{Fields, put_string, put_varint};
use crate::id::{FamilyId, FileId, RegionId, TableId};
use crate::wal::SegmentId;

const CREATE_TABLE: u8 = 1;
const ALTER_TABLE: u8 = 2;
const DROP_TABLE: u8 = 3;
const FILES: u8 = 4;
const MARKS: u8 = 5;
const SET_NAMESPACE: u8 = 6;
const DROP_NAMESPACE: u8 = 7;
const SET_TABLE_STATE: u8 = 8;
const REGIONS: u8 = 9;
const SNAPSHOT: u8 = 10;
const DROP_SNAPSHOT: u8 = 11;

const ENABLED: u8 = 1;
const DISABLED: u8 = 2;

/// The flag of a family whose blocks stay out of the block cache. Flags are set where a family is not as most are.
const NO_BLOCK_CACHE: u8 = 1;
/// The flag of a family of the new version behaviour.
const NEW_VERSION_BEHAVIOR: u8 = 2;

const KEEP_DELETED: [(u8, KeepDeletedCells); 3] =
    [(1, KeepDeletedCells::False), (2, KeepDeletedCells::True), (3, KeepDeletedCells::Ttl)];
const BLOOM: [(u8, BloomFilter); 3] = [(1, BloomFilter::None), (2, BloomFilter::Row), (3, BloomFilter::RowColumn)];
const COMPRESSION: [(u8, Compression); 2] = [(1, Compression::None), (2, Compression::Zstd)];

/// Appends the edits of one record.
pub(super) fn encode_into(edits: &[Edit], out: &mut Vec<u8>) {
    put_varint(out, edits.len() as u64);
    for edit in edits {
        encode_edit(edit, out);
    }
}

fn encode_edit(edit: &Edit, out: &mut Vec<u8>) {
    match edit {
        Edit::CreateTable { id, descriptor, families, regions } => {
            out.push(CREATE_TABLE);
            put_varint(out, id.0.into());
            put_table(out, descriptor, families);
            put_varint(out, regions.len() as u64);
            for region in regions {
                put_varint(out, region.id.0);
                put_string(out, &region.start);
                put_string(out, &region.end);
            }
        }
        Edit::AlterTable { id, descriptor, families } => {
            out.push(ALTER_TABLE);
            put_varint(out, id.0.into());
            put_table(out, descriptor, families);
        }
        Edit::DropTable { id } => {
            out.push(DROP_TABLE);
            put_varint(out, id.0.into());
        }
        Edit::Files { region, flushed, removed, added } => {
            out.push(FILES);
            put_varint(out, region.0);
            put_varint(out, *flushed);
            put_varint(out, removed.len() as u64);
            for file in removed {
                put_varint(out, file.0);
            }
            put_files(out, added);
        }
        Edit::Regions(edit) => {
            out.push(REGIONS);
            put_regions(out, edit);
        }
        Edit::Snapshot(entry) => {
            out.push(SNAPSHOT);
            put_snapshot(out, entry);
        }
        Edit::DropSnapshot { name } => {
            out.push(DROP_SNAPSHOT);
            put_string(out, name.as_bytes());
        }
        Edit::Marks(marks) => {
            out.push(MARKS);
            put_varint(out, marks.log_start.0.into());
            put_varint(out, marks.clock.0);
            put_varint(out, marks.sequence);
            put_varint(out, marks.next_file);
            put_varint(out, marks.next_table.into());
            put_varint(out, marks.next_region);
            put_varint(out, marks.next_family.into());
        }
        Edit::SetNamespace(namespace) => {
            out.push(SET_NAMESPACE);
            put_string(out, namespace.name.as_bytes());
            put_pairs(out, &namespace.properties);
        }
        Edit::DropNamespace { name } => {
            out.push(DROP_NAMESPACE);
            put_string(out, name.as_bytes());
        }
        Edit::SetTableState { id, disabled } => {
            out.push(SET_TABLE_STATE);
            put_varint(out, id.0.into());
            out.push(if *disabled { DISABLED } else { ENABLED });
        }
    }
}

fn put_pairs(out: &mut Vec<u8>, pairs: &BTreeMap<String, String>) {
    put_varint(out, pairs.len() as u64);
    for (key, value) in pairs {
        put_string(out, key.as_bytes());
        put_string(out, value.as_bytes());
    }
}

fn put_files(out: &mut Vec<u8>, files: &[FileEntry]) {
    put_varint(out, files.len() as u64);
    for file in files {
        put_varint(out, file.id.0);
        put_varint(out, file.family.0.into());
        put_varint(out, file.bytes);
    }
}

fn put_table(out: &mut Vec<u8>, table: &TableDescriptor, ids: &[FamilyId]) {
    put_string(out, table.name.to_string().as_bytes());
    put_pairs(out, &table.attributes);
    put_varint(out, table.families.len() as u64);
    for (family, id) in table.families.iter().zip(ids) {
        put_varint(out, id.0.into());
        put_string(out, &family.name);
        put_varint(out, family.versions.into());
        put_varint(out, family.min_versions.into());
        // 0 is for ever, so that every number of seconds has a place.
        put_varint(out, family.ttl_seconds.map_or(0, |seconds| seconds.saturating_add(1)));
        out.push(code(&KEEP_DELETED, family.keep_deleted));
        out.push(code(&BLOOM, family.bloom));
        out.push(code(&COMPRESSION, family.compression));
        put_string(out, family.block_encoding.as_bytes());
        put_varint(out, family.block_bytes.into());
        out.push(family.in_memory.into());
        put_string(out, family.fold.as_deref().unwrap_or_default().as_bytes());
        let flags = [(!family.block_cache, NO_BLOCK_CACHE), (family.new_version_behavior, NEW_VERSION_BEHAVIOR)];
        out.push(flags.iter().map(|(is_set, flag)| if *is_set { *flag } else { 0 }).sum());
    }
}

fn put_regions(out: &mut Vec<u8>, edit: &RegionsEdit) {
    put_varint(out, edit.table.0.into());
    put_varint(out, edit.removed.len() as u64);
    for id in &edit.removed {
        put_varint(out, id.0);
    }
    put_varint(out, edit.added.len() as u64);
    for FilledRegion { region, flushed, files } in &edit.added {
        put_varint(out, region.id.0);
        put_string(out, &region.start);
        put_string(out, &region.end);
        put_varint(out, *flushed);
        put_files(out, files);
    }
}

fn put_snapshot(out: &mut Vec<u8>, entry: &SnapshotEntry) {
    put_string(out, entry.name.as_bytes());
    put_varint(out, entry.created.0);
    put_table(out, &entry.descriptor, &entry.families);
    put_varint(out, entry.regions.len() as u64);
    for region in &entry.regions {
        put_string(out, &region.start);
        put_string(out, &region.end);
        put_files(out, &region.files);
    }
}

/// The edits of a record; `None` for bytes that no writer made.
pub(super) fn decode(payload: &[u8]) -> Option<Vec<Edit>> {
    decode_with(payload, family)
}

/// How a version of the format lays out a family.
pub(super) type ReadFamily = fn(&mut Fields<'_>) -> Option<(FamilyId, FamilyDescriptor)>;

/// The edits of a record of a version whose families are read so.
pub(super) fn decode_with(payload: &[u8], family: ReadFamily) -> Option<Vec<Edit>> {
    let mut fields = Fields::new(payload);
    let edits = list(&mut fields, |fields| decode_edit(fields, family))?;
    fields.is_empty().then_some(edits)
}

fn decode_edit(fields: &mut Fields<'_>, family: ReadFamily) -> Option<Edit> {
    Some(match fields.u8()? {
        CREATE_TABLE => {
            let id = TableId(number(fields)?);
            let (descriptor, families) = table(fields, family)?;
            Edit::CreateTable { id, descriptor, families, regions: list(fields, region)? }
        }
        ALTER_TABLE => {
            let id = TableId(number(fields)?);
            let (descriptor, families) = table(fields, family)?;
            Edit::AlterTable { id, descriptor, families }
        }
        DROP_TABLE => Edit::DropTable { id: TableId(number(fields)?) },
        FILES => Edit::Files {
            region: RegionId(fields.varint()?),
            flushed: fields.varint()?,
            removed: list(fields, |fields| fields.varint().map(FileId))?,
            added: list(fields, file)?,
        },
        REGIONS => Edit::Regions(regions(fields)?),
        SNAPSHOT => Edit::Snapshot(snapshot(fields, family)?),
        DROP_SNAPSHOT => Edit::DropSnapshot { name: text(fields)?.into() },
        MARKS => Edit::Marks(Marks {
            log_start: SegmentId(number(fields)?),
            clock: Timestamp(fields.varint()?),
            sequence: fields.varint()?,
            next_file: fields.varint()?,
            next_table: number(fields)?,
            next_region: fields.varint()?,
            next_family: number(fields)?,
        }),
        SET_NAMESPACE => {
            let name = text(fields)?.into();
            Edit::SetNamespace(NamespaceDescriptor { name, properties: pairs(fields)? })
        }
        DROP_NAMESPACE => Edit::DropNamespace { name: text(fields)?.into() },
        SET_TABLE_STATE => {
            let id = TableId(number(fields)?);
            let disabled = match fields.u8()? {
                ENABLED => false,
                DISABLED => true,
                _ => return None,
            };
            Edit::SetTableState { id, disabled }
        }
        _ => return None,
    })
}

fn pairs(fields: &mut Fields<'_>) -> Option<BTreeMap<String, String>> {
    let pairs = list(fields, |fields| Some((text(fields)?, text(fields)?)))?;
    Some(pairs.into_iter().collect())
}

/// A count, then as many; never more room than bytes that are there.
fn list<T>(fields: &mut Fields<'_>, mut item: impl FnMut(&mut Fields<'_>) -> Option<T>) -> Option<Vec<T>> {
    let count = usize::try_from(fields.varint()?).ok()?;
    if count > fields.left() {
        return None;
    }
    (0..count).map(|_| item(fields)).collect()
}

fn number(fields: &mut Fields<'_>) -> Option<u32> {
    u32::try_from(fields.varint()?).ok()
}

fn text(fields: &mut Fields<'_>) -> Option<String> {
    String::from_utf8(fields.string()?.to_vec()).ok()
}

fn region(fields: &mut Fields<'_>) -> Option<NewRegion> {
    let id = RegionId(fields.varint()?);
    let start = Bytes::copy_from_slice(fields.string()?);
    Some(NewRegion { id, start, end: Bytes::copy_from_slice(fields.string()?) })
}

fn file(fields: &mut Fields<'_>) -> Option<FileEntry> {
    let id = FileId(fields.varint()?);
    let family = FamilyId(number(fields)?);
    Some(FileEntry { id, family, bytes: fields.varint()? })
}

fn table(fields: &mut Fields<'_>, family: ReadFamily) -> Option<(TableDescriptor, Vec<FamilyId>)> {
    let name = text(fields)?.parse().ok()?;
    let attributes = pairs(fields)?;
    let families = list(fields, family)?;
    let (ids, families) = families.into_iter().unzip();
    let descriptor = TableDescriptor { name, families, attributes };
    descriptor.validate().ok()?;
    Some((descriptor, ids))
}

fn regions(fields: &mut Fields<'_>) -> Option<RegionsEdit> {
    Some(RegionsEdit {
        table: TableId(number(fields)?),
        removed: list(fields, |fields| fields.varint().map(RegionId))?,
        added: list(fields, |fields| {
            let region = region(fields)?;
            let flushed = fields.varint()?;
            Some(FilledRegion { region, flushed, files: list(fields, file)? })
        })?,
    })
}

fn snapshot(fields: &mut Fields<'_>, family: ReadFamily) -> Option<SnapshotEntry> {
    let name = text(fields)?.into();
    let created = Timestamp(fields.varint()?);
    let (descriptor, families) = table(fields, family)?;
    let regions = list(fields, |fields| {
        let start = Bytes::copy_from_slice(fields.string()?);
        let end = Bytes::copy_from_slice(fields.string()?);
        Some(SnapshotRegion { start, end, files: list(fields, file)? })
    })?;
    Some(SnapshotEntry { name, created, descriptor, families, regions })
}

fn family(fields: &mut Fields<'_>) -> Option<(FamilyId, FamilyDescriptor)> {
    let (id, mut family) = family_of_version_1(fields)?;
    let flags = fields.u8()?;
    family.block_cache = flags & NO_BLOCK_CACHE == 0;
    family.new_version_behavior = flags & NEW_VERSION_BEHAVIOR != 0;
    (flags & !(NO_BLOCK_CACHE | NEW_VERSION_BEHAVIOR) == 0).then_some((id, family))
}

/// What a family was in version 1, and begins with still.
pub(super) fn family_of_version_1(fields: &mut Fields<'_>) -> Option<(FamilyId, FamilyDescriptor)> {
    let id = FamilyId(number(fields)?);
    let mut family = FamilyDescriptor::new(Bytes::copy_from_slice(fields.string()?));
    family.versions = number(fields)?;
    family.min_versions = number(fields)?;
    family.ttl_seconds = fields.varint()?.checked_sub(1);
    family.keep_deleted = named(&KEEP_DELETED, fields.u8()?)?;
    family.bloom = named(&BLOOM, fields.u8()?)?;
    family.compression = named(&COMPRESSION, fields.u8()?)?;
    family.block_encoding = text(fields)?.into();
    family.block_bytes = number(fields)?;
    family.in_memory = fields.u8()? != 0;
    let fold = text(fields)?;
    family.fold = (!fold.is_empty()).then(|| fold.into());
    Some((id, family))
}

fn code<T: Copy + PartialEq>(codes: &[(u8, T)], named: T) -> u8 {
    codes.iter().find(|(_, name)| *name == named).map_or(0, |(code, _)| *code)
}

fn named<T: Copy>(codes: &[(u8, T)], code: u8) -> Option<T> {
    codes.iter().find(|(known, _)| *known == code).map(|(_, name)| *name)
}
