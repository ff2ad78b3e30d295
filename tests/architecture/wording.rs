//! The beginning of doc comments: the thing that they tell of.

use crate::tree::{repository, sources};
use proc_macro2::{Delimiter, TokenStream, TokenTree};

/// Words that no doc comment begins with.
const NEVER_FIRST: [&str; 7] = ["What", "Who", "Whether", "When", "Where", "How", "Why"];

#[test]
fn doc_comments_begin_with_the_thing() {
    let mut found: Vec<String> = Vec::new();
    let mut comments = 0;
    for folder in [
        "src",
        "adapters/src",
        "adapters/tests",
        "adapters/benches",
        "tests",
        "benches",
        "examples",
    ] {
        for (file, text) in sources(&repository(folder)) {
            let tokens: TokenStream = text
                .parse()
                .unwrap_or_else(|error| panic!("{folder}/{file}: {error}"));
            let file = format!("{folder}/{file}");
            for (line, text) in doc_comments(tokens) {
                comments += 1;
                if begins_badly(&text) {
                    found.push(format!("{file}:{line} {text}"));
                }
            }
        }
    }
    assert!(comments > 2000, "only {comments} doc comments were found");
    assert!(
        found.is_empty(),
        "doc comments begin with one of {NEVER_FIRST:?}:\n{}",
        found.join("\n")
    );
}

fn begins_badly(text: &str) -> bool {
    let first = text
        .trim_start()
        .split(|c: char| !c.is_alphanumeric())
        .next();
    first.is_some_and(|first| NEVER_FIRST.contains(&first))
}

/// The first line of every doc comment, and its number.
fn doc_comments(tokens: TokenStream) -> Vec<(usize, String)> {
    let tokens: Vec<TokenTree> = tokens.into_iter().collect();
    // The last token was part of an inner (1) or an outer (0) doc comment, or of none.
    let (mut found, mut at, mut before) = (Vec::new(), 0, None);
    while at < tokens.len() {
        let inner = usize::from(
            matches!(tokens.get(at + 1), Some(TokenTree::Punct(bang)) if bang.as_char() == '!'),
        );
        let is_hash = matches!(&tokens[at], TokenTree::Punct(hash) if hash.as_char() == '#');
        let attribute = match tokens.get(at + 1 + inner) {
            Some(TokenTree::Group(group)) if is_hash && group.delimiter() == Delimiter::Bracket => {
                Some(group)
            }
            _ => None,
        };
        match attribute.map(|group| (group.span_open().start().line, doc(group.stream()))) {
            Some((line, Some(text))) => {
                if before != Some(inner) {
                    found.push((line, text));
                }
                (at, before) = (at + 2 + inner, Some(inner));
            }
            _ => {
                if let TokenTree::Group(group) = &tokens[at] {
                    found.extend(doc_comments(group.stream()));
                }
                (at, before) = (at + 1, None);
            }
        }
    }
    found
}

/// The text of `doc = "..."`.
fn doc(tokens: TokenStream) -> Option<String> {
    let tokens: Vec<TokenTree> = tokens.into_iter().collect();
    match &tokens[..] {
        [
            TokenTree::Ident(name),
            TokenTree::Punct(_),
            TokenTree::Literal(text),
        ] if name == "doc" => syn::parse_str::<syn::LitStr>(&text.to_string())
            .ok()
            .map(|text| text.value()),
        _ => None,
    }
}

#[test]
fn the_first_line_of_every_comment_is_read() {
    let text = "//! What this is.\n//! When.\n\n/// Fine.\n/// Who goes on.\nstruct A {\n    /// How much.\n    b: u8, // Why not.\n}\n\
                impl A {\n    /// Whatever: no question.\n    fn f() { \"/// What is said.\" }\n    /** Where. */\n    fn g() {}\n}\n\
                m! {\n    /// Why.\n    c\n}";
    let found = doc_comments(text.parse().expect("tokens"));
    let lines: Vec<_> = found
        .iter()
        .map(|(line, text)| (*line, begins_badly(text)))
        .collect();
    assert_eq!(
        lines,
        [
            (1, true),
            (4, false),
            (7, true),
            (11, false),
            (13, true),
            (17, true)
        ]
    );
    assert!(begins_badly(" Whether: so") && !begins_badly(" The Why") && !begins_badly(""));
}
