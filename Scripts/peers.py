#!/usr/bin/env python3
"""Scripts/bench --peers: the same work done by restic and by rclone, beside the figures of this run.

  restic  `backup`, `ls` and `restore` with a repository in a local folder
  rclone  `copy`, `lsf` and `copy` with a crypt remote on loopback: small files over its own SFTP server, 1 GiB over WebDAV (nginx), whichever
          of the two was faster

Each row says what a user would wait for: 10,000 files of 300 bytes or 1 GiB of random bytes, from the start of the program to its end, and, for this
project, what zdc-bench measures for the same work. For times and bytes a ratio below 1 means that this project needs less; for MB/s it means that
this project is slower. Medians of several runs; everything is in one folder that is removed at the end. Reads the figures of zdc-bench from the
file that is named; writes the rows beside them.

Usage: Scripts/peers.py .build/bench.json
"""
import sys

sys.dont_write_bytecode = True  # the folder of the scripts stays as it is

import filecmp
import json
import os
import secrets
import shutil
import socket
import statistics
import subprocess
import tempfile
import time
from pathlib import Path

from programs import MIB, Measured, disk_use, end, free_port, say

FILES, SIZE, RUNS = 10_000, 300, 3
LARGE = int(os.environ.get("PEERS_MIB", 1_024))


def same(a, b):
    names = sorted(path.name for path in a.iterdir())
    # By blocks: memory of this process counts as the peak of the programs that it starts.
    return names == sorted(path.name for path in b.iterdir()) and all(filecmp.cmp(a / name, b / name, shallow=False) for name in names)


# -- the peers ---------------------------------------------------------------------------------------------------------------------------------


class Restic:
    name = "restic"

    def __init__(self, work):
        self.work, self.repository = work, work / "repository"
        (work / "password").write_text("correct horse battery staple")
        self.env = dict(os.environ, RESTIC_PASSWORD_FILE=str(work / "password"), HOME=str(work))
        self.run("init")

    def run(self, *arguments, cache="cache"):
        command = ["restic", "--quiet", "--repo", self.repository, "--cache-dir", self.work / cache, *arguments]
        return Measured(command, self.env, self.work / "log")

    def put(self, source):
        return self.run("backup", source)

    def names(self):
        """On a device that has seen nothing of the repository."""
        return self.run("ls", "latest", cache=f"cache-{secrets.token_hex(4)}")

    def get(self, source, copy):
        measured = self.run("restore", "latest", "--target", copy, cache=f"cache-{secrets.token_hex(4)}")
        if not same(source, copy / source.relative_to("/")):
            raise SystemExit("restic: the files that came back are others")
        return measured

    def disk(self):
        return disk_use(self.repository)

    def stop(self):
        pass


class Rclone:
    """A crypt remote over another one. A subclass starts the server of that one and says how to reach it."""

    name = "rclone"

    def __init__(self, work):
        self.work, self.files, port = work, work / "files", free_port()
        self.files.mkdir()
        (work / "settings").touch()
        self.env = dict(
            os.environ, RCLONE_CONFIG=str(work / "settings"), RCLONE_CONFIG_SEALED_TYPE="crypt", RCLONE_CONFIG_SEALED_REMOTE="far:",
            RCLONE_CONFIG_SEALED_PASSWORD=obscured("correct horse battery staple"), **self.remote(port))
        self.server = self.serve(port)
        wait_for(port)

    def run(self, *arguments):
        return Measured(["rclone", "--transfers", "16", *arguments], self.env, self.work / "log")

    def put(self, source):
        return self.run("copy", source, f"sealed:{source.name}")

    def names(self):
        return self.run("lsf", "-R", "sealed:")

    def get(self, source, copy):
        measured = self.run("copy", f"sealed:{source.name}", copy)
        if not same(source, copy):
            raise SystemExit("rclone: the files that came back are others")
        return measured

    def disk(self):
        return disk_use(self.files)

    def stop(self):
        end(self.server)


class RcloneSFTP(Rclone):
    def remote(self, port):
        return {
            "RCLONE_CONFIG_FAR_TYPE": "sftp", "RCLONE_CONFIG_FAR_HOST": "127.0.0.1", "RCLONE_CONFIG_FAR_PORT": str(port),
            "RCLONE_CONFIG_FAR_USER": "peer", "RCLONE_CONFIG_FAR_PASS": obscured("peer"), "RCLONE_CONFIG_FAR_DISABLE_HASHCHECK": "true",
        }

    def serve(self, port):
        command = ["rclone", "serve", "sftp", "--addr", f"127.0.0.1:{port}", "--user", "peer", "--pass", "peer", self.files]
        return subprocess.Popen(command, env=self.env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


class RcloneWebDAV(Rclone):
    def remote(self, port):
        return {
            "RCLONE_CONFIG_FAR_TYPE": "webdav", "RCLONE_CONFIG_FAR_VENDOR": "other", "RCLONE_CONFIG_FAR_URL": f"http://127.0.0.1:{port}/",
        }

    def serve(self, port):
        (self.work / "t").mkdir()
        (self.work / "nginx.conf").write_text(nginx_settings(self.work, port))
        command = ["nginx", "-p", self.work, "-e", "nginx.log", "-c", self.work / "nginx.conf"]
        return subprocess.Popen(command, env=dict(os.environ, PATH=f"{os.environ['PATH']}:/usr/sbin"))


def obscured(password):
    return subprocess.run(["rclone", "obscure", password], check=True, capture_output=True, text=True).stdout.strip()


def wait_for(port):
    for _ in range(400):
        try:
            return socket.create_connection(("127.0.0.1", port)).close()
        except OSError:
            time.sleep(0.05)
    raise SystemExit("the peer's server did not start")


def nginx_settings(work, port):
    module = "/usr/lib/nginx/modules/ngx_http_dav_ext_module.so"
    user = "user root;\n" if os.getuid() == 0 else ""
    paths = "".join(f" {name}_temp_path {work}/t;\n" for name in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi"))
    return (
        f"{user}load_module {module};\ndaemon off;\npid nginx.pid;\nworker_processes 2;\nevents {{}}\nhttp {{\n access_log off;\n{paths}"
        f" client_max_body_size 0;\n sendfile on;\n server {{\n  listen 127.0.0.1:{port};\n  root {work}/files;\n  location / {{\n"
        "   dav_methods PUT DELETE MKCOL COPY MOVE;\n   dav_ext_methods PROPFIND OPTIONS;\n   create_full_put_path on;\n  }\n }\n}\n")


# -- the work ----------------------------------------------------------------------------------------------------------------------------------


def make_files(folder):
    folder.mkdir()
    block = secrets.token_bytes(SIZE + FILES)
    for number in range(FILES):
        (folder / f"{number:06}").write_bytes(block[number : number + SIZE])


def make_large(folder):
    folder.mkdir()
    with open(folder / "large", "wb") as file:
        for _ in range(LARGE):
            file.write(secrets.token_bytes(MIB))


def run_once(peer, work, source):
    """Puts the files, lists them and gets them: seconds, peak memory, and what the other side stores."""
    work.mkdir()
    tool = peer(work)
    try:
        before = tool.disk()
        put, names, get = tool.put(source), tool.names(), tool.get(source, work / "copy")
        return {"put": put.seconds, "names": names.seconds, "get": get.seconds, "mib": max(put.mib, get.mib), "disk": tool.disk() - before}
    finally:
        tool.stop()
        shutil.rmtree(work, ignore_errors=True)


def medians(peer, work, source, runs):
    all_runs = [run_once(peer, work / f"{peer.name}-{source.name}", source) for _ in range(runs)]
    return {key: statistics.median(run[key] for run in all_runs) for key in all_runs[0]}


def measure(work):
    small, large = work / "small", work / "large"
    make_files(small)
    make_large(large)
    found = {}
    for with_few, with_much in ((Restic, Restic), (RcloneSFTP, RcloneWebDAV)):
        say(f"{with_few.name}: {FILES:,} files, then {LARGE:,} MiB")
        few, much = medians(with_few, work, small, RUNS), medians(with_much, work, large, RUNS)
        found[with_few.name] = {
            "push-10k": few["put"], "skeleton-10k": few["names"], "pull-10k": few["get"], "disk-node": few["disk"] / FILES,
            "put-1g": LARGE * MIB / 1e6 / much["put"], "get-1g": LARGE * MIB / 1e6 / much["get"], "rss-client-1g": much["mib"],
        }
    return found


ROWS = {
    "push-10k": "create and send 10,000 nodes of 300 B, s", "skeleton-10k": "fresh device: their names, s", "pull-10k": "… with their contents, s",
    "disk-node": "server disk per node, B", "put-1g": "1 GiB up, MB/s", "get-1g": "1 GiB down, MB/s", "rss-client-1g": "client memory for it, MiB",
}


def show(own, peers):
    say(f"\n  {'':<44}{'ours':>9}" + "".join(f"{name:>10}{'ratio':>8}" for name in peers))
    for key, text in ROWS.items():
        line = f"  {text:<44}{own[key]:>9.2f}" if key in own else f"  {text:<44}{'-':>9}"
        for rows in peers.values():
            ratio = f"{own[key] / rows[key]:>8.2f}" if key in own and rows[key] else f"{'-':>8}"
            line += f"{rows[key]:>10.2f}{ratio}"
        say(line)


def main():
    report = Path(sys.argv[1])
    figures = json.loads(report.read_text())
    work = Path(tempfile.mkdtemp(prefix="zdc-peers-"))
    try:
        peers = measure(work)
    finally:
        shutil.rmtree(work, ignore_errors=True)
    show({figure["id"]: figure["value"] for figure in figures}, peers)
    rows = [{"id": key, "peer": name, "value": value} for name, rows in peers.items() for key, value in rows.items()]
    report.with_name("peers.json").write_text(json.dumps(rows, indent=2) + "\n")


if __name__ == "__main__":
    main()
