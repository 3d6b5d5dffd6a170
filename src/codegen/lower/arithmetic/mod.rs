//! Arithmetic on registers, which knows nothing of nodes: elements come as [`Scalar`]s and go as operands.
//!
//! - `registers`: values in VGPRs and SGPRs, and instructions on them
//! - `conversions`: elements of packed dtypes to 32 bits and back, casts
//! - `float8`: 8-bit floats to and from f32
//! - `opcodes`: the instructions of element-wise operations
//! - `functions`: powers, logarithms, roots, reciprocals around the approximating instructions
//! - `integers`: quotients, remainders, shifts
//! - `pairs`: elements of 64 bits
//! - `packed_floats`: arithmetic of f32 on two elements at once
//! - `lane_moves`: registers of other lanes

pub(super) mod conversions;
mod float8;
mod functions;
mod integers;
pub(super) mod lane_moves;
mod opcodes;
mod packed_floats;
mod pairs;
mod registers;

use smallvec::SmallVec;

use super::emit::emitter::{Emitter, Scalar};
use crate::codegen::isa::Operand;
use crate::codegen::target::Target;
use crate::passes::options::FloatFunctions;

/// Arithmetic on registers.
pub(crate) struct ArithmeticLayer<'a> {
    pub(crate) emitter: Emitter<'a>,
    pub(crate) target: Target,
    functions: FloatFunctions,
    /// VGPRs that hold a constant or the value of an SGPR, valid at this point.
    pub(crate) vector_copies: SmallVec<[(Scalar, Operand); 4]>,
    /// Constants in SGPRs that are valid at this point.
    constants: SmallVec<[(u32, Operand); 16]>,
    /// The same in the lower halves of pairs.
    constant_pairs: SmallVec<[(u32, Operand); 16]>,
    /// The same for f64 constants, in pairs.
    wide_constants: SmallVec<[(u64, Operand); 8]>,
    /// f64 constants in pairs of VGPRs.
    wide_copies: SmallVec<[(u64, Operand); 2]>,
    /// The code of neighbouring elements that is being joined.
    element_pair: packed_floats::ElementPair,
}

/// How much of each list of prepared constants is valid at a point of the code.
pub(crate) struct ArithmeticScope {
    vector_copies: usize,
    constants: usize,
    constant_pairs: usize,
    wide_constants: usize,
    wide_copies: usize,
}

impl<'a> ArithmeticLayer<'a> {
    #[inline]
    pub(super) fn new(
        emitter: Emitter<'a>,
        target: Target,
        functions: FloatFunctions,
    ) -> ArithmeticLayer<'a> {
        ArithmeticLayer {
            emitter,
            target,
            functions,
            vector_copies: SmallVec::new(),
            constants: SmallVec::new(),
            constant_pairs: SmallVec::new(),
            wide_constants: SmallVec::new(),
            wide_copies: SmallVec::new(),
            element_pair: packed_floats::ElementPair::default(),
        }
    }

    /// The lengths of the lists at this point.
    pub(crate) fn scope(&self) -> ArithmeticScope {
        ArithmeticScope {
            vector_copies: self.vector_copies.len(),
            constants: self.constants.len(),
            constant_pairs: self.constant_pairs.len(),
            wide_constants: self.wide_constants.len(),
            wide_copies: self.wide_copies.len(),
        }
    }

    /// Forgets what has been prepared since then.
    pub(crate) fn leave(&mut self, scope: &ArithmeticScope) {
        self.vector_copies.truncate(scope.vector_copies);
        self.constants.truncate(scope.constants);
        self.constant_pairs.truncate(scope.constant_pairs);
        self.wide_constants.truncate(scope.wide_constants);
        self.wide_copies.truncate(scope.wide_copies);
    }
}
