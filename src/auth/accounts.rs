//! Everybody who can be known at one moment: users by name and tokens by hash; not how credentials are checked.

use super::{
    principal::{Principal, PrincipalId},
    user::{AccessToken, TokenUse, User, UserNo},
};
use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
};
use subtle::ConstantTimeEq as _;

/// The users and tokens of one moment.
#[derive(Clone, Debug, Default)]
pub struct Accounts {
    users: HashMap<UserNo, Arc<User>>,
    by_name: HashMap<String, UserNo>,
    by_spelling: HashMap<String, Vec<UserNo>>,
    tokens: HashMap<[u8; 32], AccessToken>,
    standing: HashSet<PrincipalId>,
}

impl Accounts {
    /// These users, and the tokens of those.
    pub fn new(users: impl IntoIterator<Item = User>, tokens: impl IntoIterator<Item = AccessToken>) -> Self {
        let mut accounts = Self::default();
        for user in users {
            accounts.by_name.insert(user.kept.name.clone(), user.no);
            accounts.by_spelling.entry(spelling(&user.kept.name)).or_default().push(user.no);
            accounts.standing.insert(PrincipalId { user: user.no, token: None });
            accounts.users.insert(user.no, Arc::new(user));
        }
        for token in tokens {
            accounts.standing.insert(PrincipalId { user: token.kept.user, token: Some(token.no) });
            accounts.tokens.insert(token.kept.hash, token);
        }
        accounts
    }

    /// True while there is nobody.
    pub fn is_empty(&self) -> bool {
        self.users.is_empty()
    }

    /// The user of a name.
    pub fn user(&self, name: &str) -> Option<&Arc<User>> {
        self.users.get(self.by_name.get(name)?)
    }

    /// The users of a name in any case, with blanks around it or without: whom another server could take for them.
    pub(super) fn users_like(&self, name: &str) -> impl Iterator<Item = &Arc<User>> {
        let like = self.by_spelling.get(&spelling(name));
        like.into_iter().flatten().filter_map(|no| self.users.get(no))
    }

    /// The principal that was remembered; `None` once its user or its token is gone.
    pub fn principal(&self, id: PrincipalId) -> Option<Principal> {
        let user = self.users.get(&id.user).filter(|_| self.standing.contains(&id))?;
        Some(Principal::new(user.no, &user.kept.name, id.token))
    }

    /// True for a principal whose user is there, with the token or the password that made it known.
    pub(super) fn knows(&self, principal: &Principal) -> bool {
        let user = self.users.get(&principal.id().user).filter(|_| self.standing.contains(&principal.id()));
        user.is_some_and(|user| principal.is_known_to(user))
    }

    /// True for the hash of a token of anybody, wherever that is to be sent.
    pub(super) fn knows_token(&self, hash: &[u8; 32]) -> bool {
        self.tokens.contains_key(hash)
    }

    /// The principal whom a token makes known, in the place in which it was sent.
    pub(super) fn by_token(&self, hash: &[u8; 32], usage: TokenUse) -> Option<Principal> {
        let token = self.tokens.get(hash).filter(|token| token.kept.usage == usage)?;
        if !bool::from(token.kept.hash.ct_eq(hash)) {
            return None;
        }
        self.principal(PrincipalId { user: token.kept.user, token: Some(token.no) })
    }
}

/// The part of a name that is alike however it is spelt.
fn spelling(name: &str) -> String {
    name.trim().to_lowercase()
}
