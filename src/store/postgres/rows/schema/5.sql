-- The same rows with keys and values of bytes, as a file has them: see docs/design. Where processes
-- are told of a table, each of its rows names the transaction that wrote it.

CREATE TABLE rows_meta (key bytea PRIMARY KEY, value bytea NOT NULL);
CREATE TABLE rows_feed_names (key bytea PRIMARY KEY, value bytea NOT NULL);
CREATE TABLE rows_feeds (key bytea PRIMARY KEY, value bytea NOT NULL, moved_in xid8) WITH (fillfactor = 70);
CREATE TABLE rows_items (key bytea PRIMARY KEY, value bytea NOT NULL);
ALTER TABLE rows_items ALTER COLUMN value SET STORAGE EXTERNAL;
CREATE TABLE rows_ids (key bytea PRIMARY KEY, value bytea NOT NULL);
CREATE TABLE rows_created (key bytea PRIMARY KEY, value bytea NOT NULL);
CREATE TABLE rows_listed (key bytea PRIMARY KEY, value bytea NOT NULL);
CREATE TABLE rows_counted (key bytea PRIMARY KEY, value bytea NOT NULL);
CREATE TABLE rows_segments (key bytea PRIMARY KEY, value bytea NOT NULL);
CREATE TABLE rows_terms (key bytea PRIMARY KEY, value bytea NOT NULL);
CREATE TABLE rows_keys (key bytea PRIMARY KEY, value bytea NOT NULL);
CREATE TABLE rows_witnesses (key bytea PRIMARY KEY, value bytea NOT NULL);
CREATE TABLE rows_windows (key bytea PRIMARY KEY, value bytea NOT NULL);
CREATE TABLE rows_polls (key bytea PRIMARY KEY, value bytea NOT NULL) WITH (fillfactor = 70);
CREATE TABLE rows_evidence (key bytea PRIMARY KEY, value bytea NOT NULL);
CREATE TABLE rows_walks (key bytea PRIMARY KEY, value bytea NOT NULL);
CREATE TABLE rows_staging (key bytea PRIMARY KEY, value bytea NOT NULL);
CREATE TABLE rows_observations (key bytea PRIMARY KEY, value bytea NOT NULL);
CREATE TABLE rows_subs (key bytea PRIMARY KEY, value bytea NOT NULL);
CREATE TABLE rows_sub_keys (key bytea PRIMARY KEY, value bytea NOT NULL);
CREATE TABLE rows_feed_subs (key bytea PRIMARY KEY, value bytea NOT NULL);
CREATE TABLE rows_positions (key bytea PRIMARY KEY, value bytea NOT NULL) WITH (fillfactor = 70);
CREATE TABLE rows_hosts (key bytea PRIMARY KEY, value bytea NOT NULL);
CREATE TABLE rows_users (key bytea PRIMARY KEY, value bytea NOT NULL);
CREATE TABLE rows_tokens (key bytea PRIMARY KEY, value bytea NOT NULL);
CREATE TABLE rows_documents (key bytea PRIMARY KEY, value bytea NOT NULL);
CREATE TABLE rows_found_feeds (key bytea PRIMARY KEY, value bytea NOT NULL);
CREATE TABLE rows_groups (key bytea PRIMARY KEY, value bytea NOT NULL);
CREATE TABLE rows_group_posts (key bytea PRIMARY KEY, value bytea NOT NULL);
CREATE TABLE rows_holdings (key bytea PRIMARY KEY, value bytea NOT NULL);
CREATE TABLE rows_memberships (key bytea PRIMARY KEY, value bytea NOT NULL);
CREATE TABLE rows_registry (key bytea PRIMARY KEY, value bytea NOT NULL);

INSERT INTO rows_feed_names SELECT convert_to(name, 'UTF8'), int4send(no) FROM feeds WHERE name IS NOT NULL;
INSERT INTO rows_items SELECT int4send(feed) || int8send(t), value FROM items;
INSERT INTO rows_ids SELECT int4send(feed) || id, int8send(t) FROM items;
INSERT INTO rows_created SELECT int4send(feed) || int8send(created), int8send(t) FROM items;
-- A date before 1970 is negative: the bit of the sign is turned over, so that bytes have the order of dates.
INSERT INTO rows_listed SELECT int4send(feed) || int8send(listed # (-9223372036854775808)) || int8send(created), int8send(t) FROM items;
INSERT INTO rows_keys SELECT int4send(feed) || key, item FROM keys;
INSERT INTO rows_witnesses SELECT int4send(feed) || key, items FROM witnesses;
INSERT INTO rows_windows SELECT int4send(feed), value FROM windows;
INSERT INTO rows_polls SELECT int4send(feed), value FROM polls;
INSERT INTO rows_evidence SELECT int4send(feed) || item || int8send(t), value FROM evidence;
INSERT INTO rows_walks SELECT int4send(feed), value FROM walks;
INSERT INTO rows_staging SELECT int4send(feed) || int4send(no::integer), value FROM staging WHERE feed >= 0;
INSERT INTO rows_observations SELECT int4send(feed) || int8send(no), value FROM observations;
INSERT INTO rows_subs SELECT int8send(no), value FROM subscriptions;
INSERT INTO rows_sub_keys SELECT address_key, int8send(no) FROM subscriptions;
INSERT INTO rows_feed_subs SELECT int4send(feed) || int8send(no), '' FROM subscriptions;
INSERT INTO rows_positions SELECT int8send(no), value FROM positions;
INSERT INTO rows_hosts SELECT convert_to(host, 'UTF8'), int8send(paused_since) || int8send(paused_until) FROM pauses;
INSERT INTO rows_users SELECT int8send(no), value FROM users;
INSERT INTO rows_tokens SELECT int8send(no), value FROM tokens;
INSERT INTO rows_documents SELECT int4send(feed), value FROM documents;
INSERT INTO rows_found_feeds SELECT convert_to(site, 'UTF8'), value FROM found_feeds;
INSERT INTO rows_groups SELECT int4send(feed), value FROM feed_groups;
INSERT INTO rows_group_posts SELECT int4send(feed) || item, value FROM group_posts;
INSERT INTO rows_holdings SELECT int4send(feed) || int4send(member) || item, post FROM holdings;
INSERT INTO rows_memberships SELECT int4send(member) || int4send(feed), '' FROM memberships;
INSERT INTO rows_registry SELECT convert_to(name, 'UTF8'), value FROM registry;
INSERT INTO rows_feeds SELECT int4send(no), value, pg_current_xact_id() FROM feeds;

CREATE TRIGGER feeds_move BEFORE INSERT OR UPDATE ON rows_feeds
    FOR EACH ROW EXECUTE FUNCTION note_move();
CREATE INDEX feeds_moved_in_rows ON rows_feeds (moved_in);

DROP TABLE feeds, items, keys, witnesses, windows, polls, evidence, walks, staging, observations,
    documents, found_feeds, subscriptions, positions, users, tokens, feed_groups, group_posts, holdings,
    memberships, pauses, registry;
UPDATE meta SET number = 5 WHERE name = 'oldest_schema';
