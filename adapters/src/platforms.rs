//! Profiles of the software behind feeds: one a platform, read from TOML, and the detection of the
//! one that a document shows. Says nothing about when or how a feed is polled; reading a user's
//! folder is its caller's business.
//!
//! ```
//! use everfeed_adapters::{Hints, platforms::{Platforms, Traces, content_digest}, slice};
//!
//! let document = |comments: u32| format!(
//!     r#"<rss version="2.0"><channel><title>An old journal</title>
//!         <generator>LiveJournal / LiveJournal.com</generator>
//!         <item><guid>https://jo.livejournal.com/7.html</guid>
//!         <description>Rain.</description>
//!         <lj:reply-count xmlns:lj="http://www.livejournal.org/rss/lj/1.0/">{comments}</lj:reply-count>
//!     </item></channel></rss>"#);
//! let platforms = Platforms::embedded();
//! let digest = |comments| {
//!     let sliced = slice(document(comments).as_bytes(), &Hints::default()).unwrap();
//!     let found = platforms.detect(&Traces::of(&sliced));
//!     assert_eq!(found.platform, "livejournal");
//!     let profile = platforms.get(&found.platform).map(|profile| &**profile);
//!     content_digest(&sliced.entries[0].parse().0, profile)
//! };
//! assert_eq!(digest(0), digest(12), "an entry is not edited when somebody comments on it");
//! ```

mod check;
mod detect;
mod embedded;
mod history;
mod html;
mod page;
mod pattern;
mod profile;
mod scrub;
mod sign;
mod traces;

pub use check::{BadProfile, PROFILE_BYTES_MAX};
pub use detect::{Detected, GENERIC};
pub use history::{End, Recipe};
pub use pattern::Pattern;
pub use profile::{
    Comments, Complete, Conditional, Dates, Deletions, EntryUpdated, FeedUpdated, Feeds, Http,
    IdSource, Ids, Order, Pings, Profile, Validators, Volatile,
};
pub use scrub::{Action, Field, Foreign, Scrub};
pub use sign::{Sign, SignKind, Weight};
pub use traces::Traces;

use crate::{DIGEST_VERSION, Digest, Entry};
use std::{
    collections::BTreeMap,
    sync::{Arc, OnceLock},
};

/// Limit of the profiles, the embedded ones included.
pub const PROFILES_MAX: usize = 500;

/// Every known platform.
#[derive(Clone, Debug)]
pub struct Platforms {
    profiles: BTreeMap<String, Arc<Profile>>,
}

impl Platforms {
    /// The profiles that come with the crate.
    pub fn embedded() -> &'static Self {
        static EMBEDDED: OnceLock<Platforms> = OnceLock::new();
        EMBEDDED.get_or_init(|| {
            let read = |&(file, text): &(&str, &str)| {
                let profile = check::read_tested(file, text)
                    .expect("the embedded profiles are checked by a test");
                (profile.name.clone(), profile)
            };
            Self::settled(embedded::FILES.iter().map(read).collect())
        })
    }

    /// The embedded profiles and these files: name (`wordpress.toml`) and text. A file of the same
    /// name replaces the embedded one, another name adds a platform.
    ///
    /// # Errors
    /// The first file that cannot be meant as it stands.
    pub fn with<N: AsRef<str>, T: AsRef<str>>(
        files: impl IntoIterator<Item = (N, T)>,
    ) -> Result<Self, BadProfile> {
        let mut profiles: BTreeMap<String, Profile> = Self::embedded()
            .profiles
            .iter()
            .map(|(name, profile)| (name.clone(), Profile::clone(profile)))
            .collect();
        for (file, text) in files {
            let profile = check::read(file.as_ref(), text.as_ref())?;
            profiles.insert(profile.name.clone(), profile);
            if profiles.len() > PROFILES_MAX {
                let problem = format!("more than {PROFILES_MAX} profiles; leave some out");
                return Err(BadProfile {
                    file: file.as_ref().to_owned(),
                    key: "the file".into(),
                    problem,
                });
            }
        }
        Ok(Self::settled(profiles))
    }

    /// Gives every profile the scrubbers that hold everywhere.
    fn settled(mut profiles: BTreeMap<String, Profile>) -> Self {
        let everywhere = profiles
            .get(GENERIC)
            .map(|generic| generic.scrub.clone())
            .unwrap_or_default();
        for (name, profile) in &mut profiles {
            profile.settle(if name == GENERIC { &[] } else { &everywhere });
        }
        let profiles = profiles
            .into_iter()
            .map(|(name, profile)| (name, Arc::new(profile)))
            .collect();
        Self { profiles }
    }

    /// The profile of this name.
    pub fn get(&self, name: &str) -> Option<&Arc<Profile>> {
        self.profiles.get(name)
    }

    /// Every profile, by name.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<Profile>> {
        self.profiles.values()
    }

    /// Which platform a document shows, and why. What shows none is [`GENERIC`].
    pub fn detect(&self, traces: &Traces<'_>) -> Detected {
        detect::detect(self.profiles.values().map(|profile| &**profile), traces)
    }

    /// The same for a feed of which something is known already: only a certain sign of another
    /// platform changes that, because with every change other scrubbers make the digests, and what
    /// differs then is taken for edits.
    pub fn detect_again(&self, known: Option<&Detected>, traces: &Traces<'_>) -> Detected {
        let known =
            known.filter(|known| known.platform != GENERIC && self.get(&known.platform).is_some());
        let now = self.detect(traces);
        match known {
            Some(known) if known.platform == now.platform || now.weight != Some(Weight::Strong) => {
                known.clone()
            }
            _ => now,
        }
    }
}

/// The content digest of an entry as its platform wants it: what churns without an edit is scrubbed
/// from a copy first. The entry that is shown keeps its text.
pub fn content_digest(entry: &Entry, profile: Option<&Profile>) -> Digest {
    profile.map_or_else(|| entry.digest(), |profile| profile.scrub(entry).digest())
}

/// Which parser and which scrubbers make a content digest: two digests compare only if this is
/// equal for both.
pub fn digest_version(profile: Option<&Profile>) -> u32 {
    profile.map_or(u32::from(DIGEST_VERSION), Profile::digest_version)
}
