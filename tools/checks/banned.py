#!/usr/bin/env python3
"""Finds code that goes around the seams, and files that have grown too long.

  banned.py [ROOT]       checks the tree; prints one line for each fault
  banned.py --self-test  shows that each rule finds what it is for

Comments and the insides of string literals do not count. A rule names where its word may be used; everything
else is a fault. To make an exception, name the file here and say why.
"""

import os
import re
import sys
import tempfile

from layering import plant, read, sources, within

LINES_MAX = 700

CORE = ("lib", "broker", "transporters", "weft")
PROGRAMS = ("tools", "examples", "tests")

# name, pattern, where it may stand, what to do instead.
RULES = [
    ("clock", r"\b(system_clock|steady_clock|high_resolution_clock|utc_clock)\b"
              r"|\b(clock_gettime|gettimeofday|timespec_get|localtime(_r)?|gmtime(_r)?)\s*\("
              r"|(?<![\w.>:])(std::)?time\s*\(\s*(nullptr|NULL|0|&)|\b(uv_hrtime|uv_now|uv_clock_gettime)\b",
     ("lib/uv",) + PROGRAMS, "ask the EventLoop: now() or wall_ms()"),
    ("sleep", r"\b(sleep_for|sleep_until|usleep|nanosleep)\b|(^|[;{}(=])\s*(::)?sleep\s*\(", (),
     "await an event, or advance a clock"),
    ("entropy", r"\brandom_device\b|(?<![\w.>:])(std::|::)?(s?rand|drand48|random_r|rand_r)\s*\("
                r"|\b(getrandom|getentropy|RAND_bytes|arc4random|uv_random)\b|\bmt19937(_64)?\b",
     ("lib/uv",) + PROGRAMS, "draw from the Random that was passed in"),
    ("socket", r"(?<![\w>])::(socket|socketpair|bind|connect|listen|accept4?|send(to|msg)?|recv(from|msg)?|poll|select"
               r"|setsockopt|getsockopt|getaddrinfo|epoll_\w+|pipe2?|read|write|close|open|fork|execv\w*)\s*\("
               r"|(?<![\w.>:])(socket|getaddrinfo|gethostbyname|epoll_\w+|setsockopt)\s*\("
               r"|(?<![\w.>])::(gethostname|getpid|getifaddrs)\s*\(|(?<![\w.>:])(gethostname|getpid|getifaddrs)\s*\(",
     ("lib/uv",) + PROGRAMS, "use the Network, or the SystemProbe"),
    ("environment", r"\b(secure_)?getenv\b|\b(un)?setenv\b|\bputenv\b|\benviron\b", PROGRAMS,
     "options are passed in; only programs read the environment"),
    ("exit", r"(?<![\w.>])(std::)?(abort|_Exit|quick_exit|terminate)\s*\(|(?<![\w.>:])(std::|::)?_?exit\s*\(",
     PROGRAMS + ("lib/base/assert.cpp",
                 "lib/loop/task.h"),  # Detached: its body must not throw, and that is the only answer to it.
     "return an Error; WEFT_ASSERT what is our own mistake"),
    ("thread", r"\bstd::(jthread|thread|async)\b|\bpthread_create\b|\buv_(thread_create|queue_work)\b",
     ("lib/uv", "weft", "transporters/nats") + PROGRAMS, "stay on the loop, or use EventLoop::run_blocking()"),
    ("signal", r"\b(std::|::)?(signal|raise)\s*\(\s*SIG|\b(sigaction|sigprocmask|pthread_sigmask|uv_signal_\w+)\b",
     ("lib/uv",
      "transporters/nats/nats_signals.cpp") + PROGRAMS,  # Undoes what the client library does to SIGPIPE.
     "signals are the programs' matter"),
    ("console", r"\bstd::(cout|cerr|clog|cin)\b|(?<![\w.>])(std::)?(printf|puts|putchar|perror)\s*\("
                r"|(?<![\w.>])(std::)?fprintf\s*\(|\b(stdout|stderr)\b",
     PROGRAMS + ("lib/base/assert.cpp", "lib/uv/console_log_sink.cpp"), "write to the Logger"),
    ("throw", r"\bthrow\b",
     PROGRAMS + ("lib/error/error.cpp",  # Error::raise(), where values become exceptions at the user's edge.
                 "lib/value/value.cpp",  # ValueError of the typed accessors, as documented.
                 "broker/services/node_service.cpp"),  # Handlers: they throw as a user's would.
     "return a Result; only Error::raise() throws"),
    ("using namespace", r"^using\s+namespace\s+(?!std::\w*literals)", PROGRAMS,
     "name what you use"),
]

LITERAL = re.compile(
    r'//[^\n]*|/\*.*?\*/|R"([^()\\\s]{0,16})\(.*?\)\1"|"(?:[^"\\\n]|\\.)*"|\'(?:[^\'\\\n]|\\.)+\'', re.DOTALL)


def code_only(text):
    """The text with comments gone and literals empty, line by line as before."""
    def blank(found):
        piece = found.group(0)
        if piece.startswith("//") or piece.startswith("/*"):
            return "\n" * piece.count("\n")
        return '""' + "\n" * piece.count("\n")

    # A digit separator looks like the start of a character literal.
    return LITERAL.sub(blank, re.sub(r"(?<=[0-9a-fA-F])'(?=[0-9a-fA-F])", "", text))


def unordered_names(code):
    """Variables and members that are hash tables."""
    return set(re.findall(r"\bunordered_(?:flat_)?(?:multi)?(?:map|set)<[^;{}()]*>\s*&?\s*(\w+)\s*(?:[;={(]|$)", code,
                          re.MULTILINE))


def hash_order_faults(path, code, raw_lines, names):
    """Loops over hash tables: their order differs from machine to machine, and a simulation must not see it."""
    if not names:
        return []
    loop = re.compile(r"\bfor\s*\([^;]*:\s*(?:\w+(?:\.|->))*(" + "|".join(sorted(names)) + r")\s*\)"
                      r"|\b(" + "|".join(sorted(names)) + r")\.begin\(\)")
    faults = []
    for number, line in enumerate(code.splitlines(), 1):
        if not loop.search(line):
            continue
        around = " ".join(raw_lines[max(0, number - 3):number])
        if not re.search(r"//.*\border\b", around, re.IGNORECASE):
            faults.append(f"{path}:{number}: a loop over a hash table: say in a comment above why the order does not "
                          "matter, or use an ordered one")
    return faults


def check(root):
    faults = []
    files = sources(root)
    codes = {path: code_only(read(os.path.join(root, path))) for path in files}
    for path in files:
        raw_lines = read(os.path.join(root, path)).splitlines()
        if len(raw_lines) > LINES_MAX:
            faults.append(f"{path}: {len(raw_lines)} lines, more than {LINES_MAX}: one file, one job")
        for number, line in enumerate(codes[path].splitlines(), 1):
            for name, pattern, places, instead in RULES:
                if not within(path, places) and re.search(pattern, line):
                    faults.append(f"{path}:{number}: {name}: {line.strip()[:60]}: {instead}")
        if within(path, CORE) and not within(path, ("lib/uv",)):
            header = os.path.splitext(path)[0] + ".h"
            names = unordered_names(codes[path]) | unordered_names(codes.get(header, ""))
            faults += hash_order_faults(path, codes[path], raw_lines, names)
    return faults


GOOD = {
    "lib/uv/loop.cpp": "auto a = std::chrono::steady_clock::now();\nstd::random_device d;\nint s = ::socket(1, 2, 3);\n",
    "broker/a.cpp": "// std::rand() and ::socket( in a comment\n/* steady_clock\n getenv */\nauto s = \"exit(1)\";\n"
                    "auto r = R\"(throw 1)\";\nint n = 1'000'000; x.connect(y); random.next(); stream->close();\n"
                    "Task<void> sleep(Duration duration);\nvoid f() {\n  using namespace std::chrono;\n}\n"
                    "network_.listen(at); std::rethrow_exception(e); Error::raise(); transporter.send(f);\n",
    "broker/b.cpp": "std::unordered_map<int, int> table;\nint x = table.find(1)->second;\n"
                    "// Order does not matter: all are counted.\nfor (auto& row : table) ++x;\n",
    "tools/x/main.cpp": 'int main() { std::printf("%s", getenv("A")); std::exit(1); }\n',
    "tests/t.cpp": "throw 1;\n",
}
BAD = [
    ("lib/net/x.cpp", "auto t = std::chrono::system_clock::now();", "clock"),
    ("lib/net/x.cpp", "using Clock = std::chrono::steady_clock;", "clock"),
    ("broker/x.cpp", "auto t = time(nullptr);", "clock"),
    ("tests/x.cpp", "std::this_thread::sleep_for(1ms);", "sleep"),
    ("tests/x.cpp", "  sleep(1);", "sleep"),
    ("broker/x.cpp", "int r = rand();", "entropy"),
    ("broker/x.cpp", "int r = std::rand() % 6;", "entropy"),
    ("broker/x.h", "std::random_device entropy;", "entropy"),
    ("broker/x.h", "std::mt19937 generator;", "entropy"),
    ("transporters/tcp/x.cpp", "int s = ::socket(AF_INET, SOCK_STREAM, 0);", "socket"),
    ("transporters/tcp/x.cpp", "int s = socket(AF_INET, SOCK_STREAM, 0);", "socket"),
    ("transporters/tcp/x.cpp", "::close(s);", "socket"),
    ("broker/x.cpp", "auto p = getpid();", "socket"),
    ("broker/x.cpp", 'auto v = std::getenv("NODEID");', "environment"),
    ("broker/x.cpp", "std::exit(1);", "exit"),
    ("broker/x.cpp", "if (bad) abort();", "exit"),
    ("broker/x.cpp", "std::thread worker(run);", "thread"),
    ("broker/x.cpp", "auto f = std::async(run);", "thread"),
    ("broker/x.cpp", "std::signal(SIGTERM, stop);", "signal"),
    ("broker/x.cpp", "std::cerr << 1;", "console"),
    ("broker/x.cpp", 'printf("x");', "console"),
    ("broker/x.cpp", "throw std::runtime_error(text);", "throw"),
    ("broker/x.h", "using namespace std;", "using namespace"),
    ("broker/x.cpp", "std::unordered_map<int, int> m;\nfor (auto& [k, v] : m) use(k);", "hash table"),
    ("broker/b.cpp", "\nfor (auto& row : self.table) ++x;\nstd::unordered_set<std::string> table;", "hash table"),
    ("broker/x.cpp", "int a;\n" * (LINES_MAX + 1), "one job"),
]


def self_test():
    failures = 0
    for path, text, wanted in [("lib/base/y.cpp", "int a;", None)] + BAD:
        with tempfile.TemporaryDirectory() as root:
            plant(root, GOOD)
            plant(root, {path: text + "\n"})
            faults = check(root)
        good = not faults if wanted is None else len(faults) == 1 and wanted in faults[0]
        if not good:
            failures += 1
            print(f"self-test: wanted {wanted or 'no fault'!r} for {text[:80]!r}, got {faults}")
    print(f"{len(BAD) + 1 - failures} passed, {failures} failed")
    return failures == 0


def main(arguments):
    if arguments[:1] == ["--self-test"]:
        return 0 if self_test() else 1
    here = os.path.dirname(os.path.abspath(__file__))
    root = arguments[0] if arguments else os.path.join(here, "..", "..")
    faults = check(root)
    for fault in faults:
        print(fault)
    print(f"{len(faults)} faults in {len(sources(root))} files")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
