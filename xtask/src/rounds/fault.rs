//! What goes wrong.

/// A kind of fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// The daemon is killed, and started again.
    KillDaemon,
    /// All of HBase is killed, and started again.
    KillHBase,
    /// One region server is killed with the regions on it, and started again.
    KillServer,
    /// All of HBase stands still.
    FreezeHBase,
    /// One region server stands still with the regions on it.
    FreezeServer,
    /// Regions go to another server.
    Move,
    /// Regions are split.
    Split,
}

impl Kind {
    /// All of them, in the order in which rounds begin with them.
    pub(super) const ALL: [Self; 7] = [
        Self::KillDaemon,
        Self::FreezeHBase,
        Self::KillHBase,
        Self::Move,
        Self::Split,
        Self::KillServer,
        Self::FreezeServer,
    ];

    /// As it is asked for and told.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::KillDaemon => "kill-daemon",
            Self::KillHBase => "kill-hbase",
            Self::KillServer => "kill-server",
            Self::FreezeHBase => "freeze-hbase",
            Self::FreezeServer => "freeze-server",
            Self::Move => "move",
            Self::Split => "split",
        }
    }

    /// The kind of this name.
    pub(super) fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }
}

#[cfg(test)]
mod tests {
    use super::Kind;

    #[test]
    fn each_kind_is_found_by_its_name() {
        for kind in Kind::ALL {
            assert_eq!(Kind::named(kind.name()), Some(kind));
        }
        assert_eq!(Kind::named("nothing"), None);
    }
}
