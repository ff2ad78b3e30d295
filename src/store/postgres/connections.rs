//! Connections to the database: made when they are needed, kept when they are free, thrown away
//! when they broke. Not what is done with them.

use super::{address::DatabaseAddress, fault::connection_words};
use crate::{locks::lock, store::StoreError};
use std::{
    future::poll_fn,
    ops::Deref,
    sync::{Arc, Mutex},
};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    sync::mpsc,
};
use tokio_postgres::{AsyncMessage, Client, Connection, NoTls, Socket};

/// Connections at a time. A server of PostgreSQL gives a hundred unless it is told otherwise.
pub(super) const CONNECTIONS_MAX: usize = 16;

/// The connections to a database.
pub(super) struct Connections {
    address: DatabaseAddress,
    free: Mutex<Vec<Client>>,
}

impl Connections {
    /// None yet.
    pub(super) fn new(address: DatabaseAddress) -> Self {
        Self {
            address,
            free: Mutex::default(),
        }
    }

    /// A connection that is free, or a new one. It is not known whether a free one still leads
    /// anywhere.
    pub(super) async fn take(self: &Arc<Self>) -> Result<TakenConnection, StoreError> {
        loop {
            let Some(client) = lock(&self.free).pop() else {
                return self.take_new().await;
            };
            if !client.is_closed() {
                return Ok(self.taken(client));
            }
        }
    }

    /// A new connection.
    pub(super) async fn take_new(self: &Arc<Self>) -> Result<TakenConnection, StoreError> {
        Ok(self.taken(self.connect().await?))
    }

    /// A connection of its own, which is not kept when it is free.
    pub(super) async fn connect(&self) -> Result<Client, StoreError> {
        let DatabaseAddress { config, tls } = &self.address;
        let connected = match tls {
            Some(tls) => {
                let connecting = config.connect(tls.clone()).await;
                connecting.map(|(client, connection)| {
                    tokio::spawn(connection);
                    client
                })
            }
            None => {
                let connecting = config.connect(NoTls).await;
                connecting.map(|(client, connection)| {
                    tokio::spawn(connection);
                    client
                })
            }
        };
        connected.map_err(|error| StoreError::Away(connection_words(&error)))
    }

    /// A connection that notifications come on. What it does not take is lost.
    pub(super) async fn listen(&self, heard: mpsc::Sender<String>) -> Result<Client, StoreError> {
        let DatabaseAddress { config, tls } = &self.address;
        let connected = match tls {
            Some(tls) => {
                let connecting = config.connect(tls.clone()).await;
                connecting.map(|(client, connection)| {
                    tokio::spawn(hear(connection, heard));
                    client
                })
            }
            None => {
                let connecting = config.connect(NoTls).await;
                connecting.map(|(client, connection)| {
                    tokio::spawn(hear(connection, heard));
                    client
                })
            }
        };
        connected.map_err(|error| StoreError::Away(connection_words(&error)))
    }

    /// Closes those that are free.
    pub(super) fn close_free(&self) {
        lock(&self.free).clear();
    }

    fn taken(self: &Arc<Self>, client: Client) -> TakenConnection {
        TakenConnection {
            client: Some(client),
            connections: Arc::clone(self),
        }
    }
}

/// Passes on the notifications of a connection until it ends.
async fn hear<S>(mut connection: Connection<Socket, S>, heard: mpsc::Sender<String>)
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    while let Some(Ok(message)) = poll_fn(|context| connection.poll_message(context)).await {
        if let AsyncMessage::Notification(told) = message {
            // Whoever has so many to read looks for itself.
            let _ = heard.try_send(told.payload().to_owned());
        }
    }
}

/// A connection in use. Dropped, it is closed: the server ends whatever was begun on it.
pub(super) struct TakenConnection {
    client: Option<Client>,
    connections: Arc<Connections>,
}

impl TakenConnection {
    /// Gives it back; no transaction is open on it.
    pub(super) fn give_back(mut self) {
        if let Some(client) = self.client.take().filter(|client| !client.is_closed()) {
            lock(&self.connections.free).push(client);
        }
    }
}

impl Deref for TakenConnection {
    type Target = Client;

    fn deref(&self) -> &Client {
        self.client
            .as_ref()
            .expect("it is there until it is given back")
    }
}
