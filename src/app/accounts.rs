//! Users and tokens: taken from the store, changed there at the operator's command, and put in
//! force at once.

use crate::{
    auth::{
        AccessToken, Accounts, Authenticator, NewAccessToken, NewUser, TokenNo, TokenUse, User,
        commands::{AccountAnswer, AccountCommand, ListForm},
        password::{self, LoginHash},
        token::{new_token, token_hash},
        user::{NAME_WANTED, USER_TOKENS_MAX, USERS_MAX, is_user_name},
    },
    catalog::{CatalogSnapshot, ReadGate, RegisteredFeed},
    clock::Clock,
    feed::stamp::{SECOND_US, Stamp},
    render::Site,
    secret::Secret,
    store::{Store, StoreError, listing},
};
use futures_util::TryStreamExt as _;
use serde_json::{Value, json};
use std::{fmt::Write as _, sync::Arc};
use thiserror::Error;

/// Everybody who is stored.
pub(super) async fn stored(store: &dyn Store) -> Result<Accounts, StoreError> {
    let (users, tokens) = lists(store).await?;
    Ok(Accounts::new(users, tokens))
}

async fn lists(store: &dyn Store) -> Result<(Vec<User>, Vec<AccessToken>), StoreError> {
    let users = listing::users(store).try_collect().await?;
    Ok((users, listing::tokens(store).try_collect().await?))
}

/// Lines in the log about readers who are no users, at most.
const UNKNOWN_SHOWN_MAX: usize = 20;

/// Tells the operator which readers that the configuration names are no users.
pub(super) fn tell_unknown_readers(gate: &ReadGate) {
    let (catalog, accounts) = (gate.catalog.snapshot(), gate.auth.accounts());
    for (feed, reader) in unknown_readers(&catalog, &accounts).take(UNKNOWN_SHOWN_MAX) {
        tracing::warn!(
            feed.name = %feed, user.name = %reader,
            "feed.{feed}.access: there is no user `{reader}`; make it by `everfeed user add {reader}`, or take it out"
        );
    }
}

/// The readers who are no users, each with a feed that names it.
fn unknown_readers<'a>(
    catalog: &'a CatalogSnapshot,
    accounts: &'a Accounts,
) -> impl Iterator<Item = (&'a str, &'a str)> {
    let of_feed = |feed: &'a Arc<RegisteredFeed>| {
        feed.settings
            .readers()
            .map(|reader| (feed.settings.name.as_str(), reader))
    };
    catalog
        .feeds()
        .flat_map(of_feed)
        .filter(|(_, reader)| accounts.user(reader).is_none())
}

/// Carries out commands on users and tokens.
pub(super) struct AccountCommands {
    pub(super) store: Arc<dyn Store>,
    /// Whoever is to know of changes; `None` where nobody serves the store.
    pub(super) auth: Option<Arc<Authenticator>>,
    pub(super) site: Site,
    pub(super) clock: Arc<dyn Clock>,
    /// Held by the command under way: there is one at a time.
    pub(super) turn: tokio::sync::Mutex<()>,
}

/// A command that is not carried out.
#[derive(Debug, Error)]
enum AccountRefused {
    #[error("{0}")]
    Never(String),
    #[error(transparent)]
    Store(#[from] StoreError),
    /// It is carried out, and an older copy of the store would undo it.
    #[error("{0}")]
    Unremembered(String),
}

fn refused<T>(why: impl Into<String>) -> Result<T, AccountRefused> {
    Err(AccountRefused::Never(why.into()))
}

impl AccountCommands {
    /// Carries out a command.
    pub(super) async fn run(&self, command: AccountCommand) -> AccountAnswer {
        let _turn = self.turn.lock().await;
        let done = match command {
            AccountCommand::AddUser {
                name,
                login,
                hex_digest,
                jid,
            } => {
                let new = NewUser {
                    name,
                    login,
                    feed_password: password::generated(),
                    hex_digest,
                    created_us: self.clock.now_us(),
                    jid,
                };
                self.add_user(new).await
            }
            AccountCommand::ChangePassword {
                name,
                login,
                feed_password,
            } => self.change_password(&name, login, feed_password).await,
            AccountCommand::ListUsers(form) => self.list_users(form).await,
            AccountCommand::RemoveUser { name } => self.remove_user(&name).await,
            AccountCommand::NewToken { user, usage } => self.new_token(&user, usage).await,
            AccountCommand::ListTokens(form) => self.list_tokens(form).await,
            AccountCommand::RevokeToken(no) => self.revoke_token(no).await,
            AccountCommand::RotateToken(no) => self.rotate_token(no).await,
        };
        match done {
            Ok(text) => AccountAnswer::Done(text),
            Err(never @ AccountRefused::Never(_)) => AccountAnswer::Refused(never.to_string()),
            Err(failed @ (AccountRefused::Store(_) | AccountRefused::Unremembered(_))) => {
                AccountAnswer::Failed(failed.to_string())
            }
        }
    }

    /// Puts in force what is stored now.
    async fn publish(&self) -> Result<(), StoreError> {
        if let Some(auth) = &self.auth {
            auth.publish(stored(&*self.store).await?);
        }
        Ok(())
    }

    /// The words for a removal, unless an older copy of the store would undo it.
    fn remembered(&self, told: String) -> Result<String, AccountRefused> {
        match self.store.removal_faults().unwritten {
            None => Ok(told),
            Some(why) => Err(AccountRefused::Unremembered(format!("{told}{why}"))),
        }
    }

    async fn add_user(&self, new: NewUser) -> Result<String, AccountRefused> {
        if !is_user_name(&new.name) {
            return refused(NAME_WANTED);
        }
        let (users, _) = lists(&*self.store).await?;
        if users.len() >= USERS_MAX {
            return refused(format!("there are {USERS_MAX} users already"));
        }
        let has_jid = |user: &&User| new.jid.is_some() && user.kept.jid == new.jid;
        if let Some(other) = users.iter().find(has_jid) {
            let name = &other.kept.name;
            return refused(format!(
                "the user `{name}` has this address of XMPP; remove that user first, or leave --jid out"
            ));
        }
        let (name, feed_password) = (new.name.clone(), new.feed_password.clone());
        if self.store.add_user(new).await?.is_none() {
            return refused(format!(
                "there is a user `{name}` already; `everfeed user password {name}` gives it another password"
            ));
        }
        self.publish().await?;
        tracing::info!(user.name = %name, "Made the user `{name}`");
        let line = feed_password_line(&feed_password);
        Ok(format!("user `{name}` is made\n{line}"))
    }

    async fn change_password(
        &self,
        name: &str,
        login: LoginHash,
        feed_password: bool,
    ) -> Result<String, AccountRefused> {
        let mut user = self.user(name).await?;
        user.kept.login = login;
        if feed_password {
            user.kept.feed_password = password::generated();
        }
        let new_feed_password = user.kept.feed_password.clone();
        if !self.store.change_user(user).await? {
            return refused(no_user(name));
        }
        self.publish().await?;
        tracing::info!(user.name = %name, "Changed the password of the user `{name}`");
        let mut text =
            format!("`{name}` has a new password; the former one opens nothing any more\n");
        if feed_password {
            text += &feed_password_line(&new_feed_password);
        }
        self.remembered(text)
    }

    async fn list_users(&self, form: ListForm) -> Result<String, AccountRefused> {
        let (users, tokens) = lists(&*self.store).await?;
        if form == ListForm::Json {
            let user = |user: &User| {
                json!({
                    "name": user.kept.name,
                    "tokens": count_of(user, &tokens),
                    "made_at": time(user.kept.created_us),
                    "hex_digest": user.kept.hex_digest,
                    "jid": user.kept.jid,
                })
            };
            let users: Vec<Value> = users.iter().map(user).collect();
            return Ok(format!("{}\n", json!({ "users": users })));
        }
        if users.is_empty() {
            return Ok("there are no users\n".to_owned());
        }
        let mut text = format!(
            "{:<24}  {:>6}  {:<20}  {:<21}  {}\n",
            "user", "tokens", "made", "wsse", "xmpp"
        );
        for user in &users {
            let count = count_of(user, &tokens);
            let wsse = if user.kept.hex_digest {
                "binary or hexadecimal"
            } else {
                "binary"
            };
            let made = time(user.kept.created_us);
            let name = &user.kept.name;
            let jid = user.kept.jid.as_deref().unwrap_or("-");
            let _ = writeln!(
                text,
                "{name:<24}  {count:>6}  {made:<20}  {wsse:<21}  {jid}"
            );
        }
        Ok(text)
    }

    async fn remove_user(&self, name: &str) -> Result<String, AccountRefused> {
        let user = self.user(name).await?;
        self.store.remove_user(user.no).await?;
        self.publish().await?;
        tracing::info!(user.name = %name, "Removed the user `{name}`");
        self.remembered(format!(
            "user `{name}` is removed, with every token; subscriptions made by it end\n"
        ))
    }

    async fn new_token(&self, name: &str, usage: TokenUse) -> Result<String, AccountRefused> {
        let user = self.user(name).await?;
        let (_, tokens) = lists(&*self.store).await?;
        if count_of(&user, &tokens) >= USER_TOKENS_MAX {
            return refused(format!(
                "`{name}` has {USER_TOKENS_MAX} tokens already; revoke one first"
            ));
        }
        self.make_token(&user, usage).await
    }

    async fn make_token(&self, user: &User, usage: TokenUse) -> Result<String, AccountRefused> {
        let secret = new_token();
        let hash = token_hash(secret.reveal());
        let new = NewAccessToken {
            user: user.no,
            usage,
            hash,
            created_us: self.clock.now_us(),
        };
        let name = &user.kept.name;
        let Some(token) = self.store.add_token(new).await? else {
            return refused(no_user(name));
        };
        self.publish().await?;
        let no = token.no;
        tracing::info!(user.name = %name, token.no = no.0, "Made token {no} of `{name}`");
        let shown = match usage {
            TokenUse::Bearer => {
                let token = secret.reveal();
                format!("token       {token}\nsend it as  Authorization: Bearer TOKEN")
            }
            TokenUse::Url => {
                let url = self.site.below_secret(secret.reveal()).list();
                format!("secret URL  {url}")
            }
        };
        Ok(format!(
            "token {no} of `{name}` is made; it is not shown again\n{shown}\n"
        ))
    }

    async fn list_tokens(&self, form: ListForm) -> Result<String, AccountRefused> {
        let (users, tokens) = lists(&*self.store).await?;
        let name_of = |token: &AccessToken| {
            let user = users.iter().find(|user| user.no == token.kept.user);
            user.map_or("", |user| user.kept.name.as_str())
        };
        if form == ListForm::Json {
            let token = |token: &AccessToken| {
                json!({
                    "number": token.no.0,
                    "user": name_of(token),
                    "use": token.kept.usage.name(),
                    "made_at": time(token.kept.created_us),
                })
            };
            let tokens: Vec<Value> = tokens.iter().map(token).collect();
            return Ok(format!("{}\n", json!({ "tokens": tokens })));
        }
        if tokens.is_empty() {
            return Ok("there are no tokens\n".to_owned());
        }
        let mut text = format!("{:>6}  {:<24}  {:<6}  {}\n", "token", "user", "use", "made");
        for token in &tokens {
            let AccessToken { no, kept } = token;
            let name = name_of(token);
            let (usage, made) = (kept.usage.name(), time(kept.created_us));
            let _ = writeln!(text, "{no:>6}  {name:<24}  {usage:<6}  {made}");
        }
        Ok(text)
    }

    async fn revoke_token(&self, no: TokenNo) -> Result<String, AccountRefused> {
        if !self.store.remove_token(no).await? {
            return refused(no_token(no));
        }
        self.publish().await?;
        tracing::info!(token.no = no.0, "Revoked token {no}");
        self.remembered(format!(
            "token {no} is revoked; subscriptions made by it end\n"
        ))
    }

    async fn rotate_token(&self, no: TokenNo) -> Result<String, AccountRefused> {
        let (users, tokens) = lists(&*self.store).await?;
        let token = tokens.into_iter().find(|token| token.no == no);
        let Some(token) = token else {
            return refused(no_token(no));
        };
        let Some(user) = users.iter().find(|user| user.no == token.kept.user) else {
            return refused(no_token(no));
        };
        self.store.remove_token(no).await?;
        tracing::info!(token.no = no.0, "Revoked token {no} for another");
        let made = self.make_token(user, token.kept.usage).await;
        // The former one is gone, whatever became of its successor.
        self.publish().await?;
        self.remembered(format!("token {no} is revoked\n{}", made?))
    }

    async fn user(&self, name: &str) -> Result<User, AccountRefused> {
        let (users, _) = lists(&*self.store).await?;
        match users.into_iter().find(|user| user.kept.name == name) {
            Some(user) => Ok(user),
            None => refused(no_user(name)),
        }
    }
}

fn no_user(name: &str) -> String {
    format!("there is no user `{name}`")
}

fn no_token(no: TokenNo) -> String {
    format!("there is no token {no}")
}

/// The number of tokens of a user.
fn count_of(user: &User, tokens: &[AccessToken]) -> usize {
    let is_of = |token: &&AccessToken| token.kept.user == user.no;
    tokens.iter().filter(is_of).count()
}

fn feed_password_line(password: &Secret) -> String {
    let password = password.reveal();
    format!("feed password  {password}\n               for WSSE only; it is not shown again\n")
}

fn time(us: u64) -> String {
    Stamp::from_secs(us / SECOND_US).rfc3339()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        auth::{AccessSettings, PrincipalId, testing},
        catalog::FeedSettings,
        clock::Manual,
        feed::record::FeedNo,
        store::memory::Memory,
    };
    use url::Url;

    #[test]
    fn readers_who_are_no_users_are_named_with_their_feed() {
        let feed = |no, name: &str, access| {
            let settings = FeedSettings::new(name, Url::parse("http://x/").unwrap());
            RegisteredFeed::new(FeedNo(no), FeedSettings { access, ..settings })
        };
        let named = |names: &[&str]| {
            AccessSettings::Named(names.iter().map(|name| (*name).to_owned()).collect())
        };
        let feeds = [
            feed(1, "a", named(&["alice", "carol"])),
            feed(2, "b", AccessSettings::Users),
        ];
        let catalog = CatalogSnapshot::new(feeds, []);
        let unknown = |accounts: &Accounts| {
            let found = unknown_readers(&catalog, accounts);
            found
                .map(|(feed, reader)| format!("{feed} {reader}"))
                .collect::<Vec<_>>()
        };
        assert_eq!(unknown(&testing::accounts(&[])), ["a carol"]);
        assert_eq!(unknown(&Accounts::default()), ["a alice", "a carol"]);
    }

    #[tokio::test]
    async fn a_desk_puts_every_change_in_force_and_a_rotated_token_is_another() {
        let clock: Arc<dyn Clock> = Arc::new(Manual::at(1_780_272_000_000_000));
        let store: Arc<dyn Store> = Arc::new(Memory::new(clock.clone()));
        let auth = testing::authenticator(&clock);
        auth.publish(Accounts::default());
        let site = Site::new(&Url::parse("https://feeds.example/").unwrap(), "");
        let turn = tokio::sync::Mutex::default();
        let desk = AccountCommands {
            store,
            auth: Some(auth.clone()),
            site,
            clock,
            turn,
        };
        let done = async |command| match desk.run(command).await {
            AccountAnswer::Done(text) => text,
            other => panic!("{other:?}"),
        };
        let login = password::LoginHash::of("open sesame");
        let add = AccountCommand::AddUser {
            name: "alice".into(),
            login,
            hex_digest: false,
            jid: None,
        };
        assert!(done(add.clone()).await.contains("feed password"));
        assert!(
            matches!(desk.run(add).await, AccountAnswer::Refused(_)),
            "there is one"
        );
        let user = auth.accounts().user("alice").unwrap().no;
        let new = || AccountCommand::NewToken {
            user: "alice".into(),
            usage: TokenUse::Url,
        };
        assert!(done(new()).await.contains("https://feeds.example/s/"));
        let known = |no| {
            auth.principal(PrincipalId {
                user,
                token: Some(TokenNo(no)),
            })
            .is_some()
        };
        assert!(known(1));
        assert!(
            done(AccountCommand::RotateToken(TokenNo(1)))
                .await
                .contains("/s/")
        );
        assert!(!known(1) && known(2));
        assert!(matches!(
            desk.run(AccountCommand::RotateToken(TokenNo(1))).await,
            AccountAnswer::Refused(_)
        ));
        for list in [AccountCommand::ListUsers, AccountCommand::ListTokens] {
            let table = done(list(ListForm::Table)).await;
            let told = done(list(ListForm::Json)).await;
            let told: Value = serde_json::from_str(&told).unwrap();
            let listed = told.get("users").or_else(|| told.get("tokens")).unwrap();
            assert_eq!(listed.as_array().unwrap().len(), table.lines().count() - 1);
            assert!(
                told.to_string().contains("\"2026-06-01T00:00:00Z\""),
                "{told}"
            );
        }
        for _ in 1..USER_TOKENS_MAX {
            done(new()).await;
        }
        assert!(
            matches!(desk.run(new()).await, AccountAnswer::Refused(_)),
            "as many as one may have"
        );
        done(AccountCommand::RemoveUser {
            name: "alice".into(),
        })
        .await;
        assert!(auth.accounts().is_empty() && !known(2));
        assert_eq!(
            done(AccountCommand::ListTokens(ListForm::Table)).await,
            "there are no tokens\n"
        );
    }
}
