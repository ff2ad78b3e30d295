-- The tables of schema 4 that a commit of one new item reads and writes, with 32 feeds.
CREATE TABLE meta (name text COLLATE "C" PRIMARY KEY, number bigint NOT NULL DEFAULT 0, value bytea);
INSERT INTO meta (name) VALUES ('epoch');
CREATE TABLE feeds (
    no integer PRIMARY KEY,
    name text COLLATE "C" UNIQUE,
    rev bigint NOT NULL,
    last_t bigint NOT NULL,
    total bigint NOT NULL,
    value bytea NOT NULL,
    moved_in xid8
) WITH (fillfactor = 70);
CREATE FUNCTION note_move() RETURNS trigger LANGUAGE plpgsql AS
    'BEGIN NEW.moved_in := pg_current_xact_id(); RETURN NEW; END';
CREATE TRIGGER feeds_move BEFORE INSERT OR UPDATE ON feeds FOR EACH ROW EXECUTE FUNCTION note_move();
CREATE INDEX feeds_moved_in ON feeds (moved_in);
CREATE TABLE items (
    feed integer NOT NULL,
    t bigint NOT NULL,
    id bytea NOT NULL,
    created bigint NOT NULL,
    listed bigint NOT NULL,
    terms bigint[],
    value bytea NOT NULL,
    PRIMARY KEY (feed, t)
);
ALTER TABLE items ALTER COLUMN value SET STORAGE EXTERNAL;
CREATE UNIQUE INDEX items_id ON items (feed, id);
CREATE UNIQUE INDEX items_created ON items (feed, created);
CREATE UNIQUE INDEX items_listed ON items (feed, listed, created);
CREATE INDEX items_changed ON items (feed, t) WHERE created < t;
CREATE INDEX items_terms ON items USING gin (terms);
CREATE TABLE keys (feed integer NOT NULL, key bytea NOT NULL, item bytea NOT NULL, PRIMARY KEY (feed, key));
CREATE TABLE witnesses (feed integer NOT NULL, key bytea NOT NULL, items bytea NOT NULL, PRIMARY KEY (feed, key));
CREATE TABLE observations (feed integer NOT NULL, no bigint NOT NULL, value bytea NOT NULL, PRIMARY KEY (feed, no));
CREATE TABLE memberships (member integer NOT NULL, feed integer NOT NULL, PRIMARY KEY (member, feed));
INSERT INTO feeds SELECT n, 'feed' || n, 1, 0, 0, decode(repeat('5a', 400), 'hex') FROM generate_series(1, 32) n;
