package org.apache.hadoop.hbase.regionserver;

import java.io.IOException;
import java.util.ArrayList;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.hbase.regionserver.compactions.RatioBasedCompactionPolicy;

/**
 * HBase's own choice of files (by ratio; of small files both of its policies take all), or all but the oldest. HBase drops tombstones in a minor compaction too when it takes in
 * every file, so whoever wants a minor one for certain must leave one out.
 */
public class TruthPolicy extends RatioBasedCompactionPolicy {
  /** Which files a minor compaction takes. */
  public enum Choice { ALL_BUT_OLDEST, OWN }

  public static final ThreadLocal<Choice> CHOICE = ThreadLocal.withInitial(() -> Choice.OWN);

  public TruthPolicy(Configuration conf, StoreConfigInformation store) { super(conf, store); }

  @Override
  protected ArrayList<HStoreFile> applyCompactionPolicy(ArrayList<HStoreFile> files, boolean offPeak, boolean stuck)
      throws IOException {
    if (CHOICE.get() == Choice.OWN) return super.applyCompactionPolicy(files, offPeak, stuck);
    return files.size() < 3 ? new ArrayList<>() : new ArrayList<>(files.subList(1, files.size()));
  }
}
