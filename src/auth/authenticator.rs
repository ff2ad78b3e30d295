//! The check of credentials, against the users in force: what is known of a request's sender. Not what a principal may read.

use super::{
    accounts::Accounts,
    credentials::Credentials,
    failures::FailureTable,
    password::LoginHash,
    principal::{Principal, PrincipalId},
    replays::{Freshness, ReplayCache},
    token::token_hash,
    user::{Password, TokenUse, User},
    wsse::UsernameToken,
};
use crate::{clock::Clock, secret::Secret, telemetry::Metrics};
use hmac::{Hmac, KeyInit as _, Mac as _};
use moka::future::Cache;
use sha2::Sha256;
use std::{
    net::IpAddr,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};
use tokio::sync::{Semaphore, watch};

mod own_credentials;

#[cfg(test)]
mod tests;

/// Passwords hashed at once: each takes a processor and 19 MiB.
const HASHES_MAX: usize = 2;
/// Requests that may wait for that, beside those under way; one more is told to come again.
const HASHES_WAITING_MAX: usize = 64;
/// Verdicts on passwords that are remembered.
const VERDICTS_MAX: u64 = 10_000;
/// Seconds after which a password is hashed again although it was right.
const VERDICT_SECS: u64 = 600;

/// Knowledge of the sender of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AuthVerdict {
    /// It sent no credentials.
    Anonymous,
    /// It is this principal.
    Known(Principal),
    /// Its credentials are not good.
    Refused,
    /// Too many attempts of its address failed; the next counts after so many seconds.
    SlowDown {
        /// Seconds.
        secs: u64,
    },
    /// There is no room to check them now.
    Busy,
}

/// Checks credentials.
pub struct Authenticator {
    accounts: watch::Sender<AccountsInForce>,
    /// Users whose password was right, by a keyed hash of the credentials and of the revision in force; `None` for a password
    /// that was sent to a page of somebody else and is none of ours.
    verdicts: Cache<[u8; 32], Option<Principal>>,
    /// Keys those hashes; made anew with each process.
    key: [u8; 32],
    failures: Mutex<FailureTable>,
    replays: Mutex<ReplayCache>,
    hashes: Arc<Semaphore>,
    places: Arc<Semaphore>,
    clock: Arc<dyn Clock>,
    started_us: u64,
    metrics: Metrics,
}

/// The accounts in force, and how often they were replaced.
#[derive(Clone, Debug, Default)]
pub struct AccountsInForce {
    /// Rises with every change.
    pub revision: u64,
    /// The accounts.
    pub accounts: Arc<Accounts>,
}

impl Authenticator {
    /// Knows these accounts, until others are published.
    pub fn new(accounts: Accounts, clock: Arc<dyn Clock>, metrics: Metrics) -> Self {
        let in_force = AccountsInForce { revision: 0, accounts: Arc::new(accounts) };
        let ttl = std::time::Duration::from_secs(VERDICT_SECS);
        Self {
            accounts: watch::Sender::new(in_force),
            verdicts: Cache::builder().max_capacity(VERDICTS_MAX).time_to_live(ttl).build(),
            key: rand::random(),
            failures: Mutex::default(),
            replays: Mutex::default(),
            hashes: Arc::new(Semaphore::new(HASHES_MAX)),
            places: Arc::new(Semaphore::new(HASHES_MAX + HASHES_WAITING_MAX)),
            started_us: clock.now_us(),
            clock,
            metrics,
        }
    }

    /// Puts other accounts in force, at once: nothing that was known of the former ones counts any more.
    pub fn publish(&self, accounts: Accounts) {
        let accounts = Arc::new(accounts);
        self.accounts.send_modify(|in_force| {
            *in_force = AccountsInForce { revision: in_force.revision + 1, accounts };
        });
        self.verdicts.invalidate_all();
    }

    /// The accounts in force.
    pub fn accounts(&self) -> Arc<Accounts> {
        self.accounts.borrow().accounts.clone()
    }

    /// Receiver that wakes whenever other accounts are in force.
    pub fn watch(&self) -> watch::Receiver<AccountsInForce> {
        self.accounts.subscribe()
    }

    /// The principal that was remembered, while it still is one.
    pub fn principal(&self, id: PrincipalId) -> Option<Principal> {
        self.accounts.borrow().accounts.principal(id)
    }

    /// True while a principal is known by what made it known: its user is there, with that token or that password.
    pub fn still_knows(&self, principal: &Principal) -> bool {
        self.accounts.borrow().accounts.knows(principal)
    }

    /// Checks the credentials of a request from an address.
    pub async fn check(&self, credentials: &Credentials, client: Option<IpAddr>) -> AuthVerdict {
        let verdict = match credentials {
            Credentials::Absent => return AuthVerdict::Anonymous,
            Credentials::Basic { user, password } => self.check_basic(user, password, client).await,
            Credentials::Bearer(token) => self.check_token(token, TokenUse::Bearer, client),
            Credentials::SecretUrl(token) => self.check_token(token, TokenUse::Url, client),
            Credentials::Wsse(token) => self.check_wsse(token, client),
            Credentials::Unreadable => self.charge(client).err().unwrap_or(AuthVerdict::Refused),
        };
        let outcome = match &verdict {
            AuthVerdict::Anonymous | AuthVerdict::Known(_) => return verdict,
            AuthVerdict::Refused => {
                let from =
                    client.map_or_else(|| "an unknown address".to_owned(), |client| client.to_string());
                let scheme = credentials.scheme();
                tracing::info!(client.address = %from, auth.scheme = scheme, "Credentials ({scheme}) from {from} are refused");
                "refused"
            }
            AuthVerdict::SlowDown { .. } => "slowed",
            AuthVerdict::Busy => "busy",
        };
        self.metrics.auth_failure(credentials.scheme(), outcome);
        verdict
    }

    /// A token of 128 bits is not guessed, so one that is good is not delayed by others that failed.
    fn check_token(&self, token: &Secret, usage: TokenUse, client: Option<IpAddr>) -> AuthVerdict {
        let hash = token_hash(token.reveal());
        match self.accounts.borrow().accounts.by_token(&hash, usage) {
            Some(principal) => AuthVerdict::Known(principal),
            None => self.charge(client).err().unwrap_or(AuthVerdict::Refused),
        }
    }

    async fn check_basic(&self, name: &str, password: &Secret, client: Option<IpAddr>) -> AuthVerdict {
        let AccountsInForce { revision, accounts } = self.accounts.borrow().clone();
        let key = self.verdict_key(revision, name, password);
        // Requests that come at once share one hash.
        let hashed = self.verdicts.try_get_with(key, self.hash(accounts.user(name), password, client));
        match hashed.await {
            Ok(Some(principal)) if self.still_knows(&principal) => AuthVerdict::Known(principal),
            Ok(_) => AuthVerdict::Refused,
            Err(verdict) => (*verdict).clone(),
        }
    }

    async fn hash(
        &self,
        user: Option<&Arc<User>>,
        password: &Secret,
        client: Option<IpAddr>,
    ) -> Result<Option<Principal>, AuthVerdict> {
        let _place = self.places.clone().try_acquire_owned().map_err(|_| AuthVerdict::Busy)?;
        self.charge(client)?;
        let hash = self.hashes.clone().acquire_owned().await.map_err(|_| AuthVerdict::Busy)?;
        let (user, password) = (user.cloned(), password.clone());
        let checked = tokio::task::spawn_blocking(move || {
            // Kept until the end of the work, which a request that hangs up does not stop.
            let _hash = hash;
            let is_right = match &user {
                Some(user) => user.kept.login.is_of(password.reveal()),
                None => LoginHash::of_nobody().is_of(password.reveal()),
            };
            user.filter(|_| is_right)
        });
        match checked.await {
            Ok(Some(user)) => {
                self.refund(client);
                Ok(Some(Principal::by_password(&user, Password::Login(user.kept.login.clone()))))
            }
            Ok(None) => Err(AuthVerdict::Refused),
            Err(_) => Err(AuthVerdict::Busy),
        }
    }

    fn check_wsse(&self, token: &UsernameToken, client: Option<IpAddr>) -> AuthVerdict {
        if let Err(verdict) = self.charge(client) {
            return verdict;
        }
        let now = self.clock.now_us();
        let accounts = self.accounts();
        let user = accounts.user(&token.username);
        // For a user who does not exist the same is done.
        let password = user.map_or("", |user| user.kept.feed_password.reveal());
        let proven = token.prove(password, user.is_some_and(|user| user.kept.hex_digest));
        // Nonces before the start are not remembered any more (U-8).
        let is_remembered = token.created_us().is_some_and(|created| created >= self.started_us);
        let (Some(user), Some(proven), true, true) = (user, proven, token.is_recent(now), is_remembered)
        else {
            return AuthVerdict::Refused;
        };
        match lock(&self.replays).note(user.no, &proven, now) {
            Freshness::Fresh => {
                self.refund(client);
                AuthVerdict::Known(Principal::by_password(
                    user,
                    Password::Feed(user.kept.feed_password.clone()),
                ))
            }
            Freshness::Repeated => AuthVerdict::Refused,
            Freshness::Full => {
                self.refund(client);
                AuthVerdict::Busy
            }
        }
    }

    fn charge(&self, client: Option<IpAddr>) -> Result<(), AuthVerdict> {
        let charged = lock(&self.failures).charge(client, self.clock.now_us());
        charged.map_err(|secs| AuthVerdict::SlowDown { secs })
    }

    fn refund(&self, client: Option<IpAddr>) {
        lock(&self.failures).refund(client, self.clock.now_us());
    }

    fn verdict_key(&self, revision: u64, name: &str, password: &Secret) -> [u8; 32] {
        let mut mac = Hmac::<Sha256>::new_from_slice(&self.key).expect("a key of any length is taken");
        mac.update(&revision.to_be_bytes());
        mac.update(&(name.len() as u64).to_be_bytes());
        mac.update(name.as_bytes());
        mac.update(password.reveal().as_bytes());
        mac.finalize().into_bytes().into()
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
