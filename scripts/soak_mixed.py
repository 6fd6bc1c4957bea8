#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Two processes exchange everything at once for minutes over a link that loses 5 %, doubles 1 % and
reorders 2 % of the packets: RC and XRC (SEND, WRITE, READ, atomics), UC, UD, memory windows that
are bound, written, invalidated and then tried in vain. What they have is made anew again and again.

    ./run soak --mixed                                  10 minutes
    ./run soak --mixed --seconds 60 --sanitizer thread  or address: built and run under it

The program (tests/soak/mixed.c) checks every byte and completion, and that resident memory and
descriptors of both processes stay flat. Ends with its figures; the exit code is 1 when anything was
wrong.
"""

import argparse
import os
import shutil
import subprocess
import sys
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(ROOT, "scripts"))
import check  # pylint: disable=wrong-import-position

FAULTS = "drop=5%,dup=1%,reorder=2%:200us"
FOLDERS = {"none": "build", "address": "build-asan", "thread": "build-tsan"}
# Resident memory may grow so much from the end of the warm-up on, with the sanitizers: TSan keeps
# an object for each place where the last store of a message went (docs/testing.md). What the
# program has allocated is judged besides.
GROWTH_KIB = {"none": 4096, "address": 24576, "thread": 262144}
TARGETS = ["tests/soak/mixed", "libibverbs.so.1", "libverbena.so.0"]


def build(sanitizer):
    name = FOLDERS[sanitizer]
    folder = os.path.join(ROOT, name)
    options, env = check.BUILDS[name]
    if not os.path.exists(os.path.join(folder, "build.ninja")):
        subprocess.run(["meson", "setup", folder, *options], env=dict(os.environ, **env),
                       stdout=subprocess.DEVNULL, check=True)
    subprocess.run(["ninja", "--quiet", "-C", folder, *TARGETS], check=True)
    return folder


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seconds", type=int, default=600)
    parser.add_argument("--seed", type=int, default=int(time.time()) % 1000000)
    parser.add_argument("--sanitizer", choices=FOLDERS, default="none")
    parser.add_argument("--built", metavar="FOLDER", help="a build folder that is ready")
    options = parser.parse_args()
    folder = options.built or build(options.sanitizer)
    program = os.path.join(folder, "tests", "soak", "mixed")
    growth = GROWTH_KIB[options.sanitizer]
    command = [program, str(options.seconds), str(options.seed), "vb_lo", "0", str(growth)]
    if os.geteuid() == 0 and shutil.which("unshare"):
        command = ["unshare", "--net", "sh", "-c", 'ip link set lo up && exec "$@"', "sh", *command]
    env = dict(
        os.environ,
        **check.SANITIZER_ENV,
        LD_LIBRARY_PATH=folder,
        VERBENA_FAULT=f"{FAULTS},seed={options.seed}",
    )
    print(f"soak of mixed traffic: {options.seconds} s, seed {options.seed}, faults {FAULTS}, "
          f"sanitizer: {options.sanitizer}", flush=True)
    limit = options.seconds + 180
    try:
        status = subprocess.run(command, env=env, timeout=limit, check=False).returncode
    except subprocess.TimeoutExpired:
        print(f"no end within {limit} s")
        status = 1
    print("soak of mixed traffic: " + ("ok" if status == 0 else "FAILED"))
    return 1 if status else 0


if __name__ == "__main__":
    sys.exit(main())
