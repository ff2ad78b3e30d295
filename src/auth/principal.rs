//! Principals: known users and addresses of XMPP, by what made them known; not how that was checked.

use super::user::{Password, TokenNo, User, UserNo};
use std::sync::Arc;

/// Somebody known: a user, or an address of XMPP that its server vouches for, or both.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Principal {
    /// `None` for an address that is of no user.
    user: Option<KnownUser>,
    /// The bare address of XMPP that made it known.
    jid: Option<Arc<str>>,
    /// The password that made it known to the request under way; nothing where that was a token, or
    /// where it was remembered.
    password: Option<Password>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct KnownUser {
    id: PrincipalId,
    name: Arc<str>,
}

/// A principal as it is remembered beside what it asked for. It stands for nobody once its user or
/// its token is gone, also when another user gets the same name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PrincipalId {
    /// The user.
    pub user: UserNo,
    /// The token by which the user was known; `None` for a password.
    pub token: Option<TokenNo>,
}

impl Principal {
    /// A user known by a token, or by a password.
    pub fn new(user: UserNo, name: &str, token: Option<TokenNo>) -> Self {
        let id = PrincipalId { user, token };
        let name = name.into();
        Self {
            user: Some(KnownUser { id, name }),
            jid: None,
            password: None,
        }
    }

    /// The bearer of a bare address of XMPP, in its normal form; with the rights of its user, if it
    /// is that of one.
    pub(super) fn by_jid(user: Option<&User>, jid: &str) -> Self {
        let known = user.map(|user| Self::new(user.no, &user.kept.name, None));
        Self {
            user: known.and_then(|known| known.user),
            jid: Some(jid.into()),
            password: None,
        }
    }

    /// A user known by a password.
    pub(super) fn by_password(user: &User, password: Password) -> Self {
        Self {
            password: Some(password),
            ..Self::new(user.no, &user.kept.name, None)
        }
    }

    /// True for a user with the password that made this principal known, if it was one.
    pub(super) fn is_known_to(&self, user: &User) -> bool {
        self.password
            .as_ref()
            .is_none_or(|password| user.has(password))
    }

    /// The part that is remembered; `None` for what is no user.
    pub fn id(&self) -> Option<PrincipalId> {
        self.user.as_ref().map(|user| user.id)
    }

    /// The user's name; `None` for what is no user.
    pub fn name(&self) -> Option<&str> {
        self.user.as_ref().map(|user| &*user.name)
    }

    /// The bare address of XMPP that made it known.
    pub(super) fn jid(&self) -> Option<&str> {
        self.jid.as_deref()
    }
}
