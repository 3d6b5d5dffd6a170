//! Products of results of products. Which k a lane holds is free as long as both factors agree. A factor
//! that is read takes any k, in reads that are as wide as the lane's consecutive elements. One that is
//! computed, as the result of another product is, has a layout already: converting it costs instructions,
//! and often none are needed. A lane holds four consecutive rows of a result and, of 32 rows, the same again
//! eight rows further on; of its factors an instruction takes four or eight elements from each lane. So lanes
//! take turns in k after runs of four ([`MmaSource::run`]), and a factor's registers are those of the result,
//! or, where a result has fewer rows than an instruction takes, those of two of its tiles.
//!
//! The order of sums is that of the k which an instruction takes, as always (`reduction_trees`).

use super::access_costs::access_clocks;
use super::layout_sources::LayoutSources;
use super::layout_spread::Spread;
use super::lds_tiles::LdsTiles;
use super::mma_layouts::MmaSource;
use super::store_columns::{FactorOrder, cast_from};
use crate::ir::diagnostic::Diagnostic;
use crate::ir::layout::{Layout, Source};
use crate::ir::node::*;
use crate::ir::types::AddressSpace;
use crate::passes::facts::TransposingRead;

/// Layouts of lhs, rhs and accumulator.
type ProductLayouts = [Layout; 3];

impl LayoutSources<'_, '_, '_> {
    /// Layouts of lhs, rhs and accumulator of a product: a factor that has a layout already keeps it if the
    /// instruction can take it so, and if the other one is not read at a greater cost for it.
    pub(super) fn product_layouts(
        &self,
        spread: &Spread<'_, '_, '_>,
        source: &MmaSource<'_>,
        operands: &Operands,
        acc: &ValueType,
    ) -> Result<ProductLayouts, Diagnostic> {
        let widest = source.widening()?;
        let factors = [operands.at(0)?, operands.at(1)?];
        let mut made = factors.map(|factor| spread.found[factor].map(|found| spread.layout(found)));
        let LayoutSources { nodes, accessed, geometry, .. } = *self;
        let tiles = LdsTiles { nodes, accessed, geometry };
        for (made, factor) in made.iter_mut().zip(factors) {
            // Out of LDS it is read once more.
            if made.is_some() && tiles.are_read_again_by(cast_from(factor, self.nodes)?)? {
                *made = None;
            }
        }
        if made.iter().all(Option::is_none) {
            return source.layouts(self.nodes, operands, acc, widest);
        }
        let mut widen = widest;
        while widen > 0 {
            let layouts = source.layouts(self.nodes, operands, acc, widen)?;
            if are_held(made, &layouts, Layout::holds_pieces_of) {
                return Ok(layouts);
            }
            widen /= 2;
        }
        let usual = source.layouts(self.nodes, operands, acc, widest)?;
        if !source.has_runs() {
            return Ok(usual);
        }
        let chained = ChainedProduct { sources: self, source, operands, acc, made };
        chained.cheapest(usual)
    }
}

/// A product with a factor that has a layout.
struct ChainedProduct<'a, 'w, 's> {
    sources: &'a LayoutSources<'a, 'w, 's>,
    source: &'a MmaSource<'a>,
    operands: &'a Operands,
    acc: &'a ValueType,
    made: [Option<&'a Layout>; 2],
}

impl ChainedProduct<'_, '_, '_> {
    /// The layouts that cost least: the usual ones, or those of which the lanes have the elements that are
    /// there already.
    fn cheapest(&self, usual: ProductLayouts) -> Result<ProductLayouts, Diagnostic> {
        let (mma, steps) = (self.source.mma, self.source.steps()?);
        let each = mma.input_elements(0);
        let registers = self.made.iter().flatten().map(|made| made.extent(Source::Register)).max();
        let widest = (registers.unwrap_or(1) / each).max(1).ilog2().min(steps.trailing_zeros());
        let shortest = self.shortest_run()?;
        let (mut least, mut best) = (self.cost(&usual)?, usual);
        // Of equal ones the widest, in which registers are most likely to keep their order.
        for widen in (0..=widest).rev().map(|power| 1 << power) {
            let runs = (0..=(each * widen).ilog2()).map(|power| mma.held(0).elements << power);
            for run in runs.filter(|run| run % shortest == 0) {
                let source = MmaSource { run: Some(run), ..*self.source };
                let layouts = source.layouts(self.sources.nodes, self.operands, self.acc, widen)?;
                if !are_held(self.made, &layouts, Layout::lanes_hold_alike) {
                    continue;
                }
                let cost = self.cost(&layouts)?;
                if cost < least {
                    (least, best) = (cost, layouts);
                }
            }
        }
        Ok(best)
    }

    /// The fewest consecutive elements with which reads of LDS that turn a factor still do so.
    fn shortest_run(&self) -> Result<u32, Diagnostic> {
        for factor in 0..2 {
            if self.order(factor)? == FactorOrder::TurnedByReads {
                return Ok(TransposingRead::elements_of(self.source.mma.inputs()[factor].bits()));
            }
        }
        Ok(1)
    }

    fn order(&self, factor: usize) -> Result<FactorOrder, Diagnostic> {
        self.sources.order_in_memory(self.source, self.operands, factor)
    }

    /// clk to have the factors in these layouts.
    fn cost(&self, layouts: &ProductLayouts) -> Result<f64, Diagnostic> {
        let costs = self.sources.costs;
        let mut clk = 0.0;
        for (factor, layout) in layouts[..2].iter().enumerate() {
            let ty = self.sources.nodes.get(self.operands.at(factor)?)?.2;
            clk += match self.made[factor] {
                Some(made) if made.holds_pieces_of(layout) => 0.0,
                Some(made) => costs.best_way(made, layout, ty).cost.clk,
                None => self.reading(factor, layout, ty)?,
            };
        }
        Ok(clk)
    }

    /// clk to read a factor in some layout. What is computed from something that is read counts as that.
    fn reading(&self, factor: usize, layout: &Layout, ty: &ValueType) -> Result<f64, Diagnostic> {
        let LayoutSources { nodes, accessed, costs, .. } = *self.sources;
        let each = ty.dtype.map_or(4, |dtype| dtype.bytes());
        let (op, operands, ..) = nodes.get(self.operands.at(factor)?)?;
        if op.loads() {
            let memory = operands.last()?;
            let is_global = accessed.get(memory)?.1.is_some_and(|space| space.0 == AddressSpace::Global);
            if let (true, Some(&inner)) = (is_global, nodes.get(memory)?.2.dims.last()) {
                return Ok(access_clocks(costs.device, Op::Read, layout, inner, each));
            }
        }
        // Reads that turn what they read are as wide for any run that they give.
        Ok(match self.order(factor)? {
            FactorOrder::TurnedByReads => 0.0,
            FactorOrder::Straight | FactorOrder::Turned | FactorOrder::TurnedInLanes => {
                costs.lds_reads(layout, self.source.roles.k[factor].innermost(), each)
            }
        })
    }
}

/// Whether the factors that have a layout have one that goes with that of the instruction.
fn are_held(
    made: [Option<&Layout>; 2],
    layouts: &ProductLayouts,
    goes: fn(&Layout, &Layout) -> bool,
) -> bool {
    made.iter().zip(layouts).all(|(made, layout)| made.is_none_or(|made| goes(made, layout)))
}
