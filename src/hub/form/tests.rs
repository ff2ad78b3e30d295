//! Forms, good and bad.

use super::*;

const FORM: &str = "application/x-www-form-urlencoded";
const GOOD: &str =
    "hub.mode=subscribe&hub.topic=http%3A%2F%2Fh%2Ff&hub.callback=https%3A%2F%2Fs%2Fcb%3Fk%3D1";

fn asked(form: &str) -> Result<SubscriptionRequest, RefusedForm> {
    match parse(Some(FORM), form.as_bytes())? {
        HubRequest::SubscriptionRequest(change) => Ok(change),
        HubRequest::Publish(urls) => panic!("published {urls:?}"),
        HubRequest::Status(asked) => panic!("status {asked:?}"),
    }
}

/// The form is refused with this status, and the text names this parameter.
fn check_refused(form: &str, status: u16, name: &str) {
    let refusal = parse(Some(FORM), form.as_bytes()).expect_err(form);
    assert_eq!(refusal.status().as_u16(), status, "{form}: {refusal}");
    assert!(
        refusal.to_string().contains(name),
        "{form}: {refusal} names {name}"
    );
}

// HUB-1, W-1, W-3, HUB-5.
#[test]
fn a_request_needs_mode_topic_and_callback_and_what_else_it_carries_is_ignored() {
    let change = asked(&format!("{GOOD}&hub.colour=blue&foo=bar&&=")).unwrap();
    assert_eq!(
        (change.mode, change.callback.as_str()),
        (Mode::Subscribe, "https://s/cb?k=1")
    );
    assert_eq!(change.topics, ["http://h/f"]);
    assert_eq!(
        (change.verify, change.secret, change.lease, change.since),
        (None, None, None, None)
    );
    assert!(
        asked(&GOOD.replace("=subscribe", "=unsubscribe"))
            .unwrap()
            .mode
            == Mode::Unsubscribe
    );
}

// HUB-4, PUSH section 3: 400 naming the parameter.
#[test]
fn a_bad_parameter_is_named() {
    let without = |name: &str| {
        GOOD.split('&')
            .filter(|pair| !pair.starts_with(name))
            .collect::<Vec<_>>()
            .join("&")
    };
    for name in ["hub.mode", "hub.topic", "hub.callback"] {
        check_refused(&without(name), 400, name);
        check_refused(&format!("{}&{name}=", without(name)), 400, name);
        check_refused(&format!("{GOOD}&{name}=http%3A%2F%2Fother%2F"), 400, name);
        check_refused(&format!("{GOOD}&{name}=%ff"), 400, name);
    }
    check_refused("hub.mode=subverify", 400, "hub.mode");
    for url in [
        "%2Fcb",
        "ftp%3A%2F%2Fs%2F",
        "http%3A%2F%2Fs%2F%23x",
        "mailto%3Aa%40b",
        "http%3A%2F%2F",
        "x",
    ] {
        check_refused(
            &format!("{}&hub.callback={url}", without("hub.callback")),
            400,
            "hub.callback",
        );
        check_refused(
            &format!("{}&hub.topic={url}", without("hub.topic")),
            400,
            "hub.topic",
        );
    }
    for url in [
        "http%3A%2F%2Fa%3Ab%40s%2F",
        "http%3A%2F%2Fs%2Fa%20b",
        &format!("http://s/{}", "x".repeat(2048)),
    ] {
        check_refused(
            &format!("{}&hub.callback={url}", without("hub.callback")),
            400,
            "hub.callback",
        );
    }
    check_refused(&format!("{GOOD}&hub.verify=maybe"), 400, "hub.verify");
    check_refused(
        &format!("{GOOD}&hub.signature_algo=md5"),
        400,
        "hub.signature_algo",
    );
    check_refused(
        &format!("{GOOD}&hub.verify_token={}", "x".repeat(1025)),
        400,
        "hub.verify_token",
    );
}

// PUSH section 3.
#[test]
fn what_is_no_form_is_415_and_a_huge_one_413() {
    for content_type in [
        None,
        Some("application/json"),
        Some("multipart/form-data; boundary=x"),
    ] {
        assert_eq!(
            parse(content_type, GOOD.as_bytes()).unwrap_err().status(),
            415
        );
    }
    assert!(
        parse(
            Some("Application/X-WWW-Form-Urlencoded; charset=UTF-8"),
            GOOD.as_bytes()
        )
        .is_ok()
    );
    let huge = format!("{GOOD}&x={}", "x".repeat(FORM_BYTES_MAX));
    assert_eq!(
        parse(Some(FORM), huge.as_bytes()).unwrap_err().status(),
        413
    );
}

#[test]
fn saying_the_same_twice_is_no_contradiction() {
    assert_eq!(
        asked(&format!("{GOOD}&{GOOD}")).unwrap(),
        asked(GOOD).unwrap()
    );
}

// HUB-2, W-2; VECTORS hub_secret_rules.
#[test]
fn a_secret_is_shorter_than_200_bytes() {
    for rule in testkit::data::section("hub_secret_rules") {
        let Some(bytes) = rule["bytes"].as_u64() else {
            continue;
        };
        let result = asked(&format!("{GOOD}&hub.secret={}", "k".repeat(bytes as usize)));
        match rule["expect"].as_str().unwrap() {
            "400" => check_refused(
                &format!("{GOOD}&hub.secret={}", "k".repeat(bytes as usize)),
                400,
                "hub.secret",
            ),
            "accept" => assert_eq!(result.unwrap().secret.unwrap().reveal().len() as u64, bytes),
            _ => assert_eq!(result.unwrap().secret, None),
        }
    }
    // Counted in bytes after decoding, not in characters.
    check_refused(
        &format!("{GOOD}&hub.secret={}", "%C3%A9".repeat(100)),
        400,
        "hub.secret",
    );
    assert!(asked(&format!("{GOOD}&hub.secret={}", "%C3%A9".repeat(99))).is_ok());
    let secret = asked(&format!("{GOOD}&hub.secret=a+b%2Bc%25"))
        .unwrap()
        .secret
        .unwrap();
    assert_eq!(secret.reveal(), "a b+c%");
}

// P03-1, P-18.
#[test]
fn the_first_known_word_of_hub_verify_wins() {
    let check =
        |words: &str, expect| assert_eq!(asked(&format!("{GOOD}&{words}")).unwrap().verify, expect);
    check("hub.verify=async", Some(Verify::Async));
    check("hub.verify=async,sync", Some(Verify::Async));
    check("hub.verify=sync", Some(Verify::Sync { or_async: false }));
    check(
        "hub.verify=sync&hub.verify=async",
        Some(Verify::Sync { or_async: true }),
    );
    check(
        "hub.verify=carrier-pigeon,+sync",
        Some(Verify::Sync { or_async: false }),
    );
}

// P-17.
#[test]
fn only_the_old_dialect_takes_several_topics_and_not_too_many() {
    check_refused(&format!("{GOOD}&hub.topic=http://h/g"), 400, "hub.topic");
    let change = asked(&format!("{GOOD}&hub.topic=http://h/g&hub.verify=async")).unwrap();
    assert_eq!(change.topics, ["http://h/f", "http://h/g"]);
    let many: String = (0..20)
        .map(|n| format!("&hub.topic=http://h/{n}"))
        .collect();
    check_refused(&format!("{GOOD}{many}&hub.verify=async"), 400, "hub.topic");
}

#[test]
fn a_start_is_a_cursor_that_can_be_read_in_full() {
    let check = |since: &str, expect: Option<&str>| {
        let form = format!("{GOOD}&hub.since={since}");
        match expect {
            Some(cursor) => assert_eq!(asked(&form).unwrap().since.as_deref(), Some(cursor)),
            None => check_refused(&form, 400, "hub.since"),
        }
    };
    check(
        "cursor:1389003527_0_3678689003",
        Some("1389003527_0_3678689003"),
    );
    check("cursor:", Some(""));
    check("cursor:1389003527", None);
    check("cursor:rubbish", None);
    check("time:1389003527", None);
    check("id:1", None);
    check("1389003527_0_3678689003", None);
}

#[test]
fn a_publisher_names_its_urls_in_every_way_in_use() {
    let form = "hub.mode=publish&hub.url=http://a/&hub.topic=http://b/&hub.url[]=http://c/&hub.url=http://a/";
    let Ok(HubRequest::Publish(urls)) = parse(Some(FORM), form.as_bytes()) else {
        panic!("not published")
    };
    assert_eq!(urls, ["http://a/", "http://b/", "http://c/", "http://a/"]);
    check_refused("hub.mode=publish", 400, "hub.url");
    check_refused(
        &format!("hub.mode=publish{}", "&hub.url=x".repeat(101)),
        400,
        "hub.url",
    );
}

#[test]
fn addresses_that_are_not_on_the_internet_are_told_in_every_spelling() {
    for url in [
        "http://127.0.0.1/",
        "http://2130706433/",
        "http://0x7f.1/",
        "http://[::1]/",
        "http://10.1.2.3/",
        "http://[::ffff:192.168.0.1]/",
        "http://169.254.169.254/",
        "http://localhost:8080/",
        "http://a.localhost/",
    ] {
        assert!(is_private(url), "{url}");
    }
    for url in [
        "http://example.org/",
        "http://93.184.216.34/",
        "http://[2606:2800:220:1::1]/",
    ] {
        assert!(!is_private(url), "{url}");
    }
}

#[test]
fn a_port_of_another_service_is_seen_before_anything_is_promised() {
    // D-P6: what the way to callbacks would refuse later, the request is refused for at once.
    for url in [
        "http://example.org:22/x",
        "https://example.org:25/",
        "nothing",
    ] {
        assert!(is_barred_port(url), "{url}");
    }
    for url in [
        "http://example.org/",
        "https://example.org/",
        "http://example.org:1024/",
        "http://example.org:8080/",
    ] {
        assert!(!is_barred_port(url), "{url}");
    }
}
