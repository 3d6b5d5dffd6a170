//! Matrix instructions as sources of layouts: which element of their operands and results each lane holds.
//!
//! `Op::ScaledMma` is `Op::Mma` with two more operands, the scales along K/32, so what asks for products
//! (`Op::product`, `OpClass::Contraction`) has both. An `Mma` says what registers hold of each of its
//! factors (`held`, `held_k`), whose dtypes are independent. `pack_small_floats` gives products the bytes
//! and words of packed factors as they lie in memory, so each factor is summed along a dimension of its own
//! (`MmaDims::k`). `MmaSource` lays out scales for the lanes in which the instruction wants them. An
//! instruction may multiply any block of k, as long as factors and scales agree, so a lane holds up to four
//! consecutive blocks of a row, one for each of as many instructions (`MmaSource::blocks`): one read brings
//! four scales to a register, and the op_sel of the instruction is the piece's `slice`.
//!
//! Of 6-bit floats a unit of 32 has eight registers in a layout, of which the instruction takes six.

use bevy_ecs::prelude::*;
use smallvec::{SmallVec, smallvec};

use super::element_layouts::{LayoutNodes, MAX_ACCESS_BYTES, too_large, wave_modes};
use crate::ir::diagnostic::Diagnostic;
use crate::ir::kernel::DimTable;
use crate::ir::layout::{Dim, Layout, Mma, Mode, SCALED_BLOCK, Source};
use crate::ir::node::*;
use crate::ir::nodes::Bug;
use crate::ir::type_rules::contraction::{MmaDims, SummedDim};
use crate::ir::types::DType;
use crate::passes::facts::Geometry;

/// A matrix instruction as a source of layouts.
#[derive(Copy, Clone)]
pub(super) struct MmaSource<'a> {
    pub(super) mma: Mma,
    pub(super) roles: MmaDims,
    pub(super) geometry: &'a Geometry,
    pub(super) dims: &'a DimTable,
    /// Consecutive columns of the result that a lane holds, in as many replicas.
    pub(super) columns: u32,
    /// Consecutive rows, likewise.
    pub(super) rows: u32,
    /// Registers that hold the words of a unit of each factor: where reads of LDS turn it as many as the
    /// instruction takes.
    pub(super) words: [u32; 2],
    /// Consecutive elements of k that a lane holds at a time, if more are of no use: where reads of LDS turn
    /// both factors, neighbouring lanes then load neighbouring rows, which padding keeps in different banks;
    /// and where a factor is held so already (`chained_products`).
    pub(super) run: Option<u32>,
    /// Scales of consecutive blocks of k in a lane, for as many instructions; 1 without scales.
    pub(super) blocks: u32,
}

/// Scales that a register holds.
const SCALES_HELD: u32 = 4;

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
        if inputs != [0, 1].map(|factor| Some(mma.held(factor).dtype)) || acc.dtype != Some(mma.accumulator())
        {
            let name = |d: Option<DType>| match (d, acc.dtype) {
                // Bytes of two, and words.
                (Some(DType::I8), Some(DType::F32)) => DType::F4E2M1.name(),
                (Some(DType::I32), Some(DType::F32)) => "6-bit floats",
                (d, _) => d.map_or("?", DType::name),
            };
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
        let [left, right] = self.roles.k;
        let is_divided = |axis: u32| {
            let own = self.geometry.wave_dim(axis);
            self.geometry.waves[axis as usize] > 1
                && own.is_some_and(|own| self.geometry.walked(&[left.dim], own).is_some())
        };
        if (0..3).any(is_divided) {
            let name = self.dims.name(self.geometry.loop_dim(left.dim));
            let text = format!("this product sums over {name}, of which every wave has only a part");
            return Err(Diagnostic::invalid(text)
                .about(self.geometry.dim(left.dim).symbol)
                .help(format!("leave out wave({name}, ..): every wave then sums over all of it")));
        }
        let steps = [
            (self.roles.m, mma.m()),
            (self.roles.n, mma.n()),
            (left.dim, mma.held_k(0)),
            (right.dim, mma.held_k(1)),
        ];
        for (dim, step) in steps {
            let extent = self.extent(dim)?;
            if extent % step != 0 {
                // Of bytes the author knows the elements.
                let elements =
                    self.dims.scaled_from(dim).filter(|_| dim != self.roles.m && dim != self.roles.n);
                let (dim, each) = elements.unwrap_or((dim, 1));
                let (extent, step) = (extent * each, step * each);
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
        let MmaDims { m, n, .. } = self.roles;
        let mma = self.mma;
        let lhs = self.factor(0, m, widen);
        let rhs = self.factor(1, n, widen);
        let [mut lhs_steps, mut rhs_steps] = [self.steps_along_k(0, widen)?, self.steps_along_k(1, widen)?];
        let (m_step, n_step) = (self.step(m, mma.m() * self.rows)?, self.step(n, mma.n() * self.columns)?);
        let column = Mode::new(Source::Replica, self.columns, n, 1);
        let row = Mode::new(Source::Replica, self.rows, m, 1);
        lhs_steps.extend([row, m_step]);
        rhs_steps.extend([column, n_step]);
        let lhs_dims = &nodes.get(operands.0[0])?.2.dims;
        let rhs_dims = &nodes.get(operands.0[1])?.2.dims;
        Ok([
            self.replicated(self.apart(lhs), &lhs_steps, lhs_dims)?,
            self.replicated(self.apart(rhs), &rhs_steps, rhs_dims)?,
            self.replicated(
                self.apart(self.mma.c_layout(m, n).modes().iter().copied().collect()),
                &[column, n_step, row, m_step],
                &acc.dims,
            )?,
        ])
    }

    /// How many instructions take their scales from one register of a product: a lane then holds consecutive
    /// scales, as memory does. The block of k that an instruction multiplies is free as long as factors and
    /// scales agree.
    pub(super) fn blocks_held(&self) -> Result<u32, Diagnostic> {
        let steps = self.extent(self.roles.k[0].dim)? / self.mma.held_k(0);
        Ok(1 << steps.trailing_zeros().min(SCALES_HELD.ilog2()))
    }

    /// What a lane's registers hold of a factor.
    fn factor(&self, factor: usize, row: Dim, widen: u32) -> SmallVec<[Mode; 12]> {
        let SummedDim { dim, words } = self.roles.k[factor];
        let words = words.map(|words| (words, self.words[factor]));
        let layout = self.mma.factor_layout(factor, row, dim, words);
        self.blocked(factor, self.in_runs(factor, self.widened(dim, &layout, widen)))
    }

    /// The replicas of a factor along k.
    fn steps_along_k(&self, factor: usize, widen: u32) -> Result<SmallVec<[Mode; 5]>, Diagnostic> {
        let SummedDim { dim, words } = self.roles.k[factor];
        let mut steps: SmallVec<[Mode; 5]> = smallvec![
            Mode::new(Source::Replica, self.blocks, dim, self.block(factor)),
            self.step(dim, self.mma.held_k(factor) * widen * self.blocks)?
        ];
        // A lane has all words.
        steps.extend(words.map(|words| Mode::new(Source::Replica, 1, words, 1)));
        Ok(steps)
    }

    /// Elements of k in a block, as they are held of a factor.
    fn block(&self, factor: usize) -> u32 {
        SCALED_BLOCK / self.mma.held(factor).elements
    }

    /// A factor whose blocks are as many from one another as a lane holds scales.
    fn blocked(&self, factor: usize, modes: SmallVec<[Mode; 12]>) -> SmallVec<[Mode; 12]> {
        if self.blocks == 1 {
            return modes;
        }
        let (block, k) = (self.block(factor), self.roles.k[factor].dim);
        let mut blocked = SmallVec::new();
        for mode in modes {
            let within = (block / mode.stride.max(1)).clamp(1, mode.extent);
            if mode.dim != Some(k) || within == mode.extent && mode.stride < block {
                blocked.push(mode);
                continue;
            }
            if within > 1 {
                blocked.push(Mode { extent: within, ..mode });
            }
            blocked.push(Mode {
                extent: mode.extent / within,
                stride: mode.stride * within * self.blocks,
                ..mode
            });
        }
        blocked
    }

    /// Layouts of the scales of lhs and rhs, if the product has some.
    pub(super) fn scale_layouts(
        &self,
        nodes: &LayoutNodes,
        operands: &Operands,
    ) -> Result<SmallVec<[Layout; 2]>, Diagnostic> {
        let MmaDims { m, n, .. } = self.roles;
        let acc = &nodes.get(operands.at(2)?)?.2.dims;
        let sides =
            [(m, self.mma.m() * self.rows, self.rows), (n, self.mma.n() * self.columns, self.columns)];
        let scales = operands.0.iter().skip(3);
        let of_side = |(&scales, (row, step, together)): (&Entity, (Dim, u32, u32))| {
            let dims = &nodes.get(scales)?.2.dims;
            let block = dims.iter().copied().find(|dim| !acc.contains(dim));
            let block = block.ok_or(Bug::new("scales of no blocks"))?;
            let layout = self.mma.scale_layout(row, block);
            let mut own: SmallVec<[Mode; 12]> = smallvec![Mode::new(Source::Register, self.blocks, block, 1)];
            own.extend(self.apart(layout.modes().iter().copied().collect()));
            for mode in own.iter_mut().filter(|mode| mode.source == Source::Lane && mode.dim == Some(block)) {
                mode.stride *= self.blocks;
            }
            own.retain(|mode| mode.extent > 1);
            let steps = [
                self.step(block, self.mma.k() / SCALED_BLOCK * self.blocks)?,
                Mode::new(Source::Replica, together, row, 1),
                self.step(row, step)?,
            ];
            self.replicated(own, &steps, dims)
        };
        scales.zip(sides).map(of_side).collect()
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
        let bytes = mma.input_elements(0) * mma.held(0).dtype.bytes();
        let steps = self.steps()?;
        // Lanes that multiply one by one hold a whole row of each of their products: they read half as much,
        // so that two waves have the registers for a tile.
        let most = if mma.is_of_lanes() { MAX_ACCESS_BYTES / 2 } else { MAX_ACCESS_BYTES };
        let mut widen = 1;
        while bytes * widen * 2 <= most && steps.is_multiple_of(widen * 2) {
            widen *= 2;
        }
        Ok(widen)
    }

    /// Steps of the instruction along k.
    pub(super) fn steps(&self) -> Result<u32, Diagnostic> {
        Ok(self.extent(self.roles.k[0].dim)? / self.mma.held_k(0))
    }

    /// Whether lanes may take turns in k after runs of any length. Scales belong to the k that the
    /// instruction has a lane hold, and so do factors of other widths. Of 6-bit floats a lane holds one unit.
    pub(super) fn has_runs(&self) -> bool {
        let [width, other] = self.mma.inputs().map(DType::bits);
        self.blocks == 1 && width == other && self.mma.held(0).words == 1
    }

    /// Lanes take turns in k after each run; without runs, as they are.
    fn in_runs(&self, factor: usize, mut modes: SmallVec<[Mode; 12]>) -> SmallVec<[Mode; 12]> {
        let k = self.roles.k[factor].dim;
        let run = self.run.map(|run| run / self.mma.held(factor).elements);
        let first = |modes: &[Mode], source: Source| {
            modes.iter().position(|mode| mode.source == source && mode.dim == Some(k))
        };
        let places = [Source::Register, Source::Lane].map(|source| first(&modes, source));
        if let (Some(run), [Some(held), Some(lanes)]) = (run, places)
            && modes[held].extent > run
            && modes[held].extent.is_multiple_of(run)
        {
            let more = modes[held].extent / run;
            modes[held].extent = run;
            modes[lanes].stride = run;
            let rest = Mode::new(Source::Register, more, k, run * modes[lanes].extent);
            modes.insert(held + 1, rest);
        }
        modes
    }

    fn widened(&self, k: Dim, layout: &Layout, widen: u32) -> SmallVec<[Mode; 12]> {
        let k = Some(k);
        let wide = |mode: &Mode| match (mode.dim == k, mode.source == Source::Register) {
            (true, true) => Mode { extent: mode.extent * widen, ..*mode },
            (true, false) => Mode { stride: mode.stride * widen, ..*mode },
            (false, _) => *mode,
        };
        let mut modes: SmallVec<[Mode; 12]> = layout.modes().iter().map(wide).collect();
        // An instruction that takes one element of k from each lane has no mode to widen.
        let widened = layout.modes().iter().any(|mode| mode.source == Source::Register && mode.dim == k);
        if widen > 1 && !widened {
            modes.insert(0, Mode { source: Source::Register, extent: widen, dim: k, stride: 1 });
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
