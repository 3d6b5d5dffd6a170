//! The passes over machine code, in the order in which they run. Each row has the function of the pass and
//! the check that the machine verifier makes of its result.

use super::Compilation;
use crate::codegen::lower::{self, preload};
use crate::codegen::machine::MachineBody;
use crate::codegen::machine::branches::drop_branches_to_next;
use crate::codegen::machine::check::{
    Allocated, MachineFault, check_allocation, check_hazards, check_operands, check_order, check_replay,
    check_waits,
};
use crate::codegen::machine::hazards::Xnack;
use crate::codegen::machine::interleave::interleave;
use crate::codegen::machine::scratch_entry::{EntrySgprs, find_scratch};
use crate::codegen::machine::waits::LdsLoads;
use crate::codegen::target::{DeviceModel, FlatScratch};
use crate::ir::diagnostic::Diagnostic;
use crate::passes::PassResult;
use crate::passes::facts::{Geometry, ScheduledLoops};
use crate::passes::schedule::estimate::steps::CodeOrder;
use crate::passes::schedule::strategies::rows::{NONE, named};

/// A pass over machine code.
pub struct MachinePass {
    /// Name in reports and in `--emit machine --after`.
    pub name: &'static str,
    pub(super) run: fn(&mut Compilation) -> PassResult,
    /// The faults of its result, given the code before it.
    pub(super) check: fn(&Compilation, &MachineBody) -> Vec<MachineFault>,
}

/// All machine passes in the order in which they run.
pub const MACHINE_PASSES: &[MachinePass] = &[
    // The result of lowering is checked together with the allocation: rules of instructions are about
    // physical registers.
    MachinePass { name: "lower", run: |c| c.lower(), check: |_, _| Vec::new() },
    MachinePass { name: "interleave", run: |c| c.interleave(), check: |c, before| c.check_order(before) },
    MachinePass { name: "allocate", run: |c| c.allocate(), check: |c, before| c.check_allocation(before) },
    MachinePass { name: "scratch", run: |c| c.find_scratch(), check: |c, _| c.check_operands() },
    MachinePass { name: "drop_branches", run: |c| c.drop_branches(), check: |c, _| c.check_operands() },
    MachinePass { name: "waits", run: |c| c.insert_waits(), check: |c, before| c.check_waits(before) },
    MachinePass { name: "hazards", run: |c| c.resolve_hazards(), check: |c, _| c.check_hazards() },
];

impl Compilation<'_> {
    pub(super) fn lower(&mut self) -> PassResult {
        self.lowered = lower::lower(self.workspace, &mut self.machine.body)?;
        Ok(())
    }

    /// Without a schedule loops stay as they were written.
    fn interleave(&mut self) -> PassResult {
        let target = self.options.target();
        let scheduled = self.workspace.world.get::<ScheduledLoops>(self.workspace.root);
        let Some(scheduled) = scheduled else { return Ok(()) };
        let waves = self.fact::<Geometry>()?.wave_count();
        let strategy = named(scheduled.applied).unwrap_or(&NONE);
        let marked = &self.lowered.loops.interleaved;
        if strategy.code_order(waves, &target) == CodeOrder::Interleaved || !marked.is_empty() {
            interleave(&mut self.machine.body, marked, (target.arch, DeviceModel::nearest(target)));
        }
        Ok(())
    }

    fn check_order(&self, before: &MachineBody) -> Vec<MachineFault> {
        check_order(before, &self.machine.body)
    }

    fn allocate(&mut self) -> PassResult {
        let limits = self.limits()?;
        let machine = &mut *self.machine;
        self.allocation = machine
            .allocator
            .allocate(&mut machine.body, &limits, &self.lowered.fixed)
            .map_err(|error| self.out_of_registers(&limits, error))?;
        self.deny_spills(&limits)
    }

    fn check_allocation(&self, before: &MachineBody) -> Vec<MachineFault> {
        let mut faults = check_allocation(&Allocated {
            before,
            after: &self.machine.body,
            origins: self.machine.allocator.origins(),
            inputs: &self.lowered.fixed,
            scratch_bytes: self.machine.allocator.spills().scratch_bytes,
        });
        faults.extend(self.check_operands());
        faults
    }

    /// A kernel that spills finds its scratch before anything else.
    fn find_scratch(&mut self) -> PassResult {
        let target = self.options.target();
        if target.flat_scratch == FlatScratch::Absolute && self.allocation.spills.scratch_bytes > 0 {
            let lowered = &self.lowered;
            let ids = lowered.workgroup_ids.iter().filter(|wanted| **wanted).count() as u32;
            let entry = EntrySgprs {
                pointer: if lowered.kernarg_bytes > 0 { preload::FIRST_SGPR } else { 0 },
                others: lowered.preloaded_dwords + ids,
            };
            find_scratch(&mut self.machine.body, &entry)
                .ok_or_else(|| Diagnostic::bug("a loop around the entry of a kernel"))?;
        }
        Ok(())
    }

    fn drop_branches(&mut self) -> PassResult {
        drop_branches_to_next(&mut self.machine.body);
        Ok(())
    }

    fn check_operands(&self) -> Vec<MachineFault> {
        let target = self.options.target();
        target.instruction_sets().iter().flat_map(|&set| check_operands(&self.machine.body, set)).collect()
    }

    fn insert_waits(&mut self) -> PassResult {
        let lds_loads = lds_loads(self.fact()?);
        let machine = &mut *self.machine;
        machine.waits.set_lds_loads(lds_loads);
        machine.waits.insert(&mut machine.body);
        Ok(())
    }

    pub(super) fn check_waits(&self, before: &MachineBody) -> Vec<MachineFault> {
        let lds_loads = self.fact().map_or(LdsLoads::Anywhere, lds_loads);
        check_waits(before, &self.machine.body, self.options.target().arch, lds_loads)
    }

    fn resolve_hazards(&mut self) -> PassResult {
        self.machine.hazards.set_xnack(self.xnack());
        self.machine.hazards.resolve(&mut self.machine.body);
        Ok(())
    }

    pub(super) fn check_hazards(&self) -> Vec<MachineFault> {
        let target = self.options.target();
        let of = |&set| check_hazards(&self.machine.body, set);
        let mut faults: Vec<MachineFault> = target.instruction_sets().iter().flat_map(of).collect();
        if self.xnack() == Xnack::MayBeOn {
            faults.extend(check_replay(&self.machine.body));
        }
        faults
    }
}

/// Waves that share LDS see there what was loaded before a barrier; a wave that is alone needs none.
fn lds_loads(geometry: &Geometry) -> LdsLoads {
    match geometry.wave_count() {
        1 => LdsLoads::Anywhere,
        _ => LdsLoads::AfterBarriers,
    }
}
