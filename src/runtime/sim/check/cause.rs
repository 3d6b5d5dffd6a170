//! Findings by their cause: code that is unrolled, or that one macro has made, does the same wrong thing at
//! hundreds of places, and what is wrong besides must not be lost among them.
//!
//! What depends on which instructions follow each other (wait states, errata) has the same cause wherever the
//! same two instructions do. What depends on data (races, missing waits, undefined values) has the same cause
//! on the same lines of the author, because another line means other data; where the object names no lines,
//! the instructions stand for them. In both, what is wrong has to be the same but for addresses, registers of
//! one kind and numbers.

use std::fmt;

use super::super::error::MemoryAccess;
use super::finding::{Finding, FindingKind, Memory, Site, Touch, Unordered, Use, WaitCounter};

/// The findings of one cause.
#[derive(Clone, PartialEq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct FindingCause<'a> {
    /// The first of them, by address of the instruction.
    #[cfg_attr(feature = "serde", serde(flatten))]
    pub first: &'a Finding,
    /// The others, in the same order.
    pub more: Vec<&'a Finding>,
}

/// What findings of one cause have in common; it can be compared with those of other launches.
#[derive(Copy, Clone, PartialEq, Debug)]
pub struct CauseKey<'a> {
    kernel: &'a str,
    what: WrongThing<'a>,
    at: CausePlace<'a>,
    other: Option<CausePlace<'a>>,
}

/// A kind of finding without what differs from place to place.
#[derive(Copy, Clone, PartialEq, Debug)]
enum WrongThing<'a> {
    Wait(Touch, WaitCounter),
    /// On one line it is any register, as in all copies of an unrolled loop; otherwise one of this name.
    UndefinedRegister(Option<&'a str>, Use),
    UndefinedMemory(Memory, Use),
    Unordered(Memory, MemoryAccess, MemoryAccess, Unordered),
    Outside(Memory, MemoryAccess, u64),
    Access(KindOfFinding<'a>, MemoryAccess, u64),
    Other(KindOfFinding<'a>),
}

/// Which kind it is: all its data come after it.
#[derive(Copy, Clone, Debug)]
struct KindOfFinding<'a>(&'a FindingKind);

impl PartialEq for KindOfFinding<'_> {
    fn eq(&self, other: &Self) -> bool {
        use FindingKind::{Erratum, Unsupported};
        match (self.0, other.0) {
            (Erratum(one), Erratum(another)) => one == another,
            (Unsupported { what: one }, Unsupported { what: another }) => one == another,
            (one, another) => std::mem::discriminant(one) == std::mem::discriminant(another),
        }
    }
}

/// A place in the code, as far as it tells causes from each other.
#[derive(Copy, Clone, PartialEq, Debug)]
enum CausePlace<'a> {
    Line(&'a str, u32),
    Opcode(&'a str),
}

impl Finding {
    /// What it has in common with others of the same cause.
    pub fn cause(&self) -> CauseKey<'_> {
        let place = match self.kind.goes_by_instructions() {
            true => CausePlace::opcode,
            false => CausePlace::line,
        };
        let at = place(&self.at);
        CauseKey {
            kernel: &self.kernel,
            what: WrongThing::of(&self.kind, at),
            at,
            other: self.other.as_ref().map(place),
        }
    }
}

impl<'a> CausePlace<'a> {
    fn opcode(site: &'a Site) -> CausePlace<'a> {
        CausePlace::Opcode(site.instruction.split_whitespace().next().unwrap_or_default())
    }

    /// Line 0 is code that belongs to no line.
    fn line(site: &'a Site) -> CausePlace<'a> {
        match site.source.as_ref().filter(|source| source.line > 0) {
            Some(source) => CausePlace::Line(&source.file, source.line),
            None => CausePlace::opcode(site),
        }
    }
}

impl FindingKind {
    /// True if the instructions themselves are wrong, whatever their data.
    fn goes_by_instructions(&self) -> bool {
        use FindingKind::*;
        matches!(
            self,
            Hazard { .. }
                | ToleratedHazard { .. }
                | StaleVccz
                | ClearedHalf
                | Erratum(_)
                | Replay
                | WaitBeforeBarrier
                | Unsupported { .. }
        )
    }
}

impl<'a> WrongThing<'a> {
    fn of(kind: &'a FindingKind, at: CausePlace<'a>) -> WrongThing<'a> {
        use FindingKind::*;
        match kind {
            MissingWait { touch, counter, .. } => WrongThing::Wait(*touch, *counter),
            UninitialisedRegister { register, used_in } => {
                let register = matches!(at, CausePlace::Opcode(_)).then_some(register.as_str());
                WrongThing::UndefinedRegister(register, *used_in)
            }
            UninitialisedMemory { memory, used_in, .. } => WrongThing::UndefinedMemory(*memory, *used_in),
            Race { memory, first, then, reason, .. } => {
                WrongThing::Unordered(*memory, *first, *then, *reason)
            }
            OutOfBounds { memory, access, base, .. } => WrongThing::Outside(*memory, *access, *base),
            Freed { access, base, .. } | LeavesBuffer { access, base, .. } => {
                WrongThing::Access(KindOfFinding(kind), *access, *base)
            }
            Misaligned { access, .. } => WrongThing::Access(KindOfFinding(kind), *access, 0),
            WideDescriptor { base, .. } => WrongThing::Access(KindOfFinding(kind), MemoryAccess::Load, *base),
            RegisterBeyondAllocation { .. }
            | RepeatedStore { .. }
            | UnreadStore { .. }
            | Hazard { .. }
            | ToleratedHazard { .. }
            | StaleVccz
            | ClearedHalf
            | Erratum(_)
            | Replay
            | DivergentBarrier { .. }
            | EmptyBarrier
            | PastEnd
            | IllegalInstruction
            | WaitBeforeBarrier
            | Endless { .. }
            | NoProgress
            | UnmetBarrier
            | TimedOut(_)
            | Trap { .. }
            | Unsupported { .. } => WrongThing::Other(KindOfFinding(kind)),
        }
    }
}

/// Findings by cause, in the order of the first of each.
pub(super) fn grouped(findings: &[Finding]) -> Vec<FindingCause<'_>> {
    let mut causes: Vec<(CauseKey<'_>, FindingCause<'_>)> = Vec::new();
    for finding in findings {
        let key = finding.cause();
        match causes.iter_mut().find(|(known, _)| *known == key) {
            Some((_, cause)) => cause.more.push(finding),
            None => causes.push((key, FindingCause { first: finding, more: Vec::new() })),
        }
    }
    causes.into_iter().map(|(_, cause)| cause).collect()
}

/// How many of the further places are named.
const NAMED: usize = 4;

/// A line that says where else something is wrong, after the text of the first finding; nothing if it is
/// nowhere else.
#[derive(Copy, Clone, Debug)]
pub struct MorePlaces<'a>(pub &'a [u64]);

impl fmt::Display for MorePlaces<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let count = self.0.len();
        if count == 0 {
            return Ok(());
        }
        // One instruction may be wrong beside several others.
        let mut places = self.0.to_vec();
        places.sort_unstable();
        places.dedup();
        let plural = |count: usize| if count == 1 { "" } else { "s" };
        match places.len() {
            all if all == count => write!(f, "\n   = and {count} more place{} like it:", plural(count))?,
            some => write!(f, "\n   = and {count} more like it, at {some} place{}:", plural(some))?,
        }
        for (index, address) in places.iter().take(NAMED).enumerate() {
            write!(f, "{} {address:#x}", if index == 0 { "" } else { "," })?;
        }
        if places.len() > NAMED { f.write_str(", ..") } else { Ok(()) }
    }
}

impl fmt::Display for FindingCause<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let more: Vec<u64> = self.more.iter().map(|finding| finding.at.address).collect();
        write!(f, "{}{}", self.first, MorePlaces(&more))
    }
}

#[cfg(test)]
mod tests {
    use super::super::finding::{AdviceReader, FindingSource, Lanes};
    use super::*;

    fn site(instruction: &str, address: u64, line: Option<u32>) -> Site {
        let source = line.map(|line| FindingSource { file: "k.hip".to_owned(), line, column: 0 });
        Site { instruction: instruction.to_owned(), address, source }
    }

    fn finding(kind: FindingKind, at: Site, other: Option<Site>) -> Finding {
        Finding {
            kind,
            kernel: "k".to_owned(),
            at,
            other,
            workgroup: [0; 3],
            wave: 0,
            lanes: Lanes(0),
            count: 1,
            stored: None,
            reader: AdviceReader::default(),
        }
    }

    fn race(at: u64, lines: [Option<u32>; 2], opcodes: [&str; 2]) -> Finding {
        let kind = FindingKind::Race {
            memory: Memory::Lds,
            first: MemoryAccess::Store,
            then: MemoryAccess::Load,
            address: at,
            reason: Unordered::NoBarrier,
            other_wave: 1,
            other_workgroup: [0; 3],
        };
        let [then, first] = [site(opcodes[0], at, lines[0]), site(opcodes[1], 0, lines[1])];
        finding(kind, then, Some(first))
    }

    fn sizes(findings: &[Finding]) -> Vec<usize> {
        grouped(findings).iter().map(|cause| 1 + cause.more.len()).collect()
    }

    #[test]
    fn races_go_by_lines_where_there_are_some() {
        let (read, write) = ("ds_read_b32 v0, v1", "ds_write_b32 v1, v0");
        let wide = ("ds_read_b128 v[0:3], v1", "ds_write_b32 v2, v0");
        let on = |at, lines: [u32; 2], opcodes| race(at, lines.map(Some), opcodes);
        // Copies of one line may read different widths; another line is another race.
        let all = [
            on(8, [5, 4], [read, write]),
            on(16, [5, 4], [wide.0, wide.1]),
            on(24, [7, 4], [read, write]),
            on(32, [5, 9], [read, write]),
        ];
        assert_eq!(sizes(&all), [2, 1, 1]);
        let plain = |at, opcodes| race(at, [None, None], opcodes);
        let all = [plain(8, [read, write]), plain(16, [read, wide.1]), plain(24, [wide.0, write])];
        assert_eq!(sizes(&all), [2, 1]);
    }

    #[test]
    fn wait_states_go_by_instructions_and_undefined_values_by_registers() {
        let hazard = |line| {
            let kind = FindingKind::Hazard { needed: 2, present: line % 2 };
            let compare = site("v_cmp_lt_i32_e64 s[0:1], v0, v1", 4, Some(line));
            finding(kind, site("v_readlane_b32 s2, v0, s0", 8, Some(line)), Some(compare))
        };
        assert_eq!(sizes(&[hazard(1), hazard(2), hazard(3)]), [3]);
        let undefined = |register: &str, line| {
            let kind =
                FindingKind::UninitialisedRegister { register: register.to_owned(), used_in: Use::Store };
            finding(kind, site("v_add_f32 v0, v1, v2", 8, line), None)
        };
        assert_eq!(sizes(&[undefined("v1", None), undefined("v2", None), undefined("v1", None)]), [2, 1]);
        assert_eq!(
            sizes(&[undefined("v1", Some(3)), undefined("v2", Some(3)), undefined("v1", Some(4))]),
            [2, 1]
        );
    }

    #[test]
    fn a_few_of_many_places_are_named() {
        let text = |places: &[u64]| MorePlaces(places).to_string();
        assert_eq!(text(&[]), "");
        assert_eq!(text(&[16]), "\n   = and 1 more place like it: 0x10");
        assert_eq!(text(&[1, 2, 3, 4, 5]), "\n   = and 5 more places like it: 0x1, 0x2, 0x3, 0x4, ..");
        assert_eq!(text(&[8, 8, 8]), "\n   = and 3 more like it, at 1 place: 0x8");
        assert_eq!(text(&[8, 8, 9]), "\n   = and 3 more like it, at 2 places: 0x8, 0x9");
    }
}
