import java.io.UncheckedIOException;
import java.util.concurrent.CompletionException;
import java.util.concurrent.ExecutionException;
import org.apache.hadoop.hbase.*;
import org.apache.hadoop.hbase.client.*;
import org.apache.hadoop.hbase.filter.IncompatibleFilterException;
import org.apache.hadoop.hbase.snapshot.*;
import org.apache.hadoop.hbase.constraint.ConstraintException;
import org.apache.hadoop.hbase.regionserver.NoSuchColumnFamilyException;

/** Which of a store's kinds of error an exception of HBase's is. The kinds are ours; HBase has classes. */
class Fault {
  static final byte NONE = 0, INVALID = 1, NOT_FOUND = 2, CONFLICT = 3, UNAVAILABLE = 5, BUG = 8;

  static Throwable root(Throwable error) {
    for (;;) {
      Throwable cause = error.getCause();
      boolean wrapper = error instanceof ExecutionException || error instanceof CompletionException
          || error instanceof UncheckedIOException;
      if (error instanceof RetriesExhaustedWithDetailsException)
        cause = ((RetriesExhaustedWithDetailsException) error).getCause(0);
      else if (!wrapper)
        return error;
      if (cause == null) return error;
      error = cause;
    }
  }

  static byte of(int call, Throwable thrown) {
    Throwable e = root(thrown);
    boolean admin = call < 40;
    if (e instanceof TableNotFoundException || e instanceof NamespaceNotFoundException
        || e instanceof NoSuchColumnFamilyException) return NOT_FOUND;
    if (e instanceof SnapshotDoesNotExistException) return NOT_FOUND;
    if (e instanceof SnapshotCreationException && String.valueOf(e.getMessage()).contains("doesn't exist")) return NOT_FOUND;
    if (e instanceof RestoreSnapshotException && String.valueOf(e.getMessage()).contains("Unable to find")) return NOT_FOUND;
    if (e instanceof SnapshotExistsException) return CONFLICT;
    if (e instanceof TableExistsException || e instanceof NamespaceExistException) return CONFLICT;
    if (e instanceof TableNotEnabledException || e instanceof TableNotDisabledException)
      return admin ? CONFLICT : UNAVAILABLE;
    if (e instanceof NotServingRegionException || e instanceof PleaseHoldException) return UNAVAILABLE;
    if (e instanceof ConstraintException && String.valueOf(e.getMessage()).contains("Only empty namespaces"))
      return CONFLICT;
    if (e instanceof DoNotRetryIOException || e instanceof IllegalArgumentException || e instanceof Refused
        || e instanceof IncompatibleFilterException || e instanceof InvalidFamilyOperationException || e instanceof java.io.IOException) return INVALID;
    return BUG;
  }

  static String words(Throwable thrown) {
    Throwable e = root(thrown);
    String words = String.valueOf(e.getMessage());
    // After tries in vain the last line tells why.
    String[] lines = words.trim().split("\n");
    if (e instanceof RetriesExhaustedException) words = lines[lines.length - 1]; else words = lines[0];
    return e.getClass().getSimpleName() + ": " + words;
  }

  /** What the driver itself refuses, as HBase has no call for it. */
  static class Refused extends RuntimeException {
    Refused(String why) { super(why); }
  }
}
