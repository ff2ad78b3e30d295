//! Credentials of our users on requests that go on to somebody else, such as the old server of a
//! site: they are taken out, and those of others pass; not what the sender may read.

use super::{AccountsInForce, AuthVerdict, Authenticator, KeyUse};
use crate::{
    auth::{
        accounts::Accounts,
        credentials::{X_WSSE, basic_texts_in},
        token::{token_hash, tokens_in},
        wsse::UsernameToken,
    },
    secret::Secret,
};
use http::{
    HeaderMap, HeaderName, HeaderValue,
    header::{AUTHORIZATION, REFERER},
};
use percent_encoding::percent_decode;
use std::net::IpAddr;
use subtle::ConstantTimeEq as _;

impl Authenticator {
    // Decides: Which credentials stay here when a request goes on to the origin?
    /// Takes the credentials of our users out of a head. Lines that are not ours stay as they are,
    /// since the receiver may have users of its own.
    ///
    /// A password is tried for every name that a user could have, once in ten minutes, and a wrong
    /// one counts as a failed attempt, as it does everywhere: whoever sends too many is not passed
    /// on.
    pub async fn take_out_own(
        &self,
        headers: &mut HeaderMap,
        client: Option<IpAddr>,
    ) -> Result<(), AuthVerdict> {
        let in_force = self.accounts.borrow().clone();
        if in_force.accounts.is_empty() {
            return Ok(());
        }
        for name in [X_WSSE, AUTHORIZATION, REFERER] {
            let mut kept = Vec::new();
            for value in headers.get_all(&name) {
                if !self.is_own(&in_force, &name, value, client).await? {
                    kept.push(value.clone());
                }
            }
            let count = headers.get_all(&name).iter().count();
            if kept.len() == count {
                continue;
            }
            headers.remove(&name);
            if name == X_WSSE {
                // It announces the digest that was taken out.
                remove_wsse(headers);
            }
            for value in kept {
                headers.append(name.clone(), value);
            }
        }
        Ok(())
    }

    /// True for a text that holds a token of somebody, escaped or not.
    pub fn holds_token(&self, text: &str) -> bool {
        self.accounts
            .borrow()
            .accounts
            .has_token_in(text.as_bytes())
    }

    /// True for a line of a head by which one of our users could be known, or whose token could be
    /// learnt: be it a list in which other credentials stand as well, or one that we would not
    /// read.
    async fn is_own(
        &self,
        in_force: &AccountsInForce,
        name: &HeaderName,
        value: &HeaderValue,
        client: Option<IpAddr>,
    ) -> Result<bool, AuthVerdict> {
        let accounts = &in_force.accounts;
        if accounts.has_token_in(value.as_bytes()) {
            return Ok(true);
        }
        if *name == X_WSSE {
            return Ok(accounts.may_be_digest(&String::from_utf8_lossy(value.as_bytes())));
        }
        if *name == AUTHORIZATION {
            for text in basic_texts_in(value.as_bytes()) {
                if self
                    .is_own_password(in_force, text.reveal(), client)
                    .await?
                {
                    return Ok(true);
                }
            }
        }
        Ok(false)
    }

    /// True for the text of Basic credentials with a password or a token of one of our users.
    /// Another server may take a name in another case for the same. Neither time nor status tells
    /// whose name is that of a user.
    async fn is_own_password(
        &self,
        in_force: &AccountsInForce,
        text: &str,
        client: Option<IpAddr>,
    ) -> Result<bool, AuthVerdict> {
        let AccountsInForce { revision, accounts } = in_force;
        if accounts.has_token_in(text.as_bytes()) {
            return Ok(true);
        }
        let Some((name, password)) = text.split_once(':') else {
            return Ok(false);
        };
        if !accounts.could_be_like(name) {
            return Ok(false);
        }
        // The end of a line is easily encoded, too.
        let password = Secret::new(password.trim_end_matches(['\r', '\n']));
        for user in accounts.users_like(name) {
            let feed_password = user.kept.feed_password.reveal().as_bytes();
            let key = self.verdict_key(*revision, KeyUse::Known, &user.kept.name, &password);
            if bool::from(feed_password.ct_eq(password.reveal().as_bytes()))
                || matches!(self.memory.verdicts.get(&key).await, Some(Some(_)))
            {
                return Ok(true);
            }
        }
        let key = self.verdict_key(*revision, KeyUse::Alike, name, &password);
        let candidates = accounts.candidates(name);
        let hashed = async {
            let hash = self.hash(accounts.clone(), candidates, name, &password, client);
            match hash.await {
                Err(AuthVerdict::Refused) => Ok(None),
                other => other,
            }
        };
        let known = self.memory.verdicts.try_get_with(key, hashed).await;
        known
            .map(|known| known.is_some())
            .map_err(|verdict| (*verdict).clone())
    }
}

impl Accounts {
    /// True for bytes, escaped or not, in which a token of somebody stands.
    fn has_token_in(&self, bytes: &[u8]) -> bool {
        let is_in = |bytes: &[u8]| {
            let text = String::from_utf8_lossy(bytes);
            tokens_in(&text).any(|token| self.knows_token(&token_hash(token)))
        };
        is_in(bytes) || (bytes.contains(&b'%') && is_in(&percent_decode(bytes).collect::<Vec<_>>()))
    }

    /// True for the value of `X-WSSE` with a digest of one of our users, or one that cannot be read
    /// and names one.
    fn may_be_digest(&self, value: &str) -> bool {
        let is_name = |word: &str| self.users_like(word).next().is_some();
        let mut pieces = UsernameToken::pieces(value);
        pieces.any(|piece| match UsernameToken::parse(piece) {
            Some(token) => self.users_like(&token.username).any(|user| {
                token
                    .prove(user.kept.feed_password.reveal(), user.kept.hex_digest)
                    .is_some()
            }),
            None => piece.split(['"', '=', ',', ' ', '\t']).any(is_name),
        })
    }
}

fn remove_wsse(headers: &mut HeaderMap) {
    let is_wsse = |value: &HeaderValue| {
        value
            .as_bytes()
            .get(..4)
            .is_some_and(|scheme| scheme.eq_ignore_ascii_case(b"wsse"))
    };
    let others: Vec<HeaderValue> = headers
        .get_all(AUTHORIZATION)
        .iter()
        .filter(|value| !is_wsse(value))
        .cloned()
        .collect();
    headers.remove(AUTHORIZATION);
    for value in others {
        headers.append(AUTHORIZATION, value);
    }
}
