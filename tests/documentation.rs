//! What rustdoc cannot know about the documentation.

mod common;

/// The prelude's documentation has a line for every name in it.
#[test]
fn the_table_of_the_prelude_is_complete() {
    let prelude = include_str!("../src/prelude.rs");
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
const PAGES: [&str; 10] = [
    "README.md",
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
const WRITTEN: [&str; 4] = ["kernel ", "schedule prefetch {", "; ", "    set_stage"];

/// Files that the samples name, beside those of the repository: the kernel of the example with the schedule
/// of the page, and the same with the mistake that the page shows.
fn write_kernels(folder: &common::program::Directory) {
    let page = include_str!("../docs/schedules.md");
    let start = page.find("schedule prefetch {").expect("the page shows a schedule");
    let (schedule, _) = page[start..].split_once("```").expect("the schedule is a block");
    let mine = format!("{}{schedule}", include_str!("../examples/gemm.gsw"));
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
fn printed(folder: &common::program::Directory, arguments: &str) -> Vec<String> {
    let arguments: Vec<&str> = arguments.split_whitespace().collect();
    let output = common::program::command(&arguments).current_dir(&folder.0).output().expect("it runs");
    let text = [output.stdout, output.stderr].map(|bytes| common::program::text(&bytes)).concat();
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
    let folder = common::program::Directory::new("samples");
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
