//! History: the reach of a feed's memory into the past, and the reason why no further (H-4, H-11).

use std::fmt;

/// Reach of a feed's memory into the past.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum History {
    /// To the first document that we saw; nobody said whether there was more before.
    #[default]
    Unknown,
    /// To its first item.
    Complete,
    /// Something could not be read: why, without secrets.
    Partial(String),
    /// Its archives are being read.
    Running,
}

impl History {
    /// History after a walk that found this. Nothing that is held is forgotten, so what was complete stays so, though
    /// one more walk fails; of two reasons why it is not, the newer one counts.
    #[must_use]
    pub fn after(&self, found: Self) -> Self {
        match (self, found) {
            (Self::Complete, _) => Self::Complete,
            (Self::Partial(why), Self::Unknown) => Self::Partial(why.clone()),
            (_, found) => found,
        }
    }

    /// The word for it.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Unknown => "unknown",
            Self::Complete => "complete",
            Self::Partial(_) => "partial",
            Self::Running => "running",
        }
    }

    /// Reason why it reaches no further.
    pub fn why(&self) -> Option<&str> {
        match self {
            Self::Partial(why) => Some(why),
            _ => None,
        }
    }
}

impl fmt::Display for History {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())?;
        self.why().map_or(Ok(()), |why| write!(f, " ({why})"))
    }
}
