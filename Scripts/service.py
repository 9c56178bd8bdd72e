"""A service as an operator runs it (docs/server.md, "Several servers"), with real programs in one folder: PostgreSQL, an S3 object
store, servers, haproxy. `make test-s3` and `Scripts/bench --service` use it."""
import csv
import json
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


def as_postgres():
    """What begins a command line: PostgreSQL refuses to run as root."""
    return ["setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups"] if os.getuid() == 0 else []


class Cluster:
    """A PostgreSQL server on a Unix socket, as the user postgres where this script is root."""

    def __init__(self, folder):
        self.folder, self.settings = folder, []
        folder.mkdir(mode=0o700)
        self.programs = sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda path: int(path.parent.name))[-1]
        if os.getuid() == 0:
            os.chown(folder, pwd.getpwnam("postgres").pw_uid, -1)

    def command(self, name, *arguments):
        return [*as_postgres(), str(self.programs / name), *map(str, arguments)]

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

    def __init__(self, folder, has_standby=False, volume=None, log_volume=None):
        """volume: a folder for the tables, apart from the log; log_volume: one for the primary's log."""
        self.primary, self.standby, self.volume = Cluster(folder), None, volume
        log = ["-X", log_volume / "pg_wal"] if log_volume else []
        self.primary.run("initdb", "-D", folder / "data", "-U", "postgres", "-A", "trust", "--locale=C", "-E", "UTF8", *log)
        self.primary.start()
        where = []
        if volume:
            self.sql(f"CREATE TABLESPACE volume LOCATION '{volume}'", "postgres")
            where = ["-D", "volume"]
        self.primary.run("createdb", "-h", folder, "-U", "postgres", *where, "zdc")
        self.url = f"postgres://postgres@/zdc?host={folder}"
        if has_standby:
            self.add_standby(folder.with_name(f"{folder.name}-standby"))

    def sql(self, text, database="zdc"):
        command = self.primary.command("psql", "-h", self.primary.folder, "-U", "postgres", "-d", database, "-v", "ON_ERROR_STOP=1", "-Atqc", text)
        return subprocess.run(command, cwd=self.primary.folder, check=True, capture_output=True, text=True).stdout.strip()

    def add_standby(self, folder):
        self.standby = Cluster(folder)
        elsewhere = ["-T", f"{self.volume}={folder / 'volume'}"] if self.volume else []
        self.standby.run(
            "pg_basebackup", "-h", self.primary.folder, "-U", "postgres", "-D", folder / "data", "-R", "-X", "stream", "-c", "fast", *elsewhere)
        self.standby.start()
        self.primary.stop(signal.SIGINT)
        self.primary.settings = ["synchronous_standby_names=*"]
        self.primary.start()
        self.url = f"postgres://postgres@/zdc?host={self.primary.folder},{folder}&target_session_attrs=read-write"

    def crash(self):
        self.primary.stop()
        time.sleep(1)
        self.primary.start()

    def write_until_refused(self):
        """Begins new files of the log until there is no room for one. PostgreSQL then stops."""
        try:
            while True:
                self.sql("SELECT pg_switch_wal() FROM pg_logical_emit_message(true, 'zdc', 'x')")
        except subprocess.CalledProcessError:
            pass

    def until_ended(self, seconds):
        """Whether the primary has ended, after waiting that long for it."""
        try:
            self.primary.process.wait(seconds)
        except subprocess.TimeoutExpired:
            return False
        return True

    def fail_over(self):
        """The primary is killed and never comes back."""
        self.primary.stop(signal.SIGKILL)
        self.standby.run("pg_ctl", "promote", "-D", self.standby.folder / "data", "-s")
        self.primary, self.standby = self.standby, None

    def stop(self):
        for cluster in (self.primary, self.standby):
            if cluster:
                cluster.stop()


class Patroni:
    """Two PostgreSQL servers under patroni, which keeps in etcd who the primary is."""

    def __init__(self, folder):
        self.folder = folder
        folder.mkdir(mode=0o700)
        self.clusters = {name: Cluster(folder / name) for name in ("one", "two")}
        if os.getuid() == 0:
            os.chown(folder, pwd.getpwnam("postgres").pw_uid, -1)
        self.ports = {name: free_port() for name in ("etcd", "peers", "one", "two", "api-one", "api-two")}
        self.processes = {}
        try:
            self.begin()
        except BaseException:
            self.stop()
            raise
        ports = f"{self.ports['one']},{self.ports['two']}"
        self.url = f"postgres://postgres@/zdc?host=127.0.0.1,127.0.0.1&port={ports}&target_session_attrs=read-write"

    def begin(self):
        self.processes["etcd"] = self.start_etcd()
        for name in self.clusters:
            self.processes[name] = self.start(name)
            self.until_running(name)
        self.primary = self.clusters["one"]
        self.sql("CREATE DATABASE zdc", "postgres")
        self.until(lambda: self.members("sync_standby"), "a synchronous standby")

    def start_etcd(self):
        client, peers = (f"http://127.0.0.1:{self.ports[name]}" for name in ("etcd", "peers"))
        return self.launch("etcd", [
            "etcd", "--data-dir", self.folder / "etcd", "--name", "a", "--listen-client-urls", client, "--advertise-client-urls", client,
            "--listen-peer-urls", peers, "--initial-advertise-peer-urls", peers, "--initial-cluster", f"a={peers}"])

    def start(self, name):
        settings = {
            "scope": "zdc", "name": name, "etcd3": {"host": f"127.0.0.1:{self.ports['etcd']}"},
            "restapi": {"listen": f"127.0.0.1:{self.ports[f'api-{name}']}"},
            "bootstrap": {
                "dcs": {"ttl": 10, "loop_wait": 2, "retry_timeout": 3, "synchronous_mode": True},
                "initdb": [{"auth": "trust"}, {"locale": "C"}, {"encoding": "UTF8"}]},
            "postgresql": {
                "listen": f"127.0.0.1:{self.ports[name]}", "connect_address": f"127.0.0.1:{self.ports[name]}", "use_unix_socket": True,
                "pgpass": str(self.folder / f"{name}.pgpass"), "data_dir": str(self.clusters[name].folder / "data"), "bin_dir": str(self.clusters[name].programs),
                "authentication": {"superuser": {"username": "postgres"}, "replication": {"username": "postgres"}},
                "pg_hba": ["local all all trust", "host all all 127.0.0.1/32 trust", "host replication all 127.0.0.1/32 trust"],
                "parameters": {"unix_socket_directories": str(self.clusters[name].folder)}}}
        file = self.folder / f"{name}.json"  # every JSON is YAML
        file.write_text(json.dumps(settings))
        file.chmod(0o644)
        return self.launch(name, ["patroni", file])

    def launch(self, name, command):
        with open(self.folder / f"{name}.log", "ab") as log:
            return subprocess.Popen([*as_postgres(), *map(str, command)], cwd=self.folder, stdout=log, stderr=log, start_new_session=True)

    def members(self, role):
        """The names of the nodes with a role, as patroni sees them."""
        for name in self.clusters:
            try:
                with urllib.request.urlopen(f"http://127.0.0.1:{self.ports[f'api-{name}']}/cluster", timeout=2) as answer:
                    found = json.loads(answer.read())["members"]
                return [member["name"] for member in found if member["role"] == role and member["state"] in ("running", "streaming")]
            except (urllib.error.URLError, OSError, ValueError):
                pass
        return []

    @staticmethod
    def until(condition, what):
        for _ in range(900):
            if found := condition():
                return found
            time.sleep(0.1)
        raise SystemExit(f"patroni has not reached: {what}")

    def until_running(self, name):
        self.until(lambda: name in self.members("leader") + self.members("replica") + self.members("sync_standby"), f"{name} runs")

    def sql(self, text, database="zdc"):
        port = next(self.ports[name] for name, cluster in self.clusters.items() if cluster is self.primary)
        command = self.primary.command("psql", "-h", "127.0.0.1", "-p", port, "-U", "postgres", "-d", database, "-v", "ON_ERROR_STOP=1", "-Atqc", text)
        return subprocess.run(command, cwd=self.folder, check=True, capture_output=True, text=True).stdout.strip()

    def fail_over(self):
        """The primary's machine ends; patroni notices that, and promotes the other one."""
        leader = self.members("leader")[0]
        self.kill(leader)
        self.until(lambda: self.members("leader") not in ([], [leader]), "another leader")
        self.primary = self.clusters[self.members("leader")[0]]

    def kill(self, name):
        pid = self.clusters[name].folder / "data" / "postmaster.pid"
        self.processes[name].kill()
        self.processes[name].wait()
        if pid.exists():
            try:
                os.kill(int(pid.read_text().split()[0]), signal.SIGQUIT)
            except ProcessLookupError:
                pass

    def stop(self):
        for name in self.clusters.keys() & self.processes.keys():
            self.kill(name)
        if "etcd" in self.processes:
            end(self.processes["etcd"])


class Store:
    """The object store, and the variables that name it."""

    def __init__(self, folder):
        self.folder = folder
        folder.mkdir()
        self.run("start")
        text = subprocess.run(["bash", "-c", f". {folder}/env && env -0"], check=True, capture_output=True, text=True).stdout
        variables = dict(line.split("=", 1) for line in text.split("\0") if "=" in line)
        self.environment = {name: value for name, value in variables.items() if name.startswith("AWS_")}
        self.address = variables["ZDC_TEST_S3"]
        self.url = f"s3+http://zdc-tests@{self.address}/service"

    def run(self, action, *arguments):
        subprocess.run([ROOT / "Scripts/object-store", action, self.folder, *arguments], check=True, stdout=subprocess.DEVNULL)


class Service:
    """Servers behind haproxy."""

    def __init__(self, bin_folder, work, postgres, store, names=("a", "b")):
        self.work, self.environment = work, dict(os.environ, **store.environment)
        self.programs = {name: str(bin_folder / "zdc-server") for name in names}
        # What the next start of a server uses.
        self.databases, self.blobs = dict.fromkeys(names, postgres.url), dict.fromkeys(names, store.url)
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
                [self.programs[name], "serve", "--data", self.work / name, "--listen", f"127.0.0.1:{port}", "--origin", self.url, *self.stores(name),
                 "--registration", "open", "--max-account-calls", "100000", "--trusted-proxy", "127.0.0.1", "--stop-delay", "3", "--log-level", "debug"],
                env=self.environment, stdout=log, stderr=log)
        self.until_ready(port)

    def stores(self, name):
        return ["--database", self.databases[name], "--blobs", self.blobs[name]]

    def status(self, name):
        """What a server says to the question whether it is ready."""
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.ports[name]}/readyz", timeout=60) as answer:
                return answer.status
        except urllib.error.HTTPError as error:
            return error.code

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

    def end(self):
        for process in self.processes.values():
            end(process)

    def check(self, **variables):
        """Runs `zdc-server check`, once no server runs."""
        command = [self.programs["a"], "check", "--data", self.work / "a", *self.stores("a")]
        return subprocess.run(command, env=dict(self.environment, **variables), check=False, capture_output=True, text=True)

    def stop(self):
        self.end()
        end(self.haproxy)
