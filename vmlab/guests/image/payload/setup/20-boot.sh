#!/bin/sh
# Three ways to boot, which the initial RAM disk chooses among by a word of the kernel's: each is a folder of units that
# systemd reads before all others. Whatever a role needs is started by name later, in all of them.
#   lab     nothing but the guest agent; it is the default
#   normal  what Debian starts by itself, the servers of the roles excepted
#   rescue  systemd's rescue.target: the basic system and a root shell on the console
set -eu
units=/etc/systemd/system
boot=/usr/lib/vmlab/boot
mkdir -p "$boot/lab/generators" "$boot/lab/sysinit.target.wants" "$boot/normal" \
    "$boot/normal/multi-user.target.wants" "$boot/rescue/rescue.target.wants" "$boot/rescue/rescue.service.d"

systemctl set-default vmlab.target
ln -s /lib/systemd/system/multi-user.target "$boot/normal/default.target"
ln -s /lib/systemd/system/rescue.target "$boot/rescue/default.target"
ln -s "$units/qemu-guest-agent.service" "$boot/normal/multi-user.target.wants/"
ln -s "$units/qemu-guest-agent.service" "$boot/rescue/rescue.target.wants/"
# Root has no password, and without this the shell on the console would refuse to open.
printf '[Service]\nEnvironment=SYSTEMD_SULOGIN_FORCE=1\n' >"$boot/rescue/rescue.service.d/vmlab.conf"

# What packages enabled is Debian's usual boot. The roles' servers, and sshd, which has no host key yet, wait.
for enabled in "$units"/*.wants/*; do
    case ${enabled##*/} in
    apache* | mariadb* | mysql* | postgresql* | postfix* | smbd* | nmbd* | samba* | winbind* | ssh* | qemu-guest-agent*) ;;
    *)
        wants=${enabled%/*}
        mkdir -p "$boot/normal/${wants##*/}"
        cp -P "$enabled" "$boot/normal/${wants##*/}/"
        ;;
    esac
done
rm -rf "$units"/*.wants "$units/sshd.service"

# There is no console that could be asked who the guest is.
ln -sf /dev/null "$units/systemd-firstboot.service"

# Its sockets still start it when something is plugged in.
ln -s /dev/null "$boot/lab/sysinit.target.wants/systemd-udevd.service"

# Of what systemd starts at every boot these do nothing for a guest without consoles, swap, fstab or a battery.
# Devices are there without udev's round of them: the initrd loads the modules, and devtmpfs makes the nodes.
for unit in \
    systemd-ask-password-console.path systemd-ask-password-wall.path systemd-binfmt.service \
    systemd-firstboot.service systemd-journal-flush.service systemd-logind.service \
    systemd-machine-id-commit.service systemd-modules-load.service systemd-pcrphase-sysinit.service \
    systemd-pcrphase.service systemd-pstore.service systemd-random-seed.service systemd-repart.service \
    systemd-sysctl.service systemd-sysusers.service systemd-tmpfiles-clean.timer \
    systemd-udev-trigger.service systemd-update-utmp.service systemd-update-utmp-runlevel.service \
    systemd-user-sessions.service systemd-initctl.socket systemd-journald-audit.socket \
    systemd-tmpfiles-setup-dev.service systemd-remount-fs.service systemd-timesyncd.service systemd-networkd.service \
    kmod-static-nodes.service getty.target cryptsetup.target integritysetup.target veritysetup.target \
    dev-hugepages.mount dev-mqueue.mount proc-sys-fs-binfmt_misc.automount sys-fs-fuse-connections.mount \
    sys-kernel-config.mount sys-kernel-debug.mount sys-kernel-tracing.mount \
    apt-daily.timer apt-daily-upgrade.timer dpkg-db-backup.timer e2scrub_all.timer fstrim.timer phpsessionclean.timer; do
    ln -sf /dev/null "$boot/lab/$unit"
done
