//! Two users with their tokens. Compiled for tests only.

use super::{
    AccessToken, Accounts, Authenticator, NewAccessToken, NewUser, TokenNo, TokenUse, User, UserNo,
    password::{HashCost, LoginHash},
    token::token_hash,
};
use crate::{clock::Clock, secret::Secret, telemetry::Metrics};
use base64::{Engine as _, prelude::BASE64_STANDARD};
use std::sync::{Arc, OnceLock};

/// The login password of alice and of bob.
const PASSWORD: &str = "open sesame";
/// Bearer token 1, of alice.
pub(crate) const ALICE: &str = "AAAAAAAAAAAAAAAAAAAAAA";
/// The token of a secret URL, 2, of alice.
pub(crate) const ALICE_URL: &str = "UUUUUUUUUUUUUUUUUUUUUU";
/// Bearer token 3, of bob.
pub(crate) const BOB: &str = "BBBBBBBBBBBBBBBBBBBBBB";

/// The users alice (1) and bob (2), and their tokens but those of these numbers.
pub(crate) fn accounts(revoked: &[u64]) -> Accounts {
    static LOGIN: OnceLock<LoginHash> = OnceLock::new();
    with_login(LOGIN.get_or_init(|| LoginHash::of(PASSWORD)), revoked)
}

/// The same, with a password that nobody knows.
pub(crate) fn accounts_with_another_password() -> Accounts {
    with_login(&LoginHash::of_nobody_at(HashCost::usual()), &[])
}

fn with_login(login: &LoginHash, revoked: &[u64]) -> Accounts {
    let user = |no, name: &str| {
        let (login, feed_password) = (login.clone(), Secret::new("feed"));
        let kept = NewUser {
            name: name.into(),
            login,
            feed_password,
            hex_digest: false,
            created_us: 0,
            jid: Some(format!("{name}@jabber.example")),
        };
        User {
            no: UserNo(no),
            kept,
        }
    };
    let token = |no, user, text, usage| {
        let kept = NewAccessToken {
            user: UserNo(user),
            usage,
            hash: token_hash(text),
            created_us: 0,
        };
        AccessToken {
            no: TokenNo(no),
            kept,
        }
    };
    let tokens = [
        token(1, 1, ALICE, TokenUse::Bearer),
        token(2, 1, ALICE_URL, TokenUse::Url),
        token(3, 2, BOB, TokenUse::Bearer),
    ];
    let kept = tokens
        .into_iter()
        .filter(|token| !revoked.contains(&token.no.0));
    Accounts::new([user(1, "alice"), user(2, "bob")], kept)
}

/// An authenticator that knows them.
pub(crate) fn authenticator(clock: &Arc<dyn Clock>) -> Arc<Authenticator> {
    Arc::new(Authenticator::new(
        accounts(&[]),
        clock.clone(),
        Metrics::default(),
    ))
}

/// `Authorization: Basic` of a user with that password.
pub(crate) fn basic(user: &str) -> String {
    format!(
        "Basic {}",
        BASE64_STANDARD.encode(format!("{user}:{PASSWORD}"))
    )
}
