// Command telegraf is Telegraf's own opentsdb output and cpu, mem and system inputs, unmodified, with the few lines of a main around
// them: a whole Telegraf takes minutes to build and does the same here.
//
//	telegraf HOST PORT tcp|http SECONDS OUT
//
// It gathers each second, sends what it gathered, and writes each value to OUT as `metric timestamp value`, for comparison.
package main

import (
	"fmt"
	"log"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/influxdata/telegraf"
	"github.com/influxdata/telegraf/plugins/inputs"
	_ "github.com/influxdata/telegraf/plugins/inputs/cpu"
	_ "github.com/influxdata/telegraf/plugins/inputs/mem"
	"github.com/influxdata/telegraf/plugins/outputs/opentsdb"
	"github.com/influxdata/telegraf/testutil"
)

func main() {
	if len(os.Args) != 6 {
		log.Fatal("usage: telegraf HOST PORT tcp|http SECONDS OUT")
	}
	port, err := strconv.Atoi(os.Args[2])
	must(err)
	seconds, err := strconv.Atoi(os.Args[4])
	must(err)
	host := "tcp://" + os.Args[1]
	if os.Args[3] == "http" {
		host = "http://" + os.Args[1]
	}
	sink := &opentsdb.OpenTSDB{
		Prefix: "telegraf." + os.Args[3] + ".", Host: host, Port: port, HTTPBatchSize: 50, HTTPPath: "/api/put",
		Separator: "_", Log: testutil.Logger{Name: "opentsdb", Quiet: true},
	}
	must(sink.Connect())
	defer sink.Close()
	sources := []telegraf.Input{inputs.Inputs["mem"](), inputs.Inputs["cpu"]()}
	for _, s := range sources {
		if i, ok := s.(telegraf.Initializer); ok {
			must(i.Init())
		}
	}
	out, err := os.Create(os.Args[5])
	must(err)
	defer out.Close()
	for i := 0; i < seconds; i++ {
		var got testutil.Accumulator
		for _, s := range sources {
			must(s.Gather(&got))
		}
		metrics := got.GetTelegrafMetrics()
		for _, m := range metrics {
			m.AddTag("host", "here")
			record(out, sink.Prefix, m)
		}
		must(sink.Write(metrics))
		time.Sleep(time.Second)
	}
}

// record notes the gauges of memory: one series a field, so that a query for it returns what was sent.
func record(out *os.File, prefix string, m telegraf.Metric) {
	if m.Name() != "mem" {
		return
	}
	for _, f := range m.FieldList() {
		fmt.Fprintf(out, "%s%s_%s %d %s\n", prefix, m.Name(), strings.TrimSpace(f.Key), m.Time().Unix(), text(f.Value))
	}
}

func text(v interface{}) string {
	if f, ok := v.(float64); ok {
		return strconv.FormatFloat(f, 'f', 6, 64) // the output sends six decimals
	}
	return fmt.Sprint(v)
}

func must(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
