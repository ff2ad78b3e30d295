//! Log lines about a window as a whole and about recognised software, in the operator's words.

use crate::{
    feed::absence::WindowEvent,
    ingest::{Context, FeedSpec},
};
use everfeed_adapters::platforms::Detected;
use tracing::{info, warn};

/// Event of a window as a whole, in the operator's words; it is noted for the journal, too.
pub(in crate::ingest) fn tell(context: &Context, feed: &FeedSpec, event: WindowEvent) {
    let name = &feed.name;
    context.happenings.note(name, event, context.now());
    match event {
        WindowEvent::Gap => {
            warn!(feed.name = %name, "Nothing of the last document of `{name}` is in this one; items may be missing between the two")
        }
        WindowEvent::Rebaselined => {
            info!(feed.name = %name, "The order of `{name}` could not be followed; its window begins anew")
        }
        WindowEvent::Quarantined => {
            warn!(feed.name = %name, "Too much of `{name}` is missing at once; nothing is taken for deleted until it is back, or for a week")
        }
        WindowEvent::Reformatted => {
            info!(feed.name = %name, "`{name}` was reformatted: most of its entries were edited at once, none of them by its date")
        }
        WindowEvent::QuarantineEnded => {
            warn!(feed.name = %name, "Much of `{name}` stayed missing for a week, and no page told why; its window begins anew, and nothing was deleted")
        }
        WindowEvent::QuarantineDecided => {
            info!(feed.name = %name, "The pages of what `{name}` lacked at once have decided on it")
        }
        WindowEvent::DailyLimit => {
            warn!(feed.name = %name, "More items of `{name}` seem to be gone than is believed in a day; the rest waits")
        }
        WindowEvent::Doubted => {
            warn!(feed.name = %name, "Posts that `{name}` left out came back. For a month, a post must be missing for seven days to count as deleted")
        }
        WindowEvent::AbsenceOff => {
            warn!(feed.name = %name, "Posts of `{name}` came back after seven days. For a month, no post counts as deleted because it is missing")
        }
        WindowEvent::Pinned => {
            info!(feed.name = %name, "Posts roll off `{name}` before an end that stays. Its documents prove no deletion, only pages do")
        }
    }
}

/// Says which software a feed is thought to be made with, once.
pub(super) fn tell_platform(feed: &FeedSpec, before: Option<&Detected>, now: Option<&Detected>) {
    let Some(now) = now.filter(|now| before.is_none_or(|before| before.platform != now.platform))
    else {
        return;
    };
    let (name, platform, why) = (&feed.name, &now.platform, &now.why);
    info!(feed.name = %name, feed.platform = %platform, "`{name}` is read as {platform}: {why}");
}
