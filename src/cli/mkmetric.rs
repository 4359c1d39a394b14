//! `basalt mkmetric`: `basalt uid assign metrics …` in one word.

use clap::Args;

use super::ToolSources;
use super::folder::with_home;
use super::uid::assign;
use crate::exit::Failure;
use basalt_schema::UidKind;

/// `basalt mkmetric`.
#[derive(Debug, Args)]
#[command(after_help = "\
Prints one line a name, `metrics sys.cpu: [0, 0, 1]`; a name that has a UID keeps it.

Example: basalt mkmetric sys.cpu.user sys.cpu.sys --data-dir /var/lib/basalt

Exit codes: 0 done, 1 a name was refused, 4 folder in use, 5 damaged data, 75 the disk is full.")]
pub(super) struct Mkmetric {
    /// Names of metrics
    #[arg(required = true, value_name = "NAME")]
    names: Vec<String>,
    #[command(flatten)]
    sources: ToolSources,
}

impl Mkmetric {
    pub(super) fn run(self) -> Result<(), Failure> {
        with_home(&self.sources.load()?, |opened| assign(&opened.schema, UidKind::Metric, &self.names))
    }
}
