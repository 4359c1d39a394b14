//! What the active master does: calls that end when a procedure of its has ended.

mod namespaces;
mod regions;
mod snapshots;
mod tables;

use std::time::Duration;

use basalt_store::{Error as StoreError, ErrorKind, Result as StoreResult, TableName};
use bytes::Bytes;
use prost::Message;

use crate::cluster::Cluster;
use crate::connection::Service;
use crate::error::{CallError, Error, about};
use crate::exception::{Exception, Remedy};
use crate::patience::Patience;
use crate::pb::master::{
    GetProcedureResultRequest, GetProcedureResultResponse, PROCEDURE_FINISHED, PROCEDURE_NOT_FOUND, ProcedureResponse,
};
use crate::region_call::{Repeat, may_be_done, remedy};

/// The first pause before a procedure is asked for; each is half as long again, up to the longest.
const POLLED_FIRST: Duration = Duration::from_millis(5);
const POLLED_LAST: Duration = Duration::from_millis(500);

impl Cluster {
    /// Asks the active master, whoever that is by then, for what changes nothing.
    ///
    /// # Errors
    /// HBase's own refusals. `Unavailable`: no master answers.
    async fn ask_master<A: Message + Default>(
        &self,
        method: &'static str,
        ask: &impl Message,
        patience: &mut Patience,
    ) -> Result<A, CallError> {
        self.change_by_master(method, ask, patience).await.map_err(|undone| undone.last)
    }

    /// Asks for a change. Most carry a nonce, so that one asked for twice is one.
    ///
    /// # Errors
    /// As [`Cluster::ask_master`]'s, with what is not known.
    async fn change_by_master<A: Message + Default>(
        &self,
        method: &'static str,
        ask: &impl Message,
        patience: &mut Patience,
    ) -> Result<A, Undone> {
        let mut unknown = None;
        loop {
            let deadline = patience.call_deadline(self.options.call_timeout);
            let told = match self.master(deadline).await {
                Ok(master) => self.call((&master, Service::Master), method, ask, Bytes::new(), deadline).await,
                Err(error) => Err(CallError::Unsent(error)),
            };
            let error = match told {
                Ok((told, _)) => return Ok(told),
                Err(error) => error,
            };
            let remedy = match remedy(&error, Repeat::Always) {
                // A master's plain failures are about what was asked.
                Remedy::Pause => Remedy::None,
                remedy => remedy,
            };
            tracing::debug!("{method}: {error:?}: {remedy:?}");
            if remedy == Remedy::Relocate {
                self.forget_servers();
            }
            if remedy == Remedy::None || !patience.pause(false).await {
                return Err(Undone { last: error, unknown });
            }
            if may_be_done(&error) {
                unknown = Some(error);
            }
        }
    }

    /// Begins a procedure, and waits for its end. `is_done` looks whether what was asked for is so; it is asked where the master
    /// does not know the procedure any more.
    async fn run_procedure(
        &self,
        about: Option<&TableName>,
        method: &'static str,
        ask: &impl Message,
        is_done: impl Future<Output = StoreResult<bool>>,
    ) -> StoreResult<()> {
        let mut patience = Patience::of_admin(&self.options);
        let begun = self.change_by_master(method, ask, &mut patience).await;
        let begun: ProcedureResponse = begun.map_err(|undone| undone.told(about))?;
        let Some(proc_id) = begun.proc_id else { return Ok(()) };
        self.wait_for((method, proc_id), about, &mut patience, is_done).await
    }

    /// Waits for a procedure's end, as [`Cluster::run_procedure`].
    async fn wait_for(
        &self,
        (method, proc_id): (&'static str, u64),
        about: Option<&TableName>,
        patience: &mut Patience,
        is_done: impl Future<Output = StoreResult<bool>>,
    ) -> StoreResult<()> {
        let ask = GetProcedureResultRequest { proc_id };
        let mut pause = POLLED_FIRST;
        while patience.is_left() {
            let told = self.ask_master("getProcedureResult", &ask, patience).await;
            let told: GetProcedureResultResponse = told.map_err(|error| unheard(method, refused(about, error)))?;
            match (told.state, told.exception) {
                (PROCEDURE_FINISHED, Some(exception)) => {
                    let exception = Exception::of_procedure(&exception);
                    return Err(refused(about, CallError::Refused(exception)));
                }
                (PROCEDURE_FINISHED, None) => return Ok(()),
                // It ended some time ago, well or not, or went with the master before this one.
                (PROCEDURE_NOT_FOUND, _) => {
                    return if is_done.await? { Ok(()) } else { Err(Error::Forgotten { call: method }.into()) };
                }
                _ => tokio::time::sleep(pause).await,
            }
            pause = (pause + pause / 2).min(POLLED_LAST);
        }
        Err(Error::TimedOut { server: "the master".into(), call: method }.into())
    }
}

/// The error where a master that began a change does not say how it ended: that it cannot be reached is not that nothing was done.
fn unheard(method: &'static str, error: StoreError) -> StoreError {
    match error.kind() {
        ErrorKind::Unavailable => Error::TimedOut { server: "the master".into(), call: method }.into(),
        _ => error,
    }
}

/// Why a change was not made by the attempt that was the last.
#[derive(Debug)]
struct Undone {
    last: CallError,
    /// An attempt before it that may have made it.
    unknown: Option<CallError>,
}

impl Undone {
    /// The contract's error: what may have been done is not told as refused.
    fn told(self, table: Option<&TableName>) -> StoreError {
        refused(table, self.unknown.unwrap_or(self.last))
    }
}

/// The contract's error of a master's refusal.
fn refused(table: Option<&TableName>, error: CallError) -> StoreError {
    let exception = match error {
        CallError::Refused(exception) => exception,
        other => return other.into_error().into(),
    };
    if exception.kind() == ErrorKind::Unavailable && exception.remedy() == Remedy::Pause {
        let Exception { class, message, .. } = exception;
        return Error::Refused { class, message, kind: ErrorKind::Invalid }.into();
    }
    match table {
        Some(table) => about(table, exception),
        None => Error::from(exception).into(),
    }
}
