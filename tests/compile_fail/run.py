#!/usr/bin/env python3
"""Compiles each snippet of this folder and expects the compiler to refuse it for the reason it names.

    run.py SOURCE_ROOT BUILD_ROOT -- COMPILER...

A snippet says "// EXPECT: <regular expression for the compiler's message>", or "// EXPECT: compiles". One that
says "// ONLY: …" holds where WEFT_GUARD_AGGREGATE_TEMPORARIES is 1; elsewhere it must compile.
"""

import os
import pathlib
import re
import subprocess
import sys

FLAGS = ["-std=c++20", "-fsyntax-only", "-Wall", "-Wextra", "-Werror=unused-result", "-Werror=unused-value"]


def compile_snippet(compiler, source_root, build_root, snippet):
    command = [*compiler, *FLAGS, f"-I{source_root}", f"-I{build_root}", str(snippet)]
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "LC_ALL": "C"}, check=False)
    return done.returncode == 0, done.stderr


def main():
    split = sys.argv.index("--")
    source_root, build_root = sys.argv[1:split]
    compiler = sys.argv[split + 1 :]
    config = pathlib.Path(build_root, "lib/base/config.h").read_text(encoding="utf-8")
    is_guarded = re.search(r"WEFT_GUARD_AGGREGATE_TEMPORARIES\s+1", config) is not None
    failures = 0
    for snippet in sorted(pathlib.Path(__file__).parent.glob("*.cpp")):
        text = snippet.read_text(encoding="utf-8")
        expected = re.search(r"// EXPECT: (.*)", text).group(1)
        if "// ONLY:" in text and not is_guarded:
            expected = "compiles"
        compiled, message = compile_snippet(compiler, source_root, build_root, snippet)
        if expected == "compiles":
            good = compiled
        else:
            # Quotes differ between compilers and languages.
            good = not compiled and re.search(expected, re.sub("[‘’']", "'", message)) is not None
        print(("ok    " if good else "FAIL  ") + snippet.name)
        if not good:
            failures += 1
            print(f"  expected: {expected}\n  compiled: {compiled}\n" + message)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
