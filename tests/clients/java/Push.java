import java.io.PrintWriter;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.opentsdb.client.OpenTSDBClient;
import org.opentsdb.client.OpenTSDBClientFactory;
import org.opentsdb.client.OpenTSDBConfig;
import org.opentsdb.client.bean.request.LastPointQuery;
import org.opentsdb.client.bean.request.LastPointSubQuery;
import org.opentsdb.client.bean.request.Point;
import org.opentsdb.client.bean.request.Query;
import org.opentsdb.client.bean.request.SubQuery;
import org.opentsdb.client.bean.request.SuggestQuery;

/**
 * Puts points through the unmodified opentsdb-java-sdk and reads them back through it.
 *
 *   java -cp 'LIB/*' Push.java HOST PORT SECONDS OUT
 *
 * OUT gets one line a value: `metric timestamp value`; every series has the one tag host=here. It ends with 1 and a line where an
 * answer is not what was sent.
 */
public class Push {
  static void expect(boolean ok, String what, Object got) {
    if (!ok) {
      System.err.println(what + ": " + got);
      System.exit(1);
    }
  }

  public static void main(String[] args) throws Exception {
    OpenTSDBConfig config = OpenTSDBConfig.address("http://" + args[0], Integer.parseInt(args[1])).config();
    OpenTSDBClient client = OpenTSDBClientFactory.connect(config);
    long now = System.currentTimeMillis() / 1000;
    List<Point> points = new ArrayList<>();
    try (PrintWriter ledger = new PrintWriter(args[3])) {
      for (int i = 0; i < 30; i++) {
        long at = now - 60 + i;
        points.add(Point.metric("javasdk.whole").tag("host", "here").value(at, i * 7).build());
        points.add(Point.metric("javasdk.broken").tag("host", "here").value(at, i / 4.0).build());
        ledger.println("javasdk.whole " + at + " " + i * 7);
        ledger.println("javasdk.broken " + at + " " + i / 4.0);
      }
    }
    client.putSync(points.get(0));
    client.putSync(points.subList(1, points.size()));

    // No rollup is stored of these points, so every usage answers from them alone; the last is OpenTSDB's default.
    for (String usage : new String[] {"ROLLUP_RAW", "ROLLUP_FALLBACK", "ROLLUP_FALLBACK_RAW", "ROLLUP_NOFALLBACK"}) {
      Query query = Query.begin(now - 100).end(now)
          .sub(SubQuery.metric("javasdk.whole").aggregator(SubQuery.Aggregator.SUM).tag("host", "here")
              .downsample("10m-max").rollupUsage(usage).build())
          .build();
      var answer = client.query(query);
      expect(answer.size() == 1 && answer.get(0).getMetric().equals("javasdk.whole"), usage, answer);
    }
    Query query = Query.begin(now - 100).end(now)
        .sub(SubQuery.metric("javasdk.broken").aggregator(SubQuery.Aggregator.AVG).tag("host", "here").build())
        .build();
    var answer = client.query(query);
    expect(answer.size() == 1 && answer.get(0).getTags().equals(Map.of("host", "here")), "query", answer);
    Map<Long, Number> dps = answer.get(0).getDps();
    expect(dps.size() == 30 && dps.get(now - 60 + 29).doubleValue() == 7.25, "points", dps);

    var last = client.queryLast(LastPointQuery
        .sub(LastPointSubQuery.metric("javasdk.whole").tag("host", "here").build()).resolveNames(true).backScan(2).build());
    expect(last.size() == 1 && last.get(0).getTimestamp() == (now - 60 + 29) * 1000, "last", last);
    expect(last.get(0).getValue().toString().equals("203"), "last", last);
    var names = client.querySuggest(SuggestQuery.type(SuggestQuery.Type.METRICS).q("javasdk").max(5).build());
    expect(names.equals(List.of("javasdk.broken", "javasdk.whole")), "suggest", names);
    client.gracefulClose();
    System.exit(0);
  }
}
