//! Principals: known users, by the credential that made them known; not how that was checked.

use super::user::{TokenNo, UserNo};
use std::sync::Arc;

/// A known user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Principal {
    id: PrincipalId,
    name: Arc<str>,
}

/// A principal as it is remembered beside what it asked for. It stands for nobody once its user or its token is gone, also
/// when another user gets the same name.
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
        Self { id: PrincipalId { user, token }, name: name.into() }
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
