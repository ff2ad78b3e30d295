-- Lists of feeds (OPML) that are read at intervals, by their names.
CREATE TABLE rows_opml_lists (key bytea PRIMARY KEY, value bytea NOT NULL);
