-- Events for the operator, by their times.

CREATE TABLE rows_events (key bytea PRIMARY KEY, value bytea NOT NULL);
-- Push from upstream for a feed.
CREATE TABLE rows_pushed (key bytea PRIMARY KEY, value bytea NOT NULL);
