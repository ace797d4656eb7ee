#!/bin/sh
# PostgreSQL: one cluster that the lab's network may use, with the benchmark's database in it.
set -eu
version=$(ls /etc/postgresql)
settings=/etc/postgresql/$version/main
tree=/var/lib/postgresql/$version/main
binaries=/usr/lib/postgresql/$version/bin

# Sized for a guest of 512 MiB. What makes a transaction durable stays as it is: that is what is measured.
cat >"$settings/conf.d/vmlab.conf" <<END
listen_addresses = '*'
max_connections = 50
shared_buffers = 96MB
ssl = off
jit = off
END
cat >"$settings/pg_hba.conf" <<END
local all all trust
host all all 127.0.0.1/32 trust
host $DATABASE $DATABASE $LAB_NETWORK trust
END

# Debian's own unit goes through a program in Perl, which takes seconds under emulation, and its name has the version.
cat >/etc/systemd/system/postgresql.service <<END
[Unit]
Description=PostgreSQL $version

[Service]
Type=notify
User=postgres
ExecStart=$binaries/postgres -D $tree -c config_file=$settings/postgresql.conf
ExecReload=/bin/kill -HUP \$MAINPID
KillMode=mixed
KillSignal=SIGINT
OOMScoreAdjust=-900
TimeoutSec=infinity
END

as_postgres() { setpriv --reuid postgres --regid postgres --init-groups -- "$@"; }
printf 'CREATE ROLE %s LOGIN;\nCREATE DATABASE %s OWNER %s;\n' "$DATABASE" "$DATABASE" "$DATABASE" |
    as_postgres "$binaries/postgres" --single -D "$tree" -c "config_file=$settings/postgresql.conf" postgres >/dev/null
