#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# libibverbs.so.1 as released: what it exports, and that Debian's programs start with it.
set -u
here=$(dirname "$0")
library=${VERBENA_BUILD:?}/libibverbs.so.1
failed=0
python3 "$here/../abi/test_symbols.py" "$library" || failed=1
python3 "$here/../abi/test_programs.py" "$library" || failed=1
exit "$failed"
