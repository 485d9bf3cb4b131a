#!/usr/bin/env python3
"""Runs clang-tidy over the sources of a build folder made with clang.

usage: lint.py BUILD [-j N] [--tests]

What passed once is not looked at again until it reads differently: a source is known by the hash of its preprocessed
text, of the checks, and of clang-tidy's version, kept in $XDG_CACHE_HOME/weft-lint (~/.cache by default).
"""
import argparse
import concurrent.futures
import hashlib
import json
import os
import pathlib
import shlex
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]


def preprocessed(entry):
    """The text that the compiler sees, or None when it cannot be had."""
    words = [word for word in shlex.split(entry["command"]) if word != "ccache" and not word.endswith("/ccache")]
    output = words.index("-o")
    del words[output : output + 2]
    words.remove("-c")
    run = subprocess.run(words + ["-E", "-P"], cwd=entry["directory"], capture_output=True)
    return run.stdout if run.returncode == 0 else None


def lint(entry, build, salt, stamps):
    """What clang-tidy says of one source; empty when it is content."""
    text = preprocessed(entry)
    stamp = stamps / hashlib.sha256(salt + text).hexdigest() if text else None
    if stamp and stamp.exists():
        return ""
    source = os.path.normpath(os.path.join(entry["directory"], entry["file"]))
    run = subprocess.run(["clang-tidy", "--quiet", "-p", build, source], capture_output=True, text=True)
    if run.returncode != 0:
        return run.stdout + run.stderr
    if stamp:
        stamp.touch()
    return ""


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("build")
    parser.add_argument("-j", type=int, default=os.cpu_count())
    parser.add_argument("--tests", action="store_true", help="the tests too")
    options = parser.parse_args()

    stamps = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache") / "weft-lint"
    stamps.mkdir(parents=True, exist_ok=True)
    version = subprocess.run(["clang-tidy", "--version"], capture_output=True, check=True).stdout
    salt = version + (ROOT / ".clang-tidy").read_bytes()
    sources = {}
    for entry in json.loads((pathlib.Path(options.build) / "compile_commands.json").read_text()):
        source = pathlib.Path(os.path.normpath(os.path.join(entry["directory"], entry["file"])))
        if options.tests or not source.is_relative_to(ROOT / "tests"):
            sources[source] = entry
    found = 0
    with concurrent.futures.ThreadPoolExecutor(options.j) as pool:
        for said in pool.map(lambda source: lint(sources[source], options.build, salt, stamps), sorted(sources)):
            if said:
                found += 1
                print(said)
    print(f"{len(sources) - found} passed, {found} failed")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
