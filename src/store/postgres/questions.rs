//! Questions of processes that follow to the one that works, as rows: who asks writes one and waits,
//! who works takes each at most once. Not what is asked.

use super::{
    database::Database,
    fault::statement_error,
    kept_connection::{KeptConnection, NOTING, transact},
    node_seat::{NodeSeat, WakeUp},
    statement::{SqlStatement, column},
};
use crate::{
    locks::lock,
    store::{Question, StoreError},
};
use bytes::Bytes;
use std::{
    collections::HashMap,
    sync::{Arc, Mutex},
    time::Duration,
};
use tokio::{
    sync::{Notify, Semaphore, mpsc, oneshot},
    time::{Instant, sleep, timeout, timeout_at},
};
use tokio_postgres::Row;

/// Bytes of a question or of an answer.
const WORDS_BYTES_MAX: usize = 16 << 20;

/// Questions of a process under way.
const QUESTIONS_MAX: usize = 64;

/// Questions that are taken at once.
const TAKEN_AT_ONCE: usize = 16;

/// Time for which a question whose asker died stays in the database.
const OLD_AFTER: Duration = Duration::from_secs(180);

/// Pause before the first look for an answer; each further one is longer, up to the last.
const FIRST_LOOK: Duration = Duration::from_millis(200);
const LOOK_EVERY_MAX: Duration = Duration::from_secs(1);

/// The questions of this process, and those that it takes.
pub(super) struct QuestionDesk {
    places: Arc<Semaphore>,
    waiting: Mutex<HashMap<i64, Arc<Notify>>>,
    /// The last question that was there at a time, to tell old ones without a clock of the
    /// database.
    seen: Mutex<Option<(Instant, i64)>>,
}

impl QuestionDesk {
    pub(super) fn new() -> Self {
        Self {
            places: Arc::new(Semaphore::new(QUESTIONS_MAX)),
            waiting: Mutex::default(),
            seen: Mutex::default(),
        }
    }

    /// Asks whoever works.
    pub(super) async fn ask(
        &self,
        database: &Database,
        seat: &NodeSeat,
        words: Bytes,
        within: Duration,
    ) -> Result<Bytes, StoreError> {
        if words.len() > WORDS_BYTES_MAX {
            return Err(StoreError::Failed(format!(
                "a question to the node that works has more than {WORDS_BYTES_MAX} bytes"
            )));
        }
        let place = self.places.try_acquire();
        let _place = place.map_err(|_| {
            StoreError::Away(format!(
                "{QUESTIONS_MAX} questions wait for the node that works"
            ))
        })?;
        let until = Instant::now() + within;
        let silent = || StoreError::Away("the node that works did not answer in time".into());
        let asked = timeout_at(until, put(database, words)).await;
        let no = asked.unwrap_or_else(|_| Err(silent()))?;
        let rung = Arc::new(Notify::new());
        lock(&self.waiting).insert(no, Arc::clone(&rung));
        seat.tell(&WakeUp::Asked);
        let answered = timeout_at(until, wait(database, no, &rung)).await;
        lock(&self.waiting).remove(&no);
        // Taken back, it is not done later.
        let removed = SqlStatement::new("DELETE FROM questions WHERE no = $1").with(no);
        let removed = once(database, removed).await;
        if let Err(error) = removed {
            tracing::debug!("A question is left in the database for some minutes: {error}");
        }
        answered.unwrap_or_else(|_| Err(silent()))
    }

    /// An answer is there.
    pub(super) fn ring(&self, no: i64) {
        if let Some(rung) = lock(&self.waiting).get(&no) {
            rung.notify_one();
        }
    }

    /// Takes the questions that wait, and passes them on. They are answered later.
    pub(super) async fn take(
        &self,
        database: &Arc<Database>,
        connection: &mut KeptConnection,
        questions: &mpsc::Sender<Question>,
    ) -> Result<(), StoreError> {
        loop {
            let room = questions.capacity().min(TAKEN_AT_ONCE);
            if room == 0 {
                return Ok(());
            }
            let waiting = format!(
                "SELECT no FROM questions WHERE taken IS NULL \
                 ORDER BY no LIMIT {room} FOR UPDATE SKIP LOCKED"
            );
            let sql = format!(
                "UPDATE questions SET taken = $1 WHERE no IN ({waiting}) \
                 AND (SELECT number FROM meta WHERE name = 'epoch') = $1 RETURNING no, words"
            );
            let taken = SqlStatement::new(sql).with(database.epoch());
            let mut answers = connection.transact(NOTING, vec![taken]).await?;
            let rows = answers.pop().unwrap_or_default();
            for row in &rows {
                pass_on(database, questions, row)?;
            }
            if rows.len() < room {
                return Ok(());
            }
        }
    }

    /// Removes questions that nobody can wait for any more.
    pub(super) async fn remove_old(
        &self,
        connection: &mut KeptConnection,
    ) -> Result<(), StoreError> {
        let seen = *lock(&self.seen);
        if seen.is_some_and(|(at, _)| at.elapsed() < OLD_AFTER) {
            return Ok(());
        }
        let last = seen.map_or(0, |(_, no)| no);
        let asked = vec![
            SqlStatement::new("DELETE FROM questions WHERE no <= $1").with(last),
            SqlStatement::new("SELECT coalesce(max(no), 0) FROM questions"),
        ];
        let answers = connection.transact(NOTING, asked).await?;
        let last = answers[1].first().map(|row| column(row, 0)).transpose()?;
        *lock(&self.seen) = Some((Instant::now(), last.unwrap_or_default()));
        Ok(())
    }
}

/// Has this process answer a question of its own.
pub(super) async fn ask_here(
    questions: &mpsc::Sender<Question>,
    words: Bytes,
    within: Duration,
) -> Result<Bytes, StoreError> {
    let (answer, answered) = oneshot::channel();
    let asked = timeout(within, async {
        questions.send(Question { words, answer }).await.ok()?;
        answered.await.ok()
    });
    let none = || StoreError::Away("this node gave no answer to a question".into());
    asked.await.ok().flatten().ok_or_else(none)
}

/// One statement on a connection of the pool.
async fn once(database: &Database, statement: SqlStatement) -> Result<Vec<Row>, StoreError> {
    let _place = database.place().await?;
    let connection = database.connections.take().await?;
    let answers = transact(&connection, NOTING, &[statement]).await;
    let mut answers = answers.map_err(|error| statement_error(&error))?;
    connection.give_back();
    Ok(answers.pop().unwrap_or_default())
}

async fn put(database: &Database, words: Bytes) -> Result<i64, StoreError> {
    let sql = "INSERT INTO questions (words) VALUES ($1) RETURNING no";
    let rows = once(database, SqlStatement::new(sql).with(words.to_vec())).await?;
    let row = rows.first();
    column(
        row.ok_or_else(|| StoreError::Failed("a question got no number".into()))?,
        0,
    )
}

/// The answer, when it is there.
async fn wait(database: &Database, no: i64, rung: &Notify) -> Result<Bytes, StoreError> {
    let mut pause = FIRST_LOOK;
    loop {
        tokio::select! {
            () = rung.notified() => {}
            () = sleep(pause) => pause = (pause * 2).min(LOOK_EVERY_MAX),
        }
        let sql = "SELECT answer FROM questions WHERE no = $1 AND is_over";
        let rows = once(database, SqlStatement::new(sql).with(no)).await?;
        let Some(row) = rows.first() else { continue };
        let answer: Option<Vec<u8>> = column(row, 0)?;
        return answer.map(Bytes::from).ok_or_else(|| {
            StoreError::Away("the node that works gave no answer to a question".into())
        });
    }
}

/// Passes a question on, and sees to it that its answer comes back.
fn pass_on(
    database: &Arc<Database>,
    questions: &mpsc::Sender<Question>,
    row: &Row,
) -> Result<(), StoreError> {
    let no: i64 = column(row, 0)?;
    let words: Vec<u8> = column(row, 1)?;
    let (answer, answered) = oneshot::channel();
    let question = Question {
        words: words.into(),
        answer,
    };
    // Dropped where nobody takes any, it is over without an answer.
    let _ = questions.try_send(question);
    let database = Arc::clone(database);
    tokio::spawn(async move {
        let answer = answered.await.ok();
        let answer = answer.filter(|answer| answer.len() <= WORDS_BYTES_MAX);
        let sql = match &answer {
            Some(_) => "UPDATE questions SET is_over = true, answer = $2 WHERE no = $1",
            None => "UPDATE questions SET is_over = true WHERE no = $1",
        };
        let mut written = SqlStatement::new(sql).with(no);
        if let Some(answer) = answer {
            written = written.with(answer.to_vec());
        }
        match once(&database, written).await {
            Ok(_) => {
                if let Some(seat) = &database.seat {
                    seat.tell(&WakeUp::Answered(no));
                }
            }
            Err(error) => tracing::warn!("An answer does not come to who asked: {error}"),
        }
    });
    Ok(())
}
