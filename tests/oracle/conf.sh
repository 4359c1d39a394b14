# Sourced by oracle.sh: the profiles, their ports and tables, and every configuration file that is written.

tsd_port() {
  local profiles=(plain appends salted meta rollup closed tools filtered) i
  for i in "${!profiles[@]}"; do
    [ "${profiles[$i]}" != "$1" ] || { echo $((ORACLE_TSD_PORT + i)); return; }
  done
  echo "unknown profile $1 (${profiles[*]})" >&2; return 2
}

tables() { case $1 in plain) echo tsdb ;; *) echo "$1-tsdb" ;; esac; }

property() { echo "<property><name>$1</name><value>$2</value></property>"; }

# hbase_site DISTRIBUTED PORT: of the standalone HBase, or of a region server in a process of its own.
hbase_site() {
  echo '<configuration>'
  property hbase.rootdir "file://$ORACLE_DIR/data/hbase"
  property hbase.tmp.dir "$ORACLE_DIR/data/tmp"
  property hbase.zookeeper.property.dataDir "$ORACLE_DIR/data/zookeeper"
  property hbase.cluster.distributed "$1"
  property hbase.wal.provider filesystem
  # Hadoop's own local file system has checksums and knows no flush: what HBase acknowledged would go with the process.
  # With this one HBase's log is in the system's hands before it answers, and it would not start otherwise.
  property fs.file.impl Flushed
  property hbase.unsafe.stream.capability.enforce true
  property hbase.zookeeper.quorum 127.0.0.1
  property hbase.zookeeper.property.clientPort "$ORACLE_ZK_PORT"
  property hbase.zookeeper.property.clientPortAddress 127.0.0.1
  property hbase.master.hostname localhost
  property hbase.master.ipc.address 127.0.0.1
  property hbase.master.port "$ORACLE_MASTER_PORT"
  property hbase.regionserver.hostname localhost
  property hbase.regionserver.ipc.address 127.0.0.1
  property hbase.regionserver.port "$2"
  property hbase.master.info.port -1
  property hbase.regionserver.info.port -1
  property hbase.regionserver.handler.count 10
  property hbase.master.start.timeout.localHBaseCluster 60000
  property hbase.localcluster.assign.random.ports false
  # One region server, in the same process: nothing to wait for.
  property hbase.master.wait.on.regionservers.timeout 200
  property hbase.master.wait.on.regionservers.interval 100
  property hbase.regionserver.msginterval 500
  property hbase.client.pause 50
  property hbase.client.operation.timeout 90000
  property hbase.snapshot.enabled false
  # As HBase's default is for servers apart: who is silent for less is not dead.
  property zookeeper.session.timeout.localHBaseCluster 90000
  property zookeeper.session.timeout 90000
  property hbase.zookeeper.property.maxSessionTimeout 90000
  echo '</configuration>'
}

# logback FILE LEVEL: the daemon insists on the appender named CYCLIC.
logback() {
  cat > "$1" <<L
<configuration>
  <appender name="OUT" class="ch.qos.logback.core.ConsoleAppender">
    <target>System.err</target>
    <encoder><pattern>%d{ISO8601} %-5level [%thread] %logger{0}: %msg%n</pattern></encoder>
  </appender>
  <appender name="CYCLIC" class="ch.qos.logback.core.read.CyclicBufferAppender">
    <MaxSize>1024</MaxSize>
  </appender>
  <root level="$2"><appender-ref ref="OUT"/><appender-ref ref="CYCLIC"/></root>
</configuration>
L
}

write_conf() {
  mkdir -p "$ORACLE_DIR"/conf/{tsd,tool,client,region} "$ORACLE_DIR/run/classes"
  hbase_site false "$ORACLE_RS_PORT" > "$ORACLE_DIR/conf/hbase-site.xml"
  hbase_site true $((ORACLE_RS_PORT + 1)) > "$ORACLE_DIR/conf/region/hbase-site.xml"
  cat > "$ORACLE_DIR/conf/log4j.properties" <<'L'
log4j.rootLogger=INFO,console
log4j.appender.console=org.apache.log4j.ConsoleAppender
log4j.appender.console.layout=org.apache.log4j.PatternLayout
log4j.appender.console.layout.ConversionPattern=%d{ISO8601} %-5p [%t] %c{2}: %m%n
L
  cp "$ORACLE_DIR/conf/log4j.properties" "$ORACLE_DIR/conf/region/"
  sed 's/INFO/ERROR/' "$ORACLE_DIR/conf/log4j.properties" > "$ORACLE_DIR/conf/client/log4j.properties"
  logback "$ORACLE_DIR/conf/tsd/logback.xml" INFO
  logback "$ORACLE_DIR/conf/tool/logback.xml" INFO
  # The released jar has the filter and does not name it as a plugin.
  mkdir -p "$ORACLE_DIR/conf/tsd/META-INF/services"
  echo net.opentsdb.uid.UniqueIdWhitelistFilter > "$ORACLE_DIR/conf/tsd/META-INF/services/net.opentsdb.uid.UniqueIdFilterPlugin"
}

# The intervals of OpenTSDB's own example, each in tables of its own, raw beside the default interval.
rollup_conf() {
  cat <<J
{ "aggregationIds": {"sum": 0, "count": 1, "min": 2, "max": 3},
  "intervals": [
    {"table": "$1", "preAggregationTable": "$1-preagg", "interval": "1m", "rowSpan": "1h", "defaultInterval": true},
    {"table": "$1-10m", "preAggregationTable": "$1-10m-preagg", "interval": "10m", "rowSpan": "1d"},
    {"table": "$1-1h", "preAggregationTable": "$1-1h-preagg", "interval": "1h", "rowSpan": "1n"},
    {"table": "$1-1d", "preAggregationTable": "$1-1d-preagg", "interval": "1d", "rowSpan": "1y"}
  ] }
J
}

tsd_conf() {
  local t open=true; t=$(tables "$1")
  [ "$1" != closed ] || open=false
  cat <<C
tsd.network.bind = 127.0.0.1
tsd.network.port = $(tsd_port "$1")
tsd.http.staticroot = $ORACLE_DIR/tsd/$1/static
tsd.http.cachedir = $ORACLE_DIR/tsd/$1/cache
tsd.http.request.enable_chunked = true
tsd.http.request.max_chunk = 16777216
tsd.http.show_stack_trace = false
tsd.core.auto_create_metrics = $open
tsd.core.auto_create_tagks = $open
tsd.core.auto_create_tagvs = $open
tsd.core.plugin_path = $ORACLE_DIR/tsd/$1
tsd.http.query.allow_delete = $open
tsd.storage.fix_duplicates = true
hbase.rpcs.buffered_flush_interval = 50
tsd.storage.hbase.zk_quorum = 127.0.0.1:$ORACLE_ZK_PORT
tsd.storage.hbase.data_table = $t
tsd.storage.hbase.uid_table = $t-uid
tsd.storage.hbase.tree_table = $t-tree
tsd.storage.hbase.meta_table = $t-meta
C
  case $1 in
    appends) echo 'tsd.storage.enable_appends = true' ;;
    salted) printf 'tsd.storage.salt.width = 1\ntsd.storage.salt.buckets = 20\n' ;;
    meta)
      printf 'tsd.core.meta.%s = true\n' enable_realtime_ts enable_realtime_uid enable_tsuid_incrementing \
        enable_tsuid_tracking
      printf 'tsd.core.tree.enable_processing = true\n' ;;
    filtered)
      printf 'tsd.uidfilter.%s\n' 'enable = true' 'plugin = net.opentsdb.uid.UniqueIdWhitelistFilter' \
        'whitelist.delimiter = ;' 'whitelist.metric_patterns = ^[a-z.]+$' 'whitelist.tagk_patterns = ^[a-z]+$;^.{2,5}$'
      printf 'tsd.storage.uid.width.%s\n' 'metric = 2' 'tagk = 1' 'tagv = 1' ;;
    rollup)
      rollup_conf "$t" > "$ORACLE_DIR/conf/rollup.json"
      printf 'tsd.rollups.%s\n' 'enable = true' "config = $ORACLE_DIR/conf/rollup.json" 'tag_raw = false' \
        'agg_tag_key = _aggregate' 'raw_agg_tag_value = RAW' 'block_derived = true'
      printf 'tsd.core.histograms.config = {"net.opentsdb.core.SimpleHistogramDecoder": 42}\n' ;;
  esac
  # Lines from outside; the last one of a key wins.
  [ -z "${ORACLE_TSD_EXTRA:-}" ] || printf '%s\n' "$ORACLE_TSD_EXTRA"
}
