<?php
// The site is whatever address it is asked by: a guest learns its own only when it is given its identity.
define('WP_HOME', 'http://' . $_SERVER['HTTP_HOST']);
define('WP_SITEURL', 'http://' . $_SERVER['HTTP_HOST']);
// MariaDB knows Apache by the user that its processes run as; there is no password.
define('DB_NAME', 'wordpress');
define('DB_USER', 'www-data');
define('DB_PASSWORD', '');
define('DB_HOST', 'localhost');
// Nothing but the visitor's request runs, and nothing leaves the guest.
define('DISABLE_WP_CRON', true);
define('WP_HTTP_BLOCK_EXTERNAL', true);
define('AUTOMATIC_UPDATER_DISABLED', true);
require '/etc/wordpress/salts.php';
