#!/usr/bin/env python3
"""The weft command line against real workers over TCP (and NATS, where there is a server).

  cli_test.py WEFT WORKER DOC     DOC is docs/cli.md: its examples are run, and must give what they show
"""

import json
import os
import pty
import re
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import unittest

WEFT, WORKER, DOC = sys.argv[1:4]
WAIT_S = 60  # For what happens at once on an idle machine.


class Process:
    """A child whose lines are awaited."""

    def __init__(self, *command, **options):
        self.child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, **options)

    def await_line(self, pattern):
        """The next line that fits, as a match."""
        while True:
            ready, _, _ = select.select([self.child.stdout], [], [], WAIT_S)
            line = self.child.stdout.readline() if ready else ""
            if not line:
                raise AssertionError(f"{self.child.args[0]} never said {pattern!r}")
            found = re.search(pattern, line)
            if found:
                return found

    def end(self):
        self.child.terminate()
        try:
            self.child.wait(WAIT_S)
        finally:
            self.child.kill()
            self.child.stdin.close()
            self.child.stdout.close()


def clean_environment(**changes):
    names = ("TRANSPORTER", "NAMESPACE", "SERIALIZER", "TCP_URLS", "UDP_PORT", "UDP_DISCOVERY", "NO_COLOR")
    environment = {name: value for name, value in os.environ.items() if name not in names}
    return {**environment, "TERM": "xterm", "LC_ALL": "C.UTF-8", **changes}


class Mesh:
    """Two workers that know each other over TCP, without UDP: the test meets nobody else."""

    def __init__(self):
        self.first = Process(WORKER, "worker-1", "eu", "TCP")
        self.urls = f"127.0.0.1:{self.first.await_line('ready ([0-9]+)')[1]}/worker-1"
        self.second = Process(WORKER, "worker-2", "us", "TCP", self.urls)
        self.second.await_line("ready")
        self.environment = clean_environment(TCP_URLS=self.urls, UDP_DISCOVERY="false")

    def weft(self, *words, timeout="30", **options):
        if timeout is not None:
            words = (words[0], "--timeout", timeout, *words[1:])
        options.setdefault("env", self.environment)
        return subprocess.run((WEFT, *words), capture_output=True, text=True, timeout=2 * WAIT_S, **options)

    def end(self):
        self.second.end()
        self.first.end()


class Cli(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.mesh = Mesh()
        # Both workers are known to each other before anything is counted.
        for _ in range(WAIT_S):
            if len(json.loads(cls.mesh.weft("nodes", "--json").stdout)) == 2:
                return
        raise AssertionError("the workers do not find each other")

    @classmethod
    def tearDownClass(cls):
        cls.mesh.end()

    def weft(self, *words, code=0, **options):
        done = self.mesh.weft(*words, **options)
        self.assertEqual(done.returncode, code, f"{words}: {done.stdout}{done.stderr}")
        return done

    def json(self, command, *words, **options):
        return json.loads(self.weft(command, "--json", *words, **options).stdout)

    # ---- call ----

    def test_call_gives_the_result_as_json(self):
        self.assertEqual(self.weft("call", "greeter.hello", "--name", "Bob").stdout, '"Hello Bob!"\n')
        self.assertEqual(self.json("call", "math.add", "--a", "5", "--b", "3"), 8)
        self.assertEqual(self.json("call", "math.add", '{"a":5,"b":-3}'), 2)

    def test_call_types_members_as_written(self):
        words = ("--code", '"0033"', "--hex", "0x1f", "--age", "42", "--tag[]", "a", "--addr.city", "X", "--on", "--no-off")
        expected = {"id": 1, "code": "0033", "hex": "0x1f", "age": 42, "tag": ["a"], "addr": {"city": "X"}, "on": True,
                    "off": False}
        self.assertEqual(self.json("call", "users.create", *words), expected)
        self.assertEqual(self.json("call", "users.create", "--", "--timeout", "3"), {"id": 1, "timeout": 3})

    def test_call_reads_params_from_standard_input_and_files(self):
        self.assertEqual(self.json("call", "math.add", "-", input='{"a":1,"b":1}'), 2)
        with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
            file.write('{"a":2,"b":2}')
            file.flush()
            self.assertEqual(self.json("call", "math.add", "@" + file.name), 4)
        self.assertIn("cannot be read", self.weft("call", "math.add", "@/nowhere/at/all", code=2).stderr)

    def test_call_on_a_node_with_meta(self):
        for node in ("worker-1", "worker-2"):
            answer = self.json("call", "greeter.whoami", "--node", node, "--meta", '{"user":"admin"}')
            self.assertEqual(answer, {"node": node, "meta": {"user": "admin"}})

    def test_call_of_an_internal_action(self):
        self.assertEqual(self.json("call", "$node.list", "--node", "worker-1")[0]["id"], "worker-1")
        ids = [node["id"] for node in self.json("call", "$node.list")]
        self.assertTrue({"worker-1", "worker-2"} < set(ids), ids)

    def test_a_failing_call_tells_the_error_with_code_1(self):
        done = self.weft("call", "greeter.fail", code=1)
        self.assertEqual(done.stdout, "")
        self.assertRegex(done.stderr, r"no tea today \(code 418, type TEAPOT, node worker-[12]\)")
        self.assertIn('"cups": 0', done.stderr)
        error = self.json("call", "greeter.fail", code=1)["error"]
        self.assertEqual((error["message"], error["code"], error["type"], error["data"]),
                         ("no tea today", 418, "TEAPOT", {"cups": 0}))

    def test_wrong_params_are_the_callees_error(self):
        done = self.weft("call", "greeter.hello", code=1)
        self.assertIn("ValidationError", done.stderr)
        self.assertIn("name", done.stderr)

    def test_an_unknown_action_of_a_known_service_is_told_at_once_with_what_there_is(self):
        done = self.weft("call", "greeter.helo", code=3, timeout="600")
        self.assertIn("greeter.hello", done.stderr)
        self.assertIn("Did you mean 'greeter.hello'?", done.stderr)

    def test_an_unknown_service_is_waited_for_until_the_timeout(self):
        done = self.weft("call", "gretter.hello", code=3, timeout="1")
        self.assertIn("Services: greeter, math, users.", done.stderr)
        self.assertIn("Did you mean 'greeter.hello'?", done.stderr)
        self.assertEqual(self.json("call", "nope.x", code=3, timeout="1")["error"]["name"], "ServiceNotFoundError")

    def test_a_call_waits_for_its_service(self):
        # The worker stands at an address that the command knows, and starts after it.
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        urls = f"127.0.0.1:{port}/late"
        environment = {**self.mesh.environment, "TCP_URLS": urls}
        command = Process(WEFT, "call", "greeter.whoami", "--json", "--timeout", str(WAIT_S), "--log-level", "info",
                          env=environment, stderr=subprocess.PIPE)
        while "started" not in (line := command.child.stderr.readline()):
            self.assertNotEqual(line, "")
        worker = Process(WORKER, "late", "eu", "TCP", urls)
        try:
            self.assertEqual(json.loads(command.await_line("^{.*")[0])["node"], "late")
        finally:
            worker.end()
            command.end()
            command.child.stderr.close()

    def test_an_unknown_node_is_told_with_those_there_are(self):
        self.assertIn("Nodes: worker-1, worker-2.",
                      self.weft("call", "greeter.hello", "--node", "nobody", code=3, timeout="1").stderr)

    def test_a_call_times_out_with_code_1(self):
        error = self.json("call", "greeter.ponder", code=1, timeout="1")["error"]
        self.assertEqual(error["name"], "RequestTimeoutError")
        self.assertIn("--timeout", error["hint"])

    def test_bad_json_is_told_before_anything_is_joined(self):
        done = self.weft("call", "math.add", "{bad", code=2)
        self.assertIn("is no JSON", done.stderr)
        self.assertIn("--help", done.stderr)

    # ---- lists ----

    def test_nodes(self):
        rows = self.json("nodes")
        self.assertEqual([row["id"] for row in rows], ["worker-1", "worker-2"])
        self.assertEqual([row["metadata"]["zone"] for row in rows], ["eu", "us"])
        self.assertNotIn("services", rows[0])
        self.assertIn("services", self.json("nodes", "--details")[0])
        everyone = self.json("nodes", "--all")
        self.assertTrue(any(row["id"].startswith("cli-") and row["metadata"] == {"observer": True} for row in everyone))
        lines = self.weft("nodes").stdout.splitlines()
        self.assertEqual(lines[0].split()[:3], ["Node", "State", "Services"])
        self.assertEqual([line.split()[:3] for line in lines[1:]], [["worker-1", "online", "3"], ["worker-2", "online", "3"]])

    def test_services_actions_and_events(self):
        self.assertEqual([row["fullName"] for row in self.json("services")], ["greeter", "math", "users"])
        self.assertEqual([row["nodes"] for row in self.json("services", "math")], [["worker-1", "worker-2"]])
        self.assertIn("$node", [row["fullName"] for row in self.json("services", "--all")])
        self.assertEqual([row["name"] for row in self.json("actions", "greeter.*")],
                         ["greeter.fail", "greeter.hello", "greeter.ponder", "greeter.whoami"])
        self.assertEqual({endpoint["nodeID"] for endpoint in self.json("actions", "math.add")[0]["endpoints"]},
                         {"worker-1", "worker-2"})
        self.assertEqual(len(self.json("actions", "math.add", "--node", "worker-2")), 1)
        self.assertEqual([(row["name"], row["group"]) for row in self.json("events")], [("user.*", "users")])

    def test_a_list_without_a_row_says_so(self):
        self.assertEqual(self.json("actions", "nothing.*"), [])
        done = self.weft("actions", "nothing.*")
        self.assertEqual(done.stdout, "")
        self.assertIn("no action that fits 'nothing.*'", done.stderr)

    def test_a_reader_that_leaves_is_no_failure(self):
        command = f"'{WEFT}' actions --timeout 30 | head -n 1; exit ${{PIPESTATUS[0]}}"
        done = subprocess.run(("bash", "-c", command), capture_output=True, text=True, env=self.mesh.environment,
                              timeout=WAIT_S)
        self.assertEqual((done.returncode, done.stderr), (0, ""))

    def test_output_that_cannot_be_written_is_a_failure(self):
        with open("/dev/full", "w") as full:
            done = subprocess.run((WEFT, "nodes"), stdout=full, stderr=subprocess.PIPE, text=True,
                                  env=self.mesh.environment, timeout=WAIT_S)
        self.assertEqual(done.returncode, 1)
        self.assertIn("could not be written", done.stderr)

    # ---- events ----

    def seen(self, event):
        """{node: payloads of `event`}"""
        found = {}
        for node in ("worker-1", "worker-2"):
            events = self.json("call", "users.seen", "--node", node)
            found[node] = [(row["params"], row["meta"]) for row in events if row["event"] == event]
        return found

    def test_emit_reaches_one_node_of_a_group(self):
        told = self.json("emit", "user.emitted", "--id", "7", "--meta", '{"by":"cli"}')
        self.assertEqual(told["groups"], {"users": ["worker-1", "worker-2"]})
        seen = self.seen("user.emitted")
        self.assertEqual(seen["worker-1"] + seen["worker-2"], [({"id": 7}, {"by": "cli"})])

    def test_broadcast_reaches_every_node(self):
        self.assertEqual(self.weft("broadcast", "user.told", '{"a":[1]}').stdout,
                         "'user.told' sent to 2 nodes: worker-1, worker-2\n")
        self.assertEqual(self.seen("user.told"), {"worker-1": [({"a": [1]}, {})], "worker-2": [({"a": [1]}, {})]})

    def test_an_event_for_a_group_that_does_not_listen_reaches_nobody(self):
        done = self.weft("broadcast", "user.grouped", "--group", "mail")
        self.assertIn("Nobody listens", done.stderr)
        self.assertEqual(self.seen("user.grouped"), {"worker-1": [], "worker-2": []})

    # ---- ping ----

    def test_ping(self):
        rows = self.json("ping")
        self.assertEqual([row["nodeID"] for row in rows], ["worker-1", "worker-2"])
        self.assertTrue(all(row["elapsedTime"] > 0 for row in rows), rows)
        self.assertEqual([row["nodeID"] for row in self.json("ping", "worker-2")], ["worker-2"])
        self.assertIn("Nodes: worker-1, worker-2.", self.weft("ping", "nobody", code=3, timeout="1").stderr)

    def test_ping_of_a_node_that_hangs_fails(self):
        seed = Process(WORKER, "seed", "eu", "TCP")
        urls = f"127.0.0.1:{seed.await_line('ready ([0-9]+)')[1]}/seed"
        hung = Process(WORKER, "hung", "eu", "TCP", urls)
        try:
            environment = {**self.mesh.environment, "TCP_URLS": urls}
            self.assertEqual(self.json("ping", "hung", env=environment)[0]["nodeID"], "hung")
            hung.child.send_signal(signal.SIGSTOP)
            rows = self.json("ping", "seed", "hung", code=1, timeout="1", env=environment)
            self.assertEqual([row["elapsedTime"] is None for row in rows], [False, True])
        finally:
            hung.child.send_signal(signal.SIGCONT)
            hung.end()
            seed.end()

    # ---- joining and leaving ----

    def test_nobody_there_is_told_with_where_was_looked(self):
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            urls = f"127.0.0.1:{probe.getsockname()[1]}/nobody"  # Bound, and nobody listens.
            environment = {**self.mesh.environment, "TCP_URLS": urls}
            done = self.weft("nodes", "--wait", "0.3", "-n", "quiet", code=3, env=environment)
            for piece in ("No other node was found within 0.3 s", "transporter  TCP", urls, "namespace    quiet",
                          "serializer   JSON"):
                self.assertIn(piece, done.stderr)
            error = self.json("nodes", "--wait", "300ms", code=3, env=environment)["error"]
            self.assertEqual(error["type"], "NOBODY")

    def test_options_that_cannot_be_are_usage_errors(self):
        self.assertIn("TCP, Memory", self.weft("nodes", "-t", "carrier-pigeon", code=2).stderr)
        self.assertIn("MsgPack", self.weft("nodes", "--serializer", "XML", code=2).stderr)

    def test_a_mesh_that_cannot_be_joined_is_told_with_code_4(self):
        if "NATS" not in self.weft("nodes", "-t", "carrier-pigeon", code=2).stderr.split("This build has:")[1].split(";")[0]:
            self.skipTest("this build has no NATS")
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            url = f"nats://127.0.0.1:{probe.getsockname()[1]}"
            done = self.weft("nodes", "-t", url, code=4, timeout="1")
            self.assertIn("No connection within 1 s", done.stderr)
            self.assertIn(url, done.stderr)

    def test_an_interrupt_leaves_in_good_order(self):
        for number, code in ((signal.SIGINT, 130), (signal.SIGTERM, 143)):
            command = Process(WEFT, "call", "greeter.ponder", "--node", "worker-1", "--timeout", str(WAIT_S),
                              env=self.mesh.environment)
            self.mesh.first.await_line("handling greeter.ponder")
            command.child.send_signal(number)
            self.assertEqual(command.child.wait(WAIT_S), code)
            self.assertEqual(command.child.stdout.read(), "")
            self.mesh.first.await_line(f"left cli-{command.child.pid}-.* gracefully")
            command.end()

    def test_a_command_leaves_in_good_order(self):
        command = Process(WEFT, "nodes", env=self.mesh.environment)
        self.mesh.first.await_line(f"left cli-{command.child.pid}-.* gracefully")
        self.assertEqual(command.child.wait(WAIT_S), 0)
        command.end()

    # ---- a terminal ----

    def on_terminal(self, *words, **changes):
        screen, terminal = pty.openpty()
        child = subprocess.Popen((WEFT, *words), stdout=terminal, stderr=subprocess.DEVNULL,
                                 env={**self.mesh.environment, **changes})
        os.close(terminal)
        text = b""
        while True:
            try:
                piece = os.read(screen, 65536)
            except OSError:  # The other end is closed.
                break
            if not piece:
                break
            text += piece
        os.close(screen)
        self.assertEqual(child.wait(WAIT_S), 0)
        return text.decode()

    def test_a_terminal_gets_boxes_and_colours_unless_it_declines(self):
        text = self.on_terminal("nodes")
        self.assertIn("\x1b[32monline", text)
        self.assertIn("┌", text)
        self.assertNotIn("\x1b", self.on_terminal("nodes", NO_COLOR="1"))
        self.assertNotIn("\x1b", self.on_terminal("nodes", TERM="dumb"))
        self.assertNotIn("┌", self.on_terminal("nodes", LC_ALL="C"))

    # ---- the documentation ----

    def documented(self):
        """(command, output) of each `$ weft …` in the documentation's console blocks."""
        with open(DOC, encoding="utf-8") as file:
            blocks = re.findall(r"^```console\n(.*?)^```", file.read(), re.MULTILINE | re.DOTALL)
        for block in blocks:
            for command, output in re.findall(r"^\$ (weft.*(?:\\\n.*)*)\n((?:(?!\$ ).*\n)*)", block, re.MULTILINE):
                yield command, output

    @staticmethod
    def comparable(text):
        """Without what differs from run to run: numbers, the width of columns, which of the workers answered."""
        text = re.sub(r"cli-[0-9]+-[0-9a-f]+", "cli-#", text)
        text = re.sub(r"worker-[12]\b", "worker-#", text)
        text = text.replace("TCP, Memory, NATS", "TCP, Memory")  # As the build has it.
        text = re.sub(r"-?[0-9]+(\.[0-9]+)*(:[0-9]+)?", "#", text)
        text = re.sub(r"# ms (behind|ahead)|\bsame\b", "clock", text)
        text = re.sub(r"# %|(?<= )-(?= )", "-", text)
        return [" ".join(line.split()) for line in text.strip().splitlines()]

    def test_the_documentation_shows_what_happens(self):
        examples = list(self.documented())
        self.assertGreater(len(examples), 15)
        with tempfile.TemporaryDirectory() as folder:
            os.symlink(os.path.abspath(WEFT), os.path.join(folder, "weft"))
            with open(os.path.join(folder, "user.json"), "w") as file:
                file.write('{"name":"Bob"}')
            environment = {**self.mesh.environment, "PATH": folder + ":" + os.environ["PATH"]}
            for command, output in examples:
                with self.subTest(command):
                    done = subprocess.run(("bash", "-c", command), cwd=folder, env=environment, text=True,
                                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=WAIT_S)
                    self.assertEqual(self.comparable(done.stdout), self.comparable(output))

    def test_every_command_is_documented(self):
        commands = {command.split()[1] for command, _ in self.documented()}
        told = self.weft("--help", timeout=None).stdout
        known = set(re.findall(r"^  ([a-z]+) ", told.split("Commands:")[1].split("Options:")[0], re.MULTILINE))
        self.assertGreater(len(known), 7)
        self.assertEqual(known - commands, set())


NATS_SERVER = shutil.which("nats-server") or shutil.which("nats-server", path="/usr/sbin:/usr/local/bin")


@unittest.skipUnless(NATS_SERVER, "needs nats-server")
class CliOverNats(unittest.TestCase):
    def test_call_emit_and_nodes_over_nats(self):
        server = Process(NATS_SERVER, "-a", "127.0.0.1", "-p", "-1", stderr=subprocess.PIPE)
        try:
            told = ""
            while "Server is ready" not in told:
                line = server.child.stderr.readline()
                self.assertNotEqual(line, "", told)
                told += line
            port = re.search(r"Listening for client connections on 127\.0\.0\.1:([0-9]+)", told)[1]
            self.talk("nats://127.0.0.1:" + port)
        finally:
            server.end()
            server.child.stderr.close()

    def talk(self, url):
        worker = Process(WORKER, "worker-n", "eu", url)
        try:
            worker.await_line("ready")

            def weft(*words):
                done = subprocess.run((WEFT, *words, "--json", "--timeout", "30"), capture_output=True, text=True,
                                      env=clean_environment(TRANSPORTER=url), timeout=WAIT_S)
                self.assertEqual(done.returncode, 0, done.stderr)
                return json.loads(done.stdout)

            self.assertEqual(weft("call", "math.add", "--a", "1", "--b", "2"), 3)
            self.assertEqual([row["id"] for row in weft("nodes")], ["worker-n"])
            self.assertEqual(weft("emit", "user.x", "5")["nodes"], ["worker-n"])
            self.assertEqual([row["params"] for row in weft("call", "users.seen")], [5])
            self.assertEqual([row["nodeID"] for row in weft("ping")], ["worker-n"])
        finally:
            worker.end()


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[4:])
