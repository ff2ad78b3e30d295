//! The keeper of the seat of this process among those that share a database: it gives signs of life,
//! looks at what the others do, takes over the work and notices that another one did. One task.

use super::{
    questions::{QuestionQueue, ask_here},
    roster::{self, SIGN_EVERY},
    sealed, serving_epoch,
    serving_lock::{self, ServingLock, ServingLockKind},
    sweep::{MovesToTell, NodeSweep, SweepPosition},
    vacancy::{Vacancy, VacancyFound},
    wake_ups::{NodeListener, notifications},
};
use crate::store::postgres::{
    database::{Database, TRYING, tried},
    node_lease::{NodeLease, WakeUp},
    rows::schema,
    wire::{
        fault::{are_changed_tables, is_of_full_disk},
        kept_connection::{KeptConnection, LOOK_MAX, LOOKING, NOTING},
        statement::{SqlStatement, column},
    },
};
use crate::{
    feed::{record::FeedNo, stamp::Stamp},
    locks::lock,
    store::{Duty, Moves, NodesEngine, Question, Remedy, StoreError, nodes::NodeRequest},
};
use std::{
    collections::BTreeSet,
    future::pending,
    sync::{Arc, atomic::Ordering},
    time::Duration,
};
use tokio::{
    sync::{mpsc, oneshot, watch},
    time::{Instant, sleep_until, timeout},
};

/// Time between two looks of a process that follows.
const LOOK_EVERY: Duration = Duration::from_millis(if cfg!(test) { 200 } else { 1_000 });

/// Time between two beats of the process that works, and two looks at its own lock.
const BEAT_EVERY: Duration = Duration::from_millis(if cfg!(test) { 100 } else { 500 });

/// Pause before the second look at a lock that is free. A process that lives has it again by then.
const DOUBT: Duration = Duration::from_millis(if cfg!(test) { 300 } else { 700 });

/// Looks in turn at which the lock of our epoch may be somebody else's; whoever looks at it holds it
/// for a moment.
const LOCKLESS_MAX: u32 = 3;

/// Keeps the seat of this process.
pub(in crate::store::postgres) struct NodeKeeper {
    database: Arc<Database>,
    seat: Arc<NodeLease>,
    connection: KeptConnection,
    /// Says that this process is there; without it, it does not take over.
    present: Option<ServingLock>,
    /// The lock of the epoch in which it works.
    working: Option<ServingLock>,
    place: SweepPosition,
    moves: MovesToTell,
    told: mpsc::Sender<Moves>,
    heard: watch::Sender<Option<Instant>>,
    questions: mpsc::Sender<Question>,
    desk: Arc<QuestionQueue>,
    requests: Option<mpsc::Receiver<NodeRequest>>,
    ear: NodeListener,
    vacancy: Vacancy,
    /// Looks in turn that found our own lock with somebody else.
    lockless: u32,
    signed: Option<Instant>,
}

impl NodeKeeper {
    /// Takes its seat, and the work where nobody does it.
    pub(in crate::store::postgres) async fn begin(
        database: Arc<Database>,
        seat: Arc<NodeLease>,
        engine: NodesEngine,
    ) -> Result<Self, StoreError> {
        let present = serving_lock::take(&database, ServingLockKind::Beside).await?;
        let mut keeper = Self {
            connection: KeptConnection::new(Arc::clone(&database.connections)),
            database,
            seat,
            present: Some(present),
            working: None,
            place: SweepPosition::default(),
            moves: MovesToTell::default(),
            told: engine.moves,
            heard: engine.heard,
            questions: engine.questions,
            desk: Arc::new(QuestionQueue::new()),
            requests: Some(engine.requests),
            ear: NodeListener::new(),
            vacancy: Vacancy::default(),
            lockless: 0,
            signed: None,
        };
        let look = keeper.look().await?;
        if look.is_free {
            keeper.stand(look.epoch).await?;
        }
        // What was read before is what the feeds are compared with.
        keeper.place.read_all_next();
        Ok(keeper)
    }

    /// Keeps it until it is left, or the store is gone.
    pub(in crate::store::postgres) async fn keep(
        mut self,
        mut leaving: oneshot::Receiver<oneshot::Sender<()>>,
    ) {
        loop {
            let mut next = Instant::now() + self.turn().await;
            loop {
                tokio::select! {
                    () = sleep_until(next) => break,
                    () = self.seat.looking.notified() => break,
                    heard = self.ear.hear() => {
                        if self.take_wake_ups(heard).await {
                            next = Instant::now();
                        }
                    }
                    request = next_request(&mut self.requests) => match request {
                        Some(request) => self.answer(request),
                        None => self.requests = None,
                    },
                    left = &mut leaving => {
                        if let Ok(left) = left {
                            self.leave().await;
                            // Nobody may wait for it any more.
                            let _ = left.send(());
                        }
                        return;
                    }
                }
            }
        }
    }

    /// Does what is due. The answer is the pause behind it.
    async fn turn(&mut self) -> Duration {
        let began = Instant::now();
        match self.try_turn().await {
            Ok(pause) => {
                if self.has_room().await {
                    self.database.end_outage();
                }
                if self.moves.is_empty() {
                    self.heard.send_replace(Some(began));
                }
                pause
            }
            Err(error) => {
                self.vacancy.forget();
                self.place.read_all_next();
                let error = self.reason(error).await;
                match &error {
                    // Only another everfeed goes on with them.
                    StoreError::Schema(why) => self.database.set_outage(why, Remedy::Restart),
                    StoreError::Away(_) => self.database.note_outage(&error),
                    _ => tracing::warn!("A look at the database failed: {error}"),
                }
                LOOK_EVERY
            }
        }
    }

    /// The reason for the error of a look: tables that a newer everfeed changed may not be read.
    async fn reason(&mut self, error: StoreError) -> StoreError {
        if !are_changed_tables(&error) {
            return error;
        }
        let asked = vec![schema::oldest_asked()];
        let answers = self.connection.transact(LOOKING, asked).await;
        let answers = answers.unwrap_or_default();
        let row = answers.first().and_then(|rows| rows.first());
        let oldest = row.and_then(|row| column(row, 0).ok());
        let newer = oldest.and_then(|oldest| schema::check_oldest(oldest).err());
        newer.unwrap_or(error)
    }

    /// False while the disk of the database is full: a beat takes no room.
    async fn has_room(&mut self) -> bool {
        if !self.database.is_full() {
            return true;
        }
        let tried = self.connection.transact(TRYING, tried()).await;
        tried.is_ok()
    }

    async fn try_turn(&mut self) -> Result<Duration, StoreError> {
        if self.present.as_ref().is_none_or(ServingLock::is_lost) {
            let kind = ServingLockKind::Beside;
            self.present = serving_lock::try_take(&self.database, kind).await?;
        }
        if self.seat.is_woken {
            self.ear.listen(&self.database.connections).await?;
        }
        if self.seat.has_suspicion.swap(false, Ordering::SeqCst) {
            self.place.read_all_next();
        }
        if self.seat.works() && self.beat().await? && self.is_sound().await? {
            self.sign().await?;
            return Ok(BEAT_EVERY);
        }
        if self.working.take().is_some() {
            self.place.read_all_next();
            self.vacancy.forget();
            self.signed = None;
        }
        let look = self.look().await?;
        if self.place.lost_until(&self.seat).is_some() {
            return self.begin_anew(look.epoch).await;
        }
        self.tell();
        self.sign().await?;
        match self.vacancy.look(look, Instant::now()) {
            VacancyFound::Taken => Ok(LOOK_EVERY),
            VacancyFound::Doubtful => Ok(DOUBT),
            VacancyFound::Vacant if self.seat.has_just_fallen() => Ok(DOUBT),
            VacancyFound::Vacant => {
                self.vacancy.forget();
                self.stand(look.epoch).await?;
                Ok(BEAT_EVERY)
            }
        }
    }

    /// False when the database that this process works on lost commits. It is looked at when its
    /// connection was made anew, and after each fault.
    async fn is_sound(&mut self) -> Result<bool, StoreError> {
        if self.connection.take_is_new() {
            self.place.read_all_next();
        }
        if !self.place.is_all_due() {
            return Ok(true);
        }
        self.look().await?;
        if self.place.lost_until(&self.seat).is_some() {
            self.database.fence(self.database.epoch());
            return Ok(false);
        }
        // They are of this process itself.
        drop(self.moves.take());
        self.database.forget_committed();
        Ok(true)
    }

    // Limit: commits that only a process saw which is gone are not missed by anybody.
    /// Takes over a database that lost commits: all feeds begin new generations in the epoch that
    /// begins, so that no reader is answered by two histories under one.
    async fn begin_anew(&mut self, epoch: i64) -> Result<Duration, StoreError> {
        let error = StoreError::Away(
            "the database lacks commits that it had before; its feeds begin new generations".into(),
        );
        self.database.note_outage(&error);
        self.stand(epoch).await?;
        if !self.seat.works() {
            return Err(error);
        }
        tracing::error!(
            "The database lacked commits that it had before, as after the promotion of a standby or a recovery to a point in time. Each feed begins a new generation, and mirrors read it anew"
        );
        Ok(BEAT_EVERY)
    }

    /// Shows the others that this process works, and serves them. False when another one does.
    async fn beat(&mut self) -> Result<bool, StoreError> {
        let epoch = self.database.epoch();
        let beaten = SqlStatement::new(
            "UPDATE meta SET number = number + 1 WHERE name = 'beat' \
             AND (SELECT number FROM meta WHERE name = 'epoch') = $1 RETURNING number",
        );
        let beaten = vec![beaten.with(epoch)];
        let answers = self.connection.transact(NOTING, beaten).await?;
        if answers[0].is_empty() {
            self.database.fence(epoch);
            return Ok(false);
        }
        if self.working.as_ref().is_none_or(ServingLock::is_lost) {
            let kind = ServingLockKind::Epoch(epoch);
            self.working = serving_lock::try_take(&self.database, kind).await?;
            self.lockless = match self.working {
                Some(_) => 0,
                None => self.lockless + 1,
            };
            if self.lockless >= LOCKLESS_MAX {
                // It is of an epoch with our number that began where ours was lost.
                self.lockless = 0;
                self.database.fence(epoch);
                return Ok(false);
            }
        }
        self.take_questions().await?;
        self.desk.remove_old(&mut self.connection).await?;
        Ok(true)
    }

    async fn take_questions(&mut self) -> Result<(), StoreError> {
        let (desk, connection) = (Arc::clone(&self.desk), &mut self.connection);
        let taken = desk.take(&self.database, connection, &self.questions).await;
        if taken.as_ref().is_err_and(is_of_full_disk) {
            desk.refuse(&self.database, connection).await?;
        }
        taken
    }

    async fn look(&mut self) -> Result<NodeSweep, StoreError> {
        self.place
            .look(&mut self.connection, &self.seat, &mut self.moves)
            .await
    }

    /// Passes on what moved, where there is room for it.
    fn tell(&mut self) {
        if self.moves.is_empty() {
            return;
        }
        match self.told.try_reserve() {
            Ok(room) => room.send(self.moves.take()),
            Err(mpsc::error::TrySendError::Full(())) => {}
            Err(mpsc::error::TrySendError::Closed(())) => drop(self.moves.take()),
        }
    }

    // Decides: Which of several nodes works?
    /// Takes over the work behind an epoch, unless another process does. What it fails at on the way
    /// leaves the lock of the next epoch free, and whoever comes first begins another one.
    async fn stand(&mut self, before: i64) -> Result<(), StoreError> {
        if self.present.as_ref().is_none_or(ServingLock::is_lost) {
            return Ok(());
        }
        let kind = ServingLockKind::Epoch(before + 1);
        let Some(working) = serving_lock::try_take(&self.database, kind).await? else {
            return Ok(());
        };
        let lost_until = self.place.lost_until(&self.seat);
        let begun = serving_epoch::begin_beside(&self.database, before, lost_until).await?;
        let Some(begun) = begun else {
            working.free().await;
            return Ok(());
        };
        // Nobody commits in an earlier epoch any more: what is found now is all of it.
        self.look().await?;
        if !self.moves.is_empty() {
            let room = timeout(LOOK_MAX, self.told.reserve()).await;
            let room = room.map_err(|_| {
                StoreError::Away("this node does not take up what the one before changed".into())
            })?;
            if let Ok(room) = room {
                room.send(self.moves.take());
            }
        }
        self.database.forget_committed();
        self.working = Some(working);
        begun.take_up(&self.database);
        self.signed = None;
        self.seat.set_duty(Duty::Working);
        tracing::info!("This node works, in epoch {}", before + 1);
        Ok(())
    }

    /// Gives a sign of life, when it is time.
    async fn sign(&mut self) -> Result<(), StoreError> {
        let Some(face) = lock(&self.seat.face).clone() else {
            return Ok(());
        };
        if self
            .signed
            .is_some_and(|signed| signed.elapsed() < SIGN_EVERY)
        {
            return Ok(());
        }
        let signed = vec![roster::sign(&self.seat, &face)];
        self.connection.transact(NOTING, signed).await?;
        self.signed = Some(Instant::now());
        Ok(())
    }

    /// Acts on what others told. True when it is time for a look.
    async fn take_wake_ups(&mut self, heard: Vec<WakeUp>) -> bool {
        let (mut feeds, mut began) = (BTreeSet::new(), None);
        let (mut is_asked, mut is_look_due) = (false, false);
        for wake_up in heard {
            match wake_up {
                WakeUp::Moved(at, moved) => {
                    feeds.extend(moved);
                    began.get_or_insert(at);
                }
                WakeUp::Sweep | WakeUp::Vacant => is_look_due = true,
                WakeUp::Asked => is_asked = true,
                WakeUp::Answered(no) => self.desk.ring(no),
            }
        }
        if self.seat.works() {
            // What fails is done by the next turn.
            return is_asked && self.take_questions().await.is_err();
        }
        if feeds.is_empty() {
            return is_look_due;
        }
        let read = self.read_moved(feeds.into_iter().collect(), began).await;
        is_look_due || read.is_err()
    }

    async fn read_moved(
        &mut self,
        feeds: Vec<FeedNo>,
        began: Option<Stamp>,
    ) -> Result<(), StoreError> {
        let (connection, moves) = (&mut self.connection, &mut self.moves);
        let read = self.place.read_moved(connection, &self.seat, feeds, moves);
        let now = read.await?;
        if let Some(began) = began {
            let lag_ms = now.micros().saturating_sub(began.micros()) / 1_000;
            *lock(&self.seat.wake_lag_ms) = Some(lag_ms);
        }
        self.tell();
        Ok(())
    }

    /// Has a request answered.
    fn answer(&self, request: NodeRequest) {
        let (database, seat) = (Arc::clone(&self.database), Arc::clone(&self.seat));
        match request {
            NodeRequest::Introduce(face, answer) => {
                tokio::spawn(async move {
                    let introduced = roster::introduce(&database, &seat, &face).await;
                    if introduced.is_ok() {
                        *lock(&seat.face) = Some(face);
                    }
                    let _ = answer.send(introduced);
                });
            }
            NodeRequest::Ask(words, within, answer) => {
                let (desk, questions) = (Arc::clone(&self.desk), self.questions.clone());
                tokio::spawn(async move {
                    let answered = if seat.works() {
                        ask_here(&questions, words, within).await
                    } else {
                        desk.ask(&database, &seat, words, within).await
                    };
                    let _ = answer.send(answered);
                });
            }
            NodeRequest::Status(answer) => {
                tokio::spawn(async move {
                    let _ = answer.send(roster::status(&database, &seat).await);
                });
            }
            NodeRequest::Differ(differences) => {
                *lock(&self.seat.differences) = Some(differences);
            }
            NodeRequest::ReadWithdrawn(answer) => {
                tokio::spawn(async move {
                    let read = |database: &Database| database.read(roster::withdrawn);
                    let _ = answer.send(database.run(read).await);
                });
            }
            NodeRequest::WriteWithdrawn(withdrawn, answer) => {
                tokio::spawn(async move {
                    let write = move |database: &Database| {
                        database.write(|writing| {
                            roster::put_withdrawn(writing, &withdrawn);
                            Ok(())
                        })
                    };
                    let _ = answer.send(database.run(write).await);
                });
            }
            NodeRequest::ReadSealed(name, answer) => {
                tokio::spawn(async move {
                    let read = move |database: &Database| {
                        database.read(|session| sealed::value(session, &name))
                    };
                    let _ = answer.send(database.run(read).await);
                });
            }
            NodeRequest::WriteSealed(name, value, answer) => {
                tokio::spawn(async move {
                    let write = move |database: &Database| {
                        database.write(|writing| {
                            sealed::put(writing, &name, value.as_deref());
                            Ok(())
                        })
                    };
                    let _ = answer.send(database.run(write).await);
                });
            }
        }
    }

    /// Leaves the seat: the locks are free, and the others are told.
    async fn leave(&mut self) {
        let worked = self.working.is_some();
        let held = [self.working.take(), self.present.take()];
        for lock in held.into_iter().flatten() {
            lock.free().await;
        }
        let mut last = vec![roster::gone(&self.seat)];
        if worked && self.seat.is_woken {
            last.extend(notifications(vec![WakeUp::Vacant.to_string()]));
        }
        if let Err(error) = self.connection.transact(NOTING, last).await {
            tracing::debug!("The other nodes are not told that this one has ended: {error}");
        }
    }
}

async fn next_request(requests: &mut Option<mpsc::Receiver<NodeRequest>>) -> Option<NodeRequest> {
    match requests {
        Some(requests) => requests.recv().await,
        None => pending().await,
    }
}
