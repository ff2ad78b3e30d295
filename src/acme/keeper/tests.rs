//! The keeper with an authority that answers by a script, while time is paused.

use super::*;
use crate::{
    acme::{AcmeFolder, OpenChallenge, kept::tests::Table},
    clock::Paused,
    layers::Fault,
    telemetry::testing::Logged,
};
use futures_util::future::BoxFuture;
use rcgen::{CertificateParams, KeyPair};
use std::{collections::VecDeque, fs, sync::Mutex};
use tempfile::TempDir;
use url::Url;

/// 2026-11-01T00:00:00Z.
const BEGIN: u64 = 1_793_491_200;
const HOUR: u64 = 3_600;
const DAY: u64 = 86_400;

/// An answer to an order.
#[derive(Clone, Debug)]
enum Answer {
    /// A certificate for these names, days from [`BEGIN`].
    Gives(&'static [&'static str], u64),
    /// The same, of which the certificate begins after so many days.
    Early(&'static [&'static str], u64, u64),
    Fails(AcmeFault),
}

/// An authority that answers by a script, and fails when it has ended.
#[derive(Default)]
struct Scripted {
    answers: Mutex<VecDeque<Answer>>,
    /// Seconds after [`BEGIN`] at which it was asked, and how.
    asked: Mutex<Vec<(u64, ChallengeWay)>>,
    clock: Mutex<Option<Paused>>,
}

impl Authority for Scripted {
    fn order(&self, way: ChallengeWay) -> BoxFuture<'_, Result<String, AcmeFault>> {
        let now = self.clock.lock().unwrap().unwrap().now_us() / 1_000_000;
        self.asked.lock().unwrap().push((now - BEGIN, way));
        let answer = self.answers.lock().unwrap().pop_front();
        Box::pin(async move {
            match answer {
                Some(Answer::Gives(names, days)) => Ok(pem(names, now, days)),
                Some(Answer::Early(names, after, days)) => Ok(pem(names, now + after * DAY, days)),
                Some(Answer::Fails(fault)) => Err(fault),
                None => Err(AcmeFault::of_authority("it is down")),
            }
        })
    }
}

/// A key and a certificate that begins now.
fn pem(names: &[&str], now: u64, days: u64) -> String {
    let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
    let key = KeyPair::generate().unwrap();
    let mut params = CertificateParams::new(names).unwrap();
    // 2026-11-01, which is `BEGIN`.
    params.not_before = rcgen::date_time_ymd(2026, 11, 1) + Duration::from_secs(now - BEGIN);
    params.not_after = params.not_before + Duration::from_secs(days * DAY);
    key.serialize_pem() + &params.self_signed(&key).unwrap().pem()
}

/// A keeper that runs.
struct Rig {
    place: TempDir,
    authority: Arc<Scripted>,
    clock: Paused,
    ways: Vec<ChallengeWay>,
}

impl Rig {
    fn new(answers: Vec<Answer>) -> Self {
        let clock = Paused::from(BEGIN * 1_000_000);
        let authority = Arc::new(Scripted::default());
        *authority.answers.lock().unwrap() = answers.into();
        *authority.clock.lock().unwrap() = Some(clock);
        Self {
            place: tempfile::tempdir().unwrap(),
            authority,
            clock,
            ways: vec![ChallengeWay::TlsAlpn],
        }
    }

    async fn open(&self) -> CertificateKeeper {
        let directory = Url::parse("https://ca.example/dir").unwrap();
        let folder = AcmeFolder::open(self.place.path(), &directory).unwrap();
        let parts = self.parts(AcmeKept::Folder(folder));
        CertificateKeeper::open(parts).await.unwrap()
    }

    fn parts(&self, kept: AcmeKept) -> KeeperParts {
        KeeperParts {
            names: vec!["h.example".to_owned()],
            authority_name: "ca.example".to_owned(),
            authority: self.authority.clone(),
            ways: self.ways.clone(),
            kept,
            held: Arc::default(),
            watch: CertificateWatch::default(),
            clock: Arc::new(self.clock),
            jitter: || 0.5,
        }
    }

    /// The state after a keeper has run for so long; then it is stopped.
    async fn runs(&self, secs: u64) -> CertificateState {
        runs(self.open().await, secs).await
    }

    /// The seconds at which the authority was asked.
    fn asked(&self) -> Vec<u64> {
        self.authority
            .asked
            .lock()
            .unwrap()
            .iter()
            .map(|(at, _)| *at)
            .collect()
    }

    fn certificate(&self) -> std::path::PathBuf {
        self.place.path().join("ca.example-dir/certificate.pem")
    }
}

async fn runs(keeper: CertificateKeeper, secs: u64) -> CertificateState {
    let (watch, stop) = (keeper.parts.watch.clone(), CancellationToken::new());
    let task = tokio::spawn(keeper.run(stop.clone()));
    sleep(Duration::from_secs(secs)).await;
    stop.cancel();
    task.await.unwrap();
    watch.state()
}

fn unproven(text: &str) -> Answer {
    let fault = AcmeFault {
        whose: Fault::Configuration,
        text: text.into(),
        wait: None,
        step: OrderStep::Proof,
    };
    Answer::Fails(fault)
}

#[tokio::test(start_paused = true)]
async fn a_certificate_is_ordered_once_kept_over_restarts_and_renewed_in_time() {
    let kept = Rig::new(vec![
        Answer::Gives(&["h.example"], 90),
        Answer::Gives(&["h.example"], 90),
    ]);
    let state = kept.runs(60).await;
    assert_eq!(
        (state.expires_at, state.fault),
        (Some(BEGIN + 90 * DAY), None)
    );
    // Two thirds of its time, less half of a thirtieth.
    let renewed = 60 * DAY - 36 * HOUR;
    assert_eq!(state.next_order_at, BEGIN + renewed);
    assert_eq!(kept.asked(), [0]);
    // Another process asks nobody.
    for _ in 0..5 {
        assert_eq!(kept.runs(DAY).await.expires_at, Some(BEGIN + 90 * DAY));
    }
    assert_eq!(kept.asked(), [0]);
    let state = kept.runs(60 * DAY).await;
    assert_eq!(kept.asked(), [0, renewed]);
    assert_eq!(state.expires_at, Some(BEGIN + renewed + 90 * DAY));
}

#[tokio::test(start_paused = true)]
async fn failures_are_told_and_tried_again_ever_more_rarely_while_the_old_certificate_is_in_use() {
    let kept = Rig::new(vec![Answer::Gives(&["h.example"], 3)]);
    let state = kept.runs(3 * DAY).await;
    let fault = state.fault.unwrap();
    assert_eq!(fault.to_string(), "it is down (the authority's fault)");
    assert_eq!(
        state.expires_at,
        Some(BEGIN + 3 * DAY),
        "it is shown to its end, and beyond"
    );
    let asked = kept.asked();
    assert_eq!(state.failures as usize, asked.len() - 1);
    let first = 2 * DAY - DAY / 20;
    let waits: Vec<u64> = asked[1..]
        .windows(2)
        .map(|pair| pair[1] - pair[0])
        .collect();
    assert_eq!(asked[1], first);
    // Four orders in an hour at most: the fifth waits for the first to be an hour old.
    assert_eq!(waits[..5], [60, 120, 240, HOUR - 420, 960]);
    assert!(
        waits[5..]
            .iter()
            .all(|wait| (1800..=6 * HOUR).contains(wait)),
        "{waits:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_process_that_is_started_again_and_again_orders_no_more_than_one_that_runs() {
    let kept = Rig::new(Vec::new());
    for _ in 0..100 {
        kept.runs(10).await;
    }
    assert_eq!(kept.asked(), [0, 10, 20, 30]);
    let state = kept.runs(10).await;
    assert_eq!(
        (state.next_order_at, state.expires_at),
        (BEGIN + HOUR, None)
    );
    kept.runs(HOUR).await;
    assert_eq!(kept.asked()[..5], [0, 10, 20, 30, HOUR]);
}

#[tokio::test(start_paused = true)]
async fn names_that_are_not_proven_in_one_way_are_proven_in_the_other_which_is_then_the_first() {
    let by = [ChallengeWay::TlsAlpn, ChallengeWay::Http];
    let answers = vec![
        unproven("nobody at 443"),
        Answer::Gives(&["h.example"], 3),
        Answer::Gives(&["h.example"], 3),
    ];
    let kept = Rig {
        ways: by.to_vec(),
        ..Rig::new(answers)
    };
    assert_eq!(kept.runs(2 * DAY).await.fault, None);
    let ways: Vec<_> = kept
        .authority
        .asked
        .lock()
        .unwrap()
        .iter()
        .map(|(_, way)| *way)
        .collect();
    assert_eq!(ways, [by[0], by[1], by[1]]);

    let kept = Rig {
        ways: by.to_vec(),
        ..Rig::new(vec![unproven("nobody at 443"), unproven("nor at 80")])
    };
    let fault = kept.runs(1).await.fault.unwrap();
    assert_eq!(
        (fault.text.as_str(), fault.whose),
        ("nobody at 443; nor at 80", Fault::Configuration)
    );
    // What is not about the proof is not tried in another way.
    let kept = Rig {
        ways: by.to_vec(),
        ..Rig::new(Vec::new())
    };
    kept.runs(1).await;
    assert_eq!(kept.asked(), [0]);
}

#[tokio::test(start_paused = true)]
async fn the_way_that_led_to_a_certificate_is_the_first_one_also_after_a_restart() {
    let by = [ChallengeWay::TlsAlpn, ChallengeWay::Http];
    let given = || Answer::Gives(&["h.example"], 3);
    let kept = Rig {
        ways: by.to_vec(),
        ..Rig::new(vec![unproven("nobody at 443"), given(), given(), given()])
    };
    let ways = || -> Vec<_> {
        kept.authority
            .asked
            .lock()
            .unwrap()
            .iter()
            .map(|(_, way)| *way)
            .collect()
    };
    kept.runs(60).await;
    assert_eq!(ways(), [by[0], by[1]]);
    kept.runs(2 * DAY).await;
    assert_eq!(ways(), [by[0], by[1], by[1]]);
    // A note that cannot be read is none.
    fs::write(
        kept.place.path().join("ca.example-dir/challenge.txt"),
        "dns-01",
    )
    .unwrap();
    kept.runs(2 * DAY).await;
    assert_eq!(ways(), [by[0], by[1], by[1], by[0]]);
}

#[tokio::test(start_paused = true)]
async fn what_was_never_ordered_counts_as_no_order() {
    let fault = AcmeFault {
        step: OrderStep::Account,
        ..AcmeFault::of_authority("nobody is there")
    };
    let kept = Rig::new(vec![Answer::Fails(fault); 20]);
    kept.runs(3 * HOUR).await;
    assert_eq!(kept.asked()[..7], [0, 60, 180, 420, 900, 1860, 3780]);
    // Nor over restarts.
    let before = kept.asked().len();
    for _ in 0..6 {
        kept.runs(10).await;
    }
    assert_eq!(kept.asked().len(), before + 6);
}

#[tokio::test(start_paused = true)]
async fn an_authority_that_wants_to_be_left_alone_is() {
    let fault = |secs| AcmeFault {
        wait: Some(Duration::from_secs(secs)),
        ..AcmeFault::ours("too many")
    };
    let answers = vec![
        Answer::Fails(fault(5 * HOUR)),
        Answer::Fails(fault(u64::MAX / 2)),
    ];
    let kept = Rig::new(answers);
    kept.runs(30 * DAY).await;
    assert_eq!(kept.asked()[..3], [0, 5 * HOUR, 5 * HOUR + 7 * DAY]);
}

#[tokio::test(start_paused = true)]
async fn a_kept_certificate_that_will_not_do_is_replaced() {
    let other: &[&str] = &["other.example"];
    for (before, is_shown) in [
        (pem(other, BEGIN, 90), true),
        (pem(&["h.example"], BEGIN, 0), true),
        ("no certificate".to_owned(), false),
    ] {
        let kept = Rig::new(vec![Answer::Gives(&["h.example"], 90)]);
        kept.open().await;
        fs::write(kept.certificate(), before).unwrap();
        assert_eq!(
            kept.open().await.parts.watch.state().expires_at.is_some(),
            is_shown
        );
        let state = kept.runs(1).await;
        assert_eq!(
            (kept.asked(), state.expires_at),
            (vec![0], Some(BEGIN + 90 * DAY))
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_certificate_for_other_names_or_another_time_is_not_taken() {
    for (answer, part) in [
        (
            Answer::Gives(&["other.example"], 90),
            "it is for other names",
        ),
        (
            Answer::Gives(&["h.example"], 0),
            "is the clock of this machine right?",
        ),
    ] {
        let kept = Rig::new(vec![answer]);
        let state = kept.runs(1).await;
        assert!(state.fault.unwrap().text.contains(part));
        assert!(state.expires_at.is_none() && !kept.certificate().exists());
    }
}

#[tokio::test(start_paused = true)]
async fn nothing_is_ordered_that_cannot_be_counted() {
    let kept = Rig::new(vec![Answer::Gives(&["h.example"], 90)]);
    let keeper = kept.open().await;
    fs::remove_dir_all(kept.place.path().join("ca.example-dir")).unwrap();
    let (watch, stop) = (keeper.parts.watch.clone(), CancellationToken::new());
    let task = tokio::spawn(keeper.run(stop.clone()));
    sleep(Duration::from_secs(1)).await;
    stop.cancel();
    task.await.unwrap();
    let fault = watch.state().fault.unwrap();
    assert!(
        fault.whose == Fault::Ours && fault.text.contains("orders cannot be counted"),
        "{fault}"
    );
    assert_eq!(kept.asked(), [0; 0]);
}

#[tokio::test(start_paused = true)]
async fn a_certificate_before_its_time_replaces_none_that_holds_and_is_better_than_none() {
    let (names, day): (&[&str], _) = (&["h.example"], BEGIN + DAY);
    // The one in use holds for 90 days; after two thirds one is given that begins a day later.
    let kept = Rig::new(vec![Answer::Early(names, 1, 90), Answer::Gives(names, 90)]);
    kept.open().await;
    fs::write(kept.certificate(), pem(names, BEGIN, 90)).unwrap();
    let state = kept.runs(59 * DAY).await;
    assert_eq!(
        (state.expires_at, kept.asked().len()),
        (Some(BEGIN + 90 * DAY), 1)
    );
    let fault = state.fault.unwrap();
    assert!(
        fault.whose == Fault::Ours && fault.text.contains("stays in use; is the clock"),
        "{fault}"
    );
    let state = kept.runs(2 * DAY).await;
    assert!(state.fault.is_none() && state.expires_at > Some(BEGIN + 140 * DAY));
    // Where there is none, or none that holds, it is taken, and not asked for again.
    for before in [None, Some(pem(names, BEGIN, 0)), Some(pem(names, day, 90))] {
        let kept = Rig::new(vec![Answer::Early(names, 1, 90)]);
        let logged = Logged::begin();
        kept.open().await;
        if let Some(before) = before {
            fs::write(kept.certificate(), before).unwrap();
        }
        let state = kept.runs(HOUR).await;
        assert_eq!(
            (state.expires_at, state.fault),
            (Some(day + 90 * DAY), None)
        );
        assert!(
            logged
                .text()
                .contains("holds from 2026-11-02T00:00:00Z on, and is in use all the same")
        );
        assert!(kept.asked().len() <= 1);
    }
}

#[tokio::test(start_paused = true)]
async fn the_words_of_an_authority_are_one_line_of_the_log() {
    let text = format!("no\n2026-11-01 ERROR {}", "x".repeat(100_000));
    let kept = Rig::new(vec![Answer::Fails(AcmeFault::of_authority(text))]);
    let logged = Logged::begin();
    let fault = kept.runs(1).await.fault.unwrap();
    assert!(fault.text.starts_with("no 2026-11-01 ERROR xxx") && fault.text.len() < 2_000);
    assert!(
        logged
            .text()
            .lines()
            .all(|line| line.len() < 3_000 && !line.starts_with("2026-11-01 ERROR"))
    );
}

#[tokio::test(start_paused = true)]
async fn a_node_that_takes_over_goes_on_with_what_the_one_before_kept() {
    let rig = Rig::new(vec![Answer::Gives(&["h.example"], 90)]);
    let table = Table::default();
    let open = async || CertificateKeeper::open(rig.parts(table.kept("0f"))).await;
    let state = runs(open().await.unwrap(), 60).await;
    assert_eq!(state.expires_at, Some(BEGIN + 90 * DAY));
    // It ended in an order, and the next one asks nobody.
    let left = OpenChallenge::Document {
        token: "t".into(),
        document: "t.x".into(),
    };
    table.kept("0f").open_challenges(&[left]).await.unwrap();
    let state = runs(open().await.unwrap(), 60).await;
    assert_eq!(state.expires_at, Some(BEGIN + 90 * DAY));
    assert_eq!(rig.asked(), [0]);
    assert_eq!(table.kept("0f").challenges().await.unwrap(), []);
}

#[tokio::test(start_paused = true)]
async fn a_certificate_that_could_not_be_kept_is_kept_as_soon_as_that_succeeds() {
    let rig = Rig::new(vec![Answer::Gives(&["h.example"], 90)]);
    let table = Table::default();
    *crate::locks::lock(&table.refusals) = 2;
    let open = async || CertificateKeeper::open(rig.parts(table.kept("0f"))).await;
    let keeper = open().await.unwrap();
    let (watch, stop) = (keeper.parts.watch.clone(), CancellationToken::new());
    let task = tokio::spawn(keeper.run(stop.clone()));
    sleep(Duration::from_secs(90)).await;
    let fault = watch.state().fault.unwrap();
    assert!(fault.text.contains("try again in 60 s"), "{fault}");
    sleep(Duration::from_secs(60)).await;
    assert_eq!(watch.state().fault, None);
    stop.cancel();
    task.await.unwrap();
    let state = runs(open().await.unwrap(), 60).await;
    assert_eq!((state.fault, rig.asked()), (None, vec![0]));
}
