//! Changes of tables: how their end is told, and compactions.

use basalt_store::{Compaction, NamespaceDescriptor, SplitAt};

use super::*;
use crate::pb::cluster::{
    CompactRegionRequest, DISABLED, ENABLED, FlushRegionResponse, GetRegionInfoRequest, GetRegionInfoResponse,
};
use crate::pb::master::{
    GetCompletedSnapshotsResponse, GetNamespaceDescriptorResponse, GetProcedureResultResponse, GetTableStateResponse,
    NamespaceDescriptor as NamespaceMessage, PROCEDURE_NOT_FOUND, ProcedureResponse, SnapshotDescription,
    SnapshotResponse,
};

/// What a master says that does not know a procedure any more.
#[derive(Debug, Clone, Copy)]
struct Told {
    /// The table's state; `None`: there is no such table.
    state: Option<i32>,
    /// The versions of its one family.
    versions: u32,
    /// Whether the snapshot and the namespace are there.
    are_there: bool,
}

const STAYED: Told = Told { state: Some(DISABLED), versions: 1, are_there: false };

fn descriptor(versions: u32) -> TableDescriptor {
    TableDescriptor::new(table(), vec![FamilyDescriptor::new("f").with_versions(versions)])
}

fn master(told: Told) -> impl FnMut(&Asked) -> Does {
    let mut described = 0;
    move |asked| match &*asked.method {
        "getProcedureResult" => {
            Does::answer(&GetProcedureResultResponse { state: PROCEDURE_NOT_FOUND, exception: None })
        }
        "GetTableState" => match told.state {
            Some(state) => Does::answer(&GetTableStateResponse { table_state: TableState { state } }),
            None => Does::Refuse("TableNotFoundException"),
        },
        "GetTableDescriptors" => {
            described += 1;
            let versions = if described == 1 { 1 } else { told.versions };
            let table_schema = vec![schema(&descriptor(versions), "NONE")];
            Does::answer(&GetTableDescriptorsResponse { table_schema })
        }
        "GetNamespaceDescriptor" if told.are_there => {
            let namespace_descriptor = NamespaceMessage { name: "n".into(), configuration: Vec::new() };
            Does::answer(&GetNamespaceDescriptorResponse { namespace_descriptor })
        }
        "GetNamespaceDescriptor" => Does::Refuse("NamespaceNotFoundException"),
        "GetCompletedSnapshots" => {
            let snapshot =
                SnapshotDescription { name: "s".to_owned(), table: Some("t".to_owned()), creation_time: None };
            let snapshots = Vec::from_iter(told.are_there.then_some(snapshot));
            Does::answer(&GetCompletedSnapshotsResponse { snapshots })
        }
        "Snapshot" => Does::answer(&SnapshotResponse { proc_id: Some(7) }),
        _ => Does::answer(&ProcedureResponse { proc_id: Some(7) }),
    }
}

/// A procedure that is forgotten is done where what was asked for is there, and nowhere else.
#[tokio::test]
async fn a_forgotten_procedure_is_believed_by_what_it_left() {
    let check = async |what: &str, told: Told, is_done: bool| {
        let fake = Fake::start(master(told)).await;
        let (client, table) = (fake.client(), table());
        let done = match what {
            "create" => client.create_table(&descriptor(1), &[]).await,
            "alter" => client.alter_table(&descriptor(7)).await,
            "truncate" => client.truncate_table(&table, basalt_store::TruncatedRegions::Kept).await,
            "enable" => client.switch_table(&table, true).await,
            "disable" => client.switch_table(&table, false).await,
            "drop" => client.drop_table(&table).await,
            "split" => client.split_region(&table, &SplitAt::Key("m".into())).await.map(drop),
            "snapshot" => client.snapshot(&table, "s").await,
            "restore" => client.restore_snapshot("s").await,
            "create namespace" => client.create_namespace(&NamespaceDescriptor::new("n")).await,
            _ => client.drop_namespace("n").await,
        };
        match done {
            Ok(()) => assert!(is_done, "{what} {told:?}"),
            Err(error) => {
                assert!(!is_done, "{what} {told:?}: {error}");
                assert_eq!(error.kind(), ErrorKind::Unavailable, "{what} {told:?}: {error}");
                assert!(error.to_string().contains("unknown"), "{what} {told:?}: {error}");
            }
        }
    };
    let (enabled, gone) = (Told { state: Some(ENABLED), ..STAYED }, Told { state: None, ..STAYED });
    let there = Told { are_there: true, ..STAYED };
    check("create", enabled, true).await;
    check("create", gone, false).await;
    check("alter", Told { versions: 7, ..STAYED }, true).await;
    check("alter", STAYED, false).await;
    check("truncate", STAYED, false).await;
    check("enable", enabled, true).await;
    check("enable", STAYED, false).await;
    check("disable", STAYED, true).await;
    check("disable", enabled, false).await;
    check("drop", STAYED, false).await;
    check("split", STAYED, false).await;
    check("snapshot", there, true).await;
    check("snapshot", STAYED, false).await;
    // It is disabled before and after.
    check("restore", there, false).await;
    check("create namespace", there, true).await;
    check("create namespace", STAYED, false).await;
    check("drop namespace", STAYED, true).await;
    check("drop namespace", there, false).await;
}

/// HBase takes no file for two compactions: what is asked for while one is under way would come to nothing.
#[tokio::test]
async fn a_compaction_waits_for_the_one_before_it() {
    let mut asked_for = 0;
    let fake = Fake::start(move |asked| match &*asked.method {
        "GetRegionInfo" => {
            let _ask: GetRegionInfoRequest = asked.read();
            asked_for += 1;
            let compaction_state = Some(i32::from(matches!(asked_for, 1 | 3)));
            Does::answer(&GetRegionInfoResponse { compaction_state, ..GetRegionInfoResponse::default() })
        }
        _ => Does::answer(&Empty {}),
    })
    .await;
    fake.client().compact(&table(), Compaction::Major).await.unwrap();
    let methods: Vec<_> = fake.world.lock().unwrap().asked.iter().map(|asked| asked.method.clone()).collect();
    let [looks, request] = ["GetRegionInfo", "CompactRegion"];
    assert_eq!(methods, [looks, looks, request, looks, looks]);
    assert_eq!(fake.calls(request)[0].read::<CompactRegionRequest>().major, Some(true));
}

/// A region server that does not flush so many times, with so many MiB in memory after that.
fn busy_flushing(mut refusals: usize, mem_store_size_mb: u32) -> impl FnMut(&Asked) -> Does {
    move |asked| {
        if asked.method == "FlushRegion" {
            let flushed = Some(refusals == 0);
            refusals = refusals.saturating_sub(1);
            return Does::answer(&FlushRegionResponse { flushed });
        }
        let region_specifier = specifier(&Bytes::from_static(b"t,,1.00000000000000000000000000000000."));
        let load = RegionLoad { region_specifier, mem_store_size_mb: Some(mem_store_size_mb), ..RegionLoad::default() };
        Does::answer(&GetRegionLoadResponse { region_loads: vec![load] })
    }
}

/// HBase does not begin a flush while another is under way, which may miss the last changes.
#[tokio::test]
async fn a_region_that_is_flushed_already_is_flushed_again() {
    let fake = Fake::start(busy_flushing(2, 1)).await;
    fake.client().flush(&table()).await.unwrap();
    assert_eq!(fake.calls("FlushRegion").len(), 3);
}

/// Its servers say the same of a region with nothing to flush.
#[tokio::test]
async fn a_region_without_anything_in_memory_is_flushed() {
    let fake = Fake::start(busy_flushing(usize::MAX, 0)).await;
    fake.client().flush(&table()).await.unwrap();
    assert_eq!(fake.calls("FlushRegion").len(), 1);
}

#[tokio::test]
async fn a_region_that_is_never_flushed_is_told() {
    let fake = Fake::start(busy_flushing(usize::MAX, 1)).await;
    let mut options = fake.client().options.clone();
    (options.pause, options.admin_timeout) = (Duration::from_millis(1), Duration::from_millis(100));
    let error = Cluster::new(options).unwrap().flush(&table()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    assert!(error.to_string().contains("1 regions did not flush"), "{error}");
}

/// Does as it is told of the first call of a method, and refuses those after it.
fn lost_then(first: Does, refusal: &'static str) -> impl FnMut(&Asked) -> Does {
    let mut first = Some(first);
    move |_| first.take().unwrap_or(Does::Refuse(refusal))
}

/// It carries no nonce: asked again, a master has no such snapshot.
#[tokio::test]
async fn a_snapshot_that_is_gone_as_it_was_asked_is_deleted() {
    let gone = "snapshot.SnapshotDoesNotExistException";
    let fake = Fake::start(lost_then(Does::Close, gone)).await;
    fake.client().delete_snapshot("s").await.unwrap();
    assert_eq!(fake.calls("DeleteSnapshot").len(), 2);
    let fake = Fake::start(move |_| Does::Refuse(gone)).await;
    let error = fake.client().delete_snapshot("s").await.unwrap_err();
    assert!(matches!(error, basalt_store::Error::UnknownSnapshot { .. }), "{error}");
}

/// The attempt that nobody answered may have made it; a refusal of the next does not unmake it.
#[tokio::test]
async fn a_change_of_tables_that_may_have_been_made_is_unknown_though_it_was_refused_since() {
    for what in ["create", "drop namespace", "snapshot"] {
        let fake = Fake::start(lost_then(Does::Close, "snapshot.SnapshotExistsException")).await;
        let (client, table) = (fake.client(), table());
        let done = match what {
            "create" => client.create_table(&descriptor(1), &[]).await,
            "snapshot" => client.snapshot(&table, "s").await,
            _ => client.drop_namespace("n").await,
        };
        let error = done.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unavailable, "{what}: {error}");
        assert!(error.to_string().contains("unknown"), "{what}: {error}");
    }
}

/// As when the master ends after it began, and no other comes in time.
#[tokio::test]
async fn a_change_of_tables_that_was_begun_is_unknown_where_no_master_tells_its_end() {
    let fake = Fake::start(|asked| match &*asked.method {
        "CreateTable" => Does::answer(&ProcedureResponse { proc_id: Some(7) }),
        _ => Does::Refuse("ipc.ServerNotRunningYetException"),
    })
    .await;
    let mut options = fake.client().options.clone();
    options.admin_timeout = Duration::from_millis(100);
    let error = Cluster::new(options).unwrap().create_table(&descriptor(1), &[]).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    assert!(error.to_string().contains("did not answer CreateTable in time"), "{error}");
}
