//! Everybody who can be known at one moment: users by name and tokens by hash; not how credentials
//! are checked.

use super::{
    password::{HashCost, LoginHash},
    principal::{Principal, PrincipalId},
    user::{AccessToken, TokenUse, User, UserNo, is_user_name},
};
use std::{
    collections::{BTreeSet, HashMap, HashSet},
    sync::Arc,
};
use subtle::ConstantTimeEq as _;

/// The users and tokens of one moment.
#[derive(Clone, Debug, Default)]
pub struct Accounts {
    users: HashMap<UserNo, Arc<User>>,
    by_name: HashMap<String, UserNo>,
    by_spelling: HashMap<String, Vec<UserNo>>,
    by_jid: HashMap<String, UserNo>,
    tokens: HashMap<[u8; 32], AccessToken>,
    standing: HashSet<PrincipalId>,
    /// A hash of nobody for each cost that the hash of a user has, and for the usual one.
    nobodies: Vec<LoginHash>,
    /// Users at most whose names are alike.
    alike_max: usize,
}

/// Costs of hashes that cannot be told by time at most. Those beyond are of users whose hashes came
/// from elsewhere, and are few.
const COSTS_MAX: usize = 4;

impl Accounts {
    /// These users, and the tokens of those.
    pub fn new(
        users: impl IntoIterator<Item = User>,
        tokens: impl IntoIterator<Item = AccessToken>,
    ) -> Self {
        let mut accounts = Self::default();
        for user in users {
            accounts.by_name.insert(user.kept.name.clone(), user.no);
            accounts
                .by_spelling
                .entry(spelling(&user.kept.name))
                .or_default()
                .push(user.no);
            if let Some(jid) = &user.kept.jid {
                accounts.by_jid.insert(jid.clone(), user.no);
            }
            accounts.standing.insert(PrincipalId {
                user: user.no,
                token: None,
            });
            accounts.users.insert(user.no, Arc::new(user));
        }
        let users = accounts.users.values();
        let mut costs: BTreeSet<_> = users.map(|user| user.kept.login.cost()).collect();
        costs.insert(HashCost::usual());
        let dearest = costs.into_iter().rev().take(COSTS_MAX);
        accounts.nobodies = dearest.map(LoginHash::of_nobody_at).collect();
        let alike = accounts.by_spelling.values().map(Vec::len);
        accounts.alike_max = alike.max().unwrap_or_default();
        for token in tokens {
            accounts.standing.insert(PrincipalId {
                user: token.kept.user,
                token: Some(token.no),
            });
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

    /// The principal behind a bare address of XMPP, in its normal form, that its server vouches for.
    pub fn by_jid(&self, jid: &str) -> Principal {
        let user = self.by_jid.get(jid).and_then(|no| self.users.get(no));
        Principal::by_jid(user.map(|user| &**user), jid)
    }

    /// The users of a name in any case, with blanks around it or without: whom another server could
    /// take for them.
    pub(super) fn users_like(&self, name: &str) -> impl Iterator<Item = &Arc<User>> {
        let like = self.by_spelling.get(&spelling(name));
        like.into_iter()
            .flatten()
            .filter_map(|no| self.users.get(no))
    }

    /// True for a name in whose place there could be that of a user.
    pub(super) fn could_be_like(&self, name: &str) -> bool {
        is_user_name(&spelling(name))
    }

    /// The users whose names are like a name, and nobody in the place of each who is missing to
    /// make them as many as for any name.
    pub(super) fn candidates(&self, name: &str) -> Vec<Option<Arc<User>>> {
        let mut like: Vec<_> = self.users_like(name).cloned().map(Some).collect();
        like.resize(self.alike_max.max(1), None);
        like
    }

    /// The user of these whose login password is this one. It takes as long whoever of them is
    /// somebody.
    pub(super) fn by_password(
        &self,
        candidates: Vec<Option<Arc<User>>>,
        password: &str,
    ) -> Option<Arc<User>> {
        let mut known = None;
        for user in candidates {
            let cost = user.as_ref().map(|user| user.kept.login.cost());
            let is_met = |nobody: &LoginHash| Some(nobody.cost()) == cost;
            let mut is_right = false;
            for nobody in &self.nobodies {
                match &user {
                    Some(user) if is_met(nobody) => is_right = user.kept.login.is_of(password),
                    // For the time that it takes.
                    _ => drop(std::hint::black_box(nobody.is_of(password))),
                }
            }
            if let Some(user) = &user
                && !self.nobodies.iter().any(is_met)
            {
                is_right = user.kept.login.is_of(password);
            }
            known = known.or(user.filter(|_| is_right));
        }
        known
    }

    /// The principal that was remembered; `None` once its user or its token is gone.
    pub fn principal(&self, id: PrincipalId) -> Option<Principal> {
        let user = self.user_of(id)?;
        Some(Principal::new(user.no, &user.kept.name, id.token))
    }

    fn user_of(&self, id: PrincipalId) -> Option<&User> {
        if !self.standing.contains(&id) {
            return None;
        }
        self.users.get(&id.user).map(|user| &**user)
    }

    /// True for a principal whose user is there, with the token or the password that made it known.
    pub(super) fn knows(&self, principal: &Principal) -> bool {
        let Some(id) = principal.id() else {
            return true;
        };
        let user = self.user_of(id);
        user.is_some_and(|user| principal.is_known_to(user))
    }

    /// True for the hash of a token of anybody, wherever that is to be sent.
    pub(super) fn knows_token(&self, hash: &[u8; 32]) -> bool {
        self.tokens.contains_key(hash)
    }

    /// The principal whom a token makes known, in the place in which it was sent.
    pub(super) fn by_token(&self, hash: &[u8; 32], usage: TokenUse) -> Option<Principal> {
        let token = self.tokens.get(hash)?;
        if token.kept.usage != usage || !bool::from(token.kept.hash.ct_eq(hash)) {
            return None;
        }
        self.principal(PrincipalId {
            user: token.kept.user,
            token: Some(token.no),
        })
    }
}

/// The part of a name that is alike however it is spelt.
fn spelling(name: &str) -> String {
    name.trim().to_lowercase()
}
