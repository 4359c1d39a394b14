//! A fold by whose rules the newest does not win, so that what was put over must not be left beside what it makes.

use super::*;

/// Joins a row's points as [`Points`] does; of two at one column the larger stays, whatever their times.
#[derive(Debug)]
struct Largest;

impl Fold for Largest {
    fn name(&self) -> &'static str {
        "points"
    }

    fn needs_whole_rows(&self) -> bool {
        true
    }

    fn fold(&self, cells: &[RowPut<'_>], out: &mut FoldedRow) -> bool {
        let by_value = |cell: &RowPut<'_>| cell.value.to_vec();
        let mut cells = cells.to_vec();
        cells.sort_by_key(by_value);
        let aged: Vec<_> =
            cells.iter().zip(1..).map(|(cell, age)| RowPut { timestamp: Timestamp(age), ..*cell }).collect();
        Points.fold(&aged, out)
    }
}

/// `S-DTCS`: what was put over lies in a file that takes no part, and the point that it was put over by in a cell of another column.
#[test]
fn rule_3_a_fold_that_needs_whole_rows_gets_no_other() {
    let hours = Hours::of(family(), Arc::new(Largest));
    hours.put("1=z");
    hours.flush();
    hours.put("1=a 2=b");
    hours.flush();
    assert_eq!(hours.cells(), "1=a 2=b", "the older file has the row");
    hours.compact();
    assert_eq!(hours.cells(), "12=ab", "all there is of it");
    for put in ["3=z", "4=d", "5=e", "3=c"] {
        hours.put(put);
        hours.flush();
    }
    hours.put("3=b");
    hours.engine.compact(&name(), Compaction::Minor).unwrap();
    assert_eq!(hours.engine.stats().files_count, 1);
    assert_eq!(hours.cells(), "12=ab 3=b 4=d 5=e", "a memtable has the row");
    hours.compact();
    assert_eq!(hours.cells(), "12345=abbde");
}

/// Puts a point while a pass folds its row.
#[derive(Debug, Default)]
struct PutMeanwhile(Mutex<Option<Arc<Engine>>>);

impl Fold for PutMeanwhile {
    fn name(&self) -> &'static str {
        "points"
    }

    fn needs_whole_rows(&self) -> bool {
        true
    }

    fn fold(&self, cells: &[RowPut<'_>], out: &mut FoldedRow) -> bool {
        if let Some(engine) = self.0.lock().unwrap().take() {
            let mut batch = MutationBatch::new(Durability::Async);
            batch.row(b"hour").unwrap().put(b"f", b"1", None, b"a").unwrap();
            engine.apply(&name(), batch).wait().unwrap();
        }
        Largest.fold(cells, out)
    }
}

/// `S-DTCS`: it counts as one that came after the fold, so that the value that it was put over is there beside it again.
#[test]
fn rule_3_a_put_during_a_pass_lies_beside_what_that_makes() {
    let meanwhile = Arc::new(PutMeanwhile::default());
    let hours = Hours::of(family(), Arc::clone(&meanwhile) as Arc<dyn Fold>);
    hours.put("1=z 2=b");
    *meanwhile.0.lock().unwrap() = Some(Arc::clone(&hours.engine));
    hours.flush();
    assert_eq!(hours.cells(), "1=a 12=zb");
    hours.compact();
    assert_eq!(hours.cells(), "12=zb");
}
