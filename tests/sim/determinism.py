#!/usr/bin/env python3
"""Two runs of a seed leave the same trace hash: in one process, and in two, whose addresses differ.

  determinism.py SIM_SWARM [SEEDS]
"""

import subprocess
import sys


def hashes(program, seeds, twice):
    command = [program, "--seeds", "1", str(seeds), "--hashes"] + (["--twice"] if twice else [])
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    return done.stdout.split("\n")


def main():
    program, seeds = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 20
    first = hashes(program, seeds, twice=True)
    second = hashes(program, seeds, twice=False)
    lines = [line for line in second if line]
    assert len(lines) == seeds, "a line for each seed: %s" % second
    assert len(set(line.split()[1] for line in lines)) == seeds, "different seeds leave different traces"
    for number, line in enumerate(lines):
        assert first[2 * number] == line and first[2 * number + 1] == line, \
            "seed %d: %s in one process, %s in another" % (number + 1, first[2 * number:2 * number + 2], line)
    print("%d seeds, three runs each, one hash each" % seeds)


if __name__ == "__main__":
    main()
