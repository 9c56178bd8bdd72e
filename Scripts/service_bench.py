#!/usr/bin/env python3
"""Scripts/bench --service: rows of the bench on the embedded stores, and on PostgreSQL and an S3 object store with 1, 2 and 4 servers behind
haproxy, all in one run and on one machine.

The figures of `zdc-bench --quick`, medians of the rounds, with their ratio to the embedded default. Processor time is what the servers (and
PostgreSQL with its writers) have used in `one-p50`, for each of its commits: on one machine, more processes do not make a service faster, but this
time says how many commits a machine could take. The object store keeps its data in memory.

Variables: ROWS="edit-p50 edit-p99" for some rows.
Usage: Scripts/service_bench.py FOLDER-OF-PROGRAMS [rounds]
"""
import sys

sys.dont_write_bytecode = True  # the folder of the scripts stays as it is

import json
import os
import shutil
import statistics
import subprocess
import tempfile
from pathlib import Path

from programs import Server, say
from service import Postgres, Service, Store

ROWS = os.environ.get("ROWS", "").split() or [
    "push-10k", "pull-10k", "one-p50", "edit-p50", "edit-p99", "put-1g", "get-1g", "devices-200-p50", "devices-200"]
TICKS = os.sysconf("SC_CLK_TCK")
SAMPLES = 100  # commits of one-p50 in a quick run


def measure(bin_folder, rows, server):
    with tempfile.NamedTemporaryFile(suffix=".json") as file:
        command = [bin_folder / "zdc-bench", "--quick", "--json", file.name, "--only", *rows]
        subprocess.run(command, env=dict(os.environ, ZDC_BENCH_SERVER=server), check=True, stdout=subprocess.DEVNULL)
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


def all_rows(bin_folder, url, groups):
    """The rows, and the processor time for a commit of each group of processes."""
    figures = measure(bin_folder, ROWS, url)
    before = {name: cpu_ms(pids) for name, pids in groups.items()}
    measure(bin_folder, ["one-p50"], url)
    return figures | {name: ((cpu_ms(pids) - before[name]) / SAMPLES, "ms") for name, pids in groups.items()}


def embedded(bin_folder, work):
    server = Server(bin_folder, work)
    try:
        return all_rows(bin_folder, server.url, {"cpu-servers": [server.process.pid]})
    finally:
        server.stop()


def scaled(count, bin_folder, work):
    store = Store(work / "store")
    postgres, service = None, None
    try:
        postgres = Postgres(work / "postgres")
        service = Service(bin_folder, work, postgres, store, names="abcd"[:count])
        servers = [process.pid for process in service.processes.values()]
        return all_rows(bin_folder, service.url, {"cpu-servers": servers, "cpu-database": [postgres.primary.process.pid]})
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
    bin_folder, rounds = Path(sys.argv[1]).resolve(), int(sys.argv[2]) if len(sys.argv) > 2 else 1
    results = {name: [] for name in ("embedded", 1, 2, 4)}
    for _ in range(rounds):
        for name in results:
            say(f"measuring: {name if name == 'embedded' else f'PostgreSQL and S3, servers: {name}'}")
            results[name].append(one_round(name, bin_folder))
    say(f"\n  {'':<18}{'embedded':>12}" + "".join(f"{f'{count} servers':>22}" for count in (1, 2, 4)))
    for row in [*ROWS, "cpu-servers", "cpu-database"]:
        values = {name: [run[row] for run in runs if row in run] for name, runs in results.items()}
        middle = {name: statistics.median(value for value, _ in found) for name, found in values.items() if found}
        unit = values[1][0][1]
        cells = [f"{middle[name]:.2f}" + (f" ({middle[name] / middle['embedded']:.2f})" if "embedded" in middle else "") for name in (1, 2, 4)]
        base = f"{middle['embedded']:.2f}" if "embedded" in middle else ""
        say(f"  {row + ' ' + unit:<18}{base:>12}" + "".join(f"{cell:>22}" for cell in cells))


if __name__ == "__main__":
    main()
