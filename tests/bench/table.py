#!/usr/bin/env python3
"""Prints benchmark rows (JSON lines on standard input) of one name as a table."""

import json
import sys

COLUMNS = [("payload", 8), ("inFlight", 9), ("callsPerSecond", 14), ("p50us", 10), ("p90us", 10), ("p99us", 10),
           ("p999us", 10), ("cpuUsPerCall", 13), ("failures", 8)]


def main():
    name = sys.argv[sys.argv.index("--name") + 1]
    rows = [json.loads(line) for line in sys.stdin if line.strip()]
    print(f"\n{name}")
    print(" ".join(title.rjust(width) for title, width in COLUMNS))
    for row in rows:
        if row["name"] == name:
            print(" ".join(str(row.get(title, "")).rjust(width) for title, width in COLUMNS))
    sys.stdout.flush()


main()
