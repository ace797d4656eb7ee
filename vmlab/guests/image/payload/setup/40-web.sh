#!/bin/sh
# Apache with WordPress on MariaDB, installed and filled here, where it takes seconds.
set -eu
a2dissite -q 000-default
a2ensite -q vmlab
a2disconf -q other-vhosts-access-log
php -r 'foreach (["AUTH_KEY", "SECURE_AUTH_KEY", "LOGGED_IN_KEY", "NONCE_KEY", "AUTH_SALT", "SECURE_AUTH_SALT",
    "LOGGED_IN_SALT", "NONCE_SALT"] as $name) { $all[] = "define(\"$name\", \"" . bin2hex(random_bytes(32)) . "\");\n"; }
    echo "<?php\n", implode("", $all);' >/etc/wordpress/salts.php
chown root:www-data /etc/wordpress/salts.php
chmod 640 /etc/wordpress/salts.php

# PHP's compiled programs are kept on disk, so that a guest's first visitor does not wait for the compiler.
install -d -o www-data -g www-data /var/cache/opcache
for folder in /etc/php/*/mods-available; do
    echo "opcache.file_cache = /var/cache/opcache" >"$folder/vmlab.ini"
done
phpenmod vmlab

install -d -o mysql -g mysql /run/mysqld
mariadbd --user=mysql --skip-networking &
server=$!
tries=0
until mariadb-admin ping >/dev/null 2>&1; do
    tries=$((tries + 1))
    [ "$tries" -lt 300 ] || { echo "MariaDB does not answer" >&2; exit 1; }
    sleep 0.1
done
mariadb <<END
CREATE DATABASE wordpress CHARACTER SET utf8mb4;
CREATE USER 'www-data'@'localhost' IDENTIFIED VIA unix_socket;
GRANT ALL ON wordpress.* TO 'www-data'@'localhost';
END
as_apache() { setpriv --reuid www-data --regid www-data --init-groups -- "$@"; }
as_apache php /usr/lib/vmlab/setup/wordpress.php
as_apache php -d opcache.enable_cli=1 /usr/lib/vmlab/setup/visit.php
mariadb-admin shutdown
wait "$server"
rm -rf /run/mysqld
