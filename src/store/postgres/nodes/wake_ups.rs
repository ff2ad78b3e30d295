//! Notifications between the processes on a database: they are sent after the commit, on a
//! connection of their own, since one inside a commit would have all commits wait for each other.
//! Not what follows from one.

use crate::store::StoreError;
use crate::store::postgres::{
    database::Database,
    node_lease::{NodeLease, WakeUp},
    wire::{
        connections::Connections,
        fault::statement_error,
        kept_connection::{KeptConnection, LOOK_MAX, NOTING},
        statement::{SqlStatement, column},
    },
};
use std::{sync::Arc, time::Duration};
use tokio::{
    sync::mpsc,
    time::{sleep, timeout},
};
use tokio_postgres::Client;

/// The channel of the store, as an expression; the stores of one database have schemas of their own.
const CHANNEL: &str = "'everfeed ' || hashtext(current_schema()::text)";

/// Time between two notifications. Moves of that time go out together.
const GATHER: Duration = Duration::from_millis(3);

/// Notifications that wait at most. Those behind them are lost, and sweeps find what they told.
const WAITING_MAX: usize = 256;

// Limit: a node alone on its database sends them, too; nobody hears them.
/// Sends what the others are to be told until the store is gone.
pub(in crate::store::postgres) async fn tell(database: Arc<Database>, seat: Arc<NodeLease>) {
    let mut connection = KeptConnection::new(Arc::clone(&database.connections));
    loop {
        seat.telling.notified().await;
        let told = seat.take_told();
        if told.is_empty() {
            continue;
        }
        let sent = connection.transact(NOTING, notifications(told));
        if let Err(error) = sent.await {
            tracing::debug!("The other nodes are not told, and find it themselves: {error}");
        }
        sleep(GATHER).await;
    }
}

/// The statements that send these texts.
pub(in crate::store::postgres) fn notifications(told: Vec<String>) -> Vec<SqlStatement> {
    let sent =
        |text: String| SqlStatement::new(format!("SELECT pg_notify({CHANNEL}, $1)")).with(text);
    told.into_iter().map(sent).collect()
}

/// The ear of a process: it hears what the others tell.
pub(in crate::store::postgres) struct NodeListener {
    heard: mpsc::Receiver<String>,
    to_hear: mpsc::Sender<String>,
    listening: Option<Client>,
}

impl NodeListener {
    /// One that hears nothing yet.
    pub(in crate::store::postgres) fn new() -> Self {
        let (to_hear, heard) = mpsc::channel(WAITING_MAX);
        Self {
            heard,
            to_hear,
            listening: None,
        }
    }

    /// Listens, if it does not. What was told before was not heard.
    pub(in crate::store::postgres) async fn listen(
        &mut self,
        connections: &Connections,
    ) -> Result<(), StoreError> {
        if self.is_listening().await {
            return Ok(());
        }
        let client = connections.listen(self.to_hear.clone()).await?;
        let begun = timeout(LOOK_MAX, async {
            let failed = |error: tokio_postgres::Error| statement_error(&error);
            let asked = format!("SELECT {CHANNEL}");
            let answer = client.query_typed_one(&asked, &[]).await;
            let channel: String = column(&answer.map_err(failed)?, 0)?;
            let listen = format!("LISTEN \"{channel}\"");
            client.batch_execute(&listen).await.map_err(failed)?;
            Ok(client)
        });
        let silent = || StoreError::Away("the database does not answer".into());
        let client = begun.await.unwrap_or_else(|_| Err(silent()))?;
        self.listening = Some(client);
        Ok(())
    }

    /// A connection that leads nowhere any more tells nothing, so it is asked.
    async fn is_listening(&mut self) -> bool {
        let Some(client) = &self.listening else {
            return false;
        };
        let answered = timeout(LOOK_MAX, client.simple_query("")).await;
        let is_sound = matches!(answered, Ok(Ok(_)));
        if !is_sound {
            self.listening = None;
        }
        is_sound
    }

    /// The next notifications: at least one, and all that are there.
    pub(in crate::store::postgres) async fn hear(&mut self) -> Vec<WakeUp> {
        let mut heard = Vec::new();
        if let Some(text) = self.heard.recv().await {
            heard.push(WakeUp::of_text(&text));
        }
        while let Ok(text) = self.heard.try_recv() {
            heard.push(WakeUp::of_text(&text));
        }
        heard
    }
}
