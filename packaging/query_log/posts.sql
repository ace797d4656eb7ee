-- Posts, their categories and comments, the same on every server: all of it follows from the numbers of the rows.
INSERT INTO wp_terms (term_id, name, slug)
SELECT 100 + seq, CONCAT('Topic ', seq), CONCAT('topic-', seq) FROM seq_1_to_20;
INSERT INTO wp_term_taxonomy (term_taxonomy_id, term_id, taxonomy, description, count)
SELECT 100 + seq, 100 + seq, 'category', '', 100 FROM seq_1_to_20;
INSERT INTO wp_posts (ID, post_author, post_date, post_date_gmt, post_content, post_title, post_excerpt, post_status,
    comment_status, ping_status, post_name, to_ping, pinged, post_modified, post_modified_gmt, post_content_filtered,
    guid, post_type, comment_count)
SELECT 1000 + p.seq, 1, made.moment, made.moment,
    (SELECT GROUP_CONCAT(ELT(1 + CRC32(CONCAT(p.seq, '.', w.seq)) MOD 24, 'host', 'guest', 'processor', 'memory',
        'cache', 'disk', 'queue', 'latency', 'throughput', 'interrupt', 'scheduler', 'share', 'page', 'network',
        'bridge', 'request', 'answer', 'reader', 'writer', 'table', 'index', 'lock', 'snapshot', 'clock')
        ORDER BY w.seq SEPARATOR ' ') FROM seq_1_to_200 AS w),
    CONCAT('Note ', p.seq), '', 'publish', 'open', 'closed', CONCAT('note-', p.seq), '', '', made.moment, made.moment,
    '', CONCAT('http://localhost/?p=', 1000 + p.seq), 'post', 3
FROM seq_1_to_2000 AS p
JOIN (SELECT seq AS number, '2015-01-01 08:00:00' + INTERVAL 37 * seq HOUR AS moment FROM seq_1_to_2000) AS made
    ON made.number = p.seq;
INSERT INTO wp_term_relationships (object_id, term_taxonomy_id)
SELECT 1000 + seq, 101 + seq MOD 20 FROM seq_1_to_2000;
INSERT INTO wp_comments (comment_ID, comment_post_ID, comment_author, comment_author_email, comment_date,
    comment_date_gmt, comment_content, comment_approved)
SELECT 1000 + seq, 1001 + seq MOD 2000, CONCAT('Reader ', seq MOD 97), CONCAT('reader', seq MOD 97, '@vmlab.test'),
    '2021-01-01' + INTERVAL seq HOUR, '2021-01-01' + INTERVAL seq HOUR,
    CONCAT('What does this mean for a guest with ', 1 + seq MOD 16, ' processors, and how was it measured?'), '1'
FROM seq_1_to_6000;
ANALYZE TABLE wp_posts, wp_comments, wp_terms, wp_term_taxonomy, wp_term_relationships;
