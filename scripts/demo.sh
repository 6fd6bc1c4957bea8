#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# ./run demo: Debian's own RDMA programs, untouched, as two processes on 127.0.0.1 over the software
# NIC; ends with a table of what ran and a report of the lab. Exit code 1 when one of them failed.
# Takes about 30 seconds. `./run demo report`: the lab's report alone.
set -u
cd "$(dirname "$0")/.." || exit 70

verbena=${VERBENA:-build/verbena}
device=vb_lo
gid=0       # ::ffff:127.0.0.1
port=18600  # the first that is tried; each pair has one of its own
limit=40    # seconds that one program may take
lab_limit=120
lab_words='--op write,read,send --size 64,64KiB --depth 1,4,16,64 --iterations 100
           --experiment torn,flag'
logs=${DEMO_LOGS:-build/demo-logs}
table=$logs/table
report=$logs/lab.html
step=0
steps=10
failed=0
server=

mkdir -p "$logs" || exit 70
: >"$table"

finish() {
    if [ -n "$server" ]; then
        kill "$server" 2>/dev/null
        wait "$server" 2>/dev/null
    fi
}
trap finish EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

options= # of `verbena run`, words without spaces
# shellcheck disable=SC2086 # split
on_nic() { "$verbena" run $options -- timeout "$limit" "$@"; }

row() { printf '%-16s %-27s %6s  %-31s %s\n' "$@" >>"$table"; }

progress() { # NAME
    step=$((step + 1))
    printf '[%2d/%d] %-16s ' "$step" "$steps" "$1"
}

show() { # PROGRAM ARGUMENT...: one that needs no partner, its output shown
    printf '\n$ %s run -- %s\n' "$verbena" "$*"
    on_nic "$@" 2>&1 && return
    echo "   FAILED: exit code $?"
    failed=$((failed + 1))
    row "$1" "lists devices" - FAILED ""
}

listening() { [ -n "$(ss -Hltn "sport = :$port")" ]; }

free_port() {
    port=$((port + 1))
    while listening; do
        port=$((port + 1))
    done
}

# Until the server listens; it may also have ended already, or be slow: 10 seconds.
await_server() {
    tries=0
    until listening || [ "$tries" -ge 200 ] || ! kill -0 "$server" 2>/dev/null; do
        tries=$((tries + 1))
        sleep 0.05
    done
}

pair() { # WHAT SIZE PARSER PROGRAM ARGUMENT...: as server and, with an address, as client
    what=$1 size=$2 parser=$3
    shift 3
    name=$1
    progress "$name"
    free_port
    on_nic "$@" -p "$port" >"$logs/$name.server" 2>&1 &
    server=$!
    await_server
    status=0
    on_nic "$@" -p "$port" 127.0.0.1 >"$logs/$name.client" 2>&1 || status=$?
    if [ "$status" -ne 0 ]; then
        kill "$server" 2>/dev/null
    fi
    other=0
    wait "$server" || other=$?
    server=
    result=$("$parser" <"$logs/$name.client")
    if [ "$status" -eq 0 ] && [ "$other" -eq 0 ] && [ -n "$result" ]; then
        bandwidth=${result%%|*} latency=${result#*|}
        row "$name" "$what" "$size" "$bandwidth" "$latency"
        [ "$bandwidth" = - ] && echo "$latency" || echo "$bandwidth"
    else
        failed=$((failed + 1))
        row "$name" "$what" "$size" "FAILED (exit codes $status, $other)" ""
        echo "FAILED: client $status, server $other; output in $logs/$name.*"
        tail -n 5 "$logs/$name.server" "$logs/$name.client" | sed 's/^/     | /'
    fi
}

# Parsers read a client's output and print `bandwidth|latency`, nothing where there are no figures.
pingpong() { sed -n 's/.* = \([0-9.]*\) usec\/iter.*/-|\1 us to and fro/p'; }
# perftest's last line of figures: size, iterations, peak, average Gb/s, million messages a second
# (shown in thousands).
bandwidth() {
    awk '$1 ~ /^[0-9]+$/ && NF == 5 {
             r = sprintf("%.1f thousand/s", $5 * 1000)
             if ($1 >= 1024) r = sprintf("%.2f Gbit/s, %s", $4, r)
             r = r "|-"
         }
         END { print r }'
}
# Size, iterations, min, max, typical, average, deviation, 99%, 99.9%, in us (perftest halves the
# round trip of Sends and Writes; Reads and atomics are whole ones).
latency() {
    awk '$1 ~ /^[0-9]+$/ && NF == 9 { r = sprintf("-|%s us typical, 99%% under %s us", $5, $8) }
         END { print r }'
}

lab_report() {
    printf '$ %s lab local %s --html %s\n' "$verbena" "$lab_words" "$report"
    # shellcheck disable=SC2086 # split
    if ! timeout "$lab_limit" "$verbena" lab local $lab_words --html "$report"; then
        echo "   FAILED"
        failed=$((failed + 1))
    fi
}

conclude() {
    printf '\n'
    if [ "$failed" -ne 0 ]; then
        echo "$failed failed; their output is in $logs"
        exit 1
    fi
    echo "The lab's report, with charts, for any browser: $(realpath "$report")"
    echo "All of them finished. Try your own: build/verbena run -- PROGRAM ..."
}

case ${1:-} in
'') ;;
report)
    lab_report
    conclude
    exit
    ;;
*)
    echo "demo: '$1' is not known; report: the lab's report alone" >&2
    exit 64
    ;;
esac

show ibv_devices
show ibv_devinfo -d "$device"

printf '\nTwo processes on 127.0.0.1, device %s:\n\n' "$device"
pair "Sends to and fro" "4 KiB" pingpong ibv_rc_pingpong -d "$device" -g "$gid" -n 1000
for verb in write read send; do
    case $verb in
    send) what="Send into posted receives" ;;
    write) what="Write into its memory" ;;
    read) what="Read out of its memory" ;;
    esac
    pair "$what" "64 KiB" bandwidth "ib_${verb}_bw" -d "$device" -x "$gid" -n 2000 -F --report_gbits
    pair "$what" "8 B" latency "ib_${verb}_lat" -d "$device" -x "$gid" -n 2000 -F -s 8
done
what="Fetch-and-Add in its memory"
pair "$what" "8 B" bandwidth ib_atomic_bw -d "$device" -x "$gid" -n 5000 -F --report_gbits
pair "$what" "8 B" latency ib_atomic_lat -d "$device" -x "$gid" -n 2000 -F
# What a bad network does, as the counters of both tell.
rm -f "$logs/counters"
options="--fault drop=1%"
VERBENA_STATS=$PWD/$logs/counters
export VERBENA_STATS
pair "the same, 1% loss" "8 B" latency ib_send_lat -d "$device" -x "$gid" -n 1000 -F -s 8
unset VERBENA_STATS
counted() { awk -v name="$1" '$1 == name { n += $2 } END { print n + 0 }' "$logs/counters"; }
if [ -f "$logs/counters" ]; then
    printf '        %s packets lost, %s sent again\n' \
        "$(counted fault_dropped)" "$(counted retransmitted_packets)"
fi

printf '\nWhat ran on the software NIC, between two processes, with no RDMA hardware:\n\n'
printf '%-16s %-27s %6s  %-31s %s\n' program "what it does to its partner" size bandwidth latency
printf '%106s\n' '' | tr ' ' -
cat "$table"
printf '\nAnd every byte of it checked, beside the same over TCP:\n\n'
lab_report
conclude
