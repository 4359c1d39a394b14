import java.util.*;
import java.util.concurrent.TimeUnit;
import org.apache.hadoop.hbase.*;
import org.apache.hadoop.hbase.client.*;
import org.apache.hadoop.hbase.io.encoding.DataBlockEncoding;
import org.apache.hadoop.hbase.regionserver.*;
import org.apache.hadoop.hbase.util.Bytes;

/** Calls about namespaces, tables, regions and snapshots. */
class Tables {
  /** Settings of ours that HBase has no word for, or no codec here, ride along as a family's own. */
  static final String COMPRESSION = "basalt.compression", FOLD = "basalt.fold";
  static final String TRACKER = "hbase.store.file-tracker.impl";
  final Cluster cluster;

  Tables(Cluster cluster) { this.cluster = cluster; }

  void call(int call, Wire ask, Wire.Out tell) throws Exception {
    Admin admin = cluster.admin;
    switch (call) {
      case 10: admin.createNamespace(namespace(ask)); break;
      case 11: admin.modifyNamespace(namespace(ask)); break;
      case 12: admin.deleteNamespace(ask.text()); break;
      case 13: tell(admin.getNamespaceDescriptor(ask.text()), tell); break;
      case 14: {
        NamespaceDescriptor[] all = admin.listNamespaceDescriptors();
        Arrays.sort(all, Comparator.comparing(NamespaceDescriptor::getName));
        tell.writeInt(all.length);
        for (NamespaceDescriptor one : all) tell(one, tell);
        break;
      }
      case 15: {
        TableDescriptor table = table(ask, null);
        byte[][] splits = ask.list();
        if (splits.length == 0) admin.createTable(table); else admin.createTable(table, splits);
        break;
      }
      case 16: {
        TableName name = TableName.valueOf(peek(ask));
        admin.modifyTable(table(ask, admin.getDescriptor(name)));
        break;
      }
      case 17: {
        TableName name = name(ask);
        boolean kept = ask.flag();
        if (admin.isTableEnabled(name)) admin.disableTable(name);
        admin.truncateTable(name, kept);
        break;
      }
      case 18: admin.enableTable(name(ask)); break;
      case 19: admin.disableTable(name(ask)); break;
      case 20: tell.writeBoolean(enabled(name(ask))); break;
      case 21: drop(name(ask)); break;
      case 22: tell(admin.getDescriptor(name(ask)), tell); break;
      case 23: {
        TableName[] all = admin.listTableNames();
        tell.writeInt(all.length);
        for (TableName one : all) tell.text(one.getNameAsString());
        break;
      }
      case 24: regions(name(ask), tell); break;
      case 25: split(name(ask), ask.flag(), ask.bytes(), tell); break;
      case 26: {
        TableName name = there(name(ask));
        for (TruthRegion region : cluster.regions(name)) region.flush(true);
        break;
      }
      case 27: {
        TableName name = there(name(ask));
        int mode = ask.u8();
        TruthPolicy.Choice choice = mode == 2 ? TruthPolicy.Choice.OWN : TruthPolicy.Choice.ALL_BUT_OLDEST;
        for (TruthRegion region : cluster.regions(name)) region.compactAll(mode == 1, choice);
        break;
      }
      case 28: empty(); break;
      case 30: admin.snapshot(ask.text(), name(ask)); break;
      case 31: {
        List<SnapshotDescription> all = admin.listSnapshots();
        tell.writeInt(all.size());
        for (SnapshotDescription one : all) {
          tell.text(one.getName());
          tell.text(one.getTableNameAsString());
          tell.writeLong(one.getCreationTime());
          tell.writeLong(cluster.regionsOfSnapshot(one.getName()));
        }
        break;
      }
      case 32: admin.deleteSnapshot(ask.text()); break;
      case 33: admin.restoreSnapshot(ask.text()); break;
      case 34: admin.cloneSnapshot(ask.text(), name(ask)); break;
      default: throw new Fault.Refused("no call " + call);
    }
  }

  static TableName name(Wire ask) { return TableName.valueOf(ask.text()); }

  static String peek(Wire ask) {
    ask.in.mark();
    String text = ask.text();
    ask.in.reset();
    return text;
  }

  TableName there(TableName name) throws Exception {
    if (!cluster.admin.tableExists(name)) throw new TableNotFoundException(name);
    return name;
  }

  boolean enabled(TableName name) throws Exception { return cluster.admin.isTableEnabled(there(name)); }

  void drop(TableName name) throws Exception {
    if (enabled(name)) cluster.admin.disableTable(name);
    cluster.admin.deleteTable(name);
  }

  void empty() throws Exception {
    Admin admin = cluster.admin;
    for (SnapshotDescription one : admin.listSnapshots()) admin.deleteSnapshot(one.getName());
    for (TableName name : admin.listTableNames()) drop(name);
    for (NamespaceDescriptor one : admin.listNamespaceDescriptors())
      if (!one.getName().equals("default") && !one.getName().equals("hbase")) admin.deleteNamespace(one.getName());
  }

  static NamespaceDescriptor namespace(Wire ask) {
    NamespaceDescriptor.Builder b = NamespaceDescriptor.create(ask.text());
    for (int n = ask.u32(); n > 0; n--) b.addConfiguration(ask.text(), ask.text());
    return b.build();
  }

  static void tell(NamespaceDescriptor one, Wire.Out tell) throws Exception {
    tell.text(one.getName());
    Map<String, String> set = new TreeMap<>(one.getConfiguration());
    tell.writeInt(set.size());
    for (Map.Entry<String, String> e : set.entrySet()) { tell.text(e.getKey()); tell.text(e.getValue()); }
  }

  static TableDescriptor table(Wire ask, TableDescriptor old) {
    TableDescriptorBuilder b = TableDescriptorBuilder.newBuilder(name(ask));
    if (old != null && old.getValue(TRACKER) != null) b.setValue(TRACKER, old.getValue(TRACKER));
    for (int n = ask.u32(); n > 0; n--) b.setColumnFamily(family(ask));
    for (int n = ask.u32(); n > 0; n--) b.setValue(ask.text(), ask.text());
    return b.build();
  }

  static ColumnFamilyDescriptor family(Wire ask) {
    ColumnFamilyDescriptorBuilder b = ColumnFamilyDescriptorBuilder.newBuilder(ask.bytes());
    b.setMaxVersions(ask.u32()).setMinVersions(ask.u32());
    long ttl = ask.u64();
    b.setTimeToLive(ttl == 0 ? HConstants.FOREVER : (int) Math.min(ttl, HConstants.FOREVER));
    b.setKeepDeletedCells(KeepDeletedCells.values()[ask.u8()]);
    b.setBloomFilterType(BloomType.values()[ask.u8()]);
    b.setValue(COMPRESSION, String.valueOf(ask.u8()));
    b.setDataBlockEncoding(DataBlockEncoding.valueOf(ask.text()));
    b.setBlocksize(ask.u32());
    b.setInMemory(ask.flag()).setBlockCacheEnabled(ask.flag());
    b.setNewVersionBehavior(ask.flag());
    String fold = ask.text();
    if (!fold.isEmpty()) b.setValue(FOLD, fold);
    return b.build();
  }

  static void tell(TableDescriptor table, Wire.Out tell) throws Exception {
    tell.text(table.getTableName().getNameAsString());
    ColumnFamilyDescriptor[] families = table.getColumnFamilies();
    tell.writeInt(families.length);
    for (ColumnFamilyDescriptor f : families) {
      tell.bytes(f.getName());
      tell.writeInt(f.getMaxVersions());
      tell.writeInt(f.getMinVersions());
      tell.writeLong(f.getTimeToLive() == HConstants.FOREVER ? 0 : f.getTimeToLive());
      tell.writeByte(f.getKeepDeletedCells().ordinal());
      tell.writeByte(f.getBloomFilterType().ordinal());
      byte[] compression = f.getValue(Bytes.toBytes(COMPRESSION));
      tell.writeByte(compression == null ? 0 : Integer.parseInt(Bytes.toString(compression)));
      tell.text(f.getDataBlockEncoding().name());
      tell.writeInt(f.getBlocksize());
      tell.writeBoolean(f.isInMemory());
      tell.writeBoolean(f.isBlockCacheEnabled());
      tell.writeBoolean(f.isNewVersionBehavior());
      byte[] fold = f.getValue(Bytes.toBytes(FOLD));
      tell.bytes(fold == null ? new byte[0] : fold);
    }
    Map<String, String> own = new TreeMap<>();
    table.getValues().forEach((k, v) -> own.put(Bytes.toString(k.copyBytes()), Bytes.toString(v.copyBytes())));
    own.remove("IS_META");
    own.remove(TRACKER);
    tell.writeInt(own.size());
    for (Map.Entry<String, String> e : own.entrySet()) { tell.text(e.getKey()); tell.text(e.getValue()); }
  }

  void regions(TableName name, Wire.Out tell) throws Exception {
    there(name);
    List<RegionInfo> infos = new ArrayList<>(cluster.admin.getRegions(name));
    infos.sort(RegionInfo.COMPARATOR);
    Map<String, HRegion> served = new HashMap<>();
    for (HRegion r : cluster.regions(name)) served.put(r.getRegionInfo().getEncodedName(), r);
    tell.writeInt(infos.size());
    for (RegionInfo info : infos) {
      HRegion r = served.get(info.getEncodedName());
      tell.writeLong(Long.parseUnsignedLong(info.getEncodedName().substring(0, 16), 16));
      tell.bytes(info.getStartKey());
      tell.bytes(info.getEndKey());
      long bytes = 0, files = 0;
      if (r != null) for (HStore s : r.getStores()) { bytes += s.getStorefilesSize(); files += s.getStorefilesCount(); }
      tell.writeLong(bytes);
      tell.writeLong(r == null ? 0 : r.getMemStoreDataSize());
      tell.writeLong(files);
      tell.writeLong(r == null ? 0 : r.getReadRequestsCount());
      tell.writeLong(r == null ? 0 : r.getWriteRequestsCount());
    }
  }

  /** At a key, or in the middle of the region that holds it, where HBase would choose. */
  void split(TableName name, boolean middle, byte[] key, Wire.Out tell) throws Exception {
    there(name);
    for (TruthRegion region : cluster.regions(name)) {
      RegionInfo info = region.getRegionInfo();
      if (!info.containsRow(key)) continue;
      if (middle) region.flush(true);
      byte[] at = middle ? region.checkSplit(true).orElse(null) : key;
      if (at == null) throw new Fault.Refused("no key to split at");
      cluster.admin.splitRegionAsync(info.getRegionName(), at).get(60, TimeUnit.SECONDS);
      tell.bytes(at);
      return;
    }
    throw new Fault.Refused("no region of that key");
  }
}
