#!/bin/sh
# A boot that does nothing but start the guest agent; whatever a role needs is started by name later.
set -eu
units=/etc/systemd/system

systemctl set-default vmlab.target
rm -f "$units"/*.wants/* "$units"/sshd.service
# Its sockets still start it when something is plugged in.
rm -f /lib/systemd/system/sysinit.target.wants/systemd-udevd.service

for generator in /lib/systemd/system-generators/* /usr/lib/systemd/system-generators/*; do
    mkdir -p /etc/systemd/system-generators
    ln -sf /dev/null "/etc/systemd/system-generators/${generator##*/}"
done

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
    ln -sf /dev/null "$units/$unit"
done
