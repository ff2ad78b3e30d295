//! Every scheme against users that come and go.

use super::*;
use crate::{
    auth::{
        password::{HashCost, LoginHash},
        user::{AccessToken, NewAccessToken, NewUser, Password, TokenNo, UserNo},
    },
    clock::Manual,
};
use base64::{Engine as _, prelude::BASE64_STANDARD};
use chrono::{DateTime, SecondsFormat};
use sha1::Digest as _;
use std::time::Duration;

/// 2026-06-01.
const START_US: u64 = 1_780_272_000_000_000;

struct AuthRig {
    auth: Authenticator,
    clock: Arc<Manual>,
    hash: LoginHash,
}

fn user(no: u64, name: &str, login: &LoginHash) -> User {
    let kept = NewUser {
        name: name.to_owned(),
        login: login.clone(),
        feed_password: Secret::new("feed"),
        hex_digest: false,
        jid: None,
        created_us: START_US,
    };
    User {
        no: UserNo(no),
        kept,
    }
}

fn token(no: u64, user: u64, text: &str, usage: TokenUse) -> AccessToken {
    let kept = NewAccessToken {
        user: UserNo(user),
        usage,
        hash: token_hash(text),
        created_us: START_US,
    };
    AccessToken {
        no: TokenNo(no),
        kept,
    }
}

impl AuthRig {
    fn new() -> Self {
        let clock = Arc::new(Manual::at(START_US));
        let hash = LoginHash::of("open sesame");
        let tokens = [
            token(1, 1, "bearer", TokenUse::Bearer),
            token(2, 1, "url", TokenUse::Url),
        ];
        let accounts = Accounts::new([user(1, "alice", &hash)], tokens);
        let auth = Authenticator::new(accounts, clock.clone(), Metrics::default());
        Self { auth, clock, hash }
    }

    async fn ask(&self, credentials: Credentials) -> AuthVerdict {
        self.auth.check(&credentials, client(1)).await
    }

    fn by_login(&self) -> AuthVerdict {
        let alice = user(1, "alice", &self.hash);
        AuthVerdict::Known(Principal::by_password(
            &alice,
            Password::Login(self.hash.clone()),
        ))
    }
}

fn client(n: u8) -> Option<IpAddr> {
    Some(IpAddr::from([192, 0, 2, n]))
}

fn basic(user: &str, password: &str) -> Credentials {
    Credentials::Basic {
        user: user.into(),
        password: Secret::new(password),
    }
}

fn by_feed_password() -> AuthVerdict {
    let alice = user(1, "alice", &LoginHash::of_nobody_at(HashCost::usual()));
    AuthVerdict::Known(Principal::by_password(
        &alice,
        Password::Feed(Secret::new("feed")),
    ))
}

fn alice(token: u64) -> AuthVerdict {
    AuthVerdict::Known(Principal::new(UserNo(1), "alice", Some(TokenNo(token))))
}

fn wsse(nonce: &str, created_us: u64, password: &str) -> Credentials {
    let created = DateTime::from_timestamp_micros(created_us as i64).unwrap();
    let created = created.to_rfc3339_opts(SecondsFormat::Secs, true);
    let digest = sha1::Sha1::digest(format!("{nonce}{created}{password}"));
    let password_digest = BASE64_STANDARD.encode(digest);
    Credentials::Wsse(UsernameToken {
        username: "alice".into(),
        password_digest,
        nonce: nonce.into(),
        created,
    })
}

#[tokio::test]
async fn each_scheme_makes_its_user_known_and_no_other_secret_does() {
    let rig = AuthRig::new();
    assert_eq!(rig.ask(Credentials::Absent).await, AuthVerdict::Anonymous);
    assert_eq!(rig.ask(basic("alice", "open sesame")).await, rig.by_login());
    assert_eq!(
        rig.ask(Credentials::Bearer(Secret::new("bearer"))).await,
        alice(1)
    );
    assert_eq!(
        rig.ask(Credentials::SecretUrl(Secret::new("url"))).await,
        alice(2)
    );
    assert_eq!(
        rig.ask(wsse("n", START_US, "feed")).await,
        by_feed_password()
    );
    for wrong in [
        basic("alice", "feed"),
        basic("bob", "open sesame"),
        Credentials::Bearer(Secret::new("url")),
        Credentials::SecretUrl(Secret::new("bearer")),
        wsse("m", START_US, "open sesame"),
        Credentials::Unreadable,
    ] {
        assert_eq!(
            rig.ask(wrong.clone()).await,
            AuthVerdict::Refused,
            "{wrong:?}"
        );
    }
}

#[tokio::test]
async fn a_digest_counts_once_and_never_from_before_the_start() {
    // U-7, U-8.
    let rig = AuthRig::new();
    assert_eq!(
        rig.ask(wsse("a", START_US, "feed")).await,
        by_feed_password()
    );
    assert_eq!(
        rig.ask(wsse("a", START_US, "feed")).await,
        AuthVerdict::Refused
    );
    // The same digest over the bytes that base64 stands for.
    let Credentials::Wsse(again) = wsse("a", START_US, "feed") else {
        panic!("it is one")
    };
    let again = UsernameToken {
        nonce: BASE64_STANDARD.encode("a"),
        ..again
    };
    assert_eq!(
        rig.ask(Credentials::Wsse(again)).await,
        AuthVerdict::Refused
    );
    assert_eq!(
        rig.ask(wsse("b", START_US - 1_000_000, "feed")).await,
        AuthVerdict::Refused
    );
    rig.clock.advance(Duration::from_secs(301));
    assert_eq!(
        rig.ask(wsse("c", START_US, "feed")).await,
        AuthVerdict::Refused
    );
    assert_eq!(
        rig.ask(wsse("d", START_US + 1_000_000, "feed")).await,
        by_feed_password()
    );
}

#[tokio::test]
async fn users_and_tokens_that_are_taken_away_are_unknown_at_once() {
    let rig = AuthRig::new();
    assert_eq!(
        rig.ask(basic("alice", "open sesame")).await,
        rig.by_login(),
        "and is remembered"
    );
    let tokens = [token(2, 1, "url", TokenUse::Url)];
    rig.auth
        .publish(Accounts::new([user(1, "alice", &rig.hash)], tokens));
    assert_eq!(
        rig.ask(Credentials::Bearer(Secret::new("bearer"))).await,
        AuthVerdict::Refused
    );
    assert_eq!(
        rig.ask(Credentials::SecretUrl(Secret::new("url"))).await,
        alice(2)
    );
    let remembered = PrincipalId {
        user: UserNo(1),
        token: Some(TokenNo(2)),
    };
    assert!(rig.auth.principal(remembered).is_some());
    assert_eq!(
        rig.auth.principal(PrincipalId {
            token: Some(TokenNo(1)),
            ..remembered
        }),
        None
    );
    // Another user of the same name and password.
    rig.auth
        .publish(Accounts::new([user(2, "alice", &rig.hash)], []));
    assert_eq!(rig.auth.principal(remembered), None);
    let login = Password::Login(rig.hash.clone());
    let other = AuthVerdict::Known(Principal::by_password(&user(2, "alice", &rig.hash), login));
    assert_eq!(rig.ask(basic("alice", "open sesame")).await, other);
    rig.auth.publish(Accounts::default());
    assert_eq!(
        rig.ask(basic("alice", "open sesame")).await,
        AuthVerdict::Refused
    );
}

#[tokio::test]
async fn whoever_was_known_by_a_password_is_unknown_once_it_is_another() {
    let rig = AuthRig::new();
    let known = async |credentials| match rig.ask(credentials).await {
        AuthVerdict::Known(principal) => principal,
        other => panic!("{other:?}"),
    };
    let by_login = known(basic("alice", "open sesame")).await;
    let by_feed_password = known(wsse("a", START_US, "feed")).await;
    let by_token = known(Credentials::SecretUrl(Secret::new("url"))).await;
    let still = || [&by_login, &by_feed_password, &by_token].map(|it| rig.auth.still_knows(it));
    let tokens = || [token(2, 1, "url", TokenUse::Url)];
    rig.auth.publish(Accounts::new(
        [user(1, "alice", &rig.hash), user(2, "bob", &rig.hash)],
        tokens(),
    ));
    assert_eq!(still(), [true, true, true]);
    rig.auth.publish(Accounts::new(
        [user(
            1,
            "alice",
            &LoginHash::of_nobody_at(HashCost::usual()),
        )],
        tokens(),
    ));
    assert_eq!(still(), [false, true, true]);
    let mut other = user(1, "alice", &rig.hash);
    other.kept.feed_password = Secret::new("another");
    rig.auth.publish(Accounts::new([other], []));
    assert_eq!(still(), [true, false, false]);
}

#[tokio::test]
async fn an_address_that_fails_too_often_waits_and_nobody_else_does() {
    let rig = AuthRig::new();
    assert_eq!(rig.ask(basic("alice", "open sesame")).await, rig.by_login());
    for _ in 0..10 {
        assert_eq!(
            rig.ask(Credentials::Bearer(Secret::new("x"))).await,
            AuthVerdict::Refused
        );
    }
    let slow = AuthVerdict::SlowDown { secs: 10 };
    assert_eq!(rig.ask(Credentials::Bearer(Secret::new("x"))).await, slow);
    assert_eq!(
        rig.ask(basic("alice", "guess")).await,
        slow,
        "no password is tried"
    );
    assert_eq!(rig.ask(wsse("n", START_US, "guess")).await, slow);
    assert_eq!(
        rig.ask(Credentials::Bearer(Secret::new("bearer"))).await,
        alice(1)
    );
    assert_eq!(
        rig.ask(basic("alice", "open sesame")).await,
        rig.by_login(),
        "it is remembered"
    );
    let guess = rig.auth.check(&basic("alice", "guess"), client(2)).await;
    assert_eq!(guess, AuthVerdict::Refused, "another address");
    rig.clock.advance(Duration::from_secs(10));
    assert_eq!(rig.ask(basic("alice", "guess")).await, AuthVerdict::Refused);
    assert_eq!(rig.ask(basic("alice", "guess")).await, slow);
}

/// The number of passwords that something looks at.
async fn tried<T>(rig: &AuthRig, done: impl Future<Output = T>) -> (usize, T) {
    let before = rig.auth.room.tried.load(Ordering::Relaxed);
    let done = done.await;
    (rig.auth.room.tried.load(Ordering::Relaxed) - before, done)
}

#[tokio::test]
async fn neither_work_nor_verdict_tells_whether_there_is_a_user_of_a_name() {
    let rig = AuthRig::new();
    // Two of like names, one of them with a hash from elsewhere.
    let cheap = LoginHash::parse(
        "$argon2id$v=19$m=64,t=1,p=1$AAAAAAAAAAAAAAAAAAAAAA$AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA",
    );
    let users = [
        user(1, "alice", &rig.hash),
        user(2, "Carol", &cheap.unwrap()),
        user(3, "carol", &rig.hash),
    ];
    rig.auth.publish(Accounts::new(users, []));
    // At the pages of a site the head passes with the credentials in it, or does not.
    let at_page = async |name: &str, guess: &str, address: Option<IpAddr>| {
        let mut headers = http::HeaderMap::new();
        let text = BASE64_STANDARD.encode(format!("{name}:{guess}"));
        headers.insert(
            http::header::AUTHORIZATION,
            format!("Basic {text}").parse().unwrap(),
        );
        let taken = rig.auth.take_out_own(&mut headers, address).await;
        taken.map(|()| headers.contains_key(http::header::AUTHORIZATION))
    };
    for net in [[10, 0, 0], [198, 51, 100]] {
        let mut seen = Vec::new();
        for (n, name) in (0..).zip(["alice", "CAROL", "nobody"]) {
            let address = [net[0], net[1], net[2], n];
            let mut told = Vec::new();
            for guess in 0..11 {
                let verdict = tried(
                    &rig,
                    rig.auth
                        .check(&basic(name, &format!("{guess}")), Some(address.into())),
                )
                .await;
                told.push(format!("{verdict:?}"));
            }
            let other = Some(IpAddr::from([address[0], address[1], 7, n]));
            for guess in 0..3 {
                // The second time it is remembered, whoever it is.
                for _ in 0..2 {
                    told.push(format!(
                        "{:?}",
                        tried(&rig, at_page(name, &format!("{guess} {net:?}"), other)).await
                    ));
                }
            }
            // As many as users have like names, whoever it is.
            assert_eq!(
                [&told[9], &told[10]],
                ["(1, Refused)", "(0, SlowDown { secs: 10 })"],
                "{name}"
            );
            assert_eq!(told[11..13], ["(2, Ok(true))", "(0, Ok(true))"], "{name}");
            seen.push(told);
        }
        assert!(seen.iter().all(|told| *told == seen[0]), "{seen:?}");
    }
    assert_eq!(
        tried(&rig, at_page("{\"alg\"", "x", client(9))).await.0,
        0,
        "no name: a part of a token of others"
    );
    assert_eq!(
        at_page("ALICE", "open sesame", client(9)).await,
        Ok(false),
        "taken out"
    );
}

#[tokio::test]
async fn wrong_passwords_behind_an_unknown_proxy_keep_nobody_else_out() {
    let rig = AuthRig::new();
    let users = [user(1, "alice", &rig.hash), user(2, "bob", &rig.hash)];
    rig.auth.publish(Accounts::new(users, []));
    let proxy = Some(IpAddr::from([127, 0, 0, 1]));
    let known = |verdict: AuthVerdict| matches!(verdict, AuthVerdict::Known(_));
    assert!(known(
        rig.auth.check(&basic("alice", "open sesame"), proxy).await
    ));
    for n in 0..12 {
        for name in ["alice", "nobody"] {
            let verdict = rig
                .auth
                .check(&basic(name, &format!("guess {n}")), proxy)
                .await;
            let expect = if n < 10 {
                AuthVerdict::Refused
            } else {
                AuthVerdict::SlowDown { secs: 10 }
            };
            assert_eq!(verdict, expect, "{name} {n}");
        }
        rig.auth.check(&Credentials::Unreadable, proxy).await;
        rig.auth
            .check(&wsse(&format!("n{n}"), START_US, "guess"), proxy)
            .await;
    }
    assert!(known(
        rig.auth.check(&basic("bob", "open sesame"), proxy).await
    ));
    assert!(
        known(rig.auth.check(&wsse("good", START_US, "feed"), proxy).await),
        "it is not guessed"
    );
    // Who was known before is not kept out by those who guess the name, also when the hash is made
    // again.
    rig.auth.memory.verdicts.invalidate_all();
    assert!(known(
        rig.auth.check(&basic("alice", "open sesame"), proxy).await
    ));
    let users = [
        user(1, "alice", &LoginHash::of_nobody_at(HashCost::usual())),
        user(2, "bob", &rig.hash),
    ];
    rig.auth.publish(Accounts::new(users, []));
    let verdict = rig.auth.check(&basic("alice", "open sesame"), proxy).await;
    assert_eq!(
        verdict,
        AuthVerdict::SlowDown { secs: 10 },
        "its password is another one now"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn many_requests_with_one_password_are_hashed_once_and_a_flood_of_others_is_bounded() {
    let rig = Arc::new(AuthRig::new());
    let alike = (0..200).map(|_| {
        let rig = rig.clone();
        tokio::spawn(async move { rig.ask(basic("alice", "open sesame")).await })
    });
    for verdict in futures_util::future::join_all(alike).await {
        assert_eq!(verdict.unwrap(), rig.by_login());
    }
    let others = (0..250_u8).map(|n| {
        let rig = rig.clone();
        tokio::spawn(async move {
            rig.auth
                .check(&basic("alice", &format!("guess {n}")), client(n))
                .await
        })
    });
    let verdicts = futures_util::future::join_all(others).await;
    let busy = verdicts
        .iter()
        .filter(|verdict| *verdict.as_ref().unwrap() == AuthVerdict::Busy)
        .count();
    assert!(
        busy > 0 && busy <= 250 - HASHES_MAX - HASHES_WAITING_MAX,
        "{busy}"
    );
}
