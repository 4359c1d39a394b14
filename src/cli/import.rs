//! `basalt import`: OpenTSDB's text files into a server.

use clap::Args;

use crate::exit::{Exit, Failure};

/// `basalt import`.
#[derive(Debug, Args)]
pub(super) struct Import {}

impl Import {
    pub(super) fn run(self) -> Result<(), Failure> {
        Err(Failure::new(Exit::Failure, "import is not part of this version yet"))
    }
}
