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


def compile_text(text, compiler):
    """(Whether it compiles, what the compiler said)."""
    with tempfile.NamedTemporaryFile("w", suffix=".cpp", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        command = compiler + ["-fsyntax-only", "-Wall", "-Wextra", "-Wno-missing-field-initializers",
                              "-Wno-unused", "-Wno-main", "-Werror", file.name]
        result = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    return result.returncode == 0, result.stdout


def check(root, compiler):
    found = snippets(root)
    unknown = ["%s:%d: there is no kind of snippet named '%s'" % (page, line, kind)
               for page, line, kind, _ in found if kind not in KINDS and kind != "wrong"]
    if unknown:
        print("\n".join(unknown))
        return 1
    compiled = [snippet for snippet in found if snippet[2] != "wrong"]
    results = [compile_text(text, compiler) for text in sources(compiled)]
    print("".join(said for _, said in results), end="")
    print("%d snippets of %d pages" % (len(compiled), len(pages(root))))
    return 0 if results and all(good for good, _ in results) else 1


# In place of the headers, which cost the time: as much as the wrappers name.
SMALL_HEAD = """#include <chrono>
#include <coroutine>
namespace weft {
struct Broker; struct Context; struct App;
struct Service { Service(const char*) {} };
template <typename T> struct Task {
  struct promise_type {
    Task get_return_object() { return {}; }
    std::suspend_never initial_suspend() { return {}; }
    std::suspend_never final_suspend() noexcept { return {}; }
    void return_void() {}
    void unhandled_exception() {}
  };
};
}
namespace"""


def self_test(compiler):
    """Of each kind, a good snippet passes and a bad one is named by its place."""

    def run(code):
        found = [("page.md", 10 * (number + 1), kind, code) for number, kind in enumerate(KINDS)]
        return compile_text(SMALL_HEAD + "\n".join(sources(found)).split("\nnamespace", 1)[1], compiler)

    faults = []
    good, said = run("static_assert(sizeof(int) > 1);\n")
    if not good:
        faults.append("good snippets are refused:\n" + said)
    good, said = run("weft::NoSuchThing thing;\n")
    faults += ["a bad snippet of kind '%s' is not named" % kind for number, kind in enumerate(KINDS)
               if good or not re.search(r"page\.md:%d:.*error" % (10 * (number + 1)), said)]
    for fault in faults:
        print("self-test: " + fault)
    return 1 if faults else 0


def main(arguments):
    if arguments[0] == "--self-test":
        return self_test(arguments[1:])
    return check(os.path.normpath(arguments[0]), arguments[1:])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
