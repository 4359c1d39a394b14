// The oracle's hand on HBase: cargo xtask oracle hb COMMAND ...
//   create  PREFIX...          the four OpenTSDB tables for each prefix (tsdb: tsdb, tsdb-uid, tsdb-tree, tsdb-meta), where absent
//                              and, for a prefix that starts with rollup-, the tables of its rollup intervals
//   empty   PREFIX...          truncates them (follow with /api/dropcaches on the TSD: UIDs then start at 1 again)
//   wipe    PREFIX...          deletes every row instead: a tenth of a second for small tables, where truncating takes seconds
//   loop                       reads one command a line and answers each with a line `ok` or `failed MESSAGE`: one JVM for many
//   dump    TABLE [PREFIXHEX]  every cell as hex: key family qualifier timestamp value
//   raw     TABLE [PREFIXHEX]  the same with every stored version and delete marker
//   drop    PREFIX...          disables and deletes them
//   regions TABLE              its regions in key order: start key, port of the server
//   move    TABLE NUMBER PORT  the region of that number, counted round, to the region server on that port; none where it is there
//   split   TABLE KEYHEX       the region that holds the key, at the key
//   flush   TABLE...           memstore to HFile
//   compact TABLE...           major compaction
//   put     TABLE KEYHEX FAMILY QUALHEX VALUEHEX
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.*;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.hbase.*;
import org.apache.hadoop.hbase.client.*;
import org.apache.hadoop.hbase.io.compress.Compression;
import org.apache.hadoop.hbase.io.encoding.DataBlockEncoding;
import org.apache.hadoop.hbase.regionserver.BloomType;
import org.apache.hadoop.hbase.util.Bytes;

public class Hb {
  // As OpenTSDB's own create_table.sh makes them.
  static final String[][] TABLES = {
    {"-uid", "id", "name"}, {"", "t"}, {"-tree", "t"}, {"-meta", "name"}};
  static final String[][] ROLLUPS = {
    {"-preagg", "t"}, {"-10m", "t"}, {"-10m-preagg", "t"}, {"-1h", "t"}, {"-1h-preagg", "t"}, {"-1d", "t"},
    {"-1d-preagg", "t"}};

  static List<String[]> tables(String prefix) {
    List<String[]> all = new ArrayList<>(Arrays.asList(TABLES));
    if (prefix.startsWith("rollup-")) all.addAll(Arrays.asList(ROLLUPS));
    return all;
  }

  public static void main(String[] a) throws Exception {
    Configuration conf = HBaseConfiguration.create();
    try (Connection c = ConnectionFactory.createConnection(conf); Admin admin = c.getAdmin()) {
      if (!a[0].equals("loop")) { run(c, admin, a); return; }
      BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
      for (String line; (line = in.readLine()) != null;) {
        try {
          run(c, admin, line.split(" "));
          System.out.println("ok");
        } catch (Exception e) {
          System.out.println("failed " + e);
        }
      }
    }
  }

  static void run(Connection c, Admin admin, String[] a) throws Exception {
    List<String> args = Arrays.asList(a).subList(1, a.length);
    switch (a[0]) {
      case "create": {
        Set<TableName> there = new HashSet<>(Arrays.asList(admin.listTableNames()));
        List<Future<Void>> made = new ArrayList<>();
        for (String p : args) for (String[] t : tables(p))
          if (!there.contains(TableName.valueOf(p + t[0]))) made.add(admin.createTableAsync(table(p, t)));
        for (Future<Void> f : made) f.get(60, TimeUnit.SECONDS);
        break;
      }
      case "empty": {
        List<TableName> names = new ArrayList<>();
        for (String p : args) for (String[] t : tables(p)) names.add(TableName.valueOf(p + t[0]));
        List<Future<Void>> done = new ArrayList<>();
        for (TableName n : names) done.add(admin.disableTableAsync(n));
        for (Future<Void> f : done) f.get(60, TimeUnit.SECONDS);
        done.clear();
        for (TableName n : names) done.add(admin.truncateTableAsync(n, true));
        for (Future<Void> f : done) f.get(60, TimeUnit.SECONDS);
        break;
      }
      case "drop":
        for (String p : args) for (String[] t : tables(p)) {
          TableName name = TableName.valueOf(p + t[0]);
          if (!admin.tableExists(name)) continue;
          if (admin.isTableEnabled(name)) admin.disableTable(name);
          admin.deleteTable(name);
        }
        break;
      case "regions":
        for (HRegionLocation l : located(c, args.get(0)))
          System.out.println(hex(l.getRegion().getStartKey()) + " " + l.getPort());
        break;
      case "move": {
        List<HRegionLocation> all = located(c, args.get(0));
        HRegionLocation one = all.get(Integer.parseInt(args.get(1)) % all.size());
        int port = Integer.parseInt(args.get(2));
        if (one.getPort() == port) break;
        ServerName to = null;
        for (ServerName s : admin.getRegionServers()) if (s.getPort() == port) to = s;
        if (to == null) throw new IllegalStateException("no server on port " + port);
        admin.move(one.getRegion().getEncodedNameAsBytes(), to);
        break;
      }
      case "split": {
        byte[] key = Bytes.fromHex(args.get(1));
        try (RegionLocator l = c.getRegionLocator(TableName.valueOf(args.get(0)))) {
          byte[] name = l.getRegionLocation(key, true).getRegion().getRegionName();
          admin.splitRegionAsync(name, key).get(60, TimeUnit.SECONDS);
        }
        break;
      }
      case "wipe":
        for (String p : args) for (String[] t : tables(p)) wipe(c, TableName.valueOf(p + t[0]));
        break;
      case "dump": dump(c, args, false); break;
      case "raw": dump(c, args, true); break;
      case "flush": for (String t : args) admin.flush(TableName.valueOf(t)); break;
      case "compact": for (String t : args) admin.majorCompact(TableName.valueOf(t)); break;
      case "put":
        try (Table t = c.getTable(TableName.valueOf(args.get(0)))) {
          t.put(new Put(Bytes.fromHex(args.get(1))).addColumn(
              Bytes.toBytes(args.get(2)), Bytes.fromHex(args.get(3)), Bytes.fromHex(args.get(4))));
        }
        break;
      default: throw new IllegalArgumentException(a[0]);
    }
  }

  static List<HRegionLocation> located(Connection c, String table) throws Exception {
    try (RegionLocator l = c.getRegionLocator(TableName.valueOf(table))) {
      l.clearRegionLocationCache();
      return l.getAllRegionLocations();
    }
  }

  // The pause keeps what is written next out of the markers' own millisecond, where they would hide it.
  static void wipe(Connection c, TableName name) throws Exception {
    try (Table t = c.getTable(name); ResultScanner rs = t.getScanner(new Scan())) {
      List<Delete> rows = new ArrayList<>();
      for (Result r : rs) rows.add(new Delete(r.getRow()));
      if (!rows.isEmpty()) t.delete(rows);
    }
    Thread.sleep(5);
  }

  static TableDescriptor table(String prefix, String[] t) {
    TableDescriptorBuilder b = TableDescriptorBuilder.newBuilder(TableName.valueOf(prefix + t[0]));
    for (int i = 1; i < t.length; i++)
      b.setColumnFamily(ColumnFamilyDescriptorBuilder.newBuilder(Bytes.toBytes(t[i]))
          .setBloomFilterType(BloomType.ROW)
          .setCompressionType(Compression.Algorithm.NONE)
          .setDataBlockEncoding(DataBlockEncoding.DIFF)
          .setMaxVersions(1).build());
    return b.build();
  }

  static void dump(Connection c, List<String> args, boolean raw) throws Exception {
    Scan s = new Scan();
    if (args.size() > 1) s.setRowPrefixFilter(Bytes.fromHex(args.get(1)));
    if (raw) { s.setRaw(true); s.readAllVersions(); }
    try (Table t = c.getTable(TableName.valueOf(args.get(0))); ResultScanner rs = t.getScanner(s)) {
      for (Result r : rs) for (Cell k : r.rawCells())
        System.out.println(Bytes.toHex(CellUtil.cloneRow(k)) + " "
            + Bytes.toString(CellUtil.cloneFamily(k)) + " "
            + hex(CellUtil.cloneQualifier(k)) + " " + k.getTimestamp() + " "
            + (raw ? k.getType() + " " : "") + hex(CellUtil.cloneValue(k)));
    }
  }

  static String hex(byte[] b) { return b.length == 0 ? "-" : Bytes.toHex(b); }
}
