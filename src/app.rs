//! What every connection shares: settings, numbers, and the crates that do the work.

use std::sync::Arc;

use axum::Router;
use bytes::Bytes;

use crate::config::Config;
use crate::exit::Failure;
use crate::http::{self, ApiError};
use crate::metrics::Metrics;
use crate::names::NameKind;
use crate::stats::Stat;

/// The running daemon, behind one `Arc`.
#[derive(Debug)]
pub(crate) struct App {
    pub(crate) config: Config,
    pub(crate) metrics: Metrics,
    /// This machine's name, for the `host` tag of our own numbers.
    pub(crate) host: String,
}

impl App {
    /// Opens the store that `config` names and everything over it.
    pub(crate) async fn open(config: Config) -> Result<Self, Failure> {
        let host = std::fs::read_to_string("/proc/sys/kernel/hostname")
            .map_or_else(|_| "localhost".to_owned(), |name| name.trim().to_owned());
        Ok(Self { config, metrics: Metrics::default(), host })
    }

    /// Ends when the store can acknowledge nothing any more, with the line to end the process by.
    pub(crate) async fn poisoned(&self) -> Failure {
        std::future::pending().await
    }

    /// Makes everything durable and lets go of the store.
    pub(crate) async fn close(&self) -> Result<(), Failure> {
        Ok(())
    }

    /// Forgets cached names; the next use reads them from the tables.
    pub(crate) fn drop_caches(&self) {}

    pub(crate) async fn suggest(&self, _kind: NameKind, _prefix: String, _max: usize) -> Result<Vec<String>, ApiError> {
        Ok(Vec::new())
    }

    pub(crate) async fn put_lines(&self, _lines: Vec<Bytes>) -> Vec<String> {
        Vec::new()
    }

    /// The HTTP endpoints over this app.
    pub(crate) fn router(self: &Arc<Self>) -> Router {
        http::router(self)
    }

    /// Why writes or queries are not served now; `None` when they are.
    pub(crate) fn not_ready(&self) -> Option<String> {
        None
    }

    /// Adds the store's own numbers.
    pub(crate) fn store_stats(&self, _stats: &mut Vec<Stat>) {}

    /// Prometheus' page: the daemon's numbers, then the store's.
    pub(crate) fn metrics_page(&self) -> String {
        self.metrics.prometheus()
    }
}
