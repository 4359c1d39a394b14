//! What is said of a name: the meta object of a UID.
//!
//! ```text
//! row  UID        family  name        qualifier  metric_meta, tagk_meta, tagv_meta
//! value  JSON: type, displayName, description, notes, created, custom
//! ```
//!
//! It lies in the row of the reverse map, whose cell gives its name. *Source*: OpenTSDB 2.4 `UIDMeta` (rules S-UIDMETA,
//! M-UIDMETA).

use std::collections::BTreeMap;

use basalt_store::Durability;
use serde::{Deserialize, Serialize};

use crate::json_cell::{EditMode, JsonCell};
use crate::meta_json::{self, Pairs};
use crate::tables::UID_NAME_FAMILY;
use crate::{Result, Schema, Uid, UidKind};

/// A UID's meta object. Serialized as OpenTSDB answers it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct UidMeta {
    /// The UID in upper-case hex.
    pub uid: String,
    /// `METRIC`, `TAGK` or `TAGV`.
    #[serde(rename = "type")]
    pub kind: &'static str,
    /// The name that the UID stands for.
    pub name: String,
    /// In a line.
    pub description: String,
    /// At length.
    pub notes: String,
    /// When it was made, seconds; 0 where nobody said.
    pub created: i64,
    /// The writer's own members.
    pub custom: Option<BTreeMap<String, String>>,
    /// A name for people.
    pub display_name: String,
}

/// What of a meta object changes; `None` is not given.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct UidMetaEdit {
    /// A name for people.
    pub display_name: Option<String>,
    /// In a line.
    pub description: Option<String>,
    /// At length.
    pub notes: Option<String>,
    /// When it was made, seconds; the earlier of two stays.
    pub created: Option<i64>,
    /// The writer's own members, all of them.
    pub custom: Option<BTreeMap<String, String>>,
}

/// The cell's JSON.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Stored {
    #[serde(rename = "type", deserialize_with = "meta_json::text")]
    kind: String,
    #[serde(deserialize_with = "meta_json::text")]
    display_name: String,
    #[serde(deserialize_with = "meta_json::text")]
    description: String,
    #[serde(deserialize_with = "meta_json::text")]
    notes: String,
    created: i64,
    #[serde(deserialize_with = "meta_json::pairs")]
    custom: Pairs,
}

impl UidMetaEdit {
    /// Whether anything is given.
    pub const fn is_empty(&self) -> bool {
        self.display_name.is_none()
            && self.description.is_none()
            && self.notes.is_none()
            && self.created.is_none()
            && self.custom.is_none()
    }

    fn applied(&self, kind: UidKind, stored: Stored, mode: EditMode) -> Stored {
        let created = earlier(stored.created, self.created);
        let kept = if mode == EditMode::Merge { stored } else { Stored::default() };
        Stored {
            kind: type_name(kind).into(),
            display_name: self.display_name.clone().unwrap_or(kept.display_name),
            description: self.description.clone().unwrap_or(kept.description),
            notes: self.notes.clone().unwrap_or(kept.notes),
            created,
            custom: self.custom.clone().or(kept.custom),
        }
    }
}

/// Of a stored and a given time the earlier one, where 0 is none.
pub(crate) fn earlier(stored: i64, given: Option<i64>) -> i64 {
    match given {
        Some(given) if stored == 0 || given < stored => given,
        _ => stored,
    }
}

impl Schema {
    /// The meta object of a UID; an empty one where nothing was said.
    ///
    /// # Errors
    /// `NotFound`: a UID without a name. `Corrupt`: a cell that is no meta object. The store's own.
    pub fn uid_meta(&self, kind: UidKind, uid: Uid) -> Result<UidMeta> {
        let name = self.uids().of(kind).name(uid)?;
        Ok(self.uid_meta_of(kind, uid, &name, decode(self.uid_meta_cell(kind, uid).read()?.as_deref())?))
    }

    /// Changes a meta object, or makes it. Durable when it returns.
    ///
    /// # Errors
    /// `NotFound`: a UID without a name. `Conflict`: others changed it at every attempt. `Corrupt`, and the store's own.
    pub fn edit_uid_meta(&self, kind: UidKind, uid: Uid, edit: &UidMetaEdit, mode: EditMode) -> Result<UidMeta> {
        let name = self.uids().of(kind).name(uid)?;
        let stored = self.uid_meta_cell(kind, uid).edit(|before| {
            let after = edit.applied(kind, decode(before)?, mode);
            Ok((meta_json::encode(&after), after))
        })?;
        Ok(self.uid_meta_of(kind, uid, &name, stored))
    }

    /// Sets a meta object's time to an earlier one, or makes the object. Durable with the next write at level `Fsync`.
    pub(crate) fn set_back_uid_meta(&self, kind: UidKind, uid: Uid, created: i64) -> Result<()> {
        let edit = UidMetaEdit { created: Some(created), ..UidMetaEdit::default() };
        self.uid_meta_cell(kind, uid).edit_at(Durability::Async, |before| {
            Ok((meta_json::encode(&edit.applied(kind, decode(before)?, EditMode::Merge)), ()))
        })
    }

    /// Deletes a meta object; whether there was one. The name stays. Durable when it returns.
    ///
    /// # Errors
    /// The store's own.
    pub fn delete_uid_meta(&self, kind: UidKind, uid: Uid) -> Result<bool> {
        self.uid_meta_cell(kind, uid).delete()
    }

    fn uid_meta_cell(&self, kind: UidKind, uid: Uid) -> JsonCell<'_> {
        JsonCell {
            store: &**self.store(),
            table: &self.tables().uid,
            row: uid.encode(self.uids().of(kind).width()).to_vec(),
            family: UID_NAME_FAMILY,
            qualifier: kind.meta_qualifier().into(),
            what: "UID meta object",
        }
    }

    fn uid_meta_of(&self, kind: UidKind, uid: Uid, name: &str, stored: Stored) -> UidMeta {
        let Stored { kind: _, display_name, description, notes, created, custom } = stored;
        let uid = self.uids().of(kind).hex(uid);
        UidMeta { uid, kind: type_name(kind), name: name.into(), description, notes, created, custom, display_name }
    }
}

/// The cell of a name that is just given its UID.
pub(crate) fn new_object(kind: UidKind, created: i64) -> Vec<u8> {
    meta_json::encode(&Stored { kind: type_name(kind).into(), created, ..Stored::default() })
}

fn decode(bytes: Option<&[u8]>) -> Result<Stored> {
    bytes.map_or_else(|| Ok(Stored::default()), |bytes| meta_json::decode("UID meta object", bytes))
}

/// Any bytes are an object or refused.
#[cfg(any(test, fuzzing))]
pub(crate) fn foreign(bytes: &[u8]) {
    drop(decode(Some(bytes)));
}

const fn type_name(kind: UidKind) -> &'static str {
    match kind {
        UidKind::Metric => "METRIC",
        UidKind::Tagk => "TAGK",
        UidKind::Tagv => "TAGV",
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use basalt_store::{ManualClock, MemoryStore};

    use super::*;
    use crate::SchemaConfig;

    fn schema() -> (Schema, Uid) {
        let store = Arc::new(MemoryStore::new(Arc::new(ManualClock::default())));
        let schema = Schema::open(store, SchemaConfig::default()).unwrap();
        let uid = schema.uids().of(UidKind::Tagk).create("host").unwrap();
        (schema, uid)
    }

    #[test]
    fn the_cell_is_the_servers_byte_for_byte() {
        // S-UIDMETA
        let (schema, uid) = schema();
        let custom = Some(BTreeMap::from([("o".to_owned(), "x".to_owned())]));
        let edit = UidMetaEdit { description: Some("d".into()), created: Some(7), custom, ..UidMetaEdit::default() };
        schema.edit_uid_meta(UidKind::Tagk, uid, &edit, EditMode::Merge).unwrap();
        let cell = schema.uid_meta_cell(UidKind::Tagk, uid);
        assert_eq!((&*cell.row, &*cell.qualifier), (&[0, 0, 1][..], &b"tagk_meta"[..]));
        let expected =
            r#"{"type":"TAGK","displayName":"","description":"d","notes":"","created":7,"custom":{"o":"x"}}"#;
        assert_eq!(String::from_utf8(cell.read().unwrap().unwrap()).unwrap(), expected);
    }

    #[test]
    fn edits_merge_or_replace_and_the_earlier_creation_stays() {
        // M-UIDMETA
        let (schema, uid) = schema();
        let empty = schema.uid_meta(UidKind::Tagk, uid).unwrap();
        assert_eq!((&*empty.name, &*empty.uid, empty.created), ("host", "000001", 0));
        let edit = |edit: UidMetaEdit, mode| schema.edit_uid_meta(UidKind::Tagk, uid, &edit, mode).unwrap();
        edit(UidMetaEdit { notes: Some("n".into()), created: Some(9), ..UidMetaEdit::default() }, EditMode::Merge);
        let merged = UidMetaEdit { display_name: Some("Host".into()), created: Some(12), ..UidMetaEdit::default() };
        let merged = edit(merged, EditMode::Merge);
        assert_eq!((&*merged.display_name, &*merged.notes, merged.created), ("Host", "n", 9));
        let replaced = edit(UidMetaEdit { created: Some(3), ..UidMetaEdit::default() }, EditMode::Replace);
        assert_eq!((&*replaced.display_name, &*replaced.notes, replaced.created), ("", "", 3));
        assert!(schema.delete_uid_meta(UidKind::Tagk, uid).unwrap());
        assert_eq!(schema.uid_meta(UidKind::Tagk, uid).unwrap(), empty);
        assert!(schema.uid_meta(UidKind::Tagv, uid).is_err());
    }

    #[test]
    fn a_renamed_name_keeps_its_object_and_a_deleted_one_does_not() {
        let (schema, uid) = schema();
        let edit = UidMetaEdit { notes: Some("n".into()), ..UidMetaEdit::default() };
        schema.edit_uid_meta(UidKind::Tagk, uid, &edit, EditMode::Merge).unwrap();
        schema.uids().of(UidKind::Tagk).rename("host", "server").unwrap();
        let meta = schema.uid_meta(UidKind::Tagk, uid).unwrap();
        assert_eq!((&*meta.name, &*meta.notes), ("server", "n"));
        schema.uids().of(UidKind::Tagk).delete("server").unwrap();
        assert_eq!(schema.uid_meta_cell(UidKind::Tagk, uid).read().unwrap(), None);
    }
}
