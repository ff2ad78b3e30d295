-- IndexNow of a site, by the address of its front page.
CREATE TABLE rows_index_now (key bytea PRIMARY KEY, value bytea NOT NULL);
