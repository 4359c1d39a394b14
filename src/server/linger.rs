//! The end of a connection whose peer may still send.
//!
//! A socket that is closed over bytes that nobody read is reset, and the answer is lost with it.

use std::time::Duration;

use tokio::io::AsyncReadExt as _;
use tokio::net::tcp::OwnedReadHalf;
use tokio::time::{sleep, timeout};

use crate::stop::{Stop, stopped};

/// Bytes that are read of a peer who does not stop: no client sends so many.
const BYTES_MAX: usize = 256 << 20;
/// How long it may be silent.
const PAUSE_MAX: Duration = Duration::from_secs(5);
/// How long it is listened to.
const TIME_MAX: Duration = Duration::from_secs(30);
/// How long once the server ends.
const LAST_TIME_MAX: Duration = Duration::from_secs(1);

/// Reads and forgets what still comes on a socket whose other half is closed, until the peer closes its own.
pub(super) async fn linger(reader: &mut OwnedReadHalf, stop: &mut Stop) {
    let last = async {
        stopped(stop).await;
        sleep(LAST_TIME_MAX).await;
    };
    tokio::select! {
        () = forget(reader) => {}
        () = sleep(TIME_MAX) => {}
        () = last => {}
    }
}

async fn forget(reader: &mut OwnedReadHalf) {
    let (mut piece, mut left) = (vec![0; 16 << 10], BYTES_MAX);
    while left > 0 {
        // Silent, closed or reset.
        let Ok(Ok(bytes @ 1..)) = timeout(PAUSE_MAX, reader.read(&mut piece)).await else { return };
        left = left.saturating_sub(bytes);
    }
}
