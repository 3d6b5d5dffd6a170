//! Loops of a listing, found by the branches that go back.

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
