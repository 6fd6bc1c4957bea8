#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Makes files strings of a C source, for meson: scripts/embed.py OUTPUT NAME=FILE...

Each becomes `const char NAME[]`, with a zero behind it; a FILE that is empty ("NAME=") an empty
string. Files of one name become one string, in their order.
"""

import re
import sys

PIECE_BYTES = 4000


def literal(data):
    """The bytes as string literals, one a line."""
    pieces = [data[at : at + PIECE_BYTES] for at in range(0, len(data), PIECE_BYTES)] or [b""]
    for piece in pieces:
        text = piece.decode("latin-1").replace("\\", "\\\\").replace('"', '\\"')
        text = text.replace("\n", "\\n").replace("?", "\\?")  # no trigraphs
        text = re.sub(r"[^ -~]", lambda c: f"\\{ord(c.group(0)):03o}", text)
        yield f'    "{text}"'


def read(path):
    with open(path, "rb") as file:
        data = file.read()
    if b"\0" in data or (path.endswith(".js") and re.search(rb"</script|<!--", data, re.I)):
        raise ValueError(f"{path} cannot stand in a page: it has a zero, </script or <!--")
    return data


def embed(name, paths):
    lines = "\n".join(literal(b"".join(read(path) for path in paths if path)))
    return f"extern const char {name}[];\nconst char {name}[] =\n{lines};\n"


def main():
    output, *parts = sys.argv[1:]
    names = {}
    for part in parts:
        name, path = part.split("=", 1)
        names.setdefault(name, []).append(path)
    try:
        text = "".join(embed(*item) for item in names.items())
    except (OSError, ValueError) as error:
        sys.stderr.write(f"embed.py: {error}\n")
        return 1
    with open(output, "w", encoding="ascii") as file:
        file.write(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
