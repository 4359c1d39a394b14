//! Files for which merges failed, and when they take part in one again.
//!
//! A merge that cannot succeed, of a damaged file or of more bytes than the disk has room for, would read and write the same bytes
//! for ever, and keep its region from every other merge.

use basalt_store::Timestamp;

use crate::id::FileId;

/// How long a file takes part in no merge after one that failed for it; twice as long after each further one.
const WAIT_MS_MIN: u64 = 10_000;
/// No wait is longer.
const WAIT_MS_MAX: u64 = 3_600_000;

/// Those of one region. They are forgotten with it, so a start and a split try all again.
#[derive(Debug, Default)]
pub(crate) struct FailedMerges(Vec<Failed>);

#[derive(Debug)]
struct Failed {
    file: FileId,
    since: Timestamp,
    wait_ms: u64,
}

impl FailedMerges {
    /// Whether a file takes part in no merge now. A clock that goes back to before the failure ends the wait.
    pub(crate) fn is_put_off(&self, file: FileId, now: Timestamp) -> bool {
        let waits = |failed: &Failed| now.0.checked_sub(failed.since.0).is_some_and(|passed| passed < failed.wait_ms);
        self.0.iter().any(|failed| failed.file == file && waits(failed))
    }

    /// Notes that a merge failed for files, and forgets those that are not `there` any more.
    pub(crate) fn note(&mut self, files: &[FileId], now: Timestamp, there: impl Fn(FileId) -> bool) {
        self.0.retain(|failed| there(failed.file));
        for file in files {
            match self.0.iter_mut().find(|failed| failed.file == *file) {
                Some(failed) => (failed.since, failed.wait_ms) = (now, (failed.wait_ms * 2).min(WAIT_MS_MAX)),
                None => self.0.push(Failed { file: *file, since: now, wait_ms: WAIT_MS_MIN }),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_up_to_an_hour() {
        let (mut failed, mut now) = (FailedMerges::default(), 1_000_000);
        for wait in [10, 20, 40, 80, 160, 320, 640, 1280, 2560, 3600, 3600] {
            failed.note(&[FileId(7)], Timestamp(now), |_| true);
            let is_put_off = |file, at| failed.is_put_off(FileId(file), Timestamp(at));
            assert!(is_put_off(7, now) && !is_put_off(8, now));
            assert!(!is_put_off(7, now - 1), "the clock went back");
            assert!(is_put_off(7, now + wait * 1000 - 1));
            now += wait * 1000;
            assert!(!is_put_off(7, now), "after {wait} s");
        }
        failed.note(&[FileId(8)], Timestamp(now), |file| file == FileId(8));
        assert!(failed.0.iter().all(|failed| failed.file == FileId(8)), "what is gone is forgotten");
    }
}
