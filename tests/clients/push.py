"""Sends this host's load, memory and CPU times each second through an unmodified client library, and notes what it sent.

    push.py potsdb|opentsdb-py HOST PORT SECONDS OUT

OUT gets one line a value: `metric timestamp value`; every series has the one tag host=here.
"""

import sys
import time


def samples():
    """What /proc says now, as (name, value)."""
    with open("/proc/loadavg") as f:
        for name, text in zip(["1m", "5m", "15m"], f.read().split()):
            yield f"load.{name}", float(text)
    with open("/proc/meminfo") as f:
        for line in list(f)[:8]:
            name, rest = line.split(":")
            yield "mem." + "".join(c if c.isalnum() else "_" for c in name), int(rest.split()[0])
    with open("/proc/stat") as f:
        for name, text in zip(["user", "nice", "system", "idle", "iowait"], f.readline().split()[1:]):
            yield f"cpu.{name}", int(text)


def main():
    client_name, host, port, seconds, out = sys.argv[1:]
    if client_name == "potsdb":
        import potsdb
        client = potsdb.Client(host, port=int(port), host_tag="here")
    else:
        import opentsdb
        client = opentsdb.TSDBClient(host, int(port))
    with open(out, "w") as ledger:
        for _ in range(int(seconds)):
            now = int(time.time())
            for name, value in samples():
                metric = f"{client_name}.{name}"
                client.send(metric, value, timestamp=now, host="here")
                ledger.write(f"{metric} {now} {value}\n")
            time.sleep(1)
    if client_name == "potsdb":
        client.wait()
    else:
        client.close()
        client.wait()


main()
