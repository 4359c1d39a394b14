//! Scans: where they go on, what they ask ahead, and how they end.

use std::sync::atomic::{AtomicBool, Ordering};

use basalt_store::{RowBatch, Scan, Scanner, Store as _};
use bytes::BytesMut;

use super::*;
use crate::HBaseStore;
use crate::cells;
use crate::pb::client::{ScanRequest, ScanResponse};
use crate::scan::{WOKEN_EVERY, Walk};

/// A scan's answer: rows of one cell each.
fn rows(keys: &[&str], scanner_id: u64, more_in_region: bool) -> Does {
    let mut block = BytesMut::new();
    let batch = puts(keys);
    for row in batch.rows() {
        row.cells().for_each(|cell| cells::encode(row.key(), &cell, &mut block).unwrap());
    }
    let told = ScanResponse {
        cells_per_result: vec![1; keys.len()],
        scanner_id: Some(scanner_id),
        more_results: Some(true),
        more_results_in_region: Some(more_in_region),
        ..ScanResponse::default()
    };
    Does::Answer(told.encode_to_vec().into(), block.freeze())
}

async fn read(mut scanner: Scanner) -> Vec<String> {
    let mut keys = Vec::new();
    while let Some(batch) = scanner.next().await {
        let batch: RowBatch = batch.unwrap();
        keys.extend(batch.rows().map(|row| String::from_utf8(row.key().to_vec()).unwrap()));
    }
    keys
}

/// Heartbeats carry no rows; a forgotten scanner is opened after the last row; the next region follows.
#[tokio::test]
async fn a_scan_goes_on_where_it_stood() {
    let mut step = 0;
    let fake = Fake::start(move |_: &Asked| {
        step += 1;
        match step {
            1 => rows(&["a"], 7, true),
            2 => rows(&[], 7, true),
            3 => Does::Refuse("UnknownScannerException"),
            4 => rows(&["b"], 8, false),
            _ => rows(&["n"], 9, false),
        }
    })
    .await;
    let port = fake.port;
    fake.world.lock().unwrap().regions = vec![("", port), ("m", port)];
    let client = fake.client();
    let (sender, scanner) = Scanner::channel(1);
    let walk = Walk::new(client, table(), Scan::all()).unwrap();
    let (keys, ()) = tokio::join!(read(scanner), walk.run(sender));
    assert_eq!(keys, ["a", "b", "n"]);
    let asked: Vec<ScanRequest> = fake.calls("Scan").iter().map(Asked::read).collect();
    let numbers: Vec<_> = asked.iter().map(|ask| (ask.scanner_id, ask.next_call_seq)).collect();
    assert_eq!(numbers, [(None, None), (Some(7), Some(0)), (Some(7), Some(1)), (None, None), (None, None)]);
    let starts: Vec<_> = asked.iter().filter_map(|ask| ask.scan.as_ref()).collect();
    let starts: Vec<_> = starts.iter().map(|scan| (scan.start_row.clone().unwrap(), scan.include_start_row)).collect();
    let expected = [("", Some(true)), ("a", Some(false)), ("m", Some(true))];
    assert_eq!(starts, expected.map(|(start, is_in)| (Bytes::from(start), is_in)));
}

/// The answer after the one that waits for its reader is there already, and no more than that.
#[tokio::test]
async fn a_scan_asks_one_answer_ahead() {
    let mut step = 0;
    let fake = Fake::start(move |_: &Asked| {
        step += 1;
        rows(&[["a", "b", "c", "d"][step - 1]], 7, step < 4)
    })
    .await;
    let (sender, scanner) = Scanner::channel(1);
    let walk = Walk::new(fake.client(), table(), Scan { batch_bytes: 1, ..Scan::all() }).unwrap();
    let run = tokio::spawn(walk.run(sender));
    // One batch is in the channel, one waits for room there, one is ahead.
    let three = async {
        while fake.calls("Scan").len() < 3 {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(SOON, three).await.expect("the third answer is not asked for");
    tokio::time::sleep(Duration::from_millis(20)).await;
    assert_eq!(fake.calls("Scan").len(), 3);
    assert_eq!(read(scanner).await, ["a", "b", "c", "d"]);
    run.await.unwrap();
    let asked: Vec<ScanRequest> = fake.calls("Scan").iter().map(Asked::read).collect();
    let numbers: Vec<_> = asked.iter().map(|ask| ask.next_call_seq).collect();
    assert_eq!(numbers, [None, Some(0), Some(1), Some(2)]);
}

/// The time that a reader takes is not the server's: what it forgot meanwhile is opened again.
#[tokio::test]
async fn a_scan_is_opened_again_after_a_long_pause_of_its_reader() {
    let mut step = 0;
    let fake = Fake::start(move |_: &Asked| {
        step += 1;
        match step {
            1 => rows(&["a"], 7, true),
            2 => rows(&["b"], 7, true),
            3 => Does::Refuse("UnknownScannerException"),
            _ => rows(&["c"], 8, false),
        }
    })
    .await;
    let client = fake.client();
    let (sender, scanner) = Scanner::channel(1);
    let walk = Walk::new(Arc::clone(&client), table(), Scan { batch_bytes: 1, ..Scan::all() }).unwrap();
    let run = tokio::spawn(walk.run(sender));
    while client.tally.told(0).servers.iter().map(|server| server.refused).sum::<u64>() == 0 {
        tokio::task::yield_now().await;
    }
    tokio::time::pause();
    tokio::time::advance(client.options.operation_timeout * 2).await;
    tokio::time::resume();
    assert_eq!(read(scanner).await, ["a", "b", "c"]);
    run.await.unwrap();
}

/// Each scanner gives a heartbeat and then fails: that it answered does not begin the time anew.
#[tokio::test]
async fn a_scan_that_fails_behind_every_heartbeat_is_given_up() {
    let fake = Fake::start(|asked: &Asked| {
        let ask: ScanRequest = asked.read();
        if ask.scanner_id.is_none() { rows(&[], 7, true) } else { Does::Refuse("io.BadException") }
    })
    .await;
    let mut options = fake.client().options.clone();
    // There is time for one pause, and not for the next, which is twice as long.
    (options.pause, options.operation_timeout) = (SOON, SOON * 5 / 2);
    let client = Arc::new(Cluster::new(options).unwrap());
    let (sender, mut scanner) = Scanner::channel(1);
    let run = tokio::spawn(Walk::new(Arc::clone(&client), table(), Scan::all()).unwrap().run(sender));
    soon(|| client.tally.retries.get() == 1).await;
    // It may be a tenth longer.
    pass(client.options.pause * 6 / 5).await;
    let told = tokio::time::timeout(SOON / 2, scanner.next()).await.expect("it is opened for ever");
    assert_eq!(told.unwrap().unwrap_err().kind(), ErrorKind::Unavailable);
    run.await.unwrap();
}

/// A filter may pass over rows for hours; a scanner that was opened again goes on for as long as its server answers.
#[tokio::test]
async fn a_scan_without_rows_goes_on_while_its_server_answers() {
    let mut step = 0;
    let is_over = Arc::new(AtomicBool::new(false));
    let fake = Fake::start({
        let is_over = Arc::clone(&is_over);
        move |_: &Asked| {
            step += 1;
            match step {
                2 => Does::Refuse("UnknownScannerException"),
                _ if is_over.load(Ordering::Relaxed) => rows(&["a"], 7, false),
                _ => rows(&[], 7, true),
            }
        }
    })
    .await;
    let client = fake.client();
    let (sender, scanner) = Scanner::channel(1);
    let run = tokio::spawn(Walk::new(Arc::clone(&client), table(), Scan::all()).unwrap().run(sender));
    let read = tokio::spawn(read(scanner));
    for _ in 0..8 {
        let asked = fake.calls("Scan").len();
        soon(|| fake.calls("Scan").len() > asked + 3).await;
        // A call under way is not given up.
        pass(client.options.call_timeout / 2).await;
    }
    assert!(client.options.call_timeout * 4 > client.options.operation_timeout);
    is_over.store(true, Ordering::Relaxed);
    assert_eq!(read.await.unwrap(), ["a"]);
    run.await.unwrap();
}

/// A reader that goes away takes the server's scanner with it.
#[tokio::test]
async fn a_dropped_scan_is_closed_at_the_server() {
    let fake = Fake::start(|asked| {
        let ask: ScanRequest = asked.read();
        if ask.close_scanner == Some(true) { Does::answer(&ScanResponse::default()) } else { rows(&["a"], 7, true) }
    })
    .await;
    let (sender, scanner) = Scanner::channel(1);
    let walk = Walk::new(fake.client(), table(), Scan { batch_bytes: 1, ..Scan::all() }).unwrap();
    let run = tokio::spawn(walk.run(sender));
    while fake.calls("Scan").is_empty() {
        tokio::task::yield_now().await;
    }
    drop(scanner);
    tokio::time::timeout(SOON, run).await.unwrap().unwrap();
    let last: ScanRequest = fake.calls("Scan").last().unwrap().read();
    assert_eq!((last.scanner_id, last.close_scanner), (Some(7), Some(true)));
}

/// Else neither a query's time nor a client that hangs up ended it.
#[tokio::test]
async fn a_scan_that_passes_no_rows_lets_its_reader_give_up() {
    for answer in [Does::Silence, rows(&[], 7, true), Does::Refuse("NotServingRegionException")] {
        let fake = Fake::start(move |asked: &Asked| match is_closing(asked) {
            Some(_) => Does::answer(&ScanResponse::default()),
            None => answer.clone(),
        })
        .await;
        let (sender, mut scanner) = Scanner::channel(1);
        let run = tokio::spawn(Walk::new(fake.client(), table(), Scan::all()).unwrap().run(sender));
        let read = tokio::task::spawn_blocking(move || scanner.step_wait());
        soon(|| !fake.calls("Scan").is_empty()).await;
        pass(WOKEN_EVERY).await;
        let step = tokio::time::timeout(SOON, read).await.expect("the reader is not woken").unwrap();
        assert!(step.unwrap().unwrap().is_empty());
        // What is left is as long as a call may take.
        run.abort();
    }
}

/// The table's regions are not known yet, and nobody tells them: the reader can give up.
#[tokio::test]
async fn a_scan_begins_though_the_catalogue_does_not_answer() {
    let fake = Fake::start(|_| Does::Silence).await;
    let mut options = fake.client().options.clone();
    (options.call_timeout, options.operation_timeout) = (SOON, SOON);
    let store = tokio::task::spawn_blocking(move || HBaseStore::open(options).unwrap()).await.unwrap();
    fake.world.lock().unwrap().is_frozen = true;
    let read = tokio::task::spawn_blocking(move || store.scan(&table(), Scan::all()).unwrap().step_wait());
    assert!(read.await.unwrap().unwrap().unwrap().is_empty());
}

/// What a server is slow to say to a reader that is gone does not cost the others their connection.
#[tokio::test]
async fn a_dropped_scan_leaves_the_connection_to_others() {
    let mut step = 0;
    let fake = Fake::start(move |asked| {
        if asked.method != "Scan" {
            return Does::answer(&Empty {});
        }
        step += 1;
        if step < 3 { rows(&[["a", "b"][step - 1]], 7, true) } else { Does::Silence }
    })
    .await;
    let client = fake.client();
    let (sender, scanner) = Scanner::channel(1);
    let walk = Walk::new(Arc::clone(&client), table(), Scan { batch_bytes: 1, ..Scan::all() }).unwrap();
    let run = tokio::spawn(walk.run(sender));
    // One batch is in the channel, one waits for room there, and what is ahead never comes.
    while fake.calls("Scan").len() < 3 {
        tokio::task::yield_now().await;
    }
    let connections = fake.world.lock().unwrap().connections;
    // What it waits for takes no real time.
    tokio::time::pause();
    drop(scanner);
    run.await.unwrap();
    tokio::time::resume();
    let until = Instant::now() + SOON;
    let told = client.call::<Empty>((&address(&fake), Service::Client), "Ask", &Empty {}, Bytes::new(), until).await;
    assert!(told.is_ok());
    assert_eq!(fake.world.lock().unwrap().connections, connections);
}

fn is_closing(asked: &Asked) -> Option<u64> {
    let ask: ScanRequest = asked.read();
    ask.scanner_id.filter(|_| ask.close_scanner == Some(true))
}

/// A server holds few scanners, each for a minute where nobody closes it.
#[tokio::test]
async fn a_scan_whose_answer_cannot_be_read_is_closed_at_the_server() {
    let cells = || {
        let told = ScanResponse { cells_per_result: vec![1], more_results_in_region: Some(true), ..Default::default() };
        Does::Answer(told.encode_to_vec().into(), Bytes::from_static(b"no cell"))
    };
    let message = || Does::Answer(Bytes::from_static(b"\xff"), Bytes::new());
    for garbled in [cells(), message()] {
        let mut is_first = true;
        let fake = Fake::start(move |asked: &Asked| match is_closing(asked) {
            Some(_) => Does::answer(&ScanResponse::default()),
            None if std::mem::take(&mut is_first) => rows(&["a"], 7, true),
            None => garbled.clone(),
        })
        .await;
        let (sender, mut scanner) = Scanner::channel(4);
        let run = tokio::spawn(Walk::new(fake.client(), table(), Scan::all()).unwrap().run(sender));
        assert!(scanner.next().await.unwrap().is_ok());
        assert_eq!(scanner.next().await.unwrap().unwrap_err().kind(), ErrorKind::Corrupt);
        tokio::time::timeout(SOON, run).await.unwrap().unwrap();
        assert_eq!(fake.calls("Scan").last().and_then(is_closing), Some(7));
    }
}

#[tokio::test]
async fn a_catalogue_that_cannot_be_read_is_closed_at_the_server() {
    let fake = Fake::start(|_| Does::answer(&ScanResponse::default())).await;
    fake.world.lock().unwrap().is_garbled = true;
    let patience = crate::patience::Patience::new(&fake.client().options, SOON);
    let error = fake.client().check_catalogue(&patience).await.unwrap_err().into_error();
    assert_eq!(error.kind(), ErrorKind::Corrupt);
    assert_eq!(fake.calls("Scan").iter().filter_map(is_closing).collect::<Vec<_>>(), [5]);
}
