//! Credentials of everfeed's users on requests for pages of the old site: the old server never sees
//! them, and those of its own users pass as they are. Rows: U-1, U-2, U-4.

use super::rig::Sidecar;
use base64::{Engine as _, prelude::BASE64_STANDARD};
use chrono::{SecondsFormat, Utc};
use everfeed::auth::{TokenUse, commands::AccountCommand, password::LoginHash};
use sha1::{Digest as _, Sha1};
use testkit::client::ask;

const OK: &str = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
pub(crate) const PASSWORD: &str = "open sesame";

/// Carries out a command of the operator: what it printed behind a word.
pub(crate) async fn run(sidecar: &Sidecar, command: AccountCommand, word: &str) -> String {
    let (method, target) = command.request();
    let answer = ask(sidecar.app.admin_address(), method, &target, &[], "")
        .await
        .unwrap();
    let told = String::from_utf8(answer.body.to_vec()).unwrap();
    assert_eq!(answer.status, 200, "{told}");
    let line = told.lines().find_map(|line| line.strip_prefix(word));
    line.unwrap_or_else(|| panic!("{told}")).trim().to_owned()
}

pub(crate) fn basic(user: &str, password: &str) -> String {
    format!(
        "Authorization: Basic {}",
        BASE64_STANDARD.encode(format!("{user}:{password}"))
    )
}

/// Makes a user of ours with the usual password; the password for WSSE.
pub(crate) async fn add_user(sidecar: &Sidecar, name: &str) -> String {
    let login = LoginHash::of(PASSWORD);
    let add = AccountCommand::AddUser {
        name: name.to_owned(),
        login,
        hex_digest: false,
        jid: None,
    };
    run(sidecar, add, "feed password").await
}

fn wsse(user: &str, password: &str) -> String {
    let created = Utc::now().to_rfc3339_opts(SecondsFormat::Secs, true);
    let digest = BASE64_STANDARD.encode(Sha1::digest(format!("nonce{created}{password}")));
    format!(
        "Authorization: WSSE profile=\"UsernameToken\"\r\n\
         X-WSSE: UsernameToken Username=\"{user}\", PasswordDigest=\"{digest}\", Nonce=\"nonce\", Created=\"{created}\""
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn credentials_of_ours_never_reach_the_old_server_and_those_of_others_do() {
    let sidecar = Sidecar::start("", |_, origin| origin.always(OK)).await;
    // Before there is anybody everything passes.
    let ask_with = async |target: &str, lines: &str| {
        let request = format!(
            "GET {target} HTTP/1.1\r\nHost: blog.example\r\n{lines}\r\nX-Other: 1\r\nConnection: close\r\n\r\n"
        );
        let before = sidecar.heads().len();
        let answer = sidecar.exchange(request).await;
        (answer, sidecar.heads().get(before).cloned())
    };
    let passed = |head: Option<String>| head.unwrap_or_else(|| panic!("it is passed on"));
    let (_, head) = ask_with("/page", &basic("alice", PASSWORD)).await;
    assert!(passed(head).contains(&basic("alice", PASSWORD)));

    let name = "alice".to_owned();
    let feed_password = add_user(&sidecar, &name).await;
    let new_token = |usage| AccountCommand::NewToken {
        user: name.clone(),
        usage,
    };
    let bearer = run(&sidecar, new_token(TokenUse::Bearer), "token       ").await;
    let url = run(&sidecar, new_token(TokenUse::Url), "secret URL").await;
    let secret = url
        .rsplit("/s/")
        .next()
        .unwrap()
        .split('/')
        .next()
        .unwrap()
        .to_owned();

    // Taken out, and the rest passes.
    for ours in [
        basic("alice", PASSWORD),
        basic("alice", &feed_password),
        basic("x", &bearer),
        format!("Authorization: Bearer {bearer}"),
        format!("authorization: bearer {secret}"),
        format!("Authorization: Token token=\"{bearer}\""),
        wsse("alice", &feed_password),
        format!("Referer: http://blog.example/s/{secret}/feeds"),
    ] {
        let (answer, head) = ask_with("/page", &ours).await;
        assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
        let head = passed(head).to_lowercase();
        for name in ["authorization", "x-wsse", "referer"] {
            assert!(!head.contains(name), "{ours}: {head}");
        }
        assert!(head.contains("\r\nx-other: 1\r\n"), "{head}");
    }
    // Of two lines the one of ours.
    let both = format!("Authorization: Bearer {bearer}\r\nAuthorization: Bearer of-the-blog");
    let (_, head) = ask_with("/page", &both).await;
    let head = passed(head);
    assert!(
        head.contains("Bearer of-the-blog") && !head.contains(&bearer),
        "{head}"
    );

    // In a list, in one line of several, and where the name is spelt otherwise: the password is
    // learnt all the same.
    let encoded = |text: &str| BASE64_STANDARD.encode(text);
    let ours = encoded(&format!("alice:{PASSWORD}"));
    for lines in [
        format!("Authorization: Basic {ours}, Bearer zz"),
        format!("Authorization: Bearer zz,Basic {ours}"),
        format!(
            "Authorization: Basic {}, Basic {ours}",
            encoded("bob:of the blog")
        ),
        format!("Authorization: Bearer zz, Bearer {bearer}"),
        format!("Authorization: {ours}"),
        format!("Authorization: Basic {ours}\r\nAuthorization: Basic {ours}"),
        basic("Alice", PASSWORD),
        basic("ALICE ", PASSWORD),
        basic("Alice", &feed_password),
        basic("alice", &format!("{PASSWORD}\n")),
        basic(&bearer, ""),
        wsse("Alice", &feed_password),
        wsse("alice", &feed_password)
            .replace("X-WSSE: ", "X-WSSE: UsernameToken Username=\"bob\", "),
        wsse("alice", &feed_password) + ", Nonce=\"other\"",
    ] {
        let (answer, head) = ask_with("/page", &lines).await;
        assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
        let head = passed(head).to_lowercase();
        assert!(
            !head.contains("authorization") && !head.contains("x-wsse"),
            "{lines}: {head}"
        );
    }
    let theirs = basic("bob", "of the blog");
    let (_, head) = ask_with(
        "/page",
        &format!("Authorization: Basic {ours}, Bearer zz\r\n{theirs}"),
    )
    .await;
    let head = passed(head);
    assert!(head.contains(&theirs) && !head.contains(&ours), "{head}");

    // The blog has users of its own, also of the same name.
    for theirs in [
        basic("alice", "password of the blog"),
        basic("bob", PASSWORD),
        "Authorization: Bearer AAAAAAAAAAAAAAAAAAAAAA".to_owned(),
        "Authorization: Digest username=\"alice\", nonce=\"x\"".to_owned(),
        "Authorization: nonsense".to_owned(),
        basic("Alice", "password of the blog"),
        format!(
            "Authorization: Basic {}, Bearer zz",
            encoded("bob:of the blog")
        ),
        "Authorization: Digest username=\"alice\", realm=\"x\", response=\"YWxpY2U\"".to_owned(),
        wsse("alice", "password of the blog"),
        wsse("bob", &feed_password),
        "Referer: http://blog.example/page?s=/s/x".to_owned(),
    ] {
        let (_, head) = ask_with("/page", &theirs).await;
        let head = passed(head);
        for line in theirs.split("\r\n") {
            assert!(
                head.to_lowercase().contains(&line.to_lowercase()),
                "{theirs}: {head}"
            );
        }
    }

    // Below a secret everything is ours, however it is spelt; and so is whatever holds a token.
    for target in [
        format!("/s/{secret}/page"),
        format!("/s/{secret}"),
        format!("/%73/{secret}/feeds/none.html"),
        format!("//s/{secret}/x"),
        format!("/a/../s/{secret}/x"),
        "/s/revoked/x".to_owned(),
        format!("/S/{secret}/feeds"),
        format!("/blog/s/{secret}/feeds"),
        format!("/proxy?url=http%3A%2F%2Fblog.example%2Fs%2F{secret}%2Ffeeds"),
        format!("/x/%{:x}{}", secret.as_bytes()[0], &secret[1..]),
    ] {
        let (answer, head) = ask_with(&target, "X-Y: z").await;
        assert!(
            answer.starts_with("HTTP/1.1 404 ") && head.is_none(),
            "{target}: {answer}"
        );
    }
    for target in ["/s", "/s/", "/search/x", "/x/s/y"] {
        assert!(ask_with(target, "X-Y: z").await.1.is_some(), "{target}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn passwords_cannot_be_tried_at_the_pages_of_a_site() {
    let sidecar = Sidecar::start("", |_, origin| origin.always(OK)).await;
    add_user(&sidecar, "alice").await;
    let status = async |user: &str, password: &str| {
        let lines = basic(user, password);
        let request =
            format!("GET / HTTP/1.1\r\nHost: blog.example\r\n{lines}\r\nConnection: close\r\n\r\n");
        sidecar.exchange(request).await[9..12].to_owned()
    };
    for _ in 0..30 {
        assert_eq!(
            status("alice", "password of the blog").await,
            "200",
            "it was tried once"
        );
    }
    let mut all = Vec::new();
    for n in 0..15 {
        all.push(status("alice", &format!("guess {n}")).await);
    }
    assert_eq!(
        all.iter().filter(|status| *status == "200").count(),
        9,
        "{all:?}"
    );
    assert_eq!(all.last().unwrap(), "429");
    assert_eq!(status("alice", "password of the blog").await, "200");
    // A name of nobody is as good: no status tells which names there are.
    let mut others = vec![status("bob", "password of the blog").await];
    for n in 0..15 {
        others.push(status("bob", &format!("guess {n}")).await);
    }
    assert_eq!(others[1..], all[..], "as for alice");
    assert_eq!(
        status("bob", "password of the blog").await,
        "200",
        "it was tried once"
    );
}
