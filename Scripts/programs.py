"""What the scripts that run the real programs share: the programs, devices, a server, a counting proxy."""
import collections
import json
import os
import re
import signal
import socket
import subprocess
import tempfile
import threading
import time
import urllib.request
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
MIB = 1 << 20
failures = []
# As the Makefile, so that C is not compiled again where a script is run by itself.
os.environ["CC"] = str(ROOT / "Scripts/optimizing-clang")
# For builds only, as the Makefile does: the order of the traits in the compiler's options is the same each time.
BUILDING = dict(os.environ, SWIFT_DETERMINISTIC_HASHING="1")


def say(text):
    print(text, flush=True)


def check(ok, what):
    say(f"  {'ok  ' if ok else 'FAIL'}  {what}")
    if not ok:
        failures.append(what)
    return ok


def table(rows):
    width = max(len(name) for name, _ in rows)
    say("")
    for name, value in rows:
        say(f"  {name:<{width}}  {value}")


def build(*products):
    """Builds release; or takes the programs from ZDC_BIN."""
    products = products or ("zdc-server", "zdc")
    if os.environ.get("ZDC_BIN"):
        return Path(os.environ["ZDC_BIN"]).resolve()
    swift = os.environ.get("SWIFT", "swift")
    say(f"building {', '.join(products)} (release); the first time takes a few minutes")
    for product in products:
        subprocess.run([swift, "build", "-c", "release", "--product", product], cwd=ROOT, check=True, env=BUILDING)
    path = subprocess.run(
        [swift, "build", "-c", "release", "--show-bin-path"], cwd=ROOT, check=True, capture_output=True, text=True
    ).stdout
    return Path(path.strip())


class Measured:
    """Seconds and peak memory of one run of a program."""

    def __init__(self, arguments, env, output):
        begun = time.monotonic()
        with open(output, "wb") as out:
            process = subprocess.Popen([str(part) for part in arguments], env=env, stdout=out, stderr=subprocess.STDOUT)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        self.seconds, self.mib = time.monotonic() - begun, usage.ru_maxrss / 1_024
        if process.returncode != 0:
            raise SystemExit(f"{' '.join(map(str, arguments))} ended with {process.returncode}:\n{Path(output).read_text(errors='replace')}")


def disk_use(folder):
    """Bytes that a folder takes on the disk."""
    return sum(path.lstat().st_blocks * 512 for path in folder.rglob("*"))


class Device:
    """One profile in its own folders; counts the peak memory of its processes."""

    def __init__(self, name, bin_folder, home):
        self.name, self.zdc = name, str(bin_folder / "zdc")
        home.mkdir()
        self.env = dict(os.environ, HOME=str(home), XDG_CONFIG_HOME=str(home / "config"), XDG_DATA_HOME=str(home / "data"))
        self.env.pop("ZDC_PROFILE", None)
        self.env.pop("ZDC_SERVER", None)
        self.peak = 0

    def start(self, *arguments, **options):
        return subprocess.Popen([self.zdc, *map(str, arguments)], env=self.env, **options)

    def wait(self, process):
        """Not process.wait(): that does not tell what this very process used."""
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        self.peak = max(self.peak, usage.ru_maxrss)

    def run(self, *arguments, stdin=None, expect=0):
        """Runs a command with --json and returns its last object."""
        with tempfile.TemporaryFile() as source, tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
            source.write((stdin or "").encode())
            source.seek(0)
            process = self.start(*arguments, "--json", stdin=source, stdout=out, stderr=err)
            self.wait(process)
            texts = [file.seek(0) or file.read().decode() for file in (out, err)]
        if process.returncode != expect:
            raise SystemExit(f"{self.name}: zdc {arguments[0]} ended with {process.returncode}: {texts[1].strip()}")
        lines = [line for line in texts[0].splitlines() if line.startswith("{")]
        return json.loads(lines[-1]) if lines else {}


class Server:
    """zdc-server in a separate process. A proxy in front of it has a port that logins name as well."""

    def __init__(self, bin_folder, work, *options):
        self.data, self.log, self.out = work / "server", work / "server.log", work / "server.out"
        started = time.monotonic()
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        origins = [option for port in (self.port, Proxy.PORT) for option in ("--origin", f"http://127.0.0.1:{port}")]
        with open(self.log, "wb") as log, open(self.out, "wb") as out:
            self.process = subprocess.Popen(
                [str(bin_folder / "zdc-server"), "serve", "--data", str(self.data), "--listen", f"127.0.0.1:{self.port}", *origins, *options],
                stdout=out, stderr=log)
        while not re.search(r"http://\S+", self.out.read_text()):
            if self.process.poll() is not None:
                raise SystemExit(f"zdc-server did not start:\n{self.log.read_text()}")
            time.sleep(0.01)
        self.seconds = time.monotonic() - started

    def metrics(self):
        """What the server counts, summed over labels."""
        with urllib.request.urlopen(f"{self.url}/metrics") as answer:
            lines = [line for line in answer.read().decode().splitlines() if line and not line.startswith("#")]
        sums = collections.Counter()
        for line in lines:
            name, value = line.rsplit(" ", 1)
            sums[name.split("{")[0]] += float(value)
        return sums

    def peak(self):
        """VmHWM in KiB, or 0 where there is no /proc."""
        try:
            return int(re.search(r"VmHWM:\s+(\d+)", Path(f"/proc/{self.process.pid}/status").read_text())[1])
        except OSError:
            return 0

    def stop(self):
        end(self.process)


def end(process):
    if process.poll() is None:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def free_port():
    """A port without a listener."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Proxy:
    """In front of a server: counts the bytes that go to it, and calls a function when a given number have passed."""

    PORT = free_port()

    def __init__(self, backend):
        self.backend, self.up, self.url = backend, 0, f"http://127.0.0.1:{self.PORT}"
        self.count, self.action, self.lock = None, None, threading.Lock()
        self.listener = socket.create_server(("127.0.0.1", self.PORT))

    def __enter__(self):
        threading.Thread(target=self.accept, daemon=True).start()
        return self

    def __exit__(self, *_):
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()

    def at(self, count, action):
        with self.lock:
            self.count, self.action = self.up + count, action

    def accept(self):
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            try:
                server = socket.create_connection(("127.0.0.1", self.backend))
            except OSError:  # there is no server now
                client.close()
                continue
            for end_of_it in (client, server):
                end_of_it.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            threading.Thread(target=self.pump, args=(client, server, True), daemon=True).start()
            threading.Thread(target=self.pump, args=(server, client, False), daemon=True).start()

    def pump(self, source, target, is_up):
        buffer = memoryview(bytearray(MIB))
        try:
            while count := source.recv_into(buffer):
                target.sendall(buffer[: self.passed(count) if is_up else count])
        except OSError:
            pass
        for socket_ in (source, target):
            try:
                socket_.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass

    def passed(self, count):
        """How much of it still goes through."""
        with self.lock:
            if self.count is not None and self.up + count >= self.count:
                count, self.count = self.count - self.up, None
                self.action()
            self.up += count
            return count


def padded(length):
    """Padmé: the length rounded up so far that only its first few bits tell anything (PROTOCOL 3.8)."""
    exponent = max(length.bit_length() - 1, 0)
    mask = (1 << max(exponent - exponent.bit_length(), 0)) - 1
    return (length + mask) & ~mask


def cipher_length(size, metadata=100):
    """The length of sealed content of a size in bytes (PROTOCOL 3.8): header, metadata, padding, tags, salt and commitment."""
    length = padded(64 + metadata + size)
    return 56 + length + (length // 16384 + 1) * 16
