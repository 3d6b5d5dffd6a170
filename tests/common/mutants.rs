//! Mutants of a code object: one wait, barrier or nop taken out or weakened, everything else as it was; and a
//! judge that says by the rules alone which of them are wrong.
//!
//! A mutant is made in the text of the object, so that code after a missing instruction moves up and
//! branches still find their targets. The judge is the verifier of machine code, which follows every path and
//! knows nothing of the simulator. A mutant is wrong if it has a fault that the original has not, or if it is
//! a barrier less where several waves meet at it: no rule sees what a barrier is for. What a kernel's code
//! does not say of itself stands in [`Known`].
//!
//! A rule that the original itself does not keep is not asked: clang 19 does not count cache write-backs. And
//! stores to LDS that all waves make alike (`same_in_waves`) may be in flight at a barrier, if something else
//! waits for them before the next one.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use crate::same_in_waves::stores_of_all_waves;

use cranelift_entity::EntityRef;
use groundswell::assembler::{AssemblerOptions, assemble, disassemble};
use groundswell::internals::machine::check::{MachineFault, check_hazards, check_replay, check_waits};
use groundswell::internals::machine::waits::{BARRIER_WITHOUT_WAITS, LdsLoads};
use groundswell::internals::machine::{Block, BlockId, InstId, MachineBody, MachineInst};
use groundswell::internals::schedules::BarrierRole;
use groundswell::isa::{Arch, BranchCondition, Inst, Meaning, Opcode, Operand, WaitCounts, decode};
use groundswell::object::{DescriptorField, ObjectFile};
use groundswell::target::FeatureSetting;

/// What is known of a kernel and its launch in addition to its code.
#[derive(Clone, Default)]
pub struct Known {
    /// Waves of a workgroup.
    pub waves: u32,
    /// Barriers, by number in the order of the code, after which waves need nothing of each other.
    pub idle_barriers: Range<usize>,
    /// Barriers, likewise, of which the compiler says that accesses are in order without any one of them:
    /// they keep groups of waves in pace.
    pub pace_barriers: BTreeSet<usize>,
    /// Workgroups have one dimension: the low bits of a work-item's number are those of its lane.
    pub is_linear: bool,
}

impl Known {
    fn is_idle(&self, barrier: usize) -> bool {
        self.waves == 1 || self.idle_barriers.contains(&barrier)
    }
}

/// A changed object.
pub struct Mutant {
    /// Function, offset in it, instruction and what became of it.
    pub name: String,
    pub object: Vec<u8>,
    /// What the judge says; nothing if the rules allow it.
    pub wrong: Option<String>,
    /// It lacks a barrier that is said to keep waves in pace.
    pub lacks_pace: bool,
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
    /// The line after the function.
    end: usize,
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

    /// Waits, barriers and nops of some functions, from `from` bytes after the start of each on.
    fn sites(&self, functions: &[&'a str], from: u64) -> Vec<Site<'a>> {
        functions.iter().flat_map(|function| self.sites_of(function, from)).collect()
    }

    fn sites_of(&self, function: &'a str, from: u64) -> Vec<Site<'a>> {
        let is_label = |line: &&str| line.strip_suffix(':') == Some(function);
        let label = self.lines.iter().position(is_label).expect("a function");
        let insts = self.lines.iter().enumerate().skip(label);
        let insts = insts.filter_map(|(line, text)| instruction(text).map(|(text, at)| (line, text, at)));
        let mut insts = insts.peekable();
        let start = insts.peek().map_or(0, |(.., address)| *address);
        let insts: Vec<_> = insts.take_while(|(.., address)| address - start < self.size(function)).collect();
        let end = insts.last().map_or(label, |(line, ..)| line + 1);
        let weakened =
            |text: &str| ["s_waitcnt ", "s_barrier", "s_nop "].iter().any(|op| text.starts_with(op));
        let insts = insts.into_iter().map(|(line, text, address)| Site {
            line,
            function,
            end,
            offset: address - start,
            text,
        });
        insts.filter(|site| site.offset >= from && weakened(site.text)).collect()
    }

    /// Bytes of a function.
    fn size(&self, function: &str) -> u64 {
        self.lines[self.sizes[function]].rsplit(' ').next().and_then(|n| n.parse().ok()).expect("a size")
    }

    /// The object with another instruction in place of one, or without it.
    fn object(&self, site: &Site<'_>, instead: Option<&str>) -> Vec<u8> {
        let mut lines = self.lines.clone();
        let shorter = format!(".size {}, {}", site.function, self.size(site.function) - 4);
        lines[site.line] = instead.unwrap_or("");
        if instead.is_none() {
            // What comes after the function stays where it is.
            lines[self.sizes[site.function]] = &shorter;
            lines.insert(site.end, "s_nop 0");
        }
        let mut text = lines.join("\n");
        text.push('\n');
        assemble(&text, AssemblerOptions::default()).unwrap_or_else(|faults| panic!("{faults}")).object
    }
}

/// The number after the last space.
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
        WaitCounts {
            vm: up(0, now.vm, none.vm),
            exp: up(1, now.exp, none.exp),
            lgkm: up(2, now.lgkm, none.lgkm),
        }
    };
    for (counter, name) in ["vmcnt", "expcnt", "lgkmcnt"].into_iter().enumerate().filter(|(at, _)| waits[*at])
    {
        let (without, weaker) = (with(counter, 63), with(counter, 1));
        let text =
            |c: WaitCounts| Some(format!("s_waitcnt vmcnt({}) expcnt({}) lgkmcnt({})", c.vm, c.exp, c.lgkm));
        changes.push((format!("without {name}"), text(without)));
        if weaker != without {
            changes.push((format!("{name} one more"), text(weaker)));
        }
    }
    changes
}

/// Bytes in front of a kernel's first instruction: of those with preloaded arguments 256, for firmware that
/// does not preload.
fn entry(object: &[u8], kernel: &str) -> u64 {
    let file = ObjectFile::parse(object).expect("an object");
    let descriptor = file.kernel(kernel).expect("a kernel").descriptor;
    if descriptor.get(DescriptorField::KernargPreloadLength) > 0 { 256 } else { 0 }
}

/// All mutants of a kernel (the first one) and of the functions that it calls.
pub fn mutants(object: &[u8], functions: &[&str], known: &Known) -> Vec<Mutant> {
    let listing = disassemble(object).expect("an object");
    let text = Text::new(&listing.text);
    let judge = Judge::new(object, functions, known);
    let mut mutants = Vec::new();
    let mut barriers = 0;
    for site in text.sites(functions, entry(object, functions[0])) {
        let is_barrier = site.text == "s_barrier";
        let is_idle = is_barrier && known.is_idle(barriers);
        let lacks_pace = is_barrier && known.pace_barriers.contains(&barriers);
        barriers += usize::from(is_barrier);
        for (change, instead) in changes(site.text) {
            let object = text.object(&site, instead.as_deref());
            let wrong = match is_barrier {
                true => (!is_idle && !lacks_pace).then(|| "waves do not meet any more".to_owned()),
                false => judge.fault(&object, site.function),
            };
            let Site { function, offset, text, .. } = site;
            let name = format!("{function}+{offset:#x} `{text}` {change}");
            mutants.push(Mutant { name, object, wrong, lacks_pace });
        }
    }
    mutants
}

/// The object without a barrier of a kernel, by number in the order of the code.
pub fn without_barrier(object: &[u8], kernel: &str, barrier: usize) -> Vec<u8> {
    let listing = disassemble(object).expect("an object");
    let text = Text::new(&listing.text);
    let sites = text.sites(&[kernel], entry(object, kernel));
    let site = sites.iter().filter(|site| site.text == "s_barrier").nth(barrier).expect("a barrier");
    text.object(site, None)
}

/// The barriers of each loop of a function, by number in the order of the code.
fn barriers_of_loops(object: &[u8], function: &str) -> Vec<Vec<usize>> {
    let body = Function::read(object, function).body();
    let all = barriers(&body);
    let mut loops = Vec::new();
    for (at, block) in body.blocks.iter() {
        for start in block.successors.into_iter().flatten().filter(|start| *start <= at) {
            let range = body.blocks[start].start..block.end;
            let own = all.iter().enumerate().filter(|(_, barrier)| range.contains(barrier));
            loops.push(own.map(|(number, _)| number).collect());
        }
    }
    loops
}

/// The barriers of loops whose waves do not run in step, by number in the order of the code, each with what
/// the compiler says of it.
pub fn told_barriers(object: &[u8], kernel: &str, told: &[Vec<BarrierRole>]) -> Vec<(usize, BarrierRole)> {
    let loops = barriers_of_loops(object, kernel);
    let of_loop = |roles: &Vec<BarrierRole>| {
        let own: Vec<_> = loops.iter().filter(|barriers| barriers.len() == roles.len()).collect();
        assert_eq!(own.len(), 1, "{kernel}: a loop with {} barriers", roles.len());
        own[0].iter().copied().zip(roles.iter().copied()).collect::<Vec<_>>()
    };
    told.iter().flat_map(of_loop).collect()
}

/// What the rules have against each function of an object.
struct Judge<'a> {
    known: &'a Known,
    functions: BTreeMap<String, BTreeMap<String, usize>>,
}

impl Judge<'_> {
    fn new<'a>(object: &[u8], functions: &[&str], known: &'a Known) -> Judge<'a> {
        let faults = |name: &&str| ((*name).to_owned(), counted(&Function::read(object, name).faults(known)));
        Judge { known, functions: functions.iter().map(faults).collect() }
    }

    /// A fault that the original has not.
    fn fault(&self, object: &[u8], function: &str) -> Option<String> {
        let original = &self.functions[function];
        let function = Function::read(object, function);
        let faults = function.faults(self.known);
        let new = Self::new_fault(&faults, original)?;
        let at: BTreeSet<InstId> = faults.iter().filter(|f| f.message == new).map(|f| f.inst).collect();
        (!self.is_harmless(&function, &at, original)).then_some(new)
    }

    /// True if what is in flight at some barriers are stores that all waves make alike, and nothing is any
    /// more at the next ones.
    fn is_harmless(
        &self,
        function: &Function,
        at: &BTreeSet<InstId>,
        original: &BTreeMap<String, usize>,
    ) -> bool {
        let body = function.body();
        let early: Vec<bool> = barriers(&body).iter().map(|barrier| at.contains(barrier)).collect();
        if !self.known.is_linear || !early.contains(&true) {
            return false;
        }
        // Instructions that count as LDS instructions do, and store nothing.
        let mut without = body.clone();
        for (register, at) in (0..=255).rev().zip(stores_of_all_waves(&body)) {
            let nothing = Inst::new(Opcode::DsSwizzleB32, &[Operand::vgpr(register); 2]);
            without.insts[at].inst = nothing;
        }
        let others = function.faults_of(&without, |barrier| self.known.is_idle(barrier));
        let later = function.faults_of(&body, |barrier| self.known.is_idle(barrier) || early[barrier]);
        [others, later].iter().all(|faults| Self::new_fault(faults, original).is_none())
    }

    /// A fault that there was not, or not so often.
    fn new_fault(faults: &[MachineFault], original: &BTreeMap<String, usize>) -> Option<String> {
        let broken: BTreeSet<&str> = original.keys().map(|message| rule(message)).collect();
        let new = |(message, count): &(String, usize)| {
            !broken.contains(rule(message)) && original.get(message).is_none_or(|n| n < count)
        };
        counted(faults).into_iter().find(new).map(|(message, _)| message)
    }
}

/// What a fault is about: without the instruction; of a hazard the pair without what lies between.
fn rule(message: &str) -> &str {
    let end = if message.starts_with('`') { ", has " } else { "`" };
    message.split(end).next().unwrap_or_default()
}

fn counted(faults: &[MachineFault]) -> BTreeMap<String, usize> {
    let mut counted = BTreeMap::new();
    for fault in faults {
        *counted.entry(fault.message.clone()).or_default() += 1;
    }
    counted
}

fn barriers(body: &MachineBody) -> Vec<InstId> {
    let is_barrier = |inst: &Inst| inst.op.info().meaning == Meaning::Barrier;
    let all = body.insts.iter().filter(|(_, i)| is_barrier(&i.inst));
    all.map(|(at, _)| at).collect()
}

/// Instructions between the test for the first active lane and its branch, at most.
const LONGEST_TEST: usize = 8;

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
        let words: Vec<u32> = code.as_chunks::<4>().0.iter().map(|&word| u32::from_le_bytes(word)).collect();
        let (mut at, mut insts) = (0, Vec::new());
        while at < words.len() {
            let (inst, length) = decode(&words[at..], modes.target.arch).expect("an instruction");
            insts.push((at, inst));
            at += length;
        }
        Function { insts, arch: modes.target.arch, retries: modes.xnack == FeatureSetting::On }
    }

    /// True for a branch that skips what the first active lane does for all: there always is one. It is the
    /// lane with no active lane in front of it, which `v_mbcnt` counts.
    fn leaves_one_lane(&self, branch: usize) -> bool {
        let before = self.insts[..branch].iter().rev().take(LONGEST_TEST);
        before.into_iter().any(|(_, inst)| inst.op == Opcode::VMbcntHiU32B32)
    }

    /// Cut into blocks.
    fn body(&self) -> MachineBody {
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
        let block_of = |index: usize| starts.binary_search(&index).ok().map(BlockId::new);
        let blocks = starts.iter().enumerate().map(|(block, &start)| {
            let end = starts.get(block + 1).copied().unwrap_or(self.insts.len());
            let next = block_of(end);
            let successors = match self.insts[end - 1].1.op.info().meaning {
                Meaning::EndProgram | Meaning::SetPc => [None; 2],
                Meaning::Branch(BranchCondition::Always) => [target(end - 1).and_then(block_of), None],
                Meaning::Branch(BranchCondition::ExecZero) if self.leaves_one_lane(end - 1) => [next, None],
                Meaning::Branch(_) => [next, target(end - 1).and_then(block_of)],
                _ => [next, None],
            };
            Block { start: InstId::new(start), end: InstId::new(end), successors }
        });
        // Where a branch goes is in the blocks; in messages it would change with every byte.
        let plain = |inst: &Inst| match inst.op.info().meaning {
            Meaning::Branch(_) => inst.imm(0),
            _ => *inst,
        };
        MachineBody {
            blocks: blocks.collect(),
            insts: self.insts.iter().map(|(_, i)| MachineInst { inst: plain(i), source: 0 }).collect(),
            ..MachineBody::default()
        }
    }

    fn faults(&self, known: &Known) -> Vec<MachineFault> {
        self.faults_of(&self.body(), |barrier| known.is_idle(barrier))
    }

    /// The faults of a body that is the function's but for single instructions.
    fn faults_of(&self, body: &MachineBody, is_idle: impl Fn(usize) -> bool) -> Vec<MachineFault> {
        let mut before = body.clone();
        for (number, at) in barriers(body).into_iter().enumerate() {
            let imm = if is_idle(number) { BARRIER_WITHOUT_WAITS } else { 0 };
            before.insts[at].inst.imm = imm;
        }
        let mut faults = check_waits(&before, body, self.arch, LdsLoads::Anywhere);
        faults.extend(check_hazards(body, self.arch));
        if self.retries {
            faults.extend(check_replay(body));
        }
        faults
    }
}
