#!/usr/bin/env python3
"""Compares a real server with docs/openapi.json; started by Scripts/test-api, which installs the tools.

1. The document is a valid OpenAPI document.
2. Devices with the real zdc work through a proxy; each request and answer is compared with the document.
3. Schemathesis sends what the document allows and what it forbids, with the ids and a session of those devices.

Options: the folder of zdc and zdc-server.
"""
import sys

sys.dont_write_bytecode = True  # the folder of the scripts stays as it is

import base64
import http.client
import json
import os
import re
import subprocess
import tempfile
import threading
import time
from collections import Counter
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import jsonschema
import requests
import schemathesis
import urllib3
from openapi_spec_validator import validate

from programs import MIB, ROOT, Device, Proxy, Server, check, end, failures, say

SECONDS = 400  # far more than it takes
SUCCEED = {"register", "login", "appendLink", "commit", "deliver", "putPart", "completeUpload", "records", "contents", "kept",
           "zoneCommits", "content", "acceptZone", "events", "deviceLinkAnswer", "deviceLinkNonce", "readMessages"}
DOCUMENT = json.loads((ROOT / "docs/openapi.json").read_text())


class Recorder:
    """A proxy between devices and the server that keeps every request and answer."""

    def __init__(self, port):
        self.port, self.url = port, f"http://127.0.0.1:{Proxy.PORT}"
        self.exchanges, self.lock = [], threading.Lock()
        recorder = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_):
                pass

            def forward(self):
                recorder.forward(self)

            do_GET = do_PUT = do_POST = do_DELETE = forward

        self.server = ThreadingHTTPServer(("127.0.0.1", Proxy.PORT), Handler)
        self.server.daemon_threads = True

    def __enter__(self):
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()

    def forward(self, handler):
        body = handler.rfile.read(int(handler.headers.get("Content-Length") or 0))
        backend = http.client.HTTPConnection("127.0.0.1", self.port)
        headers = {name: value for name, value in handler.headers.items() if name.lower() != "connection"}
        backend.request(handler.command, handler.path, body or None, headers)
        answer = backend.getresponse()
        received = bytearray()  # of an event stream, what has come so far
        with self.lock:
            self.exchanges.append((handler.command, handler.path, headers, body, answer, received))
        handler.close_connection = True  # so that an answer of unknown length has an end
        handler.send_response(answer.status)
        for name, value in answer.getheaders():
            if name.lower() not in ("transfer-encoding", "connection", "server", "date"):
                handler.send_header(name, value)
        handler.send_header("Connection", "close")
        handler.end_headers()
        try:
            while piece := answer.read1(65_536):
                received += piece
                handler.wfile.write(piece)
                handler.wfile.flush()
        except OSError:
            pass  # the device has seen enough of a stream
        finally:
            backend.close()

    def tokens(self, user):
        """The user's sessions, the oldest first."""
        logins = [received for _, path, _, _, answer, received in self.exchanges
                  if path in ("/v1/auth/login", "/v1/auth/device") and answer.status == 200]
        sessions = [json.loads(received) for received in logins]
        return [z_base_32(base64.b64decode(session["token"])) for session in sessions if session["userID"] == user]


def z_base_32(octets):
    bits = "".join(f"{octet:08b}" for octet in octets)
    bits += "0" * (-len(bits) % 5)
    return "".join("ybndrfg8ejkmcpqxot1uwisza345h769"[int(bits[at : at + 5], 2)] for at in range(0, len(bits), 5))


# -- real devices ------------------------------------------------------------------------------------------------------


def work_with(devices, url, work):
    """Accounts and devices, files, a shared folder, messages: as many routes as zdc uses."""
    alice, second, third, bob = devices
    words, files = work / "words", work / "files"
    alice_id = alice.run("account", "create", "--server", url, "--words-file", words)["userID"]
    bob_id = bob.run("account", "create", "--server", url, "--words-file", work / "bob-words")["userID"]
    files.mkdir()
    (files / "small.txt").write_text("small\n")
    (files / "large.bin").write_bytes(os.urandom(9 * MIB))
    alice.run("put", files, "home:/")
    second.run("account", "login", "--server", url, "--words-file", words)
    second.run("sync")
    second.run("get", "home:/files", work / "copy")
    link(alice, third, url)
    share(alice, alice_id, bob, bob_id, work)
    for text in ("one", "two"):
        bob.run("send", alice_id, "--text", text)
    with watching(second):
        (files / "small.txt").write_text("changed\n")
        alice.run("put", files, "home:/")
        alice.run("sync")
        time.sleep(2)
    alice.run("history", "home:/files/small.txt")
    alice.run("inbox", "decline", bob_id)
    alice.run("audit")
    alice.run("account", "rotate-keys")
    bob.run("sync")
    return alice_id, bob_id


def link(old, new, url):
    """A new device gets the account of another one."""
    joining = new.start("account", "login", "--server", url, "--link", "--yes", "--json", stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
    code = json.loads(joining.stdout.readline())["code"]
    old.run("devices", "link", code, "--yes")
    joining.stdout.read()
    new.wait(joining)


def share(alice, alice_id, bob, bob_id, work):
    cloud_id = alice.run("share", bob_id, "home:/files")["cloudID"]
    path = bob.run("accept", alice_id, cloud_id)["path"]
    bob.run("sync")
    bob.run("get", path, work / "shared")
    bob.run("send", alice_id, "--text", "from a member")
    alice.run("sync")
    bob.run("leave", path)


@contextmanager
def watching(device):
    """A device that follows the event stream meanwhile."""
    process = device.start("watch", stdout=subprocess.DEVNULL)
    try:
        time.sleep(2)
        yield
    finally:
        end(process)


# -- comparison --------------------------------------------------------------------------------------------------------


def templates():
    for path, methods in DOCUMENT["paths"].items():
        pattern = re.compile("^" + re.sub(r"\\\{\w+\\\}", "([^/]+)", re.escape(path)) + "$")
        for method in methods:
            yield method.upper(), path, pattern


def route(method, target):
    """The path in the document. One without parameters wins."""
    path = target.split("?")[0]
    found = [template for verb, template, pattern in TEMPLATES if verb == method and pattern.match(path)]
    return min(found, key=lambda template: template.count("{"), default=None)


TEMPLATES = list(templates())


def answer_of(exchange):
    """An exchange in the form that schemathesis compares."""
    method, target, headers, body, answer, received = exchange
    response = requests.Response()
    response.status_code, response._content = answer.status, bytes(received)
    response.raw = urllib3.HTTPResponse(headers=answer.getheaders(), status=answer.status)
    response.headers.update(dict(answer.getheaders()))
    response.request = requests.Request(method, "http://127.0.0.1" + target, headers=headers, data=body).prepare()
    response.url = response.request.url
    return response


def compare(schema, exchanges):
    """Compares what devices and server have said with the document."""
    seen, wrong = Counter(), []
    for exchange in exchanges:
        method, target, _, body, answer, _ = exchange
        path = route(method, target)
        if path is None:
            wrong.append(f"{method} {target} is not in the document")
            continue
        operation = DOCUMENT["paths"][path][method.lower()]
        seen[operation["operationId"], answer.status] += 1
        try:
            check_request(operation, body)
            schema[path][method].validate_response(answer_of(exchange))
            check_events(answer, exchange[-1])
        except Exception as error:  # of three libraries
            wrong.append(f"{method} {path} {answer.status}: {error}")
    return seen, wrong


def check_form(form, text):
    jsonschema.Draft202012Validator({**form, "components": DOCUMENT["components"]}).validate(json.loads(text))


def check_events(answer, received):
    """Compares the data of an event stream, which the document describes in words only."""
    if answer.getheader("Content-Type") != "text/event-stream":
        return
    names = {"zones": "ZoneList", "head": "HeadEvent"}
    for name, data in re.findall(rb"event: (\w+)\ndata: (.*)\n\n", received):
        check_form({"$ref": f"#/components/schemas/{names[name.decode()]}"} if name != b"message" else {"type": "object"}, data)


def check_request(operation, body):
    content = operation.get("requestBody", {}).get("content", {})
    if "application/json" in content:
        check_form(content["application/json"]["schema"], body)
    assert len(body) <= operation.get("x-body-limit", 0) or operation["operationId"] == "putPart", "the body is too long"


# -- schemathesis ------------------------------------------------------------------------------------------------------


def known(exchanges, tokens):
    """Paths and bodies that the server has accepted, by operation, for Scripts/test_api_hooks.py."""
    found = {}
    for method, target, headers, body, answer, _ in exchanges:
        path = route(method, target)
        token = {name.lower(): value for name, value in headers.items()}.get("authorization", "").removeprefix("Bearer ")
        if path is None or answer.status >= 300 or token not in ("", *tokens):
            continue
        names = re.findall(r"{(\w+)}", path)
        values = re.match("^" + re.sub(r"{\w+}", "([^/]+)", path) + "$", target.split("?")[0]).groups()
        entry = {"path": dict(zip(names, values)), "body": base64.b64encode(body).decode()}
        found.setdefault(DOCUMENT["paths"][path][method.lower()]["operationId"], []).append(entry)
    return found


def generate(url, token, work, *options):
    """Sends what the document allows and what it forbids."""
    command = [Path(sys.executable).parent / "schemathesis", "--config-file", ROOT / "Scripts/test-api.toml", "run", ROOT / "docs/openapi.json",
               "--url", url, "--header", f"Authorization: Bearer {token}", *options]
    environment = dict(os.environ, ZDC_KNOWN=str(work / "known.json"), SCHEMATHESIS_HOOKS="test_api_hooks", PYTHONPATH=str(ROOT / "Scripts"))
    try:
        return subprocess.run(list(map(str, command)), cwd=work, env=environment, timeout=SECONDS).returncode == 0
    except subprocess.TimeoutExpired:
        return False


def main(bin_folder):
    validate(DOCUMENT)
    check(True, "docs/openapi.json is an OpenAPI document")
    with tempfile.TemporaryDirectory() as folder:
        server = Server(bin_folder, Path(folder))
        try:
            run(bin_folder, server, Path(folder))
        finally:
            server.stop()
    sys.exit(1 if failures else 0)


def run(bin_folder, server, work):
    devices = [Device(name, bin_folder, work / name) for name in ("alice", "second", "third", "bob")]
    with Recorder(server.port) as recorder:
        alice, _ = work_with(devices, recorder.url, work)
    schema = schemathesis.openapi.from_dict(DOCUMENT)
    seen, wrong = compare(schema, recorder.exchanges)
    for text in dict.fromkeys(wrong):
        say(text)
    check(not wrong, f"{seen.total()} requests of devices and their answers, to {len({name for name, _ in seen})} routes")
    missing = SUCCEED - {name for name, status in seen if status < 300}
    check(not missing, f"a success of each route that takes a device's keys{': not ' + ', '.join(sorted(missing)) if missing else ''}")
    tokens = recorder.tokens(alice)
    (work / "known.json").write_text(json.dumps(known(recorder.exchanges, tokens)))
    check(generate(server.url, tokens[0], work, "--exclude-operation-id", "events", "--exclude-operation-id", "endSession"),
          "generated requests and their answers")
    check(generate(server.url, tokens[1], work, "--include-operation-id", "endSession"), "the end of a session")


main(Path(sys.argv[1]))
