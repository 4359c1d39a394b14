//! Files of settings that are read again while the server runs: limits of queries by metric (`P-LIMITS`), and who may do what
//! (`P-AUTH`).
//!
//! A file that cannot be read at start ends the start, since limits or roles that somebody wrote down would not hold; later it is
//! a warning, and those in force stay.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use basalt_query::LimitOverrides;
use tokio::time::{MissedTickBehavior, interval};

use crate::app::App;
use crate::config::Config;
use crate::exit::Failure;
use crate::{aside, auth};

/// A file that a setting names, and what becomes of its text.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reloaded {
    /// The setting, for messages.
    pub(crate) setting: &'static str,
    /// What the file holds, for messages.
    pub(crate) what: &'static str,
    /// Its path; empty for none.
    pub(crate) path: fn(&Config) -> &str,
    /// How often it is read; zero for once.
    pub(crate) every: fn(&Config) -> Duration,
    /// Looks at a text and says how many entries it has, or what is wrong with it.
    pub(crate) check: fn(&str) -> Result<usize, String>,
    /// Puts a text in force and says how many entries it has, or leaves all as it is and says why.
    pub(crate) replace: fn(&App, &str) -> Result<usize, String>,
}

/// Limits by metric: read again as often as `query.limits_reload_ms` says.
pub(crate) const LIMITS: Reloaded = Reloaded {
    setting: "query.limits_file",
    what: "limits by metric",
    path: |config| &config.query.limits_file,
    every: |config| config.query.limits_reload_ms,
    check: |text| replace_limits(&LimitOverrides::default(), text),
    replace: |app, text| replace_limits(app.queries().overrides(), text),
};

/// Roles: read again as often as `server.auth_reload_ms` says.
pub(crate) const ROLES: Reloaded = Reloaded {
    setting: "server.auth_file",
    what: "roles",
    path: |config| &config.server.auth_file,
    every: |config| config.server.auth_reload_ms,
    check: auth::check,
    replace: |app, text| app.users.replace(text),
};

fn replace_limits(overrides: &LimitOverrides, text: &str) -> Result<usize, String> {
    overrides.replace(text).map_err(|cause| cause.to_string())
}

/// A text, for comparison with the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Seen(u64);

impl Reloaded {
    /// Whether the file, if one is named, could be put in force.
    ///
    /// # Errors
    ///
    /// As [`Reloaded::load`].
    pub(crate) fn check(&self, config: &Config) -> Result<(), Failure> {
        self.read(config, self.check).map(drop)
    }

    /// Puts the file in force, if one is named, and says so unless it is as it was `before`; answers how it is.
    ///
    /// # Errors
    ///
    /// One line: the file cannot be read or is wrong; what was in force stays.
    pub(crate) fn load(&self, app: &App, before: Option<Seen>) -> Result<Option<Seen>, Failure> {
        let mut seen = None;
        let count = self.read(&app.config, |text| {
            let mut hasher = DefaultHasher::new();
            text.hash(&mut hasher);
            seen = Some(Seen(hasher.finish()));
            (self.replace)(app, text)
        })?;
        if let Some(count) = count.filter(|_| seen != before) {
            let path = (self.path)(&app.config);
            let change = if before.is_some() { "changed" } else { "read" };
            tracing::info!(path, count, "{} were {change} and are in force", self.what);
        }
        Ok(seen)
    }

    /// What `take` says of the file's text, if a file is named.
    fn read(
        &self,
        config: &Config,
        take: impl FnOnce(&str) -> Result<usize, String>,
    ) -> Result<Option<usize>, Failure> {
        let path = (self.path)(config);
        if path.is_empty() {
            return Ok(None);
        }
        let wrong = |why: String| Failure::config(format!("setting `{}`: {why}", self.setting));
        let text = aside::read_text(Path::new(path)).map_err(|cause| wrong(format!("cannot read {path}: {cause}")))?;
        take(&text).map(Some).map_err(|why| wrong(format!("{path}: {why}")))
    }

    /// Reads the file again and again, which was `seen` before. Ends at once where there is none, else never.
    pub(crate) async fn keep_loading(self, app: Arc<App>, mut seen: Option<Seen>) {
        let every = (self.every)(&app.config);
        if (self.path)(&app.config).is_empty() || every.is_zero() {
            return;
        }
        let mut ticks = interval(every);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        // The first tick is at once, and the file was read at start.
        ticks.tick().await;
        loop {
            ticks.tick().await;
            let of_the_thread = Arc::clone(&app);
            let loaded = tokio::task::spawn_blocking(move || self.load(&of_the_thread, seen)).await;
            match loaded {
                Ok(Ok(now)) => seen = now,
                Ok(Err(failure)) => tracing::warn!("{failure}; the {} in force stay", self.what),
                // A panic was told where it happened.
                Err(_) => {}
            }
        }
    }
}
