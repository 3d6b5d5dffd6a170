//! What makes the source hard to read, counted: long functions, long lists of parameters and fields, what is
//! public, reads of the world in passes, functions that list operations, files of a room that call each other
//! in a circle, and lines that stand in two places. Each figure has a ceiling that only falls: whoever
//! gets below it writes the new figure down.

use std::collections::{BTreeMap, BTreeSet};

use syn::spanned::Spanned;
use syn::visit::{self, Visit};

use crate::floors::{is_test, name, sources, without_tests, written_files};

/// A function is long that has more lines.
const LONG: usize = 60;
/// More parameters than these are many, apart from `self`.
const PARAMETERS: usize = 6;
/// More fields than these are many.
const FIELDS: usize = 12;
/// A function lists the operations if it names so many of them.
const OPERATIONS: usize = 16;
/// So many lines that stand elsewhere in the same order are a run.
const RUN: usize = 10;

/// The figures and their ceilings.
const CEILINGS: [(&str, usize); 8] = [
    ("functions of more than 60 lines", 20),
    ("functions with more than 6 parameters", 2),
    ("structs with more than 12 fields", 17),
    ("public items", 1816),
    ("reads of the world in passes", 72),
    ("functions that name 16 operations or more", 0),
    ("files in circles of calls", 0),
    ("lines in runs of 10 that stand in two places", 0),
];

/// What one file brings to the figures.
#[derive(Default)]
struct Census {
    file: String,
    long: Vec<String>,
    parameters: Vec<String>,
    fields: Vec<String>,
    public: usize,
    world_reads: usize,
    operation_lists: Vec<String>,
    /// Methods that the file defines, and those that it calls on `self`.
    defined: BTreeSet<String>,
    called: BTreeSet<String>,
}

impl Census {
    fn of(file: String, source: &str) -> Census {
        let syntax = syn::parse_file(source).unwrap_or_else(|error| panic!("{file}: {error}"));
        let mut census = Census { file, ..Census::default() };
        census.visit_file(&syntax);
        census
    }

    fn function(&mut self, signature: &syn::Signature, block: &syn::Block) {
        let place = format!("{} {}", self.file, signature.ident);
        let lines = block.span().end().line + 1 - signature.span().start().line;
        if lines > LONG {
            self.long.push(format!("{place}: {lines}"));
        }
        let parameters =
            signature.inputs.iter().filter(|input| matches!(input, syn::FnArg::Typed(_))).count();
        if parameters > PARAMETERS {
            self.parameters.push(format!("{place}: {parameters}"));
        }
        let mut named = NamedOperations::default();
        named.visit_block(block);
        if named.0.len() >= OPERATIONS {
            self.operation_lists.push(format!("{place}: {}", named.0.len()));
        }
    }

    fn visible(&mut self, visibility: &syn::Visibility) {
        self.public += usize::from(matches!(visibility, syn::Visibility::Public(_)));
    }
}

fn is_for_tests(attributes: &[syn::Attribute]) -> bool {
    let is_test = |attribute: &syn::Attribute| {
        let of_configuration = attribute.path().is_ident("cfg")
            && attribute.parse_args::<syn::Ident>().is_ok_and(|condition| condition == "test");
        of_configuration || attribute.path().is_ident("test")
    };
    attributes.iter().any(is_test)
}

fn is_named(expression: &syn::Expr, name: &str) -> bool {
    let inner = if let syn::Expr::Reference(reference) = expression { &reference.expr } else { expression };
    matches!(inner, syn::Expr::Path(path) if path.path.is_ident(name))
}

impl<'ast> Visit<'ast> for Census {
    fn visit_item(&mut self, item: &'ast syn::Item) {
        use syn::Item;
        if let Item::Const(syn::ItemConst { vis, .. })
        | Item::Enum(syn::ItemEnum { vis, .. })
        | Item::Fn(syn::ItemFn { vis, .. })
        | Item::Mod(syn::ItemMod { vis, .. })
        | Item::Static(syn::ItemStatic { vis, .. })
        | Item::Struct(syn::ItemStruct { vis, .. })
        | Item::Trait(syn::ItemTrait { vis, .. })
        | Item::Type(syn::ItemType { vis, .. }) = item
        {
            self.visible(vis);
        }
        visit::visit_item(self, item);
    }

    fn visit_item_mod(&mut self, module: &'ast syn::ItemMod) {
        if !is_for_tests(&module.attrs) {
            visit::visit_item_mod(self, module);
        }
    }

    fn visit_item_fn(&mut self, function: &'ast syn::ItemFn) {
        if !is_for_tests(&function.attrs) {
            self.function(&function.sig, &function.block);
            visit::visit_item_fn(self, function);
        }
    }

    fn visit_impl_item_fn(&mut self, function: &'ast syn::ImplItemFn) {
        self.visible(&function.vis);
        self.function(&function.sig, &function.block);
        self.defined.insert(function.sig.ident.to_string());
        visit::visit_impl_item_fn(self, function);
    }

    fn visit_item_struct(&mut self, item: &'ast syn::ItemStruct) {
        if item.fields.len() > FIELDS {
            self.fields.push(format!("{} {}: {}", self.file, item.ident, item.fields.len()));
        }
        visit::visit_item_struct(self, item);
    }

    fn visit_expr_method_call(&mut self, call: &'ast syn::ExprMethodCall) {
        self.world_reads += usize::from(is_named(&call.receiver, "world"));
        if is_named(&call.receiver, "self") {
            self.called.insert(call.method.to_string());
        }
        visit::visit_expr_method_call(self, call);
    }

    fn visit_expr_call(&mut self, call: &'ast syn::ExprCall) {
        let of_nodes = matches!(&*call.func, syn::Expr::Path(path)
            if path.path.segments.len() == 2 && path.path.segments[0].ident == "nodes");
        self.world_reads +=
            usize::from(of_nodes && call.args.first().is_some_and(|argument| is_named(argument, "world")));
        visit::visit_expr_call(self, call);
    }
}

/// Operations that a function names.
#[derive(Default)]
struct NamedOperations(BTreeSet<String>);

impl<'ast> Visit<'ast> for NamedOperations {
    fn visit_path(&mut self, path: &'ast syn::Path) {
        let names: Vec<String> = path.segments.iter().map(|segment| segment.ident.to_string()).collect();
        if let [.., of, operation] = &names[..]
            && of == "Op"
        {
            self.0.insert(operation.clone());
        }
        visit::visit_path(self, path);
    }
}

/// The files that reach each other by calls of methods on `self`; a method that several files define is
/// nobody's.
fn in_circles(files: &[&Census]) -> Vec<String> {
    let mut owners: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    for (at, file) in files.iter().enumerate() {
        file.defined.iter().for_each(|method| owners.entry(method).or_default().push(at));
    }
    let owner = |method: &String| match owners.get(&**method).map(|owners| &owners[..]) {
        Some(&[owner]) => Some(owner),
        _ => None,
    };
    let reached = |from: usize| {
        let mut seen = BTreeSet::new();
        let mut next = vec![from];
        while let Some(at) = next.pop() {
            let called = files[at].called.iter().filter_map(owner);
            next.extend(called.filter(|&other| seen.insert(other)));
        }
        seen
    };
    let reached: Vec<BTreeSet<usize>> = (0..files.len()).map(reached).collect();
    let returns = |&at: &usize| reached[at].iter().any(|&other| other != at && reached[other].contains(&at));
    (0..files.len()).filter(returns).map(|at| files[at].file.clone()).collect()
}

/// The same inside of each room of the library, and of the crates beside it.
fn circles_of_calls(library: &[Census]) -> Vec<String> {
    let mut rooms: BTreeMap<String, Vec<&Census>> = BTreeMap::new();
    for file in library {
        let folders: Vec<&str> = file.file.split('/').collect();
        let room = folders[..(folders.len() - 1).min(2)].join("/");
        rooms.entry(room).or_default().push(file);
    }
    let others = ["hip/src", "c/src"].map(|folder| {
        let files = written_files(folder).into_iter();
        files.map(|(file, source)| Census::of(format!("{folder}/{file}"), &source)).collect::<Vec<Census>>()
    });
    let others = others.iter().map(|files| files.iter().collect::<Vec<&Census>>());
    rooms.into_values().chain(others).flat_map(|files| in_circles(&files)).collect()
}

/// Lines of code that are in a run which stands elsewhere, too, each with its place.
fn repeated_lines(files: &[(String, String)]) -> Vec<String> {
    let mut places: BTreeMap<Vec<&str>, Vec<(usize, usize)>> = BTreeMap::new();
    let lines: Vec<Vec<(usize, &str)>> = files.iter().map(|(_, source)| code_lines(source)).collect();
    for (file, lines) in lines.iter().enumerate() {
        for (at, run) in lines.windows(RUN).enumerate() {
            places.entry(run.iter().map(|line| line.1).collect()).or_default().push((file, at));
        }
    }
    let mut repeated: BTreeSet<(usize, usize)> = BTreeSet::new();
    for starts in places.values().filter(|starts| starts.len() > 1) {
        for &(file, at) in starts {
            repeated.extend((at..at + RUN).map(|line| (file, lines[file][line].0)));
        }
    }
    repeated.into_iter().map(|(file, line)| format!("{}:{line}", files[file].0)).collect()
}

/// Lines that say something, with their numbers from 1: neither comments nor imports nor brackets alone.
fn code_lines(source: &str) -> Vec<(usize, &str)> {
    let says = |line: &str| {
        line.chars().any(char::is_alphanumeric) && !line.starts_with("//") && !line.starts_with("use ")
    };
    let numbered = source.lines().enumerate().map(|(at, line)| (at + 1, line.trim()));
    numbered.filter(|(_, line)| says(line)).collect()
}

#[test]
fn circles_and_repeated_lines_are_found() {
    let census = |name: &str, source: &str| Census::of(name.to_owned(), source);
    let a = census("a", "impl A { pub fn one(&self) { self.two() } }");
    let b = census("b", "impl A { fn two(&self) { self.one(); self.three() } }");
    let c = census("c", "impl A { fn three(&self) {} }");
    assert_eq!(in_circles(&[&a, &b, &c]), ["a", "b"]);
    assert_eq!((a.public, b.public), (1, 0));
    let run: String = (0..RUN).map(|line| format!("let x{line} = {line};\n")).collect();
    let files = [("a".to_owned(), format!("fn a() {{\n{run}}}")), ("b".to_owned(), run.clone())];
    assert_eq!(repeated_lines(&files).len(), 2 * RUN);
    let reads =
        census("passes", "fn f(world: &World) { world.get::<A>(b); nodes::op(world, a); nodes::op(x, a) }");
    assert_eq!(reads.world_reads, 2);
}

#[test]
fn figures_only_fall() {
    let files: Vec<(String, String)> = sources()
        .iter()
        .map(|path| (name(path), std::fs::read_to_string(path).expect("a source file")))
        .filter(|(name, _)| !is_test(name))
        .map(|(name, source)| (name, without_tests(&source).to_owned()))
        .collect();
    let all: Vec<Census> = files.iter().map(|(name, source)| Census::of(name.clone(), source)).collect();
    let lists = |of: fn(&Census) -> &Vec<String>| all.iter().flat_map(of).cloned().collect::<Vec<String>>();
    let passes = || all.iter().filter(|census| census.file.contains("passes/"));
    let world_reads = passes().filter(|census| census.world_reads > 0);
    let public = all.iter().filter(|census| census.public > 0);
    let found: [(usize, Vec<String>); 8] = [
        counted(lists(|census| &census.long)),
        counted(lists(|census| &census.parameters)),
        counted(lists(|census| &census.fields)),
        (
            all.iter().map(|census| census.public).sum(),
            public.map(|census| format!("{}: {}", census.file, census.public)).collect(),
        ),
        (
            passes().map(|census| census.world_reads).sum(),
            world_reads.map(|census| format!("{}: {}", census.file, census.world_reads)).collect(),
        ),
        counted(lists(|census| &census.operation_lists)),
        counted(circles_of_calls(&all)),
        counted(repeated_lines(&files)),
    ];
    let mut wrong = String::new();
    for ((what, ceiling), (count, places)) in CEILINGS.iter().zip(found) {
        if count > *ceiling {
            wrong += &format!("{what}: {count}, at most {ceiling} are allowed\n  {}\n", places.join("\n  "));
        } else if count < *ceiling {
            wrong += &format!("{what}: {count}, so the ceiling of {ceiling} falls to that\n");
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}

fn counted(places: Vec<String>) -> (usize, Vec<String>) {
    (places.len(), places)
}
