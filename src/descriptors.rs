//! How many files and connections the process may have open at once (`RLIMIT_NOFILE`), and how many of those are connections.
//!
//! Connections never take all: a store that can open no file waits until it can, and its writers with it.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// What is kept for files, unless it is more than half of all: those of tables, the log, the sockets that wait for work.
const FILES_MAX: u64 = 512;

/// Raises the bound as far as the system lets this process; warns where it leaves less than `server.max_connections`.
pub(crate) fn raise(max_connections: usize) {
    let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
    if let Err(cause) = setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum }) {
        tracing::debug!(%cause, "the bound of open files stays as it is");
    }
    let (files, connections) = (bound(), connections_max(max_connections, bound()));
    if let Some(files) = files.filter(|_| connections < max_connections) {
        tracing::warn!(
            files,
            connections,
            "so many files and connections may be open, which leaves fewer connections than server.max_connections: \
             raise the hard limit (LimitNOFILE of systemd, `ulimit -Hn`)"
        );
    }
}

/// How many may be open; `None` where there is no bound.
pub(crate) fn bound() -> Option<u64> {
    getrlimit(Resource::Nofile).current
}

/// As many connections of those that are wanted as a bound leaves room for.
pub(crate) fn connections_max(wanted: usize, bound: Option<u64>) -> usize {
    let left = bound.map_or(u64::MAX, |bound| bound - FILES_MAX.min(bound / 2));
    wanted.min(usize::try_from(left).unwrap_or(usize::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_leave_room_for_files() {
        for (wanted, bound, expected) in [
            (1024, None, 1024),
            (1024, Some(65_536), 1024),
            (1024, Some(1536), 1024),
            (1024, Some(1024), 512),
            (1024, Some(100), 50),
            (10, Some(100), 10),
            (1 << 20, Some(65_536), 65_024),
        ] {
            assert_eq!(connections_max(wanted, bound), expected, "{wanted} of {bound:?}");
        }
    }

    #[test]
    fn the_bound_is_raised_to_what_the_system_lets_be() {
        raise(1024);
        assert_eq!(bound(), getrlimit(Resource::Nofile).maximum);
    }
}
