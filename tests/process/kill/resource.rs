//! A subscriber of a resource that does what the seed says of synchronisation (L, prev, a pull on a
//! mismatch), loses, doubles, delays and cuts pushes, and ends with what its publisher shows, however
//! often everfeed is killed. Rows: SF-93, X-1, X-11.

use crate::EVERFEED;
use rand::{RngExt as _, SeedableRng as _, rngs::StdRng};
use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};
use testkit::{
    client,
    place::{Place, feed},
    publisher::{Answer, Asked, Publisher, ok, with_headers},
};

/// Kills in one run. After each the process waits some seconds before it polls, as after every
/// unclean end, so that a version takes as long as three did without that.
const KILLS: usize = 8;

/// The knowledge of the subscriber.
#[derive(Default)]
struct Known {
    /// The bytes that it holds.
    held: Vec<u8>,
    /// The cursor L.
    last: String,
    breaks: usize,
    pushes: usize,
    lost: usize,
}

impl Known {
    /// Takes a push by the rule of the seed.
    fn take(&mut self, push: &Asked) {
        let (prev, last) = (
            push.header("smart-feed-prev"),
            push.header("smart-feed-last"),
        );
        assert_eq!(push.header("x-http-method-override"), "PUT");
        self.pushes += 1;
        if prev != self.last && last != self.last && !self.last.is_empty() {
            // The pull of the seed: a push of a resource is all there is to read.
            self.breaks += 1;
        }
        self.held.clone_from(&push.body);
        last.clone_into(&mut self.last);
    }
}

fn answer(asked: &Asked, known: &Mutex<Known>, chance: &mut StdRng, is_calm: bool) -> Answer {
    let challenge = asked.path().split("hub.challenge=").nth(1);
    if let Some(challenge) = challenge.and_then(|rest| rest.split('&').next()) {
        let headers = [("content-type", "text/plain"), ("x-hub-methods", "PUT")];
        return with_headers(200, &headers, challenge);
    }
    let mut known = known.lock().unwrap();
    let mood = chance.random_range(0..8);
    if mood == 0 && !is_calm {
        // Lost behind the callback.
        known.lost += 1;
        return with_headers(204, &[], "");
    }
    if mood == 1 && !is_calm {
        return with_headers(503, &[("retry-after", "1")], "");
    }
    known.take(asked);
    match mood {
        // Taken, and the answer cut: it comes twice.
        2 => {
            known.lost += 1;
            Answer::Bytes(b"HTTP/1.1 20".to_vec())
        }
        3 => with_headers(204, &[], "").after(Duration::from_millis(300)),
        _ => with_headers(204, &[], ""),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_subscriber_of_a_resource_ends_with_what_is_shown_however_often_it_is_killed() {
    let mut chance = StdRng::seed_from_u64(7);
    let version = Arc::new(AtomicUsize::new(0));
    let shown = version.clone();
    let publisher = Publisher::of(move |_| {
        ok(
            "text/x-note",
            format!("version {}", shown.load(Ordering::Relaxed)),
        )
    })
    .await;
    let known: Arc<Mutex<Known>> = Arc::default();
    let (takes, mut moods) = (known.clone(), StdRng::seed_from_u64(8));
    let calm = Arc::new(AtomicBool::new(false));
    let is_calm = calm.clone();
    let callback = Publisher::of(move |asked| {
        answer(asked, &takes, &mut moods, is_calm.load(Ordering::Relaxed))
    })
    .await;
    let place = Place::free();
    let settings = "format = \"resource\"\npoll = { min_secs = 1, max_secs = 1 }";
    let resource = feed("note", &publisher.url("/note"), settings);
    place.configure("", &format!("{resource}[hub]\ncallbacks_private = true\n"));
    let start = || place.start(&mut place.command(EVERFEED, &["serve"]));
    let mut everfeed = start();
    place.answers("/feeds/note.json", 200).await;
    let form = format!(
        "hub.mode=subscribe&hub.verify=sync&hub.methods=override&hub.topic={}&hub.callback={}",
        publisher.url("/note"),
        callback.url("/cb")
    );
    let headers = [("content-type", "application/x-www-form-urlencoded")];
    let asked = client::ask(place.consumers, http::Method::POST, "/hub", &headers, &form).await;
    assert_eq!(asked.unwrap().status, 204);
    for n in 1..=KILLS {
        version.store(n, Ordering::Relaxed);
        tokio::time::sleep(Duration::from_millis(chance.random_range(2500..5000))).await;
        everfeed.kill();
        everfeed = start();
        place.answers("/feeds/note.json", 200).await;
    }
    // From here on nothing is lost: what comes last has to come.
    calm.store(true, Ordering::Relaxed);
    version.store(KILLS + 1, Ordering::Relaxed);
    let truth = format!("version {}", KILLS + 1);
    place
        .until("the subscriber holds the last version", async || {
            known.lock().unwrap().held == truth.as_bytes()
        })
        .await;
    let page = place.ask("/feeds/note.json?order=-modified&max=1").await;
    let page: serde_json::Value = serde_json::from_slice(&page.unwrap().body).unwrap();
    let known = known.lock().unwrap();
    assert_eq!(page["last_cursor"], known.last.as_str(), "L is the head");
    assert!(known.pushes >= KILLS / 2, "{} pushes", known.pushes);
    println!(
        "{} pushes, {} lost, {} breaks",
        known.pushes, known.lost, known.breaks
    );
    // A break is seen only where a push, or its answer, was lost, or everfeed was killed in between.
    assert!(known.breaks <= known.lost + KILLS);
}
