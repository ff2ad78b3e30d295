//! The profiles that come with the crate; a test holds this list against the folder.

/// Files as names and texts.
macro_rules! embed {
    ($($file:literal),* $(,)?) => {
        [$(($file, include_str!(concat!("../../platforms/", $file)))),*]
    };
}

/// File name and text of each profile in `adapters/platforms/`.
pub(super) static FILES: &[(&str, &str)] = &embed![
    "b2evolution.toml",
    "blogger.toml",
    "discourse.toml",
    "dotclear.toml",
    "drupal.toml",
    "expressionengine.toml",
    "feedburner.toml",
    "generic.toml",
    "ghost.toml",
    "habari.toml",
    "hugo.toml",
    "jekyll.toml",
    "livejournal.toml",
    "mediawiki.toml",
    "medium.toml",
    "movabletype.toml",
    "nucleus.toml",
    "pelican.toml",
    "phpbb.toml",
    "radiouserland.toml",
    "serendipity.toml",
    "squarespace.toml",
    "textpattern.toml",
    "tumblr.toml",
    "typepad.toml",
    "wordpress.toml",
];

#[cfg(test)]
mod tests {
    use super::{super::check, FILES};

    #[test]
    fn every_embedded_profile_passes_its_checks_and_its_patterns_compile() {
        for (file, text) in FILES {
            check::read(file, text).unwrap();
        }
    }
}
