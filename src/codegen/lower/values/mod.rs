//! What lowering knows of the kernel at a point of the code: its nodes and where their values are, numbers
//! that are the same in all lanes, what depends on the lane, and the loops around.
//!
//! - `nodes`: components of the nodes, sizes and strides
//! - `places`: where values are, and their elements
//! - `unfinished`: loaded values that instructions in front of their first use finish
//! - `contents`: how often the contents of registers are used
//! - `scalars`: symbolic expressions on the scalar unit
//! - `expressions`: those over places; `dependence`: what they depend on; `quotients`: their divisions
//! - `lanes`: digits of the lane number, and coordinates
//! - `lane_values`: values that depend on the lane alone, and registers of other lanes by them
//! - `iterations`: which iteration an access belongs to

mod contents;
pub(super) mod dependence;
pub(super) mod expressions;
mod iterations;
pub(super) mod lane_values;
mod lanes;
pub(super) mod nodes;
pub(super) mod places;
mod quotients;
pub(super) mod scalars;
mod unfinished;

use smallvec::SmallVec;

use self::expressions::{ExpressionScope, ExpressionValues};
use self::iterations::OpenLoop;
use self::lane_values::LaneValue;
use self::nodes::ExpandedKernel;
use self::places::ValuePlaces;
use super::arithmetic::{ArithmeticLayer, ArithmeticScope};
use super::emit::emitter::Scalar;
use crate::codegen::isa::Operand;
use crate::ir::constraint::MAX_AXES;
use crate::ir::expr::{ExprArena, Symbol};

/// The place of this lane in its workgroup.
pub(crate) struct ThreadPosition {
    /// Lane number in a VGPR.
    pub(crate) lane: Operand,
    /// Wave number in its workgroup.
    pub(crate) wave: Scalar,
}

/// Values of nodes, numbers, lanes and loops at a point of the code.
pub(crate) struct ValueLayer<'a> {
    arithmetic: ArithmeticLayer<'a>,
    pub(crate) kernel: ExpandedKernel<'a>,
    pub(crate) arena: &'a mut ExprArena,
    /// Dynamic symbols in SGPRs.
    pub(crate) symbols: SmallVec<[(Symbol, Operand); 4]>,
    /// Places of the workgroup along the grid axes in SGPRs.
    pub(crate) workgroup: [Operand; MAX_AXES],
    pub(crate) thread: ThreadPosition,
    /// Values of expressions that are valid at this point.
    expressions: ExpressionValues,
    /// Digits of the lane number that are valid at this point: weight, extent, VGPR.
    digits: SmallVec<[(u32, u32, Operand); 16]>,
    /// Values that depend on the lane alone and are valid at this point.
    lane_values: SmallVec<[(LaneValue, Operand); 2]>,
    pub(crate) places: ValuePlaces,
    /// Loops around this point that run as long as a condition holds.
    pub(crate) whiles: u32,
    /// The other loops around this point.
    pub(crate) loops: SmallVec<[OpenLoop; 2]>,
}

layer!(ValueLayer, arithmetic: ArithmeticLayer);

/// How much of each list of prepared values is valid at a point of the code.
pub(crate) struct ValueScope {
    arithmetic: ArithmeticScope,
    expressions: ExpressionScope,
    digits: usize,
    lane_values: usize,
    settled: usize,
}

impl<'a> ValueLayer<'a> {
    /// Nothing but the kernel is known, which has about so many entities.
    #[inline]
    pub(super) fn new(
        arithmetic: ArithmeticLayer<'a>,
        kernel: ExpandedKernel<'a>,
        arena: &'a mut ExprArena,
        entities: usize,
    ) -> ValueLayer<'a> {
        ValueLayer {
            arithmetic,
            kernel,
            arena,
            symbols: SmallVec::new(),
            workgroup: [Operand::NONE; MAX_AXES],
            thread: ThreadPosition { lane: Operand::NONE, wave: Scalar::ZERO },
            expressions: ExpressionValues::default(),
            digits: SmallVec::new(),
            lane_values: SmallVec::new(),
            places: ValuePlaces::new(entities),
            whiles: 0,
            loops: SmallVec::new(),
        }
    }

    /// The lengths of the lists at this point.
    pub(crate) fn scope(&self) -> ValueScope {
        ValueScope {
            arithmetic: self.arithmetic.scope(),
            expressions: self.expressions.scope(),
            digits: self.digits.len(),
            lane_values: self.lane_values.len(),
            settled: self.places.settled.len(),
        }
    }

    /// Forgets what has been prepared since then.
    pub(crate) fn leave(&mut self, scope: &ValueScope) {
        self.arithmetic.leave(&scope.arithmetic);
        self.expressions.leave(scope.expressions);
        self.digits.truncate(scope.digits);
        self.lane_values.truncate(scope.lane_values);
        self.scatter_again(scope.settled);
    }
}
