//! What becomes of two values at one instant.

/// What becomes of two values at one instant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Duplicates {
    /// The newest write wins.
    NewestWins,
    /// The larger or the smaller value wins: cells bear the time of their points and so do not tell which is newer.
    /// *Source*: OpenTSDB 2.4 `CompactionQueue.dtcsMergeDataPoints` (rule S-DTCS).
    ByValue(LargerOrSmaller),
}

/// Which of two values at one instant is kept where no cell tells when it was written (`tsd.storage.use_max_value`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LargerOrSmaller {
    /// The larger.
    Larger,
    /// The smaller.
    Smaller,
}
