//! The processes on a database as they tell of themselves, and what all of them have to agree on;
//! not which of them works.

use super::{
    database::Database,
    kept_connection::{KeptConnection, NOTING},
    node_seat::NodeSeat,
    statement::{SqlStatement, column, number_at},
};
use crate::{
    locks::lock,
    store::{NodeFace, NodeStatus, NodesStatus, StoreError},
};
use std::{collections::HashMap, time::Duration};
use tokio::time::sleep;
use tokio_postgres::Row;

/// Time between two signs of life.
pub(super) const SIGN_EVERY: Duration = Duration::from_secs(if cfg!(test) { 0 } else { 2 });

/// Time in which a living process gives one, as seen by the monotonic clock of another.
const SIGN_MAX: Duration = Duration::from_millis(if cfg!(test) { 1_500 } else { 5_000 });

/// Signs that this process gives in that time, for one that waits likewise.
const LOOKS: u32 = 3;

/// Gives a sign of life. It is written anew where the database has forgotten it.
pub(super) fn sign(seat: &NodeSeat, face: &NodeFace) -> SqlStatement {
    let sql = "INSERT INTO nodes (id, name, version, public_url, prefix, heard, works) \
               VALUES ($1, $2, $3, $4, $5, clock_timestamp(), $6 <> 0) \
               ON CONFLICT (id) DO UPDATE SET heard = clock_timestamp(), works = excluded.works, \
               name = excluded.name";
    SqlStatement::new(sql)
        .with(seat.id)
        .with(&*face.name)
        .with(env!("CARGO_PKG_VERSION"))
        .with(&*face.public_url)
        .with(&*face.prefix)
        .with(i32::from(seat.works()))
}

/// Takes the sign of this process out, and of those that are silent for a day.
pub(super) fn gone(seat: &NodeSeat) -> SqlStatement {
    let sql = "DELETE FROM nodes WHERE id = $1 OR heard < clock_timestamp() - interval '1 day'";
    SqlStatement::new(sql).with(seat.id)
}

/// Tells the others who this one is. One that is there and disagrees is given time for a sign of
/// life: no clock tells whether it lives.
pub(super) async fn introduce(
    database: &Database,
    seat: &NodeSeat,
    face: &NodeFace,
) -> Result<(), StoreError> {
    let mut connection = KeptConnection::new(database.connections.clone());
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
    if first[0].is_empty() {
        return Ok(());
    }
    let signs: HashMap<i32, String> = first[0].iter().map(sign_of).collect::<Result<_, _>>()?;
    for _ in 0..LOOKS {
        sleep(SIGN_MAX / LOOKS).await;
        connection.transact(NOTING, vec![sign(seat, face)]).await?;
    }
    let second = connection.transact(NOTING, vec![others()]).await?;
    for row in &second[0] {
        let (id, heard) = sign_of(row)?;
        if signs.get(&id) == Some(&heard) {
            continue;
        }
        connection.transact(NOTING, vec![gone(seat)]).await?;
        return Err(disagreement(face, row)?);
    }
    Ok(())
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
pub(super) async fn status(
    database: &Database,
    seat: &NodeSeat,
) -> Result<NodesStatus, StoreError> {
    let asked = vec![
        SqlStatement::new("SELECT number FROM meta WHERE name = 'epoch'"),
        SqlStatement::new(
            // One that died as it worked has nobody to say that it does no more.
            "SELECT id, name, version, \
             works AND heard = (SELECT max(heard) FROM nodes WHERE works), \
             greatest(extract(epoch FROM clock_timestamp() - heard), 0)::bigint \
             FROM nodes WHERE heard > clock_timestamp() - interval '1 minute' ORDER BY name, id",
        ),
    ];
    let answers = database.transact(NOTING, asked).await?;
    let epoch = answers[0]
        .first()
        .map(|row| number_at(row, 0))
        .transpose()?;
    let node = |row: &Row| {
        Ok::<_, StoreError>(NodeStatus {
            name: column(row, 1)?,
            version: column(row, 2)?,
            works: column(row, 3)?,
            is_this: column::<i32>(row, 0)? == seat.id,
            silent_secs: number_at(row, 4)?,
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
