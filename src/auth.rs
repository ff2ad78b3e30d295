//! Authentication: who a request comes from, by which credentials, and what a principal may read;
//! not how a request is carried, and not where users are stored.

pub mod access;

pub mod accounts;

pub mod authenticator;

pub mod challenge;

pub mod commands;

pub mod credentials;

mod failures;

pub mod jid;

pub mod password;

pub mod principal;

mod replays;

pub mod token;

pub mod user;

pub mod wsse;

#[cfg(test)]
pub(crate) mod testing;

pub use access::{AccessSettings, may_read};
pub use accounts::Accounts;
pub use authenticator::{AuthVerdict, Authenticator};
pub use credentials::Credentials;
pub use principal::{Principal, PrincipalId};
pub use user::{AccessToken, NewAccessToken, NewUser, TokenNo, TokenUse, User, UserNo};
