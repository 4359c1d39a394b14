//! Log lines on standard error: text on a terminal, JSON otherwise; a line repeated without end is
//! cut to a few a second.
//!
//! Fields come from clients: the formatters escape control characters, so no name can forge a line.

use std::collections::HashMap;
use std::io::IsTerminal;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{LazyLock, Mutex, PoisonError};
use std::time::Instant;

use tracing::callsite::Identifier;
use tracing::{Event, Metadata};
use tracing_subscriber::layer::{Context, Filter, SubscriberExt};
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{EnvFilter, Layer, Registry};

use crate::config::{Log, LogFormat};
use crate::exit::Failure;

/// Lines that one place in the code may write in one second.
const LINES_PER_SECOND_MAX: u32 = 20;

static SUPPRESSED: AtomicU64 = AtomicU64::new(0);

/// Starts logging for the whole process.
///
/// # Errors
///
/// `log.level` is no filter; or logging was started before.
pub(crate) fn start(config: &Log) -> Result<(), Failure> {
    let levels = EnvFilter::try_new(&config.level)
        .map_err(|cause| Failure::config(format!("setting `log.level`: `{}`: {cause}", config.level)))?;
    let json = match config.format {
        LogFormat::Auto => !std::io::stderr().is_terminal(),
        LogFormat::Text => false,
        LogFormat::Json => true,
    };
    let lines = tracing_subscriber::fmt::layer().with_writer(std::io::stderr).with_target(false);
    let lines: Box<dyn Layer<Registry> + Send + Sync> = if json {
        Box::new(lines.json().flatten_event(true).with_filter(levels).with_filter(Paced::default()))
    } else {
        let colours = std::io::stderr().is_terminal();
        Box::new(lines.with_ansi(colours).with_filter(levels).with_filter(Paced::default()))
    };
    tracing_subscriber::registry()
        .with(lines)
        .try_init()
        .map_err(|cause| Failure::config(format!("cannot start logging: {cause}")))
}

/// Lines left out so far because their place in the code wrote too many.
pub(crate) fn suppressed() -> u64 {
    // Relaxed: a counter that is only shown; nothing is ordered by it.
    SUPPRESSED.load(Ordering::Relaxed)
}

/// Lets [`LINES_PER_SECOND_MAX`] lines of each place through in each second of the process.
#[derive(Default)]
struct Paced {
    /// Second and lines in it, for each place; as many entries as the code has log calls. Nothing
    /// else is locked under it.
    seen: Mutex<HashMap<Identifier, (u64, u32)>>,
}

static STARTED: LazyLock<Instant> = LazyLock::new(Instant::now);

impl<S> Filter<S> for Paced {
    fn enabled(&self, _: &Metadata<'_>, _: &Context<'_, S>) -> bool {
        true
    }

    fn event_enabled(&self, event: &Event<'_>, _: &Context<'_, S>) -> bool {
        let second = STARTED.elapsed().as_secs();
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let entry = seen.entry(event.metadata().callsite()).or_insert((second, 0));
        if entry.0 != second {
            *entry = (second, 0);
        }
        entry.1 += 1;
        let passes = entry.1 <= LINES_PER_SECOND_MAX;
        if !passes {
            SUPPRESSED.fetch_add(1, Ordering::Relaxed);
        }
        passes
    }
}
