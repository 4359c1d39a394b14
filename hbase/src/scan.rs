//! Scans: region after region, rows as they come, gone on with where they stood when a server or region went.
//!
//! A task of the client's runtime asks ahead of the reader, by a bounded number of batches and an answer: a server reads the
//! next one while what came is taken apart. While the reader is slow the server is told that the scan is still wanted. A row
//! that comes in parts is put together, or handed on in pieces of the size that was asked for.

use std::sync::Arc;
use std::time::Duration;

use basalt_store::{Result, RowBatch, Scan, ScanSender, TableName};
use bytes::Bytes;
use tokio::task::JoinHandle;
use tokio::time::{Instant, Interval, MissedTickBehavior, interval_at, timeout_at};

use crate::cluster::Cluster;
use crate::connection::{Address, Service};
use crate::error::{CallError, Error};
use crate::exception::Remedy;
use crate::locations::{Map, Region};
use crate::patience::Patience;
use crate::pb::client::{Scan as ScanMessage, ScanRequest, ScanResponse};
use crate::region_call::{Repeat, given_up, nowhere, remedy};

mod rows;

use rows::Rows;

/// How often a scan that its reader lets wait is renewed; servers forget it after a minute
/// (`hbase.client.scanner.timeout.period`).
const RENEWED_EVERY: Duration = Duration::from_secs(15);
/// How often a reader that waits is handed a batch without rows, so that it can give up.
pub(crate) const WOKEN_EVERY: Duration = Duration::from_secs(1);
/// Longest that an end is told to the server; it forgets the scan by itself.
const CLOSED_WITHIN: Duration = Duration::from_secs(2);

/// A scan under way.
#[derive(Debug)]
pub(crate) struct Walk {
    cluster: Arc<Cluster>,
    table: TableName,
    scan: Scan,
    ask: ScanMessage,
    rows: Rows,
    open: Option<Open>,
    patience: Patience,
    /// It failed since a row or a region was passed last: it is tried for as long as is left from there, whatever answers come.
    is_failing: bool,
}

/// A scanner that a server holds for us.
#[derive(Debug)]
struct Open {
    id: u64,
    server: Address,
    region: Arc<Region>,
    map: Arc<Map>,
    /// The number of the next call: a server refuses one that it was told before.
    next: u64,
    /// The answer after the last one that was taken, where it was asked for already.
    coming: Option<Coming>,
}

/// A call under way, and what became of it.
type Coming = JoinHandle<std::result::Result<(ScanResponse, Bytes), CallError>>;

/// What is left to do after an answer.
enum Then {
    Next,
    NextRegion,
    End,
}

impl Walk {
    /// A scan that begins at its beginning; nothing is asked yet.
    ///
    /// # Errors
    /// `Invalid`: a request that makes no sense.
    pub(crate) fn new(cluster: Arc<Cluster>, table: TableName, scan: Scan) -> Result<Self> {
        let ask = crate::request::scan(&scan)?;
        let patience = Patience::of_operation(&cluster.options);
        Ok(Self { cluster, table, ask, rows: Rows::new(&scan), scan, open: None, patience, is_failing: false })
    }

    /// Scans to the end, or until the reader is gone.
    pub(crate) async fn run(mut self, sender: ScanSender) {
        if self.rows.is_full() {
            return;
        }
        let mut wakes = interval_at(Instant::now() + WOKEN_EVERY, WOKEN_EVERY);
        wakes.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            let then = match self.watched_step(&sender, &mut wakes).await {
                Ok(then) => then,
                Err(error) => {
                    // Whoever is gone needs no error.
                    drop(sender.send_async(Err(error)).await);
                    break;
                }
            };
            if matches!(then, Then::End) {
                self.rows.end();
            }
            for batch in self.rows.take_ready() {
                if !self.send(&sender, batch).await {
                    return self.close().await;
                }
            }
            if matches!(then, Then::End) || sender.is_cancelled() {
                break;
            }
        }
        self.close().await;
    }

    /// A step whose reader is woken now and then: servers pass over rows that it does not see, or do not answer.
    async fn watched_step(&mut self, sender: &ScanSender, wakes: &mut Interval) -> Result<Then> {
        let step = self.step();
        tokio::pin!(step);
        loop {
            tokio::select! {
                then = &mut step => return then,
                _ = wakes.tick() => sender.wake_reader(),
            }
        }
    }

    /// Asks once, and puts away what came.
    async fn step(&mut self) -> Result<Then> {
        let map = match &self.open {
            Some(open) => Arc::clone(&open.map),
            None => self.cluster.map(&self.table, &mut self.patience).await?,
        };
        let told = match self.open.take() {
            Some(open) => self.next(open).await,
            None => self.begin(&map).await,
        };
        let error = match told {
            Ok(told) => {
                let passed = self.rows.passed();
                let then = self.take(told).await;
                self.is_failing &= self.rows.passed() == passed && !matches!(then, Ok(Then::NextRegion));
                if !self.is_failing {
                    self.patience.renew(&self.cluster.options);
                }
                return then;
            }
            Err(error) => error,
        };
        self.is_failing = true;
        let remedy = remedy(&error, Repeat::Always);
        tracing::debug!("scan of {}: {error:?}: {remedy:?}", self.table);
        if self.open.is_none() {
            self.rows.rewind();
        }
        if !self.cluster.heal(remedy, (&self.table, &map), &mut self.patience).await {
            return Err(given_up(&self.table, error));
        }
        Ok(Then::Next)
    }

    /// Opens a scanner where the scan stands; its first rows come with it.
    async fn begin(&mut self, map: &Arc<Map>) -> std::result::Result<Told, CallError> {
        let (start, is_inclusive) = self.rows.position();
        let region = match (self.scan.reversed, is_inclusive && !start.is_empty()) {
            (false, _) | (true, true) => map.holding(start),
            (true, false) => map.below(start),
        };
        let found = region.and_then(|region| Some((region, region.server.clone()?)));
        let (region, server) = found.ok_or_else(|| nowhere(&self.table))?;
        let scan =
            ScanMessage { start_row: Some(start.clone()), include_start_row: Some(is_inclusive), ..self.ask.clone() };
        let ask = ScanRequest { region: Some(region.specifier()), scan: Some(scan), ..self.request() };
        let deadline = self.patience.call_deadline(self.cluster.options.call_timeout);
        let (told, block) = self.call(&server, &ask, deadline).await?;
        let open = Open {
            id: told.scanner_id.unwrap_or(0),
            server,
            region: Arc::clone(region),
            map: Arc::clone(map),
            next: 0,
            coming: None,
        };
        Ok((told, block, open))
    }

    async fn next(&mut self, mut open: Open) -> std::result::Result<Told, CallError> {
        let told = if let Some(coming) = open.coming.take() {
            coming.await.unwrap_or(Err(CallError::Unknown(Error::Ended)))
        } else {
            let ask = self.next_request(&mut open);
            self.call(&open.server, &ask, self.next_deadline()).await
        };
        match told {
            Ok((told, block)) => Ok((told, block, open)),
            Err(error) => {
                open.next -= 1;
                let is_kept = match &error {
                    // Refused before it began: the scanner stands where it stood.
                    CallError::Refused(refused) => refused.remedy() == Remedy::BackOff && refused.is_before_work(),
                    // It is there still, to be closed.
                    CallError::Unknown(Error::Malformed { .. }) => true,
                    _ => false,
                };
                self.open = is_kept.then_some(open);
                Err(error)
            }
        }
    }

    /// Asks for the answer after the one that came, if that is sure to be wanted.
    async fn ask_ahead(&self, open: &mut Open) {
        if self.rows.limit().is_some() {
            return;
        }
        let (cluster, server, ask) = (Arc::clone(&self.cluster), open.server.clone(), self.next_request(open));
        let deadline = self.next_deadline();
        open.coming = Some(tokio::spawn(async move {
            cluster.call((&server, Service::Client), "Scan", &ask, Bytes::new(), deadline).await
        }));
        // It is on its way before this thread turns to what came.
        tokio::task::yield_now().await;
    }

    fn next_request(&self, open: &mut Open) -> ScanRequest {
        let number = open.next;
        open.next += 1;
        ScanRequest { scanner_id: Some(open.id), next_call_seq: Some(number), ..self.request() }
    }

    fn request(&self) -> ScanRequest {
        ScanRequest {
            number_of_rows: Some(i32::MAX.unsigned_abs()),
            close_scanner: Some(false),
            client_handles_partials: Some(true),
            client_handles_heartbeats: Some(true),
            limit_of_rows: self.rows.limit(),
            ..ScanRequest::default()
        }
    }

    /// When a call of an open scanner is given up: a server that answers is waited for, however long it passes no row.
    fn next_deadline(&self) -> Instant {
        Instant::now() + self.cluster.options.call_timeout
    }

    async fn call(
        &self,
        server: &Address,
        ask: &ScanRequest,
        deadline: Instant,
    ) -> std::result::Result<(ScanResponse, Bytes), CallError> {
        self.cluster.call((server, Service::Client), "Scan", ask, Bytes::new(), deadline).await
    }

    async fn take(&mut self, (told, block, mut open): Told) -> Result<Then> {
        let is_region_done = told.more_results_in_region == Some(false);
        let is_scan_done = told.more_results == Some(false);
        if !is_region_done && !is_scan_done {
            self.ask_ahead(&mut open).await;
        }
        if let Err(error) = self.rows.take(told, &block) {
            // The scan ends here, and the server is told so.
            self.open = (!is_region_done && !is_scan_done).then_some(open);
            return Err(error);
        }
        Ok(if is_scan_done {
            Then::End
        } else if self.rows.is_full() {
            self.open = (!is_region_done).then_some(open);
            Then::End
        } else if is_region_done {
            // The server has closed it.
            self.go_to_next_region(&open.region)
        } else {
            self.open = Some(open);
            Then::Next
        })
    }

    fn go_to_next_region(&mut self, region: &Region) -> Then {
        self.rows.end_row();
        let (stop, stop_inclusive) = (&self.scan.stop, self.scan.stop_inclusive);
        let (edge, is_past) = if self.scan.reversed {
            (&region.start, !stop.is_empty() && region.start <= *stop)
        } else {
            let is_past = region.end > *stop || (region.end == *stop && !stop_inclusive);
            (&region.end, !stop.is_empty() && is_past)
        };
        if edge.is_empty() || is_past {
            return Then::End;
        }
        self.rows.set_position(edge.clone(), !self.scan.reversed);
        Then::NextRegion
    }

    /// Hands a batch over; `false` where the reader is gone. The server's scanner is kept alive meanwhile.
    async fn send(&mut self, sender: &ScanSender, batch: RowBatch) -> bool {
        let sending = sender.send_async(Ok(batch));
        tokio::pin!(sending);
        loop {
            tokio::select! {
                sent = &mut sending => {
                    // The time that the reader took is not the server's.
                    self.patience.renew(&self.cluster.options);
                    return sent.is_ok();
                }
                () = tokio::time::sleep(RENEWED_EVERY) => self.renew().await,
            }
        }
    }

    async fn renew(&mut self) {
        // A call that the server is at renews it too, and takes one at a time.
        let Some(mut open) = self.open.take_if(|open| open.coming.as_ref().is_none_or(JoinHandle::is_finished)) else {
            return;
        };
        let ask = ScanRequest {
            scanner_id: Some(open.id),
            next_call_seq: Some(open.next),
            number_of_rows: Some(0),
            close_scanner: Some(false),
            renew: Some(true),
            ..ScanRequest::default()
        };
        let deadline = Instant::now() + self.cluster.options.call_timeout;
        let told = self.cluster.call((&open.server, Service::Client), "Scan", &ask, Bytes::new(), deadline).await;
        match told {
            Ok::<(ScanResponse, _), _>(_) => {
                open.next += 1;
                self.open = Some(open);
            }
            // It is opened again where it stood.
            Err(error) => {
                tracing::debug!("scan of {}: not renewed: {error:?}", self.table);
                self.rows.rewind();
            }
        }
    }

    async fn close(&mut self) {
        let Some(open) = self.open.take() else { return };
        let deadline = Instant::now() + CLOSED_WITHIN;
        if let Some(coming) = open.coming
            // Nobody wants it any more, but the server takes one call at a time. One that is slow forgets the scan by itself.
            && timeout_at(deadline, coming).await.is_err()
        {
            return;
        }
        self.cluster.close_scanner(&open.server, open.id, deadline).await;
    }
}

impl Cluster {
    /// Tells a server that a scanner is not wanted any more; where that fails, the server forgets it by itself.
    pub(crate) async fn close_scanner(&self, server: &Address, id: u64, deadline: Instant) {
        let ask = ScanRequest {
            scanner_id: Some(id),
            close_scanner: Some(true),
            number_of_rows: Some(0),
            ..ScanRequest::default()
        };
        let told = self.call((server, Service::Client), "Scan", &ask, Bytes::new(), deadline).await;
        if let Err::<(ScanResponse, _), _>(error) = told {
            tracing::debug!("scanner {id} of {server} is not closed: {error:?}");
        }
    }
}

type Told = (ScanResponse, Bytes, Open);
