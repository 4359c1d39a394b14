//! Names by their beginning, in byte order.

use basalt_store::{Columns, Scan};
use bytes::Bytes;

use super::{UidTable, decode_name};
use crate::Result;
use crate::tables::UID_ID_FAMILY;

/// Where names begin: after the counters' row.
const FIRST_NAME: &[u8] = &[1];

impl UidTable {
    /// Up to `max` names that begin with `prefix`, case and all, in byte order. An empty prefix is every name.
    ///
    /// *Cost*: a range scan that ends after `max` rows; memory by what is found, not by `max`.
    ///
    /// # Errors
    /// The store's own.
    pub fn suggest(&self, prefix: &str, max: usize) -> Result<Vec<String>> {
        let mut found = Vec::new();
        if max == 0 {
            return Ok(found);
        }
        let mut scan = Scan::prefix(prefix.as_bytes());
        if prefix.is_empty() {
            scan.start = Bytes::from_static(FIRST_NAME);
        }
        scan.columns = Columns::column(UID_ID_FAMILY, self.kind.qualifier());
        scan.limit_rows = u64::try_from(max).ok();
        let mut scanner = self.store.scan(&self.table, scan)?;
        while let Some(batch) = scanner.next_wait() {
            for row in batch?.rows() {
                found.push(decode_name(row.key()));
                if found.len() == max {
                    return Ok(found);
                }
            }
        }
        Ok(found)
    }
}
