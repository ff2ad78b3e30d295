//! The documents of a list of feeds: the list itself and the lists that it includes (U-52).

use crate::{
    app::outline_address::outline_address,
    catalog::{OpmlPlace, OpmlSettings},
    feed::{
        opml_list::{OpmlDocument, OpmlList},
        record::FeedNo,
        schedule::{AskedAddress, Failure, Plan, PollState, ValidatorPair, Whose},
        stamp::Stamp,
    },
    ingest::{DocumentFormat, FeedSpec, Upstream, upstream::DocumentReply},
    secret::{logged_url, masked_with_query},
};
use bytes::Bytes;
use everfeed_adapters::{OPML_BYTES_MAX, OutlinedFeed, opml_within};
use std::{
    collections::{HashMap, HashSet, VecDeque},
    io::Read as _,
    path::{Path, PathBuf},
    time::Duration,
};
use tokio::time::sleep;
use url::Url;

/// Outlines of a list at most, those of the lists that it includes among them.
const OUTLINES_MAX: usize = 100_000;
/// Lists in lists at most: one that is deeper is left out (U-52).
const INCLUDES_DEEP_MAX: usize = 3;
/// Documents of a list at most, itself among them; the others are left out.
const DOCUMENTS_MAX: usize = 100;
/// Seconds that a request waits for room at a busy host, each time.
const ROOM_WAIT_SECS: u64 = 30;
/// Times that a request waits for room at a busy host.
const ROOM_WAITS_MAX: usize = 5;

/// The result of a read.
#[derive(Debug)]
pub(super) struct ReadList {
    /// The documents that were read, with their validators.
    pub(super) documents: Vec<OpmlDocument>,
    /// Their outlines; `None` if nothing has changed since the last read.
    pub(super) outlines: Option<Outlines>,
}

/// The outlines of a list and of those that it includes.
#[derive(Debug, Default)]
pub(super) struct Outlines {
    /// The feeds, in the order of the lists.
    pub(super) feeds: Vec<OutlinedFeed>,
    /// Outlines that were left out: the address as it may be shown, and the reason.
    pub(super) skipped: Vec<(String, String)>,
}

/// A read that failed.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct ReadFailure {
    pub(super) whose: Whose,
    /// The reason, without secrets.
    pub(super) why: String,
    /// Seconds after which the server wants to be asked again.
    pub(super) retry_after_secs: Option<u64>,
}

impl ReadFailure {
    fn of(whose: Whose, why: String) -> Self {
        Self {
            whose,
            why,
            retry_after_secs: None,
        }
    }

    /// The failure of a read whose documents took longer than `max`.
    pub(super) fn too_slow(max: Duration) -> Self {
        let why = format!("its documents took more than {} s", max.as_secs());
        Self::of(Whose::Upstream, why)
    }

    fn at(url: &Url, failure: &Failure) -> Self {
        let shown = masked_with_query(url.as_str());
        Self {
            whose: failure.kind.whose(),
            why: format!("{shown}: {}", failure.kind),
            retry_after_secs: failure.retry_after_secs,
        }
    }
}

/// Bodies that came, with their validators, by address.
type Bodies = HashMap<String, (Bytes, Option<ValidatorPair>)>;

/// The answer to a request for a document.
enum Answer {
    Unchanged(Option<ValidatorPair>),
    Body(Bytes, Option<ValidatorPair>),
}

/// Reads one list.
pub(super) struct ListReading<'a> {
    pub(super) upstream: &'a Upstream,
    pub(super) settings: &'a OpmlSettings,
    /// The state of the list after the last read.
    pub(super) known: &'a OpmlList,
    /// The digest of its settings.
    pub(super) digest: &'a str,
    pub(super) now: Stamp,
}

impl ListReading<'_> {
    /// Reads the list. Its documents are asked for with validators; if one has changed, all are read
    /// whole.
    pub(super) async fn read(&self) -> Result<ReadList, ReadFailure> {
        let root = match self.settings.place() {
            Some(OpmlPlace::Url(url)) => url.clone(),
            Some(OpmlPlace::File(file)) => return self.read_file(file.clone()).await,
            None => return Err(no_place()),
        };
        // Bodies that came although validators were sent, with theirs.
        let mut bodies = Bodies::new();
        if self.validators_of(&root).is_some()
            && let Some(documents) = self.unchanged(&root, &mut bodies).await?
        {
            return Ok(ReadList {
                documents,
                outlines: None,
            });
        }
        self.followed(IncludeWalk::of(root), bodies).await
    }

    /// Reads the documents that a walk still leads to. A body that came already is not asked for.
    async fn followed(
        &self,
        mut walk: IncludeWalk,
        mut bodies: Bodies,
    ) -> Result<ReadList, ReadFailure> {
        while let Some((url, depth)) = walk.next() {
            let (body, validators) = match bodies.remove(url.as_str()) {
                Some(known) => known,
                None => match self.ask(&url, depth > 0, None).await? {
                    Answer::Body(body, validators) => (body, validators),
                    Answer::Unchanged(_) => return Err(unasked(&url)),
                },
            };
            walk.documents.push(OpmlDocument {
                url: url.as_str().to_owned(),
                validators,
            });
            let shown = masked_with_query(url.as_str());
            walk.take(body, &shown, depth, self.settings.private_hosts)
                .await
                .map_err(|why| ReadFailure::of(Whose::Upstream, why))?;
        }
        Ok(walk.into_read())
    }

    async fn read_file(&self, file: PathBuf) -> Result<ReadList, ReadFailure> {
        let shown = file.display().to_string();
        let read = tokio::task::spawn_blocking(move || limited(&file));
        let body = match read.await {
            Ok(Ok(body)) => body,
            Ok(Err(error)) => {
                let why = format!("{shown} cannot be read: {error}");
                return Err(ReadFailure::of(Whose::Configuration, why));
            }
            Err(error) => return Err(ReadFailure::of(Whose::Ours, error.to_string())),
        };
        let mut walk = IncludeWalk::default();
        let private = self.settings.private_hosts;
        let taken = walk.take(body, &shown, 0, private).await;
        taken.map_err(|why| ReadFailure::of(Whose::Configuration, why))?;
        let mut read = self.followed(walk, Bodies::new()).await?;
        // A file is read whole each time, with all that it includes.
        read.documents.clear();
        Ok(read)
    }

    fn validators_of(&self, url: &Url) -> Option<&ValidatorPair> {
        let known = self.known;
        known.validators_of(url.as_str(), self.digest, self.now)
    }

    /// Asks for each document of the last read with its validators. The documents, if none has
    /// changed; bodies that came are kept.
    async fn unchanged(
        &self,
        root: &Url,
        bodies: &mut Bodies,
    ) -> Result<Option<Vec<OpmlDocument>>, ReadFailure> {
        let mut documents = Vec::with_capacity(self.known.documents.len());
        for document in &self.known.documents {
            let Ok(url) = Url::parse(&document.url) else {
                return Ok(None);
            };
            let Some(held) = self.validators_of(&url) else {
                return Ok(None);
            };
            match self.ask(&url, url != *root, Some(held)).await? {
                Answer::Unchanged(fresh) => documents.push(OpmlDocument {
                    url: document.url.clone(),
                    validators: fresh.or_else(|| Some(held.clone())),
                }),
                Answer::Body(body, validators) => {
                    bodies.insert(document.url.clone(), (body, validators));
                    return Ok(None);
                }
            }
        }
        Ok(Some(documents))
    }

    /// Asks for one document. One that a list includes is at a public address only, unless the
    /// operator allows others.
    async fn ask(
        &self,
        url: &Url,
        is_included: bool,
        validators: Option<&ValidatorPair>,
    ) -> Result<Answer, ReadFailure> {
        let spec = FeedSpec::new(FeedNo(0), &self.settings.name, url.clone()).with(|spec| {
            spec.format = DocumentFormat::Resource;
            spec.public_hosts_only = is_included && !self.settings.private_hosts;
        });
        let bare = spec.bare_url();
        let plan = Plan {
            url: bare.as_str().to_owned(),
            conditional: validators.is_some(),
            address: AskedAddress::Configured,
        };
        let state = PollState {
            validators: validators.cloned(),
            ..PollState::unpolled(bare.as_str())
        };
        for _ in 0..ROOM_WAITS_MAX {
            match self.upstream.fetch(&spec, &plan, &state, 0).await {
                DocumentReply::Document(fetched) => {
                    return Ok(Answer::Body(fetched.body, fetched.answer.validators));
                }
                DocumentReply::Unchanged(answer) => {
                    return Ok(Answer::Unchanged(answer.validators));
                }
                DocumentReply::Failed { failure, .. } => {
                    return Err(ReadFailure::at(url, &failure));
                }
                DocumentReply::Deferred { wait_secs } => {
                    sleep(Duration::from_secs(wait_secs.clamp(1, ROOM_WAIT_SECS))).await;
                }
            }
        }
        let shown = masked_with_query(url.as_str());
        let why = format!("{shown}: its host was asked too often to be asked again now");
        Err(ReadFailure::of(Whose::Ours, why))
    }
}

fn no_place() -> ReadFailure {
    let why = "the list has neither a url nor a file".to_owned();
    ReadFailure::of(Whose::Configuration, why)
}

/// The failure of a server that answers 304 to a request without validators.
fn unasked(url: &Url) -> ReadFailure {
    let shown = masked_with_query(url.as_str());
    let why = format!("{shown}: the answer was 304 to a request without validators");
    ReadFailure::of(Whose::Upstream, why)
}

/// Reads no further than one byte beyond the limit of a list.
fn limited(file: &Path) -> std::io::Result<Bytes> {
    let mut bytes = Vec::new();
    // A pipe would be waited for, and the other lists with it.
    if !std::fs::metadata(file)?.is_file() {
        return Err(std::io::Error::other("it is no regular file"));
    }
    let file = std::fs::File::open(file)?;
    file.take(OPML_BYTES_MAX as u64 + 1)
        .read_to_end(&mut bytes)?;
    Ok(bytes.into())
}

/// A way through a list and the lists that it includes, each once.
#[derive(Debug, Default)]
struct IncludeWalk {
    documents: Vec<OpmlDocument>,
    outlines: Outlines,
    /// Lists that are still to be read, each with the number of lists around it.
    next: VecDeque<(Url, usize)>,
    met: HashSet<String>,
    /// Outlines so far.
    outlined: usize,
}

impl IncludeWalk {
    fn of(root: Url) -> Self {
        let mut walk = Self::default();
        walk.met.insert(root.as_str().to_owned());
        walk.next.push_back((root, 0));
        walk
    }

    fn next(&mut self) -> Option<(Url, usize)> {
        self.next.pop_front()
    }

    /// Takes the outlines of a document in.
    async fn take(
        &mut self,
        body: Bytes,
        shown: &str,
        depth: usize,
        takes_private: bool,
    ) -> Result<(), String> {
        let left = OUTLINES_MAX.saturating_sub(self.outlined);
        let parsed = tokio::task::spawn_blocking(move || opml_within(&body, left)).await;
        let list = match parsed {
            Ok(Ok(list)) => list,
            Ok(Err(error)) => return Err(format!("{shown}: {error}")),
            Err(error) => return Err(format!("{shown}: {error}")),
        };
        if list.is_cut {
            return Err(format!("{shown}: it ends before its last tag (</opml>)"));
        }
        self.outlined += list.feeds.len() + list.others.len();
        self.outlines.feeds.extend(list.feeds);
        for other in list.others {
            let refused = if other.is_list {
                self.include(&other.url, depth + 1, takes_private).err()
            } else {
                // A page, or a folder with an address: no feed is meant.
                None
            };
            if let Some(why) = refused {
                self.outlines.skipped.push((logged_url(&other.url), why));
            }
        }
        Ok(())
    }

    // Decides: Which lists of a list are read?
    /// Notes a list that another one includes.
    fn include(&mut self, text: &str, depth: usize, takes_private: bool) -> Result<(), String> {
        let url = outline_address(text, takes_private).map_err(|refused| refused.to_string())?;
        if self.met.contains(url.as_str()) {
            return Ok(());
        }
        if depth > INCLUDES_DEEP_MAX {
            return Err(format!(
                "it is a list in more than {INCLUDES_DEEP_MAX} other lists"
            ));
        }
        if self.met.len() >= DOCUMENTS_MAX {
            return Err(format!("a list has {DOCUMENTS_MAX} documents at most"));
        }
        self.met.insert(url.as_str().to_owned());
        self.next.push_back((url, depth));
        Ok(())
    }

    fn into_read(self) -> ReadList {
        ReadList {
            documents: self.documents,
            outlines: Some(self.outlines),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Walks through lists by their addresses. The addresses in the order of the walk, and what was
    /// left out.
    async fn walked(lists: &[(&str, &str)]) -> (Vec<String>, Vec<String>) {
        let mut walk = IncludeWalk::of(Url::parse(lists[0].0).unwrap());
        let mut met = Vec::new();
        while let Some((url, depth)) = walk.next() {
            let found = lists.iter().find(|(address, _)| *address == url.as_str());
            let body = format!("<opml><body>{}</body></opml>", found.unwrap().1);
            let body = Bytes::from(body);
            walk.take(body, url.as_str(), depth, false).await.unwrap();
            met.push(url.as_str().to_owned());
        }
        let skipped = walk.outlines.skipped.into_iter();
        (
            met,
            skipped.map(|(url, why)| format!("{url}: {why}")).collect(),
        )
    }

    fn include(url: &str) -> String {
        format!("<outline text='l' type='include' url='{url}'/>")
    }

    #[tokio::test]
    async fn lists_in_lists_are_read_once_three_deep_and_at_public_addresses() {
        let urls = [
            "http://l.example/0",
            "http://l.example/1",
            "http://l.example/2",
            "http://l.example/3",
        ];
        let bodies = [
            include(urls[1]) + &include("http://127.0.0.1/x") + &include(urls[0]),
            include(urls[2]) + &include(urls[0]),
            include(urls[3]) + &include(urls[1]),
            include("http://l.example/4?token=hunter2"),
        ];
        let lists = urls.iter().zip(&bodies);
        let lists: Vec<_> = lists.map(|(url, body)| (*url, body.as_str())).collect();
        let (met, skipped) = walked(&lists).await;
        assert_eq!(met, urls);
        assert_eq!(skipped.len(), 2, "{skipped:?}");
        assert!(skipped[0].contains("on this machine"), "{skipped:?}");
        assert!(
            skipped[1].contains("more than 3 other lists"),
            "{skipped:?}"
        );
        assert!(!skipped[1].contains("hunter2"), "{skipped:?}");
    }

    #[tokio::test]
    async fn a_list_has_so_many_documents_and_outlines_and_no_more() {
        let many: String = (1..=150)
            .map(|no| include(&format!("http://l.example/{no}")))
            .collect();
        let mut walk = IncludeWalk::of(Url::parse("http://l.example/0").unwrap());
        let body = |inner: &str| Bytes::from(format!("<opml>{inner}</opml>"));
        walk.take(body(&many), "l", 0, false).await.unwrap();
        assert_eq!(walk.next.len(), DOCUMENTS_MAX);
        assert_eq!(walk.outlines.skipped.len(), 51);
        let feeds = "<outline xmlUrl='http://a/'/>".repeat(60_000);
        walk.take(body(&feeds), "l", 1, false).await.unwrap();
        let refused = walk.take(body(&feeds), "l", 1, false).await.unwrap_err();
        assert!(refused.contains("outlines"), "{refused}");
        // A document that is cut says nothing of what it lacks.
        let cut = Bytes::from("<opml><body>");
        let refused = walk.take(cut, "l", 1, false).await.unwrap_err();
        assert!(refused.contains("before its last tag"), "{refused}");
    }
}
