# SPDX-License-Identifier: BSD-2-Clause
"""Which files are ours: what git tracks or would track; in an unpacked archive, what is there."""

import os
import subprocess

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def paths():
    """Our files that exist, as paths from the root."""
    command = ["git", "-c", f"safe.directory={ROOT}", "ls-files", "-zco", "--exclude-standard"]
    try:
        listed = subprocess.run(command, cwd=ROOT, capture_output=True, check=True)
        names = listed.stdout.decode().split("\0")
    except (OSError, subprocess.CalledProcessError):
        names = []
        for folder, folders, found in os.walk(ROOT):
            folders[:] = [f for f in folders if not f.startswith(("build", ".git"))]
            names += [os.path.relpath(os.path.join(folder, name), ROOT) for name in found]
    return sorted(n for n in names if n and os.path.isfile(os.path.join(ROOT, n)))
