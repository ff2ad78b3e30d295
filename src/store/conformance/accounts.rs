//! Users and their tokens.

use super::rig::Rig;
use crate::{
    auth::{NewAccessToken, NewUser, TokenNo, TokenUse, User, UserNo, password::LoginHash},
    secret::Secret,
};

on_every_store![
    a_user_has_a_name_of_its_own_and_a_number_that_is_not_given_again,
    a_user_is_changed_under_its_number,
    a_token_goes_with_its_user,
    accounts_are_listed_by_pages,
];

pub(crate) fn user(name: &str) -> NewUser {
    NewUser {
        name: name.to_owned(),
        login: LoginHash::stored("$argon2id$".to_owned()),
        feed_password: Secret::new("feed"),
        hex_digest: true,
        created_us: 7,
        jid: None,
    }
}

pub(crate) fn token(user: UserNo, first: u8) -> NewAccessToken {
    NewAccessToken {
        user,
        usage: TokenUse::Url,
        hash: [first; 32],
        created_us: 8,
    }
}

async fn a_user_has_a_name_of_its_own_and_a_number_that_is_not_given_again(rig: Rig) {
    let alice = rig.add_user(user("alice")).await.unwrap().unwrap();
    assert_eq!(
        alice,
        User {
            no: UserNo(1),
            kept: user("alice")
        }
    );
    assert_eq!(rig.add_user(user("alice")).await.unwrap(), None);
    let bob = rig.add_user(user("bob")).await.unwrap().unwrap();
    let rig = rig.reopen();
    assert_eq!(rig.users(None, 9).await.unwrap(), [alice, bob.clone()]);
    assert!(rig.remove_user(bob.no).await.unwrap());
    assert!(!rig.remove_user(bob.no).await.unwrap());
    let rig = rig.reopen();
    let again = rig.add_user(user("bob")).await.unwrap().unwrap();
    assert_eq!(again.no, UserNo(3), "another bob");
}

async fn a_user_is_changed_under_its_number(rig: Rig) {
    let alice = rig.add_user(user("alice")).await.unwrap().unwrap();
    let bob = rig.add_user(user("bob")).await.unwrap().unwrap();
    let one = rig.add_token(token(alice.no, 1)).await.unwrap().unwrap();
    let login = LoginHash::stored("$argon2id$other".to_owned());
    let changed = User {
        kept: NewUser {
            login,
            ..user("alice")
        },
        ..alice
    };
    assert!(rig.change_user(changed.clone()).await.unwrap());
    assert!(
        !rig.change_user(User {
            no: UserNo(9),
            ..changed.clone()
        })
        .await
        .unwrap()
    );
    let rig = rig.reopen();
    assert_eq!(rig.users(None, 9).await.unwrap(), [changed, bob]);
    assert_eq!(rig.tokens(None, 9).await.unwrap(), [one], "its tokens stay");
}

async fn a_token_goes_with_its_user(rig: Rig) {
    assert_eq!(rig.add_token(token(UserNo(1), 1)).await.unwrap(), None);
    let alice = rig.add_user(user("alice")).await.unwrap().unwrap().no;
    let bob = rig.add_user(user("bob")).await.unwrap().unwrap().no;
    let one = rig.add_token(token(alice, 1)).await.unwrap().unwrap();
    let two = rig.add_token(token(bob, 2)).await.unwrap().unwrap();
    let three = rig.add_token(token(alice, 3)).await.unwrap().unwrap();
    assert_eq!((one.no, &one.kept), (TokenNo(1), &token(alice, 1)));
    let rig = rig.reopen();
    assert_eq!(
        rig.tokens(None, 9).await.unwrap(),
        [one, two.clone(), three.clone()]
    );
    assert!(rig.remove_token(three.no).await.unwrap());
    assert!(!rig.remove_token(three.no).await.unwrap());
    assert!(rig.remove_user(alice).await.unwrap());
    assert_eq!(rig.tokens(None, 9).await.unwrap(), [two]);
    let four = rig.add_token(token(bob, 4)).await.unwrap().unwrap();
    assert_eq!(four.no, TokenNo(4), "no number is given again");
}

async fn accounts_are_listed_by_pages(rig: Rig) {
    for name in ["a", "b", "c"] {
        let no = rig.add_user(user(name)).await.unwrap().unwrap().no;
        rig.add_token(token(no, 1)).await.unwrap().unwrap();
    }
    let users = rig.users(Some(UserNo(1)), 1).await.unwrap();
    assert_eq!(users.iter().map(|user| user.no.0).collect::<Vec<_>>(), [2]);
    let tokens = rig.tokens(Some(TokenNo(2)), 9).await.unwrap();
    assert_eq!(
        tokens.iter().map(|token| token.no.0).collect::<Vec<_>>(),
        [3]
    );
}
