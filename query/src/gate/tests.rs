use std::sync::Mutex;

use basalt_schema::Salting;

use super::*;
use crate::fixture::Fixture;
use crate::{Cancel, Error, Limits, QueryEngine, QueryRequest, SubAnswer, SubQuery};

const START: u32 = 1_699_999_200;

/// Lets everybody pass, and drops the answers of others one by one until there is room.
#[derive(Debug, Default)]
struct Usher {
    passed: AtomicU64,
    alone: AtomicU64,
    others: Mutex<Vec<Vec<SubAnswer>>>,
    refuses: bool,
}

impl Gate for Usher {
    fn pass(&self, check: &dyn Fn() -> Result<()>) -> Result<()> {
        self.passed.fetch_add(1, Ordering::Relaxed);
        check()
    }

    fn pass_alone(&self, is_ready: &dyn Fn() -> Result<bool>) -> Result<()> {
        self.alone.fetch_add(1, Ordering::Relaxed);
        let mut others = self.others.lock().unwrap();
        while !is_ready()? && others.pop().is_some() {}
        if self.refuses { Err(Error::NoTurn) } else { Ok(()) }
    }
}

fn hosts(count: usize) -> Fixture {
    let mut fixture = Fixture::new(Salting::EMBEDDED);
    for host in 0..count {
        fixture.put(&format!("m {START} {host} host=h{host}"));
    }
    fixture
}

fn ask(engine: &QueryEngine, hours: u32, metrics: &[&str]) -> Result<Vec<SubAnswer>> {
    let request = QueryRequest {
        start: Some((START - hours * 3600).to_string()),
        end: Some((START + 3599).to_string()),
        queries: metrics.iter().map(|metric| SubQuery::from_metric_text(metric).unwrap()).collect(),
        ..QueryRequest::default()
    };
    engine.run(&request, 1_800_000_000_000, &Cancel::new())
}

/// `Q-LIMIT`
#[test]
fn q_limit_a_request_passes_once_where_its_sub_queries_read_much_together() {
    for (parts, times) in [
        (&[LARGE_ROWS][..], 0),
        (&[LARGE_ROWS + 1], 1),
        (&[LARGE_ROWS / 2, LARGE_ROWS / 2, 1, 1], 1),
        (&[1, u64::MAX, u64::MAX], 1),
    ] {
        let gate = Arc::new(Usher::default());
        let passage = Passage::new(Some(Arc::clone(&gate) as Arc<dyn Gate>));
        for rows in parts {
            passage.announce(*rows, &|| Ok(())).unwrap();
        }
        assert_eq!(gate.passed.load(Ordering::Relaxed), times, "{parts:?}");
    }
    Passage::default().announce(u64::MAX, &|| Err(Error::Cancelled)).unwrap();
}

/// `Q-LIMIT`: forty series of so many hours, and of a few around them.
#[test]
fn q_limit_a_request_is_large_by_its_series_and_hours() {
    let fixture = hosts(40);
    for (hours, metrics, times) in [
        (2_500, &["sum:m"][..], 1),
        (2_490, &["sum:m"], 0),
        (1_250, &["sum:m", "max:m"], 1),
        (1_240, &["sum:m", "max:m"], 0),
        // Of which summaries are enough.
        (2_500, &["sum:1d-sum:m"], 0),
        (20_000, &["sum:1d-sum:m"], 1),
        // One series, whose hours without rows are left out.
        (100_000, &["sum:m{host=h1}"], 0),
    ] {
        let gate = Arc::new(Usher::default());
        ask(&fixture.engine(false, Limits::default()).behind(Arc::clone(&gate) as _), hours, metrics).unwrap();
        assert_eq!(gate.passed.load(Ordering::Relaxed), times, "{hours} {metrics:?}");
    }
}

/// `Q-LIMIT`
#[test]
fn q_limit_a_request_without_memory_beside_others_begins_anew_when_there_is_room() {
    let fixture = hosts(40);
    let engine = fixture.engine(false, Limits { memory_bytes: 1 << 20, ..Limits::default() });
    let first = ask(&engine, 0, &["none:m"]).unwrap();
    let mut others = Vec::new();
    while let Ok(answer) = ask(&engine, 0, &["none:m"]) {
        others.push(answer);
    }
    let count = others.len();
    // Nobody makes room: it is refused after all.
    let gate = Arc::new(Usher::default());
    let refused = ask(&engine.behind(Arc::clone(&gate) as _), 0, &["none:m"]).unwrap_err();
    assert!(matches!(refused, Error::MemoryTaken { .. }), "{refused}");
    assert_eq!(gate.alone.load(Ordering::Relaxed), 2);
    let gate = Arc::new(Usher { refuses: true, ..Usher::default() });
    let refused = ask(&engine.behind(Arc::clone(&gate) as _), 0, &["none:m"]).unwrap_err();
    assert!(matches!(refused, Error::NoTurn), "{refused}");
    let gate = Arc::new(Usher { others: Mutex::new(others), ..Usher::default() });
    let answer = ask(&engine.behind(Arc::clone(&gate) as _), 0, &["none:m"]).unwrap();
    assert_eq!(gate.alone.load(Ordering::Relaxed), 1);
    assert!(gate.others.lock().unwrap().len() < count);
    let series = |answers: &[SubAnswer]| format!("{:?}", answers[0].series);
    assert_eq!(series(&answer), series(&first));
    drop((first, answer, gate));
    assert_eq!(engine.memory_used_bytes(), 0);
}
