# SPDX-License-Identifier: BSD-2-Clause
"""Which files are ours: what git tracks or would track; in an unpacked archive, what is there."""

import hashlib
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


def fresh_seed():
    """A number that every commit changes: of its hash, or without git of all contents."""
    command = ["git", "-c", f"safe.directory={ROOT}", "rev-parse", "HEAD"]
    try:
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
        digest = done.stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        content = hashlib.sha256()
        for path in paths():
            with open(os.path.join(ROOT, path), "rb") as file:
                content.update(path.encode() + b"\0" + file.read() + b"\0")
        digest = content.hexdigest()
    return int(digest[:12], 16)
