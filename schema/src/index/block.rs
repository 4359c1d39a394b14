//! Some series as bytes: a block of the log that the index is kept in. Layout: `docs/formats/series-index.md`.
//!
//! A set of tags stands once, with the metrics that have it; columns of fixed width, zstd over all.

use crate::{Uid, UidWidths};

const VERSION: u8 = 1;
const HEADER_BYTES: usize = 24;
/// A set's three numbers: bytes shared with the set before, bytes of its own, metrics.
const SET_BYTES: usize = 3 * size_of::<u32>();
/// No block has more series, sets or bytes of tags; numbers beyond are damage, not a reason to allocate.
pub(super) const COUNT_MAX: usize = 1 << 24;
/// Blocks are written while the server takes points: speed goes before size.
const ZSTD_LEVEL: i32 = 1;

/// What a block is of: a reader of others has no use for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Scope {
    pub(super) widths: UidWidths,
    /// FNV-1a of the names of the tables whose rows it tells, a zero byte behind each.
    pub(super) tables: u64,
}

impl Scope {
    /// Of series of these tables.
    pub(super) fn new(widths: UidWidths, tables: impl Iterator<Item = String>) -> Self {
        let bytes = tables.flat_map(|name| name.into_bytes().into_iter().chain([0]));
        let hash = |hash: u64, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01B3);
        Self { widths, tables: bytes.fold(0xCBF2_9CE4_8422_2325, hash) }
    }
}

/// A set of tags, as in row keys, and the metrics that have it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct TaggedMetrics {
    pub(super) tags: Vec<u8>,
    /// Ascending.
    pub(super) metrics: Vec<Uid>,
}

/// The bytes of a block.
///
/// # Panics
/// With more than [`COUNT_MAX`] series, sets or bytes of tags.
pub(super) fn encode(scope: Scope, sets: &[TaggedMetrics]) -> Vec<u8> {
    let (mut counts, mut suffixes, mut metrics) = (Vec::new(), Vec::new(), Vec::new());
    let mut before: &[u8] = &[];
    for set in sets {
        let shared = before.iter().zip(&set.tags).take_while(|(a, b)| a == b).count();
        let own = set.tags.get(shared..).unwrap_or_default();
        counts.push([shared, own.len(), set.metrics.len()].map(width));
        suffixes.extend_from_slice(own);
        let mut last = 0;
        for metric in &set.metrics {
            metrics.extend_from_slice(&metric.number().wrapping_sub(last).to_le_bytes());
            last = metric.number();
        }
        before = &set.tags;
    }
    let series = metrics.len() / size_of::<u64>();
    let mut raw = Vec::with_capacity(sets.len() * SET_BYTES + suffixes.len() + metrics.len());
    for column in 0..3 {
        for counts in &counts {
            raw.extend_from_slice(&counts.get(column).copied().unwrap_or_default().to_le_bytes());
        }
    }
    raw.extend_from_slice(&suffixes);
    raw.extend_from_slice(&metrics);
    let mut out = vec![VERSION];
    out.extend(width_bytes(scope.widths));
    for count in [series, sets.len(), suffixes.len()] {
        out.extend_from_slice(&width(count).to_le_bytes());
    }
    out.extend_from_slice(&scope.tables.to_le_bytes());
    assert!(out.len() == HEADER_BYTES, "BUG: a block's header of {} bytes", out.len());
    if raw.is_empty() {
        return out;
    }
    // What cannot be packed is told as a block that does not read: the rows tell it again.
    out.extend(zstd::bulk::compress(&raw, ZSTD_LEVEL).unwrap_or_default());
    out
}

/// Whether a block is of this scope, by its header alone.
pub(super) fn is_of(scope: Scope, block: &[u8]) -> bool {
    header(scope, block).is_some()
}

/// What a block's header tells: how many series, sets and bytes of tags come; and what comes. `None` as of [`decode`].
fn header(scope: Scope, block: &[u8]) -> Option<([usize; 3], &[u8])> {
    let (header, packed) = block.split_at_checked(HEADER_BYTES)?;
    let (kind, counts) = header.split_at_checked(4)?;
    if kind.split_first()? != (&VERSION, &width_bytes(scope.widths)[..]) {
        return None;
    }
    let mut counts = Numbers(counts);
    let told = [counts.u32()?, counts.u32()?, counts.u32()?];
    (counts.u64()? == scope.tables && told.iter().all(|count| *count <= COUNT_MAX)).then_some((told, packed))
}

/// The series of a block; `None` for bytes that no writer made, or one of another scope.
pub(super) fn decode(scope: Scope, block: &[u8]) -> Option<Vec<TaggedMetrics>> {
    let ([series, sets, suffixes], packed) = header(scope, block)?;
    let raw_bytes = sets * SET_BYTES + suffixes + series * size_of::<u64>();
    if raw_bytes == 0 {
        return packed.is_empty().then(Vec::new);
    }
    let raw = zstd::bulk::decompress(packed, raw_bytes).ok().filter(|raw| raw.len() == raw_bytes)?;
    let (shared, rest) = raw.split_at_checked(sets * 4)?;
    let (own, rest) = rest.split_at_checked(sets * 4)?;
    let (metrics, rest) = rest.split_at_checked(sets * 4)?;
    let (suffixes, numbers) = rest.split_at_checked(suffixes)?;
    let [mut shared, mut own, mut metrics, mut numbers] = [shared, own, metrics, numbers].map(Numbers);
    let (mut suffixes, mut before) = (suffixes, Vec::new());
    let mut found = Vec::with_capacity(sets);
    for _set in 0..sets {
        let (suffix, rest) = suffixes.split_at_checked(own.u32()?)?;
        suffixes = rest;
        let tags = [before.get(..shared.u32()?)?, suffix].concat();
        let mut last = 0_u64;
        let mut next = || {
            last = last.wrapping_add(numbers.u64()?);
            // Of a number that its width has no room for there is no UID.
            Some(Uid::new(last)).filter(|metric| *metric <= scope.widths.metric.uid_max())
        };
        let metrics = (0..metrics.u32()?).map(|_| next()).collect::<Option<Vec<Uid>>>()?;
        before.clone_from(&tags);
        found.push(TaggedMetrics { tags, metrics });
    }
    (suffixes.is_empty() && numbers.0.is_empty()).then_some(found)
}

/// A law for any bytes: what is read as a block is written as one that reads the same; so too a block whose counts and numbers
/// are small, each of one of the bytes.
#[cfg(any(test, fuzzing))]
pub(crate) fn law(bytes: &[u8]) {
    let scope = Scope { widths: UidWidths::default(), tables: 7 };
    let mut rest = bytes.iter().copied();
    let mut next = |below: u8| rest.next().unwrap_or(0) % below;
    let sets = next(8);
    let columns: [Vec<u8>; 3] = std::array::from_fn(|_| (0..sets).map(|_| next(4)).collect());
    let [_, suffixes, series] =
        columns.each_ref().map(|column| column.iter().map(|count| u32::from(*count)).sum::<u32>());
    let mut raw: Vec<u8> = columns.iter().flatten().flat_map(|count| u32::from(*count).to_le_bytes()).collect();
    raw.extend((0..suffixes).map(|_| next(u8::MAX)));
    raw.extend((0..series).flat_map(|_| u64::from(next(u8::MAX)).to_le_bytes()));
    let mut framed = vec![VERSION];
    framed.extend(width_bytes(scope.widths));
    framed.extend([series, sets.into(), suffixes].into_iter().flat_map(u32::to_le_bytes));
    framed.extend(scope.tables.to_le_bytes());
    framed.extend(zstd::bulk::compress(&raw, ZSTD_LEVEL).unwrap_or_default());
    for block in [bytes, &framed] {
        let Some(sets) = decode(scope, block) else { continue };
        // A reader sorts nothing, so that metrics which do not ascend may come; they are told by their differences all the same.
        assert_eq!(decode(scope, &encode(scope, &sets)), Some(sets), "BUG: another block");
    }
}

fn width_bytes(widths: UidWidths) -> [u8; 3] {
    [widths.metric, widths.tagk, widths.tagv].map(|width| u8::try_from(width.bytes()).unwrap_or(0))
}

/// Little-endian numbers, read from the front.
struct Numbers<'a>(&'a [u8]);

impl Numbers<'_> {
    fn u32(&mut self) -> Option<usize> {
        let (number, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        usize::try_from(u32::from_le_bytes(*number)).ok()
    }

    fn u64(&mut self) -> Option<u64> {
        let (number, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(u64::from_le_bytes(*number))
    }
}

/// A count of a block, which is bounded.
fn width(count: usize) -> u32 {
    assert!(count <= COUNT_MAX, "BUG: {count} in a block of series");
    u32::try_from(count).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::UidWidth;

    fn scope() -> Scope {
        Scope::new(UidWidths::default(), ["tsdb".to_owned()].into_iter())
    }

    fn sets() -> impl Strategy<Value = Vec<TaggedMetrics>> {
        let metrics = proptest::collection::btree_set(0u64..1 << 24, 0..5);
        let set = (proptest::collection::vec(0u8..3, 0..20), metrics)
            .prop_map(|(tags, metrics)| TaggedMetrics { tags, metrics: metrics.into_iter().map(Uid::new).collect() });
        proptest::collection::vec(set, 0..30)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn a_block_reads_back_in_its_own_scope_only(sets in sets()) {
            let scope = scope();
            let block = encode(scope, &sets);
            prop_assert_eq!(decode(scope, &block), Some(sets));
            let widths = UidWidths { tagv: UidWidth::new(4).unwrap(), ..scope.widths };
            prop_assert_eq!(decode(Scope { widths, ..scope }, &block), None);
            prop_assert_eq!(decode(Scope::new(scope.widths, ["tsdb", "other"].map(String::from).into_iter()), &block), None);
            for end in 0..block.len() {
                prop_assert_eq!(decode(scope, &block[..end]), None);
            }
        }

        #[test]
        fn foreign_bytes_never_panic(bytes: Vec<u8>, block in sets(), at: prop::sample::Index, to: u8) {
            decode(scope(), &bytes);
            let mut block = encode(scope(), &block);
            let at = at.index(block.len());
            block[at] = to;
            decode(scope(), &block);
        }
    }
}
