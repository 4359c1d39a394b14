//! What a history hears of what it asked: an acknowledged change is there for good.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use basalt_store::{Durability, Pending};

use super::told::Told;
use super::{History, appended};

fn poll<T: Unpin>(pending: &mut Pending<T>) -> Option<basalt_store::Result<T>> {
    match Pin::new(pending).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(answer) => Some(answer),
        Poll::Pending => None,
    }
}

impl History {
    /// Notes the answers that are there.
    pub(super) fn hear(&mut self) -> Told {
        for mut asked in std::mem::take(&mut self.asked) {
            match poll(&mut asked.pending) {
                None => self.asked.push(asked),
                Some(Ok(applied)) if asked.durability == Durability::Fsync => {
                    if let Some(failed) = applied.failed.first() {
                        return Err(format!("a row of an acknowledged batch failed: {failed:?}"));
                    }
                    self.trace = self.trace.wrapping_mul(31).wrapping_add(asked.rows.len() as u64);
                    for (row, count) in asked.rows {
                        self.rows.entry(row).or_default().is_sure(count, asked.change);
                    }
                }
                // Refused, or promised less than the power loss that may come.
                Some(_) => {}
            }
        }
        for mut counted in std::mem::take(&mut self.increments) {
            match poll(&mut counted.pending) {
                None => self.increments.push(counted),
                // The value told holds all that were counted before, and is itself on disk.
                Some(Ok(value)) if counted.durability == Durability::Fsync => self.counted = self.counted.max(value),
                Some(_) => {}
            }
        }
        for mut appended in std::mem::take(&mut self.appends) {
            match poll(&mut appended.pending) {
                None => self.appends.push(appended),
                Some(Ok(held)) if appended.durability == Durability::Fsync => {
                    let ledger = &mut self.rows.entry(appended.row).or_default().appended;
                    ledger.is_sure(appended.change, appended::numbers(&held));
                }
                Some(_) => {}
            }
        }
        for mut claimed in std::mem::take(&mut self.claims_asked) {
            match poll(&mut claimed.pending) {
                None => self.claims_asked.push(claimed),
                Some(Ok(was_changed)) if claimed.durability == Durability::Fsync => {
                    let heard = self.claims.entry(claimed.row).or_default().hear(claimed.change, was_changed);
                    heard.map_err(|told| format!("a claim of row {} is answered {told}", claimed.row))?;
                }
                Some(_) => {}
            }
        }
        Ok(())
    }
}
