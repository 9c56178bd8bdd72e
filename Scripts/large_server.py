#!/usr/bin/env python3
"""Scripts/bench --large-server: what an operator does with a large server, with the time, the peak memory and the size of each step.

A server on the embedded stores is filled by real clients: each account has folders of twenty nodes, files of 300 bytes, and one large file. The
server is backed up while it runs, once more while accounts are added, then stopped and checked. The backup is verified, restored into another
folder, migrated to PostgreSQL and an S3 object store, and back into a folder. Each copy is checked, and must have the same users, zones, commits,
nodes and content as the backup. In the end, a new device gets a user's files from the migrated server and from the backup.

The object store keeps its data in memory. Everything is in one folder that is removed at the end; two million nodes need 40 GB.

Variables: DATA=FOLDER, a data folder that a run with KEEP=1 has left, and that is filled already; KEEP=1 keeps the folder.
Usage: Scripts/large_server.py FOLDER-OF-PROGRAMS [USERS [NODES-OF-EACH]]
"""
import sys

sys.dont_write_bytecode = True  # the folder of the scripts stays as it is

import json
import os
import shutil
import subprocess
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path

from programs import Device, Measured, Server, check, disk_use, end, failures, free_port, say
from service import Postgres, Service, Store

COUNTS = ("users", "zones", "commits", "nodes", "records", "contents", "contentBytes")


class Operator:
    """Runs zdc-server, and prints what each run took."""

    def __init__(self, bin_folder, work, environment):
        self.program, self.work, self.environment = bin_folder / "zdc-server", work, environment

    def run(self, what, *arguments, size_of=None):
        """Returns the summary that the command prints."""
        output = self.work / "output"
        run = Measured([self.program, *arguments, "--json"], self.environment, output)
        size = f"{disk_use(size_of) / 1e6:>10.0f} MB" if size_of else ""
        say(f"  {what:<52}{run.seconds:>9.1f} s{run.mib:>8.0f} MiB{size}")
        return json.loads(output.read_text().splitlines()[-1])["summary"]


def counts(summary):
    return {name: summary[name] for name in COUNTS}


def fill(bin_folder, work, server, users, nodes):
    subprocess.run(
        [bin_folder / "zdc-bench", "fill", "--server", server.url, "--folder", work / "clients", "--accounts", str(users), "--nodes", str(nodes),
         "--words", work / "words"], check=True)


def backed_up(operator, bin_folder, work, users, nodes):
    """Fills a server, and backs it up. Returns what the verified backup has."""
    server = Server(bin_folder, work)
    try:
        if not os.environ.get("DATA"):
            begun = time.monotonic()
            fill(bin_folder, work, server, users, nodes)
            say(f"  {users:,} accounts with {nodes:,} nodes each were created in {time.monotonic() - begun:.0f} s")
        operator.run("backup, the server runs", "backup", work / "backup", "--data", server.data, size_of=work / "backup")
        more = subprocess.Popen(
            [bin_folder / "zdc-bench", "fill", "--server", server.url, "--folder", work / "more", "--accounts", "40", "--nodes", str(nodes),
             "--words", work / "other-words"], stderr=subprocess.DEVNULL)
        operator.run("the same once more, while accounts are added", "backup", work / "backup", "--data", server.data)
        check(more.wait() == 0, "no client noticed the backup")
    finally:
        server.stop()
    original = operator.run("check", "check", "--data", server.data, size_of=server.data)
    backup = operator.run("verify the backup", "verify", work / "backup")
    check(original["clean"] and backup["clean"], f"the server and its backup are sound: {backup}")
    return counts(backup)


def moved(operator, work, wanted, postgres, store):
    restored, service, back = work / "restored", work / "service", work / "back"
    outside = ["--database", postgres.url, "--blobs", store.url]
    for what, command, where in (
        ("restore into another folder", ["restore", work / "backup", "--to-data", restored, "--deletions", work / "server/deletions"], ["--data", restored]),
        ("migrate to PostgreSQL and the object store",
         ["migrate", "--from-data", restored, "--to-data", service, "--to-database", postgres.url, "--to-blobs", store.url],
         ["--data", service, *outside]),
        ("migrate back into a folder",
         ["migrate", "--from-data", service, "--from-database", postgres.url, "--from-blobs", store.url, "--to-data", back], ["--data", back])):
        operator.run(what, *command, size_of=where[1] if len(where) == 2 else postgres.primary.folder)
        summary = operator.run("  check", "check", *where)
        check(summary["clean"] and counts(summary) == wanted, f"{what}: everything is there")


def device_gets_files(name, bin_folder, work, arguments, environment, nodes):
    """A new device of a user has all of the user's files."""
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    command = [bin_folder / "zdc-server", "serve", "--listen", f"127.0.0.1:{port}", *arguments]
    with open(work / f"{name}.log", "wb") as log:
        process = subprocess.Popen(command, env=environment, stdout=log, stderr=log)
    try:
        Service.until_ready(port)
        device, files = Device(name, bin_folder, work / f"device-{name}"), work / f"files-{name}"
        device.run("account", "login", "--server", url, stdin=(work / "words").read_text())
        device.run("sync")
        device.run("get", "home:/", files)
        found = [path for path in files.rglob("*") if path.is_file()]
        sizes = sorted(path.stat().st_size for path in found)
        check(len(found) >= nodes - nodes // 20 and sizes[-1] == 70_000, f"a new device gets its {len(found)} files from the {name} server")
    finally:
        end(process)


def main():
    bin_folder = Path(sys.argv[1]).resolve()
    users, nodes = (int(sys.argv[i]) if len(sys.argv) > i else default for i, default in ((2, 10_000), (3, 200)))
    work = Path(tempfile.mkdtemp(prefix="zdc-large-"))
    work.chmod(0o755)  # PostgreSQL has another user
    with ExitStack() as stack:
        if not os.environ.get("KEEP"):
            stack.callback(shutil.rmtree, work, ignore_errors=True)
        if data := os.environ.get("DATA"):
            shutil.copytree(data, work / "server")
            shutil.copy(Path(data).with_name("words"), work / "words")
        store = Store(work / "store")
        stack.callback(store.run, "stop")
        postgres = Postgres(work / "postgres")
        stack.callback(postgres.stop)
        environment = dict(os.environ, **store.environment)
        operator = Operator(bin_folder, work, environment)
        wanted = backed_up(operator, bin_folder, work, users, nodes)
        moved(operator, work, wanted, postgres, store)
        device_gets_files("migrated", bin_folder, work, ["--data", work / "service", "--database", postgres.url, "--blobs", store.url], environment, nodes)
        device_gets_files("restored", bin_folder, work, ["--data", work / "restored"], environment, nodes)
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
