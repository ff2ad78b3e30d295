//! The explanation of why a feed was or was not polled.

use crate::app::explain::*;
use crate::{clock::Manual, feed::schedule::Pause, store::memory};

const AT: Stamp = Stamp::from_secs(1_780_272_000);
const CONFIG: &str = "[server]\npublic_url = \"http://feeds.example\"\n[store]\npath = \"x\"\n[[feed]]\nname = \"blog\"\n\
                      url = \"http://blog.example/rss\"\n";

/// The explanation when this host wants to be left alone for an hour: when the feed is polled next,
/// and why then.
async fn told(host: &str) -> (Option<String>, String) {
    let store: Arc<dyn Store> = Arc::new(memory::Memory::new(Arc::new(Manual::at(AT.micros()))));
    store.register("blog", "blog").await.unwrap();
    store
        .save_polls(
            Vec::new(),
            vec![(
                host.to_owned(),
                Pause {
                    until: AT.plus_secs(3600),
                    since: AT,
                },
            )],
        )
        .await
        .unwrap();
    let Config {
        feed: feeds,
        platforms,
        ..
    } = Config::parse("test", CONFIG).unwrap();
    let catalog = Catalog::new(crate::catalog::observe(&*store, feeds).await.unwrap());
    let explainer = Explainer {
        store,
        catalog,
        platforms: platforms.profiles(),
    };
    let poll = {
        let mut state = PollState::unpolled("http://blog.example/rss");
        state.timetable.next_at = AT;
        state.timetable.polled_at = Some(AT);
        state
    };
    let told = explainer
        .explain("blog", None, |_| Some(poll.clone()))
        .await
        .unwrap()
        .unwrap();
    (told.polling.next_at, told.polling.why)
}

#[tokio::test]
async fn a_feed_whose_host_wants_to_be_left_alone_says_until_when() {
    let (next_at, why) = told("blog.example").await;
    assert_eq!(next_at, Some(AT.plus_secs(3600).rfc3339()));
    assert!(
        why.ends_with("its host asked to be left alone until then"),
        "{why}"
    );
    let (next_at, why) = told("other.example").await;
    assert_eq!(next_at, Some(AT.rfc3339()));
    assert!(!why.contains("left alone"), "{why}");
}
