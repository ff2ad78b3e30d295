//! A writer killed at any instant leaves a file that opens at once and holds all that it had
//! answered; one process, real time.

use super::content::{START, clock, commit, id, put, register, whole};
use everfeed::{
    feed::{order::Order, reconcile::PutKind, schedule::PollState},
    store::{
        redb::{Config, Redb},
        traits::*,
    },
};
use redb::Builder;
use std::{
    env,
    io::{BufRead as _, BufReader, Write as _},
    path::PathBuf,
    process::{Command, Stdio},
};

/// Tells the child process where to write.
const PATH: &str = "EVERFEED_TEST_STORE";

/// Changes that the child answers before it is killed, run by run.
const ANSWERS: [u32; 4] = [0, 1, 7, 40];

#[tokio::test]
async fn a_killed_writer_leaves_everything_that_it_had_answered() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store.redb");
    let mut answered = 0;
    for answers in ANSWERS {
        answered = child_killed(&path, "write_until_killed", answers).max(answered);
        // No walk over the whole file is needed: redb would ask for leave, and be refused.
        let mut builder = Builder::new();
        builder.set_repair_callback(|repair| repair.abort());
        drop(builder.open(&path).unwrap());
        let store = Redb::open(&path, &Config::default(), clock()).unwrap();
        let feed = register(&store).await;
        let page = store.page(whole(feed.no, Order::MODIFIED)).await.unwrap();
        let held = u32::try_from(page.items.len()).unwrap();
        assert!(
            (answered..=answered + 1).contains(&held),
            "{held} of {answered} are there"
        );
        for (n, item) in (1..).zip(&page.items) {
            assert_eq!(
                (item.id, item.modified.micros()),
                (id(n), START.micros() + u64::from(n) - 1)
            );
        }
        assert_eq!(
            (feed.rev, feed.items.total),
            (u64::from(held), u64::from(held)),
            "a commit is whole"
        );
        let polls = store.polls(None, 9).await.unwrap();
        assert_eq!(
            polls.first().map_or(0, |(_, poll)| poll.health.failures),
            held
        );
        store.close().await.unwrap();
    }
}

/// Lets a child process write until it has given so many answers, and kills it at the next instant.
/// How far it came.
fn child_killed(path: &PathBuf, child: &str, answers: u32) -> u32 {
    let mut child = Command::new(env::current_exe().unwrap())
        .args([
            "--exact",
            &format!("store_files::kill::{child}"),
            "--ignored",
            "--nocapture",
        ])
        .env(PATH, path)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap())
        .lines()
        .map_while(Result::ok);
    let mut last = 0;
    let mut said = |line: String| {
        let number = line
            .strip_prefix("answered ")
            .and_then(|number| number.parse().ok());
        last = number.unwrap_or(last);
        number.is_some()
    };
    // The first line only says that the store is open.
    let mut heard = 0;
    while heard <= answers {
        heard += u32::from(said(
            lines.next().expect("the child writes until it is killed"),
        ));
    }
    child.kill().unwrap();
    for line in lines {
        said(line);
    }
    child.wait().unwrap();
    last
}

#[tokio::test]
async fn a_kill_takes_back_polls_of_the_last_seconds_and_nothing_else() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store.redb");
    let mut answered = 0;
    for answers in [3, 30] {
        answered = child_killed(&path, "note_until_killed", answers).max(answered);
        let store = Redb::open(&path, &Config::default(), clock()).unwrap();
        let feed = register(&store).await;
        let total = u32::try_from(feed.items.total).unwrap();
        assert!(
            total > answered / POLLS_A_COMMIT,
            "{total} items are there of {answered} polls"
        );
        let poll = store.poll(feed.no).await.unwrap().unwrap();
        let failures = poll.health.failures;
        // A commit carries its own state.
        let committed = (total - 1) * POLLS_A_COMMIT;
        assert!(
            (committed..committed + POLLS_A_COMMIT).contains(&failures),
            "{failures} polls, {committed} with the last commit"
        );
        store.close().await.unwrap();
    }
}

/// Polls for each commit in the child process.
const POLLS_A_COMMIT: u32 = 5;

#[tokio::test]
#[ignore = "the child process of the test above"]
async fn note_until_killed() {
    let Some(path) = env::var_os(PATH).map(PathBuf::from) else {
        eprintln!("skipped: {PATH} is not set");
        return;
    };
    let store = Redb::open(&path, &Config::default(), clock()).unwrap();
    let mut feed = register(&store).await;
    // On from the last commit.
    let mut polls = match u32::try_from(feed.items.total).unwrap() {
        0 => 0,
        total => (total - 1) * POLLS_A_COMMIT + 1,
    };
    loop {
        let mut state = PollState::default();
        state.health.failures = polls;
        if polls.is_multiple_of(POLLS_A_COMMIT) {
            let mut next = commit(&feed, vec![put(PutKind::Added, polls + 1)]);
            next.poll = Some(state);
            feed = store.commit(next).await.unwrap().feed;
        } else {
            store.note_polls(vec![(feed.no, state)]).await.unwrap();
        }
        let mut out = std::io::stdout().lock();
        writeln!(out, "\nanswered {polls}").unwrap();
        out.flush().unwrap();
        polls += 1;
    }
}

#[tokio::test]
#[ignore = "the child process of the first test"]
async fn write_until_killed() {
    let Some(path) = env::var_os(PATH).map(PathBuf::from) else {
        eprintln!("skipped: {PATH} is not set");
        return;
    };
    let store = Redb::open(&path, &Config::default(), clock()).unwrap();
    let mut feed = register(&store).await;
    loop {
        let answered = u32::try_from(feed.items.total).unwrap();
        let mut out = std::io::stdout().lock();
        writeln!(out, "\nanswered {answered}").unwrap();
        out.flush().unwrap();
        drop(out);
        let mut next = commit(&feed, vec![put(PutKind::Added, answered + 1)]);
        next.poll = Some({
            let mut state = PollState::default();
            state.health.failures = answered + 1;
            state
        });
        feed = store.commit(next).await.unwrap().feed;
    }
}
