-- What an authority for certificates gave, sealed with a key that is not in the database; and a number
-- that is raised when it changes. An everfeed without them keeps that in files.

CREATE TABLE sealed (name text COLLATE "C" PRIMARY KEY, value bytea NOT NULL);
INSERT INTO meta (name) VALUES ('sealed');
