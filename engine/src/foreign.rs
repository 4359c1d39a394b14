//! What every decoder of bytes from a disk keeps to, whatever the bytes: the laws that fuzzing and property tests share.
//!
//! Each law takes any bytes, mends the checksums where a decoder sits behind one, and panics where the decoder breaks
//! its word. It is compiled for tests and for `--cfg fuzzing` alone.

use basalt_store::SeqNo;

use crate::manifest::foreign::edits;
use crate::sstable::foreign::{block, bloom, footer, frame, index, metadata};

use crate::mutation::LoggedBatch;
use crate::record::{self, Step};

/// A law: any bytes are read or refused.
pub type Law = fn(&[u8]);

/// All laws of this crate by the names of their fuzz targets.
pub const LAWS: [(&str, Law); 9] = [
    ("wal_record", wal_record),
    ("wal_batch", wal_batch),
    ("manifest_edits", edits),
    ("sstable_block", block),
    ("sstable_index", index),
    ("sstable_bloom", bloom),
    ("sstable_metadata", metadata),
    ("sstable_footer", footer),
    ("sstable_frame", frame),
];

/// Records of a log: as they come, and with the first one's checksums mended.
fn wal_record(bytes: &[u8]) {
    let mut offset = 0;
    while let Step::Record(record) = record::read(bytes, 7, offset) {
        assert!(record.end > offset, "BUG: a record that ends where it begins");
        offset = record.end;
    }
    if bytes.len() >= record::HEADER_BYTES {
        let mut whole = bytes.to_vec();
        record::close(&mut whole);
        record::stamp(&mut whole, 7, 0, 1, 0);
        let step = record::read(&whole, 7, 0);
        let payload = bytes.get(record::HEADER_BYTES..).unwrap_or_default();
        let same = matches!(&step, Step::Record(read) if read.sequence == 1 && read.payload == payload);
        assert!(same, "BUG: what was closed and stamped is {step:?}");
    }
}

/// A byte that chooses the type, then the payload of a logged batch.
fn wal_batch(bytes: &[u8]) {
    let (kind, bytes) = bytes.split_first().unwrap_or((&0, &[]));
    let Some(mut batch) = LoggedBatch::decode(1 + kind % 2, bytes, u64::from(u32::MAX)) else { return };
    let (mut cells, mut last) = (Vec::new(), SeqNo(0));
    while let Some(Some((key, seq))) = batch.next_row(&mut cells) {
        assert!(seq > last, "BUG: rows' numbers do not ascend");
        assert!(key.len() <= bytes.len() && cells.len() <= bytes.len(), "BUG: more than there is");
        last = seq;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2_000))]

        #[test]
        fn any_bytes_from_a_disk_are_read_or_refused(
            bytes in prop_oneof![
                proptest::collection::vec(any::<u8>(), 0..200),
                // Small numbers are lengths and counts that hold.
                proptest::collection::vec(0_u8..6, 0..200),
                proptest::collection::vec(prop_oneof![Just(0_u8), Just(1), Just(0xFF), any::<u8>()], 0..120),
            ]
        ) {
            for (_, law) in LAWS {
                law(&bytes);
            }
        }
    }
}
