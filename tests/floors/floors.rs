//! The floors of the house: which folder may use which, read from the paths in the sources; and the small
//! rules that every file keeps.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use groundswell_testing::places::root;

/// Most lines of a source file.
const MAX_LINES: usize = 800;

/// Most columns of a line of a comment.
const MAX_COLUMNS: usize = 110;

/// Each room with the rooms it may use besides itself. A module belongs to the room with the longest matching
/// path.
const FLOORS: &[(&str, &[&str])] = &[
    ("narrow_float", &[]),
    ("float16", &["narrow_float"]),
    ("float8", &["float16", "narrow_float"]),
    ("small_float", &["float16", "ir::types", "narrow_float"]),
    ("index", &[]),
    ("spelling", &[]),
    ("workers", &[]),
    ("ir::expr", &["index"]),
    ("ir::types", &[]),
    ("ir::lanes", &[]),
    ("ir::grid_symbol", &["ir::expr"]),
    ("ir::layout", &["ir::lanes", "ir::types"]),
    (
        "ir",
        &[
            "float16",
            "float8",
            "ir::expr",
            "ir::grid_symbol",
            "ir::lanes",
            "ir::types",
            "ir::layout",
            "small_float",
            "spelling",
            "workers",
        ],
    ),
    ("codegen::arch", &[]),
    ("codegen::isa", &["codegen::arch", "float16"]),
    ("codegen::rules", &["codegen::isa"]),
    ("codegen::target", &["codegen::arch", "codegen::isa", "ir::lanes", "ir::types", "ir::layout"]),
    ("codegen::object", &["codegen::isa", "codegen::target"]),
    ("codegen::assembler", &["codegen::isa", "codegen::object", "codegen::target"]),
    ("codegen::issue", &["codegen::target"]),
    (
        "passes",
        &[
            "index",
            "ir",
            "ir::expr",
            "ir::types",
            "ir::layout",
            "codegen::issue",
            "codegen::target",
            "small_float",
            "spelling",
        ],
    ),
    // It runs any code object, so it knows nothing about how ours are made.
    (
        "runtime::sim",
        &["codegen::isa", "codegen::object", "codegen::rules", "codegen::target", "float16", "workers"],
    ),
    ("codegen::machine", &["codegen::isa", "codegen::issue", "codegen::rules", "codegen::target", "index"]),
    (
        "codegen::lower",
        &[
            "ir",
            "ir::expr",
            "ir::types",
            "ir::layout",
            "passes",
            "codegen::isa",
            "codegen::machine",
            "codegen::target",
            "float16",
            "float8",
            "index",
        ],
    ),
    (
        "runtime",
        &[
            "ir",
            "ir::expr",
            "ir::types",
            "ir::layout",
            "passes",
            "codegen::isa",
            "codegen::machine",
            "codegen::lower",
            "codegen::object",
            "codegen::target",
            "float16",
            "float8",
            "ir::grid_symbol",
            "runtime::sim",
            "small_float",
            "spelling",
        ],
    ),
    ("choice", &["codegen::target", "ir::layout", "ir::types", "passes"]),
    // Ready kernels are written as any author writes them, with tiles that are chosen by shape; the other
    // crates of the program see only what is public anyway.
    ("kernels", &["choice", "prelude"]),
    // As they are, with rows cut as ready kernels cut them.
    ("tasks", &["kernels", "prelude"]),
    ("tuning", &["codegen::target", "ir", "ir::expr", "passes", "runtime", "runtime::sim", "workers"]),
    // Ready templates are written as any author writes them.
    ("templates", &["codegen::target", "kernels", "prelude", "tuning"]),
    ("cli", &[]),
    ("prelude", &[]),
];

/// Files that stand above all rooms: they say what of them is public.
const PUBLIC_FACE: [&str; 4] = ["lib.rs", "face.rs", "internals.rs", "prelude.rs"];

/// Rooms inside of a room: each with the rooms beside it that it may use. What else it uses is the business
/// of [`FLOORS`].
const INNER_FLOORS: &[(&str, &[&str])] = &[
    ("codegen::lower::lowered", &[]),
    ("codegen::lower::preload", &[]),
    ("codegen::lower::emit", &["codegen::lower::lowered"]),
    ("codegen::lower::arithmetic", &["codegen::lower::emit"]),
    ("codegen::lower::values", &["codegen::lower::arithmetic", "codegen::lower::emit"]),
    (
        "codegen::lower::addresses",
        &[
            "codegen::lower::arithmetic",
            "codegen::lower::emit",
            "codegen::lower::lowered",
            "codegen::lower::values",
        ],
    ),
    (
        "codegen::lower::operations",
        &[
            "codegen::lower::addresses",
            "codegen::lower::arithmetic",
            "codegen::lower::emit",
            "codegen::lower::values",
        ],
    ),
    (
        "codegen::lower::control",
        &[
            "codegen::lower::addresses",
            "codegen::lower::emit",
            "codegen::lower::lowered",
            "codegen::lower::operations",
            "codegen::lower::preload",
            "codegen::lower::values",
        ],
    ),
    ("passes::options", &[]),
    ("passes::facts", &["passes::options"]),
    ("passes::analysis", &["passes::facts", "passes::options"]),
    ("passes::layout", &["passes::analysis", "passes::facts", "passes::options"]),
    ("passes::loops", &["passes::analysis", "passes::facts", "passes::layout", "passes::options"]),
    (
        "passes::lds",
        &["passes::analysis", "passes::facts", "passes::layout", "passes::loops", "passes::options"],
    ),
    ("passes::rewriting", &["passes::analysis", "passes::facts", "passes::options"]),
    ("passes::schedule::graph", &["passes::facts", "passes::lds", "passes::loops", "passes::options"]),
    (
        "passes::schedule::apply",
        &["passes::facts", "passes::loops", "passes::options", "passes::schedule::graph"],
    ),
    (
        "passes::schedule::judge",
        &[
            "passes::facts",
            "passes::loops",
            "passes::options",
            "passes::schedule::apply",
            "passes::schedule::graph",
        ],
    ),
    (
        "passes::schedule::author",
        &[
            "passes::facts",
            "passes::loops",
            "passes::options",
            "passes::schedule::apply",
            "passes::schedule::graph",
            "passes::schedule::judge",
        ],
    ),
    (
        "passes::schedule::estimate",
        &[
            "passes::facts",
            "passes::options",
            "passes::schedule::apply",
            "passes::schedule::author",
            "passes::schedule::graph",
        ],
    ),
    (
        "passes::schedule::strategies",
        &[
            "passes::facts",
            "passes::options",
            "passes::schedule::apply",
            "passes::schedule::author",
            "passes::schedule::estimate",
            "passes::schedule::graph",
            "passes::schedule::judge",
        ],
    ),
    (
        "passes::schedule::show",
        &[
            "passes::facts",
            "passes::loops",
            "passes::options",
            "passes::schedule::apply",
            "passes::schedule::author",
            "passes::schedule::graph",
            "passes::schedule::judge",
            "passes::schedule::strategies",
        ],
    ),
];

pub fn sources() -> Vec<PathBuf> {
    let out = sources_in(&root().join("src"));
    assert!(out.len() > 50, "the sources are not where they were");
    out
}

/// The files of Rust in a folder, in the order of their names.
pub fn sources_in(folder: &Path) -> Vec<PathBuf> {
    fn walk(folder: &Path, out: &mut Vec<PathBuf>) {
        let mut entries: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
        entries.sort();
        for path in entries {
            if path.is_dir() {
                walk(&path, out);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                out.push(path);
            }
        }
    }
    let mut out = Vec::new();
    walk(folder, &mut out);
    out
}

/// Path below `src`.
pub fn name(path: &Path) -> String {
    let root = root().join("src");
    path.strip_prefix(root).unwrap().to_string_lossy().into_owned()
}

/// Module path of a file: `ir/expr/mod.rs` is `ir::expr`.
fn module(file: &str) -> Vec<String> {
    let path = file.strip_suffix(".rs").unwrap_or(file);
    let mut parts: Vec<String> = path.split('/').map(str::to_owned).collect();
    if matches!(parts.last().map(String::as_str), Some("mod" | "lib" | "main")) {
        parts.pop();
    }
    parts
}

fn room(path: &[String]) -> Option<&'static str> {
    room_of(FLOORS, path)
}

/// The room of a table with the longest path that a path begins with.
fn room_of(floors: &'static [(&str, &[&str])], path: &[String]) -> Option<&'static str> {
    let path = path.join("::");
    let inside =
        |room: &str| path == room || path.strip_prefix(room).is_some_and(|rest| rest.starts_with("::"));
    floors.iter().map(|floor| floor.0).filter(|room| inside(room)).max_by_key(|room| room.len())
}

/// Words and signs of Rust source: identifiers, `::`, and single characters. Comments, strings and characters
/// are left out.
fn tokens(source: &str) -> Vec<(usize, String)> {
    let chars: Vec<char> = source.chars().collect();
    let mut out = Vec::new();
    let (mut at, mut line) = (0, 1);
    let starts = |at: usize, word: &str| word.chars().enumerate().all(|(i, c)| chars.get(at + i) == Some(&c));
    while at < chars.len() {
        let c = chars[at];
        if c == '\n' {
            line += 1;
            at += 1;
        } else if starts(at, "//") {
            while at < chars.len() && chars[at] != '\n' {
                at += 1;
            }
        } else if starts(at, "/*") {
            while at < chars.len() && !starts(at, "*/") {
                line += usize::from(chars[at] == '\n');
                at += 1;
            }
            at += 2;
        } else if c == '"'
            || (c == 'r' && matches!(chars.get(at + 1), Some('"' | '#')) && is_raw_string(&chars[at..]))
        {
            let hashes = chars[at + 1..].iter().take_while(|&&c| c == '#').count();
            let raw = c == 'r';
            at += if raw { 2 + hashes } else { 1 };
            let end: String = format!("\"{}", "#".repeat(if raw { hashes } else { 0 }));
            while at < chars.len() && !starts(at, &end) {
                if chars[at] == '\\' && !raw {
                    line += usize::from(chars.get(at + 1) == Some(&'\n'));
                    at += 1;
                } else {
                    line += usize::from(chars[at] == '\n');
                }
                at += 1;
            }
            at += end.len();
        } else if c == '\'' && (chars.get(at + 1) == Some(&'\\') || chars.get(at + 2) == Some(&'\'')) {
            at += if chars[at + 1] == '\\' { 3 } else { 2 };
            while at < chars.len() && chars[at] != '\'' {
                at += 1;
            }
            at += 1;
        } else if c.is_alphanumeric() || c == '_' {
            let start = at;
            while at < chars.len() && (chars[at].is_alphanumeric() || chars[at] == '_') {
                at += 1;
            }
            out.push((line, chars[start..at].iter().collect()));
        } else if starts(at, "::") {
            out.push((line, "::".to_owned()));
            at += 2;
        } else {
            if !c.is_whitespace() {
                out.push((line, c.to_string()));
            }
            at += 1;
        }
    }
    out
}

fn is_raw_string(chars: &[char]) -> bool {
    let hashes = chars[1..].iter().take_while(|&&c| c == '#').count();
    chars.get(1 + hashes) == Some(&'"')
}

/// All paths of a file that begin with `crate`, `self` or `super`, from the root of the crate, each with its
/// line.
fn paths(file: &str, source: &str) -> Vec<(usize, Vec<String>)> {
    let tokens = tokens(source);
    let word = |at: usize| tokens.get(at).map_or("", |token| token.1.as_str());
    let mut here = module(file);
    // Depth of braces at which each inline module ends.
    let mut modules: Vec<usize> = Vec::new();
    let mut depth = 0;
    let mut out = Vec::new();
    let mut at = 0;
    while at < tokens.len() {
        match word(at) {
            "mod" if word(at + 2) == "{" => {
                here.push(word(at + 1).to_owned());
                modules.push(depth);
                depth += 1;
                at += 3;
                continue;
            }
            "{" => depth += 1,
            "}" => {
                depth -= 1;
                if modules.last() == Some(&depth) {
                    modules.pop();
                    here.pop();
                }
            }
            start @ ("crate" | "self" | "super")
                if word(at + 1) == "::" && (at == 0 || word(at - 1) != "::") =>
            {
                let line = tokens[at].0;
                let mut base = if start == "crate" { Vec::new() } else { here.clone() };
                if start == "super" {
                    base.pop();
                }
                at = tree(&tokens, at + 2, base, line, &mut out);
                continue;
            }
            _ => {}
        }
        at += 1;
    }
    out
}

/// Reads what follows `base::`: a path or a tree of paths in braces. Returns where it ends.
fn tree(
    tokens: &[(usize, String)],
    mut at: usize,
    mut base: Vec<String>,
    line: usize,
    out: &mut Vec<(usize, Vec<String>)>,
) -> usize {
    let word = |at: usize| tokens.get(at).map_or("", |token| token.1.as_str());
    loop {
        match word(at) {
            "{" => {
                at += 1;
                while !matches!(word(at), "}" | "") {
                    at = tree(tokens, at, base.clone(), line, out);
                    if word(at) == "as" {
                        at += 2;
                    }
                    if word(at) == "," {
                        at += 1;
                    }
                }
                return at + 1;
            }
            "super" => drop(base.pop()),
            "self" => {}
            "*" => {
                out.push((line, base));
                return at + 1;
            }
            next if next.chars().all(|c| c.is_alphanumeric() || c == '_') => base.push(next.to_owned()),
            // Generic arguments: the path is at its end.
            _ => {
                out.push((line, base));
                return at;
            }
        }
        at += 1;
        if word(at) != "::" {
            out.push((line, base));
            return at;
        }
        at += 1;
    }
}

#[test]
fn paths_are_read() {
    let source = "//! crate::ir in a comment\nuse crate::{codegen::{isa, target::Target as T}, ir::*};\n\
                  fn f<'a>(x: &'a str) -> char { let _ = \"crate::passes\"; super::g::<u8>(x); '\"' }\n\
                  mod tests { use super::*; use super::super::h; }\nuse self::inner::Thing;\n";
    let found: Vec<_> =
        paths("codegen/lower/lds.rs", source).into_iter().map(|(l, p)| (l, p.join("::"))).collect();
    let expected = [
        (2, "codegen::isa"),
        (2, "codegen::target::Target"),
        (2, "ir"),
        (3, "codegen::lower::g"),
        (4, "codegen::lower::lds"),
        (4, "codegen::lower::h"),
        (5, "codegen::lower::lds::inner::Thing"),
    ];
    assert_eq!(found, expected.map(|(line, path)| (line, path.to_owned())));
}

#[test]
fn every_room_uses_only_rooms_below_it() {
    let mut faults = Vec::new();
    for path in sources() {
        let file = name(&path);
        if is_test(&file) || PUBLIC_FACE.contains(&file.as_str()) {
            continue;
        }
        let Some(own) = room(&module(&file)) else {
            assert_eq!(file, "codegen/mod.rs", "{file} is in no room: add it to the table");
            continue;
        };
        let allowed = FLOORS.iter().find(|floor| floor.0 == own).map_or(&[][..], |floor| floor.1);
        for (line, used) in paths(&file, &fs::read_to_string(&path).unwrap()) {
            let fine = match room(&used) {
                Some(room) => room == own || allowed.contains(&room),
                // `pub(in crate::codegen)` names no room.
                None => used == ["codegen"],
            };
            if !fine {
                faults.push(format!("src/{file}:{line}: {own} may not use {}", used.join("::")));
            }
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

/// The files of a crate that are no tests, by their paths in its folder, with their text.
pub fn written_files(folder: &str) -> Vec<(String, String)> {
    let folder = root().join(folder);
    let below = |path: &Path| path.strip_prefix(&folder).unwrap().to_string_lossy().into_owned();
    let files =
        sources_in(&folder).into_iter().map(|path| (below(&path), fs::read_to_string(&path).unwrap()));
    files.filter(|(file, _)| !is_test(file)).collect()
}

/// Tests may look at everything.
pub fn is_test(file: &str) -> bool {
    file.ends_with("/tests.rs") || file.contains("/tests/")
}

/// True for rooms in one and the same room.
fn beside(a: &str, b: &str) -> bool {
    a.split("::").next() == b.split("::").next()
}

#[test]
fn every_inner_room_uses_only_rooms_below_it() {
    let mut faults = Vec::new();
    for path in sources() {
        let file = name(&path);
        let Some(own) = room_of(INNER_FLOORS, &module(&file)).filter(|_| !is_test(&file)) else { continue };
        let allowed = INNER_FLOORS.iter().find(|floor| floor.0 == own).map_or(&[][..], |floor| floor.1);
        // The folder of a room is above everything in it.
        let folder = own.rsplit_once("::").map_or("", |(folder, _)| folder);
        for (line, used) in paths(&file, &fs::read_to_string(&path).unwrap()) {
            let fine = match room_of(INNER_FLOORS, &used) {
                // What stands elsewhere is the business of the outer table.
                Some(room) => room == own || allowed.contains(&room) || !beside(room, own),
                None => folder == "passes" || !used.join("::").starts_with(folder),
            };
            if !fine {
                faults.push(format!("src/{file}:{line}: {own} may not use {}", used.join("::")));
            }
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn the_tables_have_no_circles() {
    has_no_circles(FLOORS);
    has_no_circles(INNER_FLOORS);
}

/// No room is below itself, however many rooms lie between.
fn has_no_circles(floors: &[(&str, &[&str])]) {
    let below = |room: &str| floors.iter().find(|floor| floor.0 == room).map(|floor| floor.1);
    for (room, allowed) in floors {
        let mut reached = allowed.to_vec();
        let mut at = 0;
        while let Some(used) = reached.get(at).copied() {
            assert_ne!(used, *room, "{room} uses itself by way of {reached:?}");
            let lower = below(used).unwrap_or_else(|| panic!("{used} is no room"));
            let new: Vec<_> = lower.iter().copied().filter(|lower| !reached.contains(lower)).collect();
            reached.extend(new);
            at += 1;
        }
    }
}

/// The files that stand for their folders.
const HEADS: [&str; 3] = ["mod.rs", "lib.rs", "main.rs"];

/// A folder, modules in it that use each other in a circle, and the reason why they may.
type Circle = (&'static str, &'static [&'static str], &'static str);

/// Circles of imports inside folders that stay.
const CIRCLES: &[Circle] = &[
    (
        "ir",
        &["assemble", "schedule", "text"],
        "kernels and schedules are identified by the text that they print as, and the parser of that text makes \
         kernels and schedules",
    ),
    (
        "hip/src",
        &[
            "capture",
            "contexts",
            "copies",
            "graph_runs",
            "graphs",
            "heap",
            "host_calls",
            "launch",
            "memory",
            "modules",
            "occupancy",
            "operations",
            "pools",
            "registration",
            "report",
            "reservations",
            "runtime",
            "streams",
        ],
        "the state of a process holds what each of them keeps, and each of them finds its own in that state",
    ),
    (
        "runtime::sim",
        &["execute", "program", "wave"],
        "a decoded step names the fast path that executes it, that path takes the step and the wave, and a wave \
         reads the operands of steps",
    ),
];

/// What comes before the tests inside a file.
pub fn without_tests(source: &str) -> &str {
    source.split_once("#[cfg(test)]\nmod tests {").map_or(source, |(before, _)| before)
}

/// What the file of a folder imports, each with the module in the folder that it comes from: so `super::Name`
/// in that folder is traced to the file that defines the name.
fn imported(file: &str, source: &str) -> BTreeMap<String, String> {
    let (tokens, here) = (tokens(source), module(file));
    let mut found = Vec::new();
    for (at, (line, word)) in tokens.iter().enumerate() {
        if word == "use" {
            tree(&tokens, at + 1, here.clone(), *line, &mut found);
        }
    }
    let paths = found.into_iter().map(|(_, path)| path);
    let from_here = paths.filter(|path| path.len() > here.len() + 1 && path.starts_with(&here));
    from_here.map(|path| (path[path.len() - 1].clone(), path[here.len()].clone())).collect()
}

/// The modules that use each other in a circle, for each folder from `outermost` folders down, with one use
/// for each pair of them.
fn circles(files: &[(String, String)], outermost: usize) -> Vec<(String, Vec<String>, Vec<String>)> {
    let mut folders = BTreeMap::new();
    for (file, source) in files {
        if HEADS.iter().any(|head| file == head || file.ends_with(&format!("/{head}"))) {
            folders.insert(module(file).join("::"), imported(file, source));
        }
    }
    let modules: BTreeSet<String> = files
        .iter()
        .map(|(file, _)| module(file))
        .flat_map(|path| (1..=path.len()).map(move |depth| path[..depth].join("::")))
        .collect();
    // By folder and by pair of modules in it, one place where the first uses the second.
    let mut uses: BTreeMap<&str, BTreeMap<(String, String), String>> = BTreeMap::new();
    for (file, source) in files {
        let own = module(file);
        for (line, path) in paths(file, without_tests(source)) {
            for depth in outermost..own.len().min(path.len()) {
                let Some((folder, imported)) = folders.get_key_value(&own[..depth].join("::")) else {
                    continue;
                };
                if own[..depth] != path[..depth] {
                    continue;
                }
                let target = imported.get(&path[depth]).unwrap_or(&path[depth]);
                let is_module = modules.contains(format!("{folder}::{target}").trim_start_matches("::"));
                if is_module && *target != own[depth] {
                    let place = format!("src/{file}:{line} uses {}", path.join("::"));
                    uses.entry(folder)
                        .or_default()
                        .entry((own[depth].clone(), target.clone()))
                        .or_insert(place);
                }
            }
        }
    }
    let mut out = Vec::new();
    for (folder, uses) in uses {
        let reach = |from: &str| {
            let mut reached = BTreeSet::new();
            let mut open = vec![from.to_owned()];
            while let Some(next) = open.pop() {
                let targets = uses.keys().filter(|pair| pair.0 == next).map(|pair| pair.1.clone());
                open.extend(targets.filter(|target| reached.insert(target.clone())));
            }
            reached
        };
        let users: BTreeSet<&String> = uses.keys().map(|pair| &pair.0).collect();
        let reached: BTreeMap<&String, _> = users.iter().map(|from| (*from, reach(from))).collect();
        let mut done = BTreeSet::new();
        for (&first, all) in &reached {
            let is_back = |other: &&String| reached.get(*other).is_some_and(|back| back.contains(first));
            let circle: Vec<String> = all.iter().filter(is_back).cloned().collect();
            if !all.contains(first) || !done.insert(circle.clone()) {
                continue;
            }
            let inside = uses.iter().filter(|(pair, _)| circle.contains(&pair.0) && circle.contains(&pair.1));
            let places = inside.map(|(_, place)| place.clone()).collect();
            out.push((folder.to_owned(), circle, places));
        }
    }
    out
}

#[test]
fn circles_are_found() {
    let files = |a: &str, b: &str| {
        let file = |name: &str, text: &str| (format!("ir/{name}"), text.to_owned());
        vec![
            file("mod.rs", "mod a;\nmod b;\nmod c;\npub use c::{Third, other as renamed};\nuse b::Second;"),
            file("a.rs", a),
            file("b.rs", b),
            file("c.rs", "use super::a::First;"),
            file("d/mod.rs", "use super::c::Third;\nmod inner;"),
            file("d/inner.rs", "fn f(_: crate::ir::b::Second) {}"),
        ]
    };
    let names = |a, b| circles(&files(a, b), 1).into_iter().map(|(_, circle, _)| circle).collect::<Vec<_>>();
    assert_eq!(names("use std::fmt;", "use super::a;"), Vec::<Vec<String>>::new());
    assert_eq!(names("use super::b::Second;", "use crate::ir::{a::First};"), [["a", "b"]]);
    assert_eq!(names("fn f(_: super::Second) {}", "use super::Third;"), [["a", "b", "c"]]);
    assert_eq!(names("use super::d::inner;", ""), [["a", "c", "d"]]);
    // In a crate of its own, whose head is `lib.rs`, the outermost folder counts as well.
    let head =
        [("lib.rs", "mod a;\nmod b;"), ("a.rs", "use crate::b::Second;"), ("b.rs", "use super::a::First;")];
    let crate_files = head.map(|(file, text)| (file.to_owned(), text.to_owned()));
    assert_eq!(circles(&crate_files, 0).len(), 1);
    assert!(circles(&crate_files, 1).is_empty());
    let in_tests = "struct First;\n#[cfg(test)]\nmod tests {\n    use super::super::b::Second;\n}";
    assert_eq!(names(in_tests, "use super::a;"), Vec::<Vec<String>>::new());
}

/// The crates that are made of files beside the library: their folders.
const OTHER_CRATES: [&str; 3] = ["src/cli", "hip/src", "c/src"];

/// Modules of one folder use each other in one direction. [`FLOORS`] holds the same for the root of the
/// library, by smaller rooms.
#[test]
fn no_folder_has_circles_of_imports() {
    let mut found = circles(&written_files("src"), 1);
    for folder in OTHER_CRATES {
        let files = written_files(folder);
        assert!(files.len() > 5, "{folder} is not where it was");
        found.extend(
            circles(&files, 0).into_iter().map(|(_, circle, places)| (folder.to_owned(), circle, places)),
        );
    }
    let is_allowed = |folder: &str, circle: &[String]| {
        CIRCLES.iter().any(|(allowed, modules, _)| folder == *allowed && circle == *modules)
    };
    let faults: Vec<_> = found
        .iter()
        .filter(|(folder, circle, _)| !is_allowed(folder, circle))
        .map(|(folder, circle, places)| format!("{folder}: {}\n  {}", circle.join(", "), places.join("\n  ")))
        .collect();
    assert!(faults.is_empty(), "modules that use each other in a circle:\n{}", faults.join("\n"));
    for (folder, modules, _) in CIRCLES {
        let stays = found.iter().any(|(at, circle, _)| at == folder && circle == modules);
        assert!(stays, "{folder}: {} is no circle any more: remove it from the list", modules.join(", "));
    }
}

#[test]
fn files_are_small_and_say_what_they_are_for() {
    let mut faults = Vec::new();
    for path in sources() {
        let source = fs::read_to_string(&path).unwrap();
        let lines = source.lines().count();
        if lines > MAX_LINES {
            faults.push(format!("src/{} has {lines} lines, more than {MAX_LINES}", name(&path)));
        }
        if !source.starts_with("//! ") {
            faults.push(format!("src/{} does not say at its head what it is for", name(&path)));
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn every_folder_has_a_module_file_with_a_head() {
    for path in sources() {
        let folder = path.parent().unwrap();
        if folder.ends_with("src") || folder.ends_with("src/cli") {
            continue;
        }
        let module = folder.join("mod.rs");
        let source = fs::read_to_string(&module).unwrap_or_else(|e| panic!("{}: {e}", module.display()));
        assert!(source.starts_with("//! "), "{} has no head", module.display());
    }
}

/// The types that a source defines, each with its line: neither types inside of tests nor those that a trait
/// asks for.
fn types(source: &str) -> Vec<(usize, String)> {
    let tokens = tokens(without_tests(source));
    let (mut depth, mut found) = (0, Vec::new());
    // Depth of braces at which each inline module ends.
    let mut modules: Vec<usize> = Vec::new();
    for (at, (line, word)) in tokens.iter().enumerate() {
        let next = tokens.get(at + 1).map_or("", |token| token.1.as_str());
        let is_type = match word.as_str() {
            "struct" | "enum" | "trait" => true,
            "type" => depth == modules.len(),
            _ => false,
        };
        if is_type && next.starts_with(char::is_uppercase) {
            found.push((*line, next.to_owned()));
        }
        match word.as_str() {
            "mod" if tokens.get(at + 2).is_some_and(|token| token.1 == "{") => modules.push(depth),
            "{" => depth += 1,
            "}" => {
                depth -= 1;
                modules.pop_if(|module| *module == depth);
            }
            _ => {}
        }
    }
    found
}

#[test]
fn types_are_read() {
    let source = "pub struct A;\nmod inner {\n    pub(super) type B = u32;\n    enum C { Struct }\n}\ntrait D { type No; }\ntype Last = A;\n\
                  impl D for A {\n    type No = u8;\n}\nmacro_rules! m { () => { struct E; struct $name; } }\n\
                  #[cfg(test)]\nmod tests {\n    struct F;\n}\n";
    let expected = [(1, "A"), (3, "B"), (4, "C"), (6, "D"), (7, "Last"), (11, "E")];
    assert_eq!(types(source), expected.map(|(line, name)| (line, name.to_owned())));
}

/// A reader who meets a name should not have to look at the imports to know which type it is.
#[test]
fn every_type_has_a_name_of_its_own() {
    let mut places: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for path in sources() {
        let file = name(&path);
        if is_test(&file) {
            continue;
        }
        for (line, found) in types(&fs::read_to_string(&path).unwrap()) {
            places.entry(found).or_default().push(format!("src/{file}:{line}"));
        }
    }
    assert!(places.len() > 500, "the types are not found");
    let shared = places.iter().filter(|(_, places)| places.len() > 1);
    let faults: Vec<_> = shared.map(|(name, places)| format!("{name}: {}", places.join(", "))).collect();
    assert!(faults.is_empty(), "types that share a name:\n{}", faults.join("\n"));
}

/// Code is broken by rustfmt; comments, with the tables and examples in them, are not.
#[test]
fn comments_end_at_110_columns() {
    let root = root();
    let folders = ["src", "tests", "benches", "examples", "fuzz/fuzz_targets"];
    let mut faults = Vec::new();
    for path in folders.iter().flat_map(|folder| sources_in(&root.join(folder))) {
        for (at, line) in fs::read_to_string(&path).unwrap().lines().enumerate() {
            let columns = line.chars().count();
            if line.trim_start().starts_with("//") && columns > MAX_COLUMNS {
                let file = path.strip_prefix(root).unwrap().display();
                faults.push(format!("{file}:{} has {columns} columns, more than {MAX_COLUMNS}", at + 1));
            }
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}
