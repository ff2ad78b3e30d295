-- Events for the operator, by their times.

CREATE TABLE rows_events (key bytea PRIMARY KEY, value bytea NOT NULL);
