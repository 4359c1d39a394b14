//! What was read of a series, before it is anything of an answer, and the memory that it is charged for.

use basalt_schema::Histogram;

use crate::answer::SeriesAnnotation;
use crate::span::Span;

/// Memory charged for a point that was read: two words and a flag, in vectors that grow by doubling.
pub(crate) const POINT_BYTES: u64 = 33;
/// Memory charged for a series that takes part: its places, its vectors, which hold more than the few points that it may have,
/// and what it is as a member of a group. A million series of one point were measured at 0.6 to 0.85 GB.
pub(crate) const SERIES_BYTES: u64 = 640;
/// Memory charged for a bucket of a histogram: its bounds and count in a tree.
const BUCKET_BYTES: u64 = 40;
/// Memory charged for a histogram beside its buckets.
const HISTOGRAM_BYTES: u64 = 96;

/// What was read of one series.
#[derive(Debug, Default)]
pub(crate) struct SeriesData {
    /// Its points within the window, or its buckets.
    pub(crate) span: Span,
    /// Whether its rows were downsampled as they were read.
    pub(crate) is_downsampled: bool,
    /// Its annotations within the window.
    pub(crate) annotations: Vec<SeriesAnnotation>,
    /// Its histograms within the window by time, where the query asks for them.
    pub(crate) histograms: Vec<(i64, Histogram)>,
    /// How many points each value of `span` stands for, where that is read.
    pub(crate) counts: Vec<i64>,
    /// Whether there were rollups, even if none gave a value (sums without counts give no average).
    pub(crate) has_rollups: bool,
}

impl SeriesData {
    /// Whether nothing was measured.
    pub(crate) fn is_empty(&self) -> bool {
        self.span.is_empty() && self.histograms.is_empty()
    }
}

/// Memory charged for an annotation, in a vector that grows by doubling.
pub(crate) fn note_bytes(note: &SeriesAnnotation) -> u64 {
    (size_of::<SeriesAnnotation>() * 2 + note.json.len()) as u64
}

/// What a histogram is charged for.
pub(crate) fn histogram_bytes(histogram: &Histogram) -> u64 {
    HISTOGRAM_BYTES + BUCKET_BYTES * histogram.buckets_count() as u64
}
