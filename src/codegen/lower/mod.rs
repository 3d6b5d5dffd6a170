//! Lowering: expanded nodes become machine code with virtual registers. This is the border between the ECS
//! and the dense world; nothing flows back but summaries.
//!
//! It is made of layers. Each is a struct that owns the one beneath and sees all of that, and a folder with
//! what it can do; none knows of those above it.
//!
//! - `emit`: instructions, registers, blocks
//! - `arithmetic`: on registers
//! - `values`: where the values of nodes are; numbers, lanes, loops
//! - `addresses`: plans of accesses to memory
//! - `operations`: single nodes, a file for each family
//! - `control`: regions and loops
//! - `measure`: what nodes become, before loops are scheduled by it
//! - `lowered`: results apart from the code
//! - `preload`: arguments that firmware loads, and the prologue for firmware which cannot
// A new operation has to be considered wherever operations are distinguished.
#![cfg_attr(not(test), deny(clippy::wildcard_enum_match_arm))]

/// Makes a struct a layer: what the one beneath it, in the named field, has and can do is its own as well.
macro_rules! layer {
    ($upper:ident, $field:ident: $lower:ident) => {
        impl<'a> std::ops::Deref for $upper<'a> {
            type Target = $lower<'a>;

            #[inline]
            fn deref(&self) -> &$lower<'a> {
                &self.$field
            }
        }

        impl std::ops::DerefMut for $upper<'_> {
            #[inline]
            fn deref_mut(&mut self) -> &mut Self::Target {
                &mut self.$field
            }
        }
    };
}

mod addresses;
mod arithmetic;
mod control;
mod emit;
mod lowered;
mod measure;
mod operations;
pub(crate) mod preload;
mod values;

use bevy_ecs::prelude::*;

use self::addresses::AddressLayer;
use self::arithmetic::ArithmeticLayer;
use self::control::ControlLayer;
use self::emit::emitter::Emitter;
pub(crate) use self::lowered::{ArgumentSlot, Lowered};
pub use self::measure::with_workspace;
use self::operations::OperationLayer;
use self::values::ValueLayer;
use self::values::nodes::ExpandedKernel;
use crate::codegen::machine::MachineBody;
use crate::ir::diagnostic::Diagnostic;
use crate::ir::expr::ExprArena;
use crate::ir::nodes::{self, ExpandedNodes};
use crate::passes::facts::{Expressions, Settings};
use crate::passes::loops::expand::Arguments;
use crate::passes::options::KernargPreload;
use crate::passes::workspace::Workspace;

/// Lowers the expanded kernel in a workspace into `body`.
///
/// # Errors
/// Kernels that the target or this back end cannot compile.
pub(crate) fn lower(workspace: &mut Workspace, body: &mut MachineBody) -> Result<Lowered, Diagnostic> {
    lower_noting(workspace, body, Lowered::default())
}

/// The same with results that say what has to be noted.
fn lower_noting(
    workspace: &mut Workspace,
    body: &mut MachineBody,
    out: Lowered,
) -> Result<Lowered, Diagnostic> {
    let Workspace { world, root, expanded, spare, .. } = workspace;
    let (root, missing) = (*root, "a kernel without expressions");
    std::mem::swap(&mut nodes::fact_mut::<Expressions>(world, root, missing)?.0, spare);
    let result = lower_with(world, expanded.query(world), root, Emitter::new(body, out), spare);
    std::mem::swap(&mut nodes::fact_mut::<Expressions>(world, root, missing)?.0, spare);
    result
}

fn lower_with(
    world: &World,
    nodes: ExpandedNodes,
    root: Entity,
    emitter: Emitter,
    arena: &mut ExprArena,
) -> Result<Lowered, Diagnostic> {
    let entities = world.entities().len() as usize + 64;
    // About as many instructions as nodes: a first guess.
    emitter.body.insts.reserve(entities);
    emitter.body.registers.reserve(entities);
    let options = &nodes::fact::<Settings>(world, root, "a kernel without settings")?.0;
    let arguments = nodes::fact::<Arguments>(world, root, "a kernel without arguments")?;
    let target = options.target();
    let arithmetic = ArithmeticLayer::new(emitter, target, options.requested_functions());
    let values =
        ValueLayer::new(arithmetic, ExpandedKernel::new(world, nodes, root, entities)?, arena, entities);
    let control = ControlLayer::new(OperationLayer::new(AddressLayer::new(values)));
    let user_sgprs = match options.requested_kernarg_preload() {
        KernargPreload::Off => 0,
        // Those that a kernel is given to find its scratch stand between the pointer and the arguments.
        KernargPreload::Fitting => target.max_user_sgprs - target.scratch_user_sgprs(),
    };
    control.kernel(root, &arguments.0, user_sgprs)
}
