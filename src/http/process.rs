//! `/api/stats/jvm`, `/threads`, `/region_clients` (`O-STATS-JVM`): this process, told in the members that OpenTSDB has
//! for a Java machine. What only a Java machine has is there and empty: collectors, pools, stacks.

use std::fs;
use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use basalt_hbase::ServerFigures;
use serde_json::{Value, json};

use super::error::ApiError;
use super::json;
use crate::app::App;
use crate::clock;
use crate::proc::{Status, Thread};
use crate::version::VERSION;

/// Memory, load and age of the process.
pub(crate) async fn jvm(State(app): State<Arc<App>>) -> Result<Response, ApiError> {
    let status = Status::read();
    let load = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let load: f64 = load.split(' ').next().and_then(|text| text.parse().ok()).unwrap_or(-1.0);
    let uptime_ms = u64::try_from(app.started.elapsed().as_millis()).unwrap_or(u64::MAX);
    let usage = |used: u64, committed: u64| json!({ "init": 0, "used": used, "committed": committed, "max": -1 });
    json::ok(&json!({
        "runtime": {
            "startTime": clock::now_ms().saturating_sub(uptime_ms),
            "uptime": uptime_ms,
            "vmName": "Basalt",
            "vmVendor": "Basalt",
            "vmVersion": VERSION,
        },
        "memory": {
            "heapMemoryUsage": usage(status.bytes("RssAnon"), status.bytes("VmData")),
            "nonHeapMemoryUsage": usage(status.bytes("RssFile"), status.bytes("VmExe")),
            "objectsPendingFinalization": 0,
        },
        "gc": {},
        "pools": {},
        "os": { "systemLoadAverage": load },
    }))
}

/// The process's threads; their stacks are not looked at.
pub(crate) async fn threads() -> Result<Response, ApiError> {
    let told = Thread::all().into_iter().map(|Thread { id, name, state }| {
        json!({
            "threadID": id, "name": name, "state": state.name(), "interrupted": false, "priority": 5, "stack": [],
        })
    });
    json::ok(&told.collect::<Vec<Value>>())
}

/// The clients of region servers, in OpenTSDB's members: none where the store is in this process.
pub(crate) async fn region_clients(State(app): State<Arc<App>>) -> Result<Response, ApiError> {
    let servers = app.open_store().cluster_figures().unwrap_or_default().servers;
    json::ok(&servers.iter().map(region_client).collect::<Vec<Value>>())
}

/// One of them. Changes are gathered by their senders, so none is gathered here, and calls over the bound wait instead of
/// being refused.
fn region_client(server: &ServerFigures) -> Value {
    json!({
        "rpcsSent": server.sent,
        "rpcsInFlight": server.in_flight,
        "pendingRPCs": server.waiting,
        "pendingBatchedRPCs": 0,
        "dead": server.connections == 0,
        "rpcid": server.sent,
        "endpoint": format!("/{}", server.server),
        "rpcsTimedout": server.timed_out,
        "rpcResponsesTimedout": server.late,
        "rpcResponsesUnknown": 0,
        "inflightBreached": server.waited,
        "pendingBreached": 0,
        "writesBlocked": 0,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `O-STATS-JVM`: the members that OpenTSDB 2.4.1 answers with over HBase.
    #[test]
    fn o_stats_jvm_a_region_client_has_opentsdbs_members() {
        let server =
            ServerFigures { server: "rs1:16020".to_owned(), sent: 17, timed_out: 2, ..ServerFigures::default() };
        let told = region_client(&server);
        let mut names: Vec<&str> = told.as_object().unwrap().keys().map(String::as_str).collect();
        names.sort_unstable();
        let real = "dead endpoint inflightBreached pendingBatchedRPCs pendingBreached pendingRPCs rpcResponsesTimedout \
                    rpcResponsesUnknown rpcid rpcsInFlight rpcsSent rpcsTimedout writesBlocked";
        assert_eq!(names.join(" "), real);
        assert_eq!(
            (&told["endpoint"], &told["dead"], &told["rpcsTimedout"]),
            (&json!("/rs1:16020"), &json!(true), &json!(2))
        );
    }
}
