#!/usr/bin/env python3
"""Scripts/bench --service: rows of the bench on the embedded stores, and on PostgreSQL and an S3 object store with 1, 2 and 4 servers behind
haproxy, all in one run and on one machine.

The figures of `zdc-bench --quick`, medians of the rounds, with their ratio to the embedded default. The object store keeps its data in memory.

  200, 1000   so many devices, two for each account: an edit until the other one has it. They make 100 commits a second together, and
              the commit of an edit is sent to one other device
  zones       1,000 accounts with one device each, which commit as fast as they can, each in its own zone
  cpu         the processor time that the servers, and PostgreSQL with its writers, have used for each commit in `one-p50`, and in
              `zones`. On one machine, more processes do not make a service faster, but this time says how many commits a machine takes

Variables: ROWS="edit-p50 zones" for some rows; DEVICES="200 1000"; ZONES=1000; SERVERS="1 4" for some of the columns.
Usage: Scripts/service_bench.py FOLDER-OF-PROGRAMS [rounds]
"""
import sys

sys.dont_write_bytecode = True  # the folder of the scripts stays as it is

import json
import os
import shutil
import signal
import statistics
import subprocess
import tempfile
from pathlib import Path

from programs import Server, say
from service import Postgres, Service, Store

DEVICES = [int(count) for count in os.environ.get("DEVICES", "200 1000").split()]
ZONES = int(os.environ.get("ZONES", "1000"))
ROWS = os.environ.get("ROWS", "").split() or ["push-10k", "pull-10k", "one-p50", "edit-p50", "edit-p99", "put-1g", "get-1g", "devices", "zones"]
TICKS = os.sysconf("SC_CLK_TCK")
SAMPLES = 100  # commits of one-p50 in a quick run
ZONE_COMMITS = 10  # commits in each zone
COMMITS_A_SECOND = 100  # of all devices together


def measure(bin_folder, rows, server, *options, on_remark=lambda remark: None):
    """Runs zdc-bench; `on_remark` gets each line that it writes to standard error."""
    with tempfile.NamedTemporaryFile(suffix=".json") as file:
        command = [bin_folder / "zdc-bench", "--quick", "--json", file.name, *map(str, options), "--only", *rows]
        process = subprocess.Popen(
            command, env=dict(os.environ, ZDC_BENCH_SERVER=server), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        for line in process.stderr:
            on_remark(line.strip())
        if process.wait() != 0:
            raise SystemExit(f"zdc-bench {' '.join(rows)} ended with {process.returncode}")
        text = Path(file.name).read_text()
    return {figure["id"]: (figure["value"], figure["unit"]) for figure in json.loads(text)}


def descendants(pid):
    """A process and all below it."""
    found = [pid]
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        for child in task.read_text().split():
            found += descendants(int(child))
    return found


def cpu_ms(pids):
    """The processor time of processes and of those below them, in ms."""
    ticks = 0
    for pid in {below for pid in pids for below in descendants(pid)}:
        fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
        ticks += int(fields[11]) + int(fields[12])
    return ticks * 1_000 / TICKS


def plain_rows(bin_folder, url):
    rows = [row for row in ROWS if row not in ("devices", "zones")]
    return measure(bin_folder, rows, url) if rows else {}


def cpu_of_one(bin_folder, url, groups):
    before = {name: cpu_ms(pids) for name, pids in groups.items()}
    measure(bin_folder, ["one-p50"], url)
    return {f"cpu-{name}": ((cpu_ms(pids) - before[name]) / SAMPLES, "ms") for name, pids in groups.items()}


def devices(bin_folder, url, count):
    options = ["--devices", count, "--edit-seconds", max(1, count // COMMITS_A_SECOND)]
    found = measure(bin_folder, ["devices-200-p50", "devices-200"], url, *options)
    return {f"{count} p50": found["devices-200-p50"], f"{count} p99": found["devices-200"]}


def zones(bin_folder, url, groups):
    moments = {}

    def on_remark(remark):
        for moment in ("begin", "end"):
            if remark.endswith(f"zones: {moment}"):
                moments[moment] = {name: cpu_ms(pids) for name, pids in groups.items()}

    figures = {"zones": measure(bin_folder, ["zones-1000"], url, "--zones", ZONES, on_remark=on_remark)["zones-1000"]}
    used = {name: moments["end"][name] - moments["begin"][name] for name in groups}
    return figures | {f"zones cpu-{name}": (ms / (ZONES * ZONE_COMMITS), "ms") for name, ms in used.items()}


def all_rows(bin_folder, url, groups):
    """The rows, and the processor time for a commit of each group of processes."""
    figures = plain_rows(bin_folder, url)
    if "one-p50" in ROWS:
        figures |= cpu_of_one(bin_folder, url, groups)
    for count in DEVICES if "devices" in ROWS else []:
        figures |= devices(bin_folder, url, count)
    return figures | (zones(bin_folder, url, groups) if "zones" in ROWS else {})


def embedded(bin_folder, work):
    # As those behind haproxy: all devices have one address.
    server = Server(bin_folder, work, "--max-account-calls", "100000", "--trusted-proxy", "127.0.0.1")
    try:
        return all_rows(bin_folder, server.url, {"servers": [server.process.pid]})
    finally:
        server.stop()


def scaled(count, bin_folder, work):
    store = Store(work / "store")
    postgres, service = None, None
    try:
        postgres = Postgres(work / "postgres")
        service = Service(bin_folder, work, postgres, store, names="abcd"[:count])
        servers = [process.pid for process in service.processes.values()]
        return all_rows(bin_folder, service.url, {"servers": servers, "database": [postgres.primary.process.pid]})
    finally:
        for part in (service, postgres):
            if part:
                part.stop()
        store.run("stop")


def one_round(name, bin_folder):
    work = Path(tempfile.mkdtemp(prefix="zdc-service-"))
    work.chmod(0o755)  # PostgreSQL has another user
    try:
        return embedded(bin_folder, work) if name == "embedded" else scaled(name, bin_folder, work)
    finally:
        shutil.rmtree(work, ignore_errors=True)


def main():
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    bin_folder, rounds = Path(sys.argv[1]).resolve(), int(sys.argv[2]) if len(sys.argv) > 2 else 1
    columns = os.environ.get("SERVERS", "embedded 1 2 4").split()
    results = {"embedded" if name == "embedded" else int(name): [] for name in columns}
    counts = [name for name in results if name != "embedded"]
    for _ in range(rounds):
        for name in results:
            say(f"measuring: {name if name == 'embedded' else f'PostgreSQL and S3, servers: {name}'}")
            results[name].append(one_round(name, bin_folder))
            say("  " + ", ".join(f"{row}: {value:.2f} {unit}" for row, (value, unit) in results[name][-1].items()))
    say(f"\n  {'':<22}{'embedded':>12}" + "".join(f"{f'{count} servers':>22}" for count in counts))
    for row in dict.fromkeys(row for runs in results.values() for run in runs for row in run):
        values = {name: [run[row] for run in runs if row in run] for name, runs in results.items()}
        middle = {name: statistics.median(value for value, _ in found) for name, found in values.items() if found}
        unit = next(found[0][1] for found in values.values() if found)
        cells = [f"{middle[name]:.2f}" + (f" ({middle[name] / middle['embedded']:.2f})" if "embedded" in middle else "") for name in counts]
        base = f"{middle['embedded']:.2f}" if "embedded" in middle else ""
        say(f"  {row + ' ' + unit:<22}{base:>12}" + "".join(f"{cell:>22}" for cell in cells))


if __name__ == "__main__":
    main()
