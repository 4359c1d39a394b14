//! Rows by key.

use std::sync::Arc;

use basalt_store::{Error as StoreError, Get, Result, RowBatch, RowBatchBuilder, TableName, check_row_key};
use bytes::Bytes;
use prost::Message as _;

use crate::cells::Cell;
use crate::cluster::Cluster;
use crate::error::about;
use crate::exception::Exception;
use crate::multi::{Encoded, Share, Work};
use crate::patience::Patience;
use crate::pb::client::{Action, Get as GetMessage, MultiRequest, RegionAction};
use crate::request;

/// Rows of one get: a bound of what its answer may hold at once.
const ROWS_MAX: usize = 1 << 20;

impl Cluster {
    /// Reads rows in the order asked.
    ///
    /// # Errors
    /// As [`basalt_store::Store::get`]'s.
    pub(crate) async fn get(self: &Arc<Self>, table: &TableName, get: &Get) -> Result<RowBatch> {
        get.rows.iter().try_for_each(|row| check_row_key(row))?;
        if get.rows.len() > ROWS_MAX {
            let (size, limit) = (get.rows.len() as u64, ROWS_MAX as u64);
            return Err(StoreError::TooLarge { what: "list of rows", size, limit });
        }
        let ask = request::get(get, &Bytes::new())?;
        let ask_bytes = ask.encoded_len();
        let mut work = Reads { table, rows: &get.rows, ask, ask_bytes, told: vec![Vec::new(); get.rows.len()] };
        let mut patience = Patience::of_operation(&self.options);
        self.multi(table, (0..get.rows.len()).collect(), &mut work, &mut patience).await?;
        let mut builder = RowBatchBuilder::new();
        for (row, cells) in get.rows.iter().zip(work.told).filter(|(_, cells)| !cells.is_empty()) {
            builder.begin_row(row)?;
            for cell in cells {
                builder.push(cell.view())?;
            }
        }
        Ok(builder.finish())
    }
}

struct Reads<'a> {
    table: &'a TableName,
    rows: &'a [Bytes],
    /// The same of every row but for its key.
    ask: GetMessage,
    /// Its columns are told with each row.
    ask_bytes: usize,
    told: Vec<Vec<Cell>>,
}

impl Work for Reads<'_> {
    fn key(&self, entry: usize) -> &[u8] {
        self.rows.get(entry).map_or(&[], |row| row)
    }

    fn is_change(&self) -> bool {
        false
    }

    fn bytes(&self, entry: usize) -> usize {
        // Nobody knows the answer's size before: as much as a row of points is taken for it.
        const ANSWER_BYTES: usize = 4096;
        self.key(entry).len() + self.ask_bytes + ANSWER_BYTES
    }

    fn encode(&self, shares: &[Share]) -> Result<Encoded> {
        let (mut region_action, mut told) = (Vec::new(), Vec::new());
        for Share { region, entries } in shares {
            let get = |entry: usize| GetMessage {
                row: self.rows.get(entry).cloned().unwrap_or_default(),
                ..self.ask.clone()
            };
            let actions = entries.iter().enumerate().map(|(index, &entry)| Action {
                index: u32::try_from(index).ok(),
                mutation: None,
                get: Some(get(entry)),
            });
            region_action.push(RegionAction { region: region.specifier(), atomic: None, action: actions.collect() });
            told.push(entries.clone());
        }
        let ask = MultiRequest { region_action, ..MultiRequest::default() };
        Ok(Encoded { ask, cells: Bytes::new(), entries: told })
    }

    fn settle(&mut self, entry: usize, told: std::result::Result<Vec<Cell>, Exception>) -> Result<()> {
        let cells = told.map_err(|exception| about(self.table, exception))?;
        if let Some(place) = self.told.get_mut(entry) {
            *place = cells;
        }
        Ok(())
    }
}
