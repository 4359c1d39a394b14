//! What a client of a cluster is set to.

use std::time::Duration;

use crate::cluster::Cluster;
use crate::error::{Error, Result};

/// Where a cluster is found, how long its answers are waited for, and the bounds of what is under way.
///
/// ```
/// let options = basalt_hbase::HBaseOptions::of_masters(["127.0.0.1:16000".to_owned()]);
/// assert_eq!(options.user, "basalt");
/// ```
#[derive(Debug, Clone)]
pub struct HBaseOptions {
    /// Masters, or any region servers, as `host:port`: whoever answers first says where the cluster's parts are.
    pub masters: Vec<String>,
    /// `ZooKeeper`'s servers as `host:port`, or `host` for port 2181: asked where no masters are named.
    pub zookeeper: Vec<String>,
    /// The node of `ZooKeeper`'s below which HBase keeps its own (`zookeeper.znode.parent`).
    pub zookeeper_root: String,
    /// The name that the cluster's own access rules see. It is told, not proved: there is no Kerberos here.
    pub user: String,
    /// Longest that one call is waited for.
    pub call_timeout: Duration,
    /// Longest that a read or a change is tried for in all; what is not done then is unavailable, its outcome unknown.
    pub operation_timeout: Duration,
    /// Longest that a change of tables is waited for.
    pub admin_timeout: Duration,
    /// The pause before a second attempt; later ones are longer, by HBase's own steps, up to 100 times.
    pub pause: Duration,
    /// The pause where a server is too busy.
    pub busy_pause: Duration,
    /// Calls under way on one connection.
    pub calls_max: usize,
    /// Bytes of requests under way on one connection.
    pub calls_bytes_max: usize,
    /// Whether `fsync` asks for `FSYNC_WAL` instead of HBase's usual `SYNC_WAL`, which three machines' memories hold.
    pub fsync_wal: bool,
    /// What `COMPRESSION` tables are made with where theirs is Zstandard; a cluster without its codec refuses `ZSTD`.
    pub compression: String,
    /// Threads that speak to the cluster.
    pub threads: usize,
}

impl HBaseOptions {
    /// Checks that these settings can be, without asking anybody.
    ///
    /// # Errors
    /// `Invalid`: neither masters nor `ZooKeeper`'s servers, or one that is no address; no name of a user; a node of `ZooKeeper`'s that
    /// does not begin with `/`.
    pub fn check(&self) -> Result<()> {
        Cluster::new(self.clone()).map(drop)
    }

    /// What is wrong whoever is asked: a server hangs up on a user without a name, and says nothing.
    pub(crate) fn check_words(&self) -> Result<()> {
        let wrong = |what, reason: String| Err(Error::Setting { what, reason: reason.into() });
        if self.user.is_empty() {
            return wrong("hbase.user", "HBase takes nobody without a name".to_owned());
        }
        let root = &*self.zookeeper_root;
        if !root.is_empty() && !root.starts_with('/') {
            return wrong("hbase.zookeeper_root", format!("'{root}' does not begin with '/'"));
        }
        Ok(())
    }

    /// The defaults, for a cluster that is found by these masters.
    pub fn of_masters(masters: impl IntoIterator<Item = String>) -> Self {
        Self {
            masters: masters.into_iter().collect(),
            zookeeper: Vec::new(),
            zookeeper_root: "/hbase".to_owned(),
            user: "basalt".to_owned(),
            call_timeout: Duration::from_secs(20),
            operation_timeout: Duration::from_mins(1),
            admin_timeout: Duration::from_mins(5),
            pause: Duration::from_millis(100),
            busy_pause: Duration::from_millis(500),
            calls_max: 256,
            calls_bytes_max: 64 << 20,
            fsync_wal: false,
            compression: "NONE".to_owned(),
            threads: 2,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What no try could mend is told before anybody is asked.
    #[test]
    fn a_user_without_a_name_and_a_node_without_a_slash_are_wrong_settings() {
        let check = |set: fn(&mut HBaseOptions), expected: Option<&str>| {
            let mut options = HBaseOptions::of_masters(["127.0.0.1:1".to_owned()]);
            set(&mut options);
            assert_eq!(options.check().err().map(|error| error.to_string()).as_deref(), expected);
        };
        check(|_| {}, None);
        check(|options| options.user = String::new(), Some("hbase.user: HBase takes nobody without a name"));
        check(|options| options.zookeeper_root = "/".to_owned(), None);
        check(|options| options.zookeeper_root = String::new(), None);
        let slip = "hbase.zookeeper_root: 'hbase' does not begin with '/'";
        check(|options| options.zookeeper_root = "hbase".to_owned(), Some(slip));
    }
}
