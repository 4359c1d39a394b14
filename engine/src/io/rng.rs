//! Chance by argument, so that one seed is one history.

use std::fmt;

/// A source of random bits.
pub trait Rng: Send + fmt::Debug {
    /// The next 64 bits.
    fn next_u64(&mut self) -> u64;

    /// A number below `bound`; 0 when `bound` is 0.
    ///
    /// Bias is below `bound` / 2⁶⁴, which no test can see.
    fn below(&mut self, bound: u64) -> u64 {
        self.next_u64().checked_rem(bound).unwrap_or(0)
    }

    /// True `n` times out of `of`.
    fn chance(&mut self, n: u64, of: u64) -> bool {
        self.below(of) < n
    }
}

/// `SplitMix64`: small, fast, seeded, and not for secrets.
///
/// Source: Steele, Lea, Flood, "Fast splittable pseudorandom number generators".
#[derive(Debug, Clone)]
pub struct SplitMix {
    state: u64,
}

impl SplitMix {
    /// The stream of `seed`.
    pub fn new(seed: u64) -> SplitMix {
        SplitMix { state: seed }
    }
}

impl Rng for SplitMix {
    fn next_u64(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_draws_are_the_published_ones() {
        // The reference outputs of SplitMix64 for seed 1234567.
        let mut rng = SplitMix::new(1_234_567);
        let drawn: Vec<u64> = (0..3).map(|_| rng.next_u64()).collect();
        assert_eq!(drawn, [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423]);
    }
}
