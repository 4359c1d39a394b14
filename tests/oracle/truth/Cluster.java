import java.io.File;
import java.util.*;
import java.util.concurrent.TimeUnit;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.hbase.*;
import org.apache.hadoop.hbase.client.*;
import org.apache.hadoop.hbase.master.HMaster;
import org.apache.hadoop.hbase.regionserver.*;
import org.apache.hadoop.hbase.shaded.protobuf.ProtobufUtil;
import org.apache.hadoop.hbase.shaded.protobuf.generated.SnapshotProtos;
import org.apache.hadoop.hbase.snapshot.*;
import org.apache.hadoop.hbase.util.CommonFSUtils;
import org.apache.hadoop.hbase.util.EnvironmentEdgeManager;
import org.apache.hadoop.hbase.util.JVMClusterUtil;
import org.apache.hadoop.hbase.zookeeper.MiniZooKeeperCluster;

/** ZooKeeper, master and one region server as threads of this process, on loopback ports that the system chooses. */
class Cluster {
  static final int CLOCK = 1, REOPEN = 2;
  final Configuration conf = HBaseConfiguration.create();
  final MiniZooKeeperCluster zookeeper;
  LocalHBaseCluster hbase;
  volatile Connection connection;
  volatile Admin admin;

  Cluster(File folder) throws Exception {
    EnvironmentEdgeManager.injectEdge(TruthRegion.CLOCK);
    configure(folder);
    zookeeper = new MiniZooKeeperCluster(conf);
    conf.setInt("hbase.zookeeper.property.clientPort", zookeeper.startup(new File(folder, "zookeeper")));
    start();
  }

  void configure(File folder) {
    conf.set("hbase.rootdir", "file://" + folder.getAbsolutePath() + "/hbase");
    conf.set("hbase.tmp.dir", folder.getAbsolutePath() + "/tmp");
    conf.set("hbase.zookeeper.quorum", "127.0.0.1");
    conf.set("hbase.wal.provider", "filesystem");
    conf.setBoolean("hbase.unsafe.stream.capability.enforce", false);
    for (String who : new String[] {"master", "regionserver"}) {
      conf.set("hbase." + who + ".hostname", "localhost");
      conf.set("hbase." + who + ".ipc.address", "127.0.0.1");
      conf.setInt("hbase." + who + ".port", 0);
      conf.setInt("hbase." + who + ".info.port", -1);
    }
    conf.setBoolean("hbase.localcluster.assign.random.ports", true);
    conf.setInt("hbase.regionserver.handler.count", 40);
    conf.setInt("hbase.regionserver.msginterval", 100);
    conf.setInt("hbase.master.wait.on.regionservers.timeout", 200);
    conf.setInt("hbase.master.wait.on.regionservers.interval", 50);
    conf.setInt("hbase.client.pause", 1);
    // What waits for a region's move looks at it again so often; a second, unless told.
    conf.setInt("hbase.master.event.waiting.time", 5);
    // HBase gathers orders to its servers for a while before it sends them; here each is waited for.
    conf.setInt("hbase.assignment.dispatch.wait.msec", 1);
    conf.setInt("hbase.procedure.remote.dispatcher.delay.msec", 1);
    conf.setInt("hbase.client.retries.number", 12);
    conf.setBoolean("hbase.quota.enabled", true);
    conf.setInt("hbase.quota.cache.ttl", 1000);
    conf.setBoolean("hbase.snapshot.enabled", true);
    // HBase flushes, compacts and splits when it is told to, and not otherwise.
    conf.setBoolean("hbase.regionserver.compaction.enabled", false);
    conf.setInt("hbase.regionserver.optionalcacheflushinterval", 0);
    conf.setLong("hbase.hregion.majorcompaction", 0);
    conf.setInt("hbase.hstore.compaction.min", 2);
    conf.set("hbase.hstore.defaultengine.compactionpolicy.class", TruthPolicy.class.getName());
    conf.set("hbase.regionserver.region.split.policy", ConstantSizeRegionSplitPolicy.class.getName());
    conf.set("hbase.hregion.impl", TruthRegion.class.getName());
    // Nothing here is worth waiting for a disk.
    conf.setInt("hbase.hregion.memstore.flush.size", 64 << 20);
    conf.setInt("hbase.client.keyvalue.maxsize", 10 << 20);
    conf.setInt("hbase.server.keyvalue.maxsize", 10 << 20);
  }

  void start() throws Exception {
    hbase = new LocalHBaseCluster(conf, 1, 1, HMaster.class, HRegionServer.class);
    hbase.startup();
    long end = System.nanoTime() + TimeUnit.SECONDS.toNanos(120);
    while (hbase.getActiveMaster() == null || !hbase.getActiveMaster().isInitialized()) {
      if (System.nanoTime() > end) throw new IllegalStateException("HBase did not start within 120 s");
      Thread.sleep(20);
    }
    connection = ConnectionFactory.createConnection(conf);
    admin = connection.getAdmin();
    while (true) {
      try {
        admin.listNamespaceDescriptors();
        return;
      } catch (java.io.IOException early) {
        if (System.nanoTime() > end) throw early;
        Thread.sleep(20);
      }
    }
  }

  void stop() throws Exception {
    connection.close();
    hbase.shutdown();
    hbase.join();
    zookeeper.shutdown();
  }

  void call(int call, Wire ask, Wire.Out tell) throws Exception {
    switch (call) {
      case CLOCK: TruthRegion.now = ask.u64(); break;
      case REOPEN: reopen(); break;
      default: throw new IllegalArgumentException("no call " + call);
    }
  }

  int masterPort() { return hbase.getActiveMaster().getServerName().getPort(); }

  /** The regions of a table that this process serves, in key order. */
  List<TruthRegion> regions(TableName table) {
    List<TruthRegion> found = new ArrayList<>();
    for (JVMClusterUtil.RegionServerThread server : hbase.getLiveRegionServers())
      for (HRegion region : server.getRegionServer().getRegions(table)) found.add((TruthRegion) region);
    found.sort(Comparator.comparing(HRegion::getRegionInfo, RegionInfo.COMPARATOR));
    return found;
  }

  /** How many regions a snapshot is of: HBase's client is not told. */
  int regionsOfSnapshot(String name) throws Exception {
    Path folder = SnapshotDescriptionUtils.getCompletedSnapshotDir(name, CommonFSUtils.getRootDir(conf));
    FileSystem files = folder.getFileSystem(conf);
    int count = 0;
    for (SnapshotProtos.SnapshotRegionManifest region : SnapshotManifest
        .open(conf, files, folder, SnapshotDescriptionUtils.readSnapshotInfo(files, folder)).getRegionManifests())
      // One that was split is there until its files are no longer needed.
      if (!ProtobufUtil.toRegionInfo(region.getRegionInfo()).isSplit()) count++;
    return count;
  }

  /** Closes every user's region and opens it again from its files. */
  void reopen() throws Exception {
    List<RegionInfo> moved = new ArrayList<>();
    for (TableName name : admin.listTableNames())
      if (admin.isTableEnabled(name)) moved.addAll(admin.getRegions(name));
    for (RegionInfo region : moved) admin.unassign(region.getEncodedNameAsBytes(), false);
    for (RegionInfo region : moved) admin.assign(region.getEncodedNameAsBytes());
  }
}
