-- Several processes on one database: what moved since a transaction, who is there, and what they ask
-- each other. The trigger finds what an everfeed writes that does not know the column.

ALTER TABLE feeds ADD COLUMN moved_in xid8;
CREATE FUNCTION note_move() RETURNS trigger LANGUAGE plpgsql AS
    'BEGIN NEW.moved_in := pg_current_xact_id(); RETURN NEW; END';
CREATE TRIGGER feeds_move BEFORE INSERT OR UPDATE ON feeds
    FOR EACH ROW EXECUTE FUNCTION note_move();
CREATE INDEX feeds_moved_in ON feeds (moved_in);

INSERT INTO meta (name) VALUES ('beat'), ('catalog'), ('accounts'), ('restored');
INSERT INTO meta (name, number) VALUES ('oldest_schema', 2);

-- In no log of the database and on no standby: what is asked holds credentials, and is of moments.
CREATE UNLOGGED TABLE nodes (
    id integer PRIMARY KEY,
    name text NOT NULL,
    version text NOT NULL,
    public_url text NOT NULL,
    prefix text NOT NULL,
    heard timestamptz NOT NULL,
    works boolean NOT NULL
);
CREATE UNLOGGED TABLE questions (
    no bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    words bytea NOT NULL,
    taken bigint,
    is_over boolean NOT NULL DEFAULT false,
    answer bytea
);
CREATE INDEX questions_waiting ON questions (no) WHERE taken IS NULL;
