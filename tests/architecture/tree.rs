//! A crate as a tree of modules: which file defines which name, and what a path written in some
//! module leads to. Not what types the compiler would infer: a method call names no file.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};
use syn::{Item, UseTree, visit::Visit};

/// The files of a crate by their paths below its `src`, `lib.rs` among them.
pub(crate) type Sources = BTreeMap<String, String>;

/// One crate, without what is compiled for tests only.
#[derive(Default)]
pub(crate) struct Tree {
    pub(crate) modules: Vec<Module>,
}

/// A file or an inline module.
pub(crate) struct Module {
    /// From the crate's root; the root itself has none.
    pub(crate) path: Vec<String>,
    pub(crate) file: String,
    pub(crate) items: Vec<Item>,
    children: BTreeMap<String, usize>,
    defined: Vec<String>,
    imports: Vec<Import>,
}

/// One leaf of a `use` tree.
#[derive(Clone)]
pub(crate) struct Import {
    pub(crate) path: Vec<String>,
    /// Under which name it is known here; `*` for a glob.
    pub(crate) name: String,
}

/// The end of a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Target {
    /// An item, and the module that defines it.
    Item(usize, String),
    Module(usize),
    /// Of another crate: the whole path, aliases replaced.
    External(Vec<String>),
    /// A local variable, a generic parameter, a name of the prelude.
    Unknown,
}

impl Tree {
    pub(crate) fn read(folder: &Path) -> Tree {
        Tree::of(&sources(folder))
    }

    pub(crate) fn of(sources: &Sources) -> Tree {
        let mut tree = Tree::default();
        tree.load(sources, "lib.rs", Vec::new());
        tree
    }

    fn load(&mut self, sources: &Sources, file: &str, path: Vec<String>) -> usize {
        let text = sources
            .get(file)
            .unwrap_or_else(|| panic!("no file {file}"));
        let parsed = syn::parse_file(text).unwrap_or_else(|error| panic!("{file}: {error}"));
        self.add(sources, file, path, parsed.items)
    }

    fn add(&mut self, sources: &Sources, file: &str, path: Vec<String>, items: Vec<Item>) -> usize {
        let items: Vec<Item> = items
            .into_iter()
            .filter(|item| !is_test_only(attributes(item)))
            .collect();
        let index = self.modules.len();
        let defined = items.iter().filter_map(name_of).collect();
        let mut imports = Imports::default();
        items.iter().for_each(|item| imports.visit_item(item));
        // A crate within this tree that the root names is a module like the others.
        let crates: Vec<Import> = imports
            .0
            .extract_if(.., |import| {
                path.is_empty()
                    && import.path.len() == 1
                    && crate_within(&import.path[0])
                        .is_some_and(|name| sources.contains_key(&format!("{name}/lib.rs")))
            })
            .collect();
        let file = file.to_owned();
        let imports = imports.0;
        let module = Module {
            path,
            file: file.clone(),
            items,
            children: BTreeMap::new(),
            defined,
            imports,
        };
        self.modules.push(module);
        let inner: Vec<_> = self.modules[index]
            .items
            .iter()
            .filter_map(module_of)
            .collect();
        for import in crates {
            let file = format!("{}/lib.rs", import.name);
            let child = self.load(sources, &file, vec![import.name.clone()]);
            self.modules[index].children.insert(import.name, child);
        }
        for (name, content) in inner {
            let mut path = self.modules[index].path.clone();
            path.push(name.clone());
            let child = match content {
                Some(items) => self.add(sources, &file, path, items),
                None => {
                    let beside = format!("{}.rs", path.join("/"));
                    let within = format!("{}/mod.rs", path.join("/"));
                    let file = if sources.contains_key(&within) {
                        within
                    } else {
                        beside
                    };
                    self.load(sources, &file, path)
                }
            };
            self.modules[index].children.insert(name, child);
        }
        index
    }

    /// Follows a path that is written in `module`.
    pub(crate) fn resolve(&self, module: usize, path: &[String]) -> Target {
        self.follow(module, path, 0)
    }

    /// As `resolve`; an import that leads back to itself ends after a few rounds.
    fn follow(&self, module: usize, path: &[String], depth: usize) -> Target {
        let Some((first, rest)) = path.split_first() else {
            return Target::Module(module);
        };
        if depth > 16 {
            return Target::Unknown;
        }
        match first.as_str() {
            "crate" | "$crate" => self.enter(self.root_of(module), rest, depth),
            "self" => self.enter(module, rest, depth),
            "super" => match self.parent(module) {
                Some(parent) => self.follow_super(parent, rest, depth),
                None => Target::Unknown,
            },
            "" => Target::External(rest.to_vec()),
            _ => match self.enter(module, path, depth) {
                Target::Unknown if is_crate(path) => match self.crate_named(first) {
                    Some(root) => self.enter(root, rest, depth),
                    None => Target::External(path.to_vec()),
                },
                found => found,
            },
        }
    }

    fn follow_super(&self, module: usize, path: &[String], depth: usize) -> Target {
        match path.first().map(String::as_str) {
            Some("super") => self.follow(module, path, depth),
            _ => self.enter(module, path, depth),
        }
    }

    /// Looks a path up among the names of a module.
    fn enter(&self, module: usize, path: &[String], depth: usize) -> Target {
        let Some((first, rest)) = path.split_first() else {
            return Target::Module(module);
        };
        let here = &self.modules[module];
        if let Some(&child) = here.children.get(first).filter(|_| !rest.is_empty()) {
            return self.enter(child, rest, depth);
        }
        if here.defined.contains(first) {
            return Target::Item(module, first.clone());
        }
        for import in here.imports.iter().filter(|import| import.name == *first) {
            let whole: Vec<String> = import.path.iter().chain(rest).cloned().collect();
            // `use page;` and the like name themselves.
            if whole != path {
                return self.imported(module, &whole, depth + 1);
            }
        }
        if let Some(&child) = here.children.get(first) {
            return Target::Module(child);
        }
        for import in here.imports.iter().filter(|import| import.name == "*") {
            let found = match self.imported(module, &import.path, depth + 1) {
                Target::Module(other) if other != module => self.enter(other, path, depth + 1),
                _ => Target::Unknown,
            };
            if found != Target::Unknown {
                return found;
            }
        }
        Target::Unknown
    }

    /// Follows the path of an import: where nothing of ours goes by its first name, it is another
    /// crate's.
    fn imported(&self, module: usize, path: &[String], depth: usize) -> Target {
        let found = self.follow(module, path, depth);
        let ours = ["crate", "self", "super"].contains(&path[0].as_str());
        if found == Target::Unknown
            && !ours
            && self.crate_named(&path[0]).is_none()
            && !self.modules[module].children.contains_key(&path[0])
        {
            return Target::External(path.to_vec());
        }
        found
    }

    /// The root of the crate that a module is in.
    pub(crate) fn root_of(&self, module: usize) -> usize {
        let path = &self.modules[module].path;
        let is_root = |root: &usize| {
            let root = &self.modules[*root];
            root.path.len() == 1 && root.path.first() == path.first() && root.is_crate()
        };
        (0..self.modules.len()).find(is_root).unwrap_or(0)
    }

    /// The root of a crate within this tree.
    fn crate_named(&self, name: &str) -> Option<usize> {
        let name = crate_within(name)?;
        (0..self.modules.len()).find(|root| {
            let root = &self.modules[*root];
            root.path == [name] && root.is_crate()
        })
    }

    fn parent(&self, module: usize) -> Option<usize> {
        let (_, path) = self.modules[module].path.split_last()?;
        self.modules.iter().position(|other| other.path == path)
    }
}

impl Module {
    fn is_crate(&self) -> bool {
        self.file.ends_with("/lib.rs")
    }
}

/// The folder of a crate of this project: `everfeed_feed` is in `feed`.
fn crate_within(name: &str) -> Option<&str> {
    name.strip_prefix("everfeed_")
}

/// True where a path can begin with the name of a crate: crates are lower case, and so are the
/// types of the language.
fn is_crate(path: &[String]) -> bool {
    let primitive = ["bool", "char", "str", "f32", "f64"];
    let number = |name: &str| {
        name.strip_prefix(['u', 'i'])
            .is_some_and(|bits| bits == "size" || bits.parse::<u8>().is_ok())
    };
    let first = path[0].as_str();
    path.len() > 1
        && first.starts_with(|c: char| c.is_lowercase())
        && !primitive.contains(&first)
        && !number(first)
}

/// Every file below a folder that ends in `.rs`.
pub(crate) fn sources(folder: &Path) -> Sources {
    let mut found = Sources::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        for entry in
            fs::read_dir(&next).unwrap_or_else(|error| panic!("{}: {error}", next.display()))
        {
            let path = entry.expect("an entry of a folder").path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let name = path
                    .strip_prefix(folder)
                    .expect("a file below it")
                    .display()
                    .to_string();
                found.insert(name, fs::read_to_string(&path).expect("a readable file"));
            }
        }
    }
    found
}

/// A folder of this repository.
pub(crate) fn repository(folder: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(folder)
}

/// True for what only tests compile: `#[test]`, `#[cfg(test)]`, `#[cfg(any(test, ...))]`.
pub(crate) fn is_test_only(attributes: &[syn::Attribute]) -> bool {
    attributes.iter().any(|attribute| match &attribute.meta {
        syn::Meta::Path(path) => path
            .segments
            .last()
            .is_some_and(|last| last.ident == "test"),
        syn::Meta::List(list) if list.path.is_ident("cfg") => {
            let words = list.tokens.to_string();
            let words: Vec<&str> = words
                .split(|c: char| !c.is_alphanumeric() && c != '_')
                .filter(|word| !word.is_empty())
                .collect();
            words.contains(&"test") && words[0] != "not"
        }
        _ => false,
    })
}

pub(crate) fn attributes(item: &Item) -> &[syn::Attribute] {
    match item {
        Item::Const(item) => &item.attrs,
        Item::Enum(item) => &item.attrs,
        Item::ExternCrate(item) => &item.attrs,
        Item::Fn(item) => &item.attrs,
        Item::ForeignMod(item) => &item.attrs,
        Item::Impl(item) => &item.attrs,
        Item::Macro(item) => &item.attrs,
        Item::Mod(item) => &item.attrs,
        Item::Static(item) => &item.attrs,
        Item::Struct(item) => &item.attrs,
        Item::Trait(item) => &item.attrs,
        Item::TraitAlias(item) => &item.attrs,
        Item::Type(item) => &item.attrs,
        Item::Union(item) => &item.attrs,
        Item::Use(item) => &item.attrs,
        _ => &[],
    }
}

fn name_of(item: &Item) -> Option<String> {
    let name = match item {
        Item::Const(item) => &item.ident,
        Item::Enum(item) => &item.ident,
        Item::Fn(item) => &item.sig.ident,
        Item::Macro(item) => item.ident.as_ref()?,
        Item::Static(item) => &item.ident,
        Item::Struct(item) => &item.ident,
        Item::Trait(item) => &item.ident,
        Item::Type(item) => &item.ident,
        Item::Union(item) => &item.ident,
        _ => return None,
    };
    Some(name.to_string())
}

fn module_of(item: &Item) -> Option<(String, Option<Vec<Item>>)> {
    let Item::Mod(item) = item else { return None };
    let content = item.content.as_ref().map(|(_, items)| items.clone());
    Some((item.ident.to_string(), content))
}

/// The imports of a module, those inside its functions among them, but not those of its inner
/// modules.
#[derive(Default)]
struct Imports(Vec<Import>);

impl<'ast> Visit<'ast> for Imports {
    fn visit_item_use(&mut self, item: &'ast syn::ItemUse) {
        self.0.extend(leaves(item));
    }

    fn visit_item_mod(&mut self, _: &'ast syn::ItemMod) {}
}

/// Every leaf of a `use`, with its whole path.
pub(crate) fn leaves(item: &syn::ItemUse) -> Vec<Import> {
    let mut found = Vec::new();
    let start = item
        .leading_colon
        .map(|_| String::new())
        .into_iter()
        .collect();
    collect(&item.tree, start, &mut found);
    found
}

fn collect(tree: &UseTree, before: Vec<String>, found: &mut Vec<Import>) {
    let with = |name: &syn::Ident| {
        before
            .iter()
            .cloned()
            .chain([name.to_string()])
            .collect::<Vec<_>>()
    };
    match tree {
        UseTree::Path(path) => collect(&path.tree, with(&path.ident), found),
        UseTree::Name(name) if name.ident == "self" => {
            found.push(Import {
                name: before.last().cloned().unwrap_or_default(),
                path: before,
            });
        }
        UseTree::Name(name) => found.push(Import {
            path: with(&name.ident),
            name: name.ident.to_string(),
        }),
        UseTree::Rename(rename) => {
            let path = if rename.ident == "self" {
                before
            } else {
                with(&rename.ident)
            };
            found.push(Import {
                path,
                name: rename.rename.to_string(),
            });
        }
        UseTree::Glob(_) => found.push(Import {
            path: before,
            name: "*".to_owned(),
        }),
        UseTree::Group(group) => group
            .items
            .iter()
            .for_each(|tree| collect(tree, before.clone(), found)),
    }
}
