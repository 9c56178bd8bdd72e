"""What Scripts/test-service breaks, beside the programs themselves: connections, volumes, an object store that asks for patience."""
import os
import shutil
import socket
import struct
import subprocess
import threading
import time

from programs import free_port

SOCKET = ".s.PGSQL.5432"


class Steady:
    """A device that commits every 100 ms, and the moments at which it got an answer."""

    def __init__(self, bin_folder, url, folder):
        folder.mkdir()
        self.answers = [(time.monotonic(), 0)]
        self.process = subprocess.Popen(
            [bin_folder / "zdc-bench", "worker", "steady", "--server", url, "--folder", folder], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        threading.Thread(target=self.read, daemon=True).start()
        self.until_current()

    def read(self):
        for line in self.process.stdout:
            if line.strip().isdigit():
                self.answers.append((time.monotonic(), int(line)))

    def until_current(self):
        """Waits for the next answer."""
        count = len(self.answers)
        while len(self.answers) == count:
            if self.process.poll() is not None:
                raise SystemExit(f"zdc-bench ended with {self.process.returncode}")
            time.sleep(0.01)

    def longest_pause(self, start):
        times = [moment for moment, _ in self.answers if moment >= start]
        return max((later - earlier for earlier, later in zip(times, times[1:])), default=0)

    def end(self):
        """Waits for the answers to all commits; returns how many there were."""
        self.process.stdin.close()
        self.process.wait(120)
        return self.answers[-1][1]

    def stop(self):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()


class Crowd:
    """Many devices, each of which edits a note every two seconds, until the account's other device has the edit."""

    def __init__(self, bin_folder, url, devices):
        self.process = subprocess.Popen(
            [bin_folder / "zdc-bench", "--quick", "--devices", str(devices), "--edit-seconds", "2", "--only", "devices-200"],
            env=dict(os.environ, ZDC_BENCH_SERVER=url), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        for line in self.process.stderr:
            if "devices are online" in line:
                return
        raise SystemExit(f"zdc-bench ended with {self.process.wait()}")

    def has_every_edit(self):
        said = self.process.stderr.read()
        if self.process.wait() != 0:
            print(said)
        return self.process.returncode == 0


class DatabaseProxy:
    """Between a server and PostgreSQL. While `is_breaking`, it breaks the connection of every third write at its COMMIT: before
    the database gets it, or when the database has committed and before the server gets the answer, in turn.

    It reads what libpq sends, far enough to know statements by their names."""

    def __init__(self, cluster, folder):
        self.target, self.is_breaking, self.before, self.after, self.writes = str(cluster / SOCKET), False, 0, 0, 0
        folder.mkdir()
        self.url = f"postgres://postgres@/zdc?host={folder}"
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(str(folder / SOCKET))
        self.listener.listen(64)
        self.lock = threading.Lock()
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                server, _ = self.listener.accept()
            except OSError:
                return
            database = socket.socket(socket.AF_UNIX)
            database.connect(self.target)
            link = DatabaseLink(self, server, database)
            for work in (link.requests, link.answers):
                threading.Thread(target=work, daemon=True).start()

    def fault(self):
        """What happens to the COMMIT of a write."""
        with self.lock:
            if not self.is_breaking:
                return None
            self.writes += 1
            if self.writes % 3:
                return None
            if self.writes % 2:
                self.before += 1
                return "before"
            self.after += 1
            return "after"

    def stop(self):
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()


class DatabaseLink:
    """One connection."""

    def __init__(self, proxy, server, database):
        self.proxy, self.server, self.database = proxy, server, database
        self.sent, self.has_started, self.statements, self.is_write, self.is_losing = b"", False, {}, False, False

    def requests(self):
        try:
            while data := self.server.recv(1 << 20):
                fault = self.fault(data)
                if fault == "before":
                    break
                self.is_losing = self.is_losing or fault == "after"
                self.database.sendall(data)
        except OSError:
            pass
        self.close()

    def answers(self):
        lost = b""
        try:
            while data := self.database.recv(1 << 20):
                if not self.is_losing:
                    self.server.sendall(data)
                    continue
                lost += data
                if b"COMMIT\0" in lost:
                    break
        except OSError:
            pass
        self.close()

    def close(self):
        for one in (self.server, self.database):
            try:
                one.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass

    def fault(self, data):
        self.sent += data
        found = None
        for kind, body in self.messages():
            if kind == b"P":
                name, sql = body.split(b"\0")[:2]
                self.statements[name] = sql
            if kind == b"B":
                sql = self.statements.get(body.split(b"\0")[1], b"")
                if sql.startswith(b"BEGIN"):
                    self.is_write = sql == b"BEGIN"
                if sql == b"COMMIT" and self.is_write:
                    found = self.proxy.fault()
        return found

    def messages(self):
        """The messages that are whole. The first one of a connection has no type."""
        while True:
            start = 1 if self.has_started else 0
            if len(self.sent) < start + 4:
                return
            end = start + struct.unpack("!I", self.sent[start:start + 4])[0]
            if len(self.sent) < end:
                return
            yield self.sent[:start], self.sent[start + 4:end]
            self.sent, self.has_started = self.sent[end:], True


SLOW_DOWN = """HTTP/1.1 503 Slow Down\r
Content-Type: application/xml\r
Connection: close\r
Retry-After: 1\r
\r
<?xml version="1.0" encoding="UTF-8"?><Error><Code>SlowDown</Code><Message>Please reduce your request rate.</Message></Error>
"""

STORE_PROXY = """
global
  stats socket {folder}/admin level admin
defaults
  mode http
  timeout connect 5s
  timeout client 50s
  timeout server 50s
listen store
  bind 127.0.0.1:{port}
  errorfile 503 {folder}/slow-down
  server gateway {gateway}
"""


class StoreProxy:
    """haproxy before the object store's gateway. It can answer every request as a store does that is asked too often."""

    def __init__(self, store, folder):
        self.folder, port = folder, free_port()
        folder.mkdir()
        (folder / "slow-down").write_text(SLOW_DOWN, newline="")
        (folder / "haproxy.cfg").write_text(STORE_PROXY.format(folder=folder, port=port, gateway=store.address))
        self.url = store.url.replace(store.address, f"127.0.0.1:{port}")
        haproxy = shutil.which("haproxy", path=f"{os.environ['PATH']}:/usr/sbin")
        self.process = subprocess.Popen([haproxy, "-db", "-f", folder / "haproxy.cfg"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        while not (folder / "admin").exists():
            time.sleep(0.05)

    def run(self, command):
        with socket.socket(socket.AF_UNIX) as admin:
            admin.connect(str(self.folder / "admin"))
            admin.sendall(f"{command}\n".encode())
            return admin.recv(1 << 16).decode()

    def refusals(self):
        """The answers with 503 so far."""
        rows = [line.split(",") for line in self.run("show stat").lstrip("# ").splitlines() if line]
        frontend = next(row for row in rows if row[1] == "FRONTEND")
        return int(frontend[rows[0].index("hrsp_5xx")])

    def slow_down(self, seconds):
        self.run("disable server store/gateway")
        time.sleep(seconds)
        self.run("enable server store/gateway")

    def stop(self):
        self.process.terminate()
        self.process.wait()


class SlowProxy:
    """Between a server and the object store's gateway. It holds each piece of an answer back for `delay` seconds."""

    def __init__(self, store):
        host, port = store.address.split(":")
        self.target, self.delay, self.held = (host, int(port)), 0, 0
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=64)
        self.url = store.url.replace(store.address, f"127.0.0.1:{self.listener.getsockname()[1]}")
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                server, _ = self.listener.accept()
            except OSError:
                return
            store = socket.create_connection(self.target)
            for pair in ((server, store, False), (store, server, True)):
                threading.Thread(target=self.relay, args=pair, daemon=True).start()

    def relay(self, source, target, is_answer):
        try:
            while data := source.recv(1 << 20):
                if is_answer and self.delay:
                    self.held += 1
                    time.sleep(self.delay)
                target.sendall(data)
        except OSError:
            pass
        for one in (source, target):
            try:
                one.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass

    def stop(self):
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()


class Volume:
    """A small file system in memory, which can be filled. Only root can mount one."""

    is_possible = os.getuid() == 0 and shutil.which("mount") is not None

    def __init__(self, folder, mib, owner=None):
        self.folder, self.filler = folder, folder / "filler"
        folder.mkdir()
        subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={mib}m,mode=0700", "zdc-test", folder], check=True)
        if owner is not None:
            os.chown(folder, owner, -1)

    def fill(self):
        with open(self.filler, "wb", buffering=0) as file:
            for size in (1 << 20, 4096):
                try:
                    while True:
                        file.write(bytes(size))
                except OSError:
                    pass

    def empty(self):
        self.filler.unlink()

    def stop(self):
        subprocess.run(["umount", "--lazy", self.folder], check=False)
