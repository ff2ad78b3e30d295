//! Connections to the database: made when they are needed, kept when they are free, thrown away
//! when they broke. Not what is done with them.

use super::{
    address::{CONNECT_TIME_MAX, DatabaseAddress},
    fault::{connection_words, statement_error},
    prepared::PreparedStatements,
};
use crate::{locks::lock, store::StoreError};
use std::{
    future::poll_fn,
    ops::{Deref, DerefMut},
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    sync::mpsc,
    time::timeout,
};
use tokio_postgres::{AsyncMessage, Client, Connection, NoTls, Socket, config::LoadBalanceHosts};

/// Settings of a connection whose statements are planned once. The plan outlives the time in which a
/// table is small, so none may read a whole table for a few of its keys.
const PLANNED_ONCE: &str = "SET enable_seqscan = off; SET enable_hashjoin = off; \
     SET enable_mergejoin = off; SET plan_cache_mode = force_generic_plan";

/// Connections at a time. A server of PostgreSQL gives a hundred unless it is told otherwise.
pub(in crate::store::postgres) const CONNECTIONS_MAX: usize = 16;

/// Time in which a host that took a connection begins to serve it.
const GREETING_MAX: Duration = Duration::from_secs(2);

/// The connections to a database.
pub(in crate::store::postgres) struct Connections {
    address: DatabaseAddress,
    free: Mutex<Vec<PooledConnection>>,
    /// Time for making a connection, with all hosts.
    pub(in crate::store::postgres) connect_max: Duration,
    /// True when the next connection begins with any host: the first of them was silent.
    is_any_first: AtomicBool,
}

impl Connections {
    /// None yet.
    pub(in crate::store::postgres) fn new(address: DatabaseAddress) -> Self {
        let hosts = u32::try_from(address.config.get_hosts().len()).unwrap_or(1);
        Self {
            connect_max: CONNECT_TIME_MAX * hosts + GREETING_MAX,
            address,
            free: Mutex::default(),
            is_any_first: AtomicBool::new(false),
        }
    }

    /// A connection that is free, or a new one. It is not known whether a free one still leads
    /// anywhere.
    pub(in crate::store::postgres) async fn take(
        self: &Arc<Self>,
    ) -> Result<TakenConnection, StoreError> {
        loop {
            let Some(pooled) = lock(&self.free).pop() else {
                return self.take_new().await;
            };
            if !pooled.client.is_closed() {
                return Ok(self.taken(pooled));
            }
        }
    }

    /// A new connection.
    pub(in crate::store::postgres) async fn take_new(
        self: &Arc<Self>,
    ) -> Result<TakenConnection, StoreError> {
        let client = self.connect().await?;
        let room = self.address.statement_cache_size;
        if room > 0 {
            client
                .batch_execute(PLANNED_ONCE)
                .await
                .map_err(|error| statement_error(&error))?;
        }
        let prepared = PreparedStatements::new(room);
        Ok(self.taken(PooledConnection { client, prepared }))
    }

    /// A connection of its own, which is not kept when it is free.
    pub(in crate::store::postgres) async fn connect(&self) -> Result<Client, StoreError> {
        self.within(self.made(None)).await
    }

    /// The same, on which notifications come. What their end does not take is lost.
    pub(in crate::store::postgres) async fn listen(
        &self,
        heard: mpsc::Sender<String>,
    ) -> Result<Client, StoreError> {
        self.within(self.made(Some(heard))).await
    }

    /// Gives up a host that takes the connection and then says nothing. The next try begins with any
    /// of several.
    async fn within(
        &self,
        making: impl Future<Output = Result<Client, StoreError>>,
    ) -> Result<Client, StoreError> {
        let made = timeout(self.connect_max, making).await;
        self.is_any_first.store(made.is_err(), Ordering::Relaxed);
        made.unwrap_or_else(|_| Err(StoreError::Away("PostgreSQL does not answer".into())))
    }

    async fn made(&self, heard: Option<mpsc::Sender<String>>) -> Result<Client, StoreError> {
        let DatabaseAddress { config, tls, .. } = &self.address;
        let mut config = config.clone();
        if self.is_any_first.load(Ordering::Relaxed) {
            config.load_balance_hosts(LoadBalanceHosts::Random);
        }
        let connected = match tls {
            Some(tls) => {
                let connecting = config.connect(tls.clone()).await;
                connecting.map(|(client, connection)| {
                    tokio::spawn(drive(connection, heard));
                    client
                })
            }
            None => {
                let connecting = config.connect(NoTls).await;
                connecting.map(|(client, connection)| {
                    tokio::spawn(drive(connection, heard));
                    client
                })
            }
        };
        connected.map_err(|error| StoreError::Away(connection_words(&error)))
    }

    /// Closes those that are free.
    pub(in crate::store::postgres) fn close_free(&self) {
        lock(&self.free).clear();
    }

    fn taken(self: &Arc<Self>, pooled: PooledConnection) -> TakenConnection {
        TakenConnection {
            pooled: Some(pooled),
            connections: Arc::clone(self),
        }
    }
}

/// Drives a connection until it ends, and passes on what is told on it.
async fn drive<S>(mut connection: Connection<Socket, S>, heard: Option<mpsc::Sender<String>>)
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    while let Some(Ok(message)) = poll_fn(|context| connection.poll_message(context)).await {
        if let (AsyncMessage::Notification(told), Some(heard)) = (message, &heard) {
            // Whoever has so many to read looks for itself.
            let _ = heard.try_send(told.payload().to_owned());
        }
    }
}

/// A connection that is kept when it is free.
pub(in crate::store::postgres) struct PooledConnection {
    pub(in crate::store::postgres) client: Client,
    pub(in crate::store::postgres) prepared: PreparedStatements,
}

/// A connection in use. Dropped, it is closed: the server ends whatever was begun on it.
pub(in crate::store::postgres) struct TakenConnection {
    pooled: Option<PooledConnection>,
    connections: Arc<Connections>,
}

impl TakenConnection {
    /// Gives it back; no transaction is open on it.
    pub(in crate::store::postgres) fn give_back(mut self) {
        let Some(pooled) = self.pooled.take() else {
            return;
        };
        if !pooled.client.is_closed() {
            lock(&self.connections.free).push(pooled);
        }
    }
}

impl Deref for TakenConnection {
    type Target = PooledConnection;

    fn deref(&self) -> &PooledConnection {
        self.pooled.as_ref().expect(KEPT)
    }
}

impl DerefMut for TakenConnection {
    fn deref_mut(&mut self) -> &mut PooledConnection {
        self.pooled.as_mut().expect(KEPT)
    }
}

const KEPT: &str = "it is there until it is given back";
