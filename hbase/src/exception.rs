//! What HBase's exceptions mean for a caller: which can be tried again and how, and which kind of error is left.
//!
//! HBase tells a class of Java's and its stack trace; the classes here are those of HBase 2.x that a client meets.

use basalt_store::ErrorKind;

use crate::pb::master::ForeignExceptionMessage;
use crate::pb::rpc::{ExceptionResponse, NameBytesPair};

/// An exception of a server's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Exception {
    /// Its class without the package.
    pub(crate) class: Box<str>,
    /// The first line of what it says.
    pub(crate) message: Box<str>,
    /// The server forbids to try again.
    is_final: bool,
    /// A batch's, after which some of its actions may be done.
    pub(crate) is_of_batch: bool,
}

/// What helps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Remedy {
    /// The region is elsewhere: look it up anew.
    Relocate,
    /// The server has too much to do: wait for longer.
    BackOff,
    /// The same again, at once: the server did a part only, and this is of the rest.
    Again,
    /// The same again after a pause.
    Pause,
    /// The scanner is gone: open another where it stood.
    Reopen,
    /// Nothing: it fails again.
    None,
}

impl Exception {
    fn new(class: &str, words: &str, is_final: bool) -> Self {
        let first = words.lines().next().unwrap_or_default();
        let message = first.strip_prefix(class).map_or(first, |rest| rest.trim_start_matches(':').trim_start());
        let class = class.rsplit(['.', '$']).next().unwrap_or(class);
        Self { class: class.into(), message: message.into(), is_final, is_of_batch: false }
    }

    /// A whole call's.
    pub(crate) fn of_call(told: &ExceptionResponse) -> Self {
        let class = told.exception_class_name.as_deref().unwrap_or_default();
        Self::new(class, told.stack_trace.as_deref().unwrap_or_default(), told.do_not_retry.unwrap_or(false))
    }

    /// One action's, or one region's, within an answer.
    pub(crate) fn of_action(told: &NameBytesPair) -> Self {
        let words = String::from_utf8_lossy(told.value.as_deref().unwrap_or_default());
        Self::new(&told.name, &words, false)
    }

    /// A procedure's.
    pub(crate) fn of_procedure(told: &ForeignExceptionMessage) -> Self {
        let told = told.generic_exception.clone().unwrap_or_default();
        Self::new(&told.class_name.unwrap_or_default(), &told.message.unwrap_or_default(), true)
    }

    /// What helps against it.
    pub(crate) fn remedy(&self) -> Remedy {
        match &*self.class {
            "NotServingRegionException"
            | "RegionMovedException"
            | "RegionOpeningException"
            | "WrongRegionException"
            | "UnknownRegionException"
            | "RegionServerStoppedException"
            | "RegionServerAbortedException"
            | "ServerNotRunningYetException"
            // A master that ends; another is or will be active.
            | "MasterStoppedException"
            | "RegionOfflineException" => Remedy::Relocate,
            "RegionTooBusyException"
            | "CallQueueTooBigException"
            | "CallDroppedException"
            | "CallTimeoutException"
            | "RpcThrottlingException"
            | "ThrottlingException"
            | "PleaseHoldException" => Remedy::BackOff,
            "MultiActionResultTooLarge" | "RetryImmediatelyException" => Remedy::Again,
            "UnknownScannerException"
            | "OutOfOrderScannerNextException"
            | "ScannerResetException"
            | "LeaseException"
            | "LeaseStillHeldException" => Remedy::Reopen,
            // It lasts until an operator grants what lacks: points are good meanwhile, and not to be dropped.
            "AccessDeniedException" => Remedy::None,
            _ if self.is_final || self.kind() != ErrorKind::Unavailable => Remedy::None,
            _ => Remedy::Pause,
        }
    }

    /// Whether a server that says so of a connection takes nobody who only tells a name.
    pub(crate) fn asks_for_login(&self) -> bool {
        matches!(&*self.class, "AccessDeniedException" | "FatalConnectionException" | "SaslException")
    }

    /// Whether the server said that it did not begin with what was asked, so that it can be asked again whatever it is.
    pub(crate) fn is_before_work(&self) -> bool {
        match self.remedy() {
            Remedy::Again => true,
            Remedy::Relocate => !self.is_of_batch,
            Remedy::BackOff => !self.is_of_batch && &*self.class != "CallTimeoutException",
            Remedy::Pause | Remedy::Reopen | Remedy::None => false,
        }
    }

    /// Whether a table takes no change as it is set READONLY, as while it is moved elsewhere (`HRegion.checkReadOnly`).
    pub(crate) fn is_of_read_only_table(&self) -> bool {
        &*self.class == "DoNotRetryIOException" && self.message.contains("region is read only")
    }

    /// What a caller can do where nothing helped.
    pub(crate) fn kind(&self) -> ErrorKind {
        match &*self.class {
            "TableNotFoundException"
            | "NamespaceNotFoundException"
            | "NoSuchColumnFamilyException"
            | "SnapshotDoesNotExistException" => ErrorKind::NotFound,
            "SnapshotCreationException" if self.message.contains("doesn't exist") => ErrorKind::NotFound,
            "RestoreSnapshotException" if self.message.contains("Unable to find") => ErrorKind::NotFound,
            "TableExistsException"
            | "NamespaceExistException"
            | "SnapshotExistsException"
            | "TableNotEnabledException"
            | "TableNotDisabledException"
            | "OperationConflictException" => ErrorKind::Conflict,
            "ConstraintException" if self.message.contains("Only empty namespaces") => ErrorKind::Conflict,
            "RegionTooBusyException"
            | "CallQueueTooBigException"
            | "CallDroppedException"
            | "RpcThrottlingException"
            | "ThrottlingException"
                if !self.is_of_batch =>
            {
                ErrorKind::Throttled
            }
            // A quota of space: what is stored is read, and an operator makes room.
            "SpaceLimitingException" => ErrorKind::ReadOnly,
            _ if self.is_of_read_only_table() => ErrorKind::ReadOnly,
            "CorruptHFileException" => ErrorKind::Corrupt,
            // What was asked is wrong. An answer to many rows tells each one's class, and not that it forbids to ask again
            // as it extends `DoNotRetryIOException`: those of them that region servers throw are named here.
            "DoNotRetryIOException"
            | "RowTooBigException"
            | "RequestTooBigException"
            | "CoprocessorException"
            | "InvalidLabelException"
            | "UnknownProtocolException"
            | "FailedSanityCheckException"
            | "ConstraintException"
            | "InvalidFamilyOperationException"
            | "QuotaExceededException"
            | "SnapshotCreationException"
            | "RestoreSnapshotException"
            | "HBaseSnapshotException"
            | "CorruptedSnapshotException"
            | "IllegalArgumentException"
            | "IllegalArgumentIOException"
            | "UnsupportedOperationException"
            | "IncompatibleFilterException"
            | "InvalidMutationDurabilityException"
            | "DoNotRetryRegionException"
            | "DeserializationException" => ErrorKind::Invalid,
            _ => ErrorKind::Unavailable,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(class: &str, trace: &str) -> Exception {
        let (exception_class_name, stack_trace) = (Some(class.to_owned()), Some(trace.to_owned()));
        Exception::of_call(&ExceptionResponse { exception_class_name, stack_trace, do_not_retry: None })
    }

    /// As HBase 2.6.4 tells them.
    #[test]
    fn a_class_without_its_package_and_the_first_line_are_kept() {
        let moved = of(
            "org.apache.hadoop.hbase.exceptions.RegionMovedException",
            "org.apache.hadoop.hbase.exceptions.RegionMovedException: Region moved to: hostname=b port=16020\n\tat a.B.c(D.java:1)",
        );
        assert_eq!(
            (&*moved.class, &*moved.message),
            ("RegionMovedException", "Region moved to: hostname=b port=16020")
        );
        assert_eq!(moved.remedy(), Remedy::Relocate);
        assert!(moved.is_before_work());
    }

    #[test]
    fn each_class_has_its_remedy_and_kind() {
        for (class, remedy, kind) in [
            ("org.apache.hadoop.hbase.NotServingRegionException", Remedy::Relocate, ErrorKind::Unavailable),
            ("org.apache.hadoop.hbase.exceptions.MasterStoppedException", Remedy::Relocate, ErrorKind::Unavailable),
            ("org.apache.hadoop.hbase.RegionTooBusyException", Remedy::BackOff, ErrorKind::Throttled),
            ("org.apache.hadoop.hbase.CallQueueTooBigException", Remedy::BackOff, ErrorKind::Throttled),
            ("org.apache.hadoop.hbase.UnknownScannerException", Remedy::Reopen, ErrorKind::Unavailable),
            ("org.apache.hadoop.hbase.MultiActionResultTooLarge", Remedy::Again, ErrorKind::Unavailable),
            ("org.apache.hadoop.hbase.regionserver.NoSuchColumnFamilyException", Remedy::None, ErrorKind::NotFound),
            ("org.apache.hadoop.hbase.DoNotRetryIOException", Remedy::None, ErrorKind::Invalid),
            ("org.apache.hadoop.hbase.client.RowTooBigException", Remedy::None, ErrorKind::Invalid),
            ("org.apache.hadoop.hbase.coprocessor.CoprocessorException", Remedy::None, ErrorKind::Invalid),
            ("org.apache.hadoop.hbase.security.AccessDeniedException", Remedy::None, ErrorKind::Unavailable),
            ("org.apache.hadoop.hbase.quotas.SpaceLimitingException", Remedy::None, ErrorKind::ReadOnly),
            ("org.apache.hadoop.hbase.io.hfile.CorruptHFileException", Remedy::None, ErrorKind::Corrupt),
            ("java.io.IOException", Remedy::Pause, ErrorKind::Unavailable),
        ] {
            let told = of(class, "");
            assert_eq!((told.remedy(), told.kind()), (remedy, kind), "{class}");
        }
    }

    /// Puts wait for a table that is closed for them, and are not dropped.
    #[test]
    fn a_table_that_is_read_only_is_so_for_now() {
        let trace = "org.apache.hadoop.hbase.DoNotRetryIOException: tsdb,,1.a. region is read only";
        let told = of("org.apache.hadoop.hbase.DoNotRetryIOException", trace);
        assert_eq!((told.remedy(), told.kind()), (Remedy::None, ErrorKind::ReadOnly), "{told:?}");
        let error = crate::error::about(&"tsdb".parse().unwrap(), told);
        let words = "the store is read-only: table 'tsdb' is set READONLY";
        assert_eq!((error.kind(), error.to_string().as_str()), (ErrorKind::ReadOnly, words));
    }

    /// What may have been done must not be done twice.
    #[test]
    fn only_a_refusal_before_the_work_is_safe_to_ask_again() {
        for class in ["RegionTooBusyException", "MultiActionResultTooLarge"] {
            assert!(of(&format!("org.apache.hadoop.hbase.{class}"), "").is_before_work(), "{class}");
        }
        for class in ["java.io.IOException", "org.apache.hadoop.hbase.regionserver.wal.WALSyncTimeoutIOException"] {
            assert!(!of(class, "").is_before_work(), "{class}");
        }
    }
}
