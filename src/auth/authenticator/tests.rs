//! Every scheme against users that come and go.

use super::*;
use crate::{
    auth::user::{AccessToken, NewAccessToken, NewUser, Password, TokenNo, UserNo},
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
        created_us: START_US,
    };
    User { no: UserNo(no), kept }
}

fn token(no: u64, user: u64, text: &str, usage: TokenUse) -> AccessToken {
    let kept = NewAccessToken { user: UserNo(user), usage, hash: token_hash(text), created_us: START_US };
    AccessToken { no: TokenNo(no), kept }
}

impl AuthRig {
    fn new() -> Self {
        let clock = Arc::new(Manual::at(START_US));
        let hash = LoginHash::of("open sesame");
        let tokens = [token(1, 1, "bearer", TokenUse::Bearer), token(2, 1, "url", TokenUse::Url)];
        let accounts = Accounts::new([user(1, "alice", &hash)], tokens);
        let auth = Authenticator::new(accounts, clock.clone(), Metrics::default());
        Self { auth, clock, hash }
    }

    async fn ask(&self, credentials: Credentials) -> AuthVerdict {
        self.auth.check(&credentials, client(1)).await
    }

    fn by_login(&self) -> AuthVerdict {
        let alice = user(1, "alice", &self.hash);
        AuthVerdict::Known(Principal::by_password(&alice, Password::Login(self.hash.clone())))
    }
}

fn client(n: u8) -> Option<IpAddr> {
    Some(IpAddr::from([192, 0, 2, n]))
}

fn basic(user: &str, password: &str) -> Credentials {
    Credentials::Basic { user: user.into(), password: Secret::new(password) }
}

fn by_feed_password() -> AuthVerdict {
    let alice = user(1, "alice", LoginHash::of_nobody());
    AuthVerdict::Known(Principal::by_password(&alice, Password::Feed(Secret::new("feed"))))
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
    assert_eq!(rig.ask(Credentials::Bearer(Secret::new("bearer"))).await, alice(1));
    assert_eq!(rig.ask(Credentials::SecretUrl(Secret::new("url"))).await, alice(2));
    assert_eq!(rig.ask(wsse("n", START_US, "feed")).await, by_feed_password());
    for wrong in [
        basic("alice", "feed"),
        basic("bob", "open sesame"),
        Credentials::Bearer(Secret::new("url")),
        Credentials::SecretUrl(Secret::new("bearer")),
        wsse("m", START_US, "open sesame"),
        Credentials::Unreadable,
    ] {
        assert_eq!(rig.ask(wrong.clone()).await, AuthVerdict::Refused, "{wrong:?}");
    }
}

#[tokio::test]
async fn a_digest_counts_once_and_never_from_before_the_start() {
    // U-7, U-8.
    let rig = AuthRig::new();
    assert_eq!(rig.ask(wsse("a", START_US, "feed")).await, by_feed_password());
    assert_eq!(rig.ask(wsse("a", START_US, "feed")).await, AuthVerdict::Refused);
    // The same digest over the bytes that base64 stands for.
    let Credentials::Wsse(again) = wsse("a", START_US, "feed") else { panic!("it is one") };
    let again = UsernameToken { nonce: BASE64_STANDARD.encode("a"), ..again };
    assert_eq!(rig.ask(Credentials::Wsse(again)).await, AuthVerdict::Refused);
    assert_eq!(rig.ask(wsse("b", START_US - 1_000_000, "feed")).await, AuthVerdict::Refused);
    rig.clock.advance(Duration::from_secs(301));
    assert_eq!(rig.ask(wsse("c", START_US, "feed")).await, AuthVerdict::Refused);
    assert_eq!(rig.ask(wsse("d", START_US + 1_000_000, "feed")).await, by_feed_password());
}

#[tokio::test]
async fn users_and_tokens_that_are_taken_away_are_unknown_at_once() {
    let rig = AuthRig::new();
    assert_eq!(rig.ask(basic("alice", "open sesame")).await, rig.by_login(), "and is remembered");
    let tokens = [token(2, 1, "url", TokenUse::Url)];
    rig.auth.publish(Accounts::new([user(1, "alice", &rig.hash)], tokens));
    assert_eq!(rig.ask(Credentials::Bearer(Secret::new("bearer"))).await, AuthVerdict::Refused);
    assert_eq!(rig.ask(Credentials::SecretUrl(Secret::new("url"))).await, alice(2));
    let remembered = PrincipalId { user: UserNo(1), token: Some(TokenNo(2)) };
    assert!(rig.auth.principal(remembered).is_some());
    assert_eq!(rig.auth.principal(PrincipalId { token: Some(TokenNo(1)), ..remembered }), None);
    // Another user of the same name and password.
    rig.auth.publish(Accounts::new([user(2, "alice", &rig.hash)], []));
    assert_eq!(rig.auth.principal(remembered), None);
    let login = Password::Login(rig.hash.clone());
    let other = AuthVerdict::Known(Principal::by_password(&user(2, "alice", &rig.hash), login));
    assert_eq!(rig.ask(basic("alice", "open sesame")).await, other);
    rig.auth.publish(Accounts::default());
    assert_eq!(rig.ask(basic("alice", "open sesame")).await, AuthVerdict::Refused);
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
    rig.auth.publish(Accounts::new([user(1, "alice", &rig.hash), user(2, "bob", &rig.hash)], tokens()));
    assert_eq!(still(), [true, true, true]);
    rig.auth.publish(Accounts::new([user(1, "alice", LoginHash::of_nobody())], tokens()));
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
        assert_eq!(rig.ask(Credentials::Bearer(Secret::new("x"))).await, AuthVerdict::Refused);
    }
    let slow = AuthVerdict::SlowDown { secs: 10 };
    assert_eq!(rig.ask(Credentials::Bearer(Secret::new("x"))).await, slow);
    assert_eq!(rig.ask(basic("alice", "guess")).await, slow, "no password is tried");
    assert_eq!(rig.ask(wsse("n", START_US, "guess")).await, slow);
    assert_eq!(rig.ask(Credentials::Bearer(Secret::new("bearer"))).await, alice(1));
    assert_eq!(rig.ask(basic("alice", "open sesame")).await, rig.by_login(), "it is remembered");
    let guess = rig.auth.check(&basic("alice", "guess"), client(2)).await;
    assert_eq!(guess, AuthVerdict::Refused, "another address");
    rig.clock.advance(Duration::from_secs(10));
    assert_eq!(rig.ask(basic("alice", "guess")).await, AuthVerdict::Refused);
    assert_eq!(rig.ask(basic("alice", "guess")).await, slow);
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
        tokio::spawn(async move { rig.auth.check(&basic("alice", &format!("guess {n}")), client(n)).await })
    });
    let verdicts = futures_util::future::join_all(others).await;
    let busy = verdicts.iter().filter(|verdict| *verdict.as_ref().unwrap() == AuthVerdict::Busy).count();
    assert!(busy > 0 && busy <= 250 - HASHES_MAX - HASHES_WAITING_MAX, "{busy}");
}
