//! The name that a UID of several names gets: `fsck` and all of them, joined by dots.
//!
//! It is a row key, which has a longest length, and it may be another UID's already. Then its end is the UID in hex, as often as
//! it takes, and what is too long before that is cut. OpenTSDB has neither: its `uid fsck` fails, or takes the name from the other.

use std::collections::BTreeMap;

use crate::hex;

/// Longest name, as of any row key.
pub(super) const NAME_BYTES_MAX: usize = i16::MAX as usize;
/// What such names begin with.
const HEAD: &[u8] = b"fsck";

/// The name for the UID `id` of these names, given what UIDs names have: no other UID's, and the one that a run which was cut off
/// has put before, if that is among the names.
pub(super) fn joined_name(names: &[Vec<u8>], id: &[u8], taken: &BTreeMap<Vec<u8>, Vec<u8>>) -> Vec<u8> {
    let is_made = |name: &&Vec<u8>| {
        let rest: Vec<&[u8]> = names.iter().filter(|other| other != name).map(Vec::as_slice).collect();
        rest.len() > 1 && name.starts_with(HEAD) && free_name(&rest, id, taken) == **name
    };
    if let Some(made) = names.iter().find(is_made) {
        return made.clone();
    }
    free_name(&names.iter().map(Vec::as_slice).collect::<Vec<_>>(), id, taken)
}

fn free_name(names: &[&[u8]], id: &[u8], taken: &BTreeMap<Vec<u8>, Vec<u8>>) -> Vec<u8> {
    let joined = [&[HEAD][..], names].concat().join(&b'.');
    let (tail, mut end) = (format!(".{}", hex::upper(id)), String::new());
    loop {
        let mut name = cut(&joined, NAME_BYTES_MAX.saturating_sub(end.len())).to_vec();
        let is_whole = name.len() == joined.len() || !end.is_empty();
        name.extend_from_slice(end.as_bytes());
        if is_whole && taken.get(&name).is_none_or(|owner| owner == id) {
            return name;
        }
        end.push_str(&tail);
    }
}

/// The start of a name, of whole letters where it is UTF-8.
fn cut(name: &[u8], bytes_max: usize) -> &[u8] {
    let end = std::str::from_utf8(name).map_or(bytes_max, |text| text.floor_char_boundary(bytes_max));
    name.get(..end).unwrap_or(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(names: &[&str], taken: &[(&str, u8)], expected: &str) {
        let names: Vec<Vec<u8>> = names.iter().map(|name| name.as_bytes().to_vec()).collect();
        let taken = taken.iter().map(|(name, id)| (name.as_bytes().to_vec(), vec![0, 0, *id])).collect();
        assert_eq!(String::from_utf8(joined_name(&names, &[0, 0, 1], &taken)).unwrap(), expected);
    }

    #[test]
    fn no_other_uids_name_is_taken() {
        check(&["a", "b"], &[], "fsck.a.b");
        check(&["a", "b"], &[("fsck.a.b", 1)], "fsck.a.b");
        check(&["a", "b"], &[("fsck.a.b", 2)], "fsck.a.b.000001");
        check(&["a", "b"], &[("fsck.a.b", 2), ("fsck.a.b.000001", 3)], "fsck.a.b.000001.000001");
    }

    #[test]
    fn a_name_that_was_made_before_stays() {
        check(&["a", "b", "fsck.a.b"], &[("fsck.a.b", 1)], "fsck.a.b");
        check(&["a", "fsck.a", "x"], &[("fsck.a", 1)], "fsck.a.fsck.a.x");
        check(&["a", "b", "fsck.a.b.000001"], &[("fsck.a.b", 2), ("fsck.a.b.000001", 1)], "fsck.a.b.000001");
    }

    #[test]
    fn a_name_is_no_longer_than_a_row_key() {
        let (long, rest) = ("ä".repeat(16_000), NAME_BYTES_MAX - 4 - 1 - 32_000 - 1);
        let fits = "b".repeat(rest);
        check(&[&long, &fits], &[], &format!("fsck.{long}.{fits}"));
        // The end has 7 bytes.
        check(&[&long, &format!("{fits}b")], &[], &format!("fsck.{long}.{}.000001", "b".repeat(rest - 7)));
        let two = ["ä".repeat(16_383), "b".to_owned()];
        check(&[&two[0], &two[1]], &[], &format!("fsck.{}.000001", "ä".repeat(16_377)));
        assert_eq!(cut(&[0xE4; 9], 4), [0xE4; 4]);
    }
}
