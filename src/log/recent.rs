//! The last lines of the log in memory, for `/logs` (`O-LOGS`).
//!
//! A line is `seconds TAB level TAB thread TAB place TAB message`, as OpenTSDB's; what clients sent has no control
//! characters in it, so that no name can forge a line.

use std::collections::VecDeque;
use std::fmt::{self, Write as _};
use std::sync::{Mutex, PoisonError};

use tracing::field::{Field, Visit};
use tracing::{Event, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::layer::Context;

use crate::clock;

/// Lines kept.
const LINES_MAX: usize = 1_024;
/// Longest line kept; the rest of a longer one is cut off.
const LINE_BYTES_MAX: usize = 2_048;

/// Guards the lines for one addition or one look; nothing else is locked under it. The oldest first.
static LINES: Mutex<VecDeque<String>> = Mutex::new(VecDeque::new());

/// The lines, the newest first.
pub(crate) fn lines() -> Vec<String> {
    LINES.lock().unwrap_or_else(PoisonError::into_inner).iter().rev().cloned().collect()
}

/// Keeps what is logged.
#[derive(Debug)]
pub(super) struct Recent;

impl<S: Subscriber> Layer<S> for Recent {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        let metadata = event.metadata();
        let thread = std::thread::current();
        let mut line = Line(format!(
            "{}\t{}\t{}\t{}\t",
            clock::now_ms() / 1_000,
            metadata.level(),
            thread.name().unwrap_or("-"),
            metadata.target()
        ));
        event.record(&mut line);
        keep(line.0);
    }
}

fn keep(line: String) {
    let mut lines = LINES.lock().unwrap_or_else(PoisonError::into_inner);
    if lines.len() == LINES_MAX {
        lines.pop_front();
    }
    lines.push_back(line);
}

/// A line under construction: the message, then `name=value` of each field.
struct Line(String);

impl Line {
    fn add(&mut self, name: &str, value: fmt::Arguments<'_>) {
        if !self.0.ends_with('\t') {
            self.0.push(' ');
        }
        if name != "message" {
            self.0.push_str(name);
            self.0.push('=');
        }
        write!(Clean(&mut self.0), "{value}").unwrap_or_default();
    }
}

impl Visit for Line {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.add(field.name(), format_args!("{value:?}"));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.add(field.name(), format_args!("{value}"));
    }
}

/// Writes without control characters, and no further than a line may go.
struct Clean<'a>(&'a mut String);

impl fmt::Write for Clean<'_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for letter in text.chars() {
            if self.0.len() + letter.len_utf8() > LINE_BYTES_MAX {
                break;
            }
            self.0.push(if letter.is_control() { ' ' } else { letter });
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `O-LOGS`.
    #[test]
    fn o_logs_a_line_is_one_line_and_bounded() {
        let mut line = Line("7\tINFO\tmain\tbasalt\t".to_owned());
        line.add("message", format_args!("a\nb\tc"));
        line.add("who", format_args!("{}", "x".repeat(9_999)));
        assert!(line.0.starts_with("7\tINFO\tmain\tbasalt\ta b c who=xxx"), "{}", line.0);
        assert_eq!(line.0.len(), LINE_BYTES_MAX);
        for number in 0..=LINES_MAX {
            keep(number.to_string());
        }
        let lines = lines();
        assert_eq!((lines.len(), lines[0].as_str()), (LINES_MAX, LINES_MAX.to_string().as_str()));
    }
}
