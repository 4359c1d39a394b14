//! A call to whichever server has a row's region, tried again as long as that helps.

use basalt_store::{Error as StoreError, ErrorKind, Result as StoreResult, TableName};
use bytes::Bytes;
use prost::Message;

use crate::cluster::Cluster;
use crate::connection::{Address, Service};
use crate::error::{CallError, Error, about};
use crate::exception::{Exception, Remedy};
use crate::locations::{Map, Region};
use crate::patience::Patience;

/// Whether a call whose outcome is not known may be sent again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Repeat {
    /// It changes nothing, or the same again.
    Always,
    /// It carries a nonce, by which the server that was asked knows it again, and no other: a region that moves in good order
    /// leaves its nonces behind, and they are gone when a server ends. Only one that recovers a dead server's log reads
    /// them there, those of changes that were not flushed.
    WhereAsked,
    /// Twice is not once: only where the server said that it did not begin.
    IfNotBegun,
}

/// A call about one row.
pub(crate) struct RegionCall<Q, R> {
    pub(crate) method: &'static str,
    pub(crate) repeat: Repeat,
    /// The cells beside the message.
    pub(crate) cells: Bytes,
    /// The message for the region that has the row.
    pub(crate) ask: Q,
    /// The exception that an answer carries within.
    pub(crate) refusal: R,
}

/// The error where a call failed and nothing more is tried.
pub(crate) fn given_up(table: &TableName, error: CallError) -> StoreError {
    match error {
        CallError::Refused(exception) => about(table, exception),
        other => other.into_error().into(),
    }
}

/// What is told where nothing more is tried: an attempt that may have been done, before those that were not, for whatever
/// reason. What cannot be read is told as it is.
pub(crate) fn told(table: &TableName, last: StoreError, unknown: &mut Option<CallError>) -> StoreError {
    match unknown.take() {
        Some(unknown) if last.kind() != ErrorKind::Corrupt => given_up(table, unknown),
        _ => last,
    }
}

/// What may be done about a failed call.
pub(crate) fn remedy(error: &CallError, repeat: Repeat) -> Remedy {
    match error {
        // A server that is gone has left its regions to others.
        CallError::Unsent(Error::Unreachable { .. } | Error::Lost { .. } | Error::TimedOut { .. }) => Remedy::Relocate,
        CallError::Unknown(Error::Lost { .. } | Error::TimedOut { .. }) if repeat != Repeat::IfNotBegun => {
            Remedy::Relocate
        }
        CallError::Refused(exception) if repeat != Repeat::IfNotBegun || exception.is_before_work() => {
            exception.remedy()
        }
        _ => Remedy::None,
    }
}

/// Whether what was asked may have been done.
pub(crate) fn may_be_done(error: &CallError) -> bool {
    match error {
        CallError::Unsent(_) => false,
        CallError::Unknown(_) => true,
        CallError::Refused(exception) => !exception.is_before_work(),
    }
}

impl Cluster {
    /// Waits as a remedy asks, and forgets what it calls stale; `false` where there is nothing to try any more.
    pub(crate) async fn heal(&self, remedy: Remedy, at: (&TableName, &Map), patience: &mut Patience) -> bool {
        match remedy {
            Remedy::None => {}
            _ => self.tally.retries.add(),
        }
        match remedy {
            Remedy::None => false,
            Remedy::Again => true,
            Remedy::BackOff => patience.pause(true).await,
            Remedy::Pause | Remedy::Reopen => patience.pause(false).await,
            Remedy::Relocate => {
                self.tally.relocations.add();
                self.locations.forget(at.0, at.1);
                patience.pause(false).await
            }
        }
    }

    /// Calls the server of a row's region.
    ///
    /// # Errors
    /// `NotFound`: no such table. `Unavailable`: the outcome is unknown. HBase's own refusals.
    pub(crate) async fn call_region<A: Message + Default, Q: Message>(
        &self,
        (table, row): (&TableName, &[u8]),
        call: RegionCall<impl Fn(&Region) -> Q, impl Fn(&A) -> Option<Exception>>,
    ) -> StoreResult<(A, Bytes)> {
        let RegionCall { method, repeat, cells, ask, refusal } = call;
        let mut patience = Patience::of_operation(&self.options);
        let mut unknown = None;
        // The server of the attempt that may have been done.
        let mut asked: Option<(Address, u64)> = None;
        loop {
            let map = self.map(table, &mut patience).await.map_err(|error| told(table, error, &mut unknown))?;
            let found = map.holding(row).and_then(|region| Some((region, region.server.as_ref()?)));
            let place = found.map(|(region, server)| (server.clone(), region.server_began));
            if repeat == Repeat::WhereAsked && asked.is_some() && place.is_some() && asked != place {
                return Err(told(table, given_up(table, nowhere(table)), &mut unknown));
            }
            let error = match found {
                None => nowhere(table),
                Some((region, server)) => {
                    let deadline = patience.call_deadline(self.options.call_timeout);
                    let to = (server, Service::Client);
                    match self.call(to, method, &ask(region), cells.clone(), deadline).await {
                        Ok((answer, cells)) => match refusal(&answer) {
                            None => return Ok((answer, cells)),
                            Some(exception) => CallError::Refused(exception),
                        },
                        Err(error) => error,
                    }
                }
            };
            let remedy = remedy(&error, repeat);
            if !self.heal(remedy, (table, &map), &mut patience).await {
                return Err(told(table, given_up(table, error), &mut unknown));
            }
            if may_be_done(&error) {
                (unknown, asked) = (Some(error), place);
            }
            if repeat == Repeat::WhereAsked && asked.is_some() {
                // The catalogue alone tells whether the server began anew during the pause.
                self.locations.forget_table(table);
            }
        }
    }
}

/// The catalogue has no server for a row, for now.
pub(crate) fn nowhere(table: &TableName) -> CallError {
    let what = format!("the region of a row of table '{table}'").into();
    CallError::Unsent(Error::Unreachable { what, reason: "no server has it".into() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exception::Exception;
    use crate::pb::rpc::ExceptionResponse;

    fn refused(class: &str) -> CallError {
        let exception_class_name = Some(class.to_owned());
        let told = ExceptionResponse { exception_class_name, stack_trace: None, do_not_retry: None };
        CallError::Refused(Exception::of_call(&told))
    }

    fn timed_out() -> Error {
        Error::TimedOut { server: "s".into(), call: "Mutate" }
    }

    /// A condition and its change must not be run twice, where nobody knows whether they ran.
    #[test]
    fn what_may_have_been_done_is_not_repeated_unless_it_may_be() {
        for (error, always, if_not_begun) in [
            (CallError::Unknown(timed_out()), Remedy::Relocate, Remedy::None),
            (CallError::Unsent(timed_out()), Remedy::Relocate, Remedy::Relocate),
            (refused("NotServingRegionException"), Remedy::Relocate, Remedy::Relocate),
            (refused("RegionTooBusyException"), Remedy::BackOff, Remedy::BackOff),
            (refused("java.io.IOException"), Remedy::Pause, Remedy::None),
            (refused("DoNotRetryIOException"), Remedy::None, Remedy::None),
        ] {
            assert_eq!(remedy(&error, Repeat::Always), always, "{error:?}");
            assert_eq!(remedy(&error, Repeat::WhereAsked), always, "{error:?}");
            assert_eq!(remedy(&error, Repeat::IfNotBegun), if_not_begun, "{error:?}");
        }
    }
}
