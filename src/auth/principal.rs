//! Principals: known users, by the credential that made them known; not how that was checked.

use super::user::{Password, TokenNo, User, UserNo};
use std::sync::Arc;

/// A known user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Principal {
    id: PrincipalId,
    name: Arc<str>,
    /// The password that made it known to the request under way; nothing where that was a token, or
    /// where it was remembered.
    password: Option<Password>,
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
        Self {
            id: PrincipalId { user, token },
            name: name.into(),
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

    /// The part that is remembered.
    pub fn id(&self) -> PrincipalId {
        self.id
    }

    /// The user's name.
    pub fn name(&self) -> &str {
        &self.name
    }
}
