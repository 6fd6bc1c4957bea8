#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""What `meson install` puts where, and that all of it works from there: the programs find one
another and the libraries by the places that they were built for. The tree is mounted on its prefix
in a mount namespace of the test's own, so that the machine's stays as it is.
"""

import json
import os
import shutil
import sys
import tempfile

import e2e
from e2e import demand

LITTLE = ["--op", "write", "--size", "64", "--depth", "1", "--iterations", "5", "--baseline", "off"]


class Installed:
    def __enter__(self):
        e2e.need_root()
        e2e.need("unshare", "meson")
        self.folder = tempfile.mkdtemp(prefix="test-install-")
        command = ["meson", "install", "-C", e2e.BUILD, "--no-rebuild", "--destdir", self.folder]
        status, out, err = e2e.run(command, 60)
        demand(status == 0, out[-1500:] + err)
        self.files = {}
        for where, _, names in os.walk(self.folder):
            for name in names:
                path = os.path.join(where, name)
                self.files[path[len(self.folder):]] = path
        (program,) = [path for path in self.files if path.endswith("/bin/verbena")]
        self.prefix = program[: -len("/bin/verbena")]
        self.program = program
        return self

    def __exit__(self, *_):
        shutil.rmtree(self.folder)

    def named(self, name):
        found = [path for path in self.files if os.path.basename(path) == name]
        demand(len(found) == 1, f"{name} is at {found}")
        return found[0]

    def run(self, *command, env=None):
        """In a mount namespace where the prefix has what was installed, and the build is not."""
        script = ('mount --bind "$1" "$2" && mount -t tmpfs none "$3" && shift 3 && cd / &&'
                  ' exec "$@"')
        line = ["unshare", "-m", "sh", "-c", script, "sh", self.folder + self.prefix, self.prefix,
                e2e.BUILD, *command]
        return e2e.run(line, 60, env=env)


def layout(tree):
    """Our libraries have a folder of their own: nobody's linker finds them by chance."""
    for name in ("libibverbs.so.1", "librdmacm.so.1", "libverbena.so.0", "libverbena_files.so.0"):
        folder = os.path.dirname(tree.named(name))
        demand(os.path.basename(folder) == "verbena" and "/lib" in folder, f"{name} in {folder}")
    for name in ("verbena-lab", "verbena-lab-pmix.so"):
        where = f"{tree.prefix}/libexec/verbena/{name}"
        demand(tree.named(name) == where, f"{name}: {tree.named(name)}")
    for page in ("verbena.1", "verbena-lab.1", "verbena-run.1", "verbena-devices.1", "verbena.7"):
        demand("/share/man/man" in tree.named(page), tree.named(page))


def no_way_back(tree):
    """Nothing looks for its libraries in the build folder."""
    e2e.need("readelf")
    for path in tree.files.values():
        with open(path, "rb") as file:
            if file.read(4) != b"\x7fELF":
                continue
        status, text, err = e2e.run(["readelf", "-d", path], 30)
        demand(status == 0, err)
        bad = [line for line in text.splitlines() if "PATH" in line and e2e.BUILD in line]
        demand(not bad, f"{path}: {bad}")


def runs(tree):
    status, out, err = tree.run(tree.program, "run", "--", "cat", "/proc/self/maps")
    demand(status == 0, err)
    demand(tree.named("libibverbs.so.1") in out, "the installed library is not preloaded")
    status, out, err = tree.run(tree.program, "devices")
    demand(status == 0 and "vb_lo" in out, out + err)


def lab(tree):
    status, out, err = tree.run(tree.program, "lab", "local", *LITTLE, "--json", "-")
    demand(status == 0, out + err)
    demand(json.loads(out)["source"]["nic"] == "Verbena", out)
    status, out, err = tree.run(tree.program, "lab", "path", "--op", "send", "--size", "64")
    demand(status == 0 and "SEND Only, PSN" in out, out + err)


def mpi(tree):
    e2e.need("mpirun")
    command = ["mpirun", "--allow-run-as-root", "--oversubscribe", "-np", "2", tree.program, "lab"]
    status, out, err = tree.run(*command, "mpi", *LITTLE)
    demand(status == 0 and "Verdict: passed" in out, out + err)


def missing(tree):
    """What is missing is named, with where it was looked for."""
    hidden = {}
    try:
        for name in ("verbena-lab", "libibverbs.so.1"):
            path = tree.files[tree.named(name)]
            hidden[path] = os.path.join(tree.folder, "hidden-" + name)
            os.rename(path, hidden[path])
        for words, name in ((["run", "--", "true"], "libibverbs.so.1"),
                            (["lab", "local"], "verbena-lab")):
            status, _, err = tree.run(tree.program, *words)
            demand(status == 69, f"{words}: {status} {err}")
            folder = os.path.dirname(tree.named(name))
            demand(f"{name} is neither beside this program nor in {folder}" in err, err)
    finally:
        for path, away in hidden.items():
            os.rename(away, path)


def cases(tap):
    with Installed() as tree:
        for name, function in (("layout", layout), ("no_way_back", no_way_back), ("runs", runs),
                               ("lab", lab), ("mpi", mpi), ("missing", missing)):
            tap.run(name, function, tree)


if __name__ == "__main__":
    sys.exit(e2e.main(cases))
