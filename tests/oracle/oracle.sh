#!/usr/bin/env bash
# The oracle: a standalone HBase and, on it, one real OpenTSDB daemon a profile, all on loopback.
# Run it through `cargo xtask oracle`, which sets the defaults; README.md lists commands, profiles and variables.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
: "${ORACLE_DIR:?run this through cargo xtask oracle}" "${ORACLE_TSD_PORT:?}"
: "${ORACLE_JAVA:=java}" "${ORACLE_HBASE_MX:=1g}" "${ORACLE_TSD_MX:=512m}"
: "${ORACLE_ZK_PORT:=12181}" "${ORACLE_MASTER_PORT:=16000}" "${ORACLE_RS_PORT:=16020}"
. "$here/conf.sh"

opens=(--add-modules jdk.unsupported
  --add-opens java.base/java.nio=ALL-UNNAMED --add-opens java.base/sun.nio.ch=ALL-UNNAMED
  --add-opens java.base/java.lang=ALL-UNNAMED --add-opens java.base/java.lang.reflect=ALL-UNNAMED
  --add-opens java.base/jdk.internal.ref=ALL-UNNAMED --add-opens java.base/java.util=ALL-UNNAMED
  --add-opens java.base/java.util.concurrent=ALL-UNNAMED --add-exports java.base/jdk.internal.misc=ALL-UNNAMED
  --add-exports java.security.jgss/sun.security.krb5=ALL-UNNAMED)

# jars NAME: the jars of NAME/pom.xml, through Maven, into $ORACLE_DIR/lib/NAME; resolved again only when the pom changes.
# One at a time: whoever else wants them waits.
jars() {
  local out="$ORACLE_DIR/lib/$1" sum
  sum=$(sha256sum < "$here/$1/pom.xml")
  (
    flock 9
    [ "$(cat "$out/.pom" 2>/dev/null)" != "$sum" ] || exit 0
    rm -rf "$out"; mkdir -p "$out"
    mvn -q -B -f "$here/$1/pom.xml" org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy-dependencies \
      -DoutputDirectory="$out" -DincludeScope=runtime >&2
    echo "$sum" > "$out/.pom"
  ) 9> "$ORACLE_DIR/lib/.lock"
}

# A recorded pid is ours only while its start time is the one recorded with it, and it is more than a zombie.
born() {
  local s; s=$(cat "/proc/$1/stat" 2>/dev/null) || return 1
  set -- ${s##*) }
  [ "$1" != Z ] && echo "${20}"
}
alive() {
  local pid at
  read -r pid at 2>/dev/null < "$ORACLE_DIR/state/$1.pid" || return 1
  [ "$(born "$pid")" = "$at" ]
}

launch() { # NAME HEAP CLASSPATH CLASS ARGS...
  local name=$1 heap=$2 cp=$3; shift 3
  mkdir -p "$ORACLE_DIR/run/$name"
  ( cd "$ORACLE_DIR/run/$name"
    exec setsid "$ORACLE_JAVA" -Xmx"$heap" -XX:+UseSerialGC "${opens[@]}" -Djava.net.preferIPv4Stack=true \
      -Dorg.apache.hbase.thirdparty.io.netty.tryReflectionSetAccessible=true \
      -cp "$cp" "$@" > "$ORACLE_DIR/log/$name.log" 2>&1 < /dev/null ) &
  local pid=$!
  echo "$pid $(born "$pid")" > "$ORACLE_DIR/state/$name.pid"
}

wait_port() { # NAME PORT SECONDS
  local end=$((SECONDS + $3))
  until (exec 3<> "/dev/tcp/127.0.0.1/$2") 2>/dev/null; do
    alive "$1" || { echo "$1 ended; see $ORACLE_DIR/log/$1.log" >&2; tail -5 "$ORACLE_DIR/log/$1.log" >&2; return 1; }
    [ $SECONDS -lt $end ] || { echo "$1: nothing on port $2 after $3 s" >&2; return 1; }
    sleep 0.2
  done
  echo "$2" > "$ORACLE_DIR/state/$1.port"
}

# classes NAME: NAME.java, compiled when it changed.
classes() {
  local out="$ORACLE_DIR/run/classes"
  [ ! "$out/$1.class" -nt "$here/$1.java" ] || return 0
  "${ORACLE_JAVA}c" -nowarn -Xlint:-deprecation -cp "$ORACLE_DIR/lib/hbase/*" -d "$out" "$here/$1.java" 2>/dev/null
}

# Hb.java against the running HBase.
hb() {
  local out="$ORACLE_DIR/run/classes"
  classes Hb
  "$ORACLE_JAVA" -Xmx256m -XX:+UseSerialGC -XX:TieredStopAtLevel=1 "${opens[@]}" \
    -cp "$out:$ORACLE_DIR/conf/client:$ORACLE_DIR/conf:$ORACLE_DIR/lib/hbase/*" Hb "$@"
}

# truth FOLDER: an HBase of its own in the driver's process, its data in FOLDER, asked over standard input and output.
truth() {
  local out="$ORACLE_DIR/run/truth" folder=${1:?a folder for its data}
  mkdir -p "$ORACLE_DIR"/{lib,log,conf} "$out" "$folder"
  jars hbase; write_conf
  (
    flock 9
    [ -n "$(find "$here/truth" -name '*.java' -newer "$out/Truth.class" 2>&1 | head -1)" ] || exit 0
    "${ORACLE_JAVA}c" -nowarn -Xlint:-deprecation -cp "$ORACLE_DIR/lib/hbase/*" -d "$out" "$here"/truth/*.java \
      "$here"/truth/region/*.java >&2
  ) 9> "$ORACLE_DIR/lib/.lock"
  exec "$ORACLE_JAVA" -Xmx"$ORACLE_HBASE_MX" -XX:+UseSerialGC "${opens[@]}" -Djava.net.preferIPv4Stack=true \
    -Dorg.apache.hbase.thirdparty.io.netty.tryReflectionSetAccessible=true \
    -cp "$out:$ORACLE_DIR/conf/client:$ORACLE_DIR/lib/hbase/*" Truth "$folder" 2> "$ORACLE_DIR/log/truth-${folder##*/}.log"
}

# tool CLASS PROFILE ARGS...: one of OpenTSDB's own command line tools on a profile's tables.
tool() {
  local class=$1 profile=${2:?a profile comes first}; shift 2
  [ -e "$ORACLE_DIR/conf/tsd-$profile.conf" ] || { echo "no such profile was started: $profile" >&2; return 2; }
  "$ORACLE_JAVA" -Xmx256m -XX:+UseSerialGC -XX:TieredStopAtLevel=1 "${opens[@]}" \
    -cp "$ORACLE_DIR/conf/tool:$ORACLE_DIR/lib/tsd/*" "net.opentsdb.tools.$class" \
    --config="$ORACLE_DIR/conf/tsd-$profile.conf" "$@"
}

# The standalone HBase: ZooKeeper, master and region server in one process; nothing where it runs.
hbase() {
  mkdir -p "$ORACLE_DIR"/{lib,state,log,conf,tsd}
  jars hbase; write_conf
  classes Flushed
  if ! alive hbase; then
    launch hbase "$ORACLE_HBASE_MX" "$ORACLE_DIR/conf:$ORACLE_DIR/run/classes:$ORACLE_DIR/lib/hbase/*" \
      org.apache.hadoop.hbase.master.HMaster start
  fi
  wait_port hbase "$ORACLE_RS_PORT" 90
}

# A second region server, in a process of its own, on the next port.
region() {
  if ! alive region; then
    launch region "$ORACLE_TSD_MX" "$ORACLE_DIR/conf/region:$ORACLE_DIR/run/classes:$ORACLE_DIR/lib/hbase/*" \
      org.apache.hadoop.hbase.regionserver.HRegionServer start
  fi
  wait_port region $((ORACLE_RS_PORT + 1)) 90
}

# signal NAME SIGNAL: to a process that `up` or `region` started. One that is killed takes a moment to be gone, and is waited
# for: whoever starts it again must not find it alive.
signal() {
  alive "$1" || { echo "$1 does not run" >&2; return 1; }
  kill -s "$2" "$(cut -d' ' -f1 "$ORACLE_DIR/state/$1.pid")"
  [ "$2" = KILL ] || return 0
  local end=$((SECONDS + 30))
  while alive "$1"; do
    [ $SECONDS -lt $end ] || { echo "$1 outlives its end by 30 s" >&2; return 1; }
    sleep 0.05
  done
}

up() {
  local fresh= profiles=() a p
  for a in "$@"; do
    case $a in
      --fresh) fresh=1 ;;
      -*) echo "oracle up: unknown option $a" >&2; return 2 ;;
      *) tsd_port "$a" > /dev/null; profiles+=("$a") ;;
    esac
  done
  [ ${#profiles[@]} -gt 0 ] || profiles=(plain)
  if [ -n "$fresh" ]; then down; rm -rf "$ORACLE_DIR/data" "$ORACLE_DIR/tsd"; fi
  hbase
  jars tsd
  hb create $(for p in "${profiles[@]}"; do tables "$p"; done)
  for p in "${profiles[@]}"; do
    if ! alive "tsd-$p"; then
      mkdir -p "$ORACLE_DIR/tsd/$p/cache" "$ORACLE_DIR/tsd/$p/static"
      tsd_conf "$p" > "$ORACLE_DIR/conf/tsd-$p.conf"
      launch "tsd-$p" "$ORACLE_TSD_MX" "$ORACLE_DIR/conf/tsd:$ORACLE_DIR/lib/tsd/*" \
        net.opentsdb.tools.TSDMain --config="$ORACLE_DIR/conf/tsd-$p.conf"
    fi
    wait_port "tsd-$p" "$(tsd_port "$p")" 60
  done
  status
}

# Daemons first, HBase last; by the recorded pids alone.
down() {
  local names=("$@") f n pid
  if [ ${#names[@]} -eq 0 ]; then
    for f in "$ORACLE_DIR"/state/tsd-*.pid; do
      [ -e "$f" ] && names+=("$(basename "$f" .pid)")
    done
    names+=(region hbase)
  fi
  for n in "${names[@]}"; do
    f="$ORACLE_DIR/state/$n.pid"
    [ -e "$f" ] || continue
    if alive "$n"; then
      pid=$(cut -d' ' -f1 "$f")
      kill "$pid"
      for _ in $(seq 100); do alive "$n" || break; sleep 0.2; done
      if alive "$n"; then kill -9 "$pid"; echo "$n ($pid) killed"; else echo "$n ($pid) stopped"; fi
    fi
    rm -f "$f" "$ORACLE_DIR/state/$n.port"
  done
}

status() {
  local f n any=
  for f in "$ORACLE_DIR"/state/*.pid; do
    [ -e "$f" ] || continue
    n=$(basename "$f" .pid); alive "$n" || continue
    any=1
    echo "$n pid $(cut -d' ' -f1 "$f") port $(cat "$ORACLE_DIR/state/$n.port" 2>/dev/null) log $ORACLE_DIR/log/$n.log"
  done
  [ -n "$any" ] || echo "the oracle is down"
}

command=${1:-}; shift || true
case $command in
  up) up "$@" ;;
  down) down "$@" ;;
  status) status ;;
  hb) hb "$@" ;;
  hbase) hbase ;;
  region) hbase; region ;;
  signal) signal "$@" ;;
  truth) truth "$@" ;;
  scan) tool DumpSeries "$@" ;;
  fsck) tool Fsck "$@" ;;
  uid) tool UidManager "$@" ;;
  query) tool CliQuery "$@" ;;
  search) tool Search "$@" ;;
  import) tool TextImporter "$@" ;;
  port) tsd_port "$@" ;;
  conf) tsd_conf "$@" ;;
  *) echo "usage: cargo xtask oracle up [--fresh] [PROFILE...] | down [NAME...] | status | hb COMMAND... | scan|fsck|uid|query|search|import PROFILE ..." >&2
     exit 2 ;;
esac
