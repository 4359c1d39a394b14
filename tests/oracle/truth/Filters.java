import java.util.*;
import org.apache.hadoop.hbase.CompareOperator;
import org.apache.hadoop.hbase.filter.*;
import org.apache.hadoop.hbase.util.Pair;

/** Filter trees as they come over the pipe: a byte names the filter, then its arguments. */
class Filters {
  static Filter read(Wire ask) throws Exception {
    int kind = ask.u8();
    switch (kind) {
      case 0: return new KeyOnlyFilter();
      case 1: return new FirstKeyOnlyFilter();
      case 2: return new PrefixFilter(ask.bytes());
      case 3: {
        List<MultiRowRangeFilter.RowRange> ranges = new ArrayList<>();
        for (int n = ask.u32(); n > 0; n--)
          ranges.add(new MultiRowRangeFilter.RowRange(ask.bytes(), true, ask.bytes(), false));
        return new MultiRowRangeFilter(ranges);
      }
      case 4: {
        List<Pair<byte[], byte[]>> keys = new ArrayList<>();
        for (int n = ask.u32(); n > 0; n--) keys.add(new Pair<>(ask.bytes(), ask.bytes()));
        return new FuzzyRowFilter(keys);
      }
      case 5: return new InclusiveStopFilter(ask.bytes());
      case 6: return new RowFilter(operator(ask), comparator(ask));
      case 7: return new FamilyFilter(operator(ask), comparator(ask));
      case 8: return new QualifierFilter(operator(ask), comparator(ask));
      case 9: return new ValueFilter(operator(ask), comparator(ask));
      case 10: return new ColumnPrefixFilter(ask.bytes());
      case 11: return new MultipleColumnPrefixFilter(ask.list());
      case 12: {
        byte[] min = ask.flag() ? ask.bytes() : null;
        boolean minIn = ask.flag();
        byte[] max = ask.flag() ? ask.bytes() : null;
        return new ColumnRangeFilter(min, minIn, max, ask.flag());
      }
      case 13: return new ColumnCountGetFilter(ask.u32());
      case 14: return new ColumnPaginationFilter(ask.u32(), ask.u32());
      case 15: return new ColumnValueFilter(ask.bytes(), ask.bytes(), operator(ask), comparator(ask));
      case 16: {
        byte[] family = ask.bytes(), qualifier = ask.bytes();
        CompareOperator operator = operator(ask);
        ByteArrayComparable comparator = comparator(ask);
        boolean missing = ask.flag(), latest = ask.flag();
        SingleColumnValueFilter filter = ask.flag()
            ? new SingleColumnValueExcludeFilter(family, qualifier, operator, comparator)
            : new SingleColumnValueFilter(family, qualifier, operator, comparator);
        filter.setFilterIfMissing(missing);
        filter.setLatestVersionOnly(latest);
        return filter;
      }
      case 17: {
        List<Long> times = new ArrayList<>();
        for (int n = ask.u32(); n > 0; n--) times.add(ask.u64());
        return new TimestampsFilter(times);
      }
      case 18: return new PageFilter(ask.u64());
      case 19: return new WhileMatchFilter(read(ask));
      case 20: return new SkipFilter(read(ask));
      case 21: {
        FilterList.Operator operator = ask.u8() == 0 ? FilterList.Operator.MUST_PASS_ALL : FilterList.Operator.MUST_PASS_ONE;
        List<Filter> list = new ArrayList<>();
        for (int n = ask.u32(); n > 0; n--) list.add(read(ask));
        return new FilterList(operator, list);
      }
      default: throw new Fault.Refused("no filter " + kind);
    }
  }

  static CompareOperator operator(Wire ask) { return Cells.OPERATORS[ask.u8()]; }

  static ByteArrayComparable comparator(Wire ask) {
    switch (ask.u8()) {
      case 0: return new BinaryComparator(ask.bytes());
      case 1: return new BinaryPrefixComparator(ask.bytes());
      case 2: return new RegexStringComparator(ask.text());
      default: return new SubstringComparator(ask.text());
    }
  }
}
