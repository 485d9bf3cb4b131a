#!/usr/bin/env python3
"""Compiles every C++ snippet of README.md and docs/, so that what the docs show is what the headers take.

  snippets.py ROOT COMPILER…   COMPILER: the command with its include paths; -fsyntax-only is added
  snippets.py --self-test COMPILER…

A snippet is a fenced block marked ```cpp. The snippets of a page stand in one namespace, in their order, so that a
later one may use what an earlier one declares; one with a main() stands for itself. A fragment says what it is by a
comment right before its fence:

  <!-- snippet: coroutine -->    statements of a coroutine, with `broker`, `context` and `app` at hand
  <!-- snippet: function -->     statements of a plain function, with the same
  <!-- snippet: constructor -->  statements of the constructor of a service

and one that shows what does not compile says <!-- snippet: wrong -->; it is left out.
"""

import os
import re
import subprocess
import sys
import tempfile

from layering import read

SNIPPET = re.compile(r"^(?:<!-- snippet: (\w+) -->\n+)?```cpp\n(.*?)^```$", re.MULTILINE | re.DOTALL)
INCLUDE = re.compile(r"^[ \t]*#[ \t]*include[ \t]*[<\"].*$", re.MULTILINE)
AT_HAND = "[[maybe_unused]] weft::Broker& broker, [[maybe_unused]] weft::Context& context, " \
          "[[maybe_unused]] weft::App& app"
KINDS = {
    "": ("", ""),
    "coroutine": ("weft::Task<void> fragment_%d(" + AT_HAND + ") {\n", "co_return;\n}\n"),
    "function": ("void fragment_%d(" + AT_HAND + ") {\n", "}\n"),
    "constructor": ("struct Fragment%d : weft::Service {\nFragment%d() : Service(\"fragment\") {\n", "}\n};\n"),
}
ALWAYS = ['#include <chrono>', '#include <iostream>', '#include <string>', '#include <vector>',
          '#include "weft/module.h"', '#include "weft/weft.h"']


def pages(root):
    docs = os.path.join(root, "docs")
    names = sorted(name for name in os.listdir(docs) if name.endswith(".md")) if os.path.isdir(docs) else []
    return ["README.md"] + ["docs/" + name for name in names]


def snippets(root):
    """(page, line, kind, code) of each."""
    found = []
    for page in pages(root):
        text = read(os.path.join(root, page))
        for match in SNIPPET.finditer(text):
            found.append((page, text.count("\n", 0, match.start(2)) + 1, match.group(1) or "", match.group(2)))
    return found


def sources(found):
    """The texts to compile. A program has one module at most, so each further one begins another text."""
    texts = []
    includes, body, modules = [], [], 0

    def close():
        if body:
            texts.append("\n".join(dict.fromkeys(ALWAYS + includes)) + "\n" + "".join(body))

    for number, (page, line, kind, code) in enumerate(found):
        if "WEFT_MODULE(" in code:
            modules += 1
            if modules > 1:
                close()
                includes, body, modules = [], [], 1
        own_includes = INCLUDE.findall(code)
        includes += [include.strip() for include in own_includes]
        code = INCLUDE.sub("", code).replace("#pragma once", "")
        space = re.sub(r"\W", "_", page)
        if re.search(r"\bint main\(", code):
            space += "_%d" % number
        begin, end = KINDS[kind]
        begin = begin.replace("%d", str(number))
        body.append("namespace %s {\nusing namespace std::chrono_literals;\n%s#line %d \"%s\"\n%s\n%s}\n"
                    % (space, begin, line, page, code, end))
    close()
    return texts


def compile_text(text, compiler, out=None):
    """Whether it compiles."""
    with tempfile.NamedTemporaryFile("w", suffix=".cpp", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        command = compiler + ["-fsyntax-only", "-Wall", "-Wextra", "-Wno-missing-field-initializers",
                              "-Wno-unused", "-Wno-main", "-Werror", file.name]
        result = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    if out is not None:
        print(result.stdout, end="", file=out)
    return result.returncode == 0


def check(root, compiler):
    found = snippets(root)
    unknown = ["%s:%d: there is no kind of snippet named '%s'" % (page, line, kind)
               for page, line, kind, _ in found if kind not in KINDS and kind != "wrong"]
    if unknown:
        print("\n".join(unknown))
        return 1
    compiled = [snippet for snippet in found if snippet[2] != "wrong"]
    good = [compile_text(text, compiler, sys.stdout) for text in sources(compiled)]
    print("%d snippets of %d pages" % (len(compiled), len(pages(root))))
    return 0 if good and all(good) else 1


def self_test(compiler):
    """A snippet that is wrong is found, of each kind."""
    failed = 0
    for kind in KINDS:
        good = [("page.md", 1, kind, "static_assert(sizeof(weft::Value) == 16);\n")]
        bad = [("page.md", 1, kind, "weft::NoSuchThing thing;\n")]
        for found, expected in ((good, True), (bad, False)):
            # The head alone is what costs time: without it here, but for what the wrappers name.
            text = "\n".join(sources(found)).split("\nnamespace", 1)[1]
            head = "#include <chrono>\n#include <coroutine>\nnamespace weft { struct Value { char bytes[16]; }; " \
                   "struct Broker; struct Context; struct App; struct Service { Service(const char*) {} };\n" \
                   "template <typename T> struct Task { struct promise_type { Task get_return_object() { return {}; } " \
                   "std::suspend_never initial_suspend() { return {}; } " \
                   "std::suspend_never final_suspend() noexcept { return {}; } " \
                   "void return_void() {} void unhandled_exception() {} }; }; }\nnamespace"
            if compile_text(head + text, compiler) != expected:
                failed += 1
                print("self-test: a %s snippet of kind '%s' was not told apart" % ("good" if expected else "bad", kind))
    return 1 if failed else 0


def main(arguments):
    if arguments[0] == "--self-test":
        return self_test(arguments[1:])
    return check(os.path.normpath(arguments[0]), arguments[1:])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
