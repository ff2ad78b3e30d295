-- Push from upstream for a feed.
CREATE TABLE rows_pushed (key bytea PRIMARY KEY, value bytea NOT NULL);
