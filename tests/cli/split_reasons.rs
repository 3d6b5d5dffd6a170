//! Why an access is split, asked of every access of ready kernels that read or write at coordinates: the text
//! of the kernel says it, and each of its instructions in the machine code.

use std::collections::BTreeMap;

use crate::program::{groundswell, text};

/// Bytes that an instruction moves at most for a lane.
const MOST_BYTES: u32 = 16;

/// An access of an argument, as the text of a kernel says it.
#[derive(Debug)]
struct Access {
    is_write: bool,
    /// Elements in the registers of a lane, and of these side by side that one instruction could move.
    elements: u32,
    possible: u32,
    /// Elements that one moves, if the text says that they are fewer, and the word for it.
    split: Option<(u32, String)>,
    /// Nodes that it has become.
    pieces: u32,
}

impl Access {
    /// Its instructions.
    fn instructions(&self) -> u32 {
        self.pieces * self.elements / self.split.as_ref().map_or(self.possible, |split| split.0)
    }
}

/// The number after a word.
fn number_after(line: &str, word: &str) -> Option<u32> {
    let rest = &line[line.find(word)? + word.len()..];
    rest.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok()
}

/// The text between `!name(` and the end of its line.
fn attribute<'a>(lines: &[&'a str], name: &str) -> Option<&'a str> {
    let sign = format!("!{name}(");
    lines.iter().find_map(|line| line.split_once(&*sign)).map(|(_, rest)| rest)
}

/// The accesses of arguments, by the numbers of their nodes.
fn accesses(ir: &str) -> BTreeMap<u32, Access> {
    let lines: Vec<&str> = ir.lines().map(str::trim).collect();
    let bytes: BTreeMap<&str, u32> = lines
        .iter()
        .filter_map(|line| line.split_once(" = memory "))
        .map(|(name, ty)| {
            let dtype =
                ty.split("global ").nth(1).and_then(|rest| rest.split(' ').next()).unwrap_or_default();
            (name, dtype.trim_start_matches(|c: char| c.is_ascii_alphabetic()).parse::<u32>().unwrap() / 8)
        })
        .collect();
    // The memory that a statement reads or writes.
    let memory = |line: &str| -> Option<(bool, String)> {
        let word = |rest: &str| rest.split([' ', ',']).next().unwrap_or_default().to_owned();
        match (line.split_once("= read "), line.strip_prefix("write ")) {
            (Some((_, rest)), _) => Some((false, word(rest))),
            (_, Some(rest)) => Some((true, word(rest.split_once(", ")?.1))),
            _ => None,
        }
    };
    let mut found: BTreeMap<u32, Access> = BTreeMap::new();
    for (at, line) in lines.iter().enumerate() {
        let Some((is_write, memory)) = memory(line) else { continue };
        let Some(&each) = bytes.get(&*memory) else { continue };
        if let Some(node) = number_after(line, "!node(") {
            let own: Vec<&str> = lines[at + 1..].iter().copied().take_while(|l| l.starts_with('!')).collect();
            let layout = attribute(&own, "placement").expect("an access has a layout");
            let registers = layout.split([',', ')']).find_map(|part| part.trim().strip_prefix("register "));
            let modes: Vec<&str> = registers.unwrap_or_default().split(' ').collect();
            let extent = |mode: &&str| number_after(mode, "*").unwrap_or(1);
            let run = modes.iter().filter(|mode| mode.ends_with(":1")).map(extent).max().unwrap_or(1);
            let narrowed = attribute(&own, "bounds").and_then(|bounds| bounds.split_once("granule "));
            let said = attribute(&own, "split").or(narrowed.map(|narrowed| narrowed.1));
            let split = said.and_then(|said| {
                let (elements, rest) = said.split_once(" of ")?;
                let why = rest.split_once(": ")?.1.trim_end_matches(')');
                Some((elements.parse().expect("a number"), why.to_owned()))
            });
            let access = Access {
                is_write,
                elements: modes.iter().map(extent).product(),
                possible: run.min(MOST_BYTES / each),
                split,
                pieces: 0,
            };
            found.insert(node, access);
        } else if let Some(node) = number_after(line, "!of(") {
            found.get_mut(&node).expect("a piece of an access").pieces += 1;
        }
    }
    found
}

#[test]
fn every_split_access_says_why() {
    let mut split = 0;
    let mut words: Vec<String> = Vec::new();
    for kernel in ["gather", "conv2d", "conv2d_nchw", "conv2d_grouped", "depthwise_conv2d"] {
        let emitted = |what: &str| {
            let output = groundswell(&["compile", kernel, "--target", "gfx942", "--emit", what]);
            assert_eq!(output.status.code(), Some(0), "{kernel}: {}", text(&output.stderr));
            text(&output.stdout)
        };
        let (ir, code) = (emitted("ir"), emitted("reasons"));
        let accesses = accesses(&ir);
        assert!(accesses.len() >= 2, "{kernel}: {accesses:?}");
        for (is_write, instruction) in [(false, "    buffer_load_"), (true, "    buffer_store_")] {
            // If an access were split and did not say so, there would be more instructions than these.
            let own = || accesses.values().filter(|access| access.is_write == is_write);
            let expected: u32 = own().map(Access::instructions).sum();
            let lines: Vec<&str> = code.lines().filter(|line| line.starts_with(instruction)).collect();
            assert_eq!(lines.len() as u32, expected, "{kernel}: {instruction}: {accesses:?}");
            // And each instruction of one that does says it, too.
            let narrow = own().filter(|access| access.split.is_some());
            let expected: u32 = narrow.map(Access::instructions).sum();
            let reasoned = lines.iter().filter(|line| line.contains("    ; moves ")).count();
            assert_eq!(reasoned as u32, expected, "{kernel}: {instruction}: {accesses:?}");
        }
        for access in accesses.values() {
            if let Some((elements, why)) = &access.split {
                assert!(*elements < access.possible, "{kernel}: {access:?}");
                split += 1;
                words.push(why.clone());
            }
        }
    }
    // The question has been asked.
    assert!(split >= 2 && words.iter().any(|word| word == "apart"), "{words:?}");
}
