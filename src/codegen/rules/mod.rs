//! The hazard rules as conditions over a pair of instructions, for checkers: the verifier of machine code
//! applies them along every path that may be taken, the simulator's check mode along the one that is.
//!
//! They know the instruction table and nothing else. The pass that repairs hazards keeps to tables of its own
//! (`machine/hazard_rows`, `machine/matrix_rows`), so that neither side repeats the other's mistakes.

mod errata;
mod matrix;
mod pairs;
mod view;

pub use errata::Erratum;
pub(crate) use errata::{erratum, shift_amount};
pub(crate) use matrix::{MatrixPipe, class};
pub(crate) use pairs::{
    Between, FARTHEST, is_acc_move, overwrites_own_base, pending, required, required_before_load, undisputed,
};
pub(crate) use view::{EXEC, InstructionView, UsedRegisters, VCC};

/// Who asks for wait states.
#[derive(Copy, Clone, PartialEq, Eq)]
enum Authority {
    /// LLVM or AMD's manual.
    Either,
    /// Both, as far as they are known to differ.
    Both,
}
