-- A commit of one new item as columns have it, in two round trips: one locks and reads, one writes.
\set feed :client_id + 1
\startpipeline
BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE;
SET LOCAL lock_timeout = '5s';
SET LOCAL idle_in_transaction_session_timeout = '60s';
SELECT pg_current_xact_id()::text, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint, (SELECT number FROM meta WHERE name = 'epoch' FOR SHARE), set_config('synchronous_commit', current_setting('synchronous_commit'), true);
SELECT no FROM feeds WHERE no = :feed FOR UPDATE;
SELECT feed FROM memberships WHERE member = :feed;
SELECT value FROM feeds WHERE no = :feed;
SELECT t, value FROM items WHERE feed = :feed ORDER BY t DESC LIMIT 1;
SELECT id, value FROM items WHERE feed = :feed AND id = ANY(ARRAY['\x00010203040506070809'::bytea]);
SELECT key, items FROM witnesses WHERE feed = :feed AND key = ANY(ARRAY['\x0001'::bytea]);
SELECT coalesce(max(no), 0) FROM observations WHERE feed = :feed;
\endpipeline
\startpipeline
INSERT INTO items (feed, t, id, created, listed, value) SELECT :feed, now_us, substr(uuid_send(gen_random_uuid()), 1, 10), now_us, now_us, decode(repeat('5a', 1200), 'hex') FROM (SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint AS now_us) AS clock;
INSERT INTO keys (feed, key, item) VALUES (:feed, uuid_send(gen_random_uuid()), '\x00010203040506070809');
UPDATE feeds SET rev = rev + 1, last_t = last_t + 1, total = total + 1, value = value WHERE no = :feed;
COMMIT;
\endpipeline
