// Puts points through the unmodified opentsdb-goclient and reads them back through it, by every call that it has for that.
//
//	goclient HOST PORT SECONDS OUT
//
// OUT gets one line a value: `metric timestamp value`; every series has the one tag host=here. It ends with 1 and a line
// where an answer is not what was sent.
package main

import (
	"fmt"
	"math"
	"os"
	"time"

	"github.com/bluebreezecf/opentsdb-goclient/client"
	"github.com/bluebreezecf/opentsdb-goclient/config"
)

var metrics = []string{"goclient.whole", "goclient.broken"}

func must(err error, what string) {
	if err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", what, err)
		os.Exit(1)
	}
}

func expect(ok bool, what string, got interface{}) {
	if !ok {
		fmt.Fprintf(os.Stderr, "%s: %v\n", what, got)
		os.Exit(1)
	}
}

func main() {
	out, err := os.Create(os.Args[4])
	must(err, "ledger")
	tsdb, err := client.NewClient(config.OpenTSDBConfig{OpentsdbHost: os.Args[1] + ":" + os.Args[2]})
	must(err, "new")
	must(tsdb.Ping(), "ping")

	tags := map[string]string{"host": "here"}
	now := time.Now().Unix()
	var points []client.DataPoint
	for i := int64(0); i < 30; i++ {
		values := []interface{}{i * 7, float64(i) / 4}
		for place, metric := range metrics {
			points = append(points, client.DataPoint{Metric: metric, Timestamp: now - 60 + i, Value: values[place], Tags: tags})
			fmt.Fprintf(out, "%s %d %v\n", metric, now-60+i, values[place])
		}
	}
	// One alone goes as an object, many as a list.
	put, err := tsdb.Put(points[:1], client.PutRespWithDetails)
	must(err, "put of one")
	expect(put.Success == 1 && put.Failed == 0, "put of one", put.String())
	put, err = tsdb.Put(points[1:], client.PutRespWithSummary)
	must(err, "put of many")
	expect(put.Failed == 0, "put of many", put.String())
	must(out.Close(), "ledger")

	var subs []client.SubQuery
	for _, metric := range metrics {
		subs = append(subs, client.SubQuery{Aggregator: "sum", Metric: metric, Tags: tags})
	}
	answer, err := tsdb.Query(client.QueryParam{Start: now - 100, End: now, Queries: subs})
	must(err, "query")
	expect(len(answer.QueryRespCnts) == 2, "query", answer.String())
	for place, series := range answer.QueryRespCnts {
		expect(series.Metric == metrics[place] && series.Tags["host"] == "here" && len(series.Dps) == 30, "series", series)
		last, _ := series.Dps[fmt.Sprint(now-60+29)].(float64)
		expect(math.Abs(last-[]float64{203, 7.25}[place]) < 1e-9, "last value", last)
	}

	latest, err := tsdb.QueryLast(client.QueryLastParam{
		Queries:      []client.SubQueryLast{{Metric: metrics[0], Tags: tags}},
		ResolveNames: true, BackScan: 2,
	})
	must(err, "last")
	expect(len(latest.QueryRespCnts) == 1, "last", latest.String())
	expect(latest.QueryRespCnts[0].Timestamp == (now-60+29)*1000 && latest.QueryRespCnts[0].Value == "203", "last", latest.String())

	names, err := tsdb.Suggest(client.SuggestParam{Type: client.TypeMetrics, Q: "goclient", MaxResultNum: 5})
	must(err, "suggest")
	expect(len(names.ResultInfo) == 2, "suggest", names.String())
	functions, err := tsdb.Aggregators()
	must(err, "aggregators")
	expect(len(functions.Aggregators) == 35, "aggregators", functions.String())
	version, err := tsdb.Version()
	must(err, "version")
	expect(version.VersionInfo["version"] != "", "version", version.String())
}
