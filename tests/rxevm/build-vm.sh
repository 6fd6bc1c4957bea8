#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# build-vm.sh - make a small Debian guest (vmlinuz + initramfs.cpio.gz) whose
# kernel has soft-RoCE (rdma_rxe).
#
# Everything comes from Debian packages, fetched with the ordinary apt-get and
# only unpacked (never installed) below a scratch folder.  Nothing outside that
# folder is written.
#
#   build-vm.sh [options] SCRATCH
#
#     --kernel PKG    linux-image package to use   (default: the one that the
#                     meta-package linux-image-amd64 depends on, i.e. 6.1 on
#                     Debian 12; e.g. --kernel linux-image-6.12-amd64 also works)
#     --add FILE      put FILE (a program or script) into the guest's /usr/local/bin,
#                     with the shared libraries it needs taken from the host (may
#                     be given several times)
#     --module NAME   also put kernel module NAME and what it needs into the guest
#     --keep          keep the unpacked trees (default: only what run-vm.sh needs
#                     and the downloaded packages are kept)
#
# Result in SCRATCH: vmlinuz (as packaged), vmlinux (the same kernel unpacked: under
# emulation it boots in half the time, through the PVH entry), initramfs.cpio (not
# compressed, for the same reason) and kernel.version.
# Needs: root, apt-get (after apt-get update), cpio, xz, dpkg-deb.
set -euo pipefail

die() { echo "build-vm: $*" >&2; exit 1; }
say() { echo "build-vm: $*" >&2; }

kernel_pkg=linux-image-amd64 keep=0
add=() extra_modules=()
while [ $# -gt 0 ]; do
    case $1 in
    --kernel) kernel_pkg=$2; shift 2;;
    --add)    add+=("$(realpath "$2")"); shift 2;;
    --module) extra_modules+=("$2"); shift 2;;
    --keep)   keep=1; shift;;
    -h|--help) sed -n '2,/^set -/p' "$0" | sed '$d; s/^# \{0,1\}//'; exit 0;;
    -*) die "unknown option $1 (see --help)";;
    *)  break;;
    esac
done
[ $# -eq 1 ] || die "usage: build-vm.sh [options] SCRATCH (see --help)"
[ "$(id -u)" = 0 ] || die "must be root (chroot, device nodes)"
for t in apt-get apt-cache dpkg-deb cpio xz od; do
    command -v $t >/dev/null || die "needs $t (apt-get install cpio xz-utils)"
done
mkdir -p "$1"
S=$(cd "$1" && pwd)
here=$(cd "$(dirname "$0")" && pwd)
debs=$S/debs root=$S/root ktree=$S/ktree img=$S/img
mkdir -p "$debs/partial"

# ---------------------------------------------------------------- 1. packages
# The meta-package names the real image package; follow it until a real one.
kver=
for _ in 1 2 3; do
    case $kernel_pkg in
    linux-image-[0-9]*.[0-9]*.[0-9]*) kver=${kernel_pkg#linux-image-}; break;;
    esac
    next=$(apt-cache depends "$kernel_pkg" 2>/dev/null |
           sed -n 's/^ *Depends: *\(linux-image-[0-9][^ ]*\)$/\1/p' | head -1)
    [ -n "$next" ] || die "cannot resolve kernel package $kernel_pkg (apt-get update run?)"
    kernel_pkg=$next
done
[ -n "$kver" ] || die "cannot resolve the kernel version of $kernel_pkg"
kver=${kver%-unsigned}

# apt resolves the whole closure of the user-space packages against an empty
# package status, so the result does not depend on what this host has installed.
: > "$S/empty-status"
say "downloading user-space packages"
user_pkgs="busybox-static dash iproute2 ethtool ibverbs-utils ibverbs-providers
           rdmacm-utils perftest qperf"
# shellcheck disable=SC2086
apt-get -qq -y --no-install-recommends --download-only \
    -o APT::Sandbox::User=root -o Debug::NoLocking=1 \
    -o Dir::State::status="$S/empty-status" -o Dir::Cache::archives="$debs" \
    install $user_pkgs >/dev/null
get_deb() { # get_deb PACKAGE: print the path of its .deb below $debs, fetched once
    local f ver
    ver=$(apt-cache show --no-all-versions "$1" | sed -n 's/^Version: //p' | head -1)
    [ -n "$ver" ] || die "no package $1"
    f=$(ls "$debs/$1"_"${ver//:/%3a}"_*.deb 2>/dev/null | head -1 || true)
    if [ -z "$f" ]; then
        say "downloading $1"
        (cd "$debs" && apt-get -qq -o APT::Sandbox::User=root download "$1" >/dev/null)
        f=$(ls "$debs/$1"_"${ver//:/%3a}"_*.deb | head -1)
    fi
    echo "$f"
}
kdeb=$(get_deb "$kernel_pkg")

# ------------------------------------------------------------------ 2. unpack
say "unpacking"
rm -rf "$root" "$ktree" "$img"
mkdir -p "$root" "$ktree" "$img"
for f in "$debs"/*.deb; do
    case ${f##*/} in linux-*) continue;; esac
    dpkg-deb -x "$f" "$root"
done
# Of the kernel take the image and only the module folders that can matter.
dpkg-deb --fsys-tarfile "$kdeb" | tar -C "$ktree" -x --wildcards \
    './boot/*' '*/modules.builtin*' '*/modules.order' '*/kernel/drivers/infiniband/*' \
    '*/kernel/drivers/virtio/*' '*/kernel/drivers/net/*.ko*' \
    '*/kernel/drivers/net/ethernet/intel/e1000*' \
    '*/kernel/drivers/char/*' '*/kernel/net/*' '*/kernel/fs/*' '*/kernel/crypto/*' \
    '*/kernel/arch/x86/crypto/*' '*/kernel/lib/*' '*/kernel/drivers/block/*' \
    '*/kernel/drivers/nvme/*' '*/kernel/drivers/target/*' '*/kernel/drivers/scsi/scsi*'
mods=$(find "$ktree" -path '*/lib/modules/*' -prune -type d | head -1)
[ -n "$mods" ] || die "no modules in $kernel_pkg"
kver=$(basename "$mods")
cp "$ktree/boot/vmlinuz-$kver" "$S/vmlinuz"
# The compressed kernel lies inside the image at an offset that its boot header
# states (Documentation/x86/boot.rst: setup_sects, payload_offset, payload_length).
num() { od -An -tu"$2" -j "$1" -N "$2" "$S/vmlinuz" | tr -d ' '; }
off=$(( ($(num 497 1) + 1) * 512 + $(num 584 4) )) len=$(num 588 4)
payload() { tail -c +$((off + 1)) "$S/vmlinuz" | head -c "$len"; }
case $(payload 2>/dev/null | head -c 4 | od -An -tx1 | tr -d ' ') in
fd377a58) unpack="xz -dc --single-stream";;
28b52ffd) unpack="zstd -dc";;
1f8b*)    unpack="gzip -dc";;
*)        unpack=;;
esac
rm -f "$S/vmlinux"
# what follows the stream (its size) makes the unpacker complain: judge by the result
if [ -n "$unpack" ]; then payload 2>/dev/null | $unpack > "$S/vmlinux" 2>/dev/null || true; fi
if [ "$(head -c 4 "$S/vmlinux" 2>/dev/null | tail -c 3)" != ELF ]; then
    say "could not unpack the kernel image; the guest will boot the packaged one"
    rm -f "$S/vmlinux"
fi
echo "$kver" > "$S/kernel.version"

# ------------------------------------------------------------------ 3. modules
# Let busybox's depmod (from the unpacked package) compute the dependencies,
# then copy only the closure of the wanted modules.
bb=$root/bin/busybox
# busybox cannot read .xz modules in this use, so unpack them (newer kernels)
find "$ktree" -name '*.ko.xz' -exec xz -d {} +
mkdir -p "$ktree/lib/modules"
[ -d "$ktree/lib/modules/$kver" ] || mv "$mods" "$ktree/lib/modules/$kver"
mods=$ktree/lib/modules/$kver
"$bb" depmod -b "$ktree" "$kver"
# One name a line.  sch_netem/ifb: loss, delay, reorder in the guest; veth,
# bridge, 8021q, dummy: network shapes; nvmet-rdma/nvme-rdma: a kernel ULP.
wanted="virtio_pci virtio_net virtio_console virtio_rng e1000 e1000e
        9pnet_virtio 9p
        ib_core ib_cm iw_cm rdma_cm ib_uverbs rdma_ucm ib_umad rdma_rxe
        crc32_generic crc32_pclmul crc32c_generic crc32c_intel libcrc32c
        sch_netem sch_prio sch_ingress cls_u32 cls_matchall act_gact act_mirred ifb
        veth bridge 8021q dummy
        nvme-rdma nvmet nvmet-rdma loop null_blk rds rds_rdma"
find_module() { # print the path in modules.dep of module NAME (- and _ alike)
    local pat=${1//[-_]/[-_]}
    sed -n "s,^\([^:]*/$pat\.ko\):.*,\1,p" "$mods/modules.dep" | head -1
}
mkdir -p "$img/lib/modules/$kver"
for m in $wanted ${extra_modules[@]+"${extra_modules[@]}"}; do
    p=$(find_module "$m")
    [ -n "$p" ] || { case " ${extra_modules[*]-} " in *" $m "*) die "no module $m";; esac; continue; }
    for f in $(sed -n "s,^$p:,$p ,p" "$mods/modules.dep"); do
        mkdir -p "$img/lib/modules/$kver/$(dirname "$f")"
        cp -n "$mods/$f" "$img/lib/modules/$kver/$f"
    done
done
cp "$mods"/modules.builtin* "$mods/modules.order" "$img/lib/modules/$kver/"
"$bb" depmod -b "$img" "$kver"

# -------------------------------------------------------------- 4. user space
# The programs, then the shared libraries that each needs (asked of the
# unpacked tree's own loader), then the verbs providers, which are dlopen'ed.
mkdir -p "$img"/{bin,sbin,usr/bin,usr/sbin,usr/local/bin,etc,proc,sys,dev,tmp,run,root,mnt}
loader=/lib64/ld-linux-x86-64.so.2
mkdir -p "$img/lib64"
cp -L "$root$loader" "$img$loader"
copy_libs() { # copy_libs TREE PROGRAM: TREE is $root, or "" for this host
    local tree=$1 prog=$2 lib
    if [ -n "$tree" ]; then chroot "$tree" $loader --list "$prog" 2>/dev/null
    else $loader --list "$prog" 2>/dev/null; fi |
    sed -n 's/.*=> *\(\/[^ ]*\).*/\1/p' | while read -r lib; do
        [ -e "$img$lib" ] && continue
        mkdir -p "$img$(dirname "$lib")"
        cp -L "$tree$lib" "$img$lib"
    done
}
copy_prog() {
    local real
    real=$(chroot "$root" /bin/busybox realpath "$1")    # links stay inside the tree
    mkdir -p "$img$(dirname "$1")"
    cp "$root$real" "$img$1"
    copy_libs "$root" "$real"
}
for p in ibverbs-utils rdmacm-utils perftest qperf; do
    d=$(ls "$debs/$p"_*.deb | head -1)
    dpkg-deb -c "$d" | awk '{print $6}' | sed -n 's,^\.\(/usr/s\?bin/..*\)$,\1,p' |
    while read -r f; do
        # scripts (perl, python) have no interpreter in the guest: leave them out
        [ "$(head -c4 "$root$f" | tail -c3)" = ELF ] || continue
        copy_prog "$f"
    done
done
for f in /bin/dash /usr/bin/dash /bin/ip /usr/bin/ip /sbin/tc /usr/sbin/tc /bin/ss /usr/bin/ss \
         /sbin/bridge /usr/sbin/bridge /usr/bin/rdma /sbin/rdma /sbin/ethtool /usr/sbin/ethtool; do
    if [ -e "$root$f" ]; then copy_prog "$f"; fi
done
cp "$bb" "$img/bin/busybox"
# dash is the guest's sh: busybox's own prefers its built-in ip to the real one
[ -e "$img/bin/dash" ] || ln -s /usr/bin/dash "$img/bin/dash"
ln -sf dash "$img/bin/sh"
# Provider: rxe only; the hardware ones are of no use in this guest.
pdir=$(dirname "$(ls "$root"/usr/lib/*/libibverbs/librxe-rdmav*.so | head -1)")
rel=${pdir#"$root"}
mkdir -p "$img$rel" "$img/etc/libibverbs.d"
cp -L "$pdir"/librxe-* "$img$rel/"
copy_libs "$root" "$rel/$(basename "$(ls "$pdir"/librxe-*.so | head -1)")"
# the C library loads this one by name when a thread is cancelled (rping does)
gcc_s=$(cd "$root" && find . -name libgcc_s.so.1 | head -1)
if [ -n "$gcc_s" ]; then mkdir -p "$img/$(dirname "$gcc_s")"; cp -L "$root/$gcc_s" "$img/$gcc_s"; fi
cp "$root"/etc/libibverbs.d/rxe.driver "$img/etc/libibverbs.d/"
echo "root:x:0:0:root:/root:/bin/sh" > "$img/etc/passwd"
echo "root:x:0:" > "$img/etc/group"
cp "$root/etc/protocols" "$root/etc/services" "$img/etc/" 2>/dev/null || true
for f in ${add[@]+"${add[@]}"}; do
    cp -L "$f" "$img/usr/local/bin/"
    chmod 755 "$img/usr/local/bin/$(basename "$f")"
    if [ "$(head -c4 "$f" | tail -c3)" = ELF ]; then copy_libs "" "$f"; fi
done
cp "$here/guest-init.sh" "$img/init"
cp "$here/guest-runner.sh" "$img/sbin/guest-runner"
chmod 755 "$img/init" "$img/sbin/guest-runner"

# ---------------------------------------------------------------- 5. initramfs
say "packing"
(cd "$img" && find . -print0 | LC_ALL=C sort -z |
 cpio --null --create --format=newc --owner=0:0 --quiet > "$S/initramfs.cpio.tmp")
mv "$S/initramfs.cpio.tmp" "$S/initramfs.cpio"
if [ $keep = 0 ]; then rm -rf "$root" "$ktree" "$img"; fi
say "done: kernel $kver, initramfs.cpio of $(du -h "$S/initramfs.cpio" | cut -f1) in $S"
