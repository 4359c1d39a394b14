//! Edits of version 1, as `MANIFEST` files of 0.1.0's first days have them. Byte map: `docs/formats/manifest.md`,
//! "Versions".
//!
//! There were no namespaces but by name: the ones that tables are in are made here, before the tables.

use std::collections::BTreeSet;

use basalt_store::NamespaceDescriptor;

use super::catalog::Catalog;
use super::edit::{decode_with, family_of_version_1};
use super::entry::Edit;

/// The edits of a record on top of `catalog`, as version 2 would tell them; `None` for bytes that no writer made.
pub(super) fn decode(payload: &[u8], catalog: &Catalog) -> Option<Vec<Edit>> {
    let edits = decode_with(payload, family_of_version_1)?;
    let named: BTreeSet<Box<str>> = edits
        .iter()
        .filter_map(|edit| match edit {
            Edit::CreateTable { descriptor, .. } => Some(descriptor.name.namespace().into()),
            _ => None,
        })
        .collect();
    let missing = named.into_iter().filter(|name| catalog.namespaces.get(name).is_err());
    let made = missing.map(|name| Edit::SetNamespace(NamespaceDescriptor::new(name)));
    Some(made.chain(edits).collect())
}
