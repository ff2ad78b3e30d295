//! Users and tokens as a store keeps them; not how they are checked.

use super::StoreFuture;
use crate::auth::{AccessToken, NewAccessToken, NewUser, TokenNo, User, UserNo};

/// Users, and the tokens of users.
pub trait AccountStore: Send + Sync {
    /// Makes a user; `None` when there is one of that name.
    fn add_user(&self, new: NewUser) -> StoreFuture<'_, Option<User>>;

    /// Keeps a user in the place of the one of its number, whose name it has. True when there was
    /// one.
    fn change_user(&self, changed: User) -> StoreFuture<'_, bool>;

    /// The users after this number, by number, at most so many.
    fn users(&self, after: Option<UserNo>, max: usize) -> StoreFuture<'_, Vec<User>>;

    /// Removes a user and all tokens of it. Its number is not given again. True when there was one.
    fn remove_user(&self, user: UserNo) -> StoreFuture<'_, bool>;

    /// Makes a token; `None` when there is no such user.
    fn add_token(&self, new: NewAccessToken) -> StoreFuture<'_, Option<AccessToken>>;

    /// The tokens after this number, by number, at most so many.
    fn tokens(&self, after: Option<TokenNo>, max: usize) -> StoreFuture<'_, Vec<AccessToken>>;

    /// Removes a token. Its number is not given again. True when there was one.
    fn remove_token(&self, token: TokenNo) -> StoreFuture<'_, bool>;
}
