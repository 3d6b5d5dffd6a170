//! What the steps of a compilation ask about its kernel and its target.

use std::any::type_name;

use bevy_ecs::prelude::*;

use super::Compilation;
use crate::codegen::machine::allocate::RegisterLimits;
use crate::codegen::machine::hazards::Xnack;
use crate::ir::diagnostic::{Diagnostic, Location};
use crate::ir::kernel::Locations;
use crate::passes::facts::{Geometry, ScheduledLoops};

impl Compilation<'_> {
    /// True if some loop has a schedule that is not the author's own, so that a simpler one may fit better.
    pub(super) fn has_found_schedule(&self) -> bool {
        let scheduled = self.workspace.world.get::<ScheduledLoops>(self.workspace.root);
        let is_authors = self.options.requested_schedule().strategy().option().is_none();
        scheduled.is_some_and(|loops| loops.applied != "none") && !is_authors
    }

    /// A fact about the whole kernel that passes have found.
    pub(super) fn fact<C: Component>(&self) -> Result<&C, Diagnostic> {
        let text = || format!("the kernel has no {}", type_name::<C>());
        self.workspace.world.get::<C>(self.workspace.root).ok_or_else(|| Diagnostic::bug(text()))
    }

    /// Work-items of a workgroup along the axes of the grid: waves lie one after the other on the first axis.
    pub(super) fn block(&self) -> Result<[u32; 3], Diagnostic> {
        Ok([64 * self.fact::<Geometry>()?.wave_count(), 1, 1])
    }

    /// The place at which the author wrote the node with this location number.
    pub(super) fn location(&self, source: u32) -> Option<Location> {
        self.workspace.world.get::<Locations>(self.workspace.root)?.get(source)
    }

    pub(super) fn xnack(&self) -> Xnack {
        if self.options.target_id().may_retry() { Xnack::MayBeOn } else { Xnack::Off }
    }

    /// The most registers of a wave: the target's number if all waves of a workgroup are to be resident, and
    /// the author's limit.
    pub(super) fn limits(&self) -> Result<RegisterLimits, Diagnostic> {
        let target = self.options.target();
        let waves = self.fact::<Geometry>()?.wave_count();
        let waves_per_simd = waves.div_ceil(target.simds_per_compute_unit).max(1);
        let resident = target.vgpr_file / waves_per_simd / target.vgpr_granule * target.vgpr_granule;
        Ok(RegisterLimits {
            sgprs: target.addressable_sgprs,
            vgprs: target.addressable_vgprs,
            agprs: target.addressable_agprs(),
            accumulation: target.agprs,
            vectors: self.options.vgpr_limit().map_or(resident, |limit| limit.min(resident)),
            scratch_bytes: RegisterLimits::MAX.scratch_bytes,
            flat_scratch: target.flat_scratch,
        })
    }
}
