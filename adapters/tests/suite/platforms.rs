//! The platform profiles against documents in the shape of each platform's output.
//!
//! A fixture is `adapters/tests/platforms/NAME-*.xml`; NAME is the profile that must be recognised.
//! A comment in the file, which is taken out before the document is read, holds one `Description:`
//! line and any number of these: `Url: URL` and `Header: NAME: VALUE` say how the document came;
//! `Expect: PATH = JSON` is as in the other fixtures, on `platform`, `why`, `weight`, `generator`,
//! `head`, `entries.N.(id, stable, published, updated, ...)`; `Churn: JSON -> JSON` replaces a text
//! by another and must change no content digest, though it would without the profile;
//! `Still: JSON -> JSON` must change none either way; `Edit: JSON -> JSON` must change one.

use everfeed_adapters::{
    Body, Digest, Entry, Hints, Key, SlicedDocument, Text,
    platforms::{
        Complete, GENERIC, IdSource, Platforms, Profile, Traces, Weight, content_digest,
        digest_version,
    },
    slice,
};
use serde_json::{Value, json};
use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    sync::Arc,
};

struct Fixture {
    name: String,
    /// The lines of its comment.
    says: Vec<String>,
    document: String,
    url: Option<String>,
    headers: Vec<(String, String)>,
}

impl Fixture {
    fn read(path: &Path) -> Self {
        let text = std::fs::read_to_string(path).unwrap();
        let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
        let start = text
            .find("<!--\nDescription: ")
            .unwrap_or_else(|| panic!("{name} says nothing"));
        let end = start + text[start..].find("-->\n").unwrap() + 4;
        let says: Vec<String> = text[start..end].lines().map(str::to_owned).collect();
        let said = |what: &str| {
            says.iter()
                .filter_map(|line| line.strip_prefix(what))
                .collect::<Vec<_>>()
        };
        let url = said("Url: ").first().map(|url| (*url).to_owned());
        let headers = said("Header: ").into_iter().map(|line| {
            let (name, value) = line.split_once(": ").unwrap();
            (name.to_owned(), value.to_owned())
        });
        let headers = headers.collect();
        let document = format!("{}{}", &text[..start], &text[end..]);
        Self {
            name,
            says,
            document,
            url,
            headers,
        }
    }

    /// The platform that its name stands for.
    fn platform(&self) -> &str {
        self.name.split('-').next().unwrap()
    }

    fn profile(&self) -> &Arc<Profile> {
        Platforms::embedded()
            .get(self.platform())
            .unwrap_or_else(|| panic!("{}: no such profile", self.name))
    }

    fn sliced(&self) -> SlicedDocument {
        self.slice(&self.document)
    }

    fn slice(&self, document: &str) -> SlicedDocument {
        let base_url = self
            .url
            .as_deref()
            .or(Some("http://example.org/fixture.xml"));
        let hints = Hints {
            base_url,
            ..Hints::default()
        };
        slice(document.as_bytes(), &hints).unwrap_or_else(|error| panic!("{}: {error}", self.name))
    }

    fn with_traces<T>(&self, sliced: &SlicedDocument, look: impl FnOnce(&Traces<'_>) -> T) -> T {
        let headers: Vec<(&str, &str)> = self
            .headers
            .iter()
            .map(|(a, b)| (a.as_str(), b.as_str()))
            .collect();
        look(&Traces {
            document: sliced,
            url: self.url.as_deref(),
            headers: &headers,
        })
    }

    fn said(&self, what: &str) -> impl Iterator<Item = &str> {
        self.says
            .iter()
            .filter_map(move |line| line.strip_prefix(what))
    }

    /// The document with `"this" -> "that"` done.
    fn altered(&self, change: &str) -> String {
        let (old, new) = change
            .split_once(" -> ")
            .unwrap_or_else(|| panic!("{}: {change}", self.name));
        let text = |json: &str| {
            serde_json::from_str::<String>(json).unwrap_or_else(|e| panic!("{json}: {e}"))
        };
        let altered = self.document.replace(&text(old), &text(new));
        assert_ne!(
            altered, self.document,
            "{}: {change} changes nothing",
            self.name
        );
        altered
    }
}

fn fixtures() -> Vec<Fixture> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/platforms");
    let mut paths: Vec<_> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    paths.sort();
    paths.iter().map(|path| Fixture::read(path)).collect()
}

fn entries(sliced: &SlicedDocument) -> Vec<Entry> {
    sliced.entries.iter().map(|raw| raw.parse().0).collect()
}

fn digests(sliced: &SlicedDocument, profile: Option<&Profile>) -> Vec<Digest> {
    entries(sliced)
        .iter()
        .map(|entry| content_digest(entry, profile))
        .collect()
}

/// Subject of a fixture's expectations.
fn told(fixture: &Fixture, sliced: &SlicedDocument) -> Value {
    let found = fixture.with_traces(sliced, |traces| Platforms::embedded().detect(traces));
    let pattern = &fixture.profile().ids.pattern;
    let entries = sliced.entries.iter().map(|raw| {
        let (entry, notes) = raw.parse();
        let stable = pattern
            .as_ref()
            .and_then(|pattern| pattern.stable(entry.id.as_deref()?));
        let mut value = json!({ "key": raw.key, "stable": stable, "notes": notes });
        value.as_object_mut().unwrap().extend(
            serde_json::to_value(&entry)
                .unwrap()
                .as_object()
                .unwrap()
                .clone(),
        );
        value
    });
    json!({
        "generator": sliced.metadata.generator.as_ref().map(ToString::to_string),
        "platform": found.platform, "why": found.why, "weight": found.weight,
        "format": sliced.format, "head": sliced.metadata, "entries": entries.collect::<Vec<_>>(), "notes": sliced.notes,
    })
}

#[test]
fn every_fixture_is_recognised_and_reads_as_it_says() {
    let fixtures = fixtures();
    let mut failures = Vec::new();
    for fixture in &fixtures {
        let told = told(fixture, &fixture.sliced());
        let mut check = |path: &str, expect: &Value| {
            let found = super::fixtures::find(&told, path);
            if *found != *expect {
                failures.push(format!(
                    "{}: {path} is {found} instead of {expect}",
                    fixture.name
                ));
            }
        };
        check("platform", &json!(fixture.platform()));
        assert!(
            fixture.said("Expect: why = ").count() == 1,
            "{} does not say why",
            fixture.name
        );
        for line in fixture.said("Expect: ") {
            let (path, expect) = line.split_once(" = ").unwrap();
            check(
                path,
                &serde_json::from_str(expect).unwrap_or_else(|error| panic!("{line}: {error}")),
            );
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

#[test]
fn churn_changes_no_digest_and_an_edit_changes_one() {
    let (mut times, mut failures) = (0, Vec::new());
    for fixture in fixtures() {
        let profile = Some(&**fixture.profile());
        let sliced = fixture.sliced();
        // Whether each kind of change is to change a digest: with the profile, and without.
        for (kind, scrubbed, plain) in [
            ("Churn: ", false, true),
            ("Still: ", false, false),
            ("Edit: ", true, true),
        ] {
            for change in fixture.said(kind) {
                let changed = fixture.slice(&fixture.altered(change));
                let differ = |profile| digests(&sliced, profile) != digests(&changed, profile);
                if (differ(profile), differ(None)) != (scrubbed, plain) {
                    failures.push(format!(
                        "{}: {kind}{change}: {} {}",
                        fixture.name,
                        differ(profile),
                        differ(None)
                    ));
                }
                times += 1;
            }
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
    assert!(times >= 10, "{times}");
}

#[test]
fn every_sign_and_every_scrubber_is_shown_by_a_fixture() {
    let mut of: BTreeMap<String, Vec<Fixture>> = BTreeMap::new();
    for fixture in fixtures() {
        of.entry(fixture.platform().to_owned())
            .or_default()
            .push(fixture);
    }
    let mut missing = Vec::new();
    for profile in Platforms::embedded().iter() {
        let fixtures = of.get(&profile.name).map(Vec::as_slice).unwrap_or_default();
        let windows: Vec<_> = fixtures.iter().map(Fixture::sliced).collect();
        if fixtures.is_empty() {
            missing.push(format!("{} has no fixture", profile.name));
            continue;
        }
        for sign in &profile.detect {
            let mut pairs = fixtures.iter().zip(&windows);
            if !pairs
                .any(|(fixture, sliced)| fixture.with_traces(sliced, |traces| sign.shows(traces)))
            {
                missing.push(format!(
                    "{}: no fixture shows that {}",
                    profile.name, sign.why
                ));
            }
        }
        let entries: Vec<Entry> = windows.iter().flat_map(entries).collect();
        for scrub in &profile.scrub {
            if !entries.iter().any(|entry| scrub.finds(entry)) {
                missing.push(format!("{}: no fixture holds {}", profile.name, scrub.why));
            }
        }
    }
    assert!(missing.is_empty(), "{}", missing.join("\n"));
}

#[test]
fn the_ids_of_every_fixture_have_the_shape_that_its_profile_knows() {
    for fixture in fixtures() {
        let ids = &fixture.profile().ids;
        let (Some(pattern), IdSource::Id) = (&ids.pattern, ids.from) else {
            continue;
        };
        for raw in &fixture.sliced().entries {
            let Key::Id(id) = &raw.key else { continue };
            let known = pattern.is_match(id)
                || ids
                    .comment
                    .as_ref()
                    .is_some_and(|comment| comment.is_match(id));
            assert!(known, "{}: {id}", fixture.name);
        }
    }
}

#[test]
fn every_file_of_the_folder_is_embedded() {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("platforms");
    let files = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name());
    let mut names: Vec<String> = files
        .filter_map(|file| file.to_str()?.strip_suffix(".toml").map(str::to_owned))
        .collect();
    names.sort();
    let embedded: Vec<&str> = Platforms::embedded()
        .iter()
        .map(|profile| profile.name.as_str())
        .collect();
    assert_eq!(names, embedded, "the list in src/platforms/embedded.rs");
}

/// The smallest profile that will do, with more lines.
fn profile(more: &str) -> String {
    format!(
        "title = \"T\"\nsources = [\"s\"]\n{more}\n[[detect]]\ngenerator = '^T$'\nwhy = \"w\"\n"
    )
}

fn refused(file: &str, text: &str) -> String {
    Platforms::with([(file, text)])
        .map(|_| ())
        .unwrap_err()
        .to_string()
}

#[test]
fn what_cannot_be_meant_is_refused_with_file_and_key() {
    let check = |more: &str, expect: &str| {
        let error = refused("mine.toml", &profile(more));
        assert!(
            error.starts_with("mine.toml: ") && error.contains(expect),
            "{more}: {error}"
        );
        assert!(!error.contains('\n'), "{error}");
    };
    Platforms::with([("mine.toml", profile(""))]).unwrap();
    check("colour = 1", "colour: unknown field `colour`");
    check("window = 0", "window: no entry at all");
    check("order = \"random\"", "order: unknown variant `random`");
    check("window = \"ten\"", "window: invalid type");
    check("= 3", "line 3: ");
    check(
        "event_log = true\ncomplete = \"total\"",
        "complete: what leaves an event log is not deleted",
    );
    check(
        "deletions = { confirmations_min = 1 }",
        "deletions.confirmations_min: a profile never lowers",
    );
    check(
        "http = { validators = \"none\", hides_deletes = true }",
        "http.hides_deletes: without validators",
    );
    check(
        "http = { validators = \"etag\", send_both_validators = true }",
        "http.send_both_validators: ",
    );
    check(
        "http = { validators = \"none\", conditional = \"delta\" }",
        "http.conditional: ",
    );
    check("http = { min_gap_secs = 0 }", "http.min_gap_secs: ");
    check(
        "feeds = { posts = [\"/a\", \"b\"] }",
        "feeds.posts[1]: `b` begins with neither",
    );
    check(
        "feeds = { posts = [\"/{nobody}\"] }",
        "feeds.posts[0]: `{nobody}` is none of",
    );
    check("ids = { pattern = '(' }", "ids.pattern: `(` is no pattern");
    check(
        "ids = { pattern = 'a*' }",
        "ids.pattern: `a*` matches the empty text",
    );
    check(
        "ids = { pattern = '^a$', examples = [\"a\", \"b\"] }",
        "ids.examples[1]: `b` does not match",
    );
    check(
        "[[history]]\nbackwards = {}",
        "history[0]: unknown variant `backwards`",
    );
    check(
        "[[history]]\npage = { param = \"p&q\", start = 2, end = [\"empty\"] }",
        "history[0].page.param: ",
    );
    check(
        "[[history]]\npage = { param = \"p\", start = 2, end = [] }",
        "history[0].page.end: ",
    );
    check(
        "[[history]]\npath = { template = \"/rss/\", start = 2, end = [\"empty\"] }",
        "history[0].path.template: ",
    );
    check("[[scrub]]\nwhy = \"w\"", "scrub[0]: give exactly one of");
    check(
        "[[scrub]]\nwhy = \"w\"\ncut = 'x'\nimages = 'y'",
        "scrub[0]: give exactly one of",
    );
    check(
        "[[scrub]]\nwhy = \"w\"\nimages = 'x'\nin = [\"title\"]",
        "scrub[0]: `in` says where to `cut`",
    );
    check(
        "[[scrub]]\nwhy = \"w\"\nimages = '['",
        "scrub[0].images: `[` is no pattern",
    );
    check("[[detect]]\nwhy = \"w\"", "detect[0]: give exactly one of");
    check(
        "pings = { hub = \"nowhere\" }",
        "pings.hub: `nowhere` is neither",
    );
    let weak =
        "title = \"T\"\nsources = [\"s\"]\n[[detect]]\nurl = 'x'\nweight = \"weak\"\nwhy = \"w\"\n";
    assert!(refused("mine.toml", weak).contains("detect: one weak sign recognises nothing"));
    assert!(refused("mine.toml", "sources = [\"s\"]").contains("the file: missing field `title`"));
    assert!(refused("My File.toml", &profile("")).starts_with("My File.toml: the file's name: "));
    assert!(refused("auto.toml", &profile("")).contains("the file's name"));
    assert!(
        refused("generic.toml", &profile(""))
            .contains("detect: this is the profile of what shows no platform")
    );
    assert!(refused("mine.toml", &"#\n".repeat(64 * 1024)).contains("bytes"));
}

#[test]
fn a_users_file_replaces_the_one_of_its_name_and_adds_to_the_rest() {
    let own = profile("window = 3");
    let platforms =
        Platforms::with([("wordpress.toml", own.as_str()), ("mine.toml", &own)]).unwrap();
    assert_eq!(platforms.get("wordpress").unwrap().window, Some(3));
    assert_eq!(platforms.get("mine").unwrap().title, "T");
    assert!(platforms.get("blogger").is_some());
    assert_eq!(
        Platforms::embedded().get("wordpress").unwrap().window,
        Some(10)
    );
    let versions = [
        platforms.get("wordpress"),
        Platforms::embedded().get("wordpress"),
        None,
    ];
    let [a, b, none] = versions.map(|profile| digest_version(profile.map(|profile| &**profile)));
    assert!(a != b && none == u32::from(everfeed_adapters::DIGEST_VERSION) && a > 255 && b > 255);
}

#[test]
fn the_schema_that_the_readme_explains_is_the_schema() {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("platforms/README.md");
    let text = std::fs::read_to_string(path).unwrap();
    let (_, example) = text.split_once("```toml\n").unwrap();
    let (example, _) = example.split_once("```\n").unwrap();
    let platforms =
        Platforms::with([("example.toml", example)]).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(
        platforms.get("example").unwrap().history.len(),
        8,
        "one of each recipe"
    );
}

/// An RSS document with these lines in its head.
fn rss(head: &str, guid: &str) -> SlicedDocument {
    let text = format!(
        "<rss version=\"2.0\"><channel><title>t</title>{head}<item><guid>{guid}</guid><link>http://h/1</link></item></channel></rss>"
    );
    slice(text.as_bytes(), &Hints::default()).unwrap()
}

#[test]
fn one_weak_sign_is_no_platform_and_two_of_different_kinds_are() {
    let platforms = Platforms::embedded();
    let guid = "http://h/?p=1";
    let sliced = rss("", guid);
    let alone = platforms.detect(&Traces::of(&sliced));
    assert_eq!((alone.platform.as_str(), alone.weight), (GENERIC, None));
    let both = platforms.detect(&Traces {
        url: Some("http://h/feed/"),
        ..Traces::of(&sliced)
    });
    assert_eq!(
        (both.platform.as_str(), both.weight),
        ("wordpress", Some(Weight::Weak))
    );
    assert!(both.why.contains(", and "), "{}", both.why);
}

#[test]
fn what_was_recognised_stays_until_another_platform_is_certain() {
    let platforms = Platforms::embedded();
    let plain = rss("", "1");
    let first = platforms.detect(&Traces::of(&rss(
        "<generator>https://wordpress.org/?v=6.4</generator>",
        "1",
    )));
    let again = |sliced: &SlicedDocument| {
        platforms
            .detect_again(Some(&first), &Traces::of(sliced))
            .platform
    };
    assert_eq!(
        again(&plain),
        "wordpress",
        "a head without generator is no reason to scrub no more"
    );
    assert_eq!(
        again(&rss(
            "<generator>Serendipity 2.3 - http://www.s9y.org/</generator>",
            "1"
        )),
        "serendipity"
    );
    assert_eq!(
        platforms.detect_again(None, &Traces::of(&plain)).platform,
        GENERIC
    );
    let unknown = everfeed_adapters::platforms::Detected {
        platform: "removed".into(),
        ..first.clone()
    };
    assert_eq!(
        platforms
            .detect_again(Some(&unknown), &Traces::of(&plain))
            .platform,
        GENERIC
    );
}

#[test]
fn no_profile_takes_its_own_word_for_a_complete_feed_of_events() {
    for profile in Platforms::embedded().iter() {
        assert!(
            !profile.event_log || profile.complete == Complete::Never,
            "{}",
            profile.name
        );
        assert!(
            profile
                .deletions
                .confirmations_min
                .is_none_or(|min| min >= 2),
            "{}",
            profile.name
        );
    }
}

/// An entry whose content is this text.
fn saying(text: String) -> Entry {
    let content = Some(Body {
        text: Text::html(text),
        ..Body::default()
    });
    Entry {
        content,
        ..Entry::default()
    }
}

proptest::proptest! {
    #![proptest_config(proptest::test_runner::Config::with_cases(64))]

    #[test]
    fn scrubbing_anything_ends_and_what_is_left_was_there(
        words in proptest::collection::vec(proptest::sample::select(SOUP), 0..40),
    ) {
        let text = words.concat();
        let entry = saying(text.clone());
        for profile in Platforms::embedded().iter() {
            let once = profile.scrub(&entry);
            let left = &once.content.as_ref().unwrap().text.value;
            proptest::prop_assert!(is_left_of(left, &text), "{}: {text} -> {left}", profile.name);
        }
    }
}

/// True for a text that is another with parts taken out.
fn is_left_of(left: &str, whole: &str) -> bool {
    let mut rest = whole.chars();
    left.chars().all(|wanted| rest.any(|c| c == wanted))
}

const SOUP: &[&str] = &[
    "<",
    ">",
    "</",
    "/>",
    "<img src=\"http://feeds.feedburner.com/~r/b/~4/1\"",
    "<div class=\"feedflare\">",
    "</div>",
    "<div>",
    "é",
    "<a href=\"http://feeds.feedburner.com/~ff/b?d=1\">",
    "</a>",
    "<p>The post <a href=\"x\">x</a>",
    " appeared first on ",
    "</p>",
    "<p>Statistics: ",
    "<hr />",
    "<p><small>3 posts - 2 participants</small></p>",
    "<script",
    "</script>",
    "\"",
    "'",
    "&amp;",
    "<img width=1 height=1 >",
    "12 comments</a>",
    "<li class=\"comment_comments\">",
    "</li>",
    " ",
    "\n",
    "text",
];

#[test]
fn texts_made_to_be_slow_are_scrubbed_all_the_same() {
    for piece in SOUP {
        let entry = saying(piece.repeat(200_000 / piece.len()));
        for name in ["wordpress", "livejournal", "phpbb", "drupal"] {
            Platforms::embedded().get(name).unwrap().scrub(&entry);
        }
    }
}
