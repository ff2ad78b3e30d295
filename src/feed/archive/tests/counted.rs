//! Walks by counted pages and entries, and documents that show everything.

use super::*;

#[test]
fn wordpress_pages_are_counted_until_404() {
    let docs = [
        ("/rss", doc([6, 5])),
        ("/rss?paged=1", doc([6, 5])),
        ("/rss?paged=2", doc([4, 3])),
        ("/rss?paged=3", doc([2])),
    ];
    check(
        &docs,
        "wordpress",
        &["/rss?paged=2", "/rss?paged=3"],
        "complete",
    );
    let mut full = docs.clone();
    full[3].1 = doc([2, 1]);
    let why = "partial (the last page that was found is as full as the others, so nothing tells whether more should follow)";
    check(&full, "wordpress", &["/rss?paged=2", "/rss?paged=3"], why);
    // In the order of edits the pages begin with the first.
    let page = |n: u32| format!("/rss?paged={n}&orderby=modified&order=ASC");
    let (one, two, three) = (page(1), page(2), page(3));
    let docs = [
        ("/rss", doc([6, 5])),
        (one.as_str(), doc([1, 2])),
        (two.as_str(), doc([3, 4])),
        (three.as_str(), doc([5, 6])),
    ];
    check(&docs, "wordpress", &[&one, &two], "complete");
    // One that ends before it meets the live document is not believed, and the other order is read.
    check(
        &docs[..3],
        "wordpress",
        &[&one, &two],
        "partial (its archives do not show what its live document shows)",
    );
}

#[test]
fn a_server_that_ignores_the_parameter_shows_nothing_of_its_history() {
    let live = Doc {
        body: Some(1),
        ..doc([2, 1])
    };
    let docs = [
        ("/rss", live.clone()),
        ("/rss?paged=2", live.clone()),
        (
            "/rss?paged=1&orderby=modified&order=ASC",
            Doc {
                body: Some(2),
                ..live
            },
        ),
    ];
    check(&docs, "wordpress", &[], "unknown");
}

#[test]
fn entries_are_counted_with_an_overlap_until_the_total() {
    let counted = |ids: &[u32], first: u64| {
        let mut doc = doc(ids.iter().copied());
        doc.metadata.paging = Paging {
            total_items: Some(5),
            first_index: Some(first),
            page_items: Some(2),
        };
        doc
    };
    // Blogger without its links.
    let (two, three) = (
        "/rss?start-index=2&max-results=100",
        "/rss?start-index=4&max-results=100",
    );
    let docs = [
        ("/rss", counted(&[5, 4], 1)),
        (two, counted(&[4, 3, 2], 2)),
        (three, counted(&[2, 1], 4)),
    ];
    check(&docs, "blogger", &[two, three], "complete");
    // OpenSearch alone.
    let (two, four) = ("/rss?startIndex=2", "/rss?startIndex=4");
    let docs = [
        ("/rss", counted(&[5, 4], 1)),
        (two, counted(&[4, 3, 2], 2)),
        (four, counted(&[2, 1], 4)),
    ];
    check(&docs, "none", &[two, four], "complete");
}

#[test]
fn one_parameter_lifts_the_limit() {
    check(
        &[("/rss", doc([3])), ("/rss?all=1", doc([1, 2, 3]))],
        "serendipity",
        &["/rss?all=1"],
        "complete",
    );
    let many = |n: u32| doc(1..=n);
    check(
        &[("/rss", doc([3])), ("/rss?limit=100", many(99))],
        "textpattern",
        &["/rss?limit=100"],
        "complete",
    );
    check(
        &[("/rss", doc([3])), ("/rss?limit=100", many(100))],
        "textpattern",
        &["/rss?limit=100"],
        "partial (its server gives no more than 100 entries)",
    );
}

#[test]
fn a_page_that_leads_back_by_a_redirect_is_the_end() {
    // Ghost: what is beyond the last page leads to the last.
    let back = Doc {
        landed: Some("http://blog.example/rss/2/".into()),
        body: Some(9),
        ..doc([2])
    };
    let docs = [
        ("/rss", doc([4, 3])),
        ("/rss/1/", doc([4, 3])),
        ("/rss/2/", doc([2])),
        ("/rss/3/", back),
    ];
    check(&docs, "ghost", &["/rss/2/"], "complete");
}

/// A live document of so many entries of this generator.
fn made_with(generator: &str, entries: u32) -> Doc {
    let mut doc = doc(1..=entries);
    let name = Some(generator.to_owned());
    doc.metadata.generator = Some(everfeed_adapters::Generator {
        name,
        version: None,
        uri: None,
    });
    doc
}

#[test]
fn a_blog_without_a_second_page_is_whole_when_its_software_names_itself_and_the_document_is_not_full()
 {
    let wordpress = "https://wordpress.org/?v=6.0";
    let check = |live: Doc, end: u16, expect: &str| {
        // The order by edits is not known to old versions, which show the live document.
        let (first, same) = (
            "/rss?paged=1&orderby=modified&order=ASC",
            Doc {
                body: Some(2),
                ..live.clone()
            },
        );
        let docs = [
            ("/rss", live.clone()),
            (first, same),
            (
                "/rss?paged=1",
                Doc {
                    body: Some(3),
                    ..live
                },
            ),
            ("/rss?paged=2", status(end)),
        ];
        super::check(&docs, "wordpress", &[], expect);
    };
    check(made_with(wordpress, 3), 404, "complete");
    check(made_with(wordpress, 9), 404, "complete");
    check(made_with(wordpress, 10), 404, "unknown");
    check(made_with(wordpress, 11), 404, "unknown");
    check(doc(1..=3), 404, "unknown");
    check(made_with("Another 1.0", 3), 404, "unknown");
    check(
        Doc {
            damaged: true,
            ..made_with(wordpress, 3)
        },
        404,
        "unknown",
    );
    // Only 404 says that there is no page.
    check(made_with(wordpress, 3), 410, "unknown");
    check(
        made_with(wordpress, 3),
        299,
        "partial (a page of the archives is no feed)",
    );
    check(
        made_with(wordpress, 3),
        403,
        "partial (a page of the archives is missing (403))",
    );
    // That the first page is not there either says that no pages are counted here.
    let docs = [
        ("/rss", made_with(wordpress, 3)),
        ("/rss?paged=2", doc(1..=3)),
    ];
    super::check(&docs, "wordpress", &[], "unknown");
    super::check(&docs[..1], "wordpress", &[], "unknown");
    // What its publisher names and does not have remains a gap.
    let mut named = made_with(wordpress, 3);
    named.metadata.links = linked([], "next", "http://blog.example/gone")
        .metadata
        .links;
    let docs = [
        ("/rss", named),
        ("/gone", status(410)),
        ("/rss?paged=2", status(404)),
    ];
    super::check(
        &docs,
        "wordpress",
        &[],
        "partial (a page of the archives is missing (410))",
    );
}
