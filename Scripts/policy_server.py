"""A policy server that a script starts for itself, devices that join it, and their streams of events."""

import base64
import concurrent.futures
import contextlib
import hashlib
import http.client
import json
import os
import pathlib
import select
import socket
import subprocess
import threading
import time


class Refused(Exception):
    """An answer that is no success."""


class Server:
    """`coffer-server run` on a data directory of its own."""

    def __init__(self, program: pathlib.Path, data: pathlib.Path, environment: dict[str, str] | None = None):
        self.program, self.data = program, data
        self.environment = {
            name: value for name, value in os.environ.items() if not name.startswith("COFFER_")} | (environment or {})
        self.process: subprocess.Popen | None = None
        self.port = 0

    def administer(self, *arguments: str) -> str:
        """Runs a command and returns the value that it prints."""
        done = subprocess.run(
            [str(self.program), *arguments, "--data", str(self.data)], capture_output=True, text=True,
            env=self.environment)
        if done.returncode:
            raise Refused(f"coffer-server {arguments[0]}: {done.returncode}: {done.stderr.strip()}")
        return done.stdout.strip()

    @contextlib.contextmanager
    def running(self, *options: str, log=subprocess.DEVNULL):
        self.process = subprocess.Popen(
            [str(self.program), "run", "--data", str(self.data), "--listen", "127.0.0.1:0", *options],
            stdout=subprocess.PIPE, stderr=log, env=self.environment, text=True)
        try:
            line = self.process.stdout.readline()
            if not line:
                raise Refused(f"coffer-server run ended with {self.process.wait()}")
            self.port = int(line.rsplit(":", 1)[1])
            yield self
        finally:
            self.process.terminate()
            try:
                self.process.wait(30)
            finally:
                self.process.kill()

    def memory(self) -> int:
        """Bytes that the process holds in memory."""
        for line in pathlib.Path(f"/proc/{self.process.pid}/status").read_text().splitlines():
            if line.startswith("VmRSS:"):
                return int(line.split()[1]) << 10
        raise Refused("the server's memory is not told")


def processor_seconds(pid: int) -> float:
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


class Client:
    """One connection to a server."""

    def __init__(self, server: Server):
        self.connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)

    def ask(self, method: str, path: str, token: str | None = None, value=None, form: str | None = None):
        """The answer's JSON value, and its headers."""
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        body = form
        if value is not None:
            body = json.dumps(value)
            headers["Content-Type"] = "application/json"
        elif form is not None:
            headers["Content-Type"] = "application/x-www-form-urlencoded"
        self.connection.request(method, path, body, headers)
        answer = self.connection.getresponse()
        text = answer.read()
        if answer.status >= 400:
            raise Refused(f"{method} {path}: {answer.status}: {text.decode(errors='replace')}")
        return (json.loads(text) if text else None), answer.headers


def base64url(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def join(client: Client, owner: str) -> str:
    """Lets a new device join the company of the owner's token, and returns the device's own token."""
    # Debian's package; only what makes devices needs it.
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    key = Ed25519PrivateKey.generate()
    public = key.public_key().public_bytes(serialization.Encoding.Raw, serialization.PublicFormat.Raw)
    code = client.ask("POST", "/v1/enrollments", owner, value={})[0]["code"].split("-")[1]
    device = client.ask("POST", "/v1/enroll", value={"code": code, "deviceKey": base64url(public)})[0]
    now = int(time.time())
    header = {"alg": "EdDSA", "kid": hashlib.sha256(public).hexdigest()[:32], "typ": "JWT"}
    claims = {
        "iss": device["deviceId"], "sub": device["deviceId"], "aud": device["tenant"], "iat": now, "exp": now + 120,
        "jti": os.urandom(8).hex(),
    }
    signed = ".".join(base64url(json.dumps(part, separators=(",", ":")).encode()) for part in (header, claims))
    assertion = f"{signed}.{base64url(key.sign(signed.encode()))}"
    grant = "urn%3Aietf%3Aparams%3Aoauth%3Agrant-type%3Ajwt-bearer"
    form = f"grant_type={grant}&assertion={assertion}"
    return client.ask("POST", "/v1/device/token", form=form)[0]["access_token"]


def join_many(server: Server, owner: str, count: int, said=lambda number: None) -> list[str]:
    """The tokens of `count` new devices."""
    local, done = threading.local(), 0

    def one(_: int) -> str:
        if not hasattr(local, "client"):
            local.client = Client(server)
        return join(local.client, owner)

    tokens = []
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        for token in pool.map(one, range(count)):
            tokens.append(token)
            done += 1
            if done % 1000 == 0:
                said(done)
    return tokens


class Streams:
    """Open streams of events, all in this thread."""

    def __init__(self, server: Server):
        self.server, self.poll = server, select.epoll()
        self.sockets: dict[int, socket.socket] = {}
        self.kept: dict[int, bytes] = {}

    def open(self, tokens: list[str], at_once: int = 200) -> None:
        """Returns when each stream has told its first position."""
        waiting = 0
        for number, token in enumerate(tokens):
            stream = socket.create_connection(("127.0.0.1", self.server.port))
            stream.sendall(
                f"GET /v1/device/events HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token}\r\n\r\n".encode())
            stream.setblocking(False)
            self.sockets[stream.fileno()] = stream
            self.poll.register(stream, select.EPOLLIN)
            waiting += 1
            while waiting > (at_once if number + 1 < len(tokens) else 0):
                waiting -= len(self.heard(b"event: change", 60))

    def heard(self, text: bytes, patience: float) -> list[float]:
        """When each of the streams that tell `text` next told it."""
        moments = []
        for number, _ in self.poll.poll(patience):
            try:
                data = self.sockets[number].recv(65536)
            except BlockingIOError:
                continue
            if not data:
                raise Refused("a stream ended")
            told = self.kept.get(number, b"") + data
            if text in told:
                moments.append(time.perf_counter())
                told = told[told.rindex(text) + len(text):]
            self.kept[number] = told[-64:]
        if not moments and not patience:
            raise Refused("no stream tells anything")
        return moments

    def await_all(self, text: bytes, seconds: float = 60) -> list[float]:
        """When each stream told `text`, sorted."""
        moments: list[float] = []
        end = time.perf_counter() + seconds
        while len(moments) < len(self.sockets):
            if time.perf_counter() > end:
                raise Refused(f"{len(self.sockets) - len(moments)} streams do not tell {text.decode()}")
            moments += self.heard(text, 1)
        return sorted(moments)

    def drain(self, seconds: float) -> None:
        """Reads what comes for a while, such as signs of life."""
        end = time.perf_counter() + seconds
        while (rest := end - time.perf_counter()) > 0:
            self.heard(b"\0", rest)

    def close(self) -> None:
        for stream in self.sockets.values():
            stream.close()
        self.poll.close()
