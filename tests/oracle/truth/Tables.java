import java.util.*;
import org.apache.hadoop.hbase.*;
import org.apache.hadoop.hbase.client.*;
import org.apache.hadoop.hbase.regionserver.*;

/** What no client of HBase's can ask for: chosen compactions, sizes to the byte, a snapshot's regions, all gone at once. */
class Tables {
  final Cluster cluster;

  Tables(Cluster cluster) { this.cluster = cluster; }

  void call(int call, Wire ask, Wire.Out tell) throws Exception {
    switch (call) {
      case 24: sizes(TableName.valueOf(ask.text()), tell); break;
      case 27: {
        TableName name = TableName.valueOf(ask.text());
        boolean major = ask.flag();
        for (TruthRegion region : cluster.regions(name)) region.compactAll(major, TruthPolicy.Choice.ALL_BUT_OLDEST);
        break;
      }
      case 28: empty(); break;
      case 31: {
        List<SnapshotDescription> all = cluster.admin.listSnapshots();
        tell.writeInt(all.size());
        for (SnapshotDescription one : all) {
          tell.text(one.getName());
          tell.writeLong(cluster.regionsOfSnapshot(one.getName()));
        }
        break;
      }
      default: throw new IllegalArgumentException("no call " + call);
    }
  }

  void empty() throws Exception {
    Admin admin = cluster.admin;
    for (SnapshotDescription one : admin.listSnapshots()) admin.deleteSnapshot(one.getName());
    for (TableName name : admin.listTableNames()) {
      if (admin.isTableEnabled(name)) admin.disableTable(name);
      admin.deleteTable(name);
    }
    for (NamespaceDescriptor one : admin.listNamespaceDescriptors())
      if (!one.getName().equals("default") && !one.getName().equals("hbase")) admin.deleteNamespace(one.getName());
  }

  void sizes(TableName name, Wire.Out tell) throws Exception {
    List<TruthRegion> regions = cluster.regions(name);
    tell.writeInt(regions.size());
    for (TruthRegion r : regions) {
      tell.writeLong(Long.parseUnsignedLong(r.getRegionInfo().getEncodedName().substring(0, 16), 16));
      long bytes = 0;
      for (HStore s : r.getStores()) bytes += s.getStorefilesSize();
      tell.writeLong(bytes);
      tell.writeLong(r.getMemStoreDataSize());
    }
  }
}
