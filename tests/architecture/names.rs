//! The paths that a module writes, wherever they stand: in `use` trees, types, expressions,
//! patterns, attributes and the tokens of macros.

use crate::tree::{Module, attributes, is_test_only, leaves};
use proc_macro2::{TokenStream, TokenTree};
use syn::{spanned::Spanned, visit::Visit};

/// A path as it is written, and its line.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Name {
    pub(crate) path: Vec<String>,
    pub(crate) line: usize,
    pub(crate) origin: Origin,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Origin {
    /// A private `use`.
    Use,
    /// A `use` that is visible outside of its module: an entry of a table of contents.
    Reexport,
    /// Anything else.
    Code,
}

/// All that a module writes; its inner modules speak for themselves, and tests are left out.
pub(crate) fn names(module: &Module) -> Vec<Name> {
    let mut names = Names::default();
    module.items.iter().for_each(|item| names.visit_item(item));
    names.found
}

#[derive(Default)]
struct Names {
    found: Vec<Name>,
}

impl Names {
    fn add(&mut self, path: Vec<String>, line: usize, origin: Origin) {
        self.found.push(Name { path, line, origin });
    }

    /// Words joined by `::` among tokens; words behind a dot are fields and methods.
    fn tokens(&mut self, tokens: TokenStream) {
        let tokens: Vec<TokenTree> = tokens.into_iter().collect();
        let mut at = 0;
        while at < tokens.len() {
            match &tokens[at] {
                TokenTree::Group(group) => {
                    self.tokens(group.stream());
                    at += 1;
                }
                TokenTree::Ident(first) => {
                    let behind_dot = at > 0
                        && matches!(&tokens[at - 1], TokenTree::Punct(dot) if dot.as_char() == '.');
                    let (mut path, line) = (vec![first.to_string()], first.span().start().line);
                    at += 1;
                    while let Some(TokenTree::Ident(next)) =
                        tokens.get(at + 2).filter(|_| colons(&tokens, at))
                    {
                        path.push(next.to_string());
                        at += 3;
                    }
                    if !behind_dot || path == ["await"] {
                        self.add(path, line, Origin::Code);
                    }
                }
                _ => at += 1,
            }
        }
    }
}

fn colons(tokens: &[TokenTree], at: usize) -> bool {
    let colon = |token: Option<&TokenTree>| matches!(token, Some(TokenTree::Punct(punct)) if punct.as_char() == ':');
    colon(tokens.get(at)) && colon(tokens.get(at + 1))
}

impl<'ast> Visit<'ast> for Names {
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

    fn visit_field(&mut self, field: &'ast syn::Field) {
        if !is_test_only(&field.attrs) {
            syn::visit::visit_field(self, field);
        }
    }

    fn visit_item_use(&mut self, item: &'ast syn::ItemUse) {
        let private = matches!(item.vis, syn::Visibility::Inherited);
        let origin = if private {
            Origin::Use
        } else {
            Origin::Reexport
        };
        for leaf in leaves(item) {
            self.add(leaf.path, item.span().start().line, origin);
        }
    }

    /// `pub(crate)` says who may see an item, and takes nothing from the module that it names.
    fn visit_vis_restricted(&mut self, _: &'ast syn::VisRestricted) {}

    fn visit_path(&mut self, path: &'ast syn::Path) {
        let mut whole: Vec<String> = path
            .leading_colon
            .map(|_| String::new())
            .into_iter()
            .collect();
        whole.extend(
            path.segments
                .iter()
                .map(|segment| segment.ident.to_string()),
        );
        self.add(whole, path.span().start().line, Origin::Code);
        syn::visit::visit_path(self, path);
    }

    fn visit_macro(&mut self, invoked: &'ast syn::Macro) {
        self.visit_path(&invoked.path);
        self.tokens(invoked.tokens.clone());
    }

    fn visit_attribute(&mut self, attribute: &'ast syn::Attribute) {
        if let syn::Meta::List(list) = &attribute.meta {
            self.tokens(list.tokens.clone());
        }
    }
}
