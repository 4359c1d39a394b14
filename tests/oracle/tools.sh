#!/usr/bin/env bash
# tools.sh [NAME...]: plays tests/golden/tools/NAME.script on the profile `tools` of the oracle and records what
# OpenTSDB's own tools answer in NAME.golden. Run `cargo xtask oracle up tools` and `… down tsd-tools` first, with the
# same variables: the tables alone are needed, and no daemon may touch them.
#
# A script's lines: `put TABLE KEY FAMILY QUALIFIER VALUE` (hex; TABLE is tsdb or tsdb-uid) plants a cell,
# `run TOOL WORD...` runs a tool. Recorded are standard output, the first lines of the tool's own log messages that
# tell no duration, and the exit code.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
scripts=$(cd "$here/../golden/tools" && pwd)
own='UidManager|Fsck'
noise='Spooling|Thread \[|Completed fsck|Starting full|KVs analyzed|Shutting down|Gracefully|---|Processed|Corrupted UID|COLLISION'

messages() { sed -nE "s/^[0-9-]+ [0-9:,]+ (INFO |WARN |ERROR) +\[[^]]*\] ($own): /\1 /p" "$1" | grep -vE "$noise" || true; }

play() {
  local line out err code; out=$(mktemp) err=$(mktemp)
  "$here/oracle.sh" hb wipe tools-tsdb
  echo "# Recorded from OpenTSDB 2.4.1 on HBase 2.6.4 by tests/oracle/tools.sh from $1.script; not edited by hand."
  local puts=()
  flush() { [ ${#puts[@]} -eq 0 ] || printf '%s\n' "${puts[@]}" | "$here/oracle.sh" hb loop | grep -v '^ok$' >&2 || true; puts=(); }
  while IFS= read -r line; do
    case $line in
      put\ *) puts+=("put tools-${line#put }") ;;
      run\ *)
        flush
        local words; eval "words=(${line#run })"
        local tool=${words[0]}; words=("${words[@]:1}")
        [ "$tool" != uid ] || words=(--verbose "${words[@]}")
        code=0; timeout 60 "$here/oracle.sh" "$tool" tools "${words[@]}" > "$out" 2> "$err" || code=$?
        echo "== $line"
        cat "$out"; messages "$err"
        echo "-- exit $code" ;;
    esac
  done < "$scripts/$1.script"
  flush
  rm -f "$out" "$err"
}

[ $# -gt 0 ] || set -- $(cd "$scripts" && ls ./*.script | sed 's|^\./||; s|\.script$||')
for name in "$@"; do
  play "$name" > "$scripts/$name.golden.new"
  mv "$scripts/$name.golden.new" "$scripts/$name.golden"
done
