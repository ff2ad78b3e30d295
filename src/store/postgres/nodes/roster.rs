//! The processes on a database as they tell of themselves, and what all of them have to agree on;
//! not which of them works.

use crate::store::postgres::{
    database::{Database, DatabaseWriting},
    node_lease::NodeLease,
    wire::{
        kept_connection::{KeptConnection, NOTING},
        session::DatabaseSession,
        statement::{SqlStatement, column, number_at},
    },
};
use crate::{
    feed::record::FeedNo,
    locks::lock,
    store::{NodeFace, NodeStatus, NodesStatus, StoreError, nodes::root_of},
};
use std::{collections::HashMap, time::Duration};
use tokio::time::sleep;
use tokio_postgres::Row;

/// Time between two signs of life.
pub(in crate::store::postgres) const SIGN_EVERY: Duration =
    Duration::from_secs(if cfg!(test) { 0 } else { 2 });

/// Time in which a living process gives one, as seen by the monotonic clock of another.
const SIGN_MAX: Duration = Duration::from_millis(if cfg!(test) { 1_500 } else { 5_000 });

/// Signs that this process gives in that time, for one that waits likewise.
const LOOKS: u32 = 3;

/// Gives a sign of life. It is written anew where the database has forgotten it.
pub(in crate::store::postgres) fn sign(seat: &NodeLease, face: &NodeFace) -> SqlStatement {
    let sql = "INSERT INTO nodes (id, name, version, public_url, prefix, heard, works, differences) \
               VALUES ($1, $2, $3, $4, $5, clock_timestamp(), $6 <> 0, nullif($7, '')) \
               ON CONFLICT (id) DO UPDATE SET heard = clock_timestamp(), works = excluded.works, \
               name = excluded.name, differences = excluded.differences";
    let differences = lock(&seat.differences).clone();
    // Strings and numbers are always written.
    let differences = differences.and_then(|it| serde_json::to_string(&it).ok());
    SqlStatement::new(sql)
        .with(seat.id)
        .with(&*face.name)
        .with(env!("CARGO_PKG_VERSION"))
        .with(&*face.public_url)
        .with(&*face.prefix)
        .with(i32::from(seat.works()))
        .with(&*differences.unwrap_or_default())
}

/// Takes the sign of this process out, and of those that are silent for a day.
pub(in crate::store::postgres) fn gone(seat: &NodeLease) -> SqlStatement {
    let sql = "DELETE FROM nodes WHERE id = $1 OR heard < clock_timestamp() - interval '1 day'";
    SqlStatement::new(sql).with(seat.id)
}

// Decides: May a node with this public URL serve the database?
/// Tells the others who this one is. One that is there and disagrees is given time for a sign of
/// life: no clock tells whether it lives. The root of the URLs that consumers see stays in the
/// database when all are gone, and only one that names it as a former one takes its place.
pub(in crate::store::postgres) async fn introduce(
    database: &Database,
    seat: &NodeLease,
    face: &NodeFace,
) -> Result<(), StoreError> {
    let mut connection = KeptConnection::new(database.connections.clone());
    let root = face.root();
    let held = root_held(&mut connection, &root).await?;
    face.check_root(&held)?;
    let others = || {
        let sql = "SELECT id, heard::text, name, public_url, prefix FROM nodes \
                   WHERE id <> $1 AND (public_url <> $2 OR prefix <> $3)";
        SqlStatement::new(sql)
            .with(seat.id)
            .with(&*face.public_url)
            .with(&*face.prefix)
    };
    // Of two that come at once and disagree, at least one sees the other.
    connection.transact(NOTING, vec![sign(seat, face)]).await?;
    let first = connection.transact(NOTING, vec![others()]).await?;
    let signs: HashMap<i32, String> = first[0].iter().map(sign_of).collect::<Result<_, _>>()?;
    if !signs.is_empty() {
        for _ in 0..LOOKS {
            sleep(SIGN_MAX / LOOKS).await;
            connection.transact(NOTING, vec![sign(seat, face)]).await?;
        }
        let second = connection.transact(NOTING, vec![others()]).await?;
        for row in &second[0] {
            let (id, heard) = sign_of(row)?;
            if signs.get(&id) == Some(&heard) || is_former(face, row)? {
                continue;
            }
            connection.transact(NOTING, vec![gone(seat)]).await?;
            return Err(disagreement(face, row)?);
        }
    }
    if held != root {
        take_root(&mut connection, &held, &root).await?;
        tracing::warn!(
            "The public_url of the nodes on this database was {held}, and is {root} from now on; it is a former one here"
        );
    }
    Ok(())
}

/// The root that the database holds; ours, where it held none.
async fn root_held(connection: &mut KeptConnection, root: &str) -> Result<String, StoreError> {
    let first =
        "UPDATE meta SET value = convert_to($1, 'UTF8') WHERE name = 'root' AND value IS NULL";
    let held = "SELECT convert_from(value, 'UTF8') FROM meta WHERE name = 'root'";
    let asked = vec![SqlStatement::new(first).with(root), SqlStatement::new(held)];
    let answers = connection.transact(NOTING, asked).await?;
    let row = answers[1].first();
    row.map_or_else(|| Ok(root.to_owned()), |row| column(row, 0))
}

/// Puts our root in the place of a former one.
async fn take_root(
    connection: &mut KeptConnection,
    former: &str,
    root: &str,
) -> Result<(), StoreError> {
    let sql = "UPDATE meta SET value = convert_to($1, 'UTF8') \
               WHERE name = 'root' AND value = convert_to($2, 'UTF8')";
    let taken = vec![SqlStatement::new(sql).with(root).with(former)];
    connection.transact(NOTING, taken).await.map(drop)
}

/// The feeds that the process that works does not serve; `None` where it is of a version that does not
/// tell them, or has not told them yet.
pub(in crate::store::postgres) fn withdrawn(
    session: &DatabaseSession,
) -> Result<Option<Vec<FeedNo>>, StoreError> {
    let sql = "SELECT value FROM meta WHERE name = 'withdrawn' AND value IS NOT NULL \
               AND number = (SELECT number FROM meta WHERE name = 'epoch')";
    let Some(row) = session.row(SqlStatement::new(sql))? else {
        return Ok(None);
    };
    let value: Vec<u8> = column(&row, 0)?;
    let numbers = value.chunks_exact(4);
    let numbers = numbers.map(|no| FeedNo(u32::from_be_bytes([no[0], no[1], no[2], no[3]])));
    Ok(Some(numbers.collect()))
}

/// Writes them, and has the others read the feeds again.
pub(in crate::store::postgres) fn put_withdrawn(
    writing: &DatabaseWriting<'_>,
    withdrawn: &[FeedNo],
) {
    let value: Vec<u8> = withdrawn.iter().flat_map(|no| no.0.to_be_bytes()).collect();
    let sql = "UPDATE meta SET value = $1, number = (SELECT number FROM meta WHERE name = 'epoch') \
               WHERE name = 'withdrawn'";
    writing.move_catalog();
    writing.session.change(SqlStatement::new(sql).with(value));
}

/// True for a node at a root that was ours before: nodes are changed one after the other.
fn is_former(face: &NodeFace, row: &Row) -> Result<bool, StoreError> {
    let (url, prefix): (String, String) = (column(row, 3)?, column(row, 4)?);
    Ok(face.was_at(&root_of(&url, &prefix)))
}

fn sign_of(row: &Row) -> Result<(i32, String), StoreError> {
    Ok((column(row, 0)?, column(row, 1)?))
}

fn disagreement(face: &NodeFace, row: &Row) -> Result<StoreError, StoreError> {
    let (name, url, prefix): (String, String, String) =
        (column(row, 2)?, column(row, 3)?, column(row, 4)?);
    let (what, theirs, ours) = if url == face.public_url {
        ("prefix", prefix, &face.prefix)
    } else {
        ("public_url", url, &face.public_url)
    };
    Ok(StoreError::Schema(format!(
        "node `{name}` on the same database has {what} \"{theirs}\", and this one \"{ours}\"; give all nodes the same"
    )))
}

/// Tells of all processes.
pub(in crate::store::postgres) async fn status(
    database: &Database,
    seat: &NodeLease,
) -> Result<NodesStatus, StoreError> {
    let asked = vec![
        SqlStatement::new("SELECT number FROM meta WHERE name = 'epoch'"),
        SqlStatement::new(
            // One that died as it worked has nobody to say that it does no more.
            "SELECT id, name, version, \
             works AND heard = (SELECT max(heard) FROM nodes WHERE works), \
             greatest(extract(epoch FROM clock_timestamp() - heard), 0)::bigint, differences \
             FROM nodes WHERE heard > clock_timestamp() - interval '1 minute' ORDER BY name, id",
        ),
    ];
    let answers = database.transact(NOTING, asked).await?;
    let epoch = answers[0]
        .first()
        .map(|row| number_at(row, 0))
        .transpose()?;
    let node = |row: &Row| {
        let differences: Option<String> = column(row, 5)?;
        Ok::<_, StoreError>(NodeStatus {
            name: column(row, 1)?,
            version: column(row, 2)?,
            works: column(row, 3)?,
            is_this: column::<i32>(row, 0)? == seat.id,
            silent_secs: number_at(row, 4)?,
            // Of a newer version, whose text this one cannot read, nothing is known.
            differences: differences.and_then(|it| serde_json::from_str(&it).ok()),
        })
    };
    let (connections, connections_max) = database.connections_used();
    Ok(NodesStatus {
        epoch: epoch.unwrap_or_default(),
        nodes: answers[1].iter().map(node).collect::<Result<_, _>>()?,
        wake_lag_ms: lock(&seat.wake_lag_ms).filter(|_| !seat.works()),
        connections,
        connections_max,
    })
}
