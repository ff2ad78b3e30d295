//! That nothing which makes feed-rs panic reaches it by way of us; a guard would catch the panic,
//! but a hook would tell of it and a build that aborts would end. In a binary of its own, because
//! hooks are the process's.

use std::sync::atomic::{AtomicUsize, Ordering};

use everfeed_adapters::{Hints, cross_check_count};

static PANICS: AtomicUsize = AtomicUsize::new(0);

#[test]
fn nothing_that_makes_feed_rs_panic_reaches_it() {
    std::panic::set_hook(Box::new(|_| {
        PANICS.fetch_add(1, Ordering::Relaxed);
    }));
    let media = |inside: &str| {
        format!(
            "<rss version='2.0' xmlns:media='http://search.yahoo.com/mrss/'><channel><item><guid>1</guid>{inside}</item></channel></rss>"
        )
    };
    let huge = "99999999999999999999999";
    // PARSING section 0.1, and what was found at random.
    for document in [
        media(&format!(
            "<media:thumbnail url='http://e.org/' time='{huge}:00:00'/>"
        )),
        media(&format!(
            "<media:content url='http://e.org/'><media:thumbnail url='http://e.org/' time='{huge}'/></media:content>"
        )),
        media("<media:group><media:text start='\u{663}:00:00'>x</media:text></media:group>"),
        media(
            "<media:title>x</media:title><?xml version='1.0' encoding='utf-16'?><media:content url='http://e.org/'/>",
        ),
        media(&format!(
            "{}<?xml version='1.0' encoding='koi8-r'?>",
            "<media:content url='http://e.org/'/>".repeat(9)
        )),
        media(
            "<media:description><![CDATA[<?xml version='1.0' encoding='utf-16'?>]]></media:description>",
        ),
        media(
            "<author>Example\u{8f}editor me@example.com)</author><author>&#143;e me@example.com)</author>",
        ),
        media(&format!(
            "<media:content url='http://e.org/' duration='{huge}' fileSize='{huge}' type='a/b;c='/>"
        )),
    ] {
        cross_check_count(document.as_bytes(), &Hints::default());
        assert_eq!(PANICS.load(Ordering::Relaxed), 0, "{document}");
    }
}
