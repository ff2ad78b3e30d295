//! `platform` of a feed: the choice of a profile; not what is recognised.

use serde::{Deserialize, Serialize};

/// `platform = "auto"`, `"none"` or the name of a profile.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "String", into = "String")]
pub enum PlatformChoice {
    /// Whatever the documents show.
    #[default]
    Auto,
    /// None: entries are compared as they are.
    Nothing,
    /// This one, whatever the documents show.
    Named(String),
}

impl From<String> for PlatformChoice {
    fn from(word: String) -> Self {
        match word.as_str() {
            "auto" => Self::Auto,
            "none" => Self::Nothing,
            _ => Self::Named(word),
        }
    }
}

impl From<PlatformChoice> for String {
    fn from(choice: PlatformChoice) -> Self {
        match choice {
            PlatformChoice::Auto => "auto".into(),
            PlatformChoice::Nothing => "none".into(),
            PlatformChoice::Named(name) => name,
        }
    }
}
