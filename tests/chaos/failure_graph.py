#!/usr/bin/env python3
"""Draws how many calls fail after a worker is killed or frozen: weft and Moleculer side by side.

  failure_graph.py BUILD MODULES [--out FILE.svg] [--seconds N]

Three workers and a client that makes 500 calls a second, of 5 ms each, with a timeout of 1 s and without retries; one
worker gets the signal. BUILD is a build folder of weft, MODULES the folder that tests/interop/install.sh filled. With
--seconds N each run ends N seconds after the signal; without, as late as it takes to see the end of the failures.
"""

import argparse
import json
import os
import signal
import socket
import subprocess
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
WORKERS = 3


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def nats_server():
    port = free_port()
    process = subprocess.Popen(["nats-server", "-a", "127.0.0.1", "-p", str(port)], stdout=subprocess.DEVNULL,
                               stderr=subprocess.DEVNULL)
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        try:
            socket.create_connection(("127.0.0.1", port)).close()
            return process, f"nats://127.0.0.1:{port}"
        except OSError:
            pass
    raise SystemExit("nats-server does not come up")


def run(args, kind, bus, number, seconds, heartbeat=None):
    """The client's report: calls made, and the failed ones as (begun, ended) in ms since the signal."""
    server = None
    transporter, port = "TCP", free_port()
    if bus:
        server, transporter = nats_server()
    environment = dict(os.environ, TRANSPORTER=transporter, TCP_HOST="127.0.0.1", UDP_DISCOVERY="false",
                       TCP_USE_HOSTNAME="false", TCP_URLS=f"127.0.0.1:{port}/client", LOGLEVEL="fatal")
    for name in ("HEARTBEAT_INTERVAL", "HEARTBEAT_TIMEOUT"):
        environment.pop(name, None)
    if heartbeat:
        environment.update(HEARTBEAT_INTERVAL=str(heartbeat[0]), HEARTBEAT_TIMEOUT=str(heartbeat[1]))
    if kind != "weft":
        environment["WEFT_INTEROP_MODULES"] = args.modules
    if kind == "weft":
        worker = [os.path.join(args.build, "tools/runner/weft-runner"),
                  os.path.join(args.build, "tests/chaos/chaos_worker.so")]
        client = [os.path.join(args.build, "tests/chaos/kill_client")]
    else:
        worker = ["node", os.path.join(ROOT, "tests/interop/js/node.js"), os.path.join(HERE, "js/chaos.service.js")]
        client = ["node", os.path.join(HERE, "js/kill_client.js")]
    workers = []
    try:
        for i in range(WORKERS):
            workers.append(subprocess.Popen(worker, env=dict(environment, NODEID=f"w{i}")))
        report = subprocess.run(
            client + [transporter, str(port), str(WORKERS), str(workers[0].pid), str(int(number)), str(seconds)],
            env=environment, stdout=subprocess.PIPE, check=True, timeout=seconds + 60)
    finally:
        for process in workers + ([server] if server else []):
            process.kill()
            process.wait()
    return json.loads(report.stdout)


# ---- the picture ----

COLOURS = {"weft": "#0a7d5a", "moleculer": "#c4451c", "moleculer-fast": "#e0a030"}


class Chart:
    """One panel: the failed calls so far, against the time since the signal."""

    WIDTH, HEIGHT, LEFT, TOP = 380, 230, 56, 44

    def __init__(self, title, seconds, lines):
        self.title, self.seconds, self.lines = title, seconds, lines

    def draw(self, x0, y0):
        top = max([len(report["failures"]) for _, _, report in self.lines] + [10])
        step = next(s for s in (5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000) if top / s <= 6)
        top = (top // step + 1) * step
        left, upper = x0 + self.LEFT, y0 + self.TOP
        x = lambda ms: left + max(ms, 0) / 1000 / self.seconds * self.WIDTH
        y = lambda count: upper + self.HEIGHT - count / top * self.HEIGHT
        out = [f'<text x="{left}" y="{y0 + 20}" font-weight="bold">{self.title}</text>']
        for count in range(0, top + 1, step):
            out.append(f'<path d="M{left} {y(count):.1f}h{self.WIDTH}" stroke="#ddd"/>'
                       f'<text x="{left - 6}" y="{y(count) + 4:.1f}" text-anchor="end">{count}</text>')
        second_step = next(s for s in (1, 2, 5, 10, 20) if self.seconds / s <= 8)
        for second in range(0, self.seconds + 1, second_step):
            out.append(f'<text x="{x(second * 1000):.1f}" y="{upper + self.HEIGHT + 18}" '
                       f'text-anchor="middle">{second} s</text>')
        for row, (key, label, report) in enumerate(self.lines):
            path, count = f"M{left} {y(0):.1f}", 0
            # A call counts when it was made: a time-out is reported a second later.
            for begun in sorted(begun for begun, _ in report["failures"]):
                path += f"H{x(begun):.1f}"
                count += 1
                path += f"V{y(count):.1f}"
            path += f"H{left + self.WIDTH}"
            out.append(f'<path d="{path}" fill="none" stroke="{COLOURS[key]}" stroke-width="2"/>')
            line_y = upper + self.HEIGHT + 40 + 18 * row
            out.append(f'<path d="M{left} {line_y - 4}h22" stroke="{COLOURS[key]}" stroke-width="3"/>'
                       f'<text x="{left + 30}" y="{line_y}">{label}: {count} failed calls</text>')
        return "\n".join(out)


def svg(charts):
    width, height = 470 * len(charts), 370
    panels = "\n".join(chart.draw(470 * i, 10) for i, chart in enumerate(charts))
    return (f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
            f'viewBox="0 0 {width} {height}" font-family="sans-serif" font-size="12">\n'
            f'<rect width="100%" height="100%" fill="white"/>\n{panels}\n</svg>\n')


def last(report):
    return max([ended for _, ended in report["failures"]], default=0)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build")
    parser.add_argument("modules")
    parser.add_argument("--out")
    parser.add_argument("--seconds", type=int)
    args = parser.parse_args()
    args.build, args.modules = os.path.abspath(args.build), os.path.abspath(args.modules)
    long_run, freeze_run = args.seconds or 52, args.seconds or 30
    kill, stop = signal.SIGKILL, signal.SIGSTOP
    charts = [
        Chart("SIGKILL, NATS: failed calls", long_run, [
            ("weft", "weft, defaults", run(args, "weft", True, kill, min(long_run, 10))),
            ("moleculer-fast", "Moleculer, heartbeats 2 s / 6 s",
             run(args, "moleculer", True, kill, min(long_run, 15), (2, 6))),
            ("moleculer", "Moleculer, defaults", run(args, "moleculer", True, kill, long_run)),
        ]),
        Chart("SIGSTOP, TCP: failed calls", freeze_run, [
            ("weft", "weft, defaults", run(args, "weft", False, stop, min(freeze_run, 10))),
            ("moleculer", "Moleculer, defaults", run(args, "moleculer", False, stop, freeze_run)),
        ]),
    ]
    for chart in charts:
        print(chart.title)
        for _, label, report in chart.lines:
            begun = max([begun for begun, _ in report["failures"]], default=0)
            print(f"  {label:36} {len(report['failures']):5} of {report['made']} failed; the last one was made "
                  f"{begun / 1000:.2f} s and failed {last(report) / 1000:.2f} s after the signal")
    if args.out:
        with open(args.out, "w", encoding="utf-8") as file:
            file.write(svg(charts))


if __name__ == "__main__":
    main()
