import java.io.IOException;
import java.util.*;
import org.apache.hadoop.hbase.*;
import org.apache.hadoop.hbase.client.*;
import org.apache.hadoop.hbase.util.Bytes;

/** Calls about rows, through HBase's own client. */
class Cells {
  static final CompareOperator[] OPERATORS = {CompareOperator.LESS, CompareOperator.LESS_OR_EQUAL,
    CompareOperator.EQUAL, CompareOperator.NOT_EQUAL, CompareOperator.GREATER_OR_EQUAL, CompareOperator.GREATER};
  static final CompareOperator[] TURNED = {CompareOperator.GREATER, CompareOperator.GREATER_OR_EQUAL,
    CompareOperator.EQUAL, CompareOperator.NOT_EQUAL, CompareOperator.LESS_OR_EQUAL, CompareOperator.LESS};
  static final Durability[] DURABILITIES =
      {Durability.SKIP_WAL, Durability.ASYNC_WAL, Durability.SYNC_WAL, Durability.FSYNC_WAL};
  final Cluster cluster;

  Cells(Cluster cluster) { this.cluster = cluster; }

  void call(int call, Wire ask, Wire.Out tell) throws Exception {
    TableName name = Tables.name(ask);
    // Past the client's memory of where regions were, so that a disabled table is told from a moved region.
    try (Table table = cluster.connection.getTable(name)) {
      switch (call) {
        case 40: apply(table, ask, tell); break;
        case 41: get(table, ask, tell); break;
        case 42: scan(table, ask, tell); break;
        case 43: {
          Increment increment = new Increment(ask.bytes());
          increment.addColumn(ask.bytes(), ask.bytes(), ask.u64()).setDurability(DURABILITIES[ask.u8()]);
          tell.bytes(table.increment(increment).value());
          break;
        }
        case 44: {
          Append append = new Append(ask.bytes());
          append.addColumn(ask.bytes(), ask.bytes(), ask.bytes()).setDurability(DURABILITIES[ask.u8()]);
          tell.bytes(table.append(append).value());
          break;
        }
        case 45: check(table, ask, tell); break;
        default: throw new Fault.Refused("no call " + call);
      }
    }
  }

  /** One call of HBase's for each row entry, so that each fails alone. */
  void apply(Table table, Wire ask, Wire.Out tell) throws Exception {
    Durability durability = DURABILITIES[ask.u8()];
    int rows = ask.u32(), failed = 0;
    java.io.ByteArrayOutputStream told = new java.io.ByteArrayOutputStream();
    Wire.Out failures = new Wire.Out(told);
    for (int row = 0; row < rows; row++) {
      List<Mutation> changes = entry(ask, durability);
      try {
        change(table, changes);
      } catch (Exception e) {
        byte fault = Fault.of(40, e);
        if (Fault.root(e) instanceof TableNotFoundException || fault == Fault.UNAVAILABLE || fault == Fault.BUG) throw e;
        failed++;
        failures.writeInt(row);
        failures.writeByte(fault);
        failures.text(Fault.words(e));
      }
    }
    tell.writeInt(failed);
    tell.write(told.toByteArray());
  }

  /** A row entry's changes in order: neighbours of one sort become one Put or one Delete, as a client would write. */
  static List<Mutation> entry(Wire ask, Durability durability) throws IOException {
    byte[] key = ask.bytes();
    List<Mutation> changes = new ArrayList<>();
    for (int n = ask.u32(); n > 0; n--) {
      int kind = ask.u8();
      byte[] family = ask.bytes(), qualifier = ask.bytes();
      long time = ask.u64();
      byte[] value = ask.bytes();
      Mutation last = changes.isEmpty() ? null : changes.get(changes.size() - 1);
      boolean put = kind == KeyValue.Type.Put.getCode();
      // HBase's Delete.addFamily forgets what the same Delete has of that family.
      boolean forgets = kind == KeyValue.Type.DeleteFamily.getCode() && last != null && last.getFamilyCellMap().containsKey(family);
      if (last == null || put != last instanceof Put || forgets) {
        last = put ? new Put(key) : new Delete(key);
        last.setDurability(durability);
        changes.add(last);
      }
      if (put) { ((Put) last).addColumn(family, qualifier, time, value); continue; }
      Delete delete = (Delete) last;
      if (kind == KeyValue.Type.Delete.getCode()) delete.addColumn(family, qualifier, time);
      else if (kind == KeyValue.Type.DeleteColumn.getCode()) delete.addColumns(family, qualifier, time);
      else if (kind == KeyValue.Type.DeleteFamily.getCode()) delete.addFamily(family, time);
      else delete.addFamilyVersion(family, time);
    }
    return changes;
  }

  static void change(Table table, List<Mutation> changes) throws IOException {
    if (changes.size() == 1) {
      if (changes.get(0) instanceof Put) table.put((Put) changes.get(0)); else table.delete((Delete) changes.get(0));
    } else if (!changes.isEmpty()) {
      table.mutateRow(RowMutations.of(changes));
    }
  }

  void get(Table table, Wire ask, Wire.Out tell) throws Exception {
    byte[][] rows = ask.list();
    List<Get> gets = new ArrayList<>();
    for (byte[] row : rows) gets.add(new Get(row));
    int families = ask.u32();
    for (int f = 0; f < families; f++) {
      byte[] family = ask.bytes();
      byte[][] qualifiers = ask.list();
      for (Get get : gets) {
        if (qualifiers.length == 0) get.addFamily(family);
        for (byte[] qualifier : qualifiers) get.addColumn(family, qualifier);
      }
    }
    long min = ask.u64(), max = time(ask.u64());
    int versions = versions(ask.u32());
    byte[] filter = ask.flag() ? ask.bytes() : null;
    for (Get get : gets) {
      get.setTimeRange(min, max).readVersions(versions);
      if (filter != null) get.setFilter(Filters.read(new Wire(filter)));
    }
    List<Result> found = new ArrayList<>();
    for (Get get : gets) {
      Result one = table.get(get);
      if (!one.isEmpty()) found.add(one);
    }
    tell(found, tell);
  }

  void scan(Table table, Wire ask, Wire.Out tell) throws Exception {
    Scan scan = new Scan();
    scan.withStartRow(ask.bytes(), ask.flag()).withStopRow(ask.bytes(), ask.flag());
    for (int f = ask.u32(); f > 0; f--) {
      byte[] family = ask.bytes();
      byte[][] qualifiers = ask.list();
      if (qualifiers.length == 0) scan.addFamily(family);
      for (byte[] qualifier : qualifiers) scan.addColumn(family, qualifier);
    }
    scan.setTimeRange(ask.u64(), time(ask.u64())).readVersions(versions(ask.u32()));
    long limit = ask.u64();
    int batch = ask.u32();
    scan.setReversed(ask.flag()).setRaw(ask.flag());
    if (ask.flag()) scan.setFilter(Filters.read(new Wire(ask.bytes())));
    if (scan.isReversed()) scan.setLoadColumnFamiliesOnDemand(false);
    if (batch > 0) scan.setBatch(batch);
    long bytes = ask.u64();
    if (bytes > 0 && bytes < (1L << 40)) scan.setMaxResultSize(bytes);
    scan.setCacheBlocks(ask.flag());
    List<Result> found = new ArrayList<>();
    // HBase takes a limit of none for no limit.
    if (limit == 0) { tell(found, tell); return; }
    if (limit > 0) scan.setLimit((int) Math.min(limit, Integer.MAX_VALUE));
    try (ResultScanner scanner = table.getScanner(scan)) {
      for (Result r; (r = scanner.next()) != null;) if (!r.isEmpty()) found.add(r);
    } catch (java.io.UncheckedIOException e) {
      throw e.getCause();
    }
    tell(found, tell);
  }

  static long time(long max) { return max < 0 ? Long.MAX_VALUE : max; }

  static int versions(int n) { return n < 0 ? Integer.MAX_VALUE : n; }

  static void tell(List<Result> found, Wire.Out tell) throws IOException {
    tell.writeInt(found.size());
    for (Result r : found) {
      tell.bytes(r.getRow());
      tell.writeBoolean(!r.mayHaveMoreCellsInRow());
      Cell[] cells = r.rawCells();
      tell.writeInt(cells.length);
      for (Cell c : cells) {
        tell.bytes(c.getFamilyArray(), c.getFamilyOffset(), c.getFamilyLength());
        tell.bytes(c.getQualifierArray(), c.getQualifierOffset(), c.getQualifierLength());
        tell.writeLong(c.getTimestamp());
        tell.writeByte(c.getType().getCode());
        tell.bytes(c.getValueArray(), c.getValueOffset(), c.getValueLength());
      }
    }
  }

  void check(Table table, Wire ask, Wire.Out tell) throws Exception {
    byte[] row = ask.bytes(), family = ask.bytes(), qualifier = ask.bytes();
    int comparison = ask.u8();
    CheckAndMutate.Builder b = CheckAndMutate.newBuilder(row);
    // HBase holds the expected value against the stored one here, where its filters do it the other way round.
    if (ask.flag()) b.ifMatches(family, qualifier, TURNED[comparison], ask.bytes());
    else b.ifNotExists(family, qualifier);
    Durability durability = DURABILITIES[ask.u8()];
    RowMutations all = new RowMutations(row);
    for (int entries = ask.u32(); entries > 0; entries--) all.add(entry(ask, durability));
    // HBase's client runs past the end of such a list.
    if (all.getMutations().isEmpty()) throw new Fault.Refused("no changes");
    tell.writeBoolean(table.checkAndMutate(b.build(all)).isSuccess());
  }
}
