#!/bin/sh
# Samba: one share, SMB 3 alone, without NetBIOS.
set -eu
cat >/etc/samba/smb.conf <<END
[global]
    server role = standalone server
    # Samba's accounts belong to this name, whatever the guest is called.
    netbios name = VMLAB
    workgroup = VMLAB
    disable netbios = yes
    smb ports = 445
    server min protocol = SMB3
    client min protocol = SMB3
    load printers = no
    printing = bsd
    printcap name = /dev/null
    disable spoolss = yes
    dns proxy = no
    log level = 0

[$SHARE]
    path = $SHARE_FOLDER
    read only = no
    valid users = $LAB_USER
    create mask = 0644
    directory mask = 0755
END
testparm --suppress-prompt >/dev/null 2>&1
# Debian's unit asks at every start whether smbd is configured at all, and looks for AppArmor.
mkdir -p /etc/systemd/system/smbd.service.d
printf '[Service]\nExecCondition=\nExecStartPre=\n' >/etc/systemd/system/smbd.service.d/vmlab.conf
install -d -o "$LAB_USER" -g "$LAB_USER" "$SHARE_FOLDER"
printf '%s\n%s\n' "$LAB_PASSWORD" "$LAB_PASSWORD" | smbpasswd -s -a "$LAB_USER"
