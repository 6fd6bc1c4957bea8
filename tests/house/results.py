# SPDX-License-Identifier: BSD-2-Clause
"""What the tests of our scripts found, as TAP."""


def report(results):
    """Prints them; each is a name, whether it passed, and what was found. The exit code."""
    print(f"1..{len(results)}")
    for number, (name, passed, found) in enumerate(results, 1):
        print(f"{'ok' if passed else 'not ok'} {number} - {name}")
        if not passed:
            print("#", found)
    return 0 if all(passed for _, passed, _ in results) else 1
