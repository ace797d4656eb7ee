#!/bin/sh
# Lays out kernel and initial RAM disk for direct boot as /boot/vmlinuz and /boot/initrd.img.
set -eu
version=$(ls /lib/modules)
work=$(mktemp -d)
mkdir "$work/bin" "$work/modules" "$work/proc" "$work/sys" "$work/dev" "$work/root"
cp /bin/busybox "$work/bin/"
for applet in sh mount insmod switch_root usleep cat echo; do
    ln -s busybox "$work/bin/$applet"
done
cp /usr/lib/vmlab/initrd/init "$work/init"
chmod 755 "$work/init"

for module in virtio_pci virtio_mmio virtio_blk virtio_console virtio_net virtio_balloon virtio_rng; do
    modprobe --set-version "$version" --show-depends "$module"
done | awk '$1 == "insmod" && !seen[$2]++ {print $2}' | while read -r path; do
    cp "$path" "$work/modules/"
    echo "${path##*/}" >>"$work/modules/order"
done

# It is small, and unpacking a compressed one takes longer under emulation than reading it.
(cd "$work" && find . -print0 | sort -z | cpio --null --create --format=newc --owner=0:0 --quiet) >/boot/initrd.img
mv "/boot/vmlinuz-$version" /boot/vmlinuz
rm -rf "$work" "/boot/initrd.img-$version" "/boot/System.map-$version"
