#!/bin/dash
# SPDX-License-Identifier: BSD-2-Clause
# /init of the guest.  Settings come as name=value words on the kernel command
# line:  rxe.ip=10.88.0.2/24 rxe.ip6=fd88::2/64 rxe.mtu=1500 rxe.dev=rxe|none
# busybox comes last: its small ip, tc, ... must not hide the real ones
export PATH=/usr/local/bin:/usr/bin:/usr/sbin:/bin:/sbin:/usr/lib/busybox HOME=/root TERM=dumb
/bin/busybox mount -t proc proc /proc
/bin/busybox mkdir -p /usr/lib/busybox
/bin/busybox --install -s /usr/lib/busybox
ln -sf /bin/busybox /sbin/modprobe   # the kernel asks for modules by this name
mount -t sysfs sysfs /sys
mount -t devtmpfs devtmpfs /dev
mkdir -p /dev/pts /dev/shm
mount -t devpts devpts /dev/pts
mount -t tmpfs tmpfs /dev/shm
mount -t tmpfs tmpfs /run

arg() { # arg NAME DEFAULT: the value of rxe.NAME on the kernel command line
    local w
    for w in $(cat /proc/cmdline); do
        case $w in rxe."$1"=*) echo "${w#*=}"; return;; esac
    done
    echo "$2"
}

modprobe -a virtio_pci virtio_console virtio_net 2>/dev/null
[ "$(arg nic virtio)" = e1000 ] && modprobe e1000
[ "$(arg nic virtio)" = e1000e ] && modprobe e1000e
# the command runner is up before anything else, so that a failed set-up can be looked into
for p in /dev/vport*; do [ -e "$p" ] && setsid /sbin/guest-runner "$p" & done

hostname "$(arg name rxevm)"
ulimit -l unlimited
ip link set lo up
# wait for the NIC (its driver probes asynchronously)
n=0; while [ ! -e /sys/class/net/eth0 ] && [ $n -lt 100 ]; do sleep 0.1; n=$((n+1)); done
sysctl -q -w net.ipv6.conf.all.accept_ra=0 net.ipv6.conf.eth0.accept_ra=0 \
             net.ipv6.conf.eth0.accept_dad=0 net.ipv6.conf.eth0.router_solicitations=0
ip link set eth0 mtu "$(arg mtu 1500)"
ip link set eth0 up
ip addr add "$(arg ip 10.88.0.2/24)" dev eth0
ip6=$(arg ip6 fd88::2/64); [ "$ip6" = none ] || ip -6 addr add "$ip6" dev eth0 nodad

dev=$(arg dev rxe)
modprobe -a ib_uverbs rdma_ucm ib_umad
case $dev in rxe) modprobe rdma_rxe && rdma link add rxe0 type rxe netdev eth0;; esac
if [ "$(arg share no)" = yes ]; then
    modprobe -a 9pnet_virtio 9p
    mount -t 9p -o trans=virtio,version=9p2000.L,msize=131072 hostshare /mnt
fi
# usable: the device node is there, the port is active, and so is the GID of the IPv4 address
usable() {
    [ -e /dev/infiniband/uverbs0 ] || return 1
    rdma link show | grep -q ' state ACTIVE' || return 1
    case $dev in
    rxe) grep -q 'ffff:' /sys/class/infiniband/rxe0/ports/1/gids/1;;
    esac
}
n=0; while [ "$dev" != none ] && [ $n -lt 50 ] && ! usable; do sleep 0.2; n=$((n+1)); done
cut -d' ' -f1 /proc/uptime > /run/ready
echo "GUEST READY after $(cat /run/ready) s: $(rdma link show 2>&1 | tr '\n' ';')" > /dev/console
# PID 1 must stay and reap
while :; do wait; sleep 3600 & wait $!; done
