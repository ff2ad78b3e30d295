//! Users and tokens in memory.

use super::{Memory, following};
use crate::{
    auth::{AccessToken, NewAccessToken, NewUser, TokenNo, User, UserNo},
    store::{StoreFuture, accounts::AccountStore},
};
use std::collections::BTreeMap;

/// The users and tokens of a store in memory.
#[derive(Default)]
pub(super) struct MemoryAccounts {
    users: BTreeMap<UserNo, User>,
    tokens: BTreeMap<TokenNo, AccessToken>,
    last_user: u64,
    last_token: u64,
}

impl AccountStore for Memory {
    fn add_user(&self, new: NewUser) -> StoreFuture<'_, Option<User>> {
        self.answer(move |state, _| {
            let held = &mut state.accounts;
            if held.users.values().any(|user| user.kept.name == new.name) {
                return Ok(None);
            }
            held.last_user += 1;
            let user = User {
                no: UserNo(held.last_user),
                kept: new,
            };
            held.users.insert(user.no, user.clone());
            Ok(Some(user))
        })
    }

    fn change_user(&self, changed: User) -> StoreFuture<'_, bool> {
        self.answer(move |state, _| {
            let user = state.accounts.users.get_mut(&changed.no);
            Ok(user.map(|user| *user = changed).is_some())
        })
    }

    fn users(&self, after: Option<UserNo>, max: usize) -> StoreFuture<'_, Vec<User>> {
        self.answer(move |state, _| {
            let users = state.accounts.users.range(following(after)).take(max);
            Ok(users.map(|(_, user)| user.clone()).collect())
        })
    }

    fn remove_user(&self, user: UserNo) -> StoreFuture<'_, bool> {
        self.answer(move |state, _| {
            state
                .accounts
                .tokens
                .retain(|_, token| token.kept.user != user);
            Ok(state.accounts.users.remove(&user).is_some())
        })
    }

    fn add_token(&self, new: NewAccessToken) -> StoreFuture<'_, Option<AccessToken>> {
        self.answer(move |state, _| {
            let held = &mut state.accounts;
            if !held.users.contains_key(&new.user) {
                return Ok(None);
            }
            held.last_token += 1;
            let token = AccessToken {
                no: TokenNo(held.last_token),
                kept: new,
            };
            held.tokens.insert(token.no, token.clone());
            Ok(Some(token))
        })
    }

    fn tokens(&self, after: Option<TokenNo>, max: usize) -> StoreFuture<'_, Vec<AccessToken>> {
        self.answer(move |state, _| {
            let tokens = state.accounts.tokens.range(following(after)).take(max);
            Ok(tokens.map(|(_, token)| token.clone()).collect())
        })
    }

    fn remove_token(&self, token: TokenNo) -> StoreFuture<'_, bool> {
        self.answer(move |state, _| Ok(state.accounts.tokens.remove(&token).is_some()))
    }
}
