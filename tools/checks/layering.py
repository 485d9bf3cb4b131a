#!/usr/bin/env python3
"""Reads every #include of the tree and fails when one points the wrong way.

  layering.py [ROOT]          checks the tree; prints one line for each fault
  layering.py --self-test     shows that each rule finds what it is for
  layering.py --public [ROOT] lists the headers that users get, one a line

The arrows between folders stand in arrows.txt beside this script, for people and for this. The rules on
third-party headers stand below.
"""

import os
import re
import sys
import tempfile

CODE = ("lib", "broker", "transporters", "weft", "tools", "examples", "tests")
# These compose: they may include everything.
FREE = ("tools", "examples", "tests")

# Headers from outside the project: pattern, the areas that may include it, whether only in .cpp files, why.
OUTSIDE = [
    (r"uv\.h", ("lib/uv",), False, "the loop and the sockets are behind lib/loop and lib/net"),
    (r"(nats/)?nats\.h", ("transporters/nats",), False, "only the NATS transporter speaks to its library"),
    (r"(msgpack|simdjson)(\.h|\.hpp|/.*)", ("lib/protocol",), True, "users must not compile the parsers"),
    (r"(spdlog|fmt)/.*", ("lib/uv", "tools"), True, "logging goes through lib/base/log.h"),
    (r"openssl/.*", ("lib", "broker", "transporters", "tools"), True, "users must not need the headers of it"),
    (r"(CLI|toml\+\+)/.*|toml\.hpp", ("tools",), True, "options and files are the programs' matter"),
    (r"dlfcn\.h", ("tools", "weft", "lib/uv"), True, "modules are loaded in one place"),
    (r"doctest/.*", ("tests",), False, "tests stand in tests/"),
    (r"(sys|netinet|net|arpa)/.*|poll\.h|unistd\.h|fcntl\.h|netdb\.h|ifaddrs\.h|pthread\.h|signal\.h|csignal"
     r"|malloc\.h|time\.h|sched\.h|pwd\.h|termios\.h|glob\.h|dirent\.h|spawn\.h|execinfo\.h",
     ("lib/uv", "transporters/nats", "tools"), True, "the system is asked through the seams"),
]
STANDARD = re.compile(r"[a-z_0-9]+")  # <vector>, <cstdint>, <stdexcept>: no slash, no suffix.

INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*(?:"([^"\n]+)"|<([^>\n]+)>)', re.MULTILINE)


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def sources(root):
    """All C++ files of the tree, as paths from its root."""
    found = []
    for top in CODE:
        for folder, subfolders, names in os.walk(os.path.join(root, top)):
            subfolders[:] = [name for name in subfolders if name != "node_modules" and not name.startswith("build")]
            for name in names:
                if name.endswith((".h", ".cpp", ".inc")):
                    found.append(os.path.relpath(os.path.join(folder, name), root).replace(os.sep, "/"))
    return sorted(found)


def read_arrows(text):
    """{area: areas it stands on}, and the faults of the table itself."""
    arrows, faults = {}, []
    for number, line in enumerate(text.splitlines(), 1):
        line = line.split("#", 1)[0].strip()
        if not line:
            continue
        area, arrow, targets = line.partition("->")
        if not arrow:
            faults.append(f"arrows.txt:{number}: no arrow in this line")
            continue
        arrows[area.strip()] = targets.split()
    for area, targets in arrows.items():
        for target in targets:
            if target not in arrows:
                faults.append(f"arrows.txt: {area} stands on {target}, which is no area")
    return arrows, faults


def reachable(arrows):
    """{area: all areas it may include}, and the circles among the arrows."""
    closed, faults = {}, []

    def visit(area, above):
        if area in above:
            faults.append("arrows.txt: a circle: " + " -> ".join(above[above.index(area):] + [area]))
            return set()
        if area not in closed:
            result = {area}
            for target in arrows.get(area, []):
                result |= visit(target, above + [area])
            closed[area] = result
        return closed[area]

    for area in arrows:
        visit(area, [])
    return closed, faults


def area_of(path, areas):
    """The most special area that `path` is of: its own, its stem's, its folder's, or that of a folder above."""
    folder = path.rpartition("/")[0]
    candidates = [path, os.path.splitext(path)[0], folder + "/*"]
    while folder:
        candidates.append(folder)
        folder = folder.rpartition("/")[0]
    return next((area for area in candidates if area in areas), None)


def within(path, folders):
    return any(path == folder or path.startswith(folder + "/") for folder in folders)


def circles(graph):
    """The first circle found through each file, as lists of files."""
    found, done = [], set()

    def visit(path, above, on_path):
        if path in on_path:
            found.append(above[above.index(path):] + [path])
            return
        if path in done:
            return
        on_path.add(path)
        for target in graph.get(path, []):
            visit(target, above + [path], on_path)
        on_path.discard(path)
        done.add(path)

    for path in sorted(graph):
        visit(path, [], set())
    return found


class Tree:
    def __init__(self, root):
        self.root = root
        self.files = sources(root)
        self.own = {}  # path -> files of the tree it includes, in order
        self.outside = {}  # path -> other headers it includes
        self.faults = []
        for path in self.files:
            self.own[path], self.outside[path] = [], []
            for quoted, angled in INCLUDE.findall(read(os.path.join(root, path))):
                if angled:
                    self.outside[path].append(angled)
                elif self.exists(quoted):
                    self.own[path].append(quoted)
                else:
                    self.faults.append(f'{path}: includes "{quoted}", which is no path from the root of the tree')

    def exists(self, path):
        return any(os.path.isfile(os.path.join(self.root, path + suffix)) for suffix in ("", ".in"))

    def public_headers(self):
        """What users include, and all that it pulls in."""
        waiting = [path for path in self.files if path.endswith(".h") and path.startswith("weft/")]
        seen = set(waiting)
        while waiting:
            for target in self.own.get(waiting.pop(), []):
                if target not in seen:
                    seen.add(target)
                    waiting.append(target)
        return sorted(seen)


def check(root, arrows_text):
    tree = Tree(root)
    arrows, faults = read_arrows(arrows_text)
    allowed, circular = reachable(arrows)
    faults += circular + tree.faults

    for path in tree.files:
        free = within(path, FREE)
        area = None if free else area_of(path, arrows)
        if not free and area is None:
            faults.append(f"{path}: stands in no area of arrows.txt")
            continue
        for target in tree.own[path]:
            if free:
                continue
            target_area = area_of(target, arrows)
            if target_area not in allowed[area]:
                faults.append(f"{path}: includes {target}: {area} does not stand on {target_area or target}")
        for header in tree.outside[path]:
            faults += outside_faults(path, header)
        if path.endswith(".cpp"):
            own_header = path[:-len(".cpp")] + ".h"
            if tree.exists(own_header) and tree.own[path][:1] != [own_header]:
                faults.append(f"{path}: its own header must be the first it includes")
            elif tree.exists(own_header) and first_include(root, path) != own_header:
                faults.append(f"{path}: its own header must be the first it includes")
        if path.endswith(".h") and not re.search(r"^#pragma once$", read(os.path.join(root, path)), re.MULTILINE):
            faults.append(f"{path}: no #pragma once")

    for circle in circles(tree.own):
        faults.append("circular includes: " + " -> ".join(circle))

    for path in tree.public_headers():
        for header in tree.outside.get(path, []):
            if not STANDARD.fullmatch(header):
                faults.append(f"{path}: users get this header, and it includes <{header}>: only std and weft may be")
    return faults


def first_include(root, path):
    found = INCLUDE.search(read(os.path.join(root, path)))
    return found and (found.group(1) or found.group(2))


def outside_faults(path, header):
    for pattern, areas, only_cpp, why in OUTSIDE:
        if not re.fullmatch(pattern, header):
            continue
        if within(path, ("tests",)):
            return []
        if not within(path, areas):
            return [f"{path}: <{header}> belongs to {', '.join(areas)}: {why}"]
        if only_cpp and not path.endswith(".cpp") and not within(path, ("tools",)):
            return [f"{path}: <{header}> only in .cpp files: {why}"]
        return []
    if STANDARD.fullmatch(header) or within(path, ("tests",)):
        return []
    return [f"{path}: <{header}> is a header nobody has thought about: give it a rule in layering.py"]


SELF_TEST_ARROWS = """
lib/base -> # the ground
lib/net  -> lib/base
lib/uv   -> lib/net
broker/core  -> broker/* lib/net
broker/*     -> lib/base
broker/d.cpp -> broker/core
"""
GOOD = {
    "lib/base/a.h": "#pragma once\n#include <vector>\n",
    "lib/base/a.cpp": '#include "lib/base/a.h"\n\n#include <string>\n',
    "lib/net/n.h": '#pragma once\n#include "lib/base/a.h"\n',
    "lib/uv/u.h": '#pragma once\n#include <uv.h>\n#include "lib/net/n.h"\n',
    "broker/b.h": '#pragma once\n#include "lib/base/a.h"\n',
    "broker/core.h": '#pragma once\n#include "broker/b.h"\n#include "lib/net/n.h"\n',
    "broker/d.cpp": '#include "broker/core.h"\n',
    "tests/t.cpp": '#include "lib/uv/u.h"\n#include <doctest/doctest.h>\n',
}
# What is planted -> a piece of the line that must name it.
BAD = [
    ({"lib/base/x.h": '#pragma once\n#include "lib/net/n.h"\n'}, "lib/base does not stand on lib/net"),
    ({"broker/x.cpp": '#include "lib/net/n.h"\n'}, "broker/* does not stand on lib/net"),
    ({"broker/x.cpp": '#include "broker/core.h"\n'}, "broker/* does not stand on broker/core"),
    ({"broker/x.cpp": '#include "lib/uv/u.h"\n'}, "broker/* does not stand on lib/uv"),
    ({"lib/base/x.cpp": '  #  include "tests/t.h"\n', "tests/t.h": "#pragma once\n"}, "does not stand on tests/t.h"),
    ({"weft/x.h": "#pragma once\n"}, "stands in no area"),
    ({"broker/new/x.h": "#pragma once\n"}, "stands in no area"),
    ({"lib/net/x.cpp": "#include <uv.h>\n"}, "<uv.h> belongs to lib/uv"),
    ({"lib/net/x.cpp": "#include <nats/nats.h>\n"}, "<nats/nats.h> belongs to"),
    ({"lib/net/x.cpp": "#include <sys/socket.h>\n"}, "<sys/socket.h> belongs to"),
    ({"lib/uv/x.h": "#pragma once\n#include <spdlog/spdlog.h>\n"}, "only in .cpp files"),
    ({"broker/x.cpp": "#include <boost/asio.hpp>\n"}, "nobody has thought about"),
    ({"lib/base/a.cpp": '#include <string>\n#include "lib/base/a.h"\n'}, "own header must be the first"),
    ({"lib/base/a.cpp": "#include <string>\n"}, "own header must be the first"),
    ({"lib/base/x.h": '#pragma once\n#include "lib/base/y.h"\n', "lib/base/y.h": '#pragma once\n#include "lib/base/x.h"\n'},
     "circular includes"),
    ({"lib/base/x.h": '#pragma once\n#include "a.h"\n'}, "no path from the root"),
    ({"lib/base/x.h": "#include <vector>\n"}, "no #pragma once"),
    ({"arrows.txt": SELF_TEST_ARROWS + "lib/base -> lib/uv\n"}, "a circle"),
    ({"arrows.txt": SELF_TEST_ARROWS + "weft -> lib/moon\n"}, "which is no area"),
    ({"arrows.txt": SELF_TEST_ARROWS + "weft -> lib/uv\n", "weft/w.h": '#pragma once\n#include "lib/uv/u.h"\n'},
     "users get this header"),
]


def plant(root, files):
    for path, text in files.items():
        full = os.path.join(root, path)
        os.makedirs(os.path.dirname(full), exist_ok=True)
        with open(full, "w", encoding="utf-8") as file:
            file.write(text)


def self_test():
    failures = 0
    for files, wanted in [({}, None)] + BAD:
        with tempfile.TemporaryDirectory() as root:
            plant(root, GOOD)
            plant(root, files)
            faults = check(root, files.get("arrows.txt", SELF_TEST_ARROWS))
        good = not faults if wanted is None else any(wanted in fault for fault in faults)
        if not good:
            failures += 1
            print(f"self-test: wanted {wanted or 'no fault'!r} for {files}, got {faults}")
    print(f"{len(BAD) + 1 - failures} passed, {failures} failed")
    return failures == 0


def main(arguments):
    if arguments[:1] == ["--self-test"]:
        return 0 if self_test() else 1
    here = os.path.dirname(os.path.abspath(__file__))
    public = arguments[:1] == ["--public"]
    root = (arguments[1:] if public else arguments)[:1] or [os.path.join(here, "..", "..")]
    if public:
        print("\n".join(Tree(root[0]).public_headers()))
        return 0
    faults = check(root[0], read(os.path.join(here, "arrows.txt")))
    for fault in faults:
        print(fault)
    print(f"{len(faults)} faults in {len(sources(root[0]))} files")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
