//! Names by their beginning, in byte order.

use basalt_store::{Columns, Scan};
use bytes::Bytes;

use super::stored::latin_1;
use super::{COUNTER_ROW, UidTable, decode_name};
use crate::Result;
use crate::tables::UID_ID_FAMILY;

/// Where names begin: after the counters' row.
const FIRST_NAME: &[u8] = &[1];

impl UidTable {
    /// Up to `max` names that begin with `prefix`, case and all, in the order of their bytes; where the prefix is not ASCII,
    /// names in UTF-8 come before those in Latin-1. An empty prefix is every name.
    ///
    /// *Cost*: a range scan that ends after `max` rows, and another where the prefix may be Latin-1; memory by what is found,
    /// not by `max`.
    ///
    /// # Errors
    /// The store's own.
    pub fn suggest(&self, prefix: &str, max: usize) -> Result<Vec<String>> {
        let mut found = Vec::new();
        self.suggest_rows(prefix.as_bytes(), max, &mut found)?;
        if let Some(prefix) = latin_1(prefix) {
            self.suggest_rows(&prefix, max, &mut found)?;
        }
        Ok(found)
    }

    /// Adds the names of rows that begin with `prefix` in its own encoding until there are `max`.
    fn suggest_rows(&self, prefix: &[u8], max: usize, found: &mut Vec<String>) -> Result<()> {
        if found.len() >= max {
            return Ok(());
        }
        let mut scan = Scan::prefix(prefix);
        if prefix.is_empty() {
            scan.start = Bytes::from_static(FIRST_NAME);
        }
        scan.columns = Columns::column(UID_ID_FAMILY, self.kind.qualifier());
        // Bytes beyond ASCII may begin names of the other encoding, which are passed over.
        let is_utf8 = |bytes: &[u8]| std::str::from_utf8(bytes).is_ok();
        let (is_ascii, of_utf8) = (prefix.is_ascii(), is_utf8(prefix));
        scan.limit_rows = u64::try_from(max).ok().filter(|_| is_ascii);
        let mut scanner = self.store.scan(&self.table, scan)?;
        while let Some(batch) = scanner.next_wait() {
            for row in
                batch?.rows().filter(|row| row.key() != COUNTER_ROW && (is_ascii || is_utf8(row.key()) == of_utf8))
            {
                found.push(decode_name(row.key()));
                if found.len() == max {
                    return Ok(());
                }
            }
        }
        Ok(())
    }
}
