//! Witnesses of an entry: the parts that tell which post it is when its key does not (address,
//! title, dates, text), in a normal form, and as keys by which a store finds the items that share
//! one; not the judgement of two entries.

use crate::item::{Item, KeyHash, Witnesses};
use everfeed_adapters::{Date, Digest, Entry, Key, Text, TextKind};

/// A witness for which two entries are compared at all.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Mark {
    Address(KeyHash),
    DatedTitle(i64, KeyHash),
    Text(Digest),
}

/// An id or a link without scheme, session and the last slash.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Address {
    /// The host without `www.` and default port; `None` of an id that names none.
    pub(super) host: Option<String>,
    /// The rest, with which alone a blog is left that has moved to another host. Never empty.
    pub(super) path: String,
}

/// Letters and digits of a text that are compared at most: long enough to tell posts apart, and
/// short of what themes put below them.
const TEXT_LETTERS_MAX: usize = 2000;

/// Letters and digits that a text must have to tell anything.
const TEXT_LETTERS_MIN: usize = 12;

impl Witnesses {
    /// Those of an entry.
    pub fn of(entry: &Entry) -> Self {
        let mut texts: Vec<Digest> = Vec::new();
        let content = entry.content.as_ref().map(|body| &body.text);
        for text in [content, entry.summary.as_ref()].into_iter().flatten() {
            texts.extend(digest_of(text).filter(|digest| !texts.contains(digest)));
        }
        let mut paths: Vec<KeyHash> = addresses(entry).iter().map(Address::key).collect();
        paths.dedup();
        let title = entry.title.as_ref().and_then(title_of);
        Self {
            own_id: own_id(entry),
            addresses: paths,
            title: title.map(|title| KeyHash::of("title alone", &title)),
            published: entry.published.as_ref().and_then(secs),
            updated: entry.updated.as_ref().and_then(secs),
            short_text: short_text(entry).filter(|_| texts.is_empty()),
            texts,
        }
    }

    /// Those of its title, texts and last change: an item that is gone keeps them beside the date of
    /// its publication.
    pub fn beside_date(entry: &Entry) -> Self {
        let whole = Self::of(entry);
        Self {
            own_id: None,
            addresses: Vec::new(),
            published: None,
            updated: whole.updated.filter(|_| whole.published.is_none()),
            ..whole
        }
    }

    /// Those of an item that lives, or was forgotten: any other tombstone is found by its key only.
    pub fn of_item(item: &Item) -> Option<Self> {
        match item.entry() {
            Some(entry) => Some(Self::of(entry)),
            None if item.content.is_forgotten() => Self::of_gone(item),
            None => None,
        }
    }

    /// Those that were kept of an item that is gone.
    pub(super) fn of_gone(item: &Item) -> Option<Self> {
        let kept = item.publisher_id.as_ref()?.witnesses.as_deref()?;
        let published = item.published_us.map(|at| at.div_euclid(1_000_000));
        Some(Self {
            published: kept.published.or(published),
            ..kept.clone()
        })
    }

    /// True when it has a text, long or short.
    pub(super) fn has_text(&self) -> bool {
        !self.texts.is_empty() || self.short_text.is_some()
    }

    /// The dates, each once.
    pub(super) fn dates(&self) -> impl Iterator<Item = i64> {
        self.published.into_iter().chain(
            self.updated
                .filter(|updated| Some(*updated) != self.published),
        )
    }

    /// The addresses, the title at each date, and the texts.
    pub(super) fn marks(&self) -> impl Iterator<Item = Mark> {
        let titles = self.title.iter();
        let dated = titles.flat_map(|title| self.dates().map(|at| Mark::DatedTitle(at, *title)));
        let addresses = self.addresses.iter().copied().map(Mark::Address);
        addresses
            .chain(dated)
            .chain(self.texts.iter().copied().map(Mark::Text))
    }
}

impl Address {
    /// The key under which a store keeps the items of this address, at any host.
    pub(super) fn key(&self) -> KeyHash {
        KeyHash::of("address", &self.path)
    }

    /// The address that an id or a link is; `None` for a site's front page, which is no entry's
    /// own.
    pub(super) fn of(reference: &str) -> Option<Self> {
        let is_url = ["http://", "https://"]
            .iter()
            .any(|scheme| reference.starts_with(scheme));
        let bare = Key::Id(reference.to_owned()).stripped();
        if !is_url {
            // RFC 4151: `tag:`, an authority, a date, and behind a colon what is the entry's own.
            let (host, path) = match bare
                .strip_prefix("tag:")
                .and_then(|tag| tag.split_once(':'))
            {
                Some((authority, own)) => {
                    let host = authority.split(',').next().unwrap_or(authority);
                    (Some(host.to_ascii_lowercase()), own)
                }
                None => (None, bare.as_str()),
            };
            return (!path.is_empty()).then(|| Self {
                host,
                path: path.to_owned(),
            });
        }
        let (host, path) = bare.split_at(bare.find(['/', '?', '#']).unwrap_or(bare.len()));
        let host = host.to_ascii_lowercase();
        let host = host.strip_prefix("www.").unwrap_or(&host);
        let host = host
            .strip_suffix(":80")
            .or_else(|| host.strip_suffix(":443"))
            .unwrap_or(host);
        let path = INDEX_FILES
            .iter()
            .find_map(|name| path.strip_suffix(name))
            .unwrap_or(path);
        let path = path.strip_suffix('/').unwrap_or(path);
        (!path.is_empty()).then(|| Self {
            host: Some(host.to_owned()),
            path: path.to_owned(),
        })
    }
}

/// Names of the file that a server sends for a folder.
const INDEX_FILES: [&str; 4] = ["/index.html", "/index.htm", "/index.php", "/default.aspx"];

/// The key under which a store keeps the items that once had this id or permalink, at any host;
/// `None` for a front page.
pub fn address_witness(reference: &str) -> Option<KeyHash> {
    Address::of(reference).map(|address| address.key())
}

/// Keys under which a store keeps an item with this entry, so that an entry of the same post finds
/// it: each address without its host, the title at each date, each text.
pub(super) fn keys(entry: &Entry) -> Vec<KeyHash> {
    let witnesses = Witnesses::of(entry);
    let texts = witnesses.texts.iter();
    let texts = texts.map(|text| KeyHash::of("text", &text.to_string()));
    let mut keys: Vec<KeyHash> = witnesses.addresses.iter().copied().chain(texts).collect();
    keys.extend(dated_titles(entry));
    keys.sort_unstable();
    keys.dedup();
    keys
}

/// Id and permalink of an entry, each once.
pub(super) fn addresses(entry: &Entry) -> Vec<Address> {
    let mut addresses: Vec<Address> = Vec::new();
    for reference in [entry.id.as_deref(), entry.permalink()]
        .into_iter()
        .flatten()
    {
        addresses.extend(Address::of(reference).filter(|address| !addresses.contains(address)));
    }
    addresses
}

/// Keys of the title at each date.
pub(super) fn dated_titles(entry: &Entry) -> Vec<KeyHash> {
    let Some(title) = entry.title.as_ref().and_then(title_of) else {
        return Vec::new();
    };
    let dates = [&entry.published, &entry.updated];
    let mut dates: Vec<i64> = dates.into_iter().flatten().filter_map(secs).collect();
    dates.dedup();
    let key = |at: &i64| KeyHash::of("title", &format!("{at} {title}"));
    dates.iter().map(key).collect()
}

/// The URL by which an entry is named, as its key is chosen. Of other ids nearly the same is
/// another: the year of a `tag:` may be all that tells two posts apart.
fn own_id(entry: &Entry) -> Option<KeyHash> {
    let id = entry.id.as_deref().or(entry.permalink())?;
    let Address { host, path } = Address::of(id).filter(|_| id.starts_with("http"))?;
    Some(KeyHash::of(&host.unwrap_or_default(), &path))
}

/// Whole seconds of a date: software that is changed often drops the fraction.
fn secs(date: &Date) -> Option<i64> {
    date.at_us.map(|at| at.div_euclid(1_000_000))
}

/// Letters and digits of a title; of one without any, the title itself.
pub(super) fn title_of(title: &Text) -> Option<String> {
    let folded = folded(title, usize::MAX);
    let whole = || Some(title.value.trim().to_owned()).filter(|title| !title.is_empty());
    if folded.is_empty() {
        whole()
    } else {
        Some(folded)
    }
}

fn short_text(entry: &Entry) -> Option<Digest> {
    let text = entry
        .content
        .as_ref()
        .map(|body| &body.text)
        .or(entry.summary.as_ref())?;
    let value = text.value.trim();
    (!value.is_empty()).then(|| Digest::of(value.as_bytes()))
}

fn digest_of(text: &Text) -> Option<Digest> {
    let folded = folded(text, TEXT_LETTERS_MAX);
    (folded.chars().take(TEXT_LETTERS_MIN).count() == TEXT_LETTERS_MIN)
        .then(|| Digest::of(folded.as_bytes()))
}

/// The letters and digits of a text in lower case, at most so many: markup, entities, white space
/// and punctuation differ from one software to the next.
fn folded(text: &Text, letters_max: usize) -> String {
    let mut folded = String::with_capacity(text.value.len().min(letters_max));
    let mut letters = 0;
    let mut rest = text.value.as_str();
    while letters < letters_max
        && let Some(&byte) = rest.as_bytes().first()
    {
        // Most letters are ASCII, whose lower case is a single letter.
        let skipped = match byte {
            b'<' if text.kind != TextKind::Plain => {
                rest.find('>').map_or(rest.len(), |end| end + 1)
            }
            b'&' => entity_bytes(rest),
            _ if byte.is_ascii_alphanumeric() => {
                folded.push(char::from(byte.to_ascii_lowercase()));
                letters += 1;
                1
            }
            _ if byte.is_ascii() => 1,
            _ => {
                let c = rest.chars().next().unwrap_or_default();
                if c.is_alphanumeric() {
                    folded.extend(c.to_lowercase());
                    letters += 1;
                }
                c.len_utf8()
            }
        };
        rest = &rest[skipped..];
    }
    folded
}

/// Length of the entity with which a text begins; 1 if it only begins with an ampersand.
fn entity_bytes(text: &str) -> usize {
    let is_of_name = |b: u8| b.is_ascii_alphanumeric() || b == b'#';
    let name = text
        .bytes()
        .skip(1)
        .take(ENTITY_BYTES_MAX)
        .take_while(|b| is_of_name(*b))
        .count();
    if name > 0 && text.as_bytes().get(1 + name) == Some(&b';') {
        name + 2
    } else {
        1
    }
}

/// All letters and digits of the text that is an entry's own: the content if it says anything, else
/// the summary.
pub(super) fn whole_text(entry: &Entry) -> Option<String> {
    Some(folded(main(entry)?.0, usize::MAX))
}

/// The same as it is compared with other texts.
pub(super) fn main_text(entry: &Entry) -> Option<Digest> {
    Some(main(entry)?.1)
}

fn main(entry: &Entry) -> Option<(&Text, Digest)> {
    let content = entry.content.as_ref().map(|body| &body.text);
    let mut texts = content.into_iter().chain(&entry.summary);
    texts.find_map(|text| Some((text, digest_of(text)?)))
}

/// Bytes of the name of an entity at most.
const ENTITY_BYTES_MAX: usize = 10;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_loses_what_changes_when_a_blog_moves() {
        let check = |reference: &str, host: Option<&str>, path: &str| {
            let found = Address::of(reference);
            let expect = Address {
                host: host.map(str::to_owned),
                path: path.to_owned(),
            };
            assert_eq!(found, (!path.is_empty()).then_some(expect), "{reference}");
        };
        check(
            "http://www.Blog.example:80/2012/a/",
            Some("blog.example"),
            "/2012/a",
        );
        check(
            "https://blog.example/2012/a",
            Some("blog.example"),
            "/2012/a",
        );
        check(
            "https://blog.example/2012/a/index.html",
            Some("blog.example"),
            "/2012/a",
        );
        check(
            "http://blog.example/?p=5&PHPSESSID=0123456789abcdef",
            Some("blog.example"),
            "/?p=5",
        );
        check("http://blog.example/", None, "");
        check("http://blog.example", None, "");
        check(
            "tag:blog.example,2005:post-5",
            Some("blog.example"),
            "post-5",
        );
        check("42", None, "42");
        check("urn:uuid:5", None, "urn:uuid:5");
    }

    #[test]
    fn a_text_is_its_letters_and_digits() {
        let check = |text: Text, expect: &str| assert_eq!(folded(&text, 10), expect, "{text:?}");
        check(
            Text::html("<p class=\"a\">It&#8217;s <b>OK</b></p>"),
            "itsok",
        );
        check(Text::plain("It’s OK"), "itsok");
        check(Text::plain("1 < 2 & 3"), "123");
        check(Text::plain("abcdefghijklmnop"), "abcdefghij");
        check(Text::html("open <a href"), "open");
        assert_eq!(title_of(&Text::plain("?!")), Some("?!".into()));
        assert_eq!(title_of(&Text::plain(" ")), None);
        assert_eq!(digest_of(&Text::plain("Too short.")), None);
    }
}
