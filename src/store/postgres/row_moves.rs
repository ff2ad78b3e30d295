//! A database as the source or the target of a copy from or to a file: its rows in batches, and the
//! notes by which only one of both is served. Not the file.

use super::{
    Postgres,
    database::DatabaseTime,
    generations,
    planned::terms_column,
    session::DatabaseSession,
    statement::{SqlParam, SqlStatement, column, number_at, number_column},
};
use crate::{
    auth::{AccessToken, User},
    clock::Clock,
    feed::{
        record::{FeedNo, FeedRecord},
        stamp::Stamp,
    },
    store::{
        StoreError, Subscription, Upkeep as _,
        content_mark::ContentMark,
        database_url::DatabaseUrl,
        moved_rows::{MoveNote, MovedRow},
        stored::{
            damaged, decode, encode,
            item::{decode_item, item_header},
            pause::decode_pause,
        },
        subscriptions::Progress,
    },
};
use std::{collections::HashMap, sync::Arc};
use tokio_postgres::Row;

/// Rows that are fetched at once.
const FETCHED_ROWS: usize = 200;

/// A column of a key, as the key of a file has it.
#[derive(Clone, Copy)]
enum KeyPart {
    /// The number of a feed: four bytes.
    Feed(&'static str),
    /// A number or a time: eight bytes.
    Long(&'static str),
    /// A number of four bytes, in a wider column.
    Short(&'static str),
    /// So many bytes.
    Bytes(&'static str, usize),
    /// A text, which is the whole key.
    Text(&'static str),
}

impl KeyPart {
    const fn column(self) -> &'static str {
        match self {
            Self::Feed(name) | Self::Long(name) | Self::Short(name) | Self::Text(name) => name,
            Self::Bytes(name, _) => name,
        }
    }

    const fn kind(self) -> &'static str {
        match self {
            Self::Feed(_) => "integer",
            Self::Long(_) | Self::Short(_) => "bigint",
            Self::Bytes(..) => "bytea",
            Self::Text(_) => "text",
        }
    }

    /// The part in a row, as bytes.
    fn of_row(self, row: &Row, at: usize) -> Result<Vec<u8>, StoreError> {
        Ok(match self {
            Self::Feed(_) => column::<i32>(row, at)?.to_be_bytes().to_vec(),
            Self::Long(_) => column::<i64>(row, at)?.to_be_bytes().to_vec(),
            Self::Short(_) => {
                let number = u32::try_from(number_at(row, at)?).unwrap_or(u32::MAX);
                number.to_be_bytes().to_vec()
            }
            Self::Bytes(..) => column::<&[u8]>(row, at)?.to_vec(),
            Self::Text(_) => column::<&str>(row, at)?.as_bytes().to_vec(),
        })
    }

    /// Bytes of it in a key of which so many are left.
    const fn length(self, left: usize) -> usize {
        match self {
            Self::Feed(_) | Self::Short(_) => 4,
            Self::Long(_) => 8,
            Self::Bytes(_, length) => length,
            Self::Text(_) => left,
        }
    }

    /// The part of many keys, as a parameter.
    fn param(self, parts: &[&[u8]]) -> Result<SqlParam, StoreError> {
        Ok(match self {
            Self::Feed(_) => SqlParam::from(
                parts
                    .iter()
                    .map(|part| short(part).map(u32::cast_signed))
                    .collect::<Result<Vec<i32>, _>>()?,
            ),
            Self::Short(_) => SqlParam::from(
                parts
                    .iter()
                    .map(|part| short(part).map(i64::from))
                    .collect::<Result<Vec<i64>, _>>()?,
            ),
            Self::Long(_) => SqlParam::from(
                parts
                    .iter()
                    .map(|part| long(part).map(u64::cast_signed))
                    .collect::<Result<Vec<i64>, _>>()?,
            ),
            Self::Bytes(..) => {
                SqlParam::from(parts.iter().map(|part| part.to_vec()).collect::<Vec<_>>())
            }
            Self::Text(_) => SqlParam::from(
                parts
                    .iter()
                    .map(|part| String::from_utf8_lossy(part).into_owned())
                    .collect::<Vec<_>>(),
            ),
        })
    }
}

fn short(bytes: &[u8]) -> Result<u32, StoreError> {
    let bytes = bytes
        .try_into()
        .map_err(|_| damaged("a key has another length"))?;
    Ok(u32::from_be_bytes(bytes))
}

fn long(bytes: &[u8]) -> Result<u64, StoreError> {
    let bytes = bytes
        .try_into()
        .map_err(|_| damaged("a key has another length"))?;
    Ok(u64::from_be_bytes(bytes))
}

/// A table, with the name that a file has for it.
struct MovedTable {
    name: &'static str,
    table: &'static str,
    key: &'static [KeyPart],
    /// The column of the value, where there is one.
    value: &'static str,
}

const fn table(
    name: &'static str,
    table: &'static str,
    key: &'static [KeyPart],
    value: &'static str,
) -> MovedTable {
    MovedTable {
        name,
        table,
        key,
        value,
    }
}

use KeyPart::{Bytes, Feed, Long, Short, Text};

/// The tables in the order in which they are moved: items follow their feeds.
const TABLES: [MovedTable; 22] = [
    table("feeds", "feeds", &[Feed("no")], "value"),
    table("items", "items", &[Feed("feed"), Long("t")], "value"),
    table("keys", "keys", &[Feed("feed"), Bytes("key", 16)], "item"),
    table(
        "witnesses",
        "witnesses",
        &[Feed("feed"), Bytes("key", 16)],
        "items",
    ),
    table("windows", "windows", &[Feed("feed")], "value"),
    table("polls", "polls", &[Feed("feed")], "value"),
    table(
        "evidence",
        "evidence",
        &[Feed("feed"), Bytes("item", 10), Long("t")],
        "value",
    ),
    table("walks", "walks", &[Feed("feed")], "value"),
    table("staging", "staging", &[Feed("feed"), Short("no")], "value"),
    table(
        "observations",
        "observations",
        &[Feed("feed"), Long("no")],
        "value",
    ),
    table("subs", "subscriptions", &[Long("no")], "value"),
    table("positions", "positions", &[Long("no")], "value"),
    table("users", "users", &[Long("no")], "value"),
    table("tokens", "tokens", &[Long("no")], "value"),
    table("documents", "documents", &[Feed("feed")], "value"),
    table("found_feeds", "found_feeds", &[Text("site")], "value"),
    table("groups", "feed_groups", &[Feed("feed")], "value"),
    table(
        "group_posts",
        "group_posts",
        &[Feed("feed"), Bytes("item", 10)],
        "value",
    ),
    table(
        "holdings",
        "holdings",
        &[Feed("feed"), Feed("member"), Bytes("item", 10)],
        "post",
    ),
    table(
        "memberships",
        "memberships",
        &[Feed("member"), Feed("feed")],
        "''::bytea",
    ),
    table("registry", "registry", &[Text("name")], "value"),
    table(
        "hosts",
        "pauses",
        &[Text("host")],
        "int8send(paused_since) || int8send(paused_until)",
    ),
];

/// The numbers in `meta` with the names that a file has for them.
const NUMBERS: [(&str, &str); 4] = [
    ("last_feed", "last_feed"),
    ("last_sub", "last_subscription"),
    ("last_user", "last_user"),
    ("last_token", "last_token"),
];

/// The values in `meta` that go along.
const VALUES: [&str; 2] = ["clock", "content"];

const LEFT: &str = "copied_to";
const UNFINISHED: &str = "copied_from";

/// Refuses a database that went on elsewhere, and a copy that is not finished.
pub(super) fn refuse_copied(session: &DatabaseSession) -> Result<(), StoreError> {
    if let Some(MoveNote { place, .. }) = note(session, LEFT)? {
        return Err(StoreError::Schema(format!(
            "the store in the database went on in {place}, and is not served any more: two hubs would push"
        )));
    }
    if let Some(MoveNote { place, .. }) = note(session, UNFINISHED)? {
        return Err(StoreError::Schema(format!(
            "the database holds a copy of {place} that was not finished. Run that `everfeed store copy` again"
        )));
    }
    Ok(())
}

fn note(session: &DatabaseSession, name: &'static str) -> Result<Option<MoveNote>, StoreError> {
    let asked = SqlStatement::new("SELECT value FROM meta WHERE name = $1 AND value IS NOT NULL");
    let Some(row) = session.row(asked.with(name))? else {
        return Ok(None);
    };
    Ok(MoveNote::of_row(column(&row, 0)?))
}

/// A database that is copied from or to. Nobody serves it meanwhile.
pub(in crate::store) struct DatabaseEnd {
    held: Postgres,
    url: DatabaseUrl,
    /// The items of each feed that was written.
    totals: HashMap<FeedNo, u64>,
}

impl DatabaseEnd {
    /// Connects to it, and makes its tables where there are none. Blocks.
    pub(in crate::store) fn open(
        url: &DatabaseUrl,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, StoreError> {
        let held = Postgres::open_unchecked(url, clock, DatabaseTime::OfDatabase)?;
        Ok(Self {
            held,
            url: url.clone(),
            totals: HashMap::new(),
        })
    }

    /// The place of it, in words.
    pub(in crate::store) fn place(&self) -> String {
        self.url.to_string()
    }

    /// The note of the store in which it goes on, if it does.
    pub(in crate::store) fn left(&self) -> Result<Option<MoveNote>, StoreError> {
        self.held.database.read(|session| note(session, LEFT))
    }

    /// The note of the store of which it is a copy that is not finished.
    pub(in crate::store) fn begun(&self) -> Result<Option<MoveNote>, StoreError> {
        self.held.database.read(|session| note(session, UNFINISHED))
    }

    /// The error of a database that is not served.
    pub(in crate::store) fn refuse(&self) -> Result<(), StoreError> {
        self.held.database.read(refuse_copied)
    }

    /// Notes that it goes on there; it is not served any more.
    pub(in crate::store) fn leave(&self, note: &MoveNote) -> Result<(), StoreError> {
        self.set_note(LEFT, Some(note))
    }

    /// Says that it is a copy that is not finished, or is one no more.
    pub(in crate::store) fn set_unfinished(
        &self,
        note: Option<&MoveNote>,
    ) -> Result<(), StoreError> {
        self.set_note(UNFINISHED, note)
    }

    fn set_note(&self, name: &'static str, note: Option<&MoveNote>) -> Result<(), StoreError> {
        let row = note.map(MoveNote::row);
        self.held.database.write(|writing| {
            let sql = match &row {
                Some(_) => "UPDATE meta SET value = $2 WHERE name = $1",
                None => "UPDATE meta SET value = NULL WHERE name = $1",
            };
            let mut written = SqlStatement::new(sql).with(name);
            if let Some(row) = &row {
                written = written.with(row.clone());
            }
            writing.session.change(written);
            Ok(())
        })
    }

    /// True for a database in which no feed was ever registered.
    pub(in crate::store) fn is_empty(&self) -> Result<bool, StoreError> {
        self.held.database.read(|session| {
            let asked =
                "SELECT number FROM meta WHERE name IN ('last_feed', 'last_user') AND number > 0";
            Ok(session.row(SqlStatement::new(asked))?.is_none())
        })
    }

    /// Takes out what a copy that was cut off has left.
    pub(in crate::store) fn clear(&self) -> Result<(), StoreError> {
        self.held.database.write(|writing| {
            writing.session.expect_long();
            let tables: Vec<&str> = TABLES.iter().map(|moved| moved.table).collect();
            let sql = format!("TRUNCATE {}", tables.join(", "));
            writing.session.change(SqlStatement::new(sql));
            Ok(())
        })
    }

    /// All of its rows but those of some tables, table by table in batches, of one revision.
    pub(in crate::store) fn rows(
        &self,
        without: &[&str],
        sink: &mut dyn FnMut(&'static str, Vec<MovedRow>) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        let opening = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY";
        let session = self.held.database.session(opening, None)?;
        session.expect_long();
        let read = read_all(&session, without, sink);
        session.end(false);
        read
    }

    /// Writes a batch of rows of a table of a file.
    pub(in crate::store) fn write(
        &mut self,
        name: &str,
        rows: &[MovedRow],
    ) -> Result<(), StoreError> {
        if name == "meta" {
            return self
                .held
                .database
                .write(|writing| write_meta(writing.session, rows));
        }
        let moved = TABLES.iter().find(|moved| moved.name == name);
        let moved = moved.ok_or_else(|| StoreError::Failed(format!("no table is for `{name}`")))?;
        if name == "feeds" {
            for row in rows {
                let record: FeedRecord = decode("a feed", &row.value)?;
                self.totals.insert(record.no, record.items.total);
            }
        }
        let totals = &self.totals;
        self.held.database.write(|writing| {
            writing.session.expect_long();
            writing.session.change(filled(moved, rows, totals)?);
            Ok(())
        })
    }

    /// Gives each feed a generation that begins now, in another store.
    pub(in crate::store) fn begin_generations(&self, now: Stamp) -> Result<(), StoreError> {
        self.held.database.write(|writing| {
            let session = writing.session;
            let begins = generations::begin_all(session, now)?;
            let mark = ContentMark {
                store: rand::random(),
                commits: 1,
                last_t: begins,
                generation: begins,
            };
            let sql = "UPDATE meta SET value = $1 WHERE name = 'content'";
            session.change(SqlStatement::new(sql).with(encode(&mark)?));
            Ok(())
        })
    }

    /// Lets go of it.
    pub(in crate::store) fn close(self) -> Result<(), StoreError> {
        let runtime = self.held.database.runtime.clone();
        runtime.block_on(self.held.close())
    }
}

fn read_all(
    session: &DatabaseSession,
    without: &[&str],
    sink: &mut dyn FnMut(&'static str, Vec<MovedRow>) -> Result<(), StoreError>,
) -> Result<(), StoreError> {
    sink("meta", read_meta(session)?)?;
    for moved in &TABLES {
        if without.contains(&moved.name) {
            continue;
        }
        let columns: Vec<&str> = moved.key.iter().map(|part| part.column()).collect();
        let columns = columns.join(", ");
        session.rows(SqlStatement::new(format!(
            "DECLARE moved NO SCROLL CURSOR FOR SELECT {columns}, {} FROM {} ORDER BY {columns}",
            moved.value, moved.table
        )))?;
        loop {
            let fetch = format!("FETCH {FETCHED_ROWS} FROM moved");
            let rows = session.rows(SqlStatement::new(fetch))?;
            let is_last = rows.len() < FETCHED_ROWS;
            let rows: Vec<MovedRow> = rows
                .iter()
                .map(|row| moved_row(moved, row))
                .collect::<Result<_, _>>()?;
            if !rows.is_empty() {
                sink(moved.name, rows)?;
            }
            if is_last {
                break;
            }
        }
        session.rows(SqlStatement::new("CLOSE moved"))?;
    }
    Ok(())
}

fn moved_row(moved: &MovedTable, row: &Row) -> Result<MovedRow, StoreError> {
    let mut key = Vec::new();
    for (at, part) in moved.key.iter().enumerate() {
        key.extend(part.of_row(row, at)?);
    }
    let value: &[u8] = column(row, moved.key.len())?;
    Ok(MovedRow {
        key,
        value: value.to_vec(),
    })
}

fn read_meta(session: &DatabaseSession) -> Result<Vec<MovedRow>, StoreError> {
    let mut rows = Vec::new();
    for row in session.rows(SqlStatement::new("SELECT name, number, value FROM meta"))? {
        let (name, number): (&str, u64) = (column(&row, 0)?, number_at(&row, 1)?);
        let value: Option<&[u8]> = column(&row, 2)?;
        if let Some((of_file, _)) = NUMBERS.iter().find(|(_, ours)| *ours == name) {
            // The number of a feed has another width.
            let value = match u32::try_from(number) {
                Ok(number) if *of_file == "last_feed" => encode(&number)?,
                _ => encode(&number)?,
            };
            let key = of_file.as_bytes().to_vec();
            rows.push(MovedRow { key, value });
        }
        if let Some(value) = value.filter(|_| VALUES.contains(&name)) {
            let (key, value) = (name.as_bytes().to_vec(), value.to_vec());
            rows.push(MovedRow { key, value });
        }
    }
    Ok(rows)
}

fn write_meta(session: &DatabaseSession, rows: &[MovedRow]) -> Result<(), StoreError> {
    for row in rows {
        let key = String::from_utf8_lossy(&row.key).into_owned();
        if let Some((_, ours)) = NUMBERS.iter().find(|(of_file, _)| *of_file == key) {
            let number: u64 = match *ours {
                "last_feed" => decode::<u32>("the last number given", &row.value)?.into(),
                _ => decode("the last number given", &row.value)?,
            };
            let sql = "UPDATE meta SET number = $2 WHERE name = $1";
            let written = SqlStatement::new(sql).with(*ours);
            session.change(written.with(number_column(number)));
        }
        if VALUES.contains(&&*key) {
            let sql = "UPDATE meta SET value = $2 WHERE name = $1";
            session.change(SqlStatement::new(sql).with(key).with(row.value.clone()));
        }
    }
    Ok(())
}

/// Columns beside the key and the value, which are taken from the values.
struct FurtherColumns {
    /// Their names and types.
    names: &'static [(&'static str, &'static str)],
    params: Vec<SqlParam>,
}

/// The statement that writes rows of a table.
fn filled(
    moved: &MovedTable,
    rows: &[MovedRow],
    totals: &HashMap<FeedNo, u64>,
) -> Result<SqlStatement, StoreError> {
    let mut columns: Vec<(&str, &str)> = Vec::new();
    let mut params = Vec::new();
    let mut rest: Vec<&[u8]> = rows.iter().map(|row| &row.key[..]).collect();
    for part in moved.key {
        let mut parts = Vec::with_capacity(rest.len());
        for key in &mut rest {
            let length = part.length(key.len());
            let split = key.split_at_checked(length);
            let (head, tail) = split.ok_or_else(|| damaged("a key is cut short"))?;
            parts.push(head);
            *key = tail;
        }
        columns.push((part.column(), part.kind()));
        params.push(part.param(&parts)?);
    }
    let further = further_columns(moved, rows, totals)?;
    columns.extend(further.names);
    params.extend(further.params);
    let has_value = !matches!(moved.name, "memberships" | "hosts");
    if has_value {
        columns.push((moved.value, "bytea"));
        let values: Vec<Vec<u8>> = rows.iter().map(|row| row.value.clone()).collect();
        params.push(SqlParam::from(values));
    }
    let names: Vec<&str> = columns.iter().map(|(name, _)| *name).collect();
    let names = names.join(", ");
    let selected: Vec<String> = columns
        .iter()
        .map(|(name, kind)| match *kind {
            "bigint[]" => format!("{name}::bigint[]"),
            _ => (*name).to_owned(),
        })
        .collect();
    let arrays: Vec<String> = (1..)
        .zip(&columns)
        .map(|(at, (_, kind))| match *kind {
            // A list of lists goes as texts.
            "bigint[]" => format!("${at}::text[]"),
            kind => format!("${at}::{kind}[]"),
        })
        .collect();
    let sql = format!(
        "INSERT INTO {} ({names}) SELECT {} FROM unnest({}) AS moved ({names})",
        moved.table,
        selected.join(", "),
        arrays.join(", ")
    );
    let statement = SqlStatement::new(sql);
    Ok(params.into_iter().fold(statement, SqlStatement::with))
}

fn further_columns(
    moved: &MovedTable,
    rows: &[MovedRow],
    totals: &HashMap<FeedNo, u64>,
) -> Result<FurtherColumns, StoreError> {
    let values = || rows.iter().map(|row| &row.value[..]);
    let none = FurtherColumns {
        names: &[],
        params: Vec::new(),
    };
    Ok(match moved.name {
        "feeds" => {
            let (mut names, mut revs, mut stamps, mut counts) = (vec![], vec![], vec![], vec![]);
            for value in values() {
                let record: FeedRecord = decode("a feed", value)?;
                let name = Some(record.name).filter(|_| record.part_of.is_none());
                names.push(name);
                revs.push(number_column(record.rev));
                stamps.push(record.last_t);
                counts.push(number_column(record.items.total));
            }
            FurtherColumns {
                names: &[
                    ("name", "text"),
                    ("rev", "bigint"),
                    ("last_t", "bigint"),
                    ("total", "bigint"),
                ],
                params: vec![names.into(), revs.into(), stamps.into(), counts.into()],
            }
        }
        "items" => {
            let (mut ids, mut created, mut listed, mut terms) = (vec![], vec![], vec![], vec![]);
            for row in rows {
                let (feed, t) = row
                    .key
                    .split_at_checked(4)
                    .ok_or_else(|| damaged("a key is cut short"))?;
                let (feed, t) = (FeedNo(short(feed)?), Stamp::from_micros(long(t)?));
                let item = decode_item(t, &row.value)?;
                ids.push(item_header(&row.value)?.id);
                created.push(item.created);
                listed.push(item.listed());
                let total = totals.get(&feed).copied().unwrap_or_default();
                terms.push(terms_column(feed, total, &item));
            }
            FurtherColumns {
                names: &[
                    ("id", "bytea"),
                    ("created", "bigint"),
                    ("listed", "bigint"),
                    ("terms", "bigint[]"),
                ],
                params: vec![ids.into(), created.into(), listed.into(), terms.into()],
            }
        }
        "subs" => {
            let (mut feeds, mut keys, mut leases) = (vec![], vec![], vec![]);
            for value in values() {
                let held: Subscription = decode("a subscription", value)?;
                feeds.push(held.feed());
                keys.push(super::subscriptions::address_key(
                    &held.topic,
                    held.target.address(),
                ));
                leases.push(super::subscriptions::lease_until(&held));
            }
            FurtherColumns {
                names: &[
                    ("feed", "integer"),
                    ("address_key", "bytea"),
                    ("lease_until", "bigint"),
                ],
                params: vec![feeds.into(), keys.into(), leases.into()],
            }
        }
        "positions" => {
            let mut readers = Vec::new();
            for value in values() {
                let progress: Progress = decode("the position of a subscription", value)?;
                readers.push(super::rows::limit(progress.readers()));
            }
            FurtherColumns {
                names: &[("readers", "bigint")],
                params: vec![readers.into()],
            }
        }
        "users" => {
            let mut names = Vec::new();
            for value in values() {
                names.push(decode::<User>("a user", value)?.kept.name.to_string());
            }
            FurtherColumns {
                names: &[("name", "text")],
                params: vec![names.into()],
            }
        }
        "tokens" => {
            let mut owners = Vec::new();
            for value in values() {
                let token: AccessToken = decode("a token", value)?;
                owners.push(number_column(token.kept.user.0));
            }
            FurtherColumns {
                names: &[("owner", "bigint")],
                params: vec![owners.into()],
            }
        }
        "hosts" => {
            let (mut since, mut until) = (Vec::new(), Vec::new());
            for value in values() {
                let pause = decode_pause(value)?;
                since.push(pause.since);
                until.push(pause.until);
            }
            FurtherColumns {
                names: &[("paused_since", "bigint"), ("paused_until", "bigint")],
                params: vec![since.into(), until.into()],
            }
        }
        _ => none,
    })
}
