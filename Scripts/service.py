"""A service as an operator runs it (docs/server.md, "Several servers"), with real programs in one folder: PostgreSQL, an S3 object
store, servers, haproxy. `make test-s3` and `Scripts/bench --service` use it."""
import csv
import os
import pwd
import shutil
import signal
import subprocess
import time
import urllib.error
import urllib.request
from pathlib import Path

from programs import ROOT, check, end, free_port

HAPROXY = """
defaults
  mode http
  timeout connect 5s
  timeout client 50s
  timeout server 50s
frontend sync
  bind 127.0.0.1:{port}
  option forwardfor
  option http-no-delay
  default_backend zdc
backend zdc
  option httpchk GET /readyz
  default-server check inter 1s fall 2 rise 1
  option redispatch 1
  retry-on conn-failure empty-response 503
  retries 2
{servers}
listen figures
  bind 127.0.0.1:{figures}
  stats enable
  stats uri /
"""


class Cluster:
    """A PostgreSQL server on a Unix socket, as the user postgres where this script is root."""

    def __init__(self, folder):
        self.folder, self.settings = folder, []
        folder.mkdir(mode=0o700)
        self.programs = sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda path: int(path.parent.name))[-1]
        if os.getuid() == 0:
            os.chown(folder, pwd.getpwnam("postgres").pw_uid, -1)

    def command(self, name, *arguments):
        as_postgres = ["setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups"] if os.getuid() == 0 else []
        return [*as_postgres, str(self.programs / name), *map(str, arguments)]

    def run(self, *arguments):
        subprocess.run(self.command(*arguments), cwd=self.folder, check=True, stdout=subprocess.DEVNULL)

    def start(self):
        options = [option for setting in ("listen_addresses=", *self.settings) for option in ("-c", setting)]
        with open(self.folder / "log", "ab") as log:
            self.process = subprocess.Popen(
                self.command("postgres", "-D", self.folder / "data", "-k", self.folder, *options), cwd=self.folder, stdout=log, stderr=log)
        ready = self.command("pg_isready", "-q", "-h", self.folder)
        while subprocess.run(ready, cwd=self.folder, check=False).returncode != 0:
            if self.process.poll() is not None:
                raise SystemExit(f"PostgreSQL did not start:\n{(self.folder / 'log').read_text()}")
            time.sleep(0.05)

    def stop(self, how=signal.SIGQUIT):
        if self.process.poll() is None:
            self.process.send_signal(how)
            self.process.wait()


class Postgres:
    """A database; with a standby, also a second cluster that confirms each commit and can take over."""

    def __init__(self, folder, has_standby=False):
        self.primary, self.standby = Cluster(folder), None
        self.primary.run("initdb", "-D", folder / "data", "-U", "postgres", "-A", "trust", "--locale=C", "-E", "UTF8")
        self.primary.start()
        self.primary.run("createdb", "-h", folder, "-U", "postgres", "zdc")
        self.url = f"postgres://postgres@/zdc?host={folder}"
        if has_standby:
            self.add_standby(folder.with_name(f"{folder.name}-standby"))

    def add_standby(self, folder):
        self.standby = Cluster(folder)
        self.standby.run("pg_basebackup", "-h", self.primary.folder, "-U", "postgres", "-D", folder / "data", "-R", "-X", "stream", "-c", "fast")
        self.standby.start()
        self.primary.stop(signal.SIGINT)
        self.primary.settings = ["synchronous_standby_names=*"]
        self.primary.start()
        self.url = f"postgres://postgres@/zdc?host={self.primary.folder},{folder}&target_session_attrs=read-write"

    def crash(self):
        self.primary.stop()
        time.sleep(1)
        self.primary.start()

    def fail_over(self):
        """The primary is killed and never comes back."""
        self.primary.stop(signal.SIGKILL)
        self.standby.run("pg_ctl", "promote", "-D", self.standby.folder / "data", "-s")
        self.primary, self.standby = self.standby, None

    def stop(self):
        for cluster in (self.primary, self.standby):
            if cluster:
                cluster.stop()


class Store:
    """The object store, and the variables that name it."""

    def __init__(self, folder):
        self.folder = folder
        folder.mkdir()
        self.run("start")
        text = subprocess.run(["bash", "-c", f". {folder}/env && env -0"], check=True, capture_output=True, text=True).stdout
        variables = dict(line.split("=", 1) for line in text.split("\0") if "=" in line)
        self.environment = {name: value for name, value in variables.items() if name.startswith("AWS_")}
        self.url = f"s3+http://zdc-tests@{variables['ZDC_TEST_S3']}/service"

    def run(self, action):
        subprocess.run([ROOT / "Scripts/object-store", action, self.folder], check=True, stdout=subprocess.DEVNULL)


class Service:
    """Servers behind haproxy."""

    def __init__(self, bin_folder, work, postgres, store, names=("a", "b")):
        self.program, self.work, self.environment = str(bin_folder / "zdc-server"), work, dict(os.environ, **store.environment)
        self.stores = ["--database", postgres.url, "--blobs", store.url]
        self.ports = {name: free_port() for name in (*names, "port", "figures")}
        self.url = f"http://127.0.0.1:{self.ports['port']}"
        servers = "\n".join(f"  server {name} 127.0.0.1:{self.ports[name]}" for name in names)
        (work / "haproxy.cfg").write_text(HAPROXY.format(**self.ports, servers=servers))
        self.processes = {}
        for name in names:
            self.start(name)
        haproxy = shutil.which("haproxy", path=f"{os.environ['PATH']}:/usr/sbin")
        self.haproxy = subprocess.Popen([haproxy, "-db", "-f", work / "haproxy.cfg"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.until_ready(self.ports["port"])

    def start(self, name):
        port = self.ports[name]
        with open(self.work / f"{name}.log", "ab") as log:
            self.processes[name] = subprocess.Popen(
                [self.program, "serve", "--data", self.work / name, "--listen", f"127.0.0.1:{port}", "--origin", self.url, *self.stores,
                 "--registration", "open", "--max-account-calls", "1000", "--trusted-proxy", "127.0.0.1", "--stop-delay", "3", "--log-level", "debug"],
                env=self.environment, stdout=log, stderr=log)
        self.until_ready(port)

    @staticmethod
    def until_ready(port):
        for _ in range(600):
            try:
                with urllib.request.urlopen(f"http://127.0.0.1:{port}/readyz") as answer:
                    if answer.status == 200:
                        return
            except (urllib.error.URLError, OSError):
                pass
            time.sleep(0.1)
        raise SystemExit(f"the server on port {port} did not become ready")

    def restart(self, name):
        process = self.processes[name]
        process.send_signal(signal.SIGTERM)
        check(process.wait(60) == 0, f"server {name} ended by SIGTERM with 0")
        self.start(name)

    def kill(self, name):
        self.processes[name].kill()
        self.processes[name].wait()

    def errors(self):
        """The answers with a status from 500 that clients got."""
        return self.figure("hrsp_5xx")

    def received(self):
        """The bytes that clients have sent."""
        return self.figure("bin")

    def figure(self, column):
        with urllib.request.urlopen(f"http://127.0.0.1:{self.ports['figures']}/;csv") as answer:
            rows = csv.DictReader(answer.read().decode().lstrip("# ").splitlines())
            return sum(int(row[column] or 0) for row in rows if row["svname"] == "FRONTEND" and row["pxname"] == "sync")

    def check(self):
        """What `zdc-server check` says, once no server runs."""
        for process in self.processes.values():
            end(process)
        command = [self.program, "check", "--data", self.work / "a", *self.stores]
        return subprocess.run(command, env=self.environment, check=False, stdout=subprocess.DEVNULL).returncode

    def stop(self):
        for process in [*self.processes.values(), self.haproxy]:
            end(process)
