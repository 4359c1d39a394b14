//! The file of limits by metric (`P-LIMITS`): read at start, and again as often as `query.limits_reload_ms` says.
//!
//! A file that cannot be read at start ends the start, since limits that somebody wrote down would not hold; later it is
//! a warning, and the limits in force stay.

use std::path::Path;
use std::sync::Arc;

use tokio::time::{MissedTickBehavior, interval};

use crate::app::App;
use crate::exit::Failure;

/// Puts the file's limits in force, if there is a file.
///
/// # Errors
///
/// One line: the file cannot be read or is no list of limits.
pub(crate) fn load(app: &App) -> Result<(), Failure> {
    let path = &app.config.query.limits_file;
    if path.is_empty() {
        return Ok(());
    }
    let text = std::fs::read_to_string(Path::new(path))
        .map_err(|cause| Failure::config(format!("cannot read {path}: {cause}")))?;
    let count =
        app.queries().overrides().replace(&text).map_err(|cause| Failure::config(format!("{path}: {cause}")))?;
    tracing::debug!(path, count, "limits by metric are in force");
    Ok(())
}

/// Reads the file again and again. Never ends by itself.
pub(crate) async fn keep_loading(app: Arc<App>) {
    let every = app.config.query.limits_reload_ms;
    if app.config.query.limits_file.is_empty() || every.is_zero() {
        return;
    }
    let mut ticks = interval(every);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    // The first tick is at once, and the file was read at start.
    ticks.tick().await;
    loop {
        ticks.tick().await;
        let of_the_thread = Arc::clone(&app);
        let loaded = tokio::task::spawn_blocking(move || load(&of_the_thread)).await;
        if let Ok(Err(failure)) = loaded {
            tracing::warn!("{failure}; the limits in force stay");
        }
    }
}
