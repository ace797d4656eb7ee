#!/bin/sh
# Takes away what the build machine left, so that guests are nobody before they are told who they are.
set -eu
rm -f /etc/ssh/ssh_host_* /etc/resolv.conf /etc/apt/sources.list /etc/apt/sources.list.d/* /etc/fstab
: >/etc/machine-id
echo guest >/etc/hostname
echo "127.0.0.1 localhost guest" >/etc/hosts
echo "LANG=C.UTF-8" >/etc/default/locale

# There is no resolver: every name is in /etc/hosts, and nothing waits for DNS.
sed -i 's/^hosts:.*/hosts: files/' /etc/nsswitch.conf

# "*" is no password at all but, unlike "!", not a locked account, which sshd without PAM would refuse.
usermod --password '*' --shell /bin/sh root
useradd --create-home --shell /usr/sbin/nologin "$LAB_USER"

# Workloads that need room find it here; a guest with a data disk has that mounted in its place.
mkdir /data
