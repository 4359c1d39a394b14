//! Log lines on standard error: text on a terminal, JSON otherwise; a line repeated without end is
//! cut to a few a second. The last lines stay in memory too. A server waits for nobody who reads them.
//!
//! Fields come from clients: the formatters escape control characters, so no name can forge a line.

mod recent;
mod writer;

use std::backtrace::{Backtrace, BacktraceStatus};
use std::collections::HashMap;
use std::io::{IsTerminal, Write as _};
use std::panic::PanicHookInfo;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{LazyLock, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use tracing::callsite::Identifier;
use tracing::level_filters::LevelFilter;
use tracing::{Event, Subscriber};
use tracing_subscriber::fmt::{
    self,
    format::{DefaultFields, Format},
};
use tracing_subscriber::layer::{Context, SubscriberExt};
use tracing_subscriber::reload::{self, Handle};
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{EnvFilter, Layer, Registry};

use crate::config::{Log, LogFormat};
use crate::exit::Failure;
use recent::Recent;
use writer::Line;

pub(crate) use recent::lines;
pub(crate) use writer::{lost, write_apart};

/// Lines that one place in the code may write in one second.
const LINES_PER_SECOND_MAX: u32 = 20;

/// How long an end of the process waits for a reader of its lines.
const END_PATIENCE: Duration = Duration::from_secs(1);
/// How long a panic waits: it may be the last that is heard of the process.
const PANIC_PATIENCE: Duration = Duration::from_millis(100);

/// The parts of the program that log, as a filter names them.
pub(crate) const PARTS: &[&str] = &[
    "basalt",
    "basalt_store",
    "basalt_engine",
    "basalt_hbase",
    "basalt_schema",
    "basalt_ingest",
    "basalt_rewrite",
    "basalt_query",
    "basalt_shell",
];

static SUPPRESSED: AtomicU64 = AtomicU64::new(0);

/// What is let through, to be exchanged while the program runs.
static LEVELS: OnceLock<Handle<EnvFilter, Registry>> = OnceLock::new();

/// Starts logging for the whole process.
///
/// # Errors
///
/// `log.level` is no filter; or logging was started before.
pub(crate) fn start(config: &Log) -> Result<(), Failure> {
    let levels = levels(config)?;
    let is_terminal = std::io::stderr().is_terminal();
    let json = match config.format {
        LogFormat::Auto => !is_terminal,
        LogFormat::Text => false,
        LogFormat::Json => true,
    };
    let (levels, handle) = reload::Layer::new(levels);
    tracing_subscriber::registry()
        .with(levels)
        .with(Paced::default())
        .with(json.then(|| to_stderr().json().flatten_event(true)))
        .with((!json).then(|| to_stderr().with_ansi(is_terminal)))
        .with(Recent)
        .try_init()
        .map_err(|cause| Failure::config(format!("cannot start logging: {cause}")))?;
    // A second start failed above, so nobody else set it.
    LEVELS.set(handle).unwrap_or_default();
    std::panic::set_hook(Box::new(panicked));
    Ok(())
}

/// Logs a panic as any other line, so that whoever reads the log by machine or by `/logs` sees it.
fn panicked(panic: &PanicHookInfo<'_>) {
    let thread = std::thread::current();
    let place = panic.location().map(ToString::to_string);
    let backtrace = Backtrace::capture();
    let backtrace = (backtrace.status() == BacktraceStatus::Captured).then(|| backtrace.to_string());
    let payload = panic.payload();
    let message = payload.downcast_ref::<&str>().copied().or(payload.downcast_ref::<String>().map(String::as_str));
    tracing::error!(thread = thread.name(), place, backtrace, "panic: {}", message.unwrap_or("without a message"));
    writer::flush(PANIC_PATIENCE);
}

/// Says why the process ends, if it failed, behind all lines of the log. Returns when they are written, or nobody reads them.
pub(crate) fn end(failure: Option<&Failure>) {
    if let Some(failure) = failure.filter(|failure| !failure.line.is_empty()) {
        // Nobody can be told that standard error is gone.
        Line.write_all(format!("basalt: {failure}\n").as_bytes()).unwrap_or_default();
    }
    writer::flush(END_PATIENCE);
}

/// What `log.level` lets through.
///
/// # Errors
///
/// It is no filter, or has a word that stands alone and is no level: as a filter `warning` is the name of a part of which
/// all is logged, and of everything else nothing.
pub(crate) fn levels(config: &Log) -> Result<EnvFilter, Failure> {
    let fail = |cause: &str| Failure::config(format!("setting `log.level`: `{}`: {cause}", config.level));
    let is_word = |part: &&str| !part.contains(['=', '[']);
    let no_level = |word: &&str| word.parse::<LevelFilter>().is_err() && !PARTS.contains(word);
    if config.level.trim().is_empty() {
        return Err(fail("error, warn, info, debug, trace or off is expected"));
    }
    if let Some(word) = config.level.split(',').map(str::trim).filter(is_word).find(no_level) {
        return Err(fail(&format!("`{word}` is not one of error, warn, info, debug, trace and off")));
    }
    EnvFilter::try_new(&config.level).map_err(|cause| fail(&cause.to_string()))
}

/// Writes lines to standard error.
fn to_stderr<S>() -> fmt::Layer<S, DefaultFields, Format, fn() -> Line> {
    fmt::layer().with_writer((|| Line) as fn() -> Line).with_target(false)
}

/// Sets the level of the whole program, or of one of its [`PARTS`]; gives the level's name.
///
/// # Errors
///
/// What is wrong with the level or the part, in OpenTSDB's words.
pub(crate) fn set_level(level: &str, part: Option<&str>) -> Result<&'static str, String> {
    let upper = level.to_ascii_uppercase();
    let known = ["OFF", "ERROR", "WARN", "INFO", "DEBUG", "TRACE", "ALL"];
    let name = known.into_iter().find(|name| *name == upper).ok_or_else(|| "Invalid level".to_owned())?;
    let word = if name == "ALL" { "trace".to_owned() } else { name.to_ascii_lowercase() };
    let directive = match part {
        None => word,
        Some(part) if PARTS.contains(&part) => format!("{part}={word}"),
        Some(_) => return Err("Invalid logger".to_owned()),
    };
    let handle = LEVELS.get().ok_or("The log is not started")?;
    let is_part = part.is_some();
    let changed = handle.modify(|levels| {
        let base = if is_part { levels.to_string() } else { String::new() };
        let whole = if base.is_empty() { directive.clone() } else { format!("{base},{directive}") };
        if let Ok(next) = EnvFilter::try_new(whole) {
            *levels = next;
        }
    });
    changed.map_err(|cause| cause.to_string())?;
    Ok(name)
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

impl<S: Subscriber> Layer<S> for Paced {
    fn event_enabled(&self, event: &Event<'_>, _: Context<'_, S>) -> bool {
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

#[cfg(test)]
mod tests {
    use std::panic;

    use super::*;
    use crate::config::Config;

    /// A misspelt level is refused: as the name of a part it would keep every line back, errors too.
    #[test]
    fn a_word_alone_is_a_level_or_a_part() {
        for (level, wrong) in [
            ("info", None),
            ("WARN", None),
            ("off", None),
            ("info,hyper=warn", None),
            ("warn, basalt_engine", None),
            ("warning", Some("`warning` is not one of")),
            ("info,verbose", Some("`verbose` is not one of")),
            ("", Some("is expected")),
            (" ", Some("is expected")),
        ] {
            let config = Log { level: level.to_owned(), ..Config::default().log };
            let said = levels(&config).err().map(|failure| failure.line);
            assert_eq!(said.is_some(), wrong.is_some(), "{level:?}: {said:?}");
            assert!(said.unwrap_or_default().contains(wrong.unwrap_or_default()), "{level:?}");
        }
    }

    /// `O-LOGS`: a panic is a line as any other, with its message and its place.
    #[test]
    fn o_logs_a_panic_is_a_line_of_the_log() {
        let registry = tracing_subscriber::registry().with(Recent);
        let before = panic::take_hook();
        panic::set_hook(Box::new(panicked));
        let caught = tracing::subscriber::with_default(registry, || {
            panic::catch_unwind(|| assert_eq!(1 + 1, 3, "BUG: what was\npromised"))
        });
        panic::set_hook(before);
        assert!(caught.is_err());
        let is_told = |line: &String| {
            line.contains("\tERROR\t") && line.contains("BUG: what was promised") && line.contains("place=src/log.rs:")
        };
        assert!(lines().iter().any(is_told), "{:?}", lines());
    }
}
