#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# The libraries as released: what they export, and that Debian's programs start with them.
set -u
here=$(dirname "$0")
ibverbs=${VERBENA_BUILD:?}/libibverbs.so.1
rdmacm=$VERBENA_BUILD/librdmacm.so.1
failed=0
python3 "$here/../abi/test_symbols.py" "$ibverbs" || failed=1
python3 "$here/../abi/test_symbols.py" "$rdmacm" || failed=1
python3 "$here/../abi/test_shim.py" "$VERBENA_BUILD/libverbena_files.so.0" || failed=1
python3 "$here/../abi/test_programs.py" "$ibverbs" "$rdmacm" || failed=1
exit "$failed"
