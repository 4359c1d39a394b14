//! Files of settings that are read again while the server runs.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::{MissedTickBehavior, interval};

use crate::app::App;
use crate::exit::Failure;

/// A file that a setting names, and what becomes of its text.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reloaded {
    /// What the file holds, for messages.
    pub(crate) what: &'static str,
    /// Its path; empty for none.
    pub(crate) path: fn(&App) -> &str,
    /// How often it is read; zero for once.
    pub(crate) every: fn(&App) -> Duration,
    /// Puts a text in force and says how many entries it has, or leaves all as it is and says why.
    pub(crate) replace: fn(&App, &str) -> Result<usize, String>,
}

impl Reloaded {
    /// Puts the file in force, if one is named.
    ///
    /// # Errors
    ///
    /// One line: the file cannot be read or is wrong; what was in force stays.
    pub(crate) fn load(&self, app: &App) -> Result<(), Failure> {
        let path = (self.path)(app);
        if path.is_empty() {
            return Ok(());
        }
        let text = std::fs::read_to_string(Path::new(path))
            .map_err(|cause| Failure::config(format!("cannot read {path}: {cause}")))?;
        let count = (self.replace)(app, &text).map_err(|why| Failure::config(format!("{path}: {why}")))?;
        tracing::debug!(path, count, "{} are in force", self.what);
        Ok(())
    }

    /// Reads the file again and again. Ends at once where there is none, else never.
    pub(crate) async fn keep_loading(self, app: Arc<App>) {
        let every = (self.every)(&app);
        if (self.path)(&app).is_empty() || every.is_zero() {
            return;
        }
        let mut ticks = interval(every);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        // The first tick is at once, and the file was read at start.
        ticks.tick().await;
        loop {
            ticks.tick().await;
            let of_the_thread = Arc::clone(&app);
            let loaded = tokio::task::spawn_blocking(move || self.load(&of_the_thread)).await;
            if let Ok(Err(failure)) = loaded {
                tracing::warn!("{failure}; the {} in force stay", self.what);
            }
        }
    }
}
