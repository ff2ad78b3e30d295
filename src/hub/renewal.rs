//! A request for a subscription that is active: which terms it changes, once its callback has
//! answered; not how the callback is asked.
//!
//! Anybody can send such a request, and many callbacks return every challenge. So a challenge that
//! comes back confirms what WebSub puts into the question (mode, topic, lease, token), and the
//! secret, which WebSub lets a renewal replace. Every other term stays unless the answer names it.

use crate::{
    feed::view::Deletions,
    store::subscriptions::{CallbackTarget, Directives, NamedMethods, PushWishes, Target},
};
use url::form_urlencoded;

/// A term of a subscription that WebSub does not know. Methods are named in a header of their own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Term {
    /// The hash that signs.
    Algo,
    /// The position from which pushes go on.
    Cursor,
    Deletions,
    Heartbeat,
    Warning,
}

impl Term {
    /// All of them.
    pub(super) const ALL: [Self; 5] = [
        Self::Algo,
        Self::Cursor,
        Self::Deletions,
        Self::Heartbeat,
        Self::Warning,
    ];

    /// Its name, which the question has behind `hub.`.
    const fn name(self) -> &'static str {
        match self {
            Self::Algo => "signature_algo",
            Self::Cursor => "cursor",
            Self::Deletions => "deletions",
            Self::Heartbeat => "heartbeat_seconds",
            Self::Warning => "warning_seconds",
        }
    }

    /// The term that a word of an answer means.
    pub(super) fn named(word: &str) -> Option<Self> {
        let word = word.strip_prefix("hub.").unwrap_or(word);
        Self::ALL.into_iter().find(|term| term.name() == word)
    }
}

/// The words of a callback that returned the challenge.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Confirmation {
    /// The methods that it takes.
    pub(super) methods: NamedMethods,
    /// The terms that it lets a renewal change.
    pub(super) terms: Vec<Term>,
}

impl Confirmation {
    /// The words that confirm whatever is asked.
    pub(super) fn of_everything() -> Self {
        Self {
            methods: NamedMethods {
                directives: Directives::ALL,
                overrides_method: None,
            },
            terms: Term::ALL.to_vec(),
        }
    }
}

// Decides: What may a renewal change?
/// The target of an active subscription after a request, with the words of its callback. What the
/// request leaves out stays.
pub(super) fn renewed(active: &Target, asked: Target, confirmation: &Confirmation) -> Target {
    let Target::Callback(asked) = asked else {
        return asked;
    };
    let Some(active) = active.callback() else {
        return Target::Callback(asked);
    };
    let counts = |term| confirmation.terms.contains(&term);
    let is_first_secret = active.secret.is_none() && asked.secret.is_some();
    let wishes = PushWishes {
        deletions: deletions(active, &asked, counts(Term::Deletions)),
        heartbeat_secs: asked
            .wishes
            .heartbeat_secs
            .filter(|_| counts(Term::Heartbeat))
            .or(active.wishes.heartbeat_secs),
        warning_secs: asked
            .wishes
            .warning_secs
            .filter(|_| counts(Term::Warning))
            .or(active.wishes.warning_secs),
        ..methods(&active.wishes, &asked.wishes, confirmation)
    };
    Target::Callback(CallbackTarget {
        url: asked.url,
        topic_as_sent: asked.topic_as_sent,
        dialect: active.dialect,
        secret: asked.secret.or_else(|| active.secret.clone()),
        algo: if is_first_secret || counts(Term::Algo) {
            asked.algo
        } else {
            active.algo
        },
        verify_token: asked.verify_token.or_else(|| active.verify_token.clone()),
        wishes,
    })
}

/// The wish for items that are gone. One that stands in the topic was in the question as WebSub has
/// it.
fn deletions(
    active: &CallbackTarget,
    asked: &CallbackTarget,
    is_counted: bool,
) -> Option<Deletions> {
    let query = asked.topic_as_sent.split_once('?');
    let mut pairs = form_urlencoded::parse(query.map_or("", |(_, query)| query).as_bytes());
    let is_in_topic = pairs.any(|(name, _)| name == "deletions");
    let wish = asked.wishes.deletions.filter(|_| is_counted || is_in_topic);
    wish.or(active.wishes.deletions)
}

/// The wishes for methods, which count as far as the callback names them. One more may be asked for;
/// one that is there ends when the callback names it no more. The way in which they are told stays
/// unless the answer has a word for it.
fn methods(active: &PushWishes, asked: &PushWishes, confirmation: &Confirmation) -> PushWishes {
    let named = confirmation.methods.directives;
    if named.and(asked.wanted()).is_empty() {
        return active.clone();
    }
    if active.wanted().is_empty() {
        return asked.clone();
    }
    PushWishes {
        methods: active.wanted().or(asked.wanted().and(named)),
        ..active.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        secret::Secret,
        store::subscriptions::{Algo, Dialect, Directive},
    };

    const TOPIC: &str = "http://feeds.example/feeds/blog.atom";

    fn plain() -> CallbackTarget {
        CallbackTarget {
            url: "http://reader.example/cb".into(),
            topic_as_sent: TOPIC.into(),
            dialect: Dialect::WebSub,
            secret: Some(Secret::new("hush")),
            algo: Algo::Sha256,
            verify_token: Some("token".into()),
            wishes: PushWishes {
                deletions: Some(Deletions::Announce),
                methods: [Directive::Put, Directive::Delete].into_iter().collect(),
                named: Directives::default(),
                overrides_method: false,
                heartbeat_secs: Some(600),
                warning_secs: Some(60),
            },
        }
    }

    /// A stranger that changes whatever it can.
    fn strange() -> CallbackTarget {
        CallbackTarget {
            dialect: Dialect::Legacy,
            secret: None,
            algo: Algo::Sha1,
            verify_token: None,
            wishes: PushWishes {
                deletions: Some(Deletions::Omit),
                overrides_method: true,
                heartbeat_secs: Some(60),
                warning_secs: Some(1),
                ..PushWishes::default()
            },
            ..plain()
        }
    }

    fn check(asked: CallbackTarget, terms: &[Term], expect: &CallbackTarget) {
        let active = Target::Callback(plain());
        let confirmation = Confirmation {
            methods: NamedMethods {
                directives: plain().wishes.methods,
                overrides_method: None,
            },
            terms: terms.to_vec(),
        };
        let renewed = renewed(&active, Target::Callback(asked), &confirmation);
        assert_eq!(renewed.callback(), Some(expect), "{terms:?}");
    }

    #[test]
    fn a_wish_for_methods_that_the_callback_does_not_name_is_none() {
        let mut active = plain();
        active.wishes = PushWishes::default();
        let active = Target::Callback(active);
        let check = |methods: &[Directive], is_taken: bool| {
            let methods_named = NamedMethods {
                directives: methods.iter().copied().collect(),
                overrides_method: None,
            };
            let confirmation = Confirmation {
                methods: methods_named,
                terms: Vec::new(),
            };
            let renewed = renewed(&active, Target::Callback(strange()), &confirmation);
            assert_eq!(renewed.wishes().overrides_method, is_taken, "{methods:?}");
            assert_eq!(renewed == active, !is_taken);
        };
        check(&[], false);
        check(&[Directive::Put], true);
    }

    #[test]
    fn a_renewal_changes_no_term_that_is_not_named_and_no_other_one_with_it() {
        check(strange(), &[], &plain());
        let changed = |change: fn(&mut CallbackTarget)| {
            let mut expect = plain();
            change(&mut expect);
            expect
        };
        for (term, expect) in [
            (Term::Algo, changed(|it| it.algo = Algo::Sha1)),
            (Term::Cursor, plain()),
            (
                Term::Deletions,
                changed(|it| it.wishes.deletions = Some(Deletions::Omit)),
            ),
            (
                Term::Heartbeat,
                changed(|it| it.wishes.heartbeat_secs = Some(60)),
            ),
            (
                Term::Warning,
                changed(|it| it.wishes.warning_secs = Some(1)),
            ),
        ] {
            check(strange(), &[term], &expect);
        }
    }

    #[test]
    fn a_renewal_that_says_nothing_changes_nothing_whatever_is_named() {
        let silent = CallbackTarget {
            secret: None,
            verify_token: None,
            wishes: PushWishes::default(),
            ..plain()
        };
        check(silent, &Term::ALL, &plain());
    }

    #[test]
    fn what_stands_in_the_question_of_web_sub_changes_with_the_challenge() {
        let topic_as_sent = format!("{TOPIC}?deletions=omit");
        let asked = CallbackTarget {
            topic_as_sent: topic_as_sent.clone(),
            secret: Some(Secret::new("new")),
            verify_token: Some("other".into()),
            ..strange()
        };
        let mut expect = CallbackTarget {
            topic_as_sent,
            secret: asked.secret.clone(),
            verify_token: asked.verify_token.clone(),
            ..plain()
        };
        expect.wishes.deletions = Some(Deletions::Omit);
        check(asked, &[], &expect);
    }

    #[test]
    fn a_method_may_be_asked_for_beside_others_and_takes_none_away() {
        let mut asked = plain();
        asked.wishes.methods = [Directive::Patch].into_iter().collect();
        check(asked.clone(), &[], &plain());
        let active = Target::Callback(plain());
        let confirmation = Confirmation::of_everything();
        let renewed = renewed(&active, Target::Callback(asked), &confirmation);
        assert_eq!(renewed.wishes().methods, Directives::ALL);
    }

    #[test]
    fn words_of_answers_mean_terms_by_the_names_of_the_question() {
        for term in Term::ALL {
            assert_eq!(Term::named(term.name()), Some(term));
            assert_eq!(Term::named(&format!("hub.{}", term.name())), Some(term));
        }
        assert_eq!(Term::named("secret"), None);
        assert_eq!(Term::named("*"), None);
    }
}
