//! Files of cases. A case begins at a line with a title, and may say only how it differs from another one of
//! its file that is written out:
//!
//! ```text
//! ; === a product of halves
//! ; test compile
//! kernel gemm {
//!   a = memory [M, K] shared f16
//! ...
//! ; === a product of bytes
//! ; like a product of halves
//! -  a = memory [M, K] shared f16
//! +  a = memory [M, K] shared i8
//! ```
//!
//! Lines with `-` are left out and lines with `+` added; lines with a space are there to find the place. What
//! lies between them is as in the other case, without the faults that stand there as comments. [`expanded`]
//! writes all cases out, and [`condensed`] is its inverse: a case says how it differs from another where that
//! takes at most half as many lines.

/// How a line of two texts differs.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum LineChange {
    Same,
    Removed,
    Added,
}

/// The lines of both texts in order: a longest common part, and what is only in one of them.
pub fn changes<'a>(old: &[&'a str], new: &[&'a str]) -> Vec<(LineChange, &'a str)> {
    // The number of lines that what is left of both has in common.
    let mut common = vec![vec![0u32; new.len() + 1]; old.len() + 1];
    for i in (0..old.len()).rev() {
        for j in (0..new.len()).rev() {
            common[i][j] = match old[i] == new[j] {
                true => common[i + 1][j + 1] + 1,
                false => common[i + 1][j].max(common[i][j + 1]),
            };
        }
    }
    let (mut i, mut j, mut out) = (0, 0, Vec::new());
    while i < old.len() || j < new.len() {
        if i < old.len() && j < new.len() && old[i] == new[j] {
            out.push((LineChange::Same, old[i]));
            (i, j) = (i + 1, j + 1);
        } else if j == new.len() || i < old.len() && common[i + 1][j] >= common[i][j + 1] {
            out.push((LineChange::Removed, old[i]));
            i += 1;
        } else {
            out.push((LineChange::Added, new[j]));
            j += 1;
        }
    }
    out
}

const LIKE: &str = "; like ";

/// A line without the faults that come at its end as comments.
pub fn without_fault(line: &str) -> &str {
    let at = [" ; error:", " ; note:"].into_iter().filter_map(|start| line.find(start)).min();
    at.map_or(line, |at| line[..at].trim_end())
}

fn without_faults<'a>(lines: &[&'a str]) -> Vec<&'a str> {
    lines.iter().map(|line| without_fault(line)).collect()
}

/// The cases of a file with their titles, without empty lines at their ends; what stands before the first
/// title comes first. `title` is how a title begins.
fn cases<'a>(text: &'a str, title: &str) -> Vec<(Option<&'a str>, Vec<&'a str>, usize)> {
    let mut cases: Vec<(Option<&str>, Vec<&str>, usize)> = Vec::new();
    for line in text.lines() {
        match line.strip_prefix(title) {
            Some(name) => cases.push((Some(name), Vec::new(), 0)),
            None => {
                if cases.is_empty() {
                    cases.push((None, Vec::new(), 0));
                }
                cases.last_mut().expect("a case was begun").1.push(line);
            }
        }
    }
    for (_, lines, empty) in &mut cases {
        while lines.pop_if(|line| line.is_empty()).is_some() {
            *empty += 1;
        }
    }
    cases
}

/// A file with all of its cases written out.
///
/// # Errors
/// A case that is like none that is there, or differs from it at a line that it does not have.
pub fn expanded(text: &str, title: &str) -> Result<String, String> {
    let mut whole: Vec<(&str, Vec<&str>)> = Vec::new();
    let mut out = String::new();
    for (name, lines, empty) in cases(text, title) {
        let lines = match lines.first().and_then(|line| line.strip_prefix(LIKE)) {
            Some(base) => {
                let found = whole.iter().find(|(name, _)| *name == base);
                let (_, base) = found.ok_or_else(|| format!("no case is called `{base}`"))?;
                applied(&without_faults(base), &lines[1..])
                    .map_err(|line| format!("{}: no line `{line}`", name.unwrap_or_default()))?
            }
            None => lines,
        };
        if let Some(name) = name {
            out += &format!("{title}{name}\n");
        }
        lines.iter().for_each(|line| out += &format!("{line}\n"));
        out += &"\n".repeat(empty);
        whole.extend(name.map(|name| (name, lines)));
    }
    Ok(out)
}

/// The lines with their changes, or the line of a change that is not there.
fn applied<'a>(base: &[&'a str], edits: &[&'a str]) -> Result<Vec<&'a str>, &'a str> {
    let (mut at, mut out) = (0, Vec::new());
    for edit in edits {
        let line = edit.get(1..).unwrap_or_default();
        if edit.starts_with('+') {
            out.push(line);
            continue;
        }
        let found = base[at..].iter().position(|other| *other == line).ok_or(*edit)?;
        out.extend(&base[at..at + found]);
        if !edit.starts_with('-') {
            out.push(line);
        }
        at += found + 1;
    }
    out.extend(&base[at..]);
    Ok(out)
}

/// A file whose cases say how they differ from others where that is much shorter.
pub fn condensed(text: &str, title: &str) -> String {
    let all = cases(text, title);
    let is_alone = |name: &str| all.iter().filter(|(other, ..)| *other == Some(name)).count() == 1;
    let mut whole: Vec<(&str, &[&str])> = Vec::new();
    let mut out = String::new();
    for (name, lines, empty) in &all {
        let shorter = whole.iter().map(|(base, old)| (base, edits(&without_faults(old), lines)));
        let shortest = shorter.min_by_key(|(_, edits)| edits.len());
        if let Some(name) = name {
            out += &format!("{title}{name}\n");
        }
        match shortest.filter(|(_, edits)| 2 * (edits.len() + 1) <= lines.len()) {
            Some((base, edits)) => {
                out += &format!("{LIKE}{base}\n");
                edits.iter().for_each(|edit| out += &format!("{edit}\n"));
            }
            None => {
                lines.iter().for_each(|line| out += &format!("{line}\n"));
                whole.extend(name.filter(|name| is_alone(name)).map(|name| (name, &lines[..])));
            }
        }
        out += &"\n".repeat(*empty);
    }
    out
}

/// The changes that make one text of another, so that [`applied`] finds their places.
fn edits(old: &[&str], new: &[&str]) -> Vec<String> {
    let changes = changes(old, new);
    let (mut out, mut found, mut at) = (Vec::new(), 0, 0);
    for run in changes.chunk_by(|a, b| (a.0 == LineChange::Same) == (b.0 == LineChange::Same)) {
        if run[0].0 == LineChange::Same {
            at += run.len();
            continue;
        }
        let is = |change: LineChange| run.iter().filter(move |line| line.0 == change).map(|line| line.1);
        let removed = is(LineChange::Removed).count();
        // As many lines before it as tell the place.
        let tells = |from: &usize| match *from == at && removed == 0 {
            true => *from == found,
            false => old[found..].iter().position(|line| line == &old[*from]) == Some(from - found),
        };
        let from = (found..=at).rev().find(tells).unwrap_or(found);
        out.extend(old[from..at].iter().map(|line| format!(" {line}")));
        out.extend(is(LineChange::Removed).map(|line| format!("-{line}")));
        out.extend(is(LineChange::Added).map(|line| format!("+{line}")));
        at += removed;
        found = at;
    }
    out
}
