<?php
// The first visit to the front page: fails unless the page is there, and leaves PHP's compiled programs on disk.
$_SERVER['HTTP_HOST'] = $_SERVER['SERVER_NAME'] = 'localhost';
$_SERVER['REQUEST_URI'] = '/';
$_SERVER['REQUEST_METHOD'] = 'GET';
$_SERVER['SERVER_PROTOCOL'] = 'HTTP/1.1';
$_SERVER['PHP_SELF'] = $_SERVER['SCRIPT_NAME'] = '/index.php';
chdir('/usr/share/wordpress');
ob_start();
require '/usr/share/wordpress/index.php';
if (!str_contains(ob_get_clean(), 'Consolidation')) {
    fwrite(STDERR, "the front page does not show its posts\n");
    exit(1);
}
