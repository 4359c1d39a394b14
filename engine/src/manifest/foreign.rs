//! The law of a manifest record's edits.

use super::catalog::Catalog;
use super::{edit, edit_v1};

/// Edits: what is read is written as something that reads the same.
pub(crate) fn edits(bytes: &[u8]) {
    drop(edit_v1::decode(bytes, &Catalog::new()));
    let Some(read) = edit::decode(bytes) else { return };
    let mut written = Vec::new();
    edit::encode_into(&read, &mut written);
    assert_eq!(edit::decode(&written).as_ref(), Some(&read), "BUG: edits that do not survive being written");
}
