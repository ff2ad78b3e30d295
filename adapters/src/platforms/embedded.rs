//! The profiles that come with the crate; a test holds this list against the folder.

/// Files as names and texts.
macro_rules! embed {
    ($($file:literal),* $(,)?) => {
        [$(($file, include_str!(concat!("../../platforms/", $file)))),*]
    };
}

/// File name and text of each profile in `adapters/platforms/`.
pub(super) static FILES: &[(&str, &str)] = &embed![
    "blogger.toml",
    "drupal.toml",
    "generic.toml",
    "livejournal.toml",
    "movabletype.toml",
    "serendipity.toml",
    "wordpress.toml",
];
