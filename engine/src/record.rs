//! The framed record that the WAL and the manifest are made of.
//!
//! Byte map: `docs/formats/wal.md`. A record starts at a multiple of 8 bytes:
//! a header of 32 bytes, the payload, zeros up to the next multiple of 8.
//!
//! Two checksums, so that payloads are summed outside of any lock: the payload's
//! own, and the header's, which covers the payload's checksum and binds the
//! record to its file and its offset. A record that was written elsewhere, or in
//! an earlier life of the same disk blocks, is not valid here.
//!
//! Each header says up to where its log was known to be on disk when it was
//! written. That is what tells a torn tail from damage: see [`known_synced`].

use crate::field::Fields;

/// Bytes before a record's payload.
pub(crate) const HEADER_BYTES: usize = 32;
/// Records start at multiples of this.
pub(crate) const ALIGN_BYTES: usize = 8;
/// No payload is larger; a length beyond it is damage, not a reason to allocate.
pub(crate) const PAYLOAD_BYTES_MAX: usize = 1 << 30;

/// No store comes so far. A larger number is nobody's: none would come after the last of them.
pub(crate) const SEQUENCE_MAX: u64 = u64::MAX >> 1;

const PAYLOAD_CRC: usize = 4;
const LENGTH: usize = 8;
const KIND: usize = 12;
const SEQUENCE: usize = 16;
const SYNCED: usize = 24;
const _: () = assert!(SYNCED + 8 == HEADER_BYTES && HEADER_BYTES.is_multiple_of(ALIGN_BYTES));

/// A record as read back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Record<'a> {
    pub(crate) kind: u8,
    pub(crate) sequence: u64,
    /// The log position that was known to be on disk when this was written.
    pub(crate) synced: u64,
    pub(crate) payload: &'a [u8],
    /// Offset of the next record.
    pub(crate) end: usize,
}

/// What lies at an offset.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step<'a> {
    Record(Record<'a>),
    /// Nothing was written here: the file's end, or zeros.
    End,
    Damaged(Damage),
}

/// A field that does not fit, as [`crate::Error::Corrupt`] tells it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Damage {
    pub(crate) what: &'static str,
    pub(crate) expected: u64,
    pub(crate) found: u64,
}

/// Begins a record in `out`, which must be empty: the payload is appended next.
pub(crate) fn begin(out: &mut Vec<u8>, kind: u8) {
    assert!(kind != 0 && out.is_empty(), "BUG: a record begins with a kind in an empty buffer");
    out.resize(HEADER_BYTES, 0);
    set(out, KIND, &[kind]);
}

/// Closes the payload: its length, its checksum, the zeros behind it.
///
/// Cost: one pass over the payload; call it before taking any lock.
pub(crate) fn close(record: &mut Vec<u8>) {
    let payload = record.get(HEADER_BYTES..).unwrap_or_default();
    let (len, crc) = (payload.len(), crc32c::crc32c(payload));
    assert!(len <= PAYLOAD_BYTES_MAX, "BUG: a payload of {len} bytes");
    let len = u32::try_from(len).unwrap_or(u32::MAX);
    set(record, PAYLOAD_CRC, &crc.to_le_bytes());
    set(record, LENGTH, &len.to_le_bytes());
    record.resize(record.len().next_multiple_of(ALIGN_BYTES), 0);
}

/// Binds a closed record to its place: `file` and `offset`.
///
/// Cost: a checksum of 44 bytes.
pub(crate) fn stamp(record: &mut [u8], file: u64, offset: u64, sequence: u64, synced: u64) {
    assert!(offset.is_multiple_of(ALIGN_BYTES as u64), "BUG: a record at offset {offset}");
    set(record, SEQUENCE, &sequence.to_le_bytes());
    set(record, SYNCED, &synced.to_le_bytes());
    let crc = header_crc(record, file, offset);
    set(record, 0, &crc.to_le_bytes());
}

/// A record of no bytes, which is there for what its header says: that all before `synced` is on disk.
pub(crate) fn mark(kind: u8, file: u64, offset: u64, sequence: u64, synced: u64) -> Vec<u8> {
    let mut record = Vec::new();
    begin(&mut record, kind);
    close(&mut record);
    stamp(&mut record, file, offset, sequence, synced);
    record
}

/// Reads what lies at `offset` of `bytes`, the whole file `file`.
pub(crate) fn read(bytes: &[u8], file: u64, offset: usize) -> Step<'_> {
    let rest = bytes.get(offset..).unwrap_or_default();
    let Some(header) = rest.get(..HEADER_BYTES) else {
        let found = rest.len() as u64;
        return if rest.iter().all(|byte| *byte == 0) {
            Step::End
        } else {
            Step::Damaged(Damage { what: "record header length", expected: HEADER_BYTES as u64, found })
        };
    };
    if header.iter().all(|byte| *byte == 0) {
        return Step::End;
    }
    read_framed(rest, header, file, offset).map_or_else(Step::Damaged, Step::Record)
}

fn read_framed<'a>(rest: &'a [u8], header: &'a [u8], file: u64, offset: usize) -> Result<Record<'a>, Damage> {
    let fields = HeaderFields::of(header);
    let expected = header_crc(header, file, offset as u64);
    check("record header checksum", expected.into(), fields.header_crc.into())?;
    let len = fields.length as usize;
    if len > PAYLOAD_BYTES_MAX {
        return Err(Damage { what: "record length", expected: PAYLOAD_BYTES_MAX as u64, found: len as u64 });
    }
    let payload = rest.get(HEADER_BYTES..HEADER_BYTES + len).ok_or(Damage {
        what: "record length",
        expected: (rest.len() - HEADER_BYTES) as u64,
        found: len as u64,
    })?;
    check("payload checksum", crc32c::crc32c(payload).into(), fields.payload_crc.into())?;
    // A file may end within the padding: the record is whole, and the next one starts behind it all the same.
    let padded = (HEADER_BYTES + len).next_multiple_of(ALIGN_BYTES);
    let padding = rest.get(HEADER_BYTES + len..padded.min(rest.len())).unwrap_or_default();
    check("record padding", 0, padding.iter().fold(0, |all, byte| all | u64::from(*byte)))?;
    Ok(Record { kind: fields.kind, sequence: fields.sequence, synced: fields.synced, payload, end: offset + padded })
}

fn check(what: &'static str, expected: u64, found: u64) -> Result<(), Damage> {
    if expected == found { Ok(()) } else { Err(Damage { what, expected, found }) }
}

/// The largest "known synced" position told by any valid header at or after
/// `from`, or 0: if it lies above the place where reading had to stop, the bytes
/// there were once on disk and have been damaged since.
///
/// Cost: one look at every eighth byte; a checksum where a header may lie.
pub(crate) fn known_synced(bytes: &[u8], file: u64, from: usize) -> u64 {
    let mut synced = 0;
    let mut offset = from.next_multiple_of(ALIGN_BYTES);
    while let Some(header) = bytes.get(offset..offset + HEADER_BYTES) {
        let fields = HeaderFields::of(header);
        if fields.kind != 0 && fields.reserved == [0; 3] && fields.header_crc == header_crc(header, file, offset as u64)
        {
            synced = synced.max(fields.synced);
        }
        offset += ALIGN_BYTES;
    }
    synced
}

/// The header's fields in their order; all zero where bytes are lacking, which no valid header is.
#[derive(Debug, Default)]
struct HeaderFields {
    header_crc: u32,
    payload_crc: u32,
    length: u32,
    kind: u8,
    reserved: [u8; 3],
    sequence: u64,
    synced: u64,
}

impl HeaderFields {
    fn of(header: &[u8]) -> HeaderFields {
        let mut fields = Fields::new(header);
        let mut parse = || {
            let (header_crc, payload_crc, length) = (fields.u32()?, fields.u32()?, fields.u32()?);
            let [kind, reserved @ ..] = fields.u32()?.to_le_bytes();
            let (sequence, synced) = (fields.u64()?, fields.u64()?);
            Some(HeaderFields { header_crc, payload_crc, length, kind, reserved, sequence, synced })
        };
        parse().unwrap_or_default()
    }
}

/// Covers the header behind its own checksum, then where the record lies.
fn header_crc(header: &[u8], file: u64, offset: u64) -> u32 {
    let covered = header.get(PAYLOAD_CRC..HEADER_BYTES).unwrap_or_default();
    let crc = crc32c::crc32c(covered);
    let crc = crc32c::crc32c_append(crc, &file.to_le_bytes());
    crc32c::crc32c_append(crc, &offset.to_le_bytes())
}

fn set(record: &mut [u8], at: usize, field: &[u8]) {
    if let Some(place) = record.get_mut(at..at + field.len()) {
        place.copy_from_slice(field);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn record(payload: &[u8], file: u64, offset: u64, synced: u64) -> Vec<u8> {
        let mut out = Vec::new();
        begin(&mut out, 3);
        out.extend_from_slice(payload);
        close(&mut out);
        stamp(&mut out, file, offset, 77, synced);
        out
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn a_record_reads_back_at_its_place_only(payload in prop::collection::vec(any::<u8>(), 0..300)) {
            let mut bytes = vec![0; 64];
            bytes.extend(record(&payload, 5, 64, 40));
            let Step::Record(read_back) = read(&bytes, 5, 64) else { panic!("a record") };
            prop_assert_eq!((read_back.kind, read_back.sequence, read_back.synced), (3, 77, 40));
            prop_assert_eq!(read_back.payload, &payload[..]);
            prop_assert_eq!(read_back.end, bytes.len());
            prop_assert!(matches!(read(&bytes, 6, 64), Step::Damaged(_)));
            prop_assert!(matches!(read(&bytes[8..], 5, 56), Step::Damaged(_)));
        }

        #[test]
        fn any_flipped_bit_is_noticed(payload in prop::collection::vec(any::<u8>(), 1..200), at: prop::sample::Index, bit in 0..8_u8) {
            let mut bytes = record(&payload, 5, 0, 0);
            let at = at.index(HEADER_BYTES + payload.len());
            bytes[at] ^= 1_u8 << bit;
            prop_assert!(matches!(read(&bytes, 5, 0), Step::Damaged(_)));
        }

        #[test]
        fn foreign_bytes_never_panic(bytes: Vec<u8>, offset in 0..64_usize) {
            read(&bytes, 1, offset);
            known_synced(&bytes, 1, offset);
        }
    }

    /// Whatever follows it.
    #[test]
    fn a_length_that_no_record_has_is_damage() {
        let mut bytes = record(b"one", 1, 0, 0);
        set(&mut bytes, LENGTH, &u32::MAX.to_le_bytes());
        let crc = header_crc(&bytes, 1, 0);
        set(&mut bytes, 0, &crc.to_le_bytes());
        let (expected, found) = (PAYLOAD_BYTES_MAX as u64, u64::from(u32::MAX));
        assert_eq!(read(&bytes, 1, 0), Step::Damaged(Damage { what: "record length", expected, found }));
    }

    #[test]
    fn zeros_and_the_end_of_the_file_are_an_end() {
        for bytes in [&[][..], &[0; 7], &[0; 32], &[0; 4096]] {
            assert_eq!(read(bytes, 1, 0), Step::End);
        }
        assert!(matches!(read(&[0, 0, 1], 1, 0), Step::Damaged(_)));
    }

    #[test]
    fn a_later_header_tells_what_was_synced() {
        let mut bytes = record(b"one", 1, 0, 0);
        let second = bytes.len();
        bytes.extend(record(b"two", 1, second as u64, 40));
        bytes[HEADER_BYTES] ^= 1;
        assert!(matches!(read(&bytes, 1, 0), Step::Damaged(_)));
        assert_eq!(known_synced(&bytes, 1, 8), 40);
        assert_eq!(known_synced(&bytes, 2, 8), 0);
    }
}
