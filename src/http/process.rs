//! `/api/stats/jvm`, `/threads`, `/region_clients` (`O-STATS-JVM`): this process, told in the members that OpenTSDB has
//! for a Java machine. What only a Java machine has is there and empty: collectors, pools, stacks.

use std::fs;
use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use serde_json::{Value, json};

use super::error::ApiError;
use super::json;
use crate::app::App;
use crate::clock;
use crate::version::VERSION;

/// Memory, load and age of the process.
pub(crate) async fn jvm(State(app): State<Arc<App>>) -> Result<Response, ApiError> {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let bytes = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
        line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok()).unwrap_or(0) << 10
    };
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
            "heapMemoryUsage": usage(bytes("RssAnon"), bytes("VmData")),
            "nonHeapMemoryUsage": usage(bytes("RssFile"), bytes("VmExe")),
            "objectsPendingFinalization": 0,
        },
        "gc": {},
        "pools": {},
        "os": { "systemLoadAverage": load },
    }))
}

/// The process's threads; their stacks are not looked at.
pub(crate) async fn threads() -> Result<Response, ApiError> {
    let tasks = fs::read_dir("/proc/self/task").into_iter().flatten().flatten();
    let told = tasks.filter_map(|task| {
        let id: u64 = task.file_name().to_str()?.parse().ok()?;
        let stat = fs::read_to_string(task.path().join("stat")).ok()?;
        let (before, after) = stat.rsplit_once(')')?;
        let name = before.split_once('(')?.1;
        let state = match after.trim_start().chars().next()? {
            'R' => "RUNNABLE",
            'D' => "BLOCKED",
            'Z' | 'X' => "TERMINATED",
            _ => "WAITING",
        };
        Some(json!({
            "threadID": id, "name": name, "state": state, "interrupted": false, "priority": 5, "stack": [],
        }))
    });
    json::ok(&told.collect::<Vec<Value>>())
}

/// The clients of region servers: none where the store is in this process.
pub(crate) async fn region_clients() -> Result<Response, ApiError> {
    json::ok(&Vec::<Value>::new())
}
