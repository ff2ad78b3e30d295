//! Texts of the program, measured as the pages are: help texts, errors, log lines and the other
//! texts of its source have short sentences in plain words.

use crate::{
    book::{LONG, SENTENCE_WORDS_MAX, SHORT, long_share, sentences, short_share},
    tree::{attributes, is_test_only, repository, sources},
};
use proc_macro2::{TokenStream, TokenTree};
use std::{fmt::Write as _, fs, path::Path};
use syn::visit::Visit;

/// Files with lists of words that are no sentences.
const LISTS: [&str; 2] = ["render/harmless.rs", "render/jsonp.rs"];
/// Modules that only tests compile, by the names of their files and folders.
const TEST_MODULES: [&str; 4] = ["tests", "testing", "conformance", "golden"];
/// Words and phrases of an old style, with what is written instead.
const OLD_STYLE: [(&str, &str); 5] = [
    ("whose ", "\"with\", or a sentence of its own"),
    ("whom ", "another sentence"),
    ("what is no ", "the thing itself"),
    ("that of ", "the noun again"),
    ("nobody ", "\"no reader\", \"no user\""),
];
/// Traits of clap, of which the doc comments are the help.
const CLAP: [&str; 3] = ["Parser", "Args", "Subcommand"];

/// The texts of a file: string literals with a blank in them, and help texts.
#[derive(Default)]
struct Texts {
    found: Vec<String>,
    is_help: bool,
}

impl Texts {
    fn of(file: &Path) -> Self {
        let text = fs::read_to_string(file).expect("a source file");
        let mut texts = Self::default();
        texts.visit_file(&syn::parse_file(&text).expect("Rust"));
        texts
    }

    fn tokens(&mut self, tokens: TokenStream) {
        for token in tokens {
            match token {
                TokenTree::Group(group) => self.tokens(group.stream()),
                TokenTree::Literal(literal) => {
                    if let syn::Lit::Str(text) = syn::Lit::new(literal) {
                        self.text(&text.value());
                    }
                }
                _ => {}
            }
        }
    }

    fn text(&mut self, text: &str) {
        if text.trim().contains(' ') {
            self.found.push(text.to_owned());
        }
    }

    /// The doc comment of an item, a field or a variant.
    fn help(&mut self, attributes: &[syn::Attribute]) {
        let lines = attributes.iter().filter_map(|attribute| {
            let syn::Meta::NameValue(doc) = &attribute.meta else {
                return None;
            };
            match &doc.value {
                syn::Expr::Lit(syn::ExprLit {
                    lit: syn::Lit::Str(line),
                    ..
                }) if doc.path.is_ident("doc") => Some(line.value()),
                _ => None,
            }
        });
        let text: Vec<String> = lines.collect();
        self.text(&text.join("\n"));
    }
}

/// True for a type that clap reads its help from.
fn is_of_clap(attributes: &[syn::Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        let syn::Meta::List(list) = &attribute.meta else {
            return false;
        };
        let derives = list.tokens.to_string();
        list.path.is_ident("derive") && CLAP.iter().any(|name| derives.contains(name))
    })
}

impl<'ast> Visit<'ast> for Texts {
    fn visit_item(&mut self, item: &'ast syn::Item) {
        let attributes = attributes(item);
        if is_test_only(attributes) {
            return;
        }
        let is_outer = std::mem::replace(&mut self.is_help, is_of_clap(attributes));
        if self.is_help {
            self.help(attributes);
        }
        syn::visit::visit_item(self, item);
        self.is_help = is_outer;
    }

    fn visit_field(&mut self, field: &'ast syn::Field) {
        if self.is_help {
            self.help(&field.attrs);
        }
        syn::visit::visit_field(self, field);
    }

    fn visit_variant(&mut self, variant: &'ast syn::Variant) {
        if self.is_help {
            self.help(&variant.attrs);
        }
        syn::visit::visit_variant(self, variant);
    }

    fn visit_lit_str(&mut self, text: &'ast syn::LitStr) {
        self.text(&text.value());
    }

    fn visit_macro(&mut self, invoked: &'ast syn::Macro) {
        self.tokens(invoked.tokens.clone());
    }

    /// Doc comments are help or are for engineers; `#[error("...")]` is for people.
    fn visit_attribute(&mut self, attribute: &'ast syn::Attribute) {
        if let syn::Meta::List(list) = &attribute.meta {
            self.tokens(list.tokens.clone());
        }
    }
}

/// True for a file that only tests compile, or that holds no sentences.
fn is_left_out(file: &str) -> bool {
    let names = file.trim_end_matches(".rs").split('/');
    LISTS.contains(&file) || names.into_iter().any(|name| TEST_MODULES.contains(&name))
}

#[test]
fn sentences_of_the_program_are_short_and_plain() {
    let source = repository("src");
    let mut wrong = String::new();
    let mut all = Vec::new();
    println!("words of sentences: file, sentences, longest, % long, % short");
    for file in sources(&source)
        .into_keys()
        .filter(|file| !is_left_out(file))
    {
        let texts = Texts::of(&source.join(&file)).found;
        let found: Vec<_> = texts.iter().flat_map(|text| sentences(text)).collect();
        let longest = found.iter().map(|(_, words)| *words).max().unwrap_or(0);
        println!(
            "{file:40} {:4} {longest:3} {:5.1} {:5.1}",
            found.len(),
            long_share(&found),
            short_share(&found)
        );
        for (sentence, words) in &found {
            if *words > SENTENCE_WORDS_MAX {
                let _ = writeln!(wrong, "{file}: {words} words: {sentence}");
            }
            let lower = format!("{} ", sentence.to_lowercase());
            for (old, plain) in OLD_STYLE.iter().filter(|(old, _)| {
                lower
                    .find(old)
                    .is_some_and(|at| !lower[..at].ends_with(char::is_alphanumeric))
            }) {
                let _ = writeln!(wrong, "{file}: `{old}`; write {plain}: {sentence}");
            }
        }
        all.extend(found);
    }
    let (long, short) = (long_share(&all), short_share(&all));
    println!("{:40} {:4}     {long:5.1} {short:5.1}", "all", all.len());
    assert!(
        wrong.is_empty() && all.len() > 2000,
        "{} sentences\n{wrong}",
        all.len()
    );
    assert!(
        long <= LONG.1 && short >= SHORT.1,
        "{long:.1} % are over {} words, {short:.1} % within {}",
        LONG.0,
        SHORT.0
    );
}
