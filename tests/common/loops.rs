//! Loops of a listing, found by the branches that go back.

use groundswell::compile::listing;
use groundswell::prelude::Executable;

/// The lines of every loop, from the target of a backward branch to the branch, in the order of the branches.
pub fn loops(text: &str) -> Vec<Vec<&str>> {
    let lines: Vec<&str> = text.lines().collect();
    let mut found = Vec::new();
    for (end, line) in lines.iter().enumerate() {
        let target = line.split_whitespace().next_back().filter(|word| word.starts_with(".L"));
        let Some(label) = target.map(|target| format!("{target}:")) else { continue };
        if let Some(start) = lines[..end].iter().position(|line| *line == label) {
            found.push(lines[start..=end].to_vec());
        }
    }
    found
}

/// The loop of most lines; the first where several have as many.
pub fn largest_loop(text: &str) -> Option<Vec<&str>> {
    loops(text).into_iter().rev().max_by_key(Vec::len)
}

/// The instructions of an executable's largest loop that begin in one of these ways, each with its name, in
/// order; those of one name in a row are one.
pub fn emitted<'a>(executable: &Executable, kinds: &[(&str, &'a str)]) -> Vec<(&'a str, u32)> {
    let text = listing(executable.code(), executable.target().arch).expect("it is listed");
    let mut runs: Vec<(&str, u32)> = Vec::new();
    for line in largest_loop(&text).expect("a loop") {
        let kind = kinds.iter().find(|(start, _)| line.trim_start().starts_with(start));
        match (kind, runs.last_mut()) {
            (Some(kind), Some(last)) if last.0 == kind.1 => last.1 += 1,
            (Some(kind), _) => runs.push((kind.1, 1)),
            (None, _) => {}
        }
    }
    runs
}
