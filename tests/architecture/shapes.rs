//! Sizes and names: functions with too many parameters, types with too many fields, one name for
//! two types.

use crate::tree::{Sources, Tree, attributes, is_test_only, repository};
use std::{collections::BTreeMap, sync::OnceLock};
use syn::{spanned::Spanned, visit::Visit};

/// Parameters of a function, without `self`.
const PARAMETERS_MAX: usize = 5;

/// Fields of a struct or a variant.
const FIELDS_MAX: usize = 10;

/// Types with a field for each that their format has: what publishers say of an entry, a feed, or
/// another feed, and the documents that we write.
const FIELDS_FREE: &[&str] = &[
    "Entry",
    "Metadata",
    "Source",
    "Activity",
    "Object",
    "JsonFeedPage",
    "JsonFeedItem",
    "Article",
    "ItemActivity",
    "Description",
    "FeedStatus",
    "Explanation",
    "ExplainedItem",
    "Profile",
    "SignTable",
];

/// Names that every component may use for its own.
const NAMES_FREE: &[&str] = &["Config", "Error"];

/// Known offenders; the lists only shrink, and end empty.
const FUNCTIONS_LEFT: &[&str] = &[];
const TYPES_LEFT: &[&str] = &[];
const NAMES_LEFT: &[&str] = &[];

#[test]
fn no_function_has_more_than_five_parameters() {
    check_left(&found().functions, FUNCTIONS_LEFT);
}

#[test]
fn no_type_has_more_than_ten_fields() {
    check_left(&found().types, TYPES_LEFT);
}

#[test]
fn no_two_types_of_a_crate_have_one_name() {
    check_left(&found().recurring(), NAMES_LEFT);
}

/// No offender (`name: where`) is new, and none that is gone stays in its list.
fn check_left(found: &[String], left: &[&str]) {
    let name = |line: &String| line.split(':').next().unwrap_or_default().to_owned();
    let new: Vec<_> = found
        .iter()
        .filter(|line| !left.contains(&name(line).as_str()))
        .collect();
    assert!(new.is_empty(), "{} new offenders: {new:#?}", new.len());
    let gone: Vec<_> = left
        .iter()
        .filter(|left| !found.iter().any(|line| name(line) == **left))
        .collect();
    assert!(
        gone.is_empty(),
        "these offend no more; take them out of the list: {gone:?}"
    );
}

/// Read once for all tests of this file.
fn found() -> &'static Shapes {
    static FOUND: OnceLock<Shapes> = OnceLock::new();
    FOUND.get_or_init(read)
}

fn read() -> Shapes {
    let mut shapes = Shapes::default();
    for folder in ["src", "adapters/src"] {
        shapes.read(folder, &Tree::read(&repository(folder)));
    }
    assert!(
        shapes.names.len() > 200,
        "only {} types were found",
        shapes.names.len()
    );
    shapes
}

#[derive(Default)]
struct Shapes {
    at: (String, String),
    functions: Vec<String>,
    types: Vec<String>,
    /// Crate and name, and where it is defined.
    names: BTreeMap<(String, String), Vec<String>>,
}

impl Shapes {
    fn read(&mut self, folder: &str, tree: &Tree) {
        for module in &tree.modules {
            self.at = (folder.to_owned(), format!("{folder}/{}", module.file));
            module.items.iter().for_each(|item| self.visit_item(item));
        }
    }

    fn recurring(&self) -> Vec<String> {
        let twice = self
            .names
            .iter()
            .filter(|((_, name), at)| at.len() > 1 && !NAMES_FREE.contains(&name.as_str()));
        twice
            .map(|((_, name), at)| format!("{name}: {}", at.join(", ")))
            .collect()
    }

    fn name(&mut self, name: &syn::Ident) {
        let place = format!("{}:{}", self.at.1, name.span().start().line);
        self.names
            .entry((self.at.0.clone(), name.to_string()))
            .or_default()
            .push(place);
    }

    fn fields(&mut self, name: &syn::Ident, fields: &syn::Fields) {
        // Settings of the catalog are configuration, too: a field for each key.
        let is_configuration = name.to_string().ends_with("Config")
            || self.at.1.contains("config")
            || self.at.1.contains("/settings");
        if fields.len() > FIELDS_MAX
            && !is_configuration
            && !FIELDS_FREE.contains(&name.to_string().as_str())
        {
            self.types
                .push(format!("{name}: {}, {} fields", self.at.1, fields.len()));
        }
    }
}

impl<'ast> Visit<'ast> for Shapes {
    fn visit_item(&mut self, item: &'ast syn::Item) {
        if !is_test_only(attributes(item)) {
            syn::visit::visit_item(self, item);
        }
    }

    fn visit_item_mod(&mut self, _: &'ast syn::ItemMod) {}

    fn visit_impl_item_fn(&mut self, item: &'ast syn::ImplItemFn) {
        if !is_test_only(&item.attrs) {
            syn::visit::visit_impl_item_fn(self, item);
        }
    }

    fn visit_signature(&mut self, signature: &'ast syn::Signature) {
        let count = signature
            .inputs
            .iter()
            .filter(|input| matches!(input, syn::FnArg::Typed(_)))
            .count();
        if count > PARAMETERS_MAX {
            let line = signature.span().start().line;
            self.functions.push(format!(
                "{}: {}:{line}, {count} parameters",
                signature.ident, self.at.1
            ));
        }
    }

    fn visit_item_struct(&mut self, item: &'ast syn::ItemStruct) {
        self.name(&item.ident);
        self.fields(&item.ident, &item.fields);
    }

    fn visit_item_enum(&mut self, item: &'ast syn::ItemEnum) {
        self.name(&item.ident);
        item.variants
            .iter()
            .for_each(|variant| self.fields(&variant.ident, &variant.fields));
    }

    fn visit_item_trait(&mut self, item: &'ast syn::ItemTrait) {
        self.name(&item.ident);
        syn::visit::visit_item_trait(self, item);
    }

    fn visit_item_type(&mut self, item: &'ast syn::ItemType) {
        self.name(&item.ident);
    }
}

#[test]
fn each_offender_is_found_and_tests_are_not() {
    let fields = |count: usize| {
        (0..count)
            .map(|at| format!("f{at}: u8, "))
            .collect::<String>()
    };
    let a = format!(
        "pub struct Twice; struct Config; fn six({}) {{}} struct Large {{ {} }} struct Entry {{ {} }} struct Fits {{ {} }}",
        fields(6),
        fields(11),
        fields(11),
        fields(10)
    );
    let b = format!(
        "impl super::a::Twice {{ type Error = u8; fn method(&self, {}) {{ fn inner({}) {{}} }} }} trait T {{ fn asked({}); }} struct Config;
         mod deep {{ enum Twice {{ Wide {{ {} }} }} }} #[cfg(test)] mod tests {{ struct T; fn f({}) {{}} }} struct LargeConfig {{ {} }}",
        fields(5),
        fields(6),
        fields(6),
        fields(11),
        fields(9),
        fields(11)
    );
    let files = [
        ("lib.rs", "mod a; mod b;".to_owned()),
        ("a.rs", a),
        ("b.rs", b),
    ];
    let sources: Sources = files
        .into_iter()
        .map(|(name, text)| (name.to_owned(), text))
        .collect();
    let mut shapes = Shapes::default();
    shapes.read("src", &Tree::of(&sources));
    let name = |line: &String| line.split(':').next().unwrap_or_default().to_owned();
    assert_eq!(
        shapes.functions.iter().map(name).collect::<Vec<_>>(),
        ["six", "inner", "asked"]
    );
    assert_eq!(
        shapes.types.iter().map(name).collect::<Vec<_>>(),
        ["Large", "Wide"]
    );
    assert_eq!(shapes.recurring(), ["Twice: src/a.rs:1, src/b.rs:2"]);
    check_left(&["six: a.rs".to_owned()], &["six"]);
}
