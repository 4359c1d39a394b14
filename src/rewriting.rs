//! Has rows folded on a store that has no fold of its own: when, how many at a time, and that ingest tells of them.

use std::sync::Arc;
use std::time::Duration;

use basalt_ingest::RowListener;
use basalt_rewrite::{RewriteLimits, Rewriter};
use basalt_schema::{BaseTime, Schema, SeriesId};
use basalt_store::with_causes;
use tokio::task::spawn_blocking;
use tokio::time::{Instant, sleep_until};

use crate::clock::WallClock;
use crate::config::{self, Config, Mode, StoreKind};

/// Ingest's listener.
#[derive(Debug)]
struct Listener(Arc<Rewriter>);

impl RowListener for Listener {
    fn rows_written(&self, rows: &mut dyn Iterator<Item = (SeriesId, BaseTime)>) {
        self.0.note(rows);
    }
}

/// What hears of rows that are written to.
pub(crate) fn listener(rewriter: &Arc<Rewriter>) -> Arc<dyn RowListener> {
    Arc::new(Listener(Arc::clone(rewriter)))
}

/// The rewriter of these settings; `None` where rows are not to be rewritten.
pub(crate) fn rewriter(config: &Config, schema: &Arc<Schema>) -> Option<Arc<Rewriter>> {
    if let Some(reason) = why_not(config) {
        tracing::info!("rows are not rewritten: {reason}");
        return None;
    }
    let limits = RewriteLimits {
        queue_rows_max: config.rewrite.queue_rows_max,
        rows_min: config.rewrite.rows_min,
        speed: config.rewrite.speed,
        quiet_ms: u64::try_from(config.rewrite.quiet_ms.as_millis()).unwrap_or(u64::MAX),
    };
    Some(Arc::new(Rewriter::new(Arc::clone(schema), Arc::new(WallClock), limits)))
}

/// Why rows are not rewritten, if they are not.
fn why_not(config: &Config) -> Option<&'static str> {
    if config.store.kind != StoreKind::Hbase {
        return Some("the store folds rows by itself, or keeps them in memory only");
    }
    if !config.rewrite.enable {
        return Some("`rewrite.enable` is false");
    }
    if config.server.mode == Mode::ReadOnly {
        return Some("`server.mode` is ro");
    }
    if config.schema.enable_appends {
        return Some("points are appended");
    }
    config
        .schema
        .use_otsdb_timestamp
        .then_some("cells bear the times of points, so that two writes cannot be told apart")
}

/// Rewrites what is due, again and again; never ends. A process that ends in its midst loses nothing: the rows of some
/// hours before are looked at again first.
pub(crate) async fn keep_rewriting(rewriter: Arc<Rewriter>, settings: config::Rewrite) {
    let (hours, interval) = (settings.catch_up_hours, settings.interval_ms);
    let of_the_thread = Arc::clone(&rewriter);
    match spawn_blocking(move || of_the_thread.catch_up(hours)).await {
        Ok(Ok(rows)) => tracing::debug!(rows, "rows of the hours before wait to be rewritten"),
        Ok(Err(cause)) => tracing::warn!("rows of the hours before stay as they are: {}", with_causes(&cause)),
        Err(cause) => tracing::error!("rows of the hours before stay as they are: {cause}"),
    }
    let interval = interval.max(Duration::from_millis(1));
    let interval_ms = u64::try_from(interval.as_millis()).unwrap_or(u64::MAX);
    let mut is_failing = false;
    loop {
        let begun = Instant::now();
        let quota = rewriter.quota(interval_ms);
        let mut done = 0;
        while done < quota {
            let of_the_thread = Arc::clone(&rewriter);
            let rewritten = spawn_blocking(move || of_the_thread.rewrite(quota - done)).await;
            match rewritten {
                Ok(Ok(0)) => break,
                Ok(Ok(rows)) => {
                    done += rows;
                    is_failing = false;
                }
                Ok(Err(cause)) => {
                    // Said once; the counts say how often.
                    if !std::mem::replace(&mut is_failing, true) {
                        let cause = with_causes(&cause);
                        tracing::warn!(
                            "rows could not be rewritten; they wait, save those that the store cannot read or refuses: {cause}"
                        );
                    }
                    break;
                }
                Err(cause) => {
                    tracing::error!("rows are not rewritten any more: {cause}");
                    return;
                }
            }
            sleep_until(begun + share(interval, done, quota)).await;
        }
        sleep_until(begun + interval).await;
    }
}

/// How much of the interval is for so many of its rows.
fn share(interval: Duration, done: u64, quota: u64) -> Duration {
    let part = u128::from(done) * interval.as_nanos() / u128::from(quota.max(1));
    Duration::from_nanos(u64::try_from(part).unwrap_or(u64::MAX)).min(interval)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn batches_are_spread_over_the_interval() {
        let ten = Duration::from_secs(10);
        assert_eq!(share(ten, 128, 512), Duration::from_millis(2_500));
        assert_eq!(share(ten, 512, 512), ten);
        assert_eq!(share(ten, 600, 512), ten);
        assert_eq!(share(ten, 1, 0), ten);
    }

    /// `tsd.storage.enable_compaction = false` where another daemon does it; and where it could lose points or has no work.
    #[test]
    fn rows_are_rewritten_where_it_is_needed_and_safe() {
        let mut config = Config::default();
        config.store.kind = StoreKind::Hbase;
        assert_eq!(why_not(&config), None);
        let turn: [fn(&mut Config); 5] = [
            |config| config.store.kind = StoreKind::Embedded,
            |config| config.rewrite.enable = false,
            |config| config.server.mode = Mode::ReadOnly,
            |config| config.schema.enable_appends = true,
            |config| config.schema.use_otsdb_timestamp = true,
        ];
        for turn in turn {
            let mut config = config.clone();
            turn(&mut config);
            assert!(why_not(&config).is_some());
        }
    }
}
