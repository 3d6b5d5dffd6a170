//! Fewer operations and smaller sizes with the same kind of fault: lines and regions are left out, values
//! give way to one of their operands, sizes become one, known, or half of what they were.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

use groundswell::options::{GlobalToShared, Schedule};

use super::case::Case;
use super::generated;

/// The kernels that are tried at most for one fault, and for how long.
const MOST_TRIES: usize = 500;
const MOST_TIME: Duration = Duration::from_secs(20);

/// A small kernel with the kind of fault that the kernel of these bytes has; none if it has none.
pub fn smaller_kernel(data: &[u8]) -> Option<String> {
    let mut case = generated(data);
    let mut fault = fault_of(&case)?;
    let kind = kind(&fault);
    let (start, mut tries) = (Instant::now(), 0);
    let mut may_try = || {
        tries += 1;
        tries <= MOST_TRIES && start.elapsed() < MOST_TIME
    };
    let mut is_smaller = true;
    while std::mem::take(&mut is_smaller) {
        // What candidates are there depends on the kernel, so they are counted anew after each that fails.
        let mut at = 0;
        while may_try() {
            let Some(candidate) = candidates(&case).into_iter().nth(at) else { break };
            match fault_of(&candidate).filter(|fault| self::kind(fault) == kind) {
                Some(found) => {
                    (case, fault) = (candidate, found);
                    is_smaller = true;
                }
                None => at += 1,
            }
        }
    }
    Some(format!("{fault}\n{case}"))
}

/// What is wrong with a kernel; a panic is a fault like others.
fn fault_of(case: &Case) -> Option<String> {
    match catch_unwind(AssertUnwindSafe(|| case.run())) {
        Ok(outcome) => outcome.err(),
        Err(_) => Some("panicked".to_owned()),
    }
}

/// The first word of a fault says where it was found; of one that the library tells, its first line says what
/// it is.
fn kind(fault: &str) -> String {
    let known = match fault.starts_with("error:") {
        true => fault.lines().next(),
        false => fault.split_whitespace().next(),
    };
    known.unwrap_or_default().to_owned()
}

/// Kernels that are a little smaller.
fn candidates(case: &Case) -> Vec<Case> {
    let lines: Vec<String> = case.text.lines().map(str::to_owned).collect();
    let with = |text: String| Case { text, ..case.clone() };
    let less = (1..lines.len().saturating_sub(1)).rev().flat_map({
        let lines = lines.clone();
        move |at| shorter(&lines, at)
    });
    let sizes = (0..case.sizes.len()).flat_map(|at| {
        let (_, size, is_open) = case.sizes[at];
        let smaller =
            [(1, false), (size / 2, false), (size - 1, false), (size, false), (1, true), (size / 2, true)];
        let is_less = move |new: &(i64, bool)| {
            new.0 > 0 && new.0 <= size && (is_open || !new.1) && *new != (size, is_open)
        };
        smaller.into_iter().filter(is_less).map(move |(size, is_open)| {
            let mut new = case.clone();
            (new.sizes[at].1, new.sizes[at].2) = (size, is_open);
            new
        })
    });
    let as_written =
        (case.schedule != Schedule::None).then(|| Case { schedule: Schedule::None, ..case.clone() });
    let through_registers =
        (case.loads != GlobalToShared::Off).then(|| Case { loads: GlobalToShared::Off, ..case.clone() });
    as_written.into_iter().chain(through_registers).chain(less.map(with)).chain(sizes).collect()
}

/// A kernel without a line, or the region that begins there: alone, or with what it made replaced by a value
/// that it used.
fn shorter(lines: &[String], at: usize) -> Vec<String> {
    let line = &lines[at];
    if line.trim_start().starts_with('}') || line.trim_start().starts_with("yield") {
        return Vec::new();
    }
    let indent = |line: &str| line.len() - line.trim_start().len();
    let end = match line.ends_with('{') {
        true => (at + 1..lines.len()).find(|&end| indent(&lines[end]) == indent(line)).unwrap_or(at),
        false => at,
    };
    let rest = || lines[..at].iter().chain(&lines[end + 1..]);
    let text = |rest: Vec<String>| rest.iter().flat_map(|line| [line.as_str(), "\n"]).collect::<String>();
    let mut found = vec![text(rest().cloned().collect())];
    let Some((made, used)) = line.split_once(" = ") else { return found };
    let [made, used] = [made, used].map(values);
    for replacement in &used {
        let replaced =
            |line: &String| made.iter().fold(line.clone(), |line, made| renamed(&line, made, replacement));
        found.push(text(rest().map(replaced).collect()));
    }
    found
}

/// The values that a piece of text names.
fn values(text: &str) -> Vec<String> {
    let is_name = |c: char| c.is_ascii_alphanumeric();
    let after = text.split("%v").skip(1);
    after.map(|word| word.split(|c| !is_name(c)).next().unwrap_or_default().to_owned()).collect()
}

/// A line with one value in place of another.
fn renamed(line: &str, from: &str, to: &str) -> String {
    let mut words = line.split("%v");
    let mut new = words.next().unwrap_or_default().to_owned();
    for word in words {
        let digits = word.find(|c: char| !c.is_ascii_digit()).unwrap_or(word.len());
        let name = if &word[..digits] == from { to } else { &word[..digits] };
        new += &format!("%v{name}{}", &word[digits..]);
    }
    new
}
