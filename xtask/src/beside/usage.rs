//! What a process used of the processor.

use anyhow::{Context as _, Result};

/// The kernel's unit here, on every machine that Linux runs on today.
const TICKS_A_SECOND: f64 = 100.0;

/// User's and kernel's CPU time of a process, in ticks.
#[derive(Debug, Clone, Copy)]
pub(super) struct Usage(u64);

impl Usage {
    /// So far.
    pub(super) fn of(pid: u32) -> Result<Self> {
        let path = format!("/proc/{pid}/stat");
        let text = std::fs::read_to_string(&path).with_context(|| path.clone())?;
        Self::read(&text).context(path)
    }

    fn read(text: &str) -> Option<Self> {
        // The second field is the program's name in brackets, which may hold anything.
        let (_, rest) = text.rsplit_once(')')?;
        let fields: Vec<u64> = rest.split_whitespace().skip(11).take(2).filter_map(|word| word.parse().ok()).collect();
        (fields.len() == 2).then(|| Self(fields.iter().sum()))
    }

    /// Seconds from `before` to this.
    #[expect(clippy::cast_precision_loss, reason = "a figure for people, of three digits")]
    pub(super) fn since(self, before: Self) -> f64 {
        self.0.saturating_sub(before.0) as f64 / TICKS_A_SECOND
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn user_and_system_time_are_the_fourteenth_and_fifteenth_field() {
        let text = "7 (a (b) c) S 1 7 7 0 -1 4194560 100 0 0 0 250 50 0 0 20 0 1 0 5";
        let used = Usage::read(text).unwrap();
        assert!((used.since(Usage(0)) - 3.0).abs() < f64::EPSILON);
        assert!(Usage::read("7 (a) S 1").is_none());
    }
}
