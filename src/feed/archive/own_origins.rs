//! Which addresses of archives are the feed's own: its configured origin, and the public names of
//! it; nothing is asked.

use url::Url;

/// The origins of a feed. Behind a sidecar its documents name the public ones, which lead to
/// ourselves: they mean the configured one.
#[derive(Clone, Debug)]
pub struct OwnOrigins {
    configured: Url,
    aliases: Vec<Url>,
}

impl OwnOrigins {
    /// Of a feed at this address, which the public knows by these.
    pub fn new(configured: Url, aliases: Vec<Url>) -> Self {
        Self {
            configured,
            aliases,
        }
    }

    /// Address to ask for one that a document names; `None` when it is not the feed's own.
    pub fn mapped(&self, url: &str) -> Option<String> {
        let mut url = Url::parse(url).ok()?;
        url.set_fragment(None);
        // Credentials come from the configuration or not at all.
        url.set_username("").ok()?;
        url.set_password(None).ok()?;
        if is_same(&url, &self.configured) {
            return Some(url.into());
        }
        self.aliases.iter().find(|alias| is_same(&url, alias))?;
        // A port is taken off before the scheme changes, or it would stay as it was.
        url.set_port(None).ok()?;
        url.set_scheme(self.configured.scheme()).ok()?;
        url.set_host(self.configured.host_str()).ok()?;
        url.set_port(self.configured.port()).ok()?;
        Some(url.into())
    }

    /// The front page of the feed's site: the one that its document names, if it is at the feed's
    /// own origin, else the root. `None` where that is the feed itself.
    pub fn front_page(&self, named: Option<&str>) -> Option<String> {
        let of_feed = self.mapped(self.configured.as_str());
        let named = named
            .and_then(|url| self.mapped(url))
            .filter(|url| Some(url) != of_feed.as_ref());
        let root = || self.mapped(self.configured.join("/").ok()?.as_str());
        named
            .or_else(root)
            .filter(|url| Some(url) != of_feed.as_ref())
    }

    /// True when an answer came from the feed's own origin.
    pub fn holds(&self, landed: &str) -> bool {
        let Ok(url) = Url::parse(landed) else {
            return false;
        };
        is_same(&url, &self.configured) || self.aliases.iter().any(|alias| is_same(&url, alias))
    }
}

/// The same origin; a blog that moved from http to https on the usual ports, or names itself both
/// ways, with or without `www.`, is one.
fn is_same(one: &Url, other: &Url) -> bool {
    let is_usual = |url: &Url| matches!(url.scheme(), "http" | "https") && url.port().is_none();
    let bare = |url: &Url| {
        url.host_str()
            .map(|host| host.strip_prefix("www.").unwrap_or(host).to_owned())
    };
    one.origin() == other.origin()
        || bare(one).is_some() && bare(one) == bare(other) && is_usual(one) && is_usual(other)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_front_page_is_the_one_that_the_feed_names_at_its_own_origin() {
        let url = |url: &str| Url::parse(url).unwrap();
        let feed = OwnOrigins::new(
            url("http://127.0.0.1:8081/a/feed"),
            vec![url("https://blog.example/")],
        );
        let root = Some("http://127.0.0.1:8081/");
        for (named, expect) in [
            (
                Some("http://127.0.0.1:8081/a/"),
                Some("http://127.0.0.1:8081/a/"),
            ),
            (
                Some("https://blog.example/a/"),
                Some("http://127.0.0.1:8081/a/"),
            ),
            (Some("https://other.example/"), root),
            (Some("https://blog.example/a/feed"), root),
            (Some("no URL"), root),
            (None, root),
        ] {
            assert_eq!(feed.front_page(named).as_deref(), expect, "{named:?}");
        }
        let at_root = OwnOrigins::new(url("http://127.0.0.1:8081/"), Vec::new());
        assert_eq!(
            at_root.front_page(None),
            None,
            "the root is the feed itself"
        );
    }
}
