//! A process that shares a store in memory: what it takes in of the others, and when it works. The
//! clock goes on where a test waits.

use super::{
    super::{open_listeners::Listening, relay::RelayTarget, reload::ReloadParts},
    *,
};
use crate::{
    app::{relay::RelayRequest, reload::Reloader, status, wiring::Wiring},
    auth::{NewUser, User, UserNo, password::LoginHash},
    catalog::RegistrationProgress,
    clock::System,
    config::Config,
    feed::{
        record::{FeedNo, FeedRecord, Head},
        stamp::Stamp,
    },
    secret::Secret,
    store::{
        NodeDifferences, NodesEngine, StoreFuture,
        memory::Memory,
        nodes::NodeRequest,
        wrapped::{Tap, Wrapped},
    },
};
use std::{
    fs,
    os::unix::fs::PermissionsExt as _,
    sync::{
        Mutex,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
};
use testkit::wait::until;
use tokio::sync::oneshot;

/// A moment behind a look.
const BEHIND_LOOK: Duration = Duration::from_millis(1_100);

/// A store that processes share. What is asked of it can fail.
struct Shared {
    nodes: Nodes,
    is_away: Arc<AtomicBool>,
}

impl Shared {
    fn unless_away<'a, T: Send + 'a>(&self, answer: StoreFuture<'a, T>) -> StoreFuture<'a, T> {
        if self.is_away.load(Ordering::SeqCst) {
            return Box::pin(async { Err(StoreError::Away("told to".into())) });
        }
        answer
    }
}

impl Tap for Shared {
    fn nodes<'a>(&'a self, _: &'a dyn Store) -> Option<&'a Nodes> {
        Some(&self.nodes)
    }

    fn users<'a>(
        &'a self,
        inner: &'a dyn Store,
        after: Option<UserNo>,
        max: usize,
    ) -> StoreFuture<'a, Vec<User>> {
        self.unless_away(inner.users(after, max))
    }

    fn feed_names<'a>(
        &'a self,
        inner: &'a dyn Store,
        after: Option<String>,
        max: usize,
    ) -> StoreFuture<'a, Vec<(String, FeedNo)>> {
        self.unless_away(inner.feed_names(after, max))
    }

    fn feeds<'a>(
        &'a self,
        inner: &'a dyn Store,
        after: Option<FeedNo>,
        max: usize,
    ) -> StoreFuture<'a, Vec<FeedRecord>> {
        self.unless_away(inner.feeds(after, max))
    }
}

/// A process that follows, and the ends of its engine.
struct Rig {
    shifts: Option<Shifts>,
    bench: Arc<WorkContext>,
    store: Arc<Wrapped<Shared>>,
    /// The feeds of its file.
    feeds: Vec<FeedSettings>,
    duty: watch::Sender<Duty>,
    heard: watch::Sender<Option<Instant>>,
    moves: mpsc::Sender<Moves>,
    questions: mpsc::Sender<Question>,
    /// Times that a sealed row was asked for.
    sealed_reads: Arc<AtomicUsize>,
    /// The feeds that the process that works has told not to serve.
    withdrawn: Arc<Mutex<Option<Vec<FeedNo>>>>,
    /// The last differences that this process has told.
    differences: Arc<Mutex<NodeDifferences>>,
    stop: CancellationToken,
}

impl Rig {
    /// With a feed in its file that the store does not know.
    async fn new() -> Self {
        Self::with("", "[store]\npath = \"x\"\n").await
    }

    async fn with(server: &str, store: &str) -> Self {
        let text = format!(
            "[server]\npublic_url = \"https://feeds.example\"\n{server}\n{store}\n\
             [[feed]]\nname = \"late\"\nurl = \"http://127.0.0.1:9/\"\n"
        );
        let mut config = Config::parse("everfeed.toml", &text).unwrap();
        let feeds = std::mem::take(&mut config.feed);
        let (nodes, engine) = Nodes::pair(Duty::Following);
        let NodesEngine {
            duty,
            heard,
            moves,
            questions,
            requests,
        } = engine;
        let engine = SharedEngine::default();
        let (is_away, sealed_reads) = (engine.is_away.clone(), engine.sealed_reads.clone());
        let (withdrawn, differences) = (engine.withdrawn.clone(), engine.differences.clone());
        tokio::spawn(engine.answer(requests));
        let store = Arc::new(Wrapped {
            inner: Box::new(Memory::new(Arc::new(System))),
            tap: Shared { nodes, is_away },
        });
        let shared: Arc<dyn Store> = store.clone();
        let wiring = Wiring::new(config, shared.clone(), Arc::new(System), 1).await;
        let wiring = wiring.unwrap();
        let certificate = wiring.own_certificate().await.unwrap();
        let (known, unknown) = catalog::follow(&*shared, feeds.clone()).await.unwrap();
        wiring.gate.catalog.publish(known);
        let (stop, workplace) = (CancellationToken::new(), CurrentWork::default());
        let readers = wiring.readers();
        let in_force = wiring.server_in_force(100);
        let reloader = Reloader::new(ReloadParts {
            source: None,
            started_with: wiring.config.clone(),
            gate: wiring.gate.clone(),
            store: shared,
            notify: wiring.notify.clone(),
            workplace: workplace.clone(),
            live: wiring.live.clone(),
        });
        let admin = Admin::starting(
            Arc::new(RegistrationProgress::of(0)),
            wiring.metrics.clone(),
        );
        let bench = Arc::new(WorkContext {
            context: wiring.serve_context(readers.clone(), in_force, stop.clone()),
            readers,
            listening: Listening {
                consumers: Vec::new(),
                operator: ([127, 0, 0, 1], 1).into(),
                redirect: None,
            },
            reloader: Arc::new(reloader.of_file(String::new(), unknown)),
            workplace,
            certificate,
            started_at: status::now(),
            wiring,
        });
        let shifts = Shifts::of(bench.clone(), admin, &store.tap.nodes);
        Self {
            shifts,
            bench,
            store,
            feeds,
            duty,
            heard,
            moves,
            questions,
            sealed_reads,
            withdrawn,
            differences,
            stop,
        }
    }

    fn run(&mut self) {
        let shifts = self.shifts.take().unwrap();
        shifts.open_following();
        tokio::spawn(shifts.run(self.stop.clone()));
    }

    fn works(&self) -> bool {
        self.bench.workplace.work().is_some()
    }

    fn is_served(&self) -> bool {
        let catalog = self.bench.wiring.gate.catalog.snapshot();
        catalog.feed("late").is_some()
    }

    fn knows(&self, user: &str) -> bool {
        let accounts = self.bench.wiring.gate.auth.accounts();
        accounts.user(user).is_some()
    }

    fn away(&self, is_away: bool) {
        self.store.tap.is_away.store(is_away, Ordering::SeqCst);
    }

    async fn tell(&self, moves: Moves) {
        self.moves.send(moves).await.unwrap();
    }

    /// The answer to a question of another process; `None` where none comes.
    async fn asked(&self, door: RelayTarget, target: &str) -> Option<Bytes> {
        let request = Request::get(target).body(Bytes::new()).unwrap();
        let words = RelayRequest::of(door, &request, None, None).words();
        let (answer, answered) = oneshot::channel();
        let question = Question { words, answer };
        self.questions.send(question).await.unwrap();
        answered.await.ok()
    }

    /// Adds a user, as the process that works does.
    async fn add_user(&self, name: &str) {
        let new = NewUser {
            name: name.into(),
            login: LoginHash::of_nobody(),
            feed_password: Secret::new("feed"),
            hex_digest: false,
            created_us: 0,
            jid: None,
        };
        self.store.inner.add_user(new).await.unwrap().unwrap();
    }
}

/// The engine, as far as it is asked anything: no sealed row is there.
#[derive(Default)]
struct SharedEngine {
    is_away: Arc<AtomicBool>,
    sealed_reads: Arc<AtomicUsize>,
    withdrawn: Arc<Mutex<Option<Vec<FeedNo>>>>,
    differences: Arc<Mutex<NodeDifferences>>,
}

impl SharedEngine {
    async fn answer(self, mut requests: mpsc::Receiver<NodeRequest>) {
        while let Some(request) = requests.recv().await {
            let is_away = self.is_away.load(Ordering::SeqCst);
            let away = || StoreError::Away("told to".into());
            match request {
                NodeRequest::ReadSealed(_, answer) => {
                    self.sealed_reads.fetch_add(1, Ordering::SeqCst);
                    let told = if is_away { Err(away()) } else { Ok(None) };
                    answer.send(told).unwrap();
                }
                NodeRequest::ReadWithdrawn(answer) => {
                    let told = self.withdrawn.lock().unwrap().clone();
                    let told = if is_away { Err(away()) } else { Ok(told) };
                    answer.send(told).unwrap();
                }
                NodeRequest::WriteWithdrawn(told, answer) => {
                    *self.withdrawn.lock().unwrap() = Some(told);
                    answer.send(Ok(())).unwrap();
                }
                NodeRequest::Differ(told) => *self.differences.lock().unwrap() = told,
                _ => {}
            }
        }
    }
}

fn heads(feed: FeedNo, t: u64) -> (FeedNo, Head) {
    let head = Head {
        last_t: Stamp::from_micros(t),
        ..Head::default()
    };
    (feed, head)
}

fn moved(feed: FeedNo, t: u64) -> Moves {
    Moves {
        feeds: vec![heads(feed, t)],
        ..Moves::default()
    }
}

#[tokio::test(start_paused = true)]
async fn changes_of_others_are_taken_in_and_what_cannot_be_read_is_read_at_a_later_look() {
    let mut rig = Rig::new().await;
    rig.run();
    rig.tell(moved(FeedNo(1), 7)).await;
    let notify = &rig.bench.wiring.notify;
    until("the feed has moved", async || {
        notify.head(FeedNo(1)) == Some(heads(FeedNo(1), 7).1)
    })
    .await;
    let registering = RegistrationProgress::of(1);
    let registered = catalog::register(&*rig.store.inner, rig.feeds.clone(), &registering).await;
    registered.unwrap();
    rig.add_user("alice").await;
    // Nobody has told of it yet.
    sleep(BEHIND_LOOK).await;
    assert!(!rig.is_served() && !rig.knows("alice"));
    rig.away(true);
    rig.tell(Moves {
        catalog: true,
        accounts: true,
        ..Moves::default()
    })
    .await;
    sleep(BEHIND_LOOK).await;
    assert!(!rig.is_served() && !rig.knows("alice"));
    rig.away(false);
    sleep(BEHIND_LOOK).await;
    assert!(rig.is_served() && rig.knows("alice"));
    assert!(!rig.works());
}

#[tokio::test(start_paused = true)]
async fn who_has_heard_nothing_for_ten_seconds_knows_nobody_and_has_all_look_once() {
    let mut rig = Rig::new().await;
    rig.run();
    let auth = &rig.bench.wiring.gate.auth;
    let revision = || auth.watch().borrow().revision;
    rig.heard.send_replace(Some(Instant::now()));
    sleep(BEHIND_LOOK).await;
    let before = revision();
    sleep(Duration::from_secs(8)).await;
    assert!(!auth.is_unheard());
    assert_eq!(revision(), before);
    sleep(Duration::from_secs(2)).await;
    assert!(auth.is_unheard());
    sleep(Duration::from_secs(9)).await;
    assert_eq!(revision(), before + 1, "those who wait look once");
    rig.heard.send_replace(Some(Instant::now()));
    sleep(BEHIND_LOOK).await;
    assert!(!auth.is_unheard());
    assert_eq!(revision(), before + 2);

    // Users that were told of and cannot be read are as good as not heard of.
    rig.away(true);
    rig.tell(Moves {
        accounts: true,
        ..Moves::default()
    })
    .await;
    for _ in 0..11 {
        sleep(Duration::from_secs(1)).await;
        rig.heard.send_replace(Some(Instant::now()));
    }
    assert!(auth.is_unheard());
    rig.away(false);
    // One look reads them, and the next one counts.
    sleep(BEHIND_LOOK * 2).await;
    assert!(!auth.is_unheard());
}

#[tokio::test(start_paused = true)]
async fn work_is_taken_up_behind_all_that_was_told_and_let_go_of_when_another_one_works() {
    let mut rig = Rig::new().await;
    rig.run();
    assert_eq!(
        rig.asked(RelayTarget::Look, "/1/0").await,
        None,
        "it follows"
    );
    rig.away(true);
    rig.tell(moved(FeedNo(5), 9)).await;
    rig.duty.send_replace(Duty::Working);
    sleep(BEHIND_LOOK * 2).await;
    assert!(!rig.works() && !rig.is_served(), "the store is away");
    rig.away(false);
    sleep(BEHIND_LOOK).await;
    assert!(rig.works() && rig.is_served(), "its feed is registered");
    let notify = &rig.bench.wiring.notify;
    assert_eq!(notify.head(FeedNo(5)), Some(heads(FeedNo(5), 9).1));
    assert!(rig.asked(RelayTarget::Look, "/1/0").await.is_some());
    assert!(rig.asked(RelayTarget::Operator, "/status").await.is_some());
    assert_eq!(rig.asked(RelayTarget::Look, "/none").await, None);
    // Nobody else changes anything meanwhile.
    rig.add_user("alice").await;
    rig.tell(Moves {
        accounts: true,
        ..Moves::default()
    })
    .await;
    sleep(BEHIND_LOOK).await;
    assert!(!rig.knows("alice"));

    rig.duty.send_replace(Duty::Following);
    sleep(BEHIND_LOOK).await;
    assert!(!rig.works() && rig.is_served());
    assert!(rig.knows("alice"), "another one may have changed anything");
    assert_eq!(rig.asked(RelayTarget::Operator, "/status").await, None);
    rig.duty.send_replace(Duty::Working);
    sleep(BEHIND_LOOK).await;
    assert!(rig.works());
}

#[tokio::test(start_paused = true)]
async fn nobody_is_answered_before_everything_is_known_that_was_told() {
    let mut rig = Rig::new().await;
    let mut shifts = rig.shifts.take().unwrap();
    let knowing = tokio::spawn(async move { shifts.know_all().await });
    rig.tell(moved(FeedNo(1), 3)).await;
    sleep(Duration::from_secs(60)).await;
    assert!(!knowing.is_finished());
    rig.tell(moved(FeedNo(2), 4)).await;
    rig.heard.send_replace(Some(Instant::now()));
    knowing.await.unwrap();
    let notify = &rig.bench.wiring.notify;
    for (feed, t) in [(FeedNo(1), 3), (FeedNo(2), 4)] {
        assert_eq!(notify.head(feed), Some(heads(feed, t).1));
    }
}

#[tokio::test(start_paused = true)]
async fn a_certificate_that_another_one_got_is_read_until_that_succeeds() {
    let folder = tempfile::tempdir().unwrap();
    let key = folder.path().join("key");
    fs::write(&key, "5c".repeat(32)).unwrap();
    fs::set_permissions(&key, fs::Permissions::from_mode(0o600)).unwrap();
    let tls = "[server.tls.acme]\ndomains = [\"feeds.example\"]\n\
               contact = \"you@example.org\"\nagree_to_terms = true\n";
    let store = format!("[store]\nurl = \"postgresql://u@h/d\"\nkey_file = {key:?}\n");
    let mut rig = Rig::with(tls, &store).await;
    rig.run();
    sleep(BEHIND_LOOK).await;
    let reads = rig.sealed_reads.clone();
    let so_far = || reads.load(Ordering::SeqCst);
    let began = so_far();
    rig.away(true);
    rig.tell(Moves {
        sealed: true,
        ..Moves::default()
    })
    .await;
    sleep(BEHIND_LOOK * 3).await;
    let failed = so_far() - began;
    assert!(
        (3..=5).contains(&failed),
        "{failed} reads, one at each look"
    );
    rig.away(false);
    sleep(BEHIND_LOOK).await;
    let done = so_far();
    assert!(done > began + failed);
    sleep(BEHIND_LOOK * 5).await;
    assert_eq!(so_far(), done, "it is read");
}

/// The feeds of the store are those of the process that works. A feed that only that one has is none
/// that its operator removed.
#[tokio::test(start_paused = true)]
async fn a_feed_of_the_process_that_works_is_gone_only_once_that_one_has_told_so() {
    let mut rig = Rig::new().await;
    rig.run();
    let url = url::Url::parse("http://127.0.0.1:9/new").unwrap();
    let new = FeedSettings::new("new", url);
    let registering = RegistrationProgress::of(1);
    let registered = catalog::register(&*rig.store.inner, vec![new], &registering).await;
    let no = registered.unwrap().feed("new").unwrap().no;
    let catalog = rig.bench.wiring.gate.catalog.clone();
    let has = |name: &str| catalog.snapshot().beside_worker().has(name);
    let moved = || Moves {
        catalog: true,
        ..Moves::default()
    };
    // Nothing is told yet, as by an older version.
    rig.tell(moved()).await;
    sleep(BEHIND_LOOK).await;
    assert!(has("new") && has("late") && !has("never"));
    *rig.withdrawn.lock().unwrap() = Some(Vec::new());
    rig.tell(moved()).await;
    sleep(BEHIND_LOOK * 2).await;
    assert!(has("new"));
    let told = rig.differences.lock().unwrap().clone();
    assert_eq!(told.lacking.names, ["new"]);
    assert_eq!(told.only_here.names, ["late"], "it waits for the other one");
    // The operator removes it there.
    *rig.withdrawn.lock().unwrap() = Some(vec![no]);
    rig.tell(moved()).await;
    sleep(BEHIND_LOOK * 2).await;
    assert!(!has("new") && catalog.snapshot().withdrawn("new").is_some());
    assert_eq!(rig.differences.lock().unwrap().lacking.total, 0);

    // This one works: what it does not have is gone, and it says so.
    rig.withdrawn.lock().unwrap().take();
    rig.duty.send_replace(Duty::Working);
    sleep(BEHIND_LOOK * 2).await;
    assert!(rig.works() && rig.is_served() && !has("new") && !has("late"));
    assert_eq!(*rig.withdrawn.lock().unwrap(), Some(vec![no]));
    assert_eq!(rig.differences.lock().unwrap().only_here.total, 0);
}
