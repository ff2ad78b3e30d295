//! Questions of processes that follow to the one that works, as rows: who asks writes one and waits,
//! who works takes each at most once. Not what is asked.

use crate::store::postgres::{
    database::Database,
    node_lease::{NodeLease, WakeUp},
    wire::{
        kept_connection::{KeptConnection, NOTING},
        statement::{SqlStatement, column},
    },
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

/// Times that an answer is written, where the database does not take it.
const ANSWER_TRIES: u32 = 5;

/// Looks at a question of a node that works no more, in which its answer still comes.
const REPLACED_LOOKS: u32 = 3;

/// Pause before the first look for an answer; each further one is longer, up to the last.
const FIRST_LOOK: Duration = Duration::from_millis(200);
const LOOK_EVERY_MAX: Duration = Duration::from_secs(1);

/// The words for an answer that does not come.
const SILENT: &str = "the node that works did not answer in time";

/// The questions of this process, and those that it takes.
pub(in crate::store::postgres) struct QuestionQueue {
    places: Arc<Semaphore>,
    waiting: Mutex<HashMap<i64, Arc<Notify>>>,
    /// The last question that was there at a time, to tell old ones without a clock of the
    /// database.
    seen: Mutex<Option<(Instant, i64)>>,
}

impl QuestionQueue {
    pub(in crate::store::postgres) fn new() -> Self {
        Self {
            places: Arc::new(Semaphore::new(QUESTIONS_MAX)),
            waiting: Mutex::default(),
            seen: Mutex::default(),
        }
    }

    /// Asks whoever works.
    pub(in crate::store::postgres) async fn ask(
        &self,
        database: &Database,
        seat: &NodeLease,
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
        let asked = timeout_at(until, put(database, words)).await;
        let no = asked.unwrap_or_else(|_| Err(StoreError::OutcomeUnknown(SILENT.into())))?;
        let rung = Arc::new(Notify::new());
        lock(&self.waiting).insert(no, Arc::clone(&rung));
        seat.tell(&WakeUp::Asked);
        let answered = timeout_at(until, wait(database, no, &rung)).await;
        lock(&self.waiting).remove(&no);
        // Taken back, it is not done later.
        let was_taken = take_back(database, no).await;
        let late = |_| Err(StoreError::OutcomeUnknown(SILENT.into()));
        match answered.unwrap_or_else(late) {
            Err(StoreError::OutcomeUnknown(why)) if !was_taken => Err(StoreError::Away(why)),
            answered => answered,
        }
    }

    /// An answer is there.
    pub(in crate::store::postgres) fn ring(&self, no: i64) {
        if let Some(rung) = lock(&self.waiting).get(&no) {
            rung.notify_one();
        }
    }

    /// Takes the questions that wait, and passes them on. They are answered later.
    pub(in crate::store::postgres) async fn take(
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

    /// Removes the questions that wait, where none can be taken: the disk of the database is full, and
    /// to remove them takes no room.
    pub(in crate::store::postgres) async fn refuse(
        &self,
        database: &Database,
        connection: &mut KeptConnection,
    ) -> Result<(), StoreError> {
        let sql = "DELETE FROM questions WHERE taken IS NULL RETURNING no";
        let answers = connection
            .transact(NOTING, vec![SqlStatement::new(sql)])
            .await?;
        for row in answers.iter().flatten() {
            ring_asker(database, column(row, 0)?);
        }
        Ok(())
    }

    /// Removes questions that nobody can wait for any more.
    pub(in crate::store::postgres) async fn remove_old(
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
pub(in crate::store::postgres) async fn ask_here(
    questions: &mpsc::Sender<Question>,
    words: Bytes,
    within: Duration,
) -> Result<Bytes, StoreError> {
    let (answer, answered) = oneshot::channel();
    let asked = timeout(within, async {
        questions.send(Question { words, answer }).await.ok()?;
        answered.await.ok()
    });
    let none = "this node gave no answer to a question".to_owned();
    match asked.await {
        Ok(answered) => answered.ok_or(StoreError::Away(none)),
        Err(_) => Err(StoreError::OutcomeUnknown(none)),
    }
}

/// Removes a question. True where it may have been taken: nothing tells what has become of it.
async fn take_back(database: &Database, no: i64) -> bool {
    let sql = "DELETE FROM questions WHERE no = $1 RETURNING taken IS NOT NULL";
    match once(database, SqlStatement::new(sql).with(no)).await {
        Ok(rows) => rows
            .first()
            .is_none_or(|row| column(row, 0).unwrap_or(true)),
        Err(error) => {
            tracing::debug!("A question is left in the database for some minutes: {error}");
            true
        }
    }
}

/// One statement.
async fn once(database: &Database, statement: SqlStatement) -> Result<Vec<Row>, StoreError> {
    let mut answers = database.transact(NOTING, vec![statement]).await?;
    Ok(answers.pop().unwrap_or_default())
}

/// Writes a question. One whose connection breaks meanwhile may be there, and be done.
async fn put(database: &Database, words: Bytes) -> Result<i64, StoreError> {
    let sql = "INSERT INTO questions (words) VALUES ($1) RETURNING no";
    let written = vec![SqlStatement::new(sql).with(words.to_vec())];
    let connection = database.connected().await?;
    let answers = connection.transact(NOTING, written).await?;
    let row = answers.first().and_then(|rows| rows.first());
    column(
        row.ok_or_else(|| StoreError::Failed("a question got no number".into()))?,
        0,
    )
}

/// The answer, when it is there. `OutcomeUnknown` where none will come: the one that took the question
/// works no more, or the question is lost.
async fn wait(database: &Database, no: i64, rung: &Notify) -> Result<Bytes, StoreError> {
    let (mut pause, mut replaced_looks) = (FIRST_LOOK, 0);
    loop {
        tokio::select! {
            () = rung.notified() => {}
            () = sleep(pause) => pause = (pause * 2).min(LOOK_EVERY_MAX),
        }
        let sql = "SELECT answer, is_over, \
                   taken < (SELECT number FROM meta WHERE name = 'epoch') \
                   FROM questions WHERE no = $1";
        let asked = once(database, SqlStatement::new(sql).with(no)).await;
        // While the database is away the answer may come all the same.
        let Ok(rows) = asked else { continue };
        let Some(row) = rows.first() else {
            let why = "the question to the node that works is lost";
            return Err(StoreError::OutcomeUnknown(why.into()));
        };
        if !column::<bool>(row, 1)? {
            let is_replaced = column::<Option<bool>>(row, 2)? == Some(true);
            replaced_looks += u32::from(is_replaced);
            if replaced_looks >= REPLACED_LOOKS {
                let why = "the node that took the question works no more";
                return Err(StoreError::OutcomeUnknown(why.into()));
            }
            continue;
        }
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
        put_answer(&database, no, answer).await;
    });
    Ok(())
}

/// Writes the answer to a question, or that there is none.
async fn put_answer(database: &Database, no: i64, answer: Option<Bytes>) {
    let written = || {
        let sql = "UPDATE questions SET is_over = true, answer = $2 WHERE no = $1";
        let answer = answer.as_ref().map(|answer| answer.to_vec());
        SqlStatement::new(sql).with(no).with(answer)
    };
    for _ in 0..ANSWER_TRIES {
        match once(database, written()).await {
            Ok(_) => return ring_asker(database, no),
            Err(error) => tracing::debug!("An answer is not written: {error}"),
        }
        sleep(FIRST_LOOK).await;
    }
    tracing::warn!("An answer to a question of another node could not be written");
    let removed = SqlStatement::new("DELETE FROM questions WHERE no = $1").with(no);
    // To remove it takes no room. Whoever asked is told that no answer comes.
    match once(database, removed).await {
        Ok(_) => ring_asker(database, no),
        Err(error) => tracing::debug!("Whoever asked waits in vain: {error}"),
    }
}

/// Has whoever asked look for the answer.
fn ring_asker(database: &Database, no: i64) {
    if let Some(seat) = &database.seat {
        seat.tell(&WakeUp::Answered(no));
    }
}
