//! Downsampling of rollups, each of which stands for many points.

use super::Downsample;
use super::kernel::downsample_by;
use crate::aggregate::Aggregator;
use crate::span::Span;
use crate::window::Window;

/// Downsamples a series of rollups. `counts` are how many points each of its values stands for, where an average is asked; `plain`
/// is what makes one value of a bucket's many where points are downsampled alike.
pub(crate) fn downsample_rollups(
    points: &Span,
    counts: &[i64],
    spec: &Downsample,
    window: &Window,
    plain: impl FnMut(std::ops::Range<usize>) -> f64,
) -> Span {
    match spec.function {
        Aggregator::Avg => downsample_by(points.times(), spec, window, |range| {
            let count = counts.get(range.clone()).unwrap_or_default().iter().fold(0i64, |sum, n| sum.wrapping_add(*n));
            let sum: f64 = range.map(|at| points.double(at)).sum();
            #[expect(clippy::cast_precision_loss, reason = "as Java divides")]
            if count == 0 { 0.0 } else { sum / count as f64 }
        }),
        Aggregator::Count => {
            downsample_by(points.times(), spec, window, |range| range.fold(0.0, |sum, at| sum + points.double(at)))
        }
        _ => downsample_by(points.times(), spec, window, plain),
    }
}
