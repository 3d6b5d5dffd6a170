//! Mutants of a code object: one wait, barrier or nop taken out or weakened, everything else as it was; and a judge that says by
//! the rules alone which of them are wrong.
//!
//! A mutant is made in the text of the object, so that code behind a missing instruction moves up and branches still find their
//! targets. The judge is the verifier of machine code, which follows every path and knows nothing of the simulator. A mutant is
//! wrong if it has a fault that the original has not, or if it is a barrier less where several waves meet at it: no rule sees
//! what a barrier is for, and neither clang nor this crate places one for nothing.

use std::collections::BTreeMap;

use groundswell::codegen::assembler::{AssemblerOptions, assemble, disassemble};
use groundswell::codegen::isa::{Arch, BranchCondition, Inst, Meaning, WaitCounts, decode};
use groundswell::codegen::machine::check::{Fault, check_hazards, check_replay, check_waits};
use groundswell::codegen::machine::waits::{BARRIER_WITHOUT_WAITS, LdsLoads};
use groundswell::codegen::machine::{Block, Body, MachineInst};
use groundswell::codegen::object::ObjectFile;
use groundswell::codegen::target::FeatureSetting;

/// A changed object.
pub struct Mutant {
    /// Function, offset in it, instruction and what became of it.
    pub name: String,
    pub object: Vec<u8>,
    /// What the judge says; nothing if the rules allow it.
    pub wrong: Option<String>,
}

/// The text of an object, of which lines can be changed.
struct Text<'a> {
    lines: Vec<&'a str>,
    /// The line that says how long each function is.
    sizes: BTreeMap<&'a str, usize>,
}

/// An instruction that may be mutated.
struct Site<'a> {
    line: usize,
    function: &'a str,
    /// Bytes from the start of the function.
    offset: u64,
    text: &'a str,
}

/// Instruction of a line, and its address.
fn instruction(line: &str) -> Option<(&str, u64)> {
    let (text, comment) = line.split_once("//")?;
    let address = comment.split_once(':')?.0;
    Some((text.trim(), u64::from_str_radix(address.trim(), 16).ok()?))
}

impl<'a> Text<'a> {
    fn new(text: &'a str) -> Text<'a> {
        let lines: Vec<&str> = text.lines().collect();
        let size = |(at, line): (usize, &&'a str)| {
            let (name, _) = line.strip_prefix(".size ")?.split_once(',')?;
            Some((name, at))
        };
        let sizes = lines.iter().enumerate().filter_map(size).collect();
        Text { lines, sizes }
    }

    /// Waits, barriers and nops of some functions.
    fn sites(&self, functions: &[&str]) -> Vec<Site<'a>> {
        let mut sites = Vec::new();
        let mut function = None;
        for (line, text) in self.lines.iter().enumerate() {
            if let Some(label) = text.strip_suffix(':').filter(|label| self.sizes.contains_key(label)) {
                function = functions.contains(&label).then_some((label, None));
            }
            let Some((name, start)) = &mut function else { continue };
            let Some((text, address)) = instruction(text) else { continue };
            let offset = address - *start.get_or_insert(address);
            if ["s_waitcnt ", "s_barrier", "s_nop "].iter().any(|op| text.starts_with(op)) {
                sites.push(Site { line, function: name, offset, text });
            }
        }
        sites
    }

    /// The object with another instruction in place of one, or without it.
    fn object(&self, site: &Site<'_>, instead: Option<&str>) -> Vec<u8> {
        let mut lines = self.lines.clone();
        let size = self.sizes[site.function];
        let (before, bytes) = lines[size].rsplit_once(' ').expect("name and size");
        let shorter = format!("{before} {}", bytes.parse::<u64>().expect("a size") - 4);
        lines[site.line] = instead.unwrap_or("");
        if instead.is_none() {
            lines[size] = &shorter;
        }
        let mut text = lines.join("\n");
        text.push('\n');
        assemble(&text, AssemblerOptions::default()).unwrap_or_else(|faults| panic!("{faults}")).object
    }
}

/// The number behind the last space.
fn immediate(text: &str) -> u32 {
    text.rsplit(' ').next().and_then(|n| n.parse().ok()).expect("a number")
}

/// What a wait waits for.
fn counts(text: &str) -> WaitCounts {
    let mut counts = WaitCounts::NONE;
    for word in text.split_whitespace().skip(1) {
        let (counter, count) = word.strip_suffix(')').and_then(|w| w.split_once('(')).expect("a count");
        let count = count.parse().expect("a number");
        match counter {
            "vmcnt" => counts.vm = count,
            "expcnt" => counts.exp = count,
            _ => counts.lgkm = count,
        }
    }
    counts
}

/// What may be made of an instruction: a name for it, and what stands there instead.
fn changes(text: &str) -> Vec<(String, Option<String>)> {
    let mut changes = vec![("removed".to_owned(), None)];
    if text.starts_with("s_nop ") && immediate(text) > 0 {
        changes.push(("one less".to_owned(), Some(format!("s_nop {}", immediate(text) - 1))));
    }
    if !text.starts_with("s_waitcnt ") {
        return changes;
    }
    let (now, none) = (counts(text), WaitCounts::NONE);
    let waits = [now.vm < none.vm, now.exp < none.exp, now.lgkm < none.lgkm];
    let with = |counter: usize, by: u8| {
        let up = |at: usize, count: u8, most: u8| if at == counter { (count + by).min(most) } else { count };
        WaitCounts { vm: up(0, now.vm, none.vm), exp: up(1, now.exp, none.exp), lgkm: up(2, now.lgkm, none.lgkm) }
    };
    for (counter, name) in ["vmcnt", "expcnt", "lgkmcnt"].into_iter().enumerate().filter(|(at, _)| waits[*at]) {
        let (without, weaker) = (with(counter, 63), with(counter, 1));
        let text = |c: WaitCounts| Some(format!("s_waitcnt vmcnt({}) expcnt({}) lgkmcnt({})", c.vm, c.exp, c.lgkm));
        changes.push((format!("without {name}"), text(without)));
        if weaker != without {
            changes.push((format!("{name} one more"), text(weaker)));
        }
    }
    changes
}

/// All mutants of a kernel and of the functions that it calls; `waves` is how many a workgroup has.
pub fn mutants(object: &[u8], functions: &[&str], waves: u32) -> Vec<Mutant> {
    let listing = disassemble(object).expect("an object");
    let text = Text::new(&listing.text);
    let judge = Judge::new(object, functions);
    let mut mutants = Vec::new();
    for site in text.sites(functions) {
        for (change, instead) in changes(site.text) {
            let object = text.object(&site, instead.as_deref());
            let wrong = match site.text {
                "s_barrier" if waves > 1 => Some("waves do not meet any more".to_owned()),
                "s_barrier" => None,
                _ => judge.fault(&object, site.function),
            };
            let Site { function, offset, text, .. } = site;
            mutants.push(Mutant { name: format!("{function}+{offset:#x} `{text}` {change}"), object, wrong });
        }
    }
    mutants
}

/// Functions of an object that are no kernels.
pub fn called(object: &[u8]) -> Vec<String> {
    use object::{Object, ObjectSymbol, SymbolKind};
    let file = object::File::parse(object).expect("an object");
    let kernels = ObjectFile::parse(object).expect("an object");
    let functions = file.symbols().filter(|s| s.kind() == SymbolKind::Text && s.size() > 0);
    let names = functions.filter_map(|s| s.name().ok().map(str::to_owned));
    names.filter(|name| kernels.kernel(name).is_none()).collect()
}

/// What the rules have against each function of an object.
struct Judge {
    functions: BTreeMap<String, Original>,
}

/// A function as it was.
struct Original {
    /// Which of its barriers hand over LDS data that may be in flight.
    barriers: Vec<u32>,
    faults: BTreeMap<String, usize>,
}

impl Judge {
    fn new(object: &[u8], functions: &[&str]) -> Judge {
        let original = |name: &&str| {
            let function = Function::read(object, name);
            let body = function.body();
            let barriers = barriers(&body);
            let all = Original { barriers: vec![0; barriers.len()], faults: BTreeMap::new() };
            let in_flight: Vec<u32> = (function.faults(&all).iter())
                .filter(|fault| fault.message.starts_with("LDS data is in flight"))
                .map(|fault| fault.inst)
                .collect();
            let barriers =
                barriers.into_iter().map(|at| if in_flight.contains(&at) { BARRIER_WITHOUT_WAITS } else { 0 });
            let original = Original { barriers: barriers.collect(), ..all };
            let faults = counted(&function.faults(&original));
            ((*name).to_owned(), Original { faults, ..original })
        };
        Judge { functions: functions.iter().map(original).collect() }
    }

    /// A fault that the original has not.
    fn fault(&self, object: &[u8], function: &str) -> Option<String> {
        let original = &self.functions[function];
        let faults = counted(&Function::read(object, function).faults(original));
        let new = |(message, count): &(String, usize)| original.faults.get(message).is_none_or(|n| n < count);
        faults.into_iter().find(new).map(|(message, _)| message)
    }
}

fn counted(faults: &[Fault]) -> BTreeMap<String, usize> {
    let mut counted = BTreeMap::new();
    for fault in faults {
        *counted.entry(fault.message.clone()).or_default() += 1;
    }
    counted
}

fn barriers(body: &Body) -> Vec<u32> {
    let is_barrier = |inst: &Inst| inst.op.info().meaning == Meaning::Barrier;
    let all = body.insts.iter().enumerate().filter(|(_, i)| is_barrier(&i.inst));
    all.map(|(at, _)| at as u32).collect()
}

/// The instructions of a function, each with its offset in words.
struct Function {
    insts: Vec<(usize, Inst)>,
    arch: Arch,
    /// Memory instructions may be issued again.
    retries: bool,
}

impl Function {
    fn read(object: &[u8], name: &str) -> Function {
        use object::{Object, ObjectSection, ObjectSymbol};
        let modes = ObjectFile::parse(object).expect("an object");
        let file = object::File::parse(object).expect("an object");
        let symbol = file.symbols().find(|s| s.name() == Ok(name)).expect("its function");
        let text = file.section_by_name(".text").expect("code");
        let code = text.data_range(symbol.address(), symbol.size()).expect("readable").expect("code");
        let words: Vec<u32> =
            code.as_chunks::<4>().0.iter().map(|&word| u32::from_le_bytes(word)).collect();
        let (mut at, mut insts) = (0, Vec::new());
        while at < words.len() {
            let (inst, length) = decode(&words[at..], modes.target.arch).expect("an instruction");
            insts.push((at, inst));
            at += length;
        }
        Function { insts, arch: modes.target.arch, retries: modes.xnack == FeatureSetting::On }
    }

    /// Cut into blocks.
    fn body(&self) -> Body {
        let index_of = |word: i64| self.insts.binary_search_by_key(&word, |(at, _)| *at as i64).ok();
        let target = |index: usize| {
            let (at, inst) = &self.insts[index];
            let is_branch = matches!(inst.op.info().meaning, Meaning::Branch(_));
            is_branch.then(|| index_of(*at as i64 + 1 + i64::from(inst.imm as u16 as i16))).flatten()
        };
        let ends = |inst: &Inst| {
            let meaning = inst.op.info().meaning;
            matches!(meaning, Meaning::Branch(_) | Meaning::EndProgram | Meaning::SetPc)
        };
        let mut starts = vec![0];
        for (index, (_, inst)) in self.insts.iter().enumerate() {
            starts.extend(target(index));
            starts.extend(ends(inst).then_some(index + 1));
        }
        starts.sort_unstable();
        starts.dedup();
        starts.retain(|&start| start < self.insts.len());
        let block_of = |index: usize| starts.binary_search(&index).ok().map(|block| block as u32);
        let blocks = starts.iter().enumerate().map(|(block, &start)| {
            let end = starts.get(block + 1).copied().unwrap_or(self.insts.len());
            let next = block_of(end);
            let successors = match self.insts[end - 1].1.op.info().meaning {
                Meaning::EndProgram | Meaning::SetPc => [None; 2],
                Meaning::Branch(BranchCondition::Always) => [target(end - 1).and_then(block_of), None],
                Meaning::Branch(_) => [next, target(end - 1).and_then(block_of)],
                _ => [next, None],
            };
            Block { start: start as u32, end: end as u32, successors }
        });
        // Where a branch goes is in the blocks; in messages it would change with every byte.
        let plain = |inst: &Inst| match inst.op.info().meaning {
            Meaning::Branch(_) => inst.imm(0),
            _ => *inst,
        };
        Body {
            blocks: blocks.collect(),
            insts: self.insts.iter().map(|(_, i)| MachineInst { inst: plain(i), source: 0 }).collect(),
            ..Body::default()
        }
    }

    fn faults(&self, original: &Original) -> Vec<Fault> {
        let body = self.body();
        let mut before = body.clone();
        for (at, &imm) in barriers(&body).into_iter().zip(&original.barriers) {
            before.insts[at as usize].inst.imm = imm;
        }
        let mut faults = check_waits(&before, &body, self.arch, LdsLoads::Anywhere);
        faults.extend(check_hazards(&body, self.arch));
        if self.retries {
            faults.extend(check_replay(&body));
        }
        faults
    }
}
