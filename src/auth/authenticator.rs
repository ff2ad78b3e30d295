//! The check of credentials, against the users in force: what is known of a request's sender. Not
//! what a principal may read.

use super::{
    accounts::Accounts,
    credentials::Credentials,
    failures::{Attempt, FailureTable},
    principal::{Principal, PrincipalId},
    replays::{Freshness, ReplayCache},
    token::token_hash,
    user::{Password, TokenUse, User},
    wsse::UsernameToken,
};
use crate::{
    clock::Clock,
    locks::{lock, read, write},
    secret::Secret,
    telemetry::Metrics,
};
use hmac::{Hmac, KeyInit as _, Mac as _};
use moka::future::Cache;
use sha2::Sha256;
use std::{
    net::IpAddr,
    sync::{
        Arc, Mutex, RwLock,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};
use tokio::{
    sync::{Semaphore, watch},
    time::Instant,
};

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
/// Passwords that were right and are still tried when others have failed too often, and the seconds
/// for which they are remembered.
const PROVEN_MAX: u64 = 10_000;
const PROVEN_SECS: u64 = 30 * 86_400;
/// Time for which somebody is known while nothing is heard of changes to the accounts.
const UNHEARD_MAX: Duration = Duration::from_secs(10);
/// Time between two warnings of a proxy that nobody told us of, microseconds.
const WARN_EVERY_US: u64 = 3_600_000_000;

/// Knowledge of the sender of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AuthVerdict {
    /// It sent no credentials.
    Anonymous,
    /// It is this principal.
    Known(Principal),
    /// Its credentials are not good.
    Refused,
    /// Too many attempts of its address, or for this name from there, failed; the next counts after
    /// so many seconds.
    SlowDown {
        /// Seconds.
        secs: u64,
    },
    /// There is no room to check them now.
    Busy,
    /// They cannot be checked: whether they were withdrawn since is not known.
    Unheard,
}

/// Checks credentials.
pub struct Authenticator {
    accounts: watch::Sender<AccountsInForce>,
    memory: VerdictMemory,
    failures: Mutex<FailureTable>,
    /// Time of the last warning of an unknown proxy, microseconds since the epoch.
    warned_us: AtomicU64,
    replays: Mutex<ReplayCache>,
    room: HashPermits,
    clock: Arc<dyn Clock>,
    started_us: u64,
    metrics: Metrics,
    /// Time up to which changes to the accounts that are made elsewhere are known; `None` where
    /// none are made.
    heard_at: RwLock<Option<Instant>>,
}

/// Verdicts on passwords that are remembered.
struct VerdictMemory {
    /// Users whose password was right, by a keyed hash of the credentials and of the revision in
    /// force; `None` for a password that was sent to a page of somebody else and is none of ours.
    verdicts: Cache<[u8; 32], Option<Principal>>,
    /// Users whose password was right before, by a keyed hash of the credentials: nobody else's
    /// failures keep them out.
    proven: Cache<[u8; 32], Principal>,
    /// Keys those hashes; made anew with each process.
    key: [u8; 32],
}

impl Default for VerdictMemory {
    fn default() -> Self {
        let secs = std::time::Duration::from_secs;
        Self {
            verdicts: Cache::builder()
                .max_capacity(VERDICTS_MAX)
                .time_to_live(secs(VERDICT_SECS))
                .build(),
            proven: Cache::builder()
                .max_capacity(PROVEN_MAX)
                .time_to_live(secs(PROVEN_SECS))
                .build(),
            key: rand::random(),
        }
    }
}

/// Room for hashing passwords.
struct HashPermits {
    hashes: Arc<Semaphore>,
    places: Semaphore,
    /// Candidates whose passwords were looked at.
    #[cfg(test)]
    tried: std::sync::atomic::AtomicUsize,
}

impl Default for HashPermits {
    fn default() -> Self {
        Self {
            hashes: Arc::new(Semaphore::new(HASHES_MAX)),
            places: Semaphore::new(HASHES_MAX + HASHES_WAITING_MAX),
            #[cfg(test)]
            tried: std::sync::atomic::AtomicUsize::new(0),
        }
    }
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
        let in_force = AccountsInForce {
            revision: 0,
            accounts: Arc::new(accounts),
        };
        Self {
            accounts: watch::Sender::new(in_force),
            memory: VerdictMemory::default(),
            failures: Mutex::default(),
            warned_us: AtomicU64::new(0),
            replays: Mutex::default(),
            room: HashPermits::default(),
            started_us: clock.now_us(),
            clock,
            metrics,
            heard_at: RwLock::default(),
        }
    }

    /// Says up to which time changes to the accounts that are made elsewhere are known.
    pub fn heard_at(&self, at: Instant) {
        *write(&self.heard_at) = Some(at);
    }

    // Decides: How long are private feeds served while the store is away?
    /// True when nothing was heard of changes to the accounts for a while. Then nobody is known: a
    /// revocation could not have arrived.
    pub fn is_unheard(&self) -> bool {
        read(&self.heard_at).is_some_and(|at| at.elapsed() >= UNHEARD_MAX)
    }

    /// Has all who wait look again whether they are known.
    pub fn look_again(&self) {
        self.accounts.send_modify(|in_force| in_force.revision += 1);
    }

    /// Puts other accounts in force, at once: nothing that was known of the former ones counts any
    /// more.
    pub fn publish(&self, accounts: Accounts) {
        let accounts = Arc::new(accounts);
        self.accounts.send_modify(|in_force| {
            *in_force = AccountsInForce {
                revision: in_force.revision + 1,
                accounts,
            };
        });
        self.memory.verdicts.invalidate_all();
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

    /// True while a principal is known by what made it known: its user is there, with that token or
    /// that password.
    pub fn still_knows(&self, principal: &Principal) -> bool {
        self.accounts.borrow().accounts.knows(principal)
    }

    // Decides: Are credentials good?
    /// Checks the credentials of a request from an address.
    pub async fn check(&self, credentials: &Credentials, client: Option<IpAddr>) -> AuthVerdict {
        let verdict = match credentials {
            Credentials::Absent => return AuthVerdict::Anonymous,
            _ if self.is_unheard() => return AuthVerdict::Unheard,
            Credentials::Basic { user, password } => self.check_basic(user, password, client).await,
            Credentials::Bearer(token) => self.check_token(token, TokenUse::Bearer, client),
            Credentials::SecretUrl(token) => self.check_token(token, TokenUse::Url, client),
            Credentials::Wsse(token) => self.check_wsse(token, client),
            Credentials::Unreadable => self.failed(client),
        };
        let outcome = match &verdict {
            AuthVerdict::Anonymous | AuthVerdict::Known(_) | AuthVerdict::Unheard => {
                return verdict;
            }
            AuthVerdict::Refused => {
                let from = match client {
                    Some(client) => client.to_string(),
                    None => "an unknown address".to_owned(),
                };
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

    /// A token of 128 bits is not guessed, so one that is good is not delayed by others that
    /// failed.
    fn check_token(&self, token: &Secret, usage: TokenUse, client: Option<IpAddr>) -> AuthVerdict {
        let hash = token_hash(token.reveal());
        match self.accounts.borrow().accounts.by_token(&hash, usage) {
            Some(principal) => AuthVerdict::Known(principal),
            None => self.failed(client),
        }
    }

    /// The verdict on what is wrong and cannot be guessed.
    fn failed(&self, client: Option<IpAddr>) -> AuthVerdict {
        let charged = self.charge(Attempt { client, name: None });
        charged.err().unwrap_or(AuthVerdict::Refused)
    }

    async fn check_basic(
        &self,
        name: &str,
        password: &Secret,
        client: Option<IpAddr>,
    ) -> AuthVerdict {
        let AccountsInForce { revision, accounts } = self.accounts.borrow().clone();
        let key = self.verdict_key(revision, KeyUse::Known, name, password);
        // Requests that come at once share one hash.
        let candidates = vec![accounts.user(name).cloned()];
        let hash = self.hash(accounts, candidates, name, password, client);
        let hashed = self.memory.verdicts.try_get_with(key, hash);
        match hashed.await {
            Ok(Some(principal)) if self.still_knows(&principal) => AuthVerdict::Known(principal),
            Ok(_) => AuthVerdict::Refused,
            Err(verdict) => (*verdict).clone(),
        }
    }

    /// The user among some whose password this is. It costs the same, and counts the same until it
    /// is known to be right, whether there is such a user or not.
    async fn hash(
        &self,
        accounts: Arc<Accounts>,
        candidates: Vec<Option<Arc<User>>>,
        name: &str,
        password: &Secret,
        client: Option<IpAddr>,
    ) -> Result<Option<Principal>, AuthVerdict> {
        let place = self.room.places.try_acquire();
        let _place = place.map_err(|_| AuthVerdict::Busy)?;
        let attempt = Attempt {
            client,
            name: Some(name),
        };
        let key = self.verdict_key(0, KeyUse::Proven, name, password);
        let proven = self.memory.proven.get(&key).await;
        let is_proven = proven.is_some_and(|principal| self.still_knows(&principal));
        if !is_proven {
            self.charge(attempt)?;
        }
        let hash = self.room.hashes.clone().acquire_owned().await;
        let hash = hash.map_err(|_| AuthVerdict::Busy)?;
        #[cfg(test)]
        self.room
            .tried
            .fetch_add(candidates.len(), Ordering::Relaxed);
        let secret = password.clone();
        let checked = tokio::task::spawn_blocking(move || {
            // Kept until the end of the work, which a request that hangs up does not stop.
            let _hash = hash;
            accounts.by_password(candidates, secret.reveal())
        });
        match checked.await {
            Ok(Some(user)) => {
                if !is_proven {
                    self.refund(attempt);
                }
                let principal =
                    Principal::by_password(&user, Password::Login(user.kept.login.clone()));
                self.memory.proven.insert(key, principal.clone()).await;
                Ok(Some(principal))
            }
            Ok(None) => Err(AuthVerdict::Refused),
            Err(_) => Err(AuthVerdict::Busy),
        }
    }

    /// The password for WSSE has 128 bits and is not guessed: as with tokens, one that is good is
    /// not delayed by others that failed.
    fn check_wsse(&self, token: &UsernameToken, client: Option<IpAddr>) -> AuthVerdict {
        let now = self.clock.now_us();
        let accounts = self.accounts();
        let user = accounts.user(&token.username);
        // For a user who does not exist the same is done.
        let password = user.map_or("", |user| user.kept.feed_password.reveal());
        let proven = token.prove(password, user.is_some_and(|user| user.kept.hex_digest));
        // Nonces before the start are not remembered any more (U-8).
        let created = token.created_us();
        let is_remembered = created.is_some_and(|created| created >= self.started_us);
        let is_in_time = is_remembered && token.is_recent(now);
        let (Some(user), Some(proven), true) = (user, proven, is_in_time) else {
            return self.failed(client);
        };
        let fresh = lock(&self.replays).note(user.no, &proven, now);
        match fresh {
            Freshness::Fresh => AuthVerdict::Known(Principal::by_password(
                user,
                Password::Feed(user.kept.feed_password.clone()),
            )),
            Freshness::Repeated => self.failed(client),
            Freshness::Full => AuthVerdict::Busy,
        }
    }

    fn charge(&self, attempt: Attempt<'_>) -> Result<(), AuthVerdict> {
        let now_us = self.clock.now_us();
        let charged = lock(&self.failures).charge(attempt, now_us);
        charged.map_err(|secs| {
            self.warn_of_proxy(attempt, now_us);
            AuthVerdict::SlowDown { secs }
        })
    }

    fn refund(&self, attempt: Attempt<'_>) {
        lock(&self.failures).refund(attempt, self.clock.now_us());
    }

    /// Tells the operator that many clients may have the address from which so many attempts
    /// failed, once an hour.
    fn warn_of_proxy(&self, attempt: Attempt<'_>, now_us: u64) {
        let Some(client) = attempt.client.filter(|_| attempt.is_shared()) else {
            return;
        };
        let last = self.warned_us.load(Ordering::Relaxed);
        if last != 0 && now_us.saturating_sub(last) < WARN_EVERY_US {
            return;
        }
        let (was, order) = (now_us.max(1), Ordering::Relaxed);
        if self
            .warned_us
            .compare_exchange(last, was, order, order)
            .is_ok()
        {
            tracing::warn!(
                client.address = %client,
                "Too many credentials from {client} were wrong. If a proxy is there, everybody behind it has this address. Name it in \
                 server.trusted_proxies, so that its clients are counted one by one. Until then failures are counted by user name, and \
                 somebody who guesses a name makes its user wait. This is said once an hour at most"
            );
        }
    }

    fn verdict_key(&self, revision: u64, usage: KeyUse, name: &str, password: &Secret) -> [u8; 32] {
        let mut mac =
            Hmac::<Sha256>::new_from_slice(&self.memory.key).expect("a key of any length is taken");
        mac.update(&[usage as u8]);
        mac.update(&revision.to_be_bytes());
        mac.update(&(name.len() as u64).to_be_bytes());
        mac.update(name.as_bytes());
        mac.update(password.reveal().as_bytes());
        mac.finalize().into_bytes().into()
    }
}

/// The memory that a keyed hash of credentials is for.
#[derive(Clone, Copy, Debug)]
enum KeyUse {
    /// Verdicts on the password of the user of a name.
    Known,
    /// Verdicts on that of any user of a like name.
    Alike,
    /// Passwords that were right.
    Proven,
}
