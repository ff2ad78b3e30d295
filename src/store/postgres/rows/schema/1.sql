-- Values are those of `stored`, as in a file. Numbers without an end are bigint; times are microseconds
-- since 1970. Items are packed already.

CREATE TABLE meta (
    name text COLLATE "C" PRIMARY KEY,
    number bigint NOT NULL DEFAULT 0,
    value bytea
);
INSERT INTO meta (name) VALUES
    ('last_feed'), ('last_subscription'), ('last_user'), ('last_token'),
    ('epoch'), ('running'), ('clock'), ('content'), ('copied_to'), ('copied_from');

CREATE TABLE feeds (
    no integer PRIMARY KEY,
    name text COLLATE "C" UNIQUE,
    rev bigint NOT NULL,
    last_t bigint NOT NULL,
    total bigint NOT NULL,
    value bytea NOT NULL
) WITH (fillfactor = 70);

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

CREATE TABLE keys (
    feed integer NOT NULL,
    key bytea NOT NULL,
    item bytea NOT NULL,
    PRIMARY KEY (feed, key)
);
CREATE TABLE witnesses (
    feed integer NOT NULL,
    key bytea NOT NULL,
    items bytea NOT NULL,
    PRIMARY KEY (feed, key)
);
CREATE TABLE windows (feed integer PRIMARY KEY, value bytea NOT NULL);
CREATE TABLE polls (feed integer PRIMARY KEY, value bytea NOT NULL) WITH (fillfactor = 70);
CREATE TABLE evidence (
    feed integer NOT NULL,
    item bytea NOT NULL,
    t bigint NOT NULL,
    value bytea NOT NULL,
    PRIMARY KEY (feed, item, t)
);
CREATE TABLE walks (feed integer PRIMARY KEY, value bytea NOT NULL);
CREATE TABLE staging (
    feed integer NOT NULL,
    no bigint NOT NULL,
    value bytea NOT NULL,
    PRIMARY KEY (feed, no)
);
CREATE TABLE observations (
    feed integer NOT NULL,
    no bigint NOT NULL,
    value bytea NOT NULL,
    PRIMARY KEY (feed, no)
);
CREATE TABLE documents (feed integer PRIMARY KEY, value bytea NOT NULL);
CREATE TABLE found_feeds (site text COLLATE "C" PRIMARY KEY, value bytea NOT NULL);

CREATE TABLE subscriptions (
    no bigint PRIMARY KEY,
    feed integer NOT NULL,
    address_key bytea NOT NULL UNIQUE,
    lease_until bigint NOT NULL,
    value bytea NOT NULL
);
CREATE INDEX subscriptions_feed ON subscriptions (feed, no);
CREATE TABLE positions (
    no bigint PRIMARY KEY,
    readers bigint NOT NULL,
    value bytea NOT NULL
) WITH (fillfactor = 70);

CREATE TABLE users (
    no bigint PRIMARY KEY,
    name text COLLATE "C" NOT NULL UNIQUE,
    value bytea NOT NULL
);
CREATE TABLE tokens (no bigint PRIMARY KEY, owner bigint NOT NULL, value bytea NOT NULL);
CREATE INDEX tokens_owner ON tokens (owner);

CREATE TABLE feed_groups (feed integer PRIMARY KEY, value bytea NOT NULL);
CREATE TABLE group_posts (
    feed integer NOT NULL,
    item bytea NOT NULL,
    value bytea NOT NULL,
    PRIMARY KEY (feed, item)
);
CREATE TABLE holdings (
    feed integer NOT NULL,
    member integer NOT NULL,
    item bytea NOT NULL,
    post bytea NOT NULL,
    PRIMARY KEY (feed, member, item)
);
CREATE TABLE memberships (
    member integer NOT NULL,
    feed integer NOT NULL,
    PRIMARY KEY (member, feed)
);
CREATE TABLE pauses (
    host text COLLATE "C" PRIMARY KEY,
    paused_since bigint NOT NULL,
    paused_until bigint NOT NULL
);
CREATE TABLE registry (name text COLLATE "C" PRIMARY KEY, value bytea NOT NULL);
