//! Batches: each row's own end, and what is known of rows that were asked for more than once.

use super::*;
use crate::pb::client::Action;

#[tokio::test]
async fn a_batch_follows_its_region_to_another_server() {
    let new = Fake::start(Does::all_done).await;
    let old = Fake::start(|_| Does::Refuse("NotServingRegionException")).await;
    let (moved, client) = (new.port, old.client());
    let world = Arc::clone(&old.world);
    let told = async {
        // The catalogue tells of the move after the first refusal.
        while old.calls("Multi").is_empty() {
            tokio::task::yield_now().await;
        }
        world.lock().unwrap().regions = vec![("", moved)];
    };
    let table = table();
    let (applied, ()) = tokio::join!(client.apply(&table, puts(&["a", "b"])), told);
    assert!(applied.unwrap().failed.is_empty());
    assert_eq!(new.calls("Multi").len(), 1);
    assert!(old.world.lock().unwrap().catalogue_reads >= 2);
}

#[tokio::test]
async fn a_busy_server_is_asked_again() {
    let mut refusals = 3;
    let fake = Fake::start(move |asked| {
        if refusals > 0 {
            refusals -= 1;
            return Does::Refuse("CallQueueTooBigException");
        }
        Does::all_done(asked)
    })
    .await;
    assert!(fake.client().apply(&table(), puts(&["a"])).await.unwrap().failed.is_empty());
    assert_eq!(fake.calls("Multi").len(), 4);
    assert_eq!(fake.world.lock().unwrap().catalogue_reads, 1, "a busy server is still the right one");
}

/// One row of three is refused for good, one for now.
#[tokio::test]
async fn each_row_of_a_batch_has_its_own_end() {
    let mut is_first = true;
    let fake = Fake::start(move |asked| {
        if !std::mem::take(&mut is_first) {
            return Does::all_done(asked);
        }
        let refused = |class: &str| Some(NameBytesPair { name: format!("a.b.{class}"), value: None });
        let one = |index, exception| ResultOrException { index: Some(index), result: None, exception };
        let results = vec![
            one(2, refused("RegionTooBusyException")),
            one(0, None),
            one(1, refused("NoSuchColumnFamilyException")),
        ];
        let result = RegionActionResult { result_or_exception: results, exception: None };
        Does::answer(&MultiResponse { region_action_result: vec![result], processed: None })
    })
    .await;
    let applied = fake.client().apply(&table(), puts(&["a", "b", "c"])).await.unwrap();
    let failed: Vec<_> = applied.failed.iter().map(|failure| (failure.row, failure.error.kind())).collect();
    assert_eq!(failed, [(1, ErrorKind::NotFound)]);
    let again: MultiRequest = fake.calls("Multi")[1].read();
    let row = again.region_action[0].action[0].mutation.as_ref().unwrap().row.clone();
    assert_eq!((again.region_action[0].action.len(), row), (1, Some(Bytes::from_static(b"c"))));
}

/// A row's refusal, as an answer to many rows tells it.
fn refusal(index: u32, class: &str) -> ResultOrException {
    let exception = Some(NameBytesPair { name: format!("a.b.{class}"), value: None });
    ResultOrException { index: Some(index), result: None, exception }
}

/// An answer of one region.
fn region_told(result_or_exception: Vec<ResultOrException>) -> Does {
    let result = RegionActionResult { result_or_exception, exception: None };
    Does::answer(&MultiResponse { region_action_result: vec![result], processed: None })
}

/// A client whose time is over at its first pause.
fn impatient(fake: &Fake) -> Arc<Cluster> {
    let mut options = fake.client().options.clone();
    (options.pause, options.busy_pause, options.operation_timeout) = (SOON * 2, SOON * 2, SOON);
    Arc::new(Cluster::new(options).unwrap())
}

/// One row is stored, and its neighbours' region is busy until the time is over: each is told as it is.
#[tokio::test]
async fn a_busy_region_costs_its_own_rows_alone() {
    let fake = Fake::start(Does::all_done).await;
    let busy = Fake::start(|_| Does::Refuse("RegionTooBusyException")).await;
    fake.world.lock().unwrap().put_regions(1, vec![("", fake.port), ("m", busy.port)]);
    let applied = impatient(&fake).apply(&table(), puts(&["a", "n", "o"])).await.unwrap();
    let failed: Vec<_> = applied.failed.iter().map(|failure| (failure.row, failure.error.kind())).collect();
    assert_eq!(failed, [(1, ErrorKind::Throttled), (2, ErrorKind::Throttled)]);
}

/// What a log that was not written in time says of a row, its region's being busy since does not unsay.
#[tokio::test]
async fn a_row_that_may_be_stored_is_unknown_though_its_region_is_busy_since() {
    let mut asked = 0;
    let fake = Fake::start(move |_| {
        asked += 1;
        region_told(vec![refusal(0, ["WALSyncTimeoutIOException", "RegionTooBusyException"][usize::from(asked > 1)])])
    })
    .await;
    let mut options = fake.client().options.clone();
    (options.busy_pause, options.operation_timeout) = (SOON * 2, SOON);
    let error = Arc::new(Cluster::new(options).unwrap()).apply(&table(), puts(&["a"])).await.unwrap_err();
    assert_eq!(fake.calls("Multi").len(), 2);
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    assert!(error.to_string().contains("WALSyncTimeoutIOException"), "{error}");
}

/// The doubt about one row, which the next attempt ends, is not the others'.
#[tokio::test]
async fn a_row_is_refused_though_another_was_in_doubt() {
    let mut is_first = true;
    let fake = Fake::start(move |asked| {
        if !std::mem::take(&mut is_first) {
            return Does::all_done(asked);
        }
        region_told(vec![refusal(0, "IOException"), refusal(1, "NoSuchColumnFamilyException")])
    })
    .await;
    let applied = fake.client().apply(&table(), puts(&["a", "b"])).await.unwrap();
    let failed: Vec<_> = applied.failed.iter().map(|failure| (failure.row, failure.error.kind())).collect();
    assert_eq!(failed, [(1, ErrorKind::NotFound)]);
}

/// What a server leaves for a later call is not begun, and no doubt lies on what it refuses then.
#[tokio::test]
async fn a_row_that_was_left_for_later_is_not_in_doubt() {
    let mut asked = 0;
    let fake = Fake::start(move |_| {
        asked += 1;
        let class = ["MultiActionResultTooLarge", "NoSuchColumnFamilyException"][usize::from(asked > 1)];
        region_told(vec![refusal(0, class)])
    })
    .await;
    let applied = fake.client().apply(&table(), puts(&["a"])).await.unwrap();
    assert_eq!(applied.failed[0].error.kind(), ErrorKind::NotFound);
}

/// Entries of one key go one after the other, and share the time that the batch has.
#[tokio::test]
async fn a_keys_later_entries_have_the_time_that_its_earlier_ones_leave() {
    let mut is_first = true;
    let fake =
        Fake::start(move |asked| if std::mem::take(&mut is_first) { Does::Silence } else { Does::all_done(asked) })
            .await;
    let mut options = fake.client().options.clone();
    options.operation_timeout = options.call_timeout * 3 / 2;
    let (client, table) = (Arc::new(Cluster::new(options).unwrap()), table());
    let batch = puts(&["a", "b", "a"]);
    let (applied, ()) = tokio::join!(client.apply(&table, batch), unanswered(&fake, &client, "Multi"));
    assert!(applied.unwrap().failed.is_empty());
    let told: Vec<_> = fake.calls("Multi").iter().map(|asked| Duration::from_millis(asked.timeout.into())).collect();
    assert_eq!(told.len(), 3);
    assert!(told[2] + client.options.call_timeout <= client.options.operation_timeout, "{told:?}");
}

/// HBase forbids to ask again, by the class alone: the row is refused at once, in the server's words.
#[tokio::test]
async fn a_row_that_a_server_forbids_to_ask_for_again_is_refused_at_once() {
    let fake = Fake::start(|_| {
        let mut refused = refusal(0, "RowTooBigException");
        let exception = refused.exception.as_mut().unwrap();
        exception.value = Some(format!("{}: Max row size", exception.name).into());
        region_told(vec![refused])
    })
    .await;
    let applied = fake.client().apply(&table(), puts(&["a"])).await.unwrap();
    let failed: Vec<_> = applied.failed.iter().map(|failure| failure.error.to_string()).collect();
    assert_eq!(failed, ["RowTooBigException: Max row size"]);
    let get = Get::rows(vec!["a".into()]);
    assert_eq!(fake.client().get(&table(), &get).await.unwrap_err().kind(), ErrorKind::Invalid);
    assert_eq!(fake.calls("Multi").len(), 2);
}

/// A region that is busy in the midst of a batch tells all of it so, also what it did: a tombstone over the newest version
/// would take the next one too.
#[tokio::test]
async fn of_a_batch_that_a_region_broke_off_no_tombstone_is_sent_again() {
    for class in ["RegionTooBusyException", "NotServingRegionException"] {
        let fake = Fake::start(move |asked| {
            let ask: MultiRequest = asked.read();
            match ask.region_action[0].action.len() {
                1 => Does::all_done(asked),
                _ => region_told(vec![refusal(0, class), refusal(1, class)]),
            }
        })
        .await;
        let mut batch = puts(&["a"]);
        batch.row(b"r").unwrap().delete(b"f", b"q", None).unwrap();
        let applied = fake.client().apply(&table(), batch).await.unwrap();
        let failed: Vec<_> = applied.failed.iter().map(|failure| (failure.row, failure.error.kind())).collect();
        assert_eq!(
            failed,
            [(1, ErrorKind::Unavailable)],
            "{class}: the put is asked for again, and what is known of it told"
        );
        assert!(applied.failed[0].error.to_string().ends_with("whether it was done is unknown"), "{class}");
        assert_eq!(fake.calls("Multi").len(), 2, "{class}");
    }
}

/// What one server refuses as a whole is refused of its rows, and those of others are stored, and told so.
#[tokio::test]
async fn a_call_that_a_server_refuses_costs_its_own_rows_alone() {
    let fake = Fake::start(Does::all_done).await;
    let other = Fake::start(|_| Does::Refuse("DoNotRetryIOException")).await;
    fake.world.lock().unwrap().put_regions(1, vec![("", fake.port), ("m", other.port)]);
    let applied = fake.client().apply(&table(), puts(&["a", "n", "o"])).await.unwrap();
    let failed: Vec<_> = applied.failed.iter().map(|failure| (failure.row, failure.error.kind())).collect();
    assert_eq!(failed, [(1, ErrorKind::Invalid), (2, ErrorKind::Invalid)]);
}

/// The first attempt may have stored the row that the second did not take.
#[tokio::test]
async fn a_row_that_may_be_stored_is_unknown_though_it_was_refused_since() {
    let mut is_first = true;
    let fake = Fake::start(move |_| {
        if std::mem::take(&mut is_first) {
            return Does::Silence;
        }
        let exception = Some(NameBytesPair { name: "a.b.NoSuchColumnFamilyException".to_owned(), value: None });
        let refused = ResultOrException { index: Some(0), result: None, exception };
        let result = RegionActionResult { result_or_exception: vec![refused], exception: None };
        Does::answer(&MultiResponse { region_action_result: vec![result], processed: None })
    })
    .await;
    let (client, table) = (fake.client(), table());
    let (applied, ()) = tokio::join!(client.apply(&table, puts(&["a"])), unanswered(&fake, &client, "Multi"));
    let error = applied.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    assert!(error.to_string().contains("unknown"), "{error}");
}

/// A read changes nothing: why it failed last is what its caller needs.
#[tokio::test]
async fn a_read_is_told_its_last_refusal() {
    let mut is_first = true;
    let fake = Fake::start(move |_| {
        if std::mem::take(&mut is_first) { Does::Silence } else { Does::Refuse("NoSuchColumnFamilyException") }
    })
    .await;
    let (client, table, get) = (fake.client(), table(), Get::rows(vec!["a".into()]));
    let (told, ()) = tokio::join!(client.get(&table, &get), unanswered(&fake, &client, "Multi"));
    assert_eq!(told.unwrap_err().kind(), ErrorKind::NotFound);
}

/// The columns go with each row: many of both would be more than a server takes (`hbase.ipc.max.request.size`).
#[tokio::test]
async fn a_get_of_many_columns_is_many_calls() {
    let fake = Fake::start(Does::all_done).await;
    let rows = ["a", "b", "c", "d", "e", "f"].map(Bytes::from).to_vec();
    let column = basalt_store::Columns::column("f", vec![b'q'; 1 << 20]);
    fake.client().get(&table(), &Get::rows(rows).with_columns(column)).await.unwrap();
    let asked: Vec<_> = fake.calls("Multi").iter().map(|asked| asked.parameter.len()).collect();
    assert!(asked.iter().all(|&bytes| bytes < 3 << 20), "{asked:?}");
    assert_eq!(asked.len(), 6);
}

/// A row that is answered for twice stands in for one of which nothing is said.
#[tokio::test]
async fn an_answer_told_twice_settles_no_other_row() {
    let fake = Fake::start(|_| {
        let done = ResultOrException { index: Some(0), ..ResultOrException::default() };
        let result = RegionActionResult { result_or_exception: vec![done.clone(), done], exception: None };
        Does::answer(&MultiResponse { region_action_result: vec![result], processed: None })
    })
    .await;
    let error = fake.client().apply(&table(), puts(&["a", "b"])).await.unwrap_err();
    assert!(error.to_string().contains("an action's answer"), "{error}");
}

/// As HBase does for a cell over `hbase.server.keyvalue.maxsize`: all rows of the region are told so, and none is stored.
#[tokio::test]
async fn a_row_that_a_region_refuses_with_all_others_costs_itself_alone() {
    let fake = Fake::start(|asked| {
        let ask: MultiRequest = asked.read();
        let is_large = |action: &Action| action.mutation.as_ref().unwrap().row.as_deref() == Some(b"b");
        let results = ask.region_action.iter().map(|region| {
            let is_refused = region.action.iter().any(is_large);
            let told = |action: &Action| match (is_refused, action.index.unwrap()) {
                (true, index) => refusal(index, "DoNotRetryIOException"),
                (false, index) => ResultOrException { index: Some(index), ..ResultOrException::default() },
            };
            RegionActionResult { result_or_exception: region.action.iter().map(told).collect(), exception: None }
        });
        Does::answer(&MultiResponse { region_action_result: results.collect(), processed: None })
    })
    .await;
    let failed = async |batch| {
        // It has no time for a pause, and needs none.
        let applied = impatient(&fake).apply(&table(), batch).await.unwrap();
        applied.failed.iter().map(|failure| (failure.row, failure.error.kind())).collect::<Vec<_>>()
    };
    assert_eq!(failed(puts(&["a", "b", "c", "d", "e"])).await, [(1, ErrorKind::Invalid)]);
    let rows = |asked: &Asked| {
        let ask: MultiRequest = asked.read();
        ask.region_action.iter().map(|region| region.action.len()).collect::<Vec<_>>()
    };
    assert_eq!(fake.calls("Multi").iter().map(rows).collect::<Vec<_>>(), [vec![5], vec![3, 2], vec![2, 1], vec![1, 1]]);
    // What must not be done twice is not asked for again.
    let mut batch = puts(&["a", "b"]);
    batch.row(b"c").unwrap().delete(b"f", b"q", None).unwrap();
    assert_eq!(failed(batch).await, [(1, ErrorKind::Invalid), (2, ErrorKind::Invalid)]);
}
