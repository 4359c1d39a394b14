//! How things stand: figures that somebody else keeps, read when the page is asked for.

use basalt_schema::UidKind;

use super::Page;
use crate::app::App;
use crate::clock;
use crate::proc;
use crate::version::VERSION;

/// What the store may be, as `basalt_health` labels it.
const HEALTH: [&str; 5] = ["ok", "disk_full", "no_descriptors", "poisoned", "unreachable"];

impl Page {
    /// Adds what the process is and how the daemon's parts stand.
    ///
    /// *Cost*: files of `/proc`; three gets of the UID table where it is in this process. Call it where a thread may block.
    pub(crate) fn levels(&mut self, app: &App) {
        self.head("basalt_build_info", "gauge", "Always 1; the version is its label.");
        self.line("basalt_build_info", &format!("{{version=\"{VERSION}\"}}"), 1);
        self.process(app);
        self.head("basalt_health", "gauge", "1 at the state that the store is in.");
        let health = app.open_store().health();
        for state in HEALTH {
            self.line("basalt_health", &format!("{{state=\"{state}\"}}"), (state == health).into());
        }
        let levels = app.ingest.levels();
        let memory_bytes = app.queries().memory_used_bytes();
        for (name, about, value) in [
            ("basalt_queries_waiting", "Queries that wait for their turn or for memory.", app.seats.waiting_count()),
            ("basalt_query_memory_bytes", "Memory that queries hold, as far as it is bounded.", memory_bytes),
            ("basalt_http_body_bytes", "Memory that large request bodies hold.", app.bodies.used_bytes()),
            ("basalt_inflight_points", "Points taken in and not answered yet.", levels.inflight_points),
            ("basalt_inflight_bytes", "Bytes of text taken in and not answered yet.", levels.inflight_bytes),
            ("basalt_known_spellings", "Spellings of series remembered for puts.", levels.known_series),
        ] {
            self.head(name, "gauge", about);
            self.line(name, "", value);
        }
        let about = "Requests refused as their body did not fit beside others.";
        self.head("basalt_http_bodies_refused_total", "counter", about);
        self.line("basalt_http_bodies_refused_total", "", app.bodies.refused.get());
        let about = "Meta objects, counters and places in trees that could not be kept as points came.";
        self.head("basalt_meta_failures_total", "counter", about);
        self.line("basalt_meta_failures_total", "", app.meta_failures_count());
        self.head("basalt_uids_kept", "gauge", "Names and UIDs kept in memory, by kind, those of both directions.");
        for kind in UidKind::ALL {
            let kept = app.uid_table(kind).kept_count();
            self.line("basalt_uids_kept", &format!("{{kind=\"{}\"}}", kind.qualifier()), kept);
        }
        if let Some(series) = app.series_count() {
            self.head("basalt_series", "gauge", "Series in the index.");
            self.line("basalt_series", "", series);
            self.uids(app);
        }
    }

    /// By the names that Prometheus' own clients have.
    fn process(&mut self, app: &App) {
        let uptime_ms = u64::try_from(app.started.elapsed().as_millis()).unwrap_or(u64::MAX);
        let started_s = clock::now_ms().saturating_sub(uptime_ms) / 1_000;
        self.head("process_start_time_seconds", "gauge", "When the process began to serve, since 1970.");
        self.line("process_start_time_seconds", "", started_s);
        self.head("process_resident_memory_bytes", "gauge", "Resident memory.");
        self.line("process_resident_memory_bytes", "", proc::Status::read().bytes("VmRSS"));
        self.head("process_cpu_seconds_total", "counter", "Processors' time, in the kernel and out of it.");
        self.put(format_args!("process_cpu_seconds_total {}\n", proc::cpu_seconds()));
    }

    fn uids(&mut self, app: &App) {
        self.head("basalt_uids", "gauge", "UIDs assigned by counting, by kind.");
        for kind in UidKind::ALL {
            // A counter that cannot be read is left out rather than told wrong.
            if let Ok(usage) = app.uid_usage(kind) {
                self.line("basalt_uids", &format!("{{kind=\"{}\"}}", kind.qualifier()), usage.used);
            }
        }
        self.head("basalt_uids_max", "gauge", "UIDs that there are, assigned or not, by kind.");
        for kind in UidKind::ALL {
            let most = app.uid_table(kind).width().uid_max().number();
            self.line("basalt_uids_max", &format!("{{kind=\"{}\"}}", kind.qualifier()), most);
        }
    }
}
