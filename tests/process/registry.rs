//! `everfeed feeds` beside a process that runs, and on a store that nobody serves; entries outlive a
//! kill, and come back with a backup.

use crate::EVERFEED;
use nix::sys::signal::Signal;
use testkit::{
    client::get,
    place::{Place, Running, Told, feed},
    publisher::{Publisher, rss},
};

/// A place, and the publisher of all feeds.
struct World {
    place: Place,
    publisher: Publisher,
}

impl World {
    async fn new(lines: &str) -> Self {
        let publisher = Publisher::start().await;
        publisher.says(rss(3));
        let place = Place::free();
        place.configure("", lines);
        Self { place, publisher }
    }

    fn feed(&self, name: &str, lines: &str) -> String {
        feed(name, &self.publisher.url(&format!("/{name}.xml")), lines)
    }

    fn serve(&self) -> Running {
        let mut serve = self.place.command(EVERFEED, &["serve"]);
        self.place.start(serve.env("RUST_LOG", "error"))
    }

    fn everfeed(&self, arguments: &[&str]) -> Told {
        self.place.run(EVERFEED, arguments)
    }

    /// Applies a file with this text.
    fn apply(&self, text: &str) -> Told {
        self.place.write("feeds.toml", text);
        let file = self.place.path("feeds.toml").display().to_string();
        self.everfeed(&["feeds", "apply", &file])
    }

    /// Names and sources of all feeds.
    fn sources(&self) -> Vec<String> {
        let told = self.everfeed(&["feeds", "list"]);
        assert_eq!(told.code, 0, "{told:?}");
        let rows = told.out.lines().skip(1);
        let words = rows.map(|row| row.split_whitespace().take(2).collect::<Vec<_>>().join(" "));
        words.collect()
    }

    async fn stop(&self, mut running: Running) {
        running.signal(Signal::SIGTERM);
        let ended = tokio::task::spawn_blocking(move || running.wait());
        assert!(ended.await.unwrap().success());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn feeds_are_applied_listed_and_removed_beside_a_process_and_without_one() {
    let world = World::new("").await;
    let refused = world.everfeed(&["check"]);
    assert!(
        refused.code == 64 && refused.err.contains("found no feed"),
        "{refused:?}"
    );
    let refused = world.everfeed(&["serve"]);
    assert!(
        refused.code == 64 && refused.err.contains("found no feed"),
        "{refused:?}"
    );
    assert!(!world.place.path("everfeed.redb").exists());

    // A file without a feed of its own serves what is registered.
    let applied = world.apply(&world.feed("one", ""));
    assert_eq!(
        (applied.code, applied.out.as_str()),
        (0, "added    feed.one\n")
    );
    let checked = world.everfeed(&["check"]);
    assert!(
        checked.code == 0 && checked.out.contains("registry    feeds: 1"),
        "{checked:?}"
    );
    assert!(!checked.out.contains("kept"), "{checked:?}");
    let mut running = world.serve();
    world.place.answers("/feeds/one.json", 200).await;

    let both = world.feed("one", "platform = \"none\"") + &world.feed("two", "");
    let applied = world.apply(&both);
    let told = "changed  feed.one.platform\nadded    feed.two\n";
    assert_eq!((applied.code, applied.out.as_str()), (0, told));
    let at_once = get(world.place.consumers, "/feeds/two.json").await.status;
    assert!(matches!(at_once, 200 | 503), "it is there: {at_once}");
    let again = world.apply(&both);
    assert_eq!(again.out, "same     feed.one\nsame     feed.two\n");
    let mistaken = world.apply(&format!("{both}[[feed]]\nname = \"three\"\nulr = \"x\"\n"));
    assert_eq!(mistaken.code, 64, "{mistaken:?}");
    for part in ["feeds.toml: line", "feed.three.ulr", "did you mean `url`?"] {
        assert!(mistaken.err.contains(part), "{part}: {mistaken:?}");
    }
    assert_eq!(world.sources(), ["one registry", "two registry"]);
    world.place.answers("/feeds/two.json", 200).await;
    let checked = world.everfeed(&["check"]);
    assert!(
        checked.code == 0 && !checked.out.contains("kept"),
        "{checked:?}"
    );

    // A kill loses nothing that was answered.
    running.kill();
    let mut running = world.serve();
    world.place.answers("/feeds/two.json", 200).await;
    let backup = world.place.path("backup.redb").display().to_string();
    assert_eq!(world.everfeed(&["backup", &backup]).code, 0);
    let removed = world.everfeed(&["feeds", "remove", "two"]);
    assert_eq!(removed.code, 0, "{removed:?}");
    world.place.answers("/feeds/two.json", 410).await;
    let refused = world.everfeed(&["feeds", "remove", "one"]);
    let is_last = refused.code == 64 && refused.err.contains("found no feed");
    assert!(is_last, "the next start would be refused: {refused:?}");
    assert_eq!(world.everfeed(&["feeds", "remove", "two"]).code, 1);
    world.stop(running).await;

    // On a store that nobody serves.
    assert_eq!(world.sources(), ["one registry"]);
    assert_eq!(world.everfeed(&["forget", "one"]).code, 1);
    assert_eq!(world.everfeed(&["restore", &backup]).code, 0);
    assert_eq!(world.sources(), ["one registry", "two registry"]);
    assert_eq!(world.everfeed(&["feeds", "remove", "two"]).code, 0);
    let file = world.feed("blog", "") + &world.feed("one", "");
    world.place.configure("", &file);
    // The feed of the file is served, and the entry is named with the remedy.
    let checked = world.everfeed(&["check"]);
    let told = "registry    the entry `one` is shadowed: the configuration file has a feed";
    assert!(
        checked.code == 0 && checked.out.contains(told),
        "{checked:?}"
    );
    running = world.serve();
    world.place.answers("/feeds/one.json", 200).await;
    let status = world.everfeed(&["status"]);
    assert!(
        status.code == 0 && status.out.contains("Run `everfeed feeds remove one`"),
        "{status:?}"
    );
    assert_eq!(world.everfeed(&["feeds", "remove", "one"]).code, 0);
    assert_eq!(world.sources(), ["blog file", "one file"]);
    let status = world.everfeed(&["status"]);
    assert!(!status.out.contains("shadowed"), "{status:?}");
    world.place.answers("/feeds/one.json", 200).await;
    world.stop(running).await;
}
