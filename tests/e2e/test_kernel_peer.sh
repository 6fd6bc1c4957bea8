#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# limit: 300 s
# The Linux kernel's soft-RoCE as peer: Debian's programs on Verbena against the same programs on
# rdma_rxe in an emulated guest, our side client and server in turn, IPv4 and IPv6, path MTU 1024
# and 4096. Prints TAP.
# usage: test_kernel_peer.sh [BUILD_DIR]
set -u
top=$(cd "$(dirname "$0")/../.." && pwd)
build=${1:-${VERBENA_BUILD:-$top/build}}
build=$(cd "$build" && pwd)
scratch=${VERBENA_RXEVM:-$build/rxevm}
vm=$top/tests/rxevm/run-vm.sh
ns=vbrxe$$
work=$(mktemp -d)
count=0 failed=0

ok() { count=$((count + 1)); echo "ok $count - kernel_peer: $1"; }
not_ok() {
    count=$((count + 1)); failed=$((failed + 1))
    echo "not ok $count - kernel_peer: $1"
    shift
    for f in "$@"; do echo "# --- ${f##*/}"; tail -25 "$f" | sed 's/^/# /'; done
}
skip_all() { echo "ok 1 - kernel_peer # SKIP $1"; echo "1..1"; exit 0; }

[ "$(id -u)" = 0 ] || skip_all "needs root: network namespace and tap"
command -v qemu-system-x86_64 >/dev/null || skip_all "needs qemu-system-x86_64"
ip netns add "$ns" 2>/dev/null || skip_all "network namespaces cannot be made here"
ip netns del "$ns"

cleanup() {
    "$vm" stop "$scratch" --all >/dev/null 2>&1
    rm -rf "$work"
}
trap cleanup EXIT
trap 'exit 1' INT TERM

mkdir -p "$scratch"
if [ ! -s "$scratch/initramfs.cpio" ]; then
    apt-cache show linux-image-amd64 >/dev/null 2>&1 || apt-get -qq update >/dev/null 2>&1
    if ! "$top/tests/rxevm/build-vm.sh" "$scratch" >"$work/build.log" 2>&1; then
        not_ok "guest is built from packages" "$work/build.log"
        echo "1..$count"
        exit 1
    fi
fi
if ! "$vm" start "$scratch" --netns "$ns" --mtu 4200 >"$work/boot.log" 2>&1; then
    not_ok "guest boots" "$work/boot.log"
    echo "1..$count"
    exit 1
fi
ok "guest boots with rxe0"

ours() { ip netns exec "$ns" env LD_PRELOAD="$build/libibverbs.so.1" timeout 60 "$@"; }
guest() { "$vm" exec "$scratch" --timeout 60 -- "$@"; }

gid_index() { # ADDRESS as ibv_devinfo prints it: its index in our table
    sed -n "s/^[[:space:]]*GID\[ *\([0-9]*\)\]:[[:space:]]*$1,.*/\1/p" "$work/devinfo"
}

wait_port() { # PORT here|guest
    local n=0
    while [ $n -lt 100 ]; do
        if [ "$2" = here ]; then
            ip netns exec "$ns" ss -Hltn "sport = :$1" | grep -q . && return 0
        else
            guest "ss -Hltn 'sport = :$1'" 2>/dev/null | grep -q . && return 0
        fi
        n=$((n + 1))
        read -rt 0.1 <> <(:)
    done
    return 1
}

ours ibv_devinfo -v -d vb_br0 >"$work/devinfo" 2>&1
g4=$(gid_index '::ffff:10\.88\.0\.1')
g6=$(gid_index 'fd88::1')
if [ -n "$g4" ] && [ -n "$g6" ]; then ok "device vb_br0 has both addresses as GIDs"; else
    not_ok "device vb_br0 has both addresses as GIDs" "$work/devinfo"
fi

port=18600
# pair NAME OUR_GID GUEST_GID PROGRAM OPTIONS...: once with our client, once with our server. Both
# programs exchange their QPNs over TCP on IPv4.
pair() {
    local name=$1 og=$2 gg=$3 prog=$4 pid rc s gi pf
    shift 4
    gi=-x pf="-F"
    case $prog in ibv_*) gi=-g pf="" ;; esac
    for s in client server; do
        port=$((port + 1))
        if [ $s = client ]; then
            guest "$prog -d rxe0 $gi $gg -p $port $pf $*" >"$work/server" 2>&1 &
            pid=$!
            wait_port $port guest
            # shellcheck disable=SC2086 # $pf is one option or none
            ours "$prog" -d vb_br0 $gi "$og" -p $port $pf "$@" 10.88.0.2 >"$work/client" 2>&1
            rc=$?
        else
            # shellcheck disable=SC2086
            ours "$prog" -d vb_br0 $gi "$og" -p $port $pf "$@" >"$work/server" 2>&1 &
            pid=$!
            wait_port $port here
            guest "$prog -d rxe0 $gi $gg -p $port $pf $* 10.88.0.1" >"$work/client" 2>&1
            rc=$?
        fi
        if wait $pid && [ $rc = 0 ]; then ok "$name, we are $s"; else
            not_ok "$name, we are $s (client status $rc)" "$work/server" "$work/client"
        fi
    done
}

pair "ibv_rc_pingpong" "$g4" 1 ibv_rc_pingpong -n 50
pair "ibv_rc_pingpong IPv6" "$g6" 2 ibv_rc_pingpong -n 50
pair "ibv_rc_pingpong 64 KiB, events, path MTU 4096" "$g4" 1 ibv_rc_pingpong -n 20 -s 65536 -e -m 4096
pair "ib_write_bw 64 KiB, path MTU 1024" "$g4" 1 ib_write_bw -n 50 -s 65536 -m 1024
pair "ib_write_bw 64 KiB IPv6, path MTU 4096" "$g6" 2 ib_write_bw -n 50 -s 65536 -m 4096
pair "ib_read_bw 64 KiB" "$g4" 1 ib_read_bw -n 20 -s 65536
pair "ib_send_bw 8 KiB" "$g4" 1 ib_send_bw -n 50 -s 8192
pair "ib_send_lat" "$g4" 1 ib_send_lat -n 50 -s 16
pair "ib_write_lat" "$g4" 1 ib_write_lat -n 50 -s 8
pair "ib_atomic_lat compare and swap" "$g4" 1 ib_atomic_lat -n 20 -A CMP_AND_SWAP
pair "ib_atomic_bw fetch and add" "$g4" 1 ib_atomic_bw -n 50 -A FETCH_AND_ADD

echo "1..$count"
[ $failed = 0 ]
