"""A proxy in front of zdc-server that answers some requests itself.

proxy.py PORT-FILE UPSTREAM-FILE RULE-FILE: listens on a free port and writes it to PORT-FILE. Each request goes to the
port in UPSTREAM-FILE, unless a line of RULE-FILE fits it: "METHOD PART-OF-PATH ACTION", where ACTION is "STATUS BODY" (answer
that), "lose" (forward it, then close the connection without the answer) or "half" (pass half of the answer, then close). The file `requests` gets a line for each request.
"""

import http.client
import http.server
import os
import sys

port_file, upstream_file, rule_file = sys.argv[1:]


def text(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def rule(method, path):
    if not os.path.exists(rule_file):
        return None
    for line in text(rule_file).splitlines():
        wanted, part, action = line.split(" ", 2)
        if wanted == method and part in path:
            return action
    return None


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def forward(self, body):
        upstream = http.client.HTTPConnection("127.0.0.1", int(text(upstream_file)))
        headers = {name: value for name, value in self.headers.items() if name.lower() not in ("host", "content-length", "transfer-encoding")}
        upstream.request(self.command, self.path, body, headers)
        answer = upstream.getresponse()
        return answer.status, answer.getheaders(), answer.read()

    def reply(self, status, headers, body, sent):
        self.send_response(status)
        for name, value in headers:
            if name.lower() not in ("content-length", "transfer-encoding", "connection"):
                self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body[:sent])
        self.wfile.flush()

    def body(self):
        if self.headers.get("Transfer-Encoding", "").lower() != "chunked":
            return self.rfile.read(int(self.headers.get("Content-Length") or 0))
        body = b""
        while size := int(self.rfile.readline(), 16):
            body += self.rfile.read(size)
            self.rfile.readline()
        self.rfile.readline()
        return body

    def handle_request(self):
        body = self.body()
        with open("requests", "a", encoding="utf-8") as log:
            log.write(f"{self.command} {self.path}\n")
        action = rule(self.command, self.path)
        if action and action[0].isdigit():
            status, answer = action.split(" ", 1)
            return self.reply(int(status), [("Content-Type", "application/json")], answer.encode(), len(answer))
        status, headers, answer = self.forward(body)
        if action == "lose":
            self.close_connection = True
            return self.connection.close()
        self.reply(status, headers, answer, len(answer) // 2 if action == "half" else len(answer))
        if action == "half":
            self.close_connection = True

    do_GET = do_POST = do_PUT = do_DELETE = do_HEAD = handle_request

    def log_message(self, *arguments):
        pass


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
with open(port_file + ".new", "w", encoding="utf-8") as file:
    file.write(str(server.server_address[1]))
os.rename(port_file + ".new", port_file)
server.serve_forever()
