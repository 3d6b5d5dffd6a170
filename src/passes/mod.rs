//! From the description of a kernel to machine code: one file per pass, one list of passes.
//!
//! A pass is a system: a plain function whose parameters say what it reads and writes. [`PIPELINE`] lists
//! them in the order in which they run; no order is inferred. On request the verifier checks the whole kernel
//! after each pass.
//!
//! - [`options`], [`facts`]: the options of a compilation, and the facts that passes find
//! - [`kernel_editor`]: how passes rewrite nodes
//! - [`workspace`]: the pooled world that a compilation runs in
//! - [`meaning`]: whether passes preserve what a kernel means
//!
//! The passes stand in rooms, which use each other only downwards, from the last to the first:
//! - [`analysis`]: sizes, types and accesses
//! - [`layout`]: which lane and register holds which element
//! - [`loops`]: what loops carry and fold, bounds, and the pieces that bodies become
//! - [`lds`]: what goes through LDS, its buffers and barriers
//! - [`rewriting`]: logical nodes that become others before layouts are chosen
//! - [`schedule`]: which iteration expanded nodes of a loop belong to, and their order
//!
//! A row of the list says which kernels its pass has anything to do for, and its system is made for the
//! first of them: most of what the first compilation of a process costs beyond later ones is the states of
//! queries.
//!
//! Passes take queries where they can. Those that look again at nodes that they make take the world and
//! rewrite the kernel through one editor, [`kernel_editor`]; `expand` and `schedule_loops` have tables of
//! their own instead.
//! A pass sees a node through one view, `ir::nodes::Node` (after expansion `ExpandedNode`, which adds what
//! the node is a piece of), and makes one from one bundle, `NodeBundle`. A node or a kernel that lacks what
//! it has to have is a `Bug`, of which the author is told; nothing makes up a default for it.
//!
//! A pass keeps its own notes beside the nodes in a `Side`, `NodeMap` or `NodeSet` (`ir/node_map.rs`). A
//! fact that it finds out for others is a component (`ir/facts.rs`) on the node or on the kernel entity, in
//! a sparse set if it is added later, so that nothing moves to another table. The order of nodes is a list
//! (`Body`), and never that of a query or of a hash map.
// A new operation has to be considered wherever operations are distinguished.
#![cfg_attr(not(test), deny(clippy::wildcard_enum_match_arm))]

pub(crate) mod analysis;
pub(crate) mod facts;
pub(crate) mod kernel_editor;
pub(crate) mod layout;
pub(crate) mod lds;
pub(crate) mod loops;
pub(crate) mod meaning;
pub mod options;
pub(crate) mod rewriting;
pub(crate) mod schedule;
pub(crate) mod workspace;

use bevy_ecs::prelude::*;
use bevy_ecs::system::BoxedSystem;

use crate::ir::diagnostic::{Diagnostic, Kind};
use crate::ir::kernel::KernelName;
use crate::ir::op::KernelTraits;

/// What a pass returns.
pub(crate) type PassResult = Result<(), Diagnostic>;

/// A pass: its name, and how to make its system for a world.
pub struct Pass {
    /// Name in reports, in `--emit ir` and in test files.
    pub name: &'static str,
    make: fn() -> BoxedSystem<(), PassResult>,
    /// The kernels that it has anything to do for: those with any of these traits. Its system is made when
    /// the first of them is compiled.
    traits: KernelTraits,
}

macro_rules! pipeline {
    ($($name:literal $system:expr, $($trait:ident)|+;)*) => {
        &[$(Pass {
            name: $name,
            make: || Box::new(IntoSystem::into_system($system)),
            traits: KernelTraits::empty()$(.union(KernelTraits::$trait))+,
        }),*]
    };
}

/// All passes in the order in which they run.
pub const PIPELINE: &[Pass] = pipeline! {
    "bind_symbols" analysis::bind_symbols::bind_symbols, ANY;
    "infer_types" analysis::infer_types::infer_types, ANY;
    "fold_places" rewriting::fold_places::fold_places, PLACES;
    "divide_masked_loops" loops::masked_tiles::divide_masked_loops, PLACES;
    "narrow_broadcasts" rewriting::narrow_broadcasts::narrow_broadcasts, PLACES;
    "scale_maxima" rewriting::scale_maxima::scale_maxima, FAST_MATH;
    "contract_products" rewriting::contract_products::contract_products, FAST_MATH;
    "find_padded_factors" loops::padded_factors::find_padded_factors, PRODUCTS;
    "multiply_scales" rewriting::multiply_scales::multiply_scales, SCALED_PRODUCTS | SCALED_DIMS;
    "choose_instructions" rewriting::choose_instructions::choose_instructions, MATRIX_SHAPES;
    "type_logs" rewriting::type_logs::type_logs, LOGS | BOUNDS_CHECKS;
    "pack_small_floats" rewriting::pack_small_floats::pack_small_floats, PACKED_FLOATS;
    "sort_rows" rewriting::sort_rows::sort_rows, SORTS;
    "repeat_blocks" rewriting::repeat_blocks::repeat_blocks, SCALED_DIMS;
    "stage_values" rewriting::stage_values::stage_values, READ_VALUES | SORTS | SCALED_DIMS;
    "hoist_invariants" rewriting::simplify::hoist_invariants, ANY;
    "merge_common" rewriting::simplify::merge_common, ANY;
    "remove_dead" rewriting::simplify::remove_dead, ANY;
    "find_unit_factors" analysis::find_unit_factors::find_unit_factors, PRODUCTS;
    "find_plain_roundings" analysis::find_plain_roundings::find_plain_roundings, ANY;
    "assign_layouts" layout::assign_layouts::assign_layouts, ANY;
    "find_seldom_masks" loops::masked_tiles::find_seldom_masks, PLACES;
    "find_in_place" analysis::find_in_place::find_in_place, ALIKE_MEMORIES;
    "carry_parts" loops::carry_parts::carry_parts, REDUCTIONS;
    "split_reductions" loops::split_reductions::split_reductions, REDUCTIONS;
    "promote_to_lds" lds::promote_to_lds::promote_to_lds, ANY;
    "distribute_loads" lds::distribute_loads::distribute_loads, ANY;
    "peel_remainders" loops::peel_remainders::peel_remainders, ANY;
    "mark_bounds" loops::mark_bounds::mark_bounds, ANY;
    "mask_folds" loops::mask_folds::mask_folds, REDUCTIONS | PADDED_FACTORS;
    "load_to_lds" lds::load_to_lds::load_to_lds, DIRECT_LOADS;
    "arrange_lds" lds::arrange_lds::arrange_lds, ANY;
    "expand" loops::expand::expand, ANY;
    "schedule_loops" schedule::schedule_loops, ANY;
    "allocate_lds" lds::allocate_lds::allocate_lds, ANY;
    "place_barriers" lds::place_barriers::place_barriers, ANY;
};

/// The kernel entity of a world.
pub(crate) fn kernel_entity(world: &World) -> Result<Entity, Diagnostic> {
    // A query made for one question would allocate; the archetypes answer it as well.
    let name = world.component_id::<KernelName>();
    let holders = world.archetypes().iter().filter(|a| name.is_some_and(|name| a.contains(name)));
    let mut kernels = holders.flat_map(|archetype| archetype.entities()).map(|entity| entity.id());
    match (kernels.next(), kernels.next()) {
        (Some(kernel), None) => Ok(kernel),
        _ => Err(Diagnostic::new(Kind::Bug, "the world does not hold exactly one kernel")),
    }
}
