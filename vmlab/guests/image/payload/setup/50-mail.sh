#!/bin/sh
# Postfix: whatever the name, mail for a user of this guest is local. Queue and delivery are as Postfix has them.
set -eu
cat >/etc/postfix/main.cf <<END
compatibility_level = 3.6
myhostname = guest.$MAIL_DOMAIN
mydomain = $MAIL_DOMAIN
myorigin = $MAIL_DOMAIN
# Every domain is this guest's own, so nothing is ever relayed.
mydestination = static:ALL
mynetworks = 127.0.0.0/8 $LAB_NETWORK
inet_interfaces = all
inet_protocols = ipv4
alias_maps =
alias_database =
home_mailbox = Maildir/
mailbox_size_limit = 0
message_size_limit = 0
biff = no
append_dot_mydomain = no
# The lab has no DNS; a look-up would only wait.
smtp_dns_support_level = disabled
smtpd_peername_lookup = no
smtpd_relay_restrictions = permit_mynetworks, reject_unauth_destination
END
postfix check
# This fills the place that Postfix's servers are locked into. Debian 12's unit does it, and from 3.10 on `postfix check`.
case $(postconf -h mail_version) in
    3.[0-9].*) /usr/lib/postfix/configure-instance.sh - ;;
esac

cat >/etc/systemd/system/postfix.service <<END
[Unit]
Description=Postfix

[Service]
Type=forking
Environment=MAIL_CONFIG=/etc/postfix
PIDFile=/var/spool/postfix/pid/master.pid
# With -w it goes to the background when its servers listen.
ExecStart=/usr/lib/postfix/sbin/master -w
ExecReload=/bin/kill -HUP \$MAINPID
END
install -d -o "$LAB_USER" -g "$LAB_USER" -m 700 "/home/$LAB_USER/Maildir" \
    "/home/$LAB_USER/Maildir/new" "/home/$LAB_USER/Maildir/cur" "/home/$LAB_USER/Maildir/tmp"
