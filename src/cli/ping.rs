//! `everfeed ping`: tells the hub of a feed that the feed has changed, and repeats that, since some
//! deploys take effect late. It needs no configuration.

use super::probe::{
    Trouble,
    blog::{address, named_hubs},
    sheet::tame,
};
use crate::cli::output::outln;
use crate::{
    app::ping::{HubReply, HubSilence, is_near, tell_hub},
    feed::schedule::Whose,
};
use clap::Args;
use std::time::Duration;
use tokio::time::sleep;
use url::Url;

/// Waits before the repetitions.
const WAITS: [Duration; 2] = [Duration::from_secs(10), Duration::from_secs(50)];

/// Characters of a hub's words that are shown.
const WORDS_CHARS_MAX: usize = 500;

/// The feed that has changed.
#[derive(Debug, Args)]
pub(super) struct PingOptions {
    /// The address of the feed.
    #[arg(value_name = "URL")]
    url: String,
    /// Tell this hub. The feed is not asked for one.
    #[arg(long, value_name = "URL")]
    hub: Option<String>,
    /// Tell the hub once, and do not repeat it.
    #[arg(long)]
    once: bool,
}

/// The hub, and what it is told.
struct Notice {
    hub: Url,
    topics: Vec<String>,
    /// True for a hub that may be on this machine or in its network.
    may_be_near: bool,
}

/// Result of one notice.
#[derive(Debug, PartialEq, Eq)]
enum Told {
    /// The hub took it; its words, if it had any.
    Taken(String),
    /// It did not, for this reason.
    Refused {
        why: String,
        /// True when the same notice may be taken later.
        may_pass: bool,
    },
}

/// Tells the hub, and repeats it unless that is not wanted.
pub(super) fn run(options: &PingOptions) -> anyhow::Result<()> {
    let notice = Notice::of(options)?;
    let waits: &[Duration] = if options.once { &[] } else { &WAITS };
    super::block_on(async {
        let tell = async || {
            told(
                &notice.hub,
                tell_hub(&notice.hub, &notice.topics, notice.may_be_near).await,
            )
        };
        let say = |line: &str| outln!("{line}");
        Ok(repeated(waits, tell, say).await.map_err(Trouble::new)?)
    })
}

impl Notice {
    fn of(options: &PingOptions) -> Result<Self, Trouble> {
        let url = address(&options.url)?;
        let mut bare = url.clone();
        // Both fail only for URLs without a host.
        let _ = bare.set_username("");
        let _ = bare.set_password(None);
        let mut topics = vec![bare.to_string()];
        if let Some(hub) = &options.hub {
            return Ok(Self {
                hub: address(hub)?,
                topics,
                may_be_near: true,
            });
        }
        let named = named_hubs(&url)?;
        let hub = named.hubs.iter().find_map(|hub| address(hub).ok());
        let hub = hub.ok_or_else(|| {
            Trouble::new(format!(
                "{bare} names no hub, so no hub was told. The feed has no link with rel=\"hub\"; its publisher can add one. \
                 Name a hub with --hub URL"
            ))
        })?;
        // Subscribers know a feed by the address that it gives itself.
        topics.extend(named.own.filter(|own| *own != topics[0]));
        // A document may name any address: one nearby must be that of its own host.
        let may_be_near = is_near(&url) || hub.host() == url.host();
        Ok(Self {
            hub,
            topics,
            may_be_near,
        })
    }
}

/// Tells the hub at once, and again after each wait; the reason, when the hub never took it.
async fn repeated(
    waits: &[Duration],
    mut tell: impl AsyncFnMut() -> Told,
    mut say: impl FnMut(&str),
) -> Result<(), String> {
    let mut waits = waits.iter();
    let mut is_taken = false;
    loop {
        let (line, may_pass) = match tell().await {
            Told::Taken(words) => {
                is_taken = true;
                (words, true)
            }
            Told::Refused { why, may_pass } => (why, may_pass),
        };
        let wait = waits.next().filter(|_| may_pass);
        match wait {
            None if is_taken => {
                say(&line);
                return Ok(());
            }
            None => return Err(line),
            Some(wait) => {
                say(&format!("{line} It is told again in {} s.", wait.as_secs()));
                sleep(*wait).await;
            }
        }
    }
}

// Decides: Did a hub take a ping?
/// The meaning of a hub's answer.
fn told(hub: &Url, reply: Result<HubReply, HubSilence>) -> Told {
    let refused = |why, may_pass| Told::Refused { why, may_pass };
    let reply = match reply {
        Ok(reply) => reply,
        Err(silence) => {
            let fault = match silence.whose {
                Whose::Upstream => "The fault is the hub's, or lies in the network on the way.",
                Whose::Network => "The fault lies in the network on the way.",
                Whose::Configuration => {
                    "The address of the hub is wrong. Name another with --hub URL."
                }
                Whose::Ours => "The fault is on this side.",
            };
            return refused(
                format!("The hub {hub} did not answer: {}. {fault}", silence.reason),
                true,
            );
        }
    };
    let words: String = tame(reply.text.trim())
        .chars()
        .take(WORDS_CHARS_MAX)
        .collect();
    let said = if words.is_empty() {
        String::new()
    } else {
        format!(" It says: {words}.")
    };
    let status = reply.status;
    if status.is_success() {
        return match reply.retry_after {
            Some(_) => refused(
                format!(
                    "The hub {hub} ignores this ping: it takes none before its Retry-After.{said}"
                ),
                false,
            ),
            None => Told::Taken(format!("The hub {hub} was told.{said}")),
        };
    }
    if status.is_redirection() {
        let to = reply
            .location
            .map(|to| format!(" to {}", tame(&to)))
            .unwrap_or_default();
        let why = format!(
            "The hub {hub} has moved{to} ({status}). The feed names the old address; that is for its publisher to mend. \
             Name the new one with --hub URL."
        );
        return refused(why, false);
    }
    let is_busy = status.is_server_error() || status.as_u16() == 429;
    let fault = if is_busy {
        "The fault is the hub's, or it has too much to do."
    } else {
        "Look whether this is the hub of the feed, and whether the feed gives its right address."
    };
    refused(
        format!("The hub {hub} refused it ({status}).{said} {fault}"),
        is_busy,
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::StatusCode;
    use tokio::time::Instant;

    fn reply(status: u16, retry_after: Option<u64>, text: &str) -> Result<HubReply, HubSilence> {
        Ok(HubReply {
            status: StatusCode::from_u16(status).unwrap(),
            retry_after: retry_after.map(Duration::from_secs),
            location: None,
            text: text.to_owned(),
        })
    }

    fn judged(reply: Result<HubReply, HubSilence>) -> Told {
        told(&Url::parse("https://h.example/hub").unwrap(), reply)
    }

    /// Gives these answers one after the other; the seconds at which the hub was told, and the end.
    async fn check(answers: Vec<Told>) -> (Vec<u64>, Result<(), String>) {
        let start = Instant::now();
        let mut at = Vec::new();
        let mut answers = answers.into_iter();
        let tell = async || {
            at.push(start.elapsed().as_secs());
            answers.next().expect("no more than three")
        };
        let end = repeated(&WAITS, tell, |_| {}).await;
        (at, end)
    }

    fn taken() -> Told {
        Told::Taken("taken".to_owned())
    }

    fn refused(may_pass: bool) -> Told {
        let why = "refused".to_owned();
        Told::Refused { why, may_pass }
    }

    #[tokio::test(start_paused = true)]
    async fn a_hub_is_told_at_once_and_after_ten_and_sixty_seconds() {
        let whole = vec![0, 10, 60];
        let (at, end) = check(vec![taken(), taken(), taken()]).await;
        assert_eq!((at, end), (whole.clone(), Ok(())));
        // A hub that starts late is told all the same.
        let (at, end) = check(vec![refused(true), refused(true), taken()]).await;
        assert_eq!((at, end), (whole.clone(), Ok(())));
        let (at, end) = check(vec![refused(true), refused(true), refused(true)]).await;
        assert_eq!((at, end), (whole, Err("refused".to_owned())));
    }

    #[tokio::test(start_paused = true)]
    async fn a_refusal_that_stays_is_not_repeated() {
        let (at, end) = check(vec![refused(false)]).await;
        assert_eq!((at, end), (vec![0], Err("refused".to_owned())));
        let (at, end) = check(vec![taken(), refused(false)]).await;
        assert_eq!((at, end), (vec![0, 10], Ok(())));
    }

    #[test]
    fn an_answer_says_whether_the_hub_took_it() {
        assert!(matches!(judged(reply(204, None, "")), Told::Taken(_)));
        assert!(
            matches!(judged(reply(202, None, "later")), Told::Taken(words) if words.contains("later"))
        );
        let check = |reply, expect: &str, passes: bool| match judged(reply) {
            Told::Refused { why, may_pass } => {
                assert!(why.contains(expect) && may_pass == passes, "{why}");
            }
            taken => panic!("{taken:?}"),
        };
        check(
            reply(202, Some(60), "too often"),
            "ignores this ping",
            false,
        );
        check(reply(404, None, "no such feed"), "no such feed", false);
        check(reply(301, None, ""), "has moved", false);
        check(reply(503, None, ""), "the hub's", true);
        check(reply(429, Some(9), ""), "the hub's", true);
        let silence = |whose| {
            let reason = "nobody is there".to_owned();
            Err(HubSilence { whose, reason })
        };
        check(silence(Whose::Network), "in the network", true);
        check(silence(Whose::Ours), "on this side", true);
    }
}
