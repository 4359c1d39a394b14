//! The rANS decoder's inner loop by AVX2: sixteen lanes in two registers. It gives the very bytes of its scalar twin.
//!
//! Chosen at run time. All but the look-up of slots is safe: words are loaded from, and symbols stored to, checked arrays.

use std::arch::x86_64::{
    __m256i, _mm_cvtsi64_si128, _mm_cvtsi128_si64, _mm_extract_epi64, _mm_packus_epi16, _mm_set_epi64x,
    _mm256_add_epi32, _mm256_and_si256, _mm256_blendv_epi8, _mm256_castsi256_ps, _mm256_castsi256_si128,
    _mm256_cmpeq_epi32, _mm256_cvtepu8_epi32, _mm256_cvtepu16_epi32, _mm256_extracti128_si256, _mm256_i32gather_epi32,
    _mm256_movemask_ps, _mm256_mullo_epi32, _mm256_or_si256, _mm256_packus_epi32, _mm256_permute4x64_epi64,
    _mm256_permutevar8x32_epi32, _mm256_set1_epi32, _mm256_setr_epi64x, _mm256_setzero_si256, _mm256_slli_epi32,
    _mm256_srli_epi32,
};

use super::{LANES, SCALE, SLOT_MASK};
use crate::tsb1::number::low_half;

const HALF: usize = LANES / 2;

/// For each set of lanes that lack a word: which of the next eight words each lane takes, a byte a lane.
static TAKEN: [u64; 256] = taken();

#[expect(clippy::indexing_slicing, reason = "the mask ends at the table's length")]
const fn taken() -> [u64; 256] {
    let mut table = [0; 256];
    let mut mask = 0;
    while mask < 256 {
        let mut lane = 0;
        while lane < 8 {
            let below = mask & ((1 << lane) - 1);
            table[mask] |= (below.count_ones() as u64) << (8 * lane);
            lane += 1;
        }
        mask += 1;
    }
    table
}

/// Decodes groups while there are sixteen words for sure; how many groups and words that took. `None`: no AVX2 here.
pub(super) fn decode_groups(
    slots: &[u32; SCALE as usize],
    states: &mut [u32; LANES],
    words: &[[u8; 2]],
    groups: &mut [[u8; LANES]],
) -> Option<(usize, usize)> {
    if !std::arch::is_x86_feature_detected!("avx2") || !std::arch::is_x86_feature_detected!("popcnt") {
        return None;
    }
    // SAFETY: the processor has both features that the function is compiled for, as was asked just now.
    #[expect(unsafe_code, reason = "the function's one demand is its features, which are there")]
    let done = unsafe { run(slots, states, words, groups) };
    Some(done)
}

#[target_feature(enable = "avx2,popcnt")]
fn run(
    slots: &[u32; SCALE as usize],
    states: &mut [u32; LANES],
    mut words: &[[u8; 2]],
    groups: &mut [[u8; LANES]],
) -> (usize, usize) {
    let (all_words, mut done) = (words.len(), 0);
    let [mut low, mut high] = load_states(states);
    for group in groups {
        let Some(window) = words.first_chunk::<LANES>() else { break };
        let (low_entries, low_next) = look_up(slots, low);
        let (high_entries, high_next) = look_up(slots, high);
        let (low_filled, low_taken) = refill(low_next, window.first_chunk().unwrap_or(&[[0; 2]; HALF]));
        let rest = window.get(low_taken..).and_then(<[_]>::first_chunk);
        let (high_filled, high_taken) = refill(high_next, rest.unwrap_or(&[[0; 2]; HALF]));
        (low, high) = (low_filled, high_filled);
        *group = symbols(low_entries, high_entries);
        words = words.get(low_taken + high_taken..).unwrap_or_default();
        done += 1;
    }
    *states = store_states(low, high);
    (done, all_words - words.len())
}

/// Each lane's entry of the table, and its state after it, which may lack a word.
#[target_feature(enable = "avx2,popcnt")]
#[inline]
fn look_up(slots: &[u32; SCALE as usize], states: __m256i) -> (__m256i, __m256i) {
    let mask = _mm256_set1_epi32(SLOT_MASK.cast_signed());
    let at = _mm256_and_si256(states, mask);
    // SAFETY: each of the eight indexes is masked below 4096, the table's length.
    #[expect(unsafe_code, reason = "a gather takes a pointer")]
    let entries = unsafe { _mm256_i32gather_epi32::<4>(slots.as_ptr().cast(), at) };
    let frequency = _mm256_and_si256(_mm256_srli_epi32::<12>(entries), mask);
    let above = _mm256_mullo_epi32(frequency, _mm256_srli_epi32::<12>(states));
    (entries, _mm256_add_epi32(above, _mm256_and_si256(entries, mask)))
}

/// Gives a word to each lane that lacks one, in lane order; how many were given.
#[target_feature(enable = "avx2,popcnt")]
#[inline]
fn refill(states: __m256i, words: &[[u8; 2]; HALF]) -> (__m256i, usize) {
    let lacking = _mm256_cmpeq_epi32(_mm256_srli_epi32::<16>(states), _mm256_setzero_si256());
    let mask = _mm256_movemask_ps(_mm256_castsi256_ps(lacking)).cast_unsigned() as usize;
    let bytes = words.as_flattened();
    let lowest = bytes.first_chunk().copied().map_or(0, i64::from_le_bytes);
    let highest = bytes.last_chunk().copied().map_or(0, i64::from_le_bytes);
    let loaded = _mm256_cvtepu16_epi32(_mm_set_epi64x(highest, lowest));
    let order = TAKEN.get(mask).copied().unwrap_or(0).cast_signed();
    let given = _mm256_permutevar8x32_epi32(loaded, _mm256_cvtepu8_epi32(_mm_cvtsi64_si128(order)));
    let filled = _mm256_or_si256(_mm256_slli_epi32::<16>(states), given);
    (_mm256_blendv_epi8(states, filled, lacking), mask.count_ones() as usize)
}

/// The sixteen symbols, from the highest bytes of the entries.
#[target_feature(enable = "avx2,popcnt")]
#[inline]
fn symbols(low: __m256i, high: __m256i) -> [u8; LANES] {
    let packed = _mm256_packus_epi32(_mm256_srli_epi32::<24>(low), _mm256_srli_epi32::<24>(high));
    let ordered = _mm256_permute4x64_epi64::<0b11_01_10_00>(packed);
    let bytes = _mm_packus_epi16(_mm256_castsi256_si128(ordered), _mm256_extracti128_si256::<1>(ordered));
    let mut out = [0; LANES];
    let (first, second) = out.split_at_mut(HALF);
    first.copy_from_slice(&_mm_cvtsi128_si64(bytes).to_le_bytes());
    second.copy_from_slice(&_mm_extract_epi64::<1>(bytes).to_le_bytes());
    out
}

#[target_feature(enable = "avx2,popcnt")]
fn load_states(states: &[u32; LANES]) -> [__m256i; 2] {
    let mut halves = [_mm256_setzero_si256(); 2];
    for (half, lanes) in halves.iter_mut().zip(states.as_chunks::<HALF>().0) {
        let mut pairs = [0_i64; HALF / 2];
        for (pair, [even, odd]) in pairs.iter_mut().zip(lanes.as_chunks::<2>().0) {
            *pair = (u64::from(*even) | u64::from(*odd) << 32).cast_signed();
        }
        let [first, second, third, fourth] = pairs;
        *half = _mm256_setr_epi64x(first, second, third, fourth);
    }
    halves
}

#[target_feature(enable = "avx2,popcnt")]
fn store_states(low: __m256i, high: __m256i) -> [u32; LANES] {
    let mut states = [0_u32; LANES];
    let halves = [
        _mm256_castsi256_si128(low),
        _mm256_extracti128_si256::<1>(low),
        _mm256_castsi256_si128(high),
        _mm256_extracti128_si256::<1>(high),
    ];
    for (quarter, half) in states.as_chunks_mut::<4>().0.iter_mut().zip(halves) {
        let pairs = [_mm_cvtsi128_si64(half), _mm_extract_epi64::<1>(half)].map(i64::cast_unsigned);
        for (lanes, pair) in quarter.as_chunks_mut::<2>().0.iter_mut().zip(pairs) {
            *lanes = [low_half(pair), low_half(pair >> 32)];
        }
    }
    states
}
