//! The series index between two runs: told at the start, kept while the daemon runs and when a folder is closed. And that it lets go of
//! series whose points all went by TTL.

use std::sync::Arc;
use std::time::Duration;

use basalt_ingest::Ingest;
use basalt_schema::{Departed, LogRead, Schema, UidsFound};
use basalt_store::with_causes;
use tokio::task::spawn_blocking;
use tokio::time::Instant;

use super::uid_space::UidSpace;
use crate::clock::now_ms;

/// How often what is new in the index is written down: a start after a crash looks at the rows of about as long.
const KEEP_EVERY: Duration = Duration::from_secs(10);
/// How long after one pass the next begins that lets series go, at least.
const PASS_EVERY_MIN: Duration = Duration::from_hours(1);
/// The same as a part of the TTL: so much longer than needed a series stays.
const PASSES_A_TTL: u64 = 16;
/// A clock is corrected by less than this.
const CLOCK_BACK_MS: u64 = 10_000;
/// Row keys that are looked at every ten seconds of a pass: half a second of work.
const PASS_ROWS: u64 = 500_000;

/// Says in the log how the index was read.
pub(super) fn tell(schema: &Schema) {
    let (read, series) = (schema.rebuilt(), schema.index().len());
    let (kept, rows) = (read.series_kept, read.rows_count);
    match read.log {
        LogRead::Cut => {
            tracing::warn!(series, kept, rows, "the series index's log was damaged: read from rows what it lacks");
        }
        LogRead::Ahead => {
            tracing::warn!(
                series,
                rows,
                "the series index's log is from a later state of the folder: read from all rows"
            );
        }
        LogRead::None | LogRead::Absent | LogRead::Whole => tracing::info!(series, kept, rows, "series index read"),
    }
}

/// Says in the log what the tables of UIDs have lost, as far as it is seen.
pub(super) fn tell_of_uids(found: &[UidsFound]) {
    found.iter().for_each(tell_of_kind);
}

fn tell_of_kind(found: &UidsFound) {
    let UidsFound { kind, largest, counter_behind, nameless_count, unled_count } = *found;
    if let Some(counter) = counter_behind {
        tracing::warn!(
            "UIDs of {kind} up to {} are in use and the counter is {counter}: new ones come after them; \
             {nameless_count} UIDs of rows have no name; `basalt fsck` and `basalt uid fsck` tell more",
            largest.number()
        );
    }
    if unled_count > 0 {
        tracing::warn!(
            "{unled_count} UIDs of {kind} have names that do not lead to them: put again, such a name gets another UID; \
             `basalt uid fsck fix` leads them back"
        );
    }
}

/// Writes the index down, synced first so that it holds for every change so far.
pub(super) fn keep(schema: &Schema) {
    let synced = schema.store().sync().wait().map_err(Into::into);
    told(synced.and_then(|()| schema.last_checkpoint()));
}

/// Writes down what is new, again and again, and lets go of series without points now and then; call it in a task of its own.
pub(crate) async fn keep_keeping(schema: Arc<Schema>, ingest: Arc<Ingest>) {
    let mut pass = Pass::begun(Instant::now());
    let mut uids = {
        let schema = Arc::clone(&schema);
        // A panic was told where it happened.
        spawn_blocking(move || UidSpace::asked(&schema)).await.unwrap_or_default()
    };
    loop {
        tokio::time::sleep(KEEP_EVERY).await;
        uids.tell(&schema);
        let (schema, ingest) = (Arc::clone(&schema), Arc::clone(&ingest));
        let work = move || {
            pass.meet_clock(&schema, now_ms());
            told(schema.checkpoint());
            pass.turn(&schema, &ingest, (Instant::now(), now_ms()));
            pass
        };
        // A panic was told where it happened.
        pass = spawn_blocking(work).await.unwrap_or_else(|_| Pass::begun(Instant::now()));
    }
}

/// When series are let go.
#[derive(Debug, Clone, Copy)]
struct Pass {
    /// When the next pass begins; `None` while one is under way.
    next: Option<Instant>,
    /// The latest time on the clock by which rows were looked for.
    judged_ms: u64,
}

impl Pass {
    /// None soon after a start: a clock that stands wrong then is mostly set right meanwhile.
    fn begun(now: Instant) -> Self {
        Self { next: Some(now + PASS_EVERY_MIN), judged_ms: 0 }
    }

    /// Has rows looked at again where the clock was set back: those of series that left may be seen again.
    fn meet_clock(&mut self, schema: &Schema, now_ms: u64) {
        if now_ms.saturating_add(CLOCK_BACK_MS) < self.judged_ms {
            schema.read_rows_again();
            self.judged_ms = 0;
        }
    }

    /// Does a turn, if it is time.
    fn turn(&mut self, schema: &Schema, ingest: &Ingest, (now, now_ms): (Instant, u64)) {
        if self.next.is_some_and(|next| now < next) {
            return;
        }
        self.judged_ms = self.judged_ms.max(now_ms);
        let gone = schema.ttl_seconds().and_then(|ttl| {
            // Without a TTL only deletes leave series without points.
            let Some(ttl) = ttl else { return Ok((Departed::NotNow, 0)) };
            let departed = schema.let_series_go(PASS_ROWS, &mut |goes| ingest.forget(goes))?;
            Ok((departed, ttl / PASSES_A_TTL))
        });
        match gone {
            Ok((Departed::UnderWay, _)) => self.next = None,
            Ok((Departed::NotNow, _)) => self.next = Some(now + KEEP_EVERY),
            Ok((Departed::Done(series), part)) => {
                if series > 0 {
                    tracing::info!(series, left = schema.index().len(), "series whose points are gone are let go");
                }
                self.next = Some(now + PASS_EVERY_MIN.max(Duration::from_secs(part)));
            }
            Err(cause) => {
                let cause = with_causes(&cause);
                tracing::warn!("series whose points are gone are not let go until later: {cause}");
                self.next = Some(now + PASS_EVERY_MIN);
            }
        }
    }
}

fn told(kept: basalt_schema::Result<()>) {
    if let Err(cause) = kept {
        let cause = with_causes(&cause);
        tracing::warn!("the series index is not written down, so that the next start reads more rows: {cause}");
    }
}

#[cfg(test)]
mod leaving;
#[cfg(test)]
mod tests;
