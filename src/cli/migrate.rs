//! `basalt migrate`: OpenTSDB's tables from one store into another.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use basalt_schema::IndexedStore;
use basalt_store::Clock as _;
use clap::Args;

use super::folder::closing;
use super::print;
use crate::clock::WallClock;
use crate::config::{Config, Layers, StoreKind};
use crate::exit::{Exit, Failure};
use crate::migrate::{self, End, Job};
use crate::store::{OpenStore, OpenTables, check_outside};
use crate::{proc, threads};

/// `basalt migrate`.
#[derive(Debug, Args)]
#[command(after_help = "\
PLACE is a data folder, hbase://HOST:PORT,… (masters or region servers) or
zookeeper://HOST,…[/ROOT]. Names and UIDs, meta objects, trees, rollups and points are copied with
their times, tombstones are not. Then all of it is read back from both ends and compared. Nobody may
write meanwhile. Rows get the salt of the target's settings: unless a configuration says otherwise,
folders are salted and HBase's tables are not. UIDs must be of the same widths. TTL and VERSIONS are
taken over; the environment's BASALT_… are not looked at.

Killed or failed, the same command goes on where it was. A target that holds rows is refused. Where
the ends turn out to differ, --into-filled copies all of it again.

Examples:
  basalt migrate --from /var/lib/basalt --to hbase://m1:16000,m2:16000
  basalt migrate --from zookeeper://zk1,zk2 --from-config opentsdb.conf --to /var/lib/basalt
  basalt migrate --from /var/lib/basalt --to hbase://m1:16000 --only-verify

Exit codes: 0 done and the same, 1 the target holds other rows or the ends differ, 3 settings that
do not fit, 4 folder in use, 5 damaged data, 75 the cluster does not answer, the disk is full, or
memory has no room for a minute.")]
pub(super) struct Migrate {
    /// Where the tables are
    #[arg(long, value_name = "PLACE")]
    from: String,
    /// Where they go
    #[arg(long, value_name = "PLACE")]
    to: String,
    /// The source's settings: TOML, or an opentsdb.conf
    #[arg(long, value_name = "FILE")]
    from_config: Option<PathBuf>,
    /// The target's settings
    #[arg(long, value_name = "FILE")]
    to_config: Option<PathBuf>,
    /// Remember progress in FILE
    #[arg(long, value_name = "FILE", default_value = "basalt-migrate.json")]
    progress: PathBuf,
    /// Copy into tables that hold rows already, such as an earlier copy's
    #[arg(long)]
    into_filled: bool,
    /// Compare only
    #[arg(long, conflicts_with = "into_filled")]
    only_verify: bool,
}

impl Migrate {
    pub(super) fn run(self) -> Result<(), Failure> {
        let from = config(("--from", &self.from), self.from_config)?;
        let to = config(("--to", &self.to), self.to_config)?;
        super::start_log(None, &[&from, &to])?;
        if from.store.kind == StoreKind::Embedded {
            super::folder::check_folder(&from.store.data_dir, "name it with --from")?;
        }
        if to.store.kind == StoreKind::Embedded {
            if self.only_verify {
                super::folder::check_folder(&to.store.data_dir, "name it with --to")?;
            } else if from.store.kind == StoreKind::Embedded {
                check_outside(("data folder", &from.store.data_dir), &to.store.data_dir)?;
            }
        }
        let source = OpenStore::open(&from)?;
        let opened = if self.only_verify { OpenTables::open_existing(&to) } else { OpenTables::open_for_copy(&to) };
        let done = opened.and_then(|target| {
            let job = Job {
                source: End { name: self.from, store: source.store(), schema: source.schema_config().clone() },
                target: End {
                    name: self.to,
                    // The index must know the series of the rows that come, as it is kept when the folder is closed.
                    store: Arc::new(IndexedStore::new(Arc::clone(&target.schema))),
                    schema: target.schema.config().clone(),
                },
                progress: self.progress,
                into_filled: self.into_filled,
                only_verify: self.only_verify,
                now: WallClock.now(),
                patience: migrate::PATIENCE,
            };
            let close = |is_copied: bool| {
                if !is_copied && !self.only_verify {
                    return closing(|| target.close_unfinished());
                }
                let looked = if is_copied { target.look_at_copy() } else { Ok(()) };
                closing(|| target.close())?;
                looked
            };
            migrate::run(&job, || target.begin_copy(), close)
        });
        closing(|| source.close())?;
        let sum = done?;
        if sum.ahead_ms > 0 {
            tracing::warn!(
                "cells bear times up to {} s after this machine's clock: what is written to their columns, or at the instants of \
                 their points, is not seen until then",
                sum.ahead_ms.div_ceil(1000)
            );
        }
        let copied = if self.only_verify {
            "nothing copied".to_owned()
        } else {
            format!("{} cells copied ({} rows by earlier runs)", sum.cells, sum.resumed)
        };
        print(&format!("{} tables, {copied}; {} rows compared, and both ends hold the same\n", sum.tables, sum.rows))
    }
}

/// The configuration of a place that a flag names.
fn config((flag, place): (&'static str, &str), file: Option<PathBuf>) -> Result<Config, Failure> {
    let wrong = || {
        Failure::new(Exit::Usage, format!("`{place}` is no place: a folder, hbase://HOST:PORT,… or zookeeper://HOST,…"))
    };
    let mut flags = Vec::new();
    if let Some(masters) = place.strip_prefix("hbase://").map(|rest| rest.trim_end_matches('/')) {
        flags.push((flag, "hbase.masters", masters.to_owned()));
        flags.push((flag, "store.kind", "hbase".to_owned()));
    } else if let Some(rest) = place.strip_prefix("zookeeper://") {
        let (quorum, root) = rest.split_once('/').map_or((rest, None), |(quorum, root)| (quorum, Some(root)));
        flags.push((flag, "hbase.masters", String::new()));
        flags.push((flag, "hbase.zookeeper_quorum", quorum.to_owned()));
        flags.extend(
            root.filter(|root| !root.is_empty()).map(|root| (flag, "hbase.zookeeper_root", format!("/{root}"))),
        );
        flags.push((flag, "store.kind", "hbase".to_owned()));
    } else {
        if place.contains("://") || Path::new(place).as_os_str().is_empty() {
            return Err(wrong());
        }
        flags.push((flag, "store.data_dir", place.to_owned()));
        flags.push((flag, "store.kind", "embedded".to_owned()));
    }
    if flags.iter().any(|(_, name, value)| *name != "hbase.masters" && value.is_empty()) {
        return Err(wrong());
    }
    Config::load(&Layers {
        file,
        flags,
        memory_bytes: proc::memory_bytes_max(),
        processors: Some(threads::processors()),
        ..Layers::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_a_folder_or_a_cluster() {
        let folder = config(("--from", "/var/lib/basalt"), None).unwrap();
        assert_eq!((folder.store.kind, folder.schema.salt_width), (StoreKind::Embedded, 1));
        let masters = config(("--from", "hbase://m1:16000,m2:16000"), None).unwrap();
        assert_eq!((masters.store.kind, masters.schema.salt_width), (StoreKind::Hbase, 0));
        assert_eq!(masters.hbase.masters, "m1:16000,m2:16000");
        let quorum = config(("--from", "zookeeper://a,b:2182/hb"), None).unwrap();
        assert_eq!((&*quorum.hbase.zookeeper_quorum, &*quorum.hbase.zookeeper_root), ("a,b:2182", "/hb"));
        assert_eq!(config(("--from", "zookeeper://a"), None).unwrap().hbase.zookeeper_root, "/hbase");
        for wrong in ["", "hdfs://x", "zookeeper://"] {
            assert_eq!(config(("--from", wrong), None).unwrap_err().exit, Exit::Usage, "{wrong}");
        }
    }
}
