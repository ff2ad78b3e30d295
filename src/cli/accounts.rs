//! `everfeed user` and `everfeed token`: commands on users and tokens, through the running process
//! when there is one, else on the store itself.

use super::{ListOptions, WithConfig, ask::Running};
use crate::cli::output::{out, outln};
use crate::{
    app,
    auth::{
        TokenNo, TokenUse,
        commands::{AccountAnswer, AccountCommand, ListForm},
        jid::{JID_WANTED, is_bare_jid},
        password::{self, LoginHash, PASSWORD_BYTES_MAX, PASSWORD_CHARS_MIN},
        user::{NAME_WANTED, is_user_name},
    },
    config::Config,
    secret::Secret,
};
use anyhow::{Context as _, bail, ensure};
use clap::{Args, Subcommand};
use std::io::{BufRead as _, Read as _};

#[derive(Debug, Subcommand)]
pub(super) enum UserCommand {
    /// Make a user, and print its passwords once.
    Add(AddOptions),
    /// Give a user a new password, at once, and print it once. Tokens and subscriptions stay.
    Password(PasswordOptions),
    /// List the users.
    List(ListOptions),
    /// Remove a user with every token, at once. Its subscriptions end.
    Remove(UserOptions),
}

#[derive(Debug, Subcommand)]
pub(super) enum TokenCommand {
    /// Make a token for a user, and print it once.
    New(NewTokenOptions),
    /// List the tokens by their numbers. The tokens themselves are not shown.
    List(ListOptions),
    /// Revoke a token, at once. Subscriptions made with it end.
    Revoke(TokenOptions),
    /// Revoke a token and make another of its kind.
    Rotate(TokenOptions),
}

#[derive(Debug, Args)]
pub(super) struct AddOptions {
    #[command(flatten)]
    with: WithConfig,
    /// The name of the user.
    name: String,
    /// Read the login password from the first line of standard input.
    #[arg(long)]
    password_stdin: bool,
    /// Also accept WSSE digests of the hexadecimal SHA-1. Some clients send these.
    #[arg(long)]
    hex_digest: bool,
    /// The user's address of XMPP, such as me@example.org. Whoever reads by it is this user.
    #[arg(long)]
    jid: Option<String>,
}

#[derive(Debug, Args)]
pub(super) struct PasswordOptions {
    #[command(flatten)]
    with: WithConfig,
    /// The name of the user.
    name: String,
    /// Read the login password from the first line of standard input.
    #[arg(long)]
    password_stdin: bool,
    /// Also make a new feed password, for WSSE.
    #[arg(long)]
    feed_password: bool,
}

#[derive(Debug, Args)]
pub(super) struct UserOptions {
    #[command(flatten)]
    with: WithConfig,
    /// The name of the user.
    name: String,
}

#[derive(Debug, Args)]
pub(super) struct NewTokenOptions {
    #[command(flatten)]
    with: WithConfig,
    /// The name of the user.
    user: String,
    /// Make a secret URL instead of a token for `Authorization: Bearer`.
    #[arg(long)]
    url: bool,
}

#[derive(Debug, Args)]
pub(super) struct TokenOptions {
    #[command(flatten)]
    with: WithConfig,
    /// The number of the token.
    number: u64,
}

impl UserCommand {
    pub(super) fn with(&self) -> &WithConfig {
        match self {
            Self::Add(options) => &options.with,
            Self::Password(options) => &options.with,
            Self::List(options) => &options.with,
            Self::Remove(options) => &options.with,
        }
    }
}

impl TokenCommand {
    pub(super) fn with(&self) -> &WithConfig {
        match self {
            Self::New(options) => &options.with,
            Self::List(options) => &options.with,
            Self::Revoke(options) | Self::Rotate(options) => &options.with,
        }
    }
}

/// Carries out a command on users.
pub(super) async fn run_user(command: &UserCommand, config: &Config) -> anyhow::Result<()> {
    let mut made_up = None;
    let command = match command {
        UserCommand::Add(options) => {
            let name = options.name.clone();
            ensure!(is_user_name(&name), "found \"{name}\"; {NAME_WANTED}");
            if let Some(jid) = &options.jid {
                ensure!(is_bare_jid(jid), "--jid: found \"{jid}\"; {JID_WANTED}");
            }
            AccountCommand::AddUser {
                name,
                login: login(options.password_stdin, &mut made_up)?,
                hex_digest: options.hex_digest,
                jid: options.jid.clone(),
            }
        }
        UserCommand::Password(options) => AccountCommand::ChangePassword {
            name: options.name.clone(),
            login: login(options.password_stdin, &mut made_up)?,
            feed_password: options.feed_password,
        },
        UserCommand::List(options) => AccountCommand::ListUsers(form(options)),
        UserCommand::Remove(options) => AccountCommand::RemoveUser {
            name: options.name.clone(),
        },
    };
    out!("{}", carry_out(command, config).await?);
    if let Some(password) = made_up {
        outln!(
            "password       {}\n               for everything else; it is not shown again",
            password.reveal()
        );
    }
    Ok(())
}

/// Carries out a command on tokens.
pub(super) async fn run_token(command: &TokenCommand, config: &Config) -> anyhow::Result<()> {
    let command = match command {
        TokenCommand::New(options) => {
            let usage = if options.url {
                TokenUse::Url
            } else {
                TokenUse::Bearer
            };
            AccountCommand::NewToken {
                user: options.user.clone(),
                usage,
            }
        }
        TokenCommand::List(options) => AccountCommand::ListTokens(form(options)),
        TokenCommand::Revoke(options) => AccountCommand::RevokeToken(TokenNo(options.number)),
        TokenCommand::Rotate(options) => AccountCommand::RotateToken(TokenNo(options.number)),
    };
    out!("{}", carry_out(command, config).await?);
    Ok(())
}

fn form(options: &ListOptions) -> ListForm {
    if options.json {
        ListForm::Json
    } else {
        ListForm::Table
    }
}

/// The hash of a login password, which is noted where it is made up.
fn login(is_told: bool, made_up: &mut Option<Secret>) -> anyhow::Result<LoginHash> {
    if is_told {
        return Ok(LoginHash::of(read_password()?.reveal()));
    }
    let password = made_up.insert(password::generated());
    Ok(LoginHash::of(password.reveal()))
}

/// The login password in the first line of standard input.
fn read_password() -> anyhow::Result<Secret> {
    let mut line = String::new();
    let mut input = std::io::stdin().lock().take(PASSWORD_BYTES_MAX as u64 + 2);
    let read = input.read_line(&mut line);
    read.context("no password could be read")?;
    let password = line.trim_end_matches(['\n', '\r']);
    ensure!(
        password.chars().count() >= PASSWORD_CHARS_MIN && password.len() <= PASSWORD_BYTES_MAX,
        "a password has {PASSWORD_CHARS_MIN} characters at least and {PASSWORD_BYTES_MAX} bytes at most"
    );
    Ok(Secret::new(password))
}

async fn carry_out(command: AccountCommand, config: &Config) -> anyhow::Result<String> {
    let running = Running::of(config);
    let (method, target) = command.request();
    if let Some(told) = running.command(method, &target).await? {
        return Ok(told);
    }
    let answer = app::change_accounts(config, command).await;
    match answer.with_context(|| running.absent())? {
        AccountAnswer::Done(text) => Ok(text),
        AccountAnswer::Refused(why) | AccountAnswer::Failed(why) => bail!("{why}"),
    }
}
