# Makes a file system on the data disk and mounts it, and says what the guest sees of it then.
# Run with sh -eu as root; arguments: the disk's serial number, the folder, the read-ahead in bytes or nothing, the
# kernel's modules that it takes or nothing, and how many bytes to discard in place of all that, or nothing.
serial=$1 folder=$2 read_ahead=$3 modules=$4 trimmed=$5
[ -z "$modules" ] || ! command -v modprobe >/dev/null || modprobe -a $modules

# There may be no udev that would name the disk by its serial number, so that the kernel is asked.
tries=0
until [ -n "${name:=}" ]; do
    for disk in /sys/block/vd* /sys/block/sd*; do
        # A SCSI disk has it in its vital product data, behind a header of four bytes.
        known=$(cat "$disk/serial" 2>/dev/null || tail -c +5 "$disk/device/vpd_pg80" 2>/dev/null || :)
        [ "$known" != "$serial" ] || name=${disk##*/}
    done
    tries=$((tries + 1))
    [ "$tries" -lt 200 ] || { echo "no disk with the serial number $serial within 20 s" >&2; exit 1; }
    [ -b "/dev/${name:-none}" ] || { name=; sleep 0.1; }
done

# The host looks for what is left of these bytes.
if [ -n "$trimmed" ]; then
    dd if=/dev/urandom of="/dev/$name" bs="$trimmed" count=1 conv=fsync,notrunc status=none
    blkdiscard -l "$trimmed" "/dev/$name"
    # QEMU writes the tables of a qcow2 image when it is told to flush, and qemu-img reads them from the file.
    sync "/dev/$name"
    exit
fi

# Blocks that the host has reserved must not be given back, and nothing is left to be done under a load. A small file
# system would have blocks of 1 KiB: where the host's disk has sectors of 4 KiB, QEMU then reads before it writes.
mkfs.ext4 -q -F -b 4096 -m 0 -E nodiscard,lazy_itable_init=1,lazy_journal_init=1 "/dev/$name" </dev/null
mkdir -p "$folder"
mount -t ext4 -o noatime,noinit_itable "/dev/$name" "$folder"
queue=/sys/block/$name/queue
[ -z "$read_ahead" ] || echo $((read_ahead / 1024)) >"$queue/read_ahead_kb"

echo "device /dev/$name"
echo "mounted $(awk -v folder="$folder" '$2 == folder { found = $1 } END { print found }' /proc/mounts)"
echo "block_bytes $(stat -f -c %S "$folder")"
echo "bytes $(($(cat "/sys/block/$name/size") * 512))"
echo "queues $(ls "/sys/block/$name/mq" | wc -l)"
echo "read_ahead_bytes $(($(cat "$queue/read_ahead_kb") * 1024))"
echo "write_cache $(cat "$queue/write_cache")"
echo "cpus $(nproc)"
