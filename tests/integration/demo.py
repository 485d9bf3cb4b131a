#!/usr/bin/env python3
"""Runs the demos of examples/ as a user would, and checks what they show.

  demo.py DEMO --runner PATH --module PATH --worker PATH --client PATH [--hello SERVICE CALL] [--program NAME=PATH …]

Every wait is for a line of output and has an end. Each demo has a namespace and a discovery port of its own.
"""

import argparse
import contextlib
import os
import queue
import re
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

ROOT = os.path.normpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
PATIENCE_S = float(os.environ.get("DEMO_PATIENCE_S", "30"))  # For one line, on a busy machine.
ZONES = {"worker-1": "eu", "worker-2": "us", "worker-3": "asia", "worker-4": "eu"}
NAMES = ["Ann", "Bob", "Cleo", "Dan", "Eve", "Finn"]


class Failed(Exception):
    pass


def check(fact, what):
    if not fact:
        raise Failed(what)
    print("ok: " + what, flush=True)


def free_port(kind):
    with socket.socket(socket.AF_INET, kind) as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def members_of(group):
    """The processes of a process group."""
    found = []
    for name in os.listdir("/proc"):
        with contextlib.suppress(ValueError, ProcessLookupError):
            if os.getpgid(int(name)) == group:
                found.append(int(name))
    return found


class Program:
    """A child whose lines can be awaited."""

    def __init__(self, name, command, env=None):
        self.name, self.lines, self.coming = name, [], queue.Queue()
        self.process = subprocess.Popen(command, env={**os.environ, **(env or {})}, stdin=subprocess.DEVNULL,
                                        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                                        start_new_session=True)
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()

    def _read(self):
        for line in self.process.stdout:
            self.coming.put(line.rstrip("\n"))
        self.coming.put(None)

    def line(self, pattern):
        """Awaits the next line in which `pattern` is found; gives the match."""
        end = time.monotonic() + PATIENCE_S
        while True:
            try:
                line = self.coming.get(timeout=max(0.0, end - time.monotonic()))
            except queue.Empty:
                raise Failed("%s did not say '%s' within %g s; it said:\n%s" % (
                    self.name, pattern, PATIENCE_S, "\n".join(self.lines))) from None
            if line is None:
                self.coming.put(None)
                raise Failed("%s ended without saying '%s'; it said:\n%s" % (self.name, pattern, "\n".join(self.lines)))
            self.lines.append(line)
            found = re.search(pattern, line)
            if found:
                return found

    def output(self):
        """Awaits its end; gives (exit code, all lines)."""
        end = time.monotonic() + PATIENCE_S
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(PATIENCE_S)
        if self.process.poll() is None:
            raise Failed("%s did not end within %g s; it said:\n%s" % (self.name, PATIENCE_S, "\n".join(self.lines)))
        self.reader.join(max(0.1, end - time.monotonic()))
        while not self.coming.empty():
            line = self.coming.get()
            if line is not None:
                self.lines.append(line)
        return self.process.returncode, self.lines

    def kill(self):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()


class Mesh:
    """The greeter's processes, in a mesh of their own."""

    def __init__(self, programs, transporter="TCP", udp_port=None):
        self.programs, self.transporter = programs, transporter
        self.namespace = "demo-" + secrets.token_hex(6)
        self.udp_port = free_port(socket.SOCK_DGRAM) if udp_port is None else udp_port
        self.running = []

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for program in reversed(self.running):
            program.kill()

    def start(self, name, command, env=None):
        program = Program(name, command, env)
        self.running.append(program)
        return program

    def worker(self, node, env=None):
        """A worker by weft-runner; returns at once."""
        settings = {"NODEID": node, "NAMESPACE": self.namespace, "TRANSPORTER": self.transporter,
                    "UDP_PORT": str(self.udp_port) if self.udp_port else "",
                    "UDP_DISCOVERY": "true" if self.udp_port else "false",
                    "METADATA": '{"zone":"%s"}' % ZONES[node]}
        config = os.path.join(ROOT, "examples", "greeter", "greeter.toml")
        return self.start(node, [self.programs.runner, "--config", config, self.programs.module],
                          {**settings, **(env or {})})

    def plain_worker(self, node):
        """The same by a program of its own."""
        return self.start(node, [self.programs.worker, "--node-id", node, "--zone", ZONES[node], *self.common()])

    def common(self):
        return ["--transporter", self.transporter, "--namespace", self.namespace, "--udp-port", str(self.udp_port)]

    def client(self, *words):
        return self.start("greeter-client", [self.programs.client, *words, *self.common()])

    def ask(self, *words):
        """Runs the client to its end; gives its lines."""
        code, lines = self.client(*words).output()
        print("$ greeter-client %s\n  %s" % (" ".join(words), "\n  ".join(lines)), flush=True)
        if code != 0:
            raise Failed("greeter-client %s ended with code %d" % (" ".join(words), code))
        return lines


def served(lines):
    """[(name, node, zone)] of the client's `calls`."""
    found = [re.match(r"Hello (\w+)[!,].* from (\S+)(?: in (\S+))?$", line) for line in lines]
    return [match.groups() for match in found if match]


def counts(line):
    """{node: calls} of a line of the client's `loop`."""
    return {node: int(count) for node, count in re.findall(r"(\S+) (\d+)", line) if node != "failed"}


# ---- the demos ----


def demo_workers(programs):
    """Three workers without any configuration, called in turn; one is a program of its own, two are modules."""
    with Mesh(programs) as mesh:
        mesh.worker("worker-1")
        mesh.worker("worker-2")
        mesh.plain_worker("worker-3")
        calls = served(mesh.ask("calls", "9", "--workers", "3"))
        check(sorted(node for _, node, _ in calls) == sorted(["worker-1", "worker-2", "worker-3"] * 3),
              "nine calls go to three workers in turn")
        check([node for _, node, _ in calls[:3]] == [node for _, node, _ in calls[3:6]], "each round in one order")
        rows = [line.split() for line in mesh.ask("nodes", "--workers", "3")]
        check(rows[0] == ["node", "zone", "state", "services"], "nodes has a column for the zone")
        for node in ("worker-1", "worker-2", "worker-3"):
            check([node, ZONES[node], "online", "greeter"] in rows, "%s is shown in zone %s" % (node, ZONES[node]))


def demo_failover(programs, transporter, retries):
    """A worker leaves, another is killed, a new one comes, all under traffic."""
    callers = 8
    with contextlib.ExitStack() as stack:
        if transporter == "nats":
            transporter = stack.enter_context(nats_server())
        mesh = stack.enter_context(Mesh(programs, "TCP" if transporter == "tcp" else transporter))
        workers = {node: mesh.worker(node) for node in ("worker-1", "worker-2", "worker-3")}
        client = mesh.client("loop", "600", "--workers", "3", "--every", "100", "--callers", str(callers),
                             *(["--retries", str(retries)] if retries else []))

        def pattern(*nodes):
            return "^" + r"\s+".join(r"%s \d+" % node for node in nodes) + r"\s+failed"

        client.line(pattern("worker-1", "worker-2", "worker-3"))
        print("three workers serve", flush=True)
        os.kill(workers["worker-1"].process.pid, signal.SIGTERM)
        client.line(pattern("worker-2", "worker-3"))
        check(workers["worker-1"].output()[0] == 0, "a worker that is asked to stop ends with code 0")
        os.kill(workers["worker-2"].process.pid, signal.SIGKILL)
        client.line(pattern("worker-3"))
        print("the others serve on", flush=True)
        mesh.worker("worker-4")
        client.line(pattern("worker-3", "worker-4"))
        client.line(pattern("worker-3", "worker-4"))
        check(True, "a new worker serves at once")
        client.kill()
        print("  " + "\n  ".join(client.lines), flush=True)
        failed = sum(int(count) for line in client.lines for count in re.findall(r"failed (\d+)$", line))
        for line in ("worker-1 has left", "worker-2 is lost", "worker-4 is here"):
            check(line in client.lines, "the client saw that " + line)
        if retries:
            check(failed == 0, "no call failed")
        else:
            check(failed <= callers, "%d calls failed: no more than were in flight" % failed)


def demo_strategies(programs):
    """The same name to the same worker; the own zone first; and a strategy that an action brings along."""
    with Mesh(programs) as mesh:
        for node in ("worker-1", "worker-2", "worker-3"):
            mesh.worker(node)
        sharded = {}
        for _ in range(2):
            lines = mesh.ask("calls", "12", "--workers", "3", "--strategy", "Shard", "--shard-key", "name")
            for name, node, _ in served(lines):
                check(sharded.setdefault(name, node) == node, "Shard: %s goes to %s" % (name, node))
        for zone, node in (("eu", "worker-1"), ("us", "worker-2"), ("asia", "worker-3")):
            calls = served(mesh.ask("calls", "4", "--workers", "3", "--strategy", "PreferZone", "--zone", zone))
            check([call[1:] for call in calls] == [(node, zone)] * 4, "PreferZone: %s is served by %s" % (zone, node))
        calls = served(mesh.ask("calls", "3", "--workers", "3", "--strategy", "PreferZone", "--zone", "moon"))
        check(len({node for _, node, _ in calls}) == 3, "PreferZone: a zone without workers is served by all")

        lines = mesh.ask("calls", "12", "--workers", "3", "--action", "greeter.visit")
        visits = {}
        for name, node, _ in served(lines):
            check(visits.setdefault(name, node) == node == sharded[name],
                  "greeter.visit, an action with Shard: %s goes to %s" % (name, node))
        check(sum("visit 2!" in line for line in lines) == len(NAMES), "whose memory of visits is whole")
        calls = served(mesh.ask("calls", "3", "--workers", "3"))
        check(len({node for _, node, _ in calls}) == 3, "greeter.hello beside it still goes to each in turn")


def demo_static(programs):
    """TCP with a list of peers, and nothing else: no server, no datagrams."""
    ports = {node: free_port(socket.SOCK_STREAM) for node in ("worker-1", "worker-2", "worker-3")}
    peers = "tcp://" + ",".join("127.0.0.1:%d/%s" % (port, node) for node, port in ports.items())
    with Mesh(programs, peers, udp_port=0) as mesh:
        for node in ports:
            mesh.worker(node)
        calls = served(mesh.ask("calls", "6", "--workers", "3"))
        check(sorted(node for _, node, _ in calls) == sorted(list(ports) * 2), "a list of peers is all they need")
    with Mesh(programs, peers, udp_port=0) as mesh:
        for node in ports:
            mesh.worker(node)
        mesh.transporter = "tcp://127.0.0.1:%d/worker-2" % ports["worker-2"]
        calls = served(mesh.ask("calls", "6", "--workers", "3"))
        check(len({node for _, node, _ in calls}) == 3, "one known peer is enough: it tells of the others")


def demo_hello(programs):
    """The README's two programs."""
    service, call = programs.hello
    with Mesh(programs) as mesh:  # Their port of discovery is the default one: only the namespace is their own.
        mesh.start("service", [service, mesh.namespace]).line("started")
        code, lines = mesh.start("call", [call, mesh.namespace]).output()
        check((code, lines) == (0, ["Hello Ann!"]), "call prints Hello Ann!")


def demo_examples(programs):
    """The small programs say what they should."""
    expected = {
        "two_nodes": ["Ann pays 42", r"refused by node second: Whose bill\? \(400 NO_CUSTOMER\)"],
        "custom_strategy": ["booked by primary", "booked by primary", "booked by standby"],
    }
    with contextlib.ExitStack() as stack:
        mesh = stack.enter_context(Mesh(programs))
        for name, lines in expected.items():
            program = mesh.start(name, [programs.program[name]])
            for line in lines:
                program.line(line)
            check(program.output()[0] == 0, "%s says what it should" % name)
        # Two nodes speak at once: what they say counts, not who is first.
        code, lines = mesh.start("events", [programs.program["events"]]).output()
        mails = sorted(re.findall(r"^(node-\d): mail about order (\d)$", "\n".join(lines), re.MULTILINE))
        check(code == 0 and [order for _, order in sorted(mails, key=lambda mail: mail[1])] == ["1", "2", "3", "3"],
              "events: an emitted order is mailed once, a broadcast one by both")
        check([node for node, _ in mails] == ["node-1"] * 2 + ["node-2"] * 2, "events: the mailers take turns")
        check(lines.count("node-2: audit of order.created from shop") == 3 and
              lines.count("node-2: audit of order.paid from shop") == 1, "events: the audit hears of all of them")
        if "nats_mesh" in programs.program:
            url = stack.enter_context(nats_server())
            for mode in ([], ["balanced"]):
                program = mesh.start("nats_mesh", [programs.program["nats_mesh"], url, *mode])
                for line in ("clock-node ticks 1", "clock-node ticks 2", "clock-node ticks 3", "clock-node is near"):
                    program.line(line)
                check(program.output()[0] == 0, "nats_mesh %ssays what it should" % "".join(w + " " for w in mode))
        code, lines = mesh.start("nats_mesh", [programs.worker, "--transporter", "carrier-pigeon://"]).output()
        check(code == 1 and "is unknown" in lines[-1], "an unknown transporter is an error")


def demo_tool(programs):
    """tools/demo itself, with what is built."""
    build = os.path.dirname(os.path.dirname(programs.module))
    with Mesh(programs) as mesh:
        demo = mesh.start("tools/demo", [os.path.join(ROOT, "tools", "demo"), "--built", build])
        code, lines = demo.output()
        print("  " + "\n  ".join(lines), flush=True)
        check(code == 0, "tools/demo ends well")
        shown = served([line.strip() for line in lines])
        check(len(shown) == 6 + 12 + 9 + 6, "it shows 33 calls")
        check(len(set(shown[6:18])) == len(NAMES), "each name at one worker")
        check([zone for _, _, zone in shown[18:27]] == ["eu"] * 3 + ["us"] * 3 + ["asia"] * 3, "each zone by its own")
        check(not members_of(demo.process.pid), "nothing is left running")


def demo_docs(programs):
    """What the docs tell to type: shell blocks behind <!-- run -->, each in a folder with the greeter's files."""
    block = re.compile(r"^<!-- run -->\n+```sh\n(.*?)^```$", re.MULTILINE | re.DOTALL)
    pages = ["README.md"] + ["docs/" + name for name in sorted(os.listdir(os.path.join(ROOT, "docs")))]
    ran = 0
    for page in pages:
        if not page.endswith(".md"):
            continue
        with open(os.path.join(ROOT, page), encoding="utf-8") as file:
            blocks = block.findall(file.read())
        for commands in blocks:
            with Mesh(programs) as mesh, tempfile.TemporaryDirectory() as folder:
                shutil.copy(os.path.join(ROOT, "examples", "greeter", "greeter.toml"), folder)
                os.symlink(programs.module, os.path.join(folder, "greeter.so"))
                # Everything by its name, but in a mesh of its own.
                for name, path, more in (("weft-runner", programs.runner, []),
                                         ("greeter-worker", programs.worker, mesh.common()[2:]),
                                         ("greeter-client", programs.client, mesh.common()[2:])):
                    shim = os.path.join(folder, name)
                    with open(shim, "w", encoding="utf-8") as file:
                        file.write('#!/bin/sh\nexec "%s" "$@" %s\n' % (path, " ".join(more)))
                    os.chmod(shim, 0o755)
                env = {"PATH": folder + ":" + os.environ["PATH"], "NAMESPACE": mesh.namespace,
                       "UDP_PORT": str(mesh.udp_port)}
                code, lines = mesh.start(page, ["bash", "-euo", "pipefail", "-c", "cd '%s'\n%s" % (folder, commands)],
                                         env).output()
                print("$ %s  %s" % (commands.replace("\n", "\n$ ")[:-2], "\n  ".join(lines)), flush=True)
                check(code == 0, "%s: what it tells to type works" % page)
                ran += 1
    check(ran > 0, "the docs tell %d things to type" % ran)


@contextlib.contextmanager
def nats_server():
    """The URL of a server of its own."""
    binary = shutil.which("nats-server") or shutil.which("nats-server", path="/usr/sbin:/usr/local/bin")
    if binary is None:
        print("nats-server is not installed")
        sys.exit(77)  # Skipped.
    with tempfile.TemporaryDirectory() as folder:
        server = Program("nats-server", [binary, "-a", "127.0.0.1", "-p", "-1", "--ports_file_dir", folder])
        try:
            port = server.line(r"Listening for client connections on 127\.0\.0\.1:(\d+)").group(1)
            server.line("Server is ready")
            yield "nats://127.0.0.1:" + port
        finally:
            server.kill()


DEMOS = {
    "workers": demo_workers,
    "failover-tcp": lambda programs: demo_failover(programs, "tcp", 5),
    "failover-tcp-no-retries": lambda programs: demo_failover(programs, "tcp", None),
    "failover-nats": lambda programs: demo_failover(programs, "nats", 5),
    "failover-nats-no-retries": lambda programs: demo_failover(programs, "nats", None),
    "strategies": demo_strategies,
    "static": demo_static,
    "hello": demo_hello,
    "examples": demo_examples,
    "tool": demo_tool,
    "docs": demo_docs,
}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("demo", choices=sorted(DEMOS))
    for name in ("runner", "module", "worker", "client"):
        parser.add_argument("--" + name, required=True, type=os.path.abspath)
    parser.add_argument("--hello", nargs=2, type=os.path.abspath)
    parser.add_argument("--program", action="append", default=[], type=lambda text: text.split("=", 1))
    programs = parser.parse_args()
    programs.program = {name: os.path.abspath(path) for name, path in programs.program}
    try:
        DEMOS[programs.demo](programs)
    except Failed as failure:
        print("FAILED: %s" % failure, flush=True)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
