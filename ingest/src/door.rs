//! The door by which a point came in. It chooses the width of floats and the words of errors.

/// A door of the daemon.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Door {
    /// `POST /api/put`.
    Http,
    /// A `put` line.
    Telnet,
    /// A line of `basalt import`.
    Import,
}

impl Door {
    /// All doors, in the order of [`Door::index`].
    pub const ALL: [Self; 3] = [Self::Http, Self::Telnet, Self::Import];

    /// The label of metrics: `http`, `telnet`, `import`.
    pub const fn label(self) -> &'static str {
        match self {
            Self::Http => "http",
            Self::Telnet => "telnet",
            Self::Import => "import",
        }
    }

    /// Its place in [`Door::ALL`].
    pub const fn index(self) -> usize {
        self as usize
    }

    /// The width that the schema gives a float from this door. OpenTSDB's import keeps 32 bits of every float, which changes
    /// numbers; here import keeps the number that was written, as telnet does.
    pub const fn float_width(self) -> basalt_schema::Door {
        match self {
            Self::Http => basalt_schema::Door::Http,
            Self::Telnet | Self::Import => basalt_schema::Door::Telnet,
        }
    }
}
