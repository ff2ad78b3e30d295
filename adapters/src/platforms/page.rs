//! The platform behind a web page, by what the page and its answer say of themselves; not the feeds
//! that it names.

use super::{Platforms, profile::Profile, sign::SignKind, sign::Weight};
use crate::{Hints, discover::generators_of_page};
use std::sync::Arc;

impl Platforms {
    /// The platform that a web page names as its generator, or that the headers of its answer show
    /// beyond doubt.
    pub fn of_page(
        &self,
        page: &[u8],
        hints: &Hints<'_>,
        headers: &[(&str, &str)],
    ) -> Option<&Arc<Profile>> {
        let generators = generators_of_page(page, hints);
        let is_named = |kind: &SignKind| match kind {
            SignKind::Generator(pattern) => generators.iter().any(|name| pattern.is_match(name)),
            _ => false,
        };
        let is_shown = |kind: &SignKind| match kind {
            SignKind::Header(name, value) => headers
                .iter()
                .any(|(given, text)| given.eq_ignore_ascii_case(name) && value.is_match(text)),
            _ => false,
        };
        // What stands in front of a platform is none.
        let own = || self.profiles.values().filter(|profile| !profile.carrier);
        own()
            .find(|profile| profile.has_strong_sign(is_named))
            .or_else(|| own().find(|profile| profile.has_strong_sign(is_shown)))
    }
}

impl Profile {
    fn has_strong_sign(&self, is_met: impl Fn(&SignKind) -> bool) -> bool {
        let mut signs = self.detect.iter();
        signs.any(|sign| sign.weight == Weight::Strong && is_met(&sign.kind))
    }

    /// Paths of the feeds of a whole site, the usual one first: of its posts, and of its comments.
    /// Those that only the site can fill in are left out.
    pub fn usual_paths(&self) -> [Vec<String>; 2] {
        [&self.feeds.posts, &self.comments.site].map(|paths| {
            let whole = paths.iter().filter(|path| !path.contains('{'));
            whole
                .map(|path| {
                    if path.starts_with('/') {
                        path.clone()
                    } else {
                        format!("/{path}")
                    }
                })
                .collect()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(page: &str, headers: &[(&str, &str)]) -> Option<String> {
        let found = Platforms::embedded().of_page(page.as_bytes(), &Hints::default(), headers);
        found.map(|profile| profile.name.clone())
    }

    #[test]
    fn a_page_shows_its_platform_by_its_generator_or_its_headers_and_by_nothing_else() {
        for (generator, expect) in [
            ("WordPress 6.4.2", "wordpress"),
            ("Ghost 5.75", "ghost"),
            ("Hugo 0.121.1", "hugo"),
            ("Jekyll v4.3.2", "jekyll"),
            ("blogger", "blogger"),
            ("Movable Type Pro 5.2.3", "movabletype"),
            ("Serendipity v.2.4.0", "serendipity"),
        ] {
            let page = format!("<HTML><head><META content='{generator}' NAME=\"Generator\"/>");
            assert_eq!(of(&page, &[]).as_deref(), Some(expect), "{generator}");
        }
        let api = [(
            "Link",
            "<https://b.example/wp-json/>; rel=\"https://api.w.org/\"",
        )];
        assert_eq!(of("<title>x</title>", &api).as_deref(), Some("wordpress"));
        for other in [
            "<meta name='author' content='WordPress'>",
            "<meta name='generator'>",
            "<p>WordPress 6.4</p>",
            "<meta name='generator' content='Elementor 3.1'>",
        ] {
            assert_eq!(of(other, &[]), None, "{other}");
        }
    }

    #[test]
    fn the_usual_paths_of_a_platform_are_whole() {
        let paths = |name: &str| Platforms::embedded().get(name).unwrap().usual_paths();
        let [posts, comments] = paths("wordpress");
        assert_eq!(
            (posts[0].as_str(), comments[0].as_str()),
            ("/feed/", "/comments/feed/")
        );
        assert_eq!(paths("ghost")[0], ["/rss/"]);
        assert_eq!(paths("b2evolution")[0][0], "/?tempskin=_rss2");
        for profile in Platforms::embedded().iter() {
            assert!(
                profile
                    .usual_paths()
                    .iter()
                    .flatten()
                    .all(|path| path.starts_with('/') && !path.contains('{'))
            );
        }
    }
}
