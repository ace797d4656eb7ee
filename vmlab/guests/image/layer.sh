#!/bin/sh
# Installs packages of Debian's in a copy of the image's root disk: layer.sh FOLDER PACKAGE...
# It runs in namespaces of its own, whose end takes mounts and loop device along. FOLDER has root.raw, and the lists of
# packages below apt; $APT_CONFIG has where apt finds what.
set -eu
umask 022
PATH=$PATH:/usr/sbin:/usr/bin:/sbin:/bin
# Only the first process of namespaces of its own may mount: anywhere else these would be the host's.
[ $$ = 1 ] || { echo "E: this runs in namespaces of its own alone"; exit 1; }
folder=$1
shift
root=$folder/root
archives=$root/var/cache/apt/archives

mkdir "$root"
mount -o loop,noatime,noinit_itable "$folder/root.raw" "$root"
mkdir -p "$archives"
mount --bind "$folder/apt/archives" "$archives"

echo "I: downloading $*..."
apt-get -q -y --no-remove --download-only install "$@"
needed=0
for package in "$archives"/*.deb; do
    [ -e "$package" ] || continue
    size=$(dpkg-deb --field "$package" Installed-Size)
    needed=$((needed + ${size:-0}))
done
room=$(df --output=avail --block-size=1K "$root" | tail -n 1)
if [ "$needed" -ge "$room" ]; then
    echo "E: $* take $((needed / 1024)) MiB, and the image has room for $((room / 1024)) MiB"
    exit 1
fi

# The system of a container without a network. What packages run here may neither mount, nor load a module, nor change
# a setting of the kernel, which is the host's.
mount -t proc proc "$root/proc"
for one in sys sysrq-trigger; do
    [ -e "$root/proc/$one" ] || continue
    mount --bind "$root/proc/$one" "$root/proc/$one"
    mount -o remount,bind,ro "$root/proc/$one"
done
mount -t tmpfs run "$root/run"
mount -t tmpfs dev "$root/dev"
mkdir -m 1777 "$root/dev/shm"
ln -s /proc/self/fd "$root/dev/fd"
for number in 0:stdin 1:stdout 2:stderr; do
    ln -s "/proc/self/fd/${number%:*}" "$root/dev/${number#*:}"
done
for node in null zero full random urandom; do
    : >"$root/dev/$node"
    mount --bind "/dev/$node" "$root/dev/$node"
done
# Servers wait until a guest starts them.
policy=$root/usr/sbin/policy-rc.d
printf '#!/bin/sh\nexit 101\n' >"$policy"
chmod 755 "$policy"

echo "I: installing $*..."
# Copyright files are read below, before /usr/share/doc is emptied. TMPDIR is a folder of the host's.
env -u TMPDIR unshare --net --ipc --uts \
    setpriv --bounding-set -sys_admin,-sys_module,-sys_rawio,-sys_time,-sys_boot,-sys_ptrace,-mknod \
    apt-get -q -y --no-remove --no-download \
    -o "DPkg::Chroot-Directory=$root" \
    -o DPkg::Options::=--force-unsafe-io -o DPkg::Options::=--force-confdef -o DPkg::Options::=--force-confold \
    -o 'DPkg::Options::=--path-include=/usr/share/doc/*' \
    install "$@" || {
    status=$?
    # The first of the two is in KiB.
    df --output=avail,iavail --block-size=1K "$root" | tail -n 1 | {
        read -r room files
        [ "$room" -ge 1024 ] && [ "$files" -ge 1 ] || echo "E: full: the image's root file system, with $*,"
    }
    exit $status
}
rm "$policy"

# As in the image: what packages enable is Debian's usual boot, and not the lab's; there is nobody's name and no key.
for enabled in "$root"/etc/systemd/system/*.wants/*; do
    [ -L "$enabled" ] || continue
    wants=${enabled%/*}
    usual=$root/usr/lib/vmlab/boot/normal/${wants##*/}
    mkdir -p "$usual"
    mv "$enabled" "$usual/"
    rmdir --ignore-fail-on-non-empty "$wants"
done
rm -f "$root"/etc/ssh/ssh_host_*
: >"$root/etc/machine-id"

mkdir -p "$folder/kept/usr/share" "$folder/kept/var/lib/dpkg"
cp -a "$root/usr/share/doc" "$folder/kept/usr/share/"
cp "$root/var/lib/dpkg/status" "$folder/kept/var/lib/dpkg/"
find "$root/usr/share/doc" -mindepth 1 -delete
umount "$archives"
find "$root/var/log" "$root/var/cache/apt" "$root/var/cache/debconf" -xdev -type f -delete

# Blocks of deleted files become holes, where the file system below can have some.
fstrim "$root" || true
umount --recursive "$root"
rmdir "$root"
