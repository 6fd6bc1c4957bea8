#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# ./run demo: Debian's own RDMA programs, untouched, as two processes on 127.0.0.1 over the software
# NIC; ends with a table of what ran. Exit code 1 when one of them failed. Takes about 20 seconds.
set -u
cd "$(dirname "$0")/.." || exit 70

verbena=build/verbena
device=vb_lo
port=18600
logs=build/demo-logs
table=$logs/table
limit=60 # seconds that one program may take
failed=0

mkdir -p "$logs"
: >"$table"
server=

finish() {
    if [ -n "$server" ]; then
        kill "$server" 2>/dev/null
        wait "$server" 2>/dev/null
    fi
}
trap finish EXIT
trap 'exit 130' INT TERM

on_nic() { "$verbena" run -- timeout "$limit" "$@"; }

row() { printf '%-16s %-28s %7s   %s\n' "$@" >>"$table"; }

show() { # TITLE COMMAND...: a program that needs no partner, its output shown
    printf '\n$ build/verbena run -- %s\n' "$1"
    shift
    if ! on_nic "$@" 2>&1; then
        failed=$((failed + 1))
        row "$1" "$*" - FAILED
    fi
}

listening() { [ -n "$(ss -Hltn "sport = :$port")" ]; }

pair() { # WHAT SIZE PARSER COMMAND...: the same command as server and, with an address, as client
    what=$1 size=$2 parser=$3
    shift 3
    name=$1
    port=$((port + 1))
    on_nic "$@" -p "$port" >"$logs/$name.server" 2>&1 &
    server=$!
    tries=0
    until listening || [ "$tries" -ge 50 ]; do
        tries=$((tries + 1))
        sleep 0.1
    done
    status=0
    on_nic "$@" -p "$port" 127.0.0.1 >"$logs/$name.client" 2>&1 || status=$?
    if [ "$status" -ne 0 ]; then
        kill "$server" 2>/dev/null
    fi
    wait "$server" || status=$?
    server=
    result=$("$parser" <"$logs/$name.client")
    if [ "$status" -eq 0 ] && [ -n "$result" ]; then
        row "$name" "$what" "$size" "$result"
        printf '  %-18s %s\n' "$name" "$result"
    else
        failed=$((failed + 1))
        row "$name" "$what" "$size" "FAILED (exit code $status)"
        printf '  %-18s FAILED: %s\n' "$name" "$logs/$name.client"
        tail -n 5 "$logs/$name.client" | sed 's/^/     | /'
    fi
}

pingpong() { sed -n 's/.* = \([0-9.]*\) usec\/iter.*/\1 us a round trip/p'; }
# perftest's last line of figures: size, iterations, peak, average Gb/s, million messages a second.
bandwidth() {
    awk '$1 ~ /^[0-9]+$/ && NF == 5 {
             r = sprintf("%.1f thousand messages/s", $5 * 1000)
             if ($1 >= 1024) r = sprintf("%.2f Gbit/s, %s", $4, r)
         }
         END { print r }'
}
# Size, iterations, min, max, typical, average, deviation, 99%, 99.9%, in us (perftest halves the
# round trip of Sends and Writes; Reads and atomics are whole ones).
latency() {
    awk '$1 ~ /^[0-9]+$/ && NF == 9 { r = sprintf("%s us typical, 99%% under %s us", $5, $8) }
         END { print r }'
}

show "ibv_devices" ibv_devices
show "ibv_devinfo -d $device" ibv_devinfo -d "$device"

printf '\nTwo processes on 127.0.0.1, device %s:\n' "$device"
pair "Sends to and fro" "4 KiB" pingpong ibv_rc_pingpong -d "$device" -g 0 -n 1000
for verb in send write read; do
    case $verb in
    send) what="Send into posted receives" ;;
    write) what="Write into its memory" ;;
    read) what="Read out of its memory" ;;
    esac
    pair "$what" "64 KiB" bandwidth "ib_${verb}_bw" -d "$device" -n 2000 -F --report_gbits
    pair "$what" "8 B" latency "ib_${verb}_lat" -d "$device" -n 2000 -F -s 8
done
what="Fetch-and-Add in its memory"
pair "$what" "8 B" bandwidth ib_atomic_bw -d "$device" -n 5000 -F --report_gbits
pair "$what" "8 B" latency ib_atomic_lat -d "$device" -n 2000 -F

printf '\nWhat ran on the software NIC, between two processes, with no RDMA hardware:\n\n'
printf '%-16s %-28s %7s   %s\n' program "what it does to its partner" size result
printf '%80s\n' '' | tr ' ' -
cat "$table"
printf '\n'
if [ "$failed" -ne 0 ]; then
    echo "$failed failed; their output is in $logs"
    exit 1
fi
echo "All of them finished. Try your own: build/verbena run -- PROGRAM ..."
