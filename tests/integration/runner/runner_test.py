#!/usr/bin/env python3
"""weft-runner as a user runs it: its options, what it loads, how it fails, stops and ends.

  runner_test.py RUNNER WEFT FOLDER     FOLDER has the modules probe.so and misfit_*.so; WEFT looks in from outside
"""

import json
import os
import pty
import queue
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import unittest

RUNNER, WEFT, FOLDER = map(os.path.abspath, sys.argv[1:4])
PROBE = os.path.join(FOLDER, "probe.so")
WAIT_S = 60  # For what happens at once on an idle machine.

# A node that meets nobody it was not told of.
ALONE = {"TRANSPORTER": "TCP", "TCP_HOST": "127.0.0.1", "UDP_DISCOVERY": "false"}


def environment(variables):
    kept = ("PATH", "HOME", "LD_LIBRARY_PATH", "ASAN_OPTIONS", "UBSAN_OPTIONS", "LSAN_OPTIONS", "TMPDIR")
    return {**{name: os.environ[name] for name in kept if name in os.environ}, **variables}


def run(*words, cwd=None, **variables):
    """A runner that ends by itself."""
    return subprocess.run((RUNNER, *words), cwd=cwd or FOLDER, env=environment(variables), capture_output=True, text=True,
                          timeout=WAIT_S)


class Runner:
    """A runner that stays, whose lines are awaited."""

    def __init__(self, *words, cwd=None, **variables):
        self.lines, self.coming = [], queue.Queue()
        self.process = subprocess.Popen((RUNNER, *words), cwd=cwd or FOLDER, env=environment({**ALONE, **variables}),
                                        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                        text=True, start_new_session=True)
        self.reader = threading.Thread(target=self.read, daemon=True)
        self.reader.start()

    def read(self):
        for line in self.process.stdout:
            self.coming.put(line.rstrip("\n"))
        self.coming.put(None)

    def line(self, pattern):
        """The next line that fits, as a match."""
        while True:
            try:
                line = self.coming.get(timeout=WAIT_S)
            except queue.Empty:
                line = None
            if line is None:
                raise AssertionError("the runner never said %r; it said:\n%s" % (pattern, "\n".join(self.lines)))
            self.lines.append(line)
            found = re.search(pattern, line)
            if found:
                return found

    def ready(self):
        """Waits until the node serves; gives the address at which it can be found."""
        port = self.line(r"listening on port (\d+)")[1]
        node = self.line(r"Node '(.+)' with \d+ service\(s\) started")[1]
        return "127.0.0.1:%s/%s" % (port, node)

    def signal(self, number):
        self.process.send_signal(number)

    def end(self):
        """The exit code; the rest of the lines is in `lines` then."""
        code = self.process.wait(WAIT_S)
        self.reader.join(WAIT_S)
        while not self.coming.empty():
            line = self.coming.get()
            if line is not None:
                self.lines.append(line)
        return code

    def __enter__(self):
        return self

    def __exit__(self, *_):
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self.process.wait()
        self.reader.join(WAIT_S)
        self.process.stdout.close()


def weft(urls, *words, **variables):
    """Asks a node from outside; gives the JSON."""
    done = subprocess.run((WEFT, words[0], "--json", "--timeout", "30", *words[1:]), capture_output=True, text=True,
                          env=environment({"TCP_URLS": urls, "UDP_DISCOVERY": "false", **variables}), timeout=2 * WAIT_S)
    if done.returncode != 0:
        raise AssertionError("weft %s: %s%s" % (words, done.stdout, done.stderr))
    return json.loads(done.stdout)


class Test(unittest.TestCase):
    def setUp(self):
        self.folder = self.enterContext(tempfile.TemporaryDirectory())

    def write(self, name, text):
        path = os.path.join(self.folder, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        return path

    def refused(self, *words, saying, **variables):
        """The runner ends with code 1 and says all of these on standard error, in one line."""
        done = run(*words, **{**ALONE, **variables})
        self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
        line = done.stderr.strip().splitlines()[-1]
        for piece in saying:
            self.assertIn(piece, line)

    def options_of(self, *words, **variables):
        """What a runner's node says its options are."""
        with Runner(*words, PROBE, **variables) as runner:
            urls = runner.ready()
            serializer = variables.get("SERIALIZER", "JSON")
            return weft(urls, "call", "$node.options", "--node", urls.split("/")[1], SERIALIZER=serializer,
                        NAMESPACE=variables.get("NAMESPACE", ""))


class Options(Test):
    def test_every_variable_of_the_article_has_its_effect(self):
        options = self.options_of(
            NODEID="007", NAMESPACE="lab", SERIALIZER="MsgPack", TCP_URLS="127.0.0.1:1/nobody", HEARTBEAT_INTERVAL="3",
            HEARTBEAT_TIMEOUT="9.5", STRATEGY="Shard", SHARD_KEY="name", PREFER_LOCAL="FALSE", RETRIES="4",
            REQUEST_TIMEOUT="1500", METADATA='{"zone":"eu"}', LOGLEVEL="info", DISABLE_BALANCER="false")
        self.assertEqual(options["nodeID"], "007")
        self.assertEqual(options["namespace"], "lab")
        self.assertEqual(options["serializer"], "MsgPack")
        self.assertEqual((options["heartbeatInterval"], options["heartbeatTimeout"]), (3, 9.5))
        self.assertEqual(options["registry"]["strategy"], "Shard")
        self.assertEqual(options["registry"]["strategyOptions"], {"shardKey": "name"})
        self.assertIs(options["registry"]["preferLocal"], False)
        self.assertEqual((options["retryPolicy"]["enabled"], options["retryPolicy"]["retries"]), (True, 4))
        self.assertEqual(options["requestTimeout"], 1500)
        self.assertEqual(options["metadata"], {"zone": "eu"})

    def test_the_port_is_where_it_listens(self):
        with Runner(PROBE, NODEID="first") as first:
            port = first.ready().split("/")[0].split(":")[1]
            second = run(PROBE, **{**ALONE, "TCP_PORT": port})  # Taken: only one can have it.
            self.assertEqual(second.returncode, 1)
            self.assertIn(port, second.stdout + second.stderr)

    def test_balancing_by_the_transporter_needs_one_that_can(self):
        with Runner(PROBE, DISABLE_BALANCER="true") as runner:
            self.assertRegex(runner.line("(?i)balanc")[0], "(?i)balanc")

    def test_the_log_level(self):
        quiet = Runner(PROBE, LOGLEVEL="error")
        loud = Runner(PROBE, LOGLEVEL="debug")
        with quiet, loud:
            loud.ready()
            loud.signal(signal.SIGTERM)
            self.assertEqual(loud.end(), 0)
            quiet.signal(signal.SIGTERM)  # It says nothing when it is ready; a stop while it starts is a stop, too.
            quiet.process.wait(WAIT_S)
            quiet.end()
            self.assertEqual(quiet.lines, [])
            self.assertTrue(any("DEBUG" in line for line in loud.lines) or len(loud.lines) > 3)

    def test_a_file_in_toml_or_json_with_the_environment_before_it(self):
        toml = self.write("one.toml", 'nodeID = "by-file"\nnamespace = "lab"\n[registry]\npreferLocal = false\n'
                                      'strategyOptions = { shardKey = "name" }\nstrategy = "Shard"\n[retryPolicy]\nretries = 2\n')
        options = self.options_of("--config", toml, RETRIES="5", NAMESPACE="lab")
        self.assertEqual((options["nodeID"], options["retryPolicy"]["retries"]), ("by-file", 5))
        self.assertEqual(options["registry"]["strategyOptions"], {"shardKey": "name"})
        file = self.write("two.json", '{"nodeID":"by-json","registry":{"preferLocal":false},"metadata":{"zone":"us"}}')
        options = self.options_of("-c", file)
        self.assertEqual((options["nodeID"], options["registry"]["preferLocal"]), ("by-json", False))
        self.assertEqual(options["metadata"], {"zone": "us"})

    def test_the_file_of_the_current_folder_is_found(self):
        self.write("weft.config.toml", 'nodeID = "found"\n')
        with Runner(PROBE, cwd=self.folder) as runner:
            self.assertTrue(runner.ready().endswith("/found"))

    def test_long_names_in_the_environment(self):
        options = self.options_of(REGISTRY_PREFERLOCAL="false", WEFT_RETRY_POLICY__RETRIES="3", MOL_MAX_CALL_LEVEL="7")
        self.assertIs(options["registry"]["preferLocal"], False)
        self.assertEqual((options["retryPolicy"]["retries"], options["maxCallLevel"]), (3, 7))

    def test_what_is_unknown_or_of_the_wrong_kind_is_named_with_what_is_allowed(self):
        for name, value, allowed in (("RETRIES", "many", "0 to 100"), ("TCP_PORT", "70000", "0 to 65535"),
                                     ("PREFER_LOCAL", "perhaps", "true or false"), ("METADATA", "[1]", "a JSON object"),
                                     ("HEARTBEAT_INTERVAL", "-1", "seconds, 0 or more"), ("LOGLEVEL", "chatty", "trace"),
                                     ("REQUEST_TIMEOUT", "soon", "milliseconds"), ("WEFT_TCP__PORT", "x", "0 to 65535")):
            with self.subTest(name):
                self.refused(PROBE, saying=(name, value.replace('"', '\\"'), allowed), **{name: value})
        self.refused(PROBE, saying=("Nonsense", "RoundRobin"), STRATEGY="Nonsense")
        self.refused(PROBE, saying=("carrier-pigeon", "TCP"), TRANSPORTER="carrier-pigeon")
        self.refused(PROBE, saying=("XML", "MsgPack"), SERIALIZER="XML")
        with Runner(PROBE, WEFT_REGISTRY__PREFER_LOCALL="true") as runner:
            runner.line("WEFT_REGISTRY__PREFER_LOCALL names no option .'registry.preferLocall'")
            runner.ready()

    def test_a_file_that_is_wrong_is_named_with_the_place(self):
        unknown = self.write("unknown.toml", "[registry]\npreferLocall = true\n")
        self.refused("-c", unknown, PROBE, saying=(unknown, "registry.preferLocall", "unknown"))
        wrong = self.write("wrong.toml", '[tcp]\nport = "x"\n')
        self.refused("-c", wrong, PROBE, saying=(wrong, "tcp.port", "0 to 65535"))
        broken = self.write("broken.toml", "nodeID = 'a'\nnamespace =\n")
        self.refused("-c", broken, PROBE, saying=(broken + ":2",))
        text = self.write("broken.json", '{"nodeID":')
        self.refused("-c", text, PROBE, saying=(text, "JSON"))
        self.refused("-c", "/nowhere.toml", PROBE, saying=("/nowhere.toml", "does not exist"))

    def test_flags(self):
        self.assertRegex(run("--version").stdout, r"^weft \d+\.\d+\.\d+\n$")
        self.assertIn("--instances", run("--help").stdout)
        every = run("--help-options").stdout
        for name in ("NODEID NAMESPACE TRANSPORTER SERIALIZER TCP_PORT TCP_URLS UDP_DISCOVERY HEARTBEAT_INTERVAL "
                     "HEARTBEAT_TIMEOUT STRATEGY SHARD_KEY PREFER_LOCAL DISABLE_BALANCER RETRIES REQUEST_TIMEOUT METADATA "
                     "LOGLEVEL SERVICES SERVICEDIR INSTANCES").split():
            self.assertIn(" %s " % name, every)
        for wrong in (("--nonsense",), ("--instances", "0"), ("--instances", "x"), ("--config",)):
            done = run(*wrong)
            self.assertEqual(done.returncode, 2, wrong)
            self.assertIn(wrong[0], done.stderr + done.stdout)

    def test_silence(self):
        with Runner("--silent", PROBE) as runner:
            runner.signal(signal.SIGTERM)
            runner.end()
            self.assertEqual(runner.lines, [])


class Loading(Test):
    def services(self, *words, cwd=None, **variables):
        with Runner(*words, cwd=cwd, **variables) as runner:
            urls = runner.ready()
            return [row["name"] for row in weft(urls, "services")], runner.lines

    def test_files_folders_names_and_patterns(self):
        for place in ("a", "b/c"):
            os.makedirs(os.path.join(self.folder, place))
        shutil.copy(PROBE, os.path.join(self.folder, "b/c/libprobe.so"))
        for words in ((PROBE,), ("b",), ("b/c/probe",), ("b/**/*.so",), ("b/?/lib*.so",), ("**/*.so", "!nothing*")):
            with self.subTest(words):
                self.assertEqual(self.services(*words, cwd=self.folder)[0], ["probe"])
        for words in (("b", "!b/c/*.so"), ("--mask", "**/*.module", "b"), ("a",)):
            with self.subTest(words):
                self.assertEqual(self.services(*words, cwd=self.folder)[0], [])

    def test_services_and_the_folder_from_the_environment(self):
        os.makedirs(os.path.join(self.folder, "services"))
        shutil.copy(PROBE, os.path.join(self.folder, "services/probe.so"))
        folder = os.path.join(self.folder, "services")
        self.assertEqual(self.services(SERVICEDIR=folder)[0], ["probe"])
        self.assertEqual(self.services("misfit_abi.so", SERVICES="probe", SERVICEDIR=folder)[0], ["probe"])
        self.assertEqual(self.services(SERVICES="none, probe", SERVICEDIR=folder)[0], ["probe"])

    def test_a_pattern_that_fits_nothing_is_a_warning(self):
        names, lines = self.services("nothing.so", PROBE)
        self.assertEqual(names, ["probe"])
        self.assertIn("No service module matches 'nothing.so'", lines[0])

    def test_a_module_that_does_not_fit_is_refused_before_it_runs(self):
        for name, pieces in (("abi", ("module ABI 99", "weft-runner with 1")), ("size", ("descriptor", "size")),
                             ("compiler", ("compiler cc 1", "weft-runner with")), ("stdlib", ("standard library libother",)),
                             ("version", ("weft 0.0.1", "Build it again")), ("nothing", ("weft_module_v1",)),
                             ("no_entry", ("weft_module_v1", "WEFT_MODULE"))):
            with self.subTest(name):
                self.refused("misfit_%s.so" % name, saying=("misfit_%s.so" % name, *pieces))

    def test_a_file_that_is_no_module_is_named_with_the_reason(self):
        text = self.write("text.so", "no module\n")
        self.refused(text, saying=(text, "cannot be loaded"))
        self.refused(self.write("empty.so", ""), saying=("empty.so", "cannot be loaded"))

    def test_what_a_module_throws_is_told(self):
        for word, pieces in (("load", ("probe.so", "no tea while loading")), ("register", ("probe.so", "no tea today")),
                             ("number", ("probe.so",)), ("create", ("no tea when created",)),
                             ("twice", ("probe",))):
            with self.subTest(word):
                self.refused(PROBE, saying=pieces, PROBE=word)

    def test_a_service_that_fails_to_start_ends_the_node(self):
        done = run(PROBE, **{**ALONE, "PROBE": "start"})
        self.assertEqual(done.returncode, 1)
        self.assertIn("no tea when started", done.stderr)


class Ending(Test):
    def test_signals_stop_gracefully_with_code_0(self):
        for number in (signal.SIGTERM, signal.SIGINT):
            with self.subTest(number), Runner(PROBE) as runner:
                urls = runner.ready()
                call = subprocess.Popen((WEFT, "call", "probe.wait", "--ms", "500", "--timeout", str(WAIT_S)), text=True,
                                        stdout=subprocess.PIPE, env=environment({"TCP_URLS": urls, "UDP_DISCOVERY": "false"}))
                runner.line("^waiting")
                runner.signal(number)
                self.assertEqual(call.communicate(timeout=WAIT_S)[0], '"waited"\n')  # What ran was let end.
                self.assertEqual(call.returncode, 0)
                self.assertEqual(runner.end(), 0)
                self.assertTrue(any("stopped" in line for line in runner.lines))

    def test_a_second_signal_does_not_wait(self):
        with Runner(PROBE, SHUTDOWN_TIMEOUT="600000") as runner:
            urls = runner.ready()
            call = subprocess.Popen((WEFT, "call", "probe.wait", "--ms", "600000", "--timeout", "0"),
                                    stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                    env=environment({"TCP_URLS": urls, "UDP_DISCOVERY": "false"}))
            runner.line("^waiting")
            runner.signal(signal.SIGTERM)
            runner.signal(signal.SIGINT)
            code = runner.end()
            call.kill()
            call.wait()
            self.assertIn(code, (128 + signal.SIGTERM, 128 + signal.SIGINT), runner.lines)

    def nodes(self, runner, count):
        return {runner.line(r"Node '([^']+)' with \d+ service\(s\) started")[1] for _ in range(count)}

    def test_instances_are_numbered_and_stop_together(self):
        with Runner("--instances", "3", PROBE, NODEID="many") as runner:
            self.assertEqual(self.nodes(runner, 3), {"many-1", "many-2", "many-3"})
            runner.signal(signal.SIGTERM)
            self.assertEqual(runner.end(), 0)
            self.assertEqual(sum("stopped" in line and "Node 'many-" in line for line in runner.lines), 3)

    def test_a_worker_that_dies_ends_the_others_with_its_code(self):
        with Runner(PROBE, NODEID="many", INSTANCES="2") as runner:
            self.nodes(runner, 2)
            with open("/proc/%d/task/%d/children" % (runner.process.pid, runner.process.pid)) as file:
                children = [int(child) for child in file.read().split()]
            self.assertEqual(len(children), 2)
            os.kill(children[0], signal.SIGKILL)
            self.assertEqual(runner.end(), 128 + signal.SIGKILL)
            self.assertFalse(os.path.exists("/proc/%d" % children[1]))

    def test_instances_that_cannot_start_give_code_1(self):
        done = run("-i", "2", PROBE, **{**ALONE, "PROBE": "start"})
        self.assertEqual(done.returncode, 1)

    def test_colours_go_to_a_terminal_alone(self):
        def shown(**variables):
            screen, terminal = pty.openpty()
            child = subprocess.Popen((RUNNER, PROBE), stdin=subprocess.DEVNULL, stdout=terminal, stderr=terminal,
                                     env=environment({**ALONE, "TERM": "xterm", **variables}), start_new_session=True)
            os.close(terminal)
            text = b""
            while True:
                try:
                    piece = os.read(screen, 65536)
                except OSError:  # The other end is closed.
                    break
                if b"service(s) started" in text + piece and b"service(s) started" not in text:
                    child.terminate()
                text += piece
            os.close(screen)
            self.assertEqual(child.wait(WAIT_S), 0)
            return text.decode()

        self.assertIn("\x1b[", shown())
        self.assertNotIn("\x1b", shown(NO_COLOR="1"))
        self.assertNotIn("\x1b", shown(TERM="dumb"))
        with Runner(PROBE, TERM="xterm") as runner:
            runner.ready()
            self.assertNotIn("\x1b", "".join(runner.lines))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[4:])
