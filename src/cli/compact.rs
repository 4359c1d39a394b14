//! `basalt compact`: flush and major compaction of a folder or of a running server's tables.

use basalt_store::Store as _;
use clap::Args;
use serde::Deserialize;

use super::folder::{BY_FLAG, check_folder, closing};
use super::{Sources, print, start_log};
use crate::config::StoreKind;
use crate::exit::{Exit, Failure};
use crate::progress::meanwhile;
use crate::remote::Server;
use crate::store::{OpenStore, compacted, failed};

/// What becomes of other stores.
const ONLY_EMBEDDED: &str = "only the embedded store has files to compact";

/// `basalt compact`.
#[derive(Debug, Args)]
#[command(after_help = "\
Writes what is in memory into files, then merges all files of each region into one: deleted and
overwritten cells go, rows of points are folded. Returns when it is done, and prints a line a table.
A server over HBase has its own tables compacted there; another one only where --table names it.
The folder must be free; while a server runs on it, --url has that server do it, from the same
machine only, while it serves. Where the server asks for tokens, an administrator's is taken from
BASALT_TOKEN. After a failure run it again: what was done stays.

Examples:
  basalt compact
  basalt compact --data-dir /var/lib/basalt --table tsdb
  basalt compact --url http://127.0.0.1:4242 --table tsdb

Exit codes: 0 done, 1 no such folder, server or table, or the token was refused, 2 a URL that is
none, 4 folder in use, 5 damaged data, 75 disk full or server busy.")]
pub(super) struct Compact {
    #[command(flatten)]
    sources: Sources,
    /// Have this running server compact its tables
    #[arg(long, value_name = "URL", conflicts_with_all = ["data_dir", "config"])]
    url: Option<String>,
    /// Only this table [default: all]
    #[arg(long, value_name = "NAME")]
    table: Option<String>,
}

impl Compact {
    pub(super) fn run(self) -> Result<(), Failure> {
        if let Some(url) = &self.url {
            start_log(self.sources.log_level.as_deref(), &[])?;
            let server = Server::at(url)?;
            let (path, asked) = match self.table {
                None => ("/store/compact", ""),
                Some(_) => ("/store?json", "list"),
            };
            return self.each(tables_of(&server, path, asked)?, |table| told_by(&server, table));
        }
        let config = self.sources.load()?;
        // Before a cluster is asked, which may be away.
        if config.store.kind != StoreKind::Embedded {
            return Err(Failure::config(ONLY_EMBEDDED));
        }
        check_folder(&config.store.data_dir, BY_FLAG)?;
        let store = OpenStore::open(&config)?;
        let done = store.check_tables().and_then(|()| self.on(&store));
        closing(|| store.close())?;
        done
    }

    /// Compacts what a folder holds, be it OpenTSDB's tables or others.
    fn on(&self, store: &OpenStore) -> Result<(), Failure> {
        let Some(engine) = store.engine() else {
            return Err(Failure::config(ONLY_EMBEDDED));
        };
        let all = engine.list_tables().map_err(|cause| failed("cannot list the tables", &cause.into()))?;
        self.each(all.iter().map(ToString::to_string).collect(), |name| {
            let table = name
                .parse()
                .map_err(|cause: basalt_store::Error| failed(&format!("cannot compact `{name}`"), &cause.into()))?;
            compacted(engine.as_ref(), &table)
        })
    }

    /// Has each of the wanted tables compacted in turn, and prints what is told of it at once: what was done is known
    /// when a later one fails.
    fn each(&self, all: Vec<String>, compact: impl Fn(&str) -> Result<String, Failure>) -> Result<(), Failure> {
        let wanted = self.wanted(all)?;
        let count = wanted.len();
        for (done, table) in wanted.into_iter().enumerate() {
            let at = format!("compacting `{table}`, {done} of {count} tables done");
            print(&meanwhile(&at, || compact(&table))?)?;
        }
        Ok(())
    }

    /// The tables to compact, of those that there are.
    fn wanted(&self, all: Vec<String>) -> Result<Vec<String>, Failure> {
        match &self.table {
            None => Ok(all),
            Some(name) if all.contains(name) => Ok(vec![name.clone()]),
            Some(name) => {
                let line = format!("there is no table `{name}`; there are: {}", all.join(", "));
                Err(Failure::new(Exit::Failure, line))
            }
        }
    }
}

/// One object of what the shell's `list` answers.
#[derive(Debug, Deserialize)]
struct Listed {
    table: String,
}

/// The names of a running server's tables, as it is asked for them.
fn tables_of(server: &Server, path: &str, asked: &str) -> Result<Vec<String>, Failure> {
    let mut said = Vec::new();
    server.ask(path, asked.as_bytes(), &mut said)?;
    let listed = serde_json::Deserializer::from_slice(&said).into_iter().collect::<Result<Vec<Listed>, _>>();
    let listed = listed.map_err(|_| Failure::new(Exit::Failure, "the server's list of tables cannot be read"))?;
    Ok(listed.into_iter().map(|listed| listed.table).collect())
}

/// Has a running server compact a table, and gives the line that it tells.
fn told_by(server: &Server, table: &str) -> Result<String, Failure> {
    let mut said = Vec::new();
    server
        .ask("/store/compact", table.as_bytes(), &mut said)
        .map(|()| String::from_utf8_lossy(&said).into_owned())
        .map_err(|failure| match failure.line.strip_prefix("cannot compact") {
            Some(_) => failure,
            None => Failure::new(failure.exit, format!("cannot compact `{table}`: {}", failure.line)),
        })
}
