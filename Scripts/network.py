#!/usr/bin/env python3
"""Scripts/bench --network: a user's waiting times on a long line: 100 ms there and back, 100 Mbit/s each way.

Runs the real programs with a delaying proxy between them. Beside each row stands what the line alone needs at least: the round trips of
a new connection, and the bytes. Medians of several runs; everything is in one folder that is removed at the end.

Variables: LINE_MS for another round trip, LINE_MBIT for another rate, ZDC_BIN for a folder with programs that are built already
"""
import sys

sys.dont_write_bytecode = True  # the folder of the scripts stays as it is

import asyncio
import os
import secrets
import shutil
import statistics
import tempfile
import threading
import time
from pathlib import Path

from programs import MIB, Device, Proxy, Server, build, say

ROUND_TRIP = float(os.environ.get("LINE_MS", 100)) / 1_000
BYTES_PER_SECOND = float(os.environ.get("LINE_MBIT", 100)) * 1e6 / 8
RUNS = 3
SMALL, LARGE = 3_000, 20


class Line:
    """A TCP proxy: each byte arrives half a round trip after it was sent, and not before those in front of it could."""

    def __init__(self, port, backend):
        self.port, self.backend = port, backend
        self.free = {True: 0.0, False: 0.0}
        self.loop = asyncio.new_event_loop()

    def __enter__(self):
        self.server = None
        started = threading.Event()
        threading.Thread(target=self.run, args=(started,), daemon=True).start()
        started.wait()
        return self

    def __exit__(self, *_):
        self.loop.call_soon_threadsafe(self.loop.stop)

    def run(self, started):
        asyncio.set_event_loop(self.loop)
        self.server = self.loop.run_until_complete(asyncio.start_server(self.connected, "127.0.0.1", self.port))
        started.set()
        self.loop.run_forever()

    async def connected(self, reader, writer):
        # A connection is made at once here; on the line its first bytes would wait for a round trip.
        ready = time.monotonic() + ROUND_TRIP
        try:
            backend_reader, backend_writer = await asyncio.open_connection("127.0.0.1", self.backend)
        except OSError:
            return writer.close()
        await asyncio.gather(self.pump(reader, backend_writer, True, ready), self.pump(backend_reader, writer, False, ready))

    async def pump(self, reader, writer, is_up, ready):
        sent = asyncio.Queue(64)
        sending = asyncio.create_task(self.deliver(sent, writer))
        try:
            while data := await reader.read(32_768):
                begin = max(time.monotonic(), ready, self.free[is_up])
                self.free[is_up] = begin + len(data) / BYTES_PER_SECOND
                await sent.put((self.free[is_up] + ROUND_TRIP / 2, data))
        except OSError:
            pass
        await sent.put((0, b""))
        await sending

    async def deliver(self, sent, writer):
        while True:
            due, data = await sent.get()
            await asyncio.sleep(max(0, due - time.monotonic()))
            if not data:
                return writer.close()
            try:
                writer.write(data)
                await writer.drain()
            except OSError:
                pass  # what is still on its way is thrown away


def timed(device, *arguments):
    begun = time.monotonic()
    device.run(*arguments)
    return time.monotonic() - begun


def fill(folder, count, size):
    folder.mkdir()
    for number in range(count):
        (folder / f"{number:05}").write_bytes(secrets.token_bytes(size))


def measure(work, bin_folder):
    """Seconds of each row, by its name."""
    server = Server(bin_folder, work)
    seconds = {}
    try:
        with Line(Proxy.PORT, server.port):
            url = f"http://127.0.0.1:{Proxy.PORT}"
            near, far, words = Device("near", bin_folder, work / "near"), Device("far", bin_folder, work / "far"), work / "words"
            near.run("account", "create", "--server", server.url, "--words-file", words)
            far.run("account", "login", "--server", url, "--words-file", words)
            fill(work / "small", SMALL, 300)
            fill(work / "large", LARGE, MIB)
            for folder in ("small", "large"):
                near.run("put", work / folder, "home:/")
            far.run("sync")
            for number in range(RUNS):
                (work / f"one{number}").write_bytes(secrets.token_bytes(300))
                note = lambda name, *arguments: seconds.setdefault(name, []).append(timed(far, *arguments))
                note("put of one file", "put", work / f"one{number}", "home:/")
                note("sync with nothing new", "sync")
                note("get of one small file", "get", f"home:/small/{number:05}", work / f"out-small{number}")
                note("get of one file of 1 MiB", "get", f"home:/large/{number:05}", work / f"out-large{number}")
                note(f"get of {SMALL:,} small files", "get", "home:/small", work / f"small{number}")
                note(f"get of {LARGE} files of 1 MiB", "get", "home:/large", work / f"large{number}")
    finally:
        server.stop()
    return seconds


def least(name):
    """What the line alone takes: its connection, the list of heads, a request, and the bytes."""
    sent = {f"get of {LARGE} files of 1 MiB": LARGE * MIB, f"get of {SMALL:,} small files": SMALL * 500, "get of one file of 1 MiB": MIB}
    requests = 2 if name == "sync with nothing new" else 3
    return requests * ROUND_TRIP + sent.get(name, 0) / BYTES_PER_SECOND


def main():
    bin_folder = build()
    work = Path(tempfile.mkdtemp(prefix="zdc-network-"))
    try:
        seconds = measure(work, bin_folder)
    finally:
        shutil.rmtree(work, ignore_errors=True)
    say(f"\n  {ROUND_TRIP * 1_000:.0f} ms there and back, {BYTES_PER_SECOND * 8 / 1e6:.0f} Mbit/s     seconds   the line alone")
    for name, runs in seconds.items():
        say(f"  {name:<34} {statistics.median(runs):>8.2f} {least(name):>16.2f}")


main()
