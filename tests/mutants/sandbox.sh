# Runs a command where it can change and end nothing of this machine: sh sandbox.sh CHECKOUT COMMAND…
#
# CHECKOUT is a copy in memory of what git tracks, with this checkout's .venv, read-only. /tmp, /var/tmp, /run, /dev/shm
# and /root/.cache are empty folders in memory; everything else, cgroups included, is read-only. Processes, network and
# System V IPC are namespaces of their own, and /dev has no disk. The command runs in a user namespace, so that the
# kernel lets it undo none of this. It ends when its parent does.
set -eu
if [ "$1" != inside ]; then
  exec unshare --mount --propagation private --pid --net --ipc --uts --fork --kill-child --mount-proc sh "$0" inside "$@"
fi
checkout=$2
shift 2

# Of mounts on top of each other, a path leads to the newest.
cut -d ' ' -f 5 /proc/self/mountinfo | sort -u | while read -r place; do
  [ "$place" = /proc ] || mount -o remount,bind,ro "$(printf '%b' "$place")"
done
for place in sys irq bus; do
  [ ! -e "/proc/$place" ] || mount --bind -o ro "/proc/$place" "/proc/$place"
done
[ ! -e /proc/sysrq-trigger ] || mount --bind /dev/null /proc/sysrq-trigger

stage=/dev/shm
mount -t tmpfs -o size=1g,mode=755 mutants "$stage"
mkdir -p "$stage/tree/.venv" "$stage/dev/shm" "$stage/dev/pts"
git -C "$checkout" ls-files -z --cached --others --exclude-standard |
  tar -C "$checkout" -c --null --ignore-failed-read -T - | tar -C "$stage/tree" -x
mount --rbind "$checkout/.venv" "$stage/tree/.venv"
for node in null zero full random urandom tty; do
  : > "$stage/dev/$node"
  mount --bind "/dev/$node" "$stage/dev/$node"
done
ln -s pts/ptmx "$stage/dev/ptmx"
ln -s /proc/self/fd "$stage/dev/fd"
for place in /tmp /var/tmp /run /root/.cache; do
  [ ! -d "$place" ] || mount -t tmpfs -o mode=1777 mutants "$place"
done
mkdir -p "$checkout"
mount --rbind "$stage/tree" "$checkout"
mount --rbind "$stage/dev" /dev
mount -t tmpfs -o mode=1777 mutants /dev/shm
mount -t devpts -o ptmxmode=0666,mode=620 devpts /dev/pts
mount -o remount,bind,ro /dev
cd "$checkout"
exec unshare --user --map-root-user --mount --propagation private "$@"
