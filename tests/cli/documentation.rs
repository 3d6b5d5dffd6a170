//! What rustdoc cannot know about the documentation.

use crate::places::Directory;
use crate::program::{command, text};

/// The prelude's documentation has a line for every name in it.
#[test]
fn the_table_of_the_prelude_is_complete() {
    let prelude = include_str!("../../src/prelude.rs");
    let table = prelude.split_once("pub use").expect("it has items").0;
    let mut names = Vec::new();
    for statement in prelude.split(';').filter_map(|statement| statement.split_once("pub use ")) {
        let (path, list) = match statement.1.split_once('{') {
            Some((path, list)) => (path, list.trim_end().trim_end_matches('}')),
            None => ("", statement.1),
        };
        for item in list.split(',').map(str::trim).filter(|item| !item.is_empty()) {
            let last = if item == "self" { path.trim_end_matches("::") } else { item };
            names.push(last.rsplit("::").next().unwrap_or(last).to_owned());
        }
    }
    assert!(names.len() > 50 && names.iter().any(|name| name == "DType"), "{names:?}");
    let missing: Vec<_> = names.iter().filter(|name| !table.contains(&format!("[`{name}`]"))).collect();
    assert!(missing.is_empty(), "no line about {missing:?}");
}

/// The pages that people read outside of rustdoc.
const PAGES: [&str; 11] = [
    "README.md",
    "docs/attention.md",
    "docs/hip.md",
    "docs/how-do-i.md",
    "docs/kernels.md",
    "docs/language.md",
    "docs/numerics.md",
    "docs/program.md",
    "docs/schedules.md",
    "docs/time-model.md",
    "docs/trust.md",
];

/// Blocks of code of a page: what stands in the line before, the language, and the lines.
fn blocks(page: &str) -> Vec<(&str, &str, Vec<&str>)> {
    let mut blocks = Vec::new();
    let mut lines = page.lines();
    let mut before = "";
    while let Some(line) = lines.next() {
        if let Some(language) = line.strip_prefix("```") {
            blocks.push((before, language, lines.by_ref().take_while(|line| *line != "```").collect()));
        }
        before = line;
    }
    blocks
}

/// GitHub shows the lines that rustdoc hides.
#[test]
fn pages_show_no_line_that_is_meant_to_be_hidden() {
    for page in PAGES {
        let text = std::fs::read_to_string(page).expect("the page is there");
        for (_, language, lines) in blocks(&text) {
            let hidden = |line: &&&str| line.starts_with("# ") || **line == "#";
            let hidden: Vec<_> = lines.iter().filter(hidden).collect();
            assert!(!["", "rust"].contains(&language) || hidden.is_empty(), "{page}: {hidden:?}");
            // Without its language GitHub shows code in one colour.
            assert!(!language.is_empty(), "{page}: {lines:?}");
        }
    }
}

/// Begins the line before a sample: the arguments of the program, and what of its output is shown after `;`.
/// Nobody sees it, as it is a comment of HTML.
const PRINTED_BY: &str = "<!-- printed by: ";

/// Which part of the output a sample shows.
enum Shown<'a> {
    Everything,
    /// Rows of a report by their names.
    Rows(Vec<&'a str>),
    /// Lines in their order, some of them left out or cut off.
    Parts,
}

/// What begins a block of text that is written and not printed: a kernel, a schedule, and a part of one.
const WRITTEN: [&str; 5] = ["kernel ", "schedule prefetch {", "schedule by_loop {", "; ", "    set_stage"];

/// Files that the samples name, beside those of the repository: the kernel of the example with the schedule
/// of the page, and the same with the mistake that the page shows.
fn write_kernels(folder: &Directory) {
    let page = include_str!("../../docs/schedules.md");
    let start = page.find("schedule prefetch {").expect("the page shows a schedule");
    let (schedule, _) = page[start..].split_once("```").expect("the schedule is a block");
    let mine = format!("{}{schedule}", include_str!("../../examples/gemm.gsw"));
    let stages = |text: &str| -> Vec<String> {
        text.lines().filter(|line| line.starts_with("    set_stage")).map(str::to_owned).collect()
    };
    let wrong = page.split("```text\n").find(|block| block.starts_with("    set_stage")).expect("a mistake");
    let wrong = stages(&mine).iter().zip(stages(wrong)).fold(mine.clone(), |text, (right, wrong)| {
        assert!(text.contains(right) && *right != wrong, "{wrong}");
        text.replace(right, &wrong)
    });
    for (name, text) in [("mine.gsw", &mine), ("wrong.gsw", &wrong)] {
        std::fs::write(folder.file(name), text).expect("the folder can be written");
    }
    std::fs::create_dir(folder.file("examples")).expect("the folder can be written");
    std::fs::copy("examples/gemm.gsw", folder.file("examples/gemm.gsw")).expect("the example is there");
}

/// What the program prints on both streams, in lines.
fn printed(folder: &Directory, arguments: &str) -> Vec<String> {
    let arguments: Vec<&str> = arguments.split_whitespace().collect();
    let output = command(&arguments).current_dir(&folder.0).output().expect("it runs");
    let text = [output.stdout, output.stderr].map(|bytes| text(&bytes)).concat();
    text.trim_end().lines().map(|line| line.trim_end().to_owned()).collect()
}

/// The line without the times that this machine takes.
fn timeless(line: &str) -> String {
    let words: Vec<&str> = line.split(' ').collect();
    let is_measured = |at: usize| {
        let unit = words.get(at + 1).map(|unit| unit.trim_end_matches(','));
        words[at].parse::<f64>().is_ok() && matches!(unit, Some("us" | "ms" | "s" | "million"))
    };
    let mut out: Vec<&str> = Vec::new();
    for (at, word) in words.iter().enumerate() {
        let is_unit = at > 0 && is_measured(at - 1);
        out.push(if is_measured(at) {
            "#"
        } else if is_unit {
            "of time"
        } else {
            word
        });
    }
    out.join(" ")
}

/// Samples of output are what the program prints; `BLESS=1` puts it there, except where parts are shown.
#[test]
fn samples_of_output_are_what_the_program_prints() {
    let folder = Directory::new("samples");
    write_kernels(&folder);
    let bless = std::env::var_os("BLESS").is_some_and(|value| value == "1");
    let mut samples = 0;
    for name in PAGES {
        let page = std::fs::read_to_string(name).expect("the page is there");
        let mut blessed = page.clone();
        for (before, language, lines) in blocks(&page) {
            let Some(command) = before.strip_prefix(PRINTED_BY) else {
                let is_written = lines.first().is_none_or(|line| WRITTEN.iter().any(|w| line.starts_with(w)));
                assert!(language != "text" || is_written, "{name}: no command prints {lines:?}");
                continue;
            };
            samples += 1;
            let command = command.strip_suffix(" -->").expect("the comment ends");
            let (arguments, shown) = match command.split_once("; ") {
                None => (command, Shown::Everything),
                Some((arguments, "parts")) => (arguments, Shown::Parts),
                Some((arguments, rows)) => {
                    let rows = rows.strip_prefix("rows: ").expect("rows or parts");
                    (arguments, Shown::Rows(rows.split(", ").collect()))
                }
            };
            let mut printed = printed(&folder, arguments);
            if let Shown::Parts = shown {
                let mut rest = printed.iter();
                for line in lines.iter().filter(|line| !line.trim().is_empty() && line.trim() != "...") {
                    let begins = |own: &String| match line.strip_suffix(", ...") {
                        Some(part) => own.starts_with(part),
                        None => own == line,
                    };
                    assert!(rest.any(begins), "{name}: `{arguments}` does not print, in this order:\n{line}");
                }
                continue;
            }
            if let Shown::Rows(rows) = &shown {
                let is_shown = |line: &String| {
                    let row = line.strip_prefix("  ").unwrap_or_default();
                    rows.iter().any(|name| row.starts_with(&format!("{name} ")))
                };
                printed.retain(is_shown);
            }
            let same = lines.iter().map(|line| timeless(line)).eq(printed.iter().map(|line| timeless(line)));
            let (old, new) = (lines.join("\n"), printed.join("\n"));
            assert!(same || bless, "{name}: `{arguments}` prints\n{new}\nand the page shows\n{old}");
            if !same {
                blessed = blessed
                    .replace(&format!("{before}\n```text\n{old}\n"), &format!("{before}\n```text\n{new}\n"));
            }
        }
        if blessed != page {
            std::fs::write(name, blessed).expect("the page can be written");
        }
    }
    assert!(samples >= 6, "{samples}");
}

/// Pictures on pages are what the commands beside them draw; `BLESS=1` draws them again.
#[test]
fn pictures_are_drawn_by_the_commands_beside_them() {
    for (name, link) in
        [("README.md", "docs/pictures/ping-pong.svg"), ("docs/attention.md", "pictures/attention.svg")]
    {
        let text = page(name);
        assert!(text.contains(&format!("]({link})")), "{link} is not on {name}");
        let drawing = text.split("```sh").find(|block| block.contains("--picture")).expect("a command");
        draws(&drawing.split("```").next().expect("it ends").replace('\\', " "));
    }
}

/// The picture that a command draws is in the repository.
fn draws(command_line: &str) {
    let words: Vec<&str> = command_line.split_whitespace().collect();
    // After cargo's own arguments, or after the name of the program.
    let start = words.iter().position(|&word| word == "--").unwrap_or(0) + 1;
    let name = *words.last().expect("the picture is the last argument");
    let folder = Directory::new("picture");
    let drawn = folder.0.join("drawn.svg");
    let mut program = command(&words[start..words.len() - 1]);
    let output = program.arg(&drawn).output().expect("the program runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let picture = page(&drawn.display().to_string());
    if std::env::var_os("BLESS").is_some_and(|value| value == "1") {
        std::fs::write(name, &picture).expect("the picture can be written");
    }
    assert!(page(name) == picture, "{name} is not what the program draws; BLESS=1 draws it again");
    // Both waves of the SIMD, and each of them computes, loads and waits.
    #[rustfmt::skip]
    let expected = [
        "wave 0<", "wave 4<", "matrix core<", "vector ALU<", "#0072b2", "#009e73", "#e69f00", "#c4c9d0", "#cc79a7",
    ];
    for expected in expected {
        assert!(picture.contains(expected), "{expected} is not in {name}");
    }
}

/// The map of the source, and its bytes at most: who looks for something reads all of it.
const MAP: &str = "ARCHITECTURE.md";
const MAP_BYTES: usize = 15 * 1024;

fn page(path: &str) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// The decisions, in the order of their numbers.
fn decisions() -> Vec<String> {
    let files = std::fs::read_dir("docs/decisions").expect("the folder is there");
    let mut names: Vec<String> =
        files.map(|file| file.expect("it can be read").file_name().into_string().expect("ASCII")).collect();
    names.sort();
    assert_eq!(names.pop().as_deref(), Some("README.md"));
    names
}

/// What stands between backticks on a page, its blocks of code left out.
fn quoted(text: &str) -> Vec<&str> {
    let outside = text.split("```").step_by(2);
    outside.flat_map(|part| part.split('`').skip(1).step_by(2)).collect()
}

#[test]
fn files_and_links_of_the_map_the_decisions_and_the_glossary_are_there() {
    assert!(page(MAP).len() <= MAP_BYTES, "{MAP} has {} bytes of {MAP_BYTES}", page(MAP).len());
    let decisions = decisions().into_iter().map(|name| format!("docs/decisions/{name}"));
    let own = [MAP, "docs/glossary.md", "docs/decisions/README.md"].map(str::to_owned);
    let mut missing = Vec::new();
    for path in own.into_iter().chain(decisions) {
        let text = page(&path);
        let folders = ["src/", "docs/", "tests/", "c/", "hip/"];
        let is_path = |word: &&str| folders.iter().any(|folder| word.starts_with(folder));
        let files = quoted(&text).into_iter().filter(is_path).map(std::path::PathBuf::from);
        let folder = std::path::Path::new(&path).parent().expect("a file is in a folder");
        let links = text.split("](").skip(1).filter_map(|rest| rest.split_once(')'));
        let links = links.map(|(link, _)| folder.join(link));
        missing.extend(files.chain(links).filter(|file| !file.exists()).map(|file| (path.clone(), file)));
    }
    assert!(missing.is_empty(), "not there: {missing:?}");
}

#[test]
fn decisions_are_dated_and_in_the_index() {
    let index = page("docs/decisions/README.md");
    let mut rest = index.as_str();
    let mut before = String::new();
    for name in decisions() {
        let text = page(&format!("docs/decisions/{name}"));
        let mut lines = text.lines();
        let title = lines.next().and_then(|line| line.strip_prefix("# ")).expect("a title");
        let date = lines.nth(1).expect("a date").to_owned();
        assert!(date.len() == 10 && date >= before, "{name}: {date:?} is no date after {before:?}");
        let line = format!("- {date} [{title}]({name}): ");
        let at = rest.find(&line).unwrap_or_else(|| panic!("the index lacks, in this place: {line}"));
        rest = &rest[at + line.len()..];
        before = date;
    }
    let links = index.matches("](").count();
    assert_eq!(links, decisions().len(), "the index has links to other pages");
}

/// The steps of a compilation are functions of the files that the map names, and its lists of passes are
/// those that run.
#[test]
fn the_map_follows_one_compilation() {
    let map = page(MAP);
    let (_, section) = map.split_once("## One compilation\n").expect("the section");
    let (section, _) = section.split_once("\n## ").expect("it ends");
    let mut steps = 0;
    for line in section.lines().filter(|line| line.starts_with('|')).skip(2) {
        let cells: Vec<&str> = line.trim_matches('|').split('|').map(|cell| cell.trim()).collect();
        let [_, function, file] = cells[..] else { panic!("three cells: {line}") };
        let (function, file) = (function.trim_matches('`'), file.trim_matches('`'));
        let name = function.rsplit("::").next().expect("a name");
        let source = page(file);
        let is_there = ["(", "<"].iter().any(|end| source.contains(&format!("fn {name}{end}")));
        assert!(is_there, "{file} has no function {name}");
        steps += 1;
    }
    assert!(steps > 10, "{steps}");
    let mut rest = section;
    for pass in groundswell::compile::MACHINE_PASSES {
        let row = format!("\n| `{}`: ", pass.name);
        rest = rest.split_once(&row).unwrap_or_else(|| panic!("no row, in this place: {row}")).1;
    }
    let (_, list) = section.split_once("The passes of `PIPELINE`").expect("the list");
    let unquoted: String = list.split('`').step_by(2).collect();
    let words = unquoted.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    let passes = groundswell::compile::PIPELINE;
    let listed: Vec<&str> = words.filter(|word| word.contains('_') || *word == "expand").collect();
    assert_eq!(listed, passes.iter().map(|pass| pass.name).collect::<Vec<_>>());
}

/// The part of a walk that changes one file.
struct WalkedFile<'a> {
    path: &'a str,
    is_new: bool,
    lines: Vec<&'a str>,
}

/// Parts of a diff: each begins with `@@ path @@`, or `@@ path (new) @@` for a file that is made.
fn walked_files<'a>(lines: &[&'a str]) -> Vec<WalkedFile<'a>> {
    let mut files: Vec<WalkedFile> = Vec::new();
    for line in lines {
        if let Some(head) = line.strip_prefix("@@ ") {
            let head = head.strip_suffix(" @@").expect("the head of a part ends");
            let path = head.strip_suffix(" (new)");
            files.push(WalkedFile { path: path.unwrap_or(head), is_new: path.is_some(), lines: Vec::new() });
        } else {
            files.last_mut().expect("a part has a head").lines.push(line);
        }
    }
    files
}

/// A walk is right as long as the lines around its changes, and those that it replaces, are in their files,
/// in this order; `...` at the end of one stands for the rest.
#[test]
fn walks_of_the_map_find_what_they_change() {
    let map = page(MAP);
    let (_, section) = map.split_once("## Where to add\n").expect("the section");
    let walks = section.split("\n### ").skip(1);
    let mut count = 0;
    for walk in walks {
        count += 1;
        let title = walk.lines().next().expect("a title");
        let diffs: Vec<_> = blocks(walk).into_iter().filter(|(_, language, _)| *language == "diff").collect();
        assert!(!diffs.is_empty(), "{title}: no diff");
        for file in diffs.iter().flat_map(|(_, _, lines)| walked_files(lines)) {
            let WalkedFile { path, is_new, lines } = file;
            let exists = std::path::Path::new(path).exists();
            assert!(exists != is_new, "{title}: {path} is there: {exists}, is new: {is_new}");
            let source = if is_new { String::new() } else { page(path) };
            let mut rest = source.lines();
            for line in lines.iter().filter(|line| !line.starts_with('+')) {
                let wanted = line.strip_prefix([' ', '-']).unwrap_or_else(|| panic!("{title}: {line}"));
                let found = rest.any(|own| match wanted.strip_suffix("...") {
                    Some(part) => own.starts_with(part),
                    None => own == wanted,
                });
                assert!(found, "{title}: {path} does not have, in this order:\n{wanted}");
            }
            let added: Vec<_> = lines.iter().filter_map(|line| line.strip_prefix('+')).collect();
            let is_done = !added.is_empty() && added.iter().all(|line| source.contains(line));
            assert!(!is_done, "{title}: {path} has these lines already");
        }
    }
    assert!(count >= 10, "{count}");
}
