//! Machine bodies with one wait or nop less than they have: what the machine verifier must find.

use groundswell::internals::index::Neighbours;
use groundswell::internals::machine::check::{check_hazards, check_replay, check_waits};
use groundswell::internals::machine::waits::LdsLoads;
use groundswell::internals::machine::{InstId, MachineBody};
use groundswell::isa::{Arch, Opcode, WaitCounts};

/// How many of the waits or nops are needed: weakened by one, something goes wrong.
#[derive(Default)]
pub struct Seen {
    pub all: usize,
    pub needed: usize,
}

impl Seen {
    pub fn count(&mut self, needed: bool) {
        self.all += 1;
        self.needed += usize::from(needed);
    }

    /// Says how many are needed, and wants more than `least` that nearly all are.
    pub fn require(&self, least: usize, what: &str) {
        println!("{what}: {} of {} are needed", self.needed, self.all);
        // Paths that only meet on paper make a few of them stricter than they must be.
        assert!(self.all > least && self.needed * 100 >= self.all * 95, "{what}");
    }
}

/// The body without one instruction.
pub fn without(body: &MachineBody, inst: InstId) -> MachineBody {
    let kept = body.insts.iter().filter(|(index, _)| *index != inst).map(|(_, i)| *i);
    let mut body = MachineBody { insts: kept.collect(), ..body.clone() };
    for block in body.blocks.values_mut() {
        for border in [&mut block.start, &mut block.end] {
            *border = border.before().filter(|_| *border > inst).unwrap_or(*border);
        }
    }
    body
}

/// Lets each wait of `waited` leave one more in flight, in each counter that it waits for.
pub fn weaken_waits(
    before: &MachineBody,
    waited: &MachineBody,
    arch: Arch,
    loads: LdsLoads,
    seen: &mut Seen,
) {
    for (index, i) in waited.insts.iter().filter(|(_, i)| i.inst.op == Opcode::SWaitcnt) {
        let counts = WaitCounts::from_imm(i.inst.imm);
        let none = WaitCounts::NONE;
        let weaker = [
            (counts.vm < none.vm).then(|| WaitCounts { vm: counts.vm + 1, ..counts }),
            (counts.lgkm < none.lgkm).then(|| WaitCounts { lgkm: counts.lgkm + 1, ..counts }),
            (counts.exp < none.exp).then(|| WaitCounts { exp: counts.exp + 1, ..counts }),
        ];
        for counts in weaker.into_iter().flatten() {
            let mut weak = waited.clone();
            weak.insts[index].inst.imm = counts.to_imm();
            seen.count(!check_waits(before, &weak, arch, loads).is_empty());
        }
    }
}

/// Makes each nop of `resolved` one wait state shorter.
pub fn weaken_nops(resolved: &MachineBody, arch: Arch, seen: &mut Seen) {
    for (index, i) in resolved.insts.iter().filter(|(_, i)| i.inst.op == Opcode::SNop) {
        let mut weak = if i.inst.imm > 0 { resolved.clone() } else { without(resolved, index) };
        if i.inst.imm > 0 {
            weak.insts[index].inst.imm -= 1;
        }
        seen.count(!check_hazards(&weak, arch).is_empty() || !check_replay(&weak).is_empty());
    }
}
