<?php
// Installs WordPress's tables and fills the site, without a browser.
define('WP_INSTALLING', true);
$_SERVER['HTTP_HOST'] = $_SERVER['SERVER_NAME'] = 'localhost';
$_SERVER['REQUEST_URI'] = '/';
$_SERVER['REQUEST_METHOD'] = 'GET';

// WordPress lets these be replaced; nobody is to be written to.
function wp_new_blog_notification($title, $url, $user, $password) {}
function wp_mail($to, $subject, $message, $headers = '', $attachments = []) { return true; }

require '/usr/share/wordpress/wp-load.php';
require ABSPATH . 'wp-admin/includes/upgrade.php';

// Nobody knows the password, and nobody needs it.
$made = wp_install('vmlab', 'lab', 'lab@vmlab.test', false, '', bin2hex(random_bytes(24)));
if (is_wp_error($made)) {
    fwrite(STDERR, $made->get_error_message() . "\n");
    exit(1);
}
// The recipe installs one theme.
switch_theme(array_key_first(wp_get_themes()));
update_option('default_ping_status', 'closed');
update_option('default_comment_status', 'closed');

$sentence = 'A guest that serves this page runs PHP and asks the database anew for every visitor. ';
foreach (['Consolidation', 'Overcommitment', 'Locality', 'Latency', 'Throughput'] as $number => $title) {
    $paragraphs = str_repeat('<p>' . str_repeat($sentence, 4) . '</p>' . "\n", 3);
    $post = wp_insert_post([
        'post_title' => $title,
        'post_content' => $paragraphs,
        'post_status' => 'publish',
        'post_author' => 1,
        'post_date' => sprintf('2023-06-%02d 12:00:00', 10 + $number),
    ], true);
    if (is_wp_error($post)) {
        fwrite(STDERR, $post->get_error_message() . "\n");
        exit(1);
    }
}
