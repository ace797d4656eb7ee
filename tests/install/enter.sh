#!/bin/bash
# enter.sh ROOT DIST COMMAND...: runs a command in the tree ROOT as on a host of its own, with DIST at /dist.
# It is started in mount and PID namespaces of its own (unshare), so that nothing is left mounted; the network is the
# host's, and so are the settings by which pip and apt find packages.
set -euo pipefail
root=$1 dist=$2
shift 2
mount --bind "$root" "$root"
mount -t proc proc "$root/proc"
mount -t tmpfs tmpfs "$root/tmp"
mount -t tmpfs tmpfs "$root/run"
mount --rbind /dev "$root/dev"
mount --rbind /sys "$root/sys"
mkdir -p "$root/dist"
mount --bind "$dist" "$root/dist"
for file in /etc/resolv.conf /etc/hosts /etc/pip.conf ${PIP_CERT:+"$PIP_CERT"}; do
  [ ! -f "$file" ] || { mkdir -p "$root$(dirname "$file")" && cp -L "$file" "$root$file"; }
done
index=$(python3 -m pip config get global.index-url 2>/dev/null || true)
exec chroot "$root" /usr/bin/env -i PATH=/root/.local/bin:/usr/local/bin:/usr/bin:/usr/sbin:/bin:/sbin HOME=/root LANG=C.UTF-8 \
  TERM=xterm-256color DEBIAN_FRONTEND=noninteractive PIP_FIND_LINKS=/dist UV_FIND_LINKS=/dist \
  ${PIP_CERT:+PIP_CERT="$PIP_CERT" SSL_CERT_FILE="$PIP_CERT"} ${index:+UV_DEFAULT_INDEX="$index"} "$@"
