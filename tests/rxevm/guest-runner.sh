#!/bin/dash
# SPDX-License-Identifier: BSD-2-Clause
# guest-runner PORT: serve commands that come over one virtio-serial port.
#
# The host writes one line:   RUN token timeout_s base64(shell script)
# and gets                    \nBEGIN token\n  <stdout and stderr>  \nEND token status\n
# The status is 124 when the time was up.  (dash by its path: given just "sh", busybox would
# run its own shell, which prefers its own ip and tc.)
# One command at a time per port; the host side picks a free port.  A command
# that should go on in the background must redirect its output (cmd >/tmp/log 2>&1 &).
port=$1
n=${port##*p}
exec 3<>"$port"
while :; do
    # read sees end of file while no host is connected
    if ! read -r word token limit b64 <&3; then sleep 0.2; continue; fi
    [ "$word" = RUN ] || continue
    echo "$b64" | base64 -d > "/tmp/.run$n"
    printf '\nBEGIN %s\n' "$token" >&3
    # in a process group of its own, so that all of it can be ended when the time is up
    rm -f "/tmp/.late$n"
    setsid /bin/dash "/tmp/.run$n" </dev/null >&3 2>&1 3>&- &
    pid=$!
    (
        sleep "$limit"
        : >"/tmp/.late$n"
        kill -TERM -"$pid"; sleep 2; kill -KILL -"$pid"
    ) </dev/null >/dev/null 2>&1 3>&- &
    dog=$!
    wait "$pid"; status=$?
    kill "$dog" 2>/dev/null; wait "$dog" 2>/dev/null
    [ -e "/tmp/.late$n" ] && status=124
    printf '\nEND %s %d\n' "$token" "$status" >&3
done
