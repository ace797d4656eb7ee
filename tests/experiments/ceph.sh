#!/bin/bash
# ceph.sh COMMAND...: runs a command on this machine as it is, but with a Ceph cluster: a monitor, an OSD on this
# machine's disk, and the pool rbd with one copy. With three OSDs and as many copies, their work is more than the lab
# allows the host beside a measurement. Root is needed; it takes less than a minute.
#
# Debian's packages and the cluster's data are in an overlay over the root, and the cluster is in a network namespace
# of its own, which has only loopback. Checkout, caches and temporary folders are the real ones. All else that the
# command writes is gone when it ends, as is the cluster.
set -euo pipefail
case ${1:-} in
  --with-packages)
    shift
    upper=$1
    shift
    mkdir "$upper/"{up,work,root}
    mount -t overlay overlay "$upper/root" -o "lowerdir=/,upperdir=$upper/up,workdir=$upper/work"
    mkdir -p ~/.cache/vmlab
    for place in /proc /sys /dev /run /tmp /var/tmp ~/.cache/vmlab "$PWD"; do
      mkdir -p "$upper/root$place"
      # The overlay itself is in /var/tmp.
      mount $([ "$place" = /var/tmp ] && echo --bind || echo --rbind) "$place" "$upper/root$place"
    done
    cd "$upper/root"
    pivot_root . .
    umount -l .
    printf '#!/bin/sh\nexit 101\n' > /usr/sbin/policy-rc.d
    chmod +x /usr/sbin/policy-rc.d
    cd "$OLDPWD"
    {
      apt-get update
      apt-get install -y --no-install-recommends ceph-common ceph-mon ceph-osd qemu-block-extra
    } > "$upper/packages.log" 2>&1 < /dev/null || { tail -n 5 "$upper/packages.log" >&2; exit 3; }
    exec unshare --net bash "$0" --with-cluster "$upper" "$@"
    ;;
  --with-cluster)
    shift
    log=$1
    shift
    ;;
  *)
    folder=$(mktemp -d /var/tmp/vmlab-ceph-XXXXXX)
    trap 'rm -rf --one-file-system -- "$folder"' EXIT
    DEBIAN_FRONTEND=noninteractive unshare --mount --propagation private bash "$0" --with-packages "$folder" "$@"
    exit
    ;;
esac

ip link set lo up
data=/var/lib/ceph/vmlab
mkdir -p "$data/mon" /etc/ceph
fsid=$(cat /proc/sys/kernel/random/uuid)
cat > /etc/ceph/ceph.conf <<CONF
[global]
fsid = $fsid
mon_host = [v2:127.0.0.1:3300]
public_addr = 127.0.0.1
cluster_addr = 127.0.0.1
osd_crush_chooseleaf_type = 0
osd_pool_default_size = 1
mon_allow_pool_size_one = true
osd_pool_default_pg_autoscale_mode = off
osd_memory_target = 1G
bluestore_block_size = 8G
mon_data_avail_warn = 1
mon_data_avail_crit = 1
[mon]
mon_data = $data/mon
[osd]
osd_data = $data/osd\$id
keyring = $data/osd\$id/keyring
CONF
admin=/etc/ceph/ceph.client.admin.keyring
daemons=()
start() {
  setpriv --pdeathsig KILL -- "$@" 2>&1 < /dev/null &
  daemons+=($!)
}
finish() {
  [ -n "$up" ] || tail -n 5 "$log/cluster.log" >&4
  [ ${#daemons[@]} = 0 ] || kill "${daemons[@]}"
  wait
}
up=
trap finish EXIT
exec 3>&1 4>&2 > "$log/cluster.log" 2>&1

ceph-authtool --create-keyring "$admin" --gen-key -n client.admin --cap mon 'allow *' --cap osd 'allow *'
cp "$admin" "$data/keyring"
ceph-authtool "$data/keyring" --gen-key -n mon. --cap mon 'allow *'
monmaptool --create --fsid "$fsid" --addv a '[v2:127.0.0.1:3300]' "$data/monmap"
ceph-mon --mkfs -i a --monmap "$data/monmap" --keyring "$data/keyring"
start ceph-mon -f -i a
uuid=$(cat /proc/sys/kernel/random/uuid)
mkdir "$data/osd0"
timeout 60 ceph osd new "$uuid"
ceph-osd -i 0 --mkfs --mkkey --no-mon-config --osd-uuid "$uuid"
timeout 60 ceph auth add osd.0 osd 'allow *' mon 'allow profile osd' -i "$data/osd0/keyring"
start ceph-osd -f -i 0
timeout 60 ceph osd pool create rbd 32
timeout 120 rbd pool init rbd
timeout 120 rbd create --size 1M rbd/probe
timeout 60 rbd rm --no-progress rbd/probe
up=yes
"$@" >&3 2>&4 3>&- 4>&-
