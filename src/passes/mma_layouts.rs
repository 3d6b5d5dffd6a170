//! Matrix instructions as sources of layouts: which element of their operands and results each lane holds.

use bevy_ecs::prelude::*;
use smallvec::SmallVec;

use super::element_layouts::{LayoutNodes, MAX_ACCESS_BYTES, too_large, wave_modes};
use super::facts::Geometry;
use super::infer_types::MmaDims;
use crate::ir::diagnostic::Diagnostic;
use crate::ir::kernel::DimTable;
use crate::ir::layout::{Dim, Layout, Mma, Mode, Source};
use crate::ir::node::*;
use crate::ir::types::DType;

/// A matrix instruction as a source of layouts.
pub(super) struct MmaSource<'a> {
    pub(super) mma: Mma,
    pub(super) roles: MmaDims,
    pub(super) geometry: &'a Geometry,
    pub(super) dims: &'a DimTable,
    /// Consecutive columns of the result that a lane holds, in as many replicas.
    pub(super) columns: u32,
    /// Consecutive rows, likewise.
    pub(super) rows: u32,
    /// Consecutive elements of k that a lane holds at a time, if more are of no use: where reads of LDS turn
    /// both factors, neighbouring lanes then load neighbouring rows, which padding keeps in different banks.
    pub(super) run: Option<u32>,
}

impl MmaSource<'_> {
    pub(super) fn extent(&self, dim: Dim) -> Result<u32, Diagnostic> {
        self.geometry.dim(dim).wave_extent().ok_or_else(|| {
            let name = self.dims.name(dim);
            Diagnostic::invalid(format!("the dynamic dimension {name} is not tiled"))
                .help(format!("add workgroup({name}, ..) or tile({name}, ..)"))
        })
    }

    pub(super) fn check(
        &self,
        nodes: &LayoutNodes,
        operands: &Operands,
        acc: &ValueType,
    ) -> Result<(), Diagnostic> {
        let mma = self.mma;
        let dtype = |at: usize| nodes.get(operands.0[at]).ok().and_then(|n| n.2.dtype);
        let inputs = [dtype(0), dtype(1)];
        if inputs != mma.inputs().map(Some) || acc.dtype != Some(mma.accumulator()) {
            let name = |d: Option<DType>| d.map_or("?", DType::name);
            let both = |[left, right]: [&str; 2]| match left == right {
                true => left.to_owned(),
                false => format!("{left} and {right}"),
            };
            return Err(Diagnostic::invalid(format!(
                "{} multiplies {} into {}, but the operands are {} and the accumulator {}",
                self.mma.name(),
                both(mma.inputs().map(DType::name)),
                mma.accumulator(),
                both(inputs.map(name)),
                name(acc.dtype)
            ))
            .help("choose the matrix instruction for these dtypes, or cast"));
        }
        for (dim, step) in [(self.roles.m, mma.m()), (self.roles.n, mma.n()), (self.roles.k, mma.k())] {
            let extent = self.extent(dim)?;
            if extent % step != 0 {
                let name = self.dims.name(dim);
                let text = format!(
                    "a wave covers {extent} elements of {name}, which is not a multiple of the {step} of {}",
                    self.mma.name()
                );
                let symbol = self.geometry.dim(dim).symbol;
                let entry = self.geometry.dim(dim);
                let is_whole = entry.tiling.is_none() && entry.workgroup.is_none() && entry.wave.is_none();
                if is_whole {
                    return Err(Diagnostic::invalid(text).about(symbol).help(format!(
                        "divide {name} into tiles of a multiple of {step}, with `workgroup` or `tile`: the last \
                         one may be ragged"
                    )));
                }
                return Err(Diagnostic::invalid(text).about(symbol).help(format!(
                    "use a larger tile of {name}, fewer waves, or a smaller matrix instruction"
                )));
            }
        }
        Ok(())
    }

    /// Layouts of lhs, rhs and accumulator, with `widen` consecutive steps of k in one lane.
    pub(super) fn layouts(
        &self,
        nodes: &LayoutNodes,
        operands: &Operands,
        acc: &ValueType,
        widen: u32,
    ) -> Result<[Layout; 3], Diagnostic> {
        let MmaDims { m, n, k } = self.roles;
        let mma = self.mma;
        let lhs = self.in_runs(self.widened(&self.mma.a_layout(m, k), widen));
        let rhs = self.in_runs(self.widened(&self.mma.b_layout(n, k), widen));
        let k_step = self.step(k, mma.k() * widen)?;
        let (m_step, n_step) = (self.step(m, mma.m() * self.rows)?, self.step(n, mma.n() * self.columns)?);
        let column = Mode::new(Source::Replica, self.columns, n, 1);
        let row = Mode::new(Source::Replica, self.rows, m, 1);
        let lhs_dims = &nodes.get(operands.0[0])?.2.dims;
        let rhs_dims = &nodes.get(operands.0[1])?.2.dims;
        Ok([
            self.replicated(self.apart(lhs), &[k_step, row, m_step], lhs_dims)?,
            self.replicated(self.apart(rhs), &[k_step, column, n_step], rhs_dims)?,
            self.replicated(
                self.apart(self.widened(&self.mma.c_layout(m, n), 1)),
                &[column, n_step, row, m_step],
                &acc.dims,
            )?,
        ])
    }

    /// The replicas along a dimension of which an instruction takes `step` elements.
    fn step(&self, dim: Dim, step: u32) -> Result<Mode, Diagnostic> {
        Ok(Mode::new(Source::Replica, self.extent(dim)? / step, dim, step))
    }

    /// Lanes and registers as many rows and columns from one another as each holds in its replicas.
    fn apart(&self, mut modes: SmallVec<[Mode; 12]>) -> SmallVec<[Mode; 12]> {
        for mode in &mut modes {
            if mode.dim == Some(self.roles.n) {
                mode.stride *= self.columns;
            } else if mode.dim == Some(self.roles.m) {
                mode.stride *= self.rows;
            }
        }
        modes
    }

    /// How many consecutive steps of k one lane holds at most. The sum over k does not depend on which k a
    /// lane holds as long as lhs and rhs agree, so a lane takes enough consecutive elements for the widest
    /// memory access.
    pub(super) fn widening(&self) -> Result<u32, Diagnostic> {
        let mma = self.mma;
        let layout = self.mma.a_layout(self.roles.m, self.roles.k);
        let bytes = layout.extent(Source::Register) * mma.input().bytes();
        let steps = self.extent(self.roles.k)? / mma.k();
        // Lanes that multiply one by one hold a whole row of each of their products: they read half as much,
        // so that two waves have the registers for a tile.
        let most = if mma.is_of_lanes() { MAX_ACCESS_BYTES / 2 } else { MAX_ACCESS_BYTES };
        let mut widen = 1;
        while bytes * widen * 2 <= most && steps.is_multiple_of(widen * 2) {
            widen *= 2;
        }
        Ok(widen)
    }

    /// Lanes take turns in k after each run; without runs, as they are.
    fn in_runs(&self, mut modes: SmallVec<[Mode; 12]>) -> SmallVec<[Mode; 12]> {
        let first = |modes: &[Mode], source: Source| {
            modes.iter().position(|mode| mode.source == source && mode.dim == Some(self.roles.k))
        };
        let places = [Source::Register, Source::Lane].map(|source| first(&modes, source));
        if let (Some(run), [Some(held), Some(lanes)]) = (self.run, places)
            && modes[held].extent > run
            && modes[held].extent.is_multiple_of(run)
        {
            let more = modes[held].extent / run;
            modes[held].extent = run;
            modes[lanes].stride = run;
            let rest = Mode::new(Source::Register, more, self.roles.k, run * modes[lanes].extent);
            modes.insert(held + 1, rest);
        }
        modes
    }

    fn widened(&self, layout: &Layout, widen: u32) -> SmallVec<[Mode; 12]> {
        let k = Some(self.roles.k);
        let wide = |mode: &Mode| match (mode.dim == k, mode.source == Source::Register) {
            (true, true) => Mode { extent: mode.extent * widen, ..*mode },
            (true, false) => Mode { stride: mode.stride * widen, ..*mode },
            (false, _) => *mode,
        };
        let mut modes: SmallVec<[Mode; 12]> = layout.modes().iter().map(wide).collect();
        // An instruction that takes one element of k from each lane has no mode to widen.
        let widened = layout.modes().iter().any(|mode| mode.source == Source::Register && mode.dim == k);
        if widen > 1 && !widened {
            modes.insert(0, Mode::new(Source::Register, widen, self.roles.k, 1));
        }
        modes
    }

    /// Adds replicas for the rest of the wave tile (fastest first in `steps`, then dims that the instruction
    /// does not have) and waves.
    fn replicated(
        &self,
        mut modes: SmallVec<[Mode; 12]>,
        steps: &[Mode],
        dims: &[Dim],
    ) -> Result<Layout, Diagnostic> {
        modes.extend_from_slice(steps);
        for &dim in dims {
            if steps.iter().all(|step| step.dim != Some(dim)) {
                let extent = self.extent(dim)?;
                modes.push(Mode::new(Source::Replica, extent, dim, 1));
            }
        }
        modes.retain(|mode| mode.source != Source::Replica || mode.extent > 1);
        modes.extend(wave_modes(self.geometry, dims));
        Layout::new(modes).map_err(too_large)
    }
}
