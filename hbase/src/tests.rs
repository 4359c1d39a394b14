//! The client against a server that misbehaves as a test says.

mod admin;
mod batches;
mod scans;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use basalt_store::{
    CheckAndMutate, Comparison, Durability, ErrorKind, FamilyDescriptor, Get, Increment, MutationBatch, TableDescriptor,
};
use bytes::Bytes;
use prost::Message as _;
use tokio::time::Instant;
use tracing::{Event, Level, Metadata, Subscriber, span};

use crate::cluster::Cluster;
use crate::connection::{Address, Service};
use crate::descriptor::schema;
use crate::error::CallError;
use crate::fake::{Asked, Does, Fake, SOON, table};
use crate::locations::specifier;
use crate::pb::client::{
    Cell, CellResult, MultiRequest, MultiResponse, MutateRequest, MutateResponse, RegionActionResult, ResultOrException,
};
use crate::pb::cluster::{GetRegionLoadResponse, RegionLoad, TableState};
use crate::pb::master::GetTableDescriptorsResponse;
use crate::pb::rpc::{Empty, NameBytesPair};

fn address(fake: &Fake) -> Address {
    Address { host: "127.0.0.1".into(), port: fake.port }
}

fn puts(keys: &[&str]) -> MutationBatch {
    let mut batch = MutationBatch::new(Durability::Fsync);
    for key in keys {
        batch.row(key.as_bytes()).unwrap().put(b"f", b"q", None, b"v").unwrap();
    }
    batch
}

/// Waits for what comes by itself.
async fn soon(mut is_so: impl FnMut() -> bool) {
    let begun = std::time::Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < SOON, "it does not come");
        tokio::task::yield_now().await;
    }
}

/// Lets time go by for the client, at once.
pub(crate) async fn pass(time: Duration) {
    tokio::time::pause();
    tokio::time::advance(time).await;
    tokio::time::resume();
}

/// Has the first call of a method wait for its answer in vain.
async fn unanswered(fake: &Fake, client: &Cluster, method: &str) {
    soon(|| !fake.calls(method).is_empty()).await;
    pass(client.options.call_timeout).await;
}

async fn state(client: Arc<Cluster>, at: Address, state: i32) -> i32 {
    let ask = TableState { state };
    let told = client.call((&at, Service::Client), "Echo", &ask, Bytes::new(), Instant::now() + SOON).await;
    let (told, _): (TableState, _) = told.unwrap();
    told.state
}

#[tokio::test]
async fn answers_find_their_calls_in_any_order() {
    // The first is answered after the second.
    let mut is_first = true;
    let fake = Fake::start(move |asked| {
        if std::mem::take(&mut is_first) {
            return Does::After(asked.parameter.clone());
        }
        Does::Answer(asked.parameter.clone(), Bytes::new())
    })
    .await;
    let client = fake.client();
    let first = tokio::spawn(state(Arc::clone(&client), address(&fake), 1));
    while fake.calls("Echo").is_empty() {
        tokio::task::yield_now().await;
    }
    assert_eq!(state(client, address(&fake), 2).await, 2);
    assert_eq!(first.await.unwrap(), 1);
    assert_eq!(fake.world.lock().unwrap().connections, 1);
}

#[tokio::test]
async fn silence_is_unknown_and_ends_the_connection() {
    let fake = Fake::start(|asked| match &*asked.method {
        "Silent" => Does::Silence,
        _ => Does::answer(&Empty {}),
    })
    .await;
    let client = fake.client();
    let ask = async |method, within| {
        let (at, until) = (address(&fake), Instant::now() + within);
        client.call::<Empty>((&at, Service::Client), method, &Empty {}, Bytes::new(), until).await
    };
    assert!(ask("Ask", SOON).await.is_ok());
    // Where nothing comes, the wait takes no real time.
    tokio::time::pause();
    let told = ask("Silent", client.options.call_timeout).await;
    tokio::time::resume();
    assert!(matches!(told, Err(CallError::Unknown(error)) if error.kind() == ErrorKind::Unavailable));
    assert!(ask("Ask", SOON).await.is_ok());
    assert_eq!(fake.world.lock().unwrap().connections, 2);
}

/// A call that had hardly any time says nothing about the server; several that get no word in as long as a call may take do.
#[tokio::test]
async fn impatience_ends_no_connection() {
    let fake = Fake::start(|asked| match &*asked.method {
        "Silent" => Does::Silence,
        _ => Does::answer(&Empty {}),
    })
    .await;
    let client = fake.client();
    let ask = async |method, within| {
        let (at, until) = (address(&fake), Instant::now() + within);
        client.call::<Empty>((&at, Service::Client), method, &Empty {}, Bytes::new(), until).await
    };
    assert!(ask("Ask", SOON).await.is_ok());
    tokio::time::pause();
    assert!(ask("Silent", Duration::from_millis(5)).await.is_err());
    tokio::time::resume();
    assert!(ask("Ask", SOON).await.is_ok());
    assert_eq!(fake.world.lock().unwrap().connections, 1);
    tokio::time::pause();
    for _ in 0..3 {
        // The third is the first by whose end half of a call's time is over.
        assert!(ask("Silent", client.options.call_timeout / 5).await.is_err());
    }
    tokio::time::resume();
    assert!(ask("Ask", SOON).await.is_ok());
    assert_eq!(fake.world.lock().unwrap().connections, 2);
}

/// Whoever gives up a call by itself leaves the silence behind, and not the connection.
#[tokio::test]
async fn silence_that_callers_do_not_wait_out_ends_the_connection() {
    let fake = Fake::start(|asked| match &*asked.method {
        "Silent" => Does::Silence,
        _ => Does::answer(&Empty {}),
    })
    .await;
    let (client, at) = (fake.client(), address(&fake));
    let ask = async |method| {
        client.call::<Empty>((&at, Service::Client), method, &Empty {}, Bytes::new(), Instant::now() + SOON).await
    };
    assert!(ask("Ask").await.is_ok());
    tokio::time::pause();
    for _ in 0..3 {
        assert!(tokio::time::timeout(client.options.call_timeout / 5, ask("Silent")).await.is_err());
    }
    tokio::time::resume();
    assert!(ask("Ask").await.is_ok());
    assert_eq!(fake.world.lock().unwrap().connections, 2);
}

/// Else a server could do what its caller has given up, after what its caller did since.
#[tokio::test]
async fn a_call_that_waited_to_be_sent_tells_the_time_that_is_left() {
    let fake = Fake::start(|asked| match &*asked.method {
        "First" => Does::Silence,
        _ => Does::answer(&Empty {}),
    })
    .await;
    let mut options = fake.client().options.clone();
    options.calls_max = 1;
    let client = Arc::new(Cluster::new(options).unwrap());
    let ask = async |method, within| {
        let (at, until) = (address(&fake), Instant::now() + within);
        client.call::<Empty>((&at, Service::Client), method, &Empty {}, Bytes::new(), until).await
    };
    let (half, whole) = (SOON / 4, SOON / 2);
    let halfway = async {
        soon(|| !fake.calls("First").is_empty()).await;
        soon(|| client.tally.told(0).servers[0].waiting == 1).await;
        pass(half).await;
    };
    let (first, second, ()) = tokio::join!(ask("First", half), ask("Second", whole), halfway);
    assert!(first.is_err() && second.is_ok());
    let told = Duration::from_millis(fake.calls("Second")[0].timeout.into());
    assert!(told + half <= whole, "{told:?}");
}

#[tokio::test]
async fn a_lost_connection_is_unknown_and_the_next_call_makes_another() {
    let fake = Fake::start(|asked| match &*asked.method {
        "Die" => Does::Close,
        _ => Does::answer(&Empty {}),
    })
    .await;
    let (client, at) = (fake.client(), address(&fake));
    let ask = async |method| {
        client.call::<Empty>((&at, Service::Client), method, &Empty {}, Bytes::new(), Instant::now() + SOON).await
    };
    assert!(matches!(ask("Die").await, Err(CallError::Unknown(_))));
    assert!(ask("Live").await.is_ok());
}

/// Never acknowledged: what nobody answered is an error, and it says that the outcome is unknown.
#[tokio::test]
async fn a_put_that_nobody_answers_is_unknown() {
    let fake = Fake::start(|_| Does::Silence).await;
    let mut options = fake.client().options.clone();
    options.operation_timeout = options.call_timeout * 3 / 2;
    let client = Arc::new(Cluster::new(options).unwrap());
    let two_attempts = async {
        for attempt in 1..=2 {
            soon(|| fake.calls("Multi").len() == attempt).await;
            pass(client.options.call_timeout).await;
        }
    };
    let table = table();
    let (applied, ()) = tokio::join!(client.apply(&table, puts(&["a"])), two_attempts);
    let error = applied.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    assert!(error.to_string().contains("unknown"), "{error}");
}

/// The first attempt may have been done; that those after it were refused does not make it undone.
#[tokio::test]
async fn what_may_have_been_done_is_unknown_though_it_was_refused_since() {
    for refusal in ["NotServingRegionException", "RegionTooBusyException", "DoNotRetryIOException"] {
        let mut asked = 0;
        let fake = Fake::start(move |_| {
            asked += 1;
            if asked % 2 == 1 { Does::Silence } else { Does::Refuse(refusal) }
        })
        .await;
        let mut options = fake.client().options.clone();
        // There is time for one pause, and not for the next, which is twice as long.
        (options.pause, options.busy_pause, options.operation_timeout) = (SOON * 5, SOON * 5, SOON * 10);
        let client = Arc::new(Cluster::new(options).unwrap());
        let two_attempts = async |method: &'static str| {
            let retries = client.tally.retries.get();
            unanswered(&fake, &client, method).await;
            soon(|| client.tally.retries.get() > retries).await;
            // It may be a tenth longer.
            pass(client.options.pause * 6 / 5).await;
        };
        let (table, increment) = (table(), increment());
        let (applied, ()) = tokio::join!(client.apply(&table, puts(&["a"])), two_attempts("Multi"));
        let (added, ()) = tokio::join!(client.increment(&table, &increment), two_attempts("Mutate"));
        assert_eq!((fake.calls("Multi").len(), fake.calls("Mutate").len()), (2, 2), "{refusal}");
        for error in [applied.unwrap_err(), added.unwrap_err()] {
            assert_eq!(error.kind(), ErrorKind::Unavailable, "{refusal}");
            assert!(error.to_string().contains("unknown"), "{error}");
        }
    }
}

/// Done twice, it would take the newest version and then the one before it.
#[tokio::test]
async fn a_tombstone_over_the_newest_version_is_not_sent_again() {
    let fake = Fake::start(|_| Does::Silence).await;
    let mut batch = MutationBatch::new(Durability::Fsync);
    batch.row(b"r").unwrap().delete(b"f", b"q", None).unwrap();
    let (client, table) = (fake.client(), table());
    let (applied, ()) = tokio::join!(client.apply(&table, batch), unanswered(&fake, &client, "Multi"));
    assert_eq!(applied.unwrap_err().kind(), ErrorKind::Unavailable);
    assert_eq!(fake.calls("Multi").len(), 1);
}

fn increment() -> Increment {
    let (row, family, qualifier) = ("r".into(), "f".into(), "q".into());
    Increment { row, family, qualifier, amount: 1, durability: Durability::Fsync }
}

/// A counter's answer.
fn seven() -> Does {
    let value = Some(Bytes::copy_from_slice(&7_i64.to_be_bytes()));
    let result = CellResult { cell: vec![Cell { value, ..Cell::default() }], ..CellResult::default() };
    Does::answer(&MutateResponse { result: Some(result) })
}

/// Does so once, and counts after it.
fn once(first: Does) -> impl FnMut(&Asked) -> Does {
    let mut first = Some(first);
    move |_| first.take().unwrap_or_else(seven)
}

#[tokio::test]
async fn an_increment_asked_for_twice_carries_one_nonce() {
    let fake = Fake::start(once(Does::Silence)).await;
    let (client, table, increment) = (fake.client(), table(), increment());
    let (added, ()) = tokio::join!(client.increment(&table, &increment), unanswered(&fake, &client, "Mutate"));
    assert_eq!(added.unwrap(), 7);
    let nonces: Vec<_> = fake
        .calls("Mutate")
        .iter()
        .map(Asked::read::<MutateRequest>)
        .map(|ask| (ask.nonce_group, ask.mutation.nonce))
        .collect();
    assert_eq!(nonces.len(), 2);
    assert_eq!(nonces[0], nonces[1]);
    assert!(nonces[0].1.is_some_and(|nonce| nonce != 0));
}

/// A server knows neither the nonces of another nor those of the process before it.
#[tokio::test]
async fn s_cnt_2_an_increment_that_may_have_been_done_is_not_repeated_at_another_server() {
    for is_restarted in [false, true] {
        let (old, new) = (Fake::start(once(Does::Silence)).await, Fake::start(|_| seven()).await);
        let (client, table, increment) = (old.client(), table(), increment());
        let moved = async {
            soon(|| !old.calls("Mutate").is_empty()).await;
            let (began, port) = if is_restarted { (2, old.port) } else { (1, new.port) };
            old.world.lock().unwrap().put_regions(began, vec![("", port)]);
            pass(client.options.call_timeout).await;
        };
        let (added, ()) = tokio::join!(client.increment(&table, &increment), moved);
        let error = added.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unavailable);
        assert!(error.to_string().contains("unknown"), "{error}");
        assert_eq!((old.calls("Mutate").len(), new.calls("Mutate").len()), (1, 0));
    }
}

/// Also where it told that it failed, and ended in good order before the next attempt.
#[tokio::test]
async fn s_cnt_2_an_increment_is_not_repeated_at_a_server_that_began_anew_during_a_pause() {
    for first in [vec!["IOException"], vec!["CallTimeoutException", "RegionTooBusyException"]] {
        let (mut refusals, attempts) = (first.clone().into_iter(), first.len());
        let fake = Fake::start(move |_| refusals.next().map_or_else(seven, Does::Refuse)).await;
        let mut options = fake.client().options.clone();
        (options.pause, options.busy_pause, options.operation_timeout) = (SOON, SOON, SOON * 20);
        let client = Arc::new(Cluster::new(options).unwrap());
        let restarted = async {
            for attempt in 1..=attempts {
                soon(|| fake.calls("Mutate").len() == attempt && client.tally.retries.get() == attempt as u64).await;
                // Anew after the last.
                let began = 1 + u64::from(attempt == attempts);
                fake.world.lock().unwrap().put_regions(began, vec![("", fake.port)]);
                pass(SOON * 5).await;
            }
        };
        let (table, increment) = (table(), increment());
        let (added, ()) = tokio::join!(client.increment(&table, &increment), restarted);
        assert_eq!(added.unwrap_err().kind(), ErrorKind::Unavailable, "{first:?}");
        assert_eq!(fake.calls("Mutate").len(), attempts, "{first:?}");
    }
}

#[tokio::test]
async fn an_increment_that_was_not_begun_follows_its_region() {
    let new = Fake::start(|_| seven()).await;
    let old = Fake::start(|_| Does::Refuse("NotServingRegionException")).await;
    let moved = async {
        soon(|| !old.calls("Mutate").is_empty()).await;
        old.world.lock().unwrap().put_regions(1, vec![("", new.port)]);
    };
    let (client, table, increment) = (old.client(), table(), increment());
    let (added, ()) = tokio::join!(client.increment(&table, &increment), moved);
    assert_eq!(added.unwrap(), 7);
    assert_eq!(new.calls("Mutate").len(), 1);
}

fn check() -> CheckAndMutate {
    CheckAndMutate {
        row: "r".into(),
        family: "f".into(),
        qualifier: "q".into(),
        comparison: Comparison::Equal,
        expected: None,
        mutation: puts(&["r"]),
    }
}

/// Run twice, the second would find the first's own change and say no.
#[tokio::test]
async fn a_condition_that_may_have_run_is_not_run_again() {
    let fake = Fake::start(|_| Does::Silence).await;
    let (client, table, check) = (fake.client(), table(), check());
    let (told, ()) = tokio::join!(client.check_and_mutate(&table, &check), unanswered(&fake, &client, "Multi"));
    assert_eq!(told.unwrap_err().kind(), ErrorKind::Unavailable);
    assert_eq!(fake.calls("Multi").len(), 1);
}

#[tokio::test]
async fn a_condition_that_a_region_refused_is_run_where_it_is() {
    let mut is_first = true;
    let fake = Fake::start(move |_| {
        if std::mem::take(&mut is_first) {
            let exception = Some(NameBytesPair { name: "a.NotServingRegionException".to_owned(), value: None });
            let result = RegionActionResult { result_or_exception: Vec::new(), exception };
            return Does::answer(&MultiResponse { region_action_result: vec![result], processed: None });
        }
        Does::answer(&MultiResponse { region_action_result: Vec::new(), processed: Some(true) })
    })
    .await;
    assert!(fake.client().check_and_mutate(&table(), &check()).await.unwrap());
    assert_eq!(fake.calls("Multi").len(), 2);
}

#[tokio::test]
async fn a_table_that_is_gone_or_disabled_is_told_as_such() {
    let fake = Fake::start(|_| Does::Refuse("NotServingRegionException")).await;
    let client = fake.client();
    fake.world.lock().unwrap().state = Some(1);
    let error = client.apply(&table(), puts(&["a"])).await.unwrap_err();
    assert!(matches!(error, basalt_store::Error::TableDisabled { .. }), "{error}");
    fake.world.lock().unwrap().state = None;
    let error = client.increment(&table(), &increment()).await.unwrap_err();
    assert!(matches!(error, basalt_store::Error::UnknownTable { .. }), "{error}");
}

/// A cluster with Kerberos refuses whoever only tells a name. That is said at once, not after a minute of trying.
#[tokio::test]
async fn a_cluster_that_asks_for_a_login_is_told_as_such() {
    let fake = Fake::start(|_| Does::answer(&Empty {})).await;
    fake.world.lock().unwrap().asks_for_login = true;
    let client = fake.client();
    let told = client.apply(&table(), puts(&["a"])).await.unwrap_err();
    // Points are good meanwhile, and not to be dropped.
    assert_eq!(told.kind(), ErrorKind::Unavailable);
    let line = told.to_string();
    assert!(
        line.contains("SASL") && line.contains("kerberos") && line.contains("Authentication is required"),
        "{line}"
    );
    assert!(fake.world.lock().unwrap().connections <= 2, "it is not tried again and again");
    let checked =
        client.check_catalogue(&crate::patience::Patience::new(&client.options, SOON)).await.unwrap_err().into_error();
    assert!(matches!(checked, crate::Error::LoginRequired { .. }), "{checked}");
}

#[tokio::test]
async fn calls_are_counted_by_server_and_outcome() {
    let mut is_first = true;
    let fake = Fake::start(move |asked| match (&*asked.method, std::mem::take(&mut is_first)) {
        ("Multi", true) => Does::Refuse("NotServingRegionException"),
        ("Multi", false) => Does::all_done(asked),
        ("Hang", _) => Does::Silence,
        _ => Does::Close,
    })
    .await;
    let client = fake.client();
    client.apply(&table(), puts(&["a"])).await.unwrap();
    let told = || client.tally.told(client.locations.regions_kept());
    let figures = told();
    assert_eq!((figures.retries, figures.relocations, figures.lookups, figures.regions_kept), (1, 1, 2, 1));
    assert!(figures.calls.contains(&("Multi", 2)), "{figures:?}");
    let [server] = &figures.servers[..] else { panic!("{figures:?}") };
    assert_eq!(server.server, address(&fake).to_string());
    assert_eq!((server.refused, server.timed_out, server.lost, server.in_flight, server.waiting), (1, 0, 0, 0, 0));
    // The registry, and the rows.
    assert_eq!((server.connections, server.connected), (2, 2));
    let ask = async |method, within| {
        let (at, until) = (address(&fake), Instant::now() + within);
        client.call::<Empty>((&at, Service::Client), method, &Empty {}, Bytes::new(), until).await.unwrap_err()
    };
    tokio::time::pause();
    ask("Hang", client.options.call_timeout).await;
    tokio::time::resume();
    ask("Lose", SOON).await;
    let server = told().servers.remove(0);
    assert_eq!((server.timed_out, server.lost, server.in_flight), (1, 1, 0));
    assert_eq!((server.connections, server.connected), (1, 3), "one ended for its silence, its successor was closed");
    assert_eq!(
        server.sent,
        1 + 2 + 4 + 2,
        "where the catalogue is; two changes; the table's state and regions twice; and those two"
    );
}

/// A port at which nobody listens.
async fn nobody() -> u16 {
    tokio::net::TcpListener::bind(("127.0.0.1", 0)).await.unwrap().local_addr().unwrap().port()
}

/// As when one is restarted: its regions are told once they are open again.
#[tokio::test]
async fn regions_of_a_server_that_is_away_are_waited_for() {
    let fake = Fake::start(|_| {
        let region_specifier = specifier(&Bytes::from_static(b"t,,1.00000000000000000000000000000000."));
        let load = RegionLoad { region_specifier, storefiles: Some(3), ..RegionLoad::default() };
        Does::answer(&GetRegionLoadResponse { region_loads: vec![load] })
    })
    .await;
    let nobody = nobody().await;
    fake.world.lock().unwrap().put_regions(1, vec![("", nobody)]);
    let back = async {
        soon(|| fake.world.lock().unwrap().catalogue_reads >= 2).await;
        fake.world.lock().unwrap().put_regions(2, vec![("", fake.port)]);
    };
    let (client, table) = (fake.client(), table());
    let (told, ()) = tokio::join!(client.regions(&table), back);
    assert_eq!(told.unwrap().iter().map(|region| region.files_count).collect::<Vec<_>>(), [3]);
}

/// What the catalogue has of a disabled table's regions is where they were.
#[tokio::test]
async fn s_admin_2_a_disabled_tables_regions_are_asked_of_no_server() {
    let fake = Fake::start(|_| Does::answer(&Empty {})).await;
    let nobody = nobody().await;
    {
        let mut world = fake.world.lock().unwrap();
        world.state = Some(1);
        world.put_regions(1, vec![("", nobody), ("m", fake.port)]);
    }
    let mut options = fake.client().options.clone();
    options.operation_timeout = Duration::from_secs(2);
    let client = Cluster::new(options).unwrap();
    let told = client.regions(&table()).await.unwrap();
    assert_eq!(told.iter().map(|region| region.files_count).collect::<Vec<_>>(), [0, 0]);
    assert!(fake.calls("GetRegionLoad").is_empty());
}

#[tokio::test]
async fn s_name_2_a_new_family_whose_name_is_too_long_is_not_asked_for() {
    let of = |names: &[&str]| {
        let families = names.iter().map(|name| FamilyDescriptor::new(name.to_string())).collect();
        TableDescriptor::new(table(), families)
    };
    let before = schema(&of(&["f"]), "NONE");
    let fake = Fake::start(move |asked| match &*asked.method {
        "GetTableDescriptors" => Does::answer(&GetTableDescriptorsResponse { table_schema: vec![before.clone()] }),
        _ => Does::Refuse("DoNotRetryIOException"),
    })
    .await;
    let (client, wanted) = (fake.client(), of(&["f", &"g".repeat(128)]));
    for told in [client.create_table(&wanted, &[]).await, client.alter_table(&wanted).await] {
        assert!(matches!(told, Err(basalt_store::Error::TooLarge { limit: 127, .. })), "{told:?}");
    }
    assert_eq!((fake.calls("CreateTable").len(), fake.calls("ModifyTable").len()), (0, 0));
}

/// What `/readyz` rests on.
#[tokio::test]
async fn whether_the_cluster_answers_is_known_soon() {
    let fake = Fake::start(|_| Does::answer(&Empty {})).await;
    let mut options = crate::HBaseOptions::of_masters([address(&fake).to_string()]);
    options.call_timeout = SOON;
    let client = Arc::new(Cluster::new(options).unwrap());
    assert_eq!(crate::store::why_not(&client, SOON).await, None);
    fake.world.lock().unwrap().is_frozen = true;
    let told = crate::store::why_not(&client, Duration::from_millis(50)).await.unwrap();
    assert!(told.contains("answer"), "{told}");
    fake.world.lock().unwrap().is_frozen = false;
    assert_eq!(crate::store::why_not(&client, SOON).await, None);
}

/// Levels of what is told to the log.
#[derive(Clone, Default)]
struct Levels(Arc<Mutex<Vec<Level>>>);

impl Subscriber for Levels {
    fn enabled(&self, told: &Metadata<'_>) -> bool {
        *told.level() <= Level::INFO && told.target() == "basalt_hbase::store"
    }

    fn event(&self, event: &Event<'_>) {
        self.0.lock().unwrap().push(*event.metadata().level());
    }

    fn new_span(&self, _: &span::Attributes<'_>) -> span::Id {
        span::Id::from_u64(1)
    }

    fn record(&self, _: &span::Id, _: &span::Record<'_>) {}
    fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}
    fn enter(&self, _: &span::Id) {}
    fn exit(&self, _: &span::Id) {}
}

/// Whoever reads the log alone sees when it began and when it ended: one line each, however long it takes.
#[tokio::test]
async fn an_outage_is_one_warning_and_one_line_when_it_is_over() {
    let fake = Fake::start(|_| Does::answer(&Empty {})).await;
    let mut options = crate::HBaseOptions::of_masters([address(&fake).to_string()]);
    options.call_timeout = SOON;
    let client = Cluster::new(options).unwrap();
    let (tell, told) = tokio::sync::watch::channel(None);
    let levels = Levels::default();
    let _listening = tracing::subscriber::set_default(levels.clone());
    for (is_frozen, within) in [
        (false, SOON),
        (true, Duration::from_millis(50)),
        (true, Duration::from_millis(50)),
        (false, SOON),
        (false, SOON),
    ] {
        fake.world.lock().unwrap().is_frozen = is_frozen;
        crate::store::look(&client, &tell, within).await;
        assert_eq!(told.borrow().is_some(), is_frozen);
    }
    assert_eq!(*levels.0.lock().unwrap(), [Level::WARN, Level::INFO]);
}

/// The catalogue's server says nothing any more, and another has it: there is time to ask that one.
#[tokio::test]
async fn a_cluster_whose_catalogue_moved_answers_though_its_last_server_is_silent() {
    let [first, second] = [Fake::start(|_| Does::Silence).await, Fake::start(|_| Does::Silence).await];
    let mut options = first.client().options.clone();
    let within = SOON;
    options.call_timeout = within * 4;
    let client = Cluster::new(options).unwrap();
    assert_eq!(crate::store::why_not(&client, within).await, None);
    {
        let mut world = first.world.lock().unwrap();
        (world.is_frozen, world.catalogue_at) = (true, Some(second.port));
    }
    let first = address(&first).to_string();
    let half = async {
        let in_flight = || client.tally.told(0).servers.iter().any(|told| told.server == first && told.in_flight > 0);
        soon(in_flight).await;
        pass(within / 2).await;
    };
    let told = tokio::time::timeout(within * 2, crate::store::why_not(&client, within));
    let (told, ()) = tokio::join!(told, half);
    assert_eq!(told.expect("the silent one takes all of the time"), None);
}

/// A move of the catalogue takes a second, and all that is asked meanwhile waits for it: it is no outage.
#[tokio::test]
async fn a_cluster_whose_catalogue_is_on_its_way_answers() {
    let fake = Fake::start(|_| Does::Silence).await;
    let mut options = fake.client().options.clone();
    options.pause = Duration::from_millis(1);
    let client = Cluster::new(options).unwrap();
    fake.world.lock().unwrap().refusals = 4;
    assert_eq!(crate::store::why_not(&client, SOON).await, None);
    assert_eq!(fake.world.lock().unwrap().refusals, 0);
}

/// The first of two masters is frozen: however little time there is, it is not all of it that is waited for.
#[tokio::test]
async fn a_silent_registry_leaves_time_for_the_next() {
    let frozen = tokio::net::TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let fake = Fake::start(|_| Does::Silence).await;
    let mut options = fake.client().options.clone();
    options.masters.insert(0, frozen.local_addr().unwrap().to_string());
    let client = Cluster::new(options).unwrap();
    let within = client.options.call_timeout / 4;
    let third = async {
        soon(|| client.tally.told(0).servers.iter().any(|server| server.in_flight > 0)).await;
        pass(within / 3).await;
    };
    let (told, ()) = tokio::join!(client.catalogue(Instant::now() + within), third);
    assert_eq!(told.unwrap(), address(&fake));
}

/// As a master that has only begun: another knows.
#[tokio::test]
async fn a_registry_without_a_name_leaves_the_question_to_the_next() {
    let [young, old] = [Fake::start(|_| Does::Silence).await, Fake::start(|_| Does::Silence).await];
    {
        let mut world = young.world.lock().unwrap();
        (world.master_at, world.catalogue_at) = (None, None);
    }
    let mut options = young.client().options.clone();
    options.masters = [&young, &old].map(|fake| address(fake).to_string()).into();
    let client = Cluster::new(options.clone()).unwrap();
    let until = Instant::now() + SOON;
    assert_eq!(client.master(until).await.unwrap(), address(&old));
    assert_eq!(client.catalogue(until).await.unwrap(), address(&old));
    options.masters.truncate(1);
    let told = Cluster::new(options).unwrap().catalogue(until).await.unwrap_err();
    assert!(told.to_string().contains("nobody says where it is"), "{told}");
}
