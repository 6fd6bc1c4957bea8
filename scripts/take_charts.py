#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Takes the chart library from npm, for meson: scripts/take_charts.py NPM LOCK FOLDER OUTPUT...

LOCK is a package-lock.json with its package.json beside it; npm refuses what has not the hashes
that the lock has. Each OUTPUT is named PACKAGE-FILE after a file of the package, and is a copy of
it. FOLDER is for npm's work and gone afterwards: a package is 30 times as large as what we take.
"""

import os
import shutil
import subprocess
import sys

# Output: where npm puts it.
FILES = {
    "echarts-echarts.min.js": "echarts/dist/echarts.min.js",
    "echarts-LICENSE": "echarts/LICENSE",
    "echarts-NOTICE": "echarts/NOTICE",
    "echarts-LICENSE-zrender": "zrender/LICENSE",
}
NPM_WORDS = ["ci", "--ignore-scripts", "--no-audit", "--no-fund", "--prefer-offline"]
LIMIT_SECONDS = 300
HELP = """take_charts.py: npm could not fetch the chart library of the HTML reports ({reason}).
It needs the npm registry, or a cache that has it, once. To build without charts:
    meson configure {build} -Dreports=disabled"""


def take(npm, lock, folder, outputs):
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
    for name in ("package.json", "package-lock.json"):
        shutil.copy(os.path.join(os.path.dirname(lock), name), folder)
    done = subprocess.run(
        [npm, *NPM_WORDS],
        cwd=folder,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=LIMIT_SECONDS,
        check=False,
    )
    if done.returncode != 0:
        sys.stderr.write(done.stdout)
        raise OSError(f"exit code {done.returncode}")
    for output in outputs:
        source = FILES[os.path.basename(output)]
        shutil.copyfile(os.path.join(folder, "node_modules", source), output)


def main():
    npm, lock, folder, *outputs = sys.argv[1:]
    try:
        take(npm, lock, folder, outputs)
    except (OSError, subprocess.SubprocessError) as error:
        sys.stderr.write(HELP.format(reason=error, build=os.getcwd()) + "\n")
        return 1
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
