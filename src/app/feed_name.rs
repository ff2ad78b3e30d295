//! Names for a feed, by its host, its path and its title; pure. Not which of them are taken.

use url::{Host, Url};

/// Characters of a name at most that is made here.
const NAME_CHARS_MAX: usize = 40;

/// Parts of a path that are in every feed's.
const USUAL_PARTS: [&str; 10] = [
    "feed", "feeds", "rss", "rss2", "atom", "index", "xml", "rdf", "json", "php",
];

/// Names for the feed at a URL, the best first, without end.
pub fn names(url: &Url, title: Option<&str>) -> impl Iterator<Item = String> {
    names_from(url, title, FIRST_NUMBER)
}

/// The first number behind a label.
pub const FIRST_NUMBER: u64 = 2;

/// The same, where smaller numbers behind the label of the host are taken.
pub fn names_from(url: &Url, title: Option<&str>, number: u64) -> impl Iterator<Item = String> {
    let label = label(url);
    let path = url.path().to_lowercase();
    let telling = words(&path).filter(|word| !USUAL_PARTS.contains(word));
    let with_path = slug(std::iter::once(label.as_str()).chain(telling));
    let title = title.map(str::to_lowercase).unwrap_or_default();
    let by_title = slug(words(&title));
    let host = url.host_str().unwrap_or_default().to_lowercase();
    let by_host = slug(words(&host));
    let mut names = vec![label.clone()];
    for name in [with_path, by_title, by_host] {
        if !name.is_empty() && !names.contains(&name) {
            names.push(name);
        }
    }
    names
        .into_iter()
        .chain((number..).map(move |number| format!("{label}-{number}")))
}

/// The telling label of a host: `blog` of blog.example.org, `example` of www.example.org.
pub fn label(url: &Url) -> String {
    let Some(Host::Domain(host)) = url.host() else {
        return "blog".to_owned();
    };
    let mut labels = host
        .split('.')
        .filter(|label| !matches!(*label, "www" | "feeds" | "feed" | "rss"));
    let first = labels.next().unwrap_or("blog").to_lowercase();
    let label = slug(words(&first));
    if label.is_empty() {
        "blog".to_owned()
    } else {
        label
    }
}

/// The words of a text as a name; empty where it has none in ASCII.
pub fn slug_of(text: &str) -> String {
    slug(words(&text.to_lowercase()))
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !c.is_ascii_alphanumeric())
        .filter(|word| !word.is_empty())
}

fn slug<'w>(words: impl Iterator<Item = &'w str>) -> String {
    let mut slug = words.collect::<Vec<_>>().join("-");
    slug.truncate(NAME_CHARS_MAX);
    slug.trim_end_matches('-').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_comes_of_host_path_and_title() {
        let check = |url: &str, title: Option<&str>, expect: &[&str]| {
            let url = Url::parse(url).unwrap();
            let found: Vec<_> = names(&url, title).take(expect.len()).collect();
            assert_eq!(found, expect, "{url}");
        };
        check(
            "https://blog.example.org/photos/index.rdf",
            Some("My Photos!"),
            &[
                "blog",
                "blog-photos",
                "my-photos",
                "blog-example-org",
                "blog-2",
                "blog-3",
            ],
        );
        check(
            "https://www.example.org/feed.xml",
            None,
            &["example", "www-example-org", "example-2"],
        );
        check(
            "http://127.0.0.1:8081/rss.xml",
            Some("日本"),
            &["blog", "127-0-0-1", "blog-2"],
        );
        check("https://xn--bcher-kva.example/", None, &["xn-bcher-kva"]);
    }
}
