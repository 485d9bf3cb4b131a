#!/usr/bin/env python3
"""Finds links in the project's Markdown that lead nowhere, and quotes that are no longer true.

  links.py [ROOT]       checks the tree; prints one line for each fault
  links.py --self-test  shows that each rule finds what it is for

A relative link names a file or folder that exists, and its "#part" is a heading of that file. What ARCHITECTURE.md
quotes of tools/checks/arrows.txt is all of it, in its order. Code behind <!-- file: PATH --> is that file.
"""

import os
import re
import sys
import tempfile

from layering import plant, read

SKIPPED = {"build", "subprojects", "node_modules", ".git"}

FENCE = re.compile(r"^(```|~~~).*?^\1[ \t]*$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"(?<!\!)\[[^\]\n]*\]\(([^)\s]+)(?:\s+\"[^\"]*\")?\)|!\[[^\]\n]*\]\(([^)\s]+)\)")
QUOTED_FILE = re.compile(r"^<!-- file: (\S+) -->\n+```\w*\n(.*?)^```$", re.MULTILINE | re.DOTALL)
ARROW = re.compile(r"^\s*[\w./*]+\s*->.*$")


def pages(root):
    """All Markdown of the tree, as paths from its root."""
    found = []
    for folder, subfolders, names in os.walk(root):
        subfolders[:] = [name for name in subfolders if name not in SKIPPED and not name.startswith(".")]
        found += [os.path.relpath(os.path.join(folder, name), root) for name in names if name.endswith(".md")]
    return sorted(found)


def headings(text):
    """The anchors a reader's browser knows of a page."""
    anchors = set()
    for title in re.findall(r"^#{1,6}\s+(.*?)\s*#*$", FENCE.sub("", text), re.MULTILINE):
        plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", title)
        anchors.add(re.sub(r"[^\w\- ]", "", plain.lower()).replace(" ", "-"))
    return anchors


def link_faults(root, page, text):
    def blank(match):
        return re.sub(r"[^\n]", " ", match.group())

    prose = re.sub(r"`[^`\n]*`", blank, FENCE.sub(blank, text))
    for match in LINK.finditer(prose):
        target = match.group(1) or match.group(2)
        if re.match(r"[a-z][a-z+.-]*:", target):
            continue
        where = "%s:%d" % (page, prose.count("\n", 0, match.start()) + 1)
        path, _, anchor = target.partition("#")
        full = os.path.normpath(os.path.join(root, os.path.dirname(page), path)) if path else os.path.join(root, page)
        if os.path.relpath(full, root).startswith(".."):
            yield "%s: the link %s leaves the project" % (where, target)
        elif not os.path.exists(full):
            yield "%s: the link %s leads nowhere" % (where, target)
        elif anchor and (not full.endswith(".md") or anchor not in headings(read(full))):
            yield "%s: the link %s names a heading that is not there" % (where, target)


def quote_faults(root, page, text):
    for match in QUOTED_FILE.finditer(text):
        path, code = match.groups()
        where = "%s:%d" % (page, text.count("\n", 0, match.start()) + 1)
        full = os.path.join(root, path)
        if not os.path.exists(full):
            yield "%s: there is no file %s to quote" % (where, path)
        elif read(full).strip() != code.strip():
            yield "%s: this is not what %s says" % (where, path)


def arrow_faults(root):
    def arrows(name):
        return [" ".join(line.split()) for line in read(os.path.join(root, name)).splitlines() if ARROW.match(line)]

    page, source = "ARCHITECTURE.md", "tools/checks/arrows.txt"
    if not all(os.path.exists(os.path.join(root, name)) for name in (page, source)):
        return
    said, true = arrows(page), arrows(source)
    for line in true:
        if line not in said:
            yield "%s: it lacks the arrow '%s' of %s" % (page, line, source)
    for line in said:
        if line not in true:
            yield "%s: %s has no arrow '%s'" % (page, source, line)
    if sorted(said) == sorted(true) and said != true:
        yield "%s: the arrows stand in another order than in %s" % (page, source)


def check(root):
    faults = []
    for page in pages(root):
        text = read(os.path.join(root, page))
        faults += link_faults(root, page, text)
        faults += quote_faults(root, page, text)
    return faults + list(arrow_faults(root))


def self_test():
    good = {
        "README.md": "# A page\n\n[docs](docs/more.md#more-words) [code](src) `[not](a-link)`\n"
                     "[web](https://example.org/nowhere)\n```\n[not](a-link)\n```\n"
                     "<!-- file: src/a.txt -->\n\n```text\nhello\n```\n",
        "docs/more.md": "# More, words\n\n[up](../README.md) [here](#more-words)\n",
        "src/a.txt": "hello\n",
        "ARCHITECTURE.md": "    a -> b c\n",
        "tools/checks/arrows.txt": "# note\na ->   b c\n",
    }
    cases = [
        ({}, None),
        ({"docs/more.md": "[up](../READ.md)"}, "leads nowhere"),
        ({"docs/more.md": "![picture](up.png)"}, "leads nowhere"),
        ({"docs/more.md": "# More"}, "a heading that is not there"),
        ({"docs/more.md": "# More words\n[out](../../etc/passwd)"}, "leaves the project"),
        ({"src/a.txt": "goodbye\n"}, "not what src/a.txt says"),
        ({"ARCHITECTURE.md": "    a -> b\n"}, "lacks the arrow"),
        ({"ARCHITECTURE.md": "    a -> b c\n    c -> a\n"}, "has no arrow"),
    ]
    failed = 0
    for changes, expected in cases:
        with tempfile.TemporaryDirectory() as root:
            plant(root, {**good, **changes})
            faults = check(root)
        fits = any(expected in fault for fault in faults) if expected else not faults
        if not fits:
            failed += 1
            print("self-test: expected %r, got %r" % (expected, faults))
    return 1 if failed else 0


def main(arguments):
    if arguments == ["--self-test"]:
        return self_test()
    root = arguments[0] if arguments else os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
    faults = check(os.path.normpath(root))
    print("\n".join(faults) if faults else "%d pages: every link leads somewhere" % len(pages(root)))
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
