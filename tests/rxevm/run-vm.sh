#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# run-vm.sh - boot, use and stop the guests that build-vm.sh makes.
#
#   run-vm.sh start   SCRATCH [options]      boot a guest, wait until it is usable
#   run-vm.sh exec    SCRATCH [--id N] [--timeout S] [--] COMMAND...
#                                            run COMMAND in the guest with its sh; output
#                                            comes here, the exit status is COMMAND's
#                                            (124: ran past the time limit; 255: no guest)
#   run-vm.sh put     SCRATCH [--id N] FILE [GUESTPATH]   copy a small file into the guest
#   run-vm.sh console SCRATCH [--id N]       print the guest's console log
#   run-vm.sh status  SCRATCH                list the guests of this scratch folder
#   run-vm.sh stop    SCRATCH [--id N|--all] end the guest(s), remove their taps and, with
#                                            the last one, the network namespace
#
# start options:
#   --id N        guest number 1..9 (default 1): address 10.88.0.(N+1) and fd88::(N+1),
#                 MAC 52:54:00:88:00:0(N+1), tap rxetapN
#   --mtu M       MTU of the NIC, tap and bridge (default 1500; 4200 allows RoCE path MTU 4096)
#   --dev WHAT    which RDMA device to add on eth0: rxe (default) or none
#   --nic MODEL   virtio (default), e1000 or e1000e
#   --netns NAME  network namespace on the host side (default rxevm; made when missing)
#   --cpus N      virtual CPUs (default 1)      --mem MB   memory (default 512)
#   --nodes N     the memory in that many NUMA nodes (default 1), the CPUs in the first
#   --share DIR   show DIR in the guest as /mnt (9p)
#   --append STR  more kernel command line words
#   --no-wait     return at once
#
# The host side is one network namespace with a bridge br0 that holds 10.88.0.1/24 and
# fd88::1/64 and every guest's tap.  Nothing is routed out of it.  A program on the
# host joins with:   ip netns exec rxevm PROGRAM
# Only full emulation (TCG) is used, so /dev/kvm is not needed.
set -euo pipefail

die() { echo "run-vm: $*" >&2; exit 255; }
usage() { sed -n '2,/^set -/p' "$0" | sed '$d; s/^# \{0,1\}//'; }

[ $# -ge 1 ] || { usage >&2; exit 2; }
verb=$1; shift
case $verb in -h|--help|help) usage; exit 0;; esac
[ $# -ge 1 ] || die "usage: run-vm.sh $verb SCRATCH ... (see --help)"
[ -d "$1" ] || die "no folder $1"
S=$(cd "$1" && pwd); shift

id=1 all=0 mtu=1500 dev=rxe nic=virtio ns=rxevm cpus=1 mem=512 nodes=1
share= append= wait=1 limit=60
args=()
while [ $# -gt 0 ]; do
    case $1 in
    --id) id=$2; shift 2;;
    --all) all=1; shift;;
    --mtu) mtu=$2; shift 2;;
    --dev) dev=$2; shift 2;;
    --nic) nic=$2; shift 2;;
    --netns) ns=$2; shift 2;;
    --cpus) cpus=$2; shift 2;;
    --mem) mem=$2; shift 2;;
    --nodes) nodes=$2; shift 2;;
    --share) share=$(realpath "$2"); shift 2;;
    --append) append=$2; shift 2;;
    --no-wait) wait=0; shift;;
    --timeout) limit=$2; shift 2;;
    --) shift; args+=("$@"); break;;
    -*) if [ "$verb" = exec ]; then args+=("$@"); break; fi; die "unknown option $1";;
    *) args+=("$@"); break;;
    esac
done
case $id in [1-9]) ;; *) die "--id must be 1..9";; esac
nports=4                                    # commands that can run at once per guest

vmdir() { echo "$S/vm$1"; }

# The pid of guest N if it is running and truly ours, else nothing.
vm_pid() {
    local d pid
    d=$(vmdir "$1")
    [ -s "$d/qemu.pid" ] || return 0
    pid=$(cat "$d/qemu.pid")
    if tr '\0' ' ' < "/proc/$pid/cmdline" 2>/dev/null | grep -qF -- "-name rxevm:$d "; then
        echo "$pid"
    fi
}

# Client of guest-runner.sh: takes a free virtio-serial port, sends the script,
# copies what comes between BEGIN and END to stdout, exits with the status.
guest_exec() { # guest_exec N LIMIT SCRIPT
    [ -n "$(vm_pid "$1")" ] || die "guest $1 is not running"
    python3 - "$(vmdir "$1")" "$2" "$nports" "$3" <<'PY'
import base64, fcntl, os, select, socket, sys, time, uuid
vmdir, limit, nports, script = sys.argv[1], float(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
os.chdir(vmdir)                      # keeps the socket path short
deadline = time.time() + limit + 15  # the guest's own timeout comes first
port = None
while port is None:
    for i in range(nports):
        f = open("run%d.lock" % i, "w")
        try:
            fcntl.flock(f, fcntl.LOCK_EX | fcntl.LOCK_NB)
            port = i
            break
        except OSError:
            f.close()
    else:
        if time.time() > deadline:
            sys.exit("run-vm: every command port of the guest is busy")
        time.sleep(0.1)
s = socket.socket(socket.AF_UNIX)
try:
    s.connect("run%d.sock" % port)
except OSError as e:
    sys.stderr.write("run-vm: cannot reach the guest: %s\n" % e)
    sys.exit(255)
token = uuid.uuid4().hex
b64 = base64.b64encode(script.encode()).decode()
s.sendall(("RUN %s %d %s\n" % (token, int(limit), b64)).encode())
begin, end = ("\nBEGIN %s\n" % token).encode(), ("\nEND %s " % token).encode()
buf, started, out = b"", False, sys.stdout.buffer
while True:
    left = deadline - time.time()
    if left <= 0 or not select.select([s], [], [], left)[0]:
        sys.stderr.write("run-vm: no answer from the guest in time\n")
        sys.exit(255)
    data = s.recv(65536)
    if not data:
        sys.stderr.write("run-vm: the guest went away\n")
        sys.exit(255)
    buf += data
    if not started:
        at = buf.find(begin)
        if at < 0:
            continue
        buf, started = buf[at + len(begin):], True
    at = buf.find(end)
    if at >= 0 and b"\n" in buf[at + len(end):]:
        out.write(buf[:at]); out.flush()
        if at and not buf[:at].endswith(b"\n"):
            out.write(b"\n"); out.flush()
        sys.exit(int(buf[at + len(end):].split(b"\n")[0]))
    keep = len(end) + 8              # the end marker may be split over two reads
    if at < 0 and len(buf) > keep:
        out.write(buf[:-keep]); out.flush()
        buf = buf[-keep:]
PY
}

net_up() {
    if ! ip netns list | grep -qw -- "$ns"; then
        ip netns add "$ns"
        : > "$S/netns.$ns"                   # remember that it is ours to remove
    fi
    local n="ip -n $ns"
    if ! $n link show br0 >/dev/null 2>&1; then
        $n link set lo up
        ip netns exec "$ns" sysctl -q -w net.ipv6.conf.default.accept_dad=0 \
            net.ipv6.conf.default.accept_ra=0 \
            net.ipv6.conf.default.router_solicitations=0 2>/dev/null || true
        $n link add br0 address 52:54:00:88:00:01 type bridge \
            stp_state 0 forward_delay 0 mcast_snooping 0
        $n link set br0 up
        $n addr add 10.88.0.1/24 dev br0
        $n -6 addr add fd88::1/64 dev br0 nodad 2>/dev/null || true
    fi
    local tap=rxetap$id
    if $n link show "$tap" >/dev/null 2>&1; then
        rm -f "$d/netns"
        die "namespace $ns already has $tap: another scratch folder's guest $id? (choose another --id or --netns)"
    fi
    $n tuntap add "$tap" mode tap
    $n link set "$tap" addrgenmode none
    $n link set "$tap" mtu "$mtu" master br0 up
    $n link set br0 mtu "$mtu"
}

net_down() { # net_down N: remove that guest's tap, and the namespace with the last one
    local d nsn
    d=$(vmdir "$1")
    [ -s "$d/netns" ] || return 0
    nsn=$(cat "$d/netns")
    ip -n "$nsn" link del "rxetap$1" 2>/dev/null || true
    rm -f "$d/netns"
    if [ -e "$S/netns.$nsn" ] && ! ip -n "$nsn" -o link show 2>/dev/null | grep -q rxetap; then
        ip netns del "$nsn" 2>/dev/null || true
        rm -f "$S/netns.$nsn"
    fi
}

stop_one() {
    local d pid
    d=$(vmdir "$1")
    pid=$(vm_pid "$1")
    if [ -n "$pid" ]; then
        kill -TERM "$pid" 2>/dev/null || true       # qemu ends the guest at once
        for _ in $(seq 50); do [ -d "/proc/$pid" ] || break; sleep 0.1; done
        if [ -n "$(vm_pid "$1")" ]; then kill -KILL "$pid" 2>/dev/null || true; sleep 0.3; fi
    fi
    net_down "$1"
    rm -f "$d"/qemu.pid "$d"/run*.sock "$d"/run*.lock
}

case $verb in
start)
    [ "$(id -u)" = 0 ] || die "must be root (network namespace, tap)"
    command -v qemu-system-x86_64 >/dev/null || die "needs qemu-system-x86_64 (apt-get install qemu-system-x86)"
    command -v python3 >/dev/null || die "needs python3"
    [ -s "$S/vmlinuz" ] && [ -s "$S/initramfs.cpio" ] || die "no guest in $S; run build-vm.sh first"
    kernel=$S/vmlinux; [ -s "$kernel" ] || kernel=$S/vmlinuz
    [ -z "$(vm_pid "$id")" ] || die "guest $id is already running"
    d=$(vmdir "$id"); mkdir -p "$d"
    stop_one "$id"                                   # clear leftovers of a dead guest
    echo "$ns" > "$d/netns"                          # first, so that stop can undo a half-made start
    net_up
    case $nic in virtio) nicdev=virtio-net-pci;; e1000|e1000e) nicdev=$nic;; *) die "bad --nic";; esac
    ports=()
    for i in $(seq 0 $((nports - 1))); do
        ports+=(-chardev "socket,id=c$i,path=run$i.sock,server=on,wait=off"
                -device "virtserialport,bus=vser.0,chardev=c$i,name=run$i")
    done
    fs=() shareword=
    if [ -n "$share" ]; then
        fs=(-virtfs "local,path=$share,mount_tag=hostshare,security_model=none"); shareword="rxe.share=yes"
    fi
    numa=()
    if [ "$nodes" -gt 1 ]; then
        for i in $(seq 0 $((nodes - 1))); do
            cpu=; if [ "$i" = 0 ]; then cpu=",cpus=0-$((cpus - 1))"; fi
            numa+=(-object "memory-backend-ram,id=m$i,size=$((mem / nodes))M" -numa "node,nodeid=$i,memdev=m$i$cpu")
        done
    fi
    # vnet_hdr=off: no checksum or segmentation offload, so that a capture shows
    # every frame as it would be on a cable.  romfile=: no PXE.
    (
        cd "$d"
        setsid ip netns exec "$ns" qemu-system-x86_64 -name "rxevm:$d" \
            -machine pc,accel=tcg -cpu max -smp "$cpus" -m "$mem" ${numa[@]+"${numa[@]}"} \
            -nodefaults -no-user-config -display none -no-reboot \
            -serial "file:$d/console.log" -pidfile "$d/qemu.pid" \
            -kernel "$kernel" -initrd "$S/initramfs.cpio" \
            -append "console=ttyS0 quiet loglevel=4 panic=-1 nokaslr cryptomgr.notests mitigations=off audit=0 apparmor=0 selinux=0 cgroup_disable=memory rcupdate.rcu_expedited=1 rxe.name=vm$id rxe.ip=10.88.0.$((id+1))/24 rxe.ip6=fd88::$((id+1))/64 rxe.mtu=$mtu rxe.dev=$dev rxe.nic=$nic $shareword $append" \
            -netdev "tap,id=n0,ifname=rxetap$id,script=no,downscript=no,vnet_hdr=off" \
            -device "$nicdev,netdev=n0,mac=52:54:00:88:00:0$((id+1)),romfile=" \
            -device virtio-serial-pci,id=vser "${ports[@]}" \
            -device virtio-rng-pci ${fs[@]+"${fs[@]}"} \
            </dev/null >"$d/qemu.log" 2>&1 &
    )
    t0=$(date +%s.%N)
    for _ in $(seq 100); do [ -s "$d/qemu.pid" ] && break; sleep 0.1; done
    if [ -z "$(vm_pid "$id")" ]; then
        cat "$d/qemu.log" >&2; stop_one "$id"; die "qemu did not start"
    fi
    [ $wait = 1 ] || exit 0
    for _ in $(seq 600); do
        [ -n "$(vm_pid "$id")" ] || { tail -20 "$d/console.log" "$d/qemu.log" >&2; stop_one "$id"; die "the guest ended while booting"; }
        if grep -q "^GUEST READY" "$d/console.log" 2>/dev/null; then
            echo "run-vm: guest $id ready after $(echo "$(date +%s.%N) $t0" | awk '{printf "%.1f", $1-$2}') s: $(tr -d '\r' < "$d/console.log" | sed -n 's/^GUEST READY after [^:]*: //p')"
            exit 0
        fi
        sleep 0.2
    done
    tail -20 "$d/console.log" >&2
    stop_one "$id"
    die "guest $id was not ready in 120 s"
    ;;
exec)
    [ ${#args[@]} -ge 1 ] || die "exec what?"
    if [ "${args[0]}" = -- ]; then args=("${args[@]:1}"); fi
    guest_exec "$id" "$limit" "${args[*]}"
    ;;
put)
    [ ${#args[@]} -ge 1 ] || die "put which file?"
    f=${args[0]}; to=${args[1]:-/root/$(basename "$f")}
    # sent in pieces so that one command line stays small
    guest_exec "$id" 60 ": > '$to.b64'"
    gzip -9c "$f" | base64 -w 0 | fold -w 60000 | while IFS= read -r piece || [ -n "$piece" ]; do
        guest_exec "$id" 60 "printf %s '$piece' >> '$to.b64'"
    done
    guest_exec "$id" 60 "base64 -d '$to.b64' | gzip -dc > '$to' && rm '$to.b64' && chmod 755 '$to'"
    ;;
console)
    cat "$(vmdir "$id")/console.log"
    ;;
status)
    for n in 1 2 3 4 5 6 7 8 9; do
        pid=$(vm_pid $n)
        if [ -n "$pid" ]; then echo "guest $n: pid $pid, netns $(cat "$(vmdir $n)/netns"), 10.88.0.$((n+1))"; fi
    done
    ;;
stop)
    if [ $all = 1 ]; then for n in 1 2 3 4 5 6 7 8 9; do if [ -d "$(vmdir $n)" ]; then stop_one $n; fi; done
    else stop_one "$id"; fi
    ;;
*) usage >&2; exit 2;;
esac
