-- The feeds of the database that the process that works does not serve, with its epoch as their number;
-- the root of the URLs that consumers see; and how each process differs from the one that works.

INSERT INTO meta (name) VALUES ('withdrawn'), ('root');
ALTER TABLE nodes ADD COLUMN differences text;
