//! Commands of the operator on users and tokens, and their form as requests to the running process;
//! not what they do.

use super::{
    jid::{JID_WANTED, is_bare_jid},
    password::LoginHash,
    user::{NAME_WANTED, TokenNo, TokenUse, is_user_name},
};
use http::Method;
use percent_encoding::{NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};
use url::form_urlencoded;

/// A command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AccountCommand {
    /// Make a user.
    AddUser {
        /// The name.
        name: String,
        /// The hash of the login password, which itself stays with whoever gives the command.
        login: LoginHash,
        /// True to take WSSE digests of the hexadecimal SHA-1 from this user, too.
        hex_digest: bool,
        /// The bare address of XMPP that is to be the user's.
        jid: Option<String>,
    },
    /// Give a user a new login password.
    ChangePassword {
        /// The name.
        name: String,
        /// The hash of the new password.
        login: LoginHash,
        /// True to make a new feed password for WSSE, too.
        feed_password: bool,
    },
    /// List the users.
    ListUsers(ListForm),
    /// Remove a user with all tokens.
    RemoveUser {
        /// The name.
        name: String,
    },
    /// Make a token for a user.
    NewToken {
        /// The user.
        user: String,
        /// The place in which it is sent.
        usage: TokenUse,
    },
    /// List the tokens.
    ListTokens(ListForm),
    /// Remove a token.
    RevokeToken(TokenNo),
    /// Put another token in the place of one.
    RotateToken(TokenNo),
}

/// The form of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ListForm {
    /// A table for people.
    Table,
    /// A JSON object whose only member is the list.
    Json,
}

impl ListForm {
    /// The form that `json` in a query asks for.
    fn of(query: &str) -> Self {
        if value(query, "json").is_some() {
            Self::Json
        } else {
            Self::Table
        }
    }

    /// The path of a list in this form.
    fn at(self, list: &str) -> String {
        match self {
            Self::Table => list.to_owned(),
            Self::Json => format!("{list}?json="),
        }
    }
}

/// The outcome of a command, for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AccountAnswer {
    /// It is done. Secrets that were made are in the text, and nowhere else.
    Done(String),
    /// It cannot be done.
    Refused(String),
    /// The store failed.
    Failed(String),
}

const USERS: &str = "/users";
const TOKENS: &str = "/tokens";

/// The mistake in a request that names no command.
const WANTED: &str = "here are GET and POST /users, PUT and DELETE /users/NAME, GET and POST /tokens, POST and DELETE /tokens/NUMBER";

impl AccountCommand {
    /// The request that carries the command: a method, and a path with its query.
    pub fn request(&self) -> (Method, String) {
        let user = |name| format!("{USERS}/{}", utf8_percent_encode(name, NON_ALPHANUMERIC));
        let query = |pairs: &[(&str, &str)]| {
            form_urlencoded::Serializer::new(String::new())
                .extend_pairs(pairs)
                .finish()
        };
        match self {
            Self::AddUser {
                name,
                login,
                hex_digest,
                jid,
            } => {
                let mut pairs = vec![("login", login.reveal())];
                if *hex_digest {
                    pairs.push(("hex_digest", ""));
                }
                pairs.extend(jid.iter().map(|jid| ("jid", jid.as_str())));
                (Method::POST, user(name) + "?" + &query(&pairs))
            }
            Self::ChangePassword {
                name,
                login,
                feed_password,
            } => {
                let mut pairs = vec![("login", login.reveal())];
                if *feed_password {
                    pairs.push(("feed_password", ""));
                }
                (Method::PUT, user(name) + "?" + &query(&pairs))
            }
            Self::ListUsers(form) => (Method::GET, form.at(USERS)),
            Self::RemoveUser { name } => (Method::DELETE, user(name)),
            Self::NewToken { user, usage } => {
                let pairs = query(&[("user", user), ("use", usage.name())]);
                (Method::POST, format!("{TOKENS}?{pairs}"))
            }
            Self::ListTokens(form) => (Method::GET, form.at(TOKENS)),
            Self::RevokeToken(no) => (Method::DELETE, format!("{TOKENS}/{no}")),
            Self::RotateToken(no) => (Method::POST, format!("{TOKENS}/{no}")),
        }
    }

    /// The command of a request; `None` where its path is not about users or tokens, and the
    /// mistake in one that is.
    pub fn read(method: &Method, path: &str, query: &str) -> Option<Result<Self, &'static str>> {
        if let Some(name) = name_below(USERS, path) {
            return Some(Self::of_users(method, name, query));
        }
        let no = name_below(TOKENS, path)?;
        Some(Self::of_tokens(method, &no, query))
    }

    /// The command of a request at the list of users, or at the user of a name.
    fn of_users(method: &Method, name: String, query: &str) -> Result<Self, &'static str> {
        let login = || value(query, "login").and_then(|login| LoginHash::parse(&login));
        match method.as_str() {
            "GET" | "HEAD" if name.is_empty() => Ok(Self::ListUsers(ListForm::of(query))),
            "POST" if !is_user_name(&name) => Err(NAME_WANTED),
            "POST" => {
                let jid = value(query, "jid");
                if jid.as_ref().is_some_and(|jid| !is_bare_jid(jid)) {
                    return Err(JID_WANTED);
                }
                let login = login().ok_or(
                    "`login` must be the argon2id hash of a password; use `everfeed user add`",
                )?;
                Ok(Self::AddUser {
                    name,
                    login,
                    hex_digest: value(query, "hex_digest").is_some(),
                    jid,
                })
            }
            "PUT" if is_user_name(&name) => {
                let login = login().ok_or(
                    "`login` must be the argon2id hash of a password; use `everfeed user password`",
                )?;
                Ok(Self::ChangePassword {
                    name,
                    login,
                    feed_password: value(query, "feed_password").is_some(),
                })
            }
            "DELETE" if !name.is_empty() => Ok(Self::RemoveUser { name }),
            _ => Err(WANTED),
        }
    }

    /// The command of a request at the list of tokens, or at the token of a number.
    fn of_tokens(method: &Method, no: &str, query: &str) -> Result<Self, &'static str> {
        match method.as_str() {
            "GET" | "HEAD" if no.is_empty() => Ok(Self::ListTokens(ListForm::of(query))),
            "POST" if no.is_empty() => {
                let wanted = "name the `user`, and the `use`: bearer or url";
                let user = value(query, "user").ok_or(wanted)?;
                let usage = match value(query, "use").as_deref() {
                    Some("bearer") | None => TokenUse::Bearer,
                    Some("url") => TokenUse::Url,
                    Some(_) => return Err(wanted),
                };
                Ok(Self::NewToken { user, usage })
            }
            "POST" => token_no(no).map(Self::RotateToken),
            "DELETE" => token_no(no).map(Self::RevokeToken),
            _ => Err(WANTED),
        }
    }
}

/// The name in a path below a list, decoded; empty for the list itself, and `None` for other paths.
fn name_below(list: &str, path: &str) -> Option<String> {
    let rest = path.strip_prefix(list)?;
    if !rest.is_empty() && !rest.starts_with('/') {
        return None;
    }
    let name = percent_decode_str(rest.trim_start_matches('/')).decode_utf8_lossy();
    Some(name.into_owned())
}

/// The first value of a parameter.
fn value(query: &str, wanted: &str) -> Option<String> {
    let mut pairs = form_urlencoded::parse(query.as_bytes());
    let (_, value) = pairs.find(|(key, _)| key == wanted)?;
    Some(value.into_owned())
}

fn token_no(text: &str) -> Result<TokenNo, &'static str> {
    text.parse()
        .map(TokenNo)
        .map_err(|_| "give the number of a token, as `everfeed token list` prints it")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_is_read_back_from_its_request() {
        let login = LoginHash::of("hunter22");
        let commands = [
            AccountCommand::AddUser {
                name: "a+b@x".into(),
                login: login.clone(),
                hex_digest: true,
                jid: Some("bob@example.org".into()),
            },
            AccountCommand::AddUser {
                name: "alice".into(),
                login: login.clone(),
                hex_digest: false,
                jid: None,
            },
            AccountCommand::ChangePassword {
                name: "a@x".into(),
                login: login.clone(),
                feed_password: true,
            },
            AccountCommand::ChangePassword {
                name: "alice".into(),
                login,
                feed_password: false,
            },
            AccountCommand::ListUsers(ListForm::Table),
            AccountCommand::ListUsers(ListForm::Json),
            AccountCommand::RemoveUser { name: "a@x".into() },
            AccountCommand::NewToken {
                user: "a@x".into(),
                usage: TokenUse::Url,
            },
            AccountCommand::NewToken {
                user: "alice".into(),
                usage: TokenUse::Bearer,
            },
            AccountCommand::ListTokens(ListForm::Table),
            AccountCommand::ListTokens(ListForm::Json),
            AccountCommand::RevokeToken(TokenNo(7)),
            AccountCommand::RotateToken(TokenNo(7)),
        ];
        for command in commands {
            let (method, target) = command.request();
            let (path, query) = target.split_once('?').unwrap_or((&target, ""));
            assert_eq!(
                AccountCommand::read(&method, path, query),
                Some(Ok(command)),
                "{target}"
            );
        }
    }

    #[test]
    fn what_cannot_be_meant_is_refused_and_other_paths_are_left_alone() {
        let read =
            |method: Method, path: &str, query: &str| AccountCommand::read(&method, path, query);
        for (method, path, query) in [
            (Method::POST, "/users/alice", "login=plain"),
            (Method::POST, "/users/alice", ""),
            (Method::POST, "/users/a%3Ab", "login=x"),
            (Method::DELETE, "/users", ""),
            (Method::POST, "/tokens", ""),
            (Method::POST, "/tokens", "user=a&use=cookie"),
            (Method::DELETE, "/tokens/x", ""),
            (Method::PUT, "/users/alice", ""),
            (Method::PUT, "/users/a%3Ab", "login=x"),
            (Method::PATCH, "/users/alice", ""),
        ] {
            assert!(
                matches!(read(method, path, query), Some(Err(_))),
                "{path}?{query}"
            );
        }
        for path in ["/live", "/usersx", "/token"] {
            assert_eq!(read(Method::GET, path, ""), None);
        }
    }
}
