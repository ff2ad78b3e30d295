//! A connection that was upgraded, such as a WebSocket: bytes both ways until one side ends, or
//! both are silent for too long.

use super::site_permits::PermitProgress;
use crate::locks::lock;
use hyper::upgrade::{OnUpgrade, Upgraded};
use hyper_util::rt::TokioIo;
use std::{io, time::Duration};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _, ReadHalf, WriteHalf},
    time::{Instant, timeout_at},
};
use tokio_util::sync::CancellationToken;

/// Bytes that are read at once in either direction.
const BUFFER_BYTES: usize = 16 << 10;
/// Time that the two sides take at most to change protocols.
const CHANGE_WAIT: Duration = Duration::from_secs(10);

/// Carries bytes between a reader and an origin once both have changed protocols, until both have
/// ended, `stop`, or nothing was sent either way for `idle_max`. Its bytes are progress of its
/// place.
pub(super) async fn carry(
    reader: OnUpgrade,
    origin: OnUpgrade,
    idle_max: Duration,
    place: &PermitProgress,
    stop: CancellationToken,
) {
    let both = async { tokio::try_join!(reader, origin) };
    let (reader, origin) = match tokio::time::timeout(CHANGE_WAIT, both).await {
        Ok(Ok(both)) => both,
        Ok(Err(error)) => return tracing::debug!("An upgrade failed: {error}"),
        Err(_) => {
            return tracing::debug!("An upgrade took longer than {} s", CHANGE_WAIT.as_secs());
        }
    };
    tokio::select! {
        ended = copy(reader, origin, idle_max, place) => {
            if let Err(error) = ended {
                tracing::debug!("An upgraded connection ended: {error}");
            }
        }
        () = stop.cancelled() => {}
    }
}

async fn copy(
    reader: Upgraded,
    origin: Upgraded,
    idle_max: Duration,
    place: &PermitProgress,
) -> io::Result<()> {
    let (from_reader, to_reader) = tokio::io::split(TokioIo::new(reader));
    let (from_origin, to_origin) = tokio::io::split(TokioIo::new(origin));
    let moves = Moves {
        last: std::sync::Mutex::new(Instant::now()),
        place,
    };
    tokio::try_join!(
        one_way(from_reader, to_origin, idle_max, &moves),
        one_way(from_origin, to_reader, idle_max, &moves)
    )
    .map(|_| ())
}

type Side = TokioIo<Upgraded>;

/// The bytes of both directions.
struct Moves<'p> {
    /// The moment of the last ones.
    last: std::sync::Mutex<Instant>,
    place: &'p PermitProgress,
}

impl Moves<'_> {
    fn last(&self) -> Instant {
        *lock(&self.last)
    }

    fn count(&self, bytes: usize) {
        *lock(&self.last) = Instant::now();
        self.place.moved(bytes);
    }
}

/// Carries bytes one way.
async fn one_way(
    mut from: ReadHalf<Side>,
    mut to: WriteHalf<Side>,
    idle_max: Duration,
    moves: &Moves<'_>,
) -> io::Result<()> {
    let mut buffer = vec![0; BUFFER_BYTES];
    loop {
        let Ok(read) = timeout_at(moves.last() + idle_max, from.read(&mut buffer)).await else {
            if moves.last().elapsed() >= idle_max {
                return Err(io::Error::new(
                    io::ErrorKind::TimedOut,
                    "nothing was sent for too long",
                ));
            }
            // The other direction has moved.
            continue;
        };
        let count = read?;
        if count == 0 {
            // The other direction may go on.
            return to.shutdown().await;
        }
        moves.count(count);
        let written = tokio::time::timeout(idle_max, to.write_all(&buffer[..count])).await;
        written.map_err(|_| {
            io::Error::new(io::ErrorKind::TimedOut, "nothing was read for too long")
        })??;
        to.flush().await?;
    }
}
