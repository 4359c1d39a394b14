//! The flag by which the end of the daemon is told to all that run in it.

use tokio::sync::watch;

/// A flag that is raised once, when the daemon shall end; every connection watches it.
pub(crate) type Stop = watch::Receiver<bool>;

/// Waits until `stop` is raised. A dropped sender counts: nobody could raise it any more.
pub(crate) async fn stopped(stop: &mut Stop) {
    // An error means that the sender is gone, which is the same news.
    stop.wait_for(|raised| *raised).await.map(drop).unwrap_or_default();
}
