package org.apache.hadoop.hbase.regionserver;

import java.io.IOException;
import java.util.Collection;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.hbase.client.RegionInfo;
import org.apache.hadoop.hbase.client.TableDescriptor;
import org.apache.hadoop.hbase.monitoring.MonitoredTask;
import org.apache.hadoop.hbase.regionserver.compactions.CompactionContext;
import org.apache.hadoop.hbase.regionserver.throttle.ThroughputController;
import org.apache.hadoop.hbase.security.User;
import org.apache.hadoop.hbase.util.EnvironmentEdge;
import org.apache.hadoop.hbase.wal.WAL;

/**
 * HBase's own region, unchanged but for the clock: what a user's table does reads the clock that the asker sets, or the
 * wall's again when it is set to WALL. The rest of HBase (leases, procedures, its own tables) goes on by the wall's.
 */
public class TruthRegion extends HRegion {
  private static final ThreadLocal<int[]> DEPTH = ThreadLocal.withInitial(() -> new int[1]);
  public static final long WALL = -1;
  public static volatile long now = 0;
  public static final EnvironmentEdge CLOCK =
      () -> DEPTH.get()[0] > 0 && now != WALL ? now : System.currentTimeMillis();

  private final boolean ours;

  public TruthRegion(HRegionFileSystem fs, WAL wal, Configuration conf, TableDescriptor table,
      RegionServerServices services) {
    super(fs, wal, conf, table, services);
    String namespace = table.getTableName().getNamespaceAsString();
    ours = !namespace.equals("hbase") && !namespace.equals("master");
  }

  @SuppressWarnings("deprecation")
  public TruthRegion(Path folder, WAL wal, FileSystem fs, Configuration conf, RegionInfo info, TableDescriptor table,
      RegionServerServices services) {
    this(new HRegionFileSystem(conf, fs, folder, info), wal, conf, table, services);
  }

  private void enter(int by) { if (ours) DEPTH.get()[0] += by; }

  @Override
  public void startRegionOperation(Operation op) throws IOException {
    super.startRegionOperation(op);
    enter(1);
  }

  @Override
  public void closeRegionOperation(Operation op) throws IOException {
    enter(-1);
    super.closeRegionOperation(op);
  }

  /** A row's lock is waited for up to the call's deadline, which the wall's clock has set. */
  @Override
  protected RowLock getRowLockInternal(byte[] row, boolean shared, RowLock held) throws IOException {
    int[] depth = DEPTH.get();
    int was = depth[0];
    depth[0] = 0;
    try {
      return super.getRowLockInternal(row, shared, held);
    } finally {
      depth[0] = was;
    }
  }

  @Override
  protected FlushResultImpl internalFlushcache(WAL wal, long id, Collection<HStore> stores, MonitoredTask status,
      boolean marker, FlushLifeCycleTracker tracker) throws IOException {
    enter(1);
    try {
      return super.internalFlushcache(wal, id, stores, status, marker, tracker);
    } finally {
      enter(-1);
    }
  }

  /** Compacts every store by HBase's own code; a minor one takes the files that TruthPolicy says. */
  public void compactAll(boolean major, TruthPolicy.Choice choice) throws IOException {
    enter(1);
    TruthPolicy.CHOICE.set(choice);
    try {
      for (HStore store : getStores()) {
        // A store without files would keep the word in mind until its next compaction, a minor one or not.
        if (store.getStorefilesCount() == 0) continue;
        if (major) store.triggerMajorCompaction();
        java.util.Optional<CompactionContext> context =
            store.requestCompaction(Store.PRIORITY_USER, compactions(), null);
        if (context.isPresent()) compact(context.get(), store, noLimit(), null);
        store.closeAndArchiveCompactedFiles();
      }
    } finally {
      TruthPolicy.CHOICE.remove();
      enter(-1);
    }
  }

  private static org.apache.hadoop.hbase.regionserver.compactions.CompactionLifeCycleTracker compactions() {
    return org.apache.hadoop.hbase.regionserver.compactions.CompactionLifeCycleTracker.DUMMY;
  }

  private static ThroughputController noLimit() {
    return org.apache.hadoop.hbase.regionserver.throttle.NoLimitThroughputController.INSTANCE;
  }
}
