//! From the description of a kernel to machine code: one file per pass, one list of passes.
//!
//! A pass is a system: a plain function whose parameters say what it reads and writes. [`PIPELINE`] lists
//! them in the order in which they run; no order is inferred. On request the verifier checks the whole kernel
//! after each pass.
//!
//! - [`options`], [`facts`]: the options of a compilation, and the facts that passes find
//! - [`meaning`]: whether passes preserve what a kernel means
//! - [`workspace`]: the pooled world that a compilation runs in
//! - `bind_symbols`, `infer_types`, `assign_layouts`, `element_layouts`, `convert_layouts`: analysis
//! - `multiply_scales`: factors with scales for blocks, as ordinary factors
//! - `choose_instructions`: matrix instructions of a chip for the shapes that kernels say
//! - `product_types`: what products take
//! - `conversion_ways`: what conversions cost, and which were made
//! - `access_costs`: what accesses of global memory cost in a layout
//! - `mma_layouts`: matrix instructions as sources of layouts
//! - `layout_sources`, `layout_spread`: where layouts come from, and what takes them over
//! - `store_columns`: which columns of a matrix product a lane holds, so that stores are wide
//! - `type_logs`: logs become memories with the types of what is written to them
//! - `repeat_blocks`: values along dimensions that follow others are repeated along these
//! - `read_sources`: what a value that is read at coordinates can be read from
//! - `pack_small_floats`: 4-bit and 6-bit floats become bytes, words and integers
//! - `turned_units`: packed factors of products whose memory has its other dimension innermost
//! - `node_maker`: arithmetic that passes add
//! - `sort_rows`: sorts become networks of exchanges along the digits of places
//! - `stage_values`: values that are read at coordinates go through LDS
//! - `fold_places`: selections by places that are the same for all elements that exist
//! - `contract_products`: sums of products that are rounded once, under fast math
//! - `padded_factors`: which factors of products bring more than zeros from beyond the end of a dimension
//! - `find_in_place`: which arguments may be one tensor
//! - `carry_parts`, `split_reductions`, `mask_folds`: what loops add up, what several waves reduce, and what
//!   takes no part
//! - `counted_dims`: dimensions that count parts
//! - [`reduction_trees`]: in which order reductions add up, for the report
//! - `promote_to_lds`, `distribute_loads`, `simplify`, `peel_remainders`, `mark_bounds`, `load_to_lds`,
//!   `arrange_lds`: logical nodes
//! - `addresses`: a limit that is judged before the work
//! - `arrival`: results that depend on the order of workgroups, where the options deny them
//! - `expand`: one node per machine-sized piece
//! - [`schedule`]: which iteration expanded nodes of a loop belong to, and their order
//! - `lds_lifetimes`: when LDS buffers hold data
//! - `allocate_lds`, `place_barriers`: LDS buffers in use, and which waves wait for which
//!
//! A row of the list says which kernels its pass has anything to do for, and its system is made for the
//! first of them: most of what the first compilation of a process costs beyond later ones is the states of
//! queries.
//!
//! Passes take queries where they can; those that look again at nodes that they make (`stage_values`,
//! `promote_to_lds`, `peel_remainders`, `expand`, `schedule_loops` and others) take the world, and say why.
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

mod access_costs;
mod addresses;
pub(crate) mod allocate_lds;
pub(crate) mod arrange_lds;
mod arrival;
pub(crate) mod assign_layouts;
mod atomic_updates;
pub(crate) mod bind_symbols;
pub(crate) mod carry_parts;
mod check_bounds;
pub(crate) mod choose_instructions;
pub(crate) mod contract_products;
pub(crate) mod conversion_ways;
mod convert_layouts;
mod counted_dims;
pub(crate) mod distribute_loads;
pub(crate) mod element_layouts;
pub(crate) mod expand;
pub(crate) mod facts;
mod find_in_place;
pub(crate) mod fold_places;
pub(crate) mod infer_types;
mod late_reads;
mod layout_sources;
mod layout_spread;
pub(crate) mod lds_lifetimes;
pub(crate) mod load_to_lds;
pub(crate) mod loop_iterations;
mod mapped_accesses;
pub(crate) mod mark_bounds;
pub(crate) mod mask_folds;
pub(crate) mod meaning;
mod memory_strides;
mod mma_layouts;
pub(crate) mod multiply_scales;
mod node_maker;
pub mod options;
pub(crate) mod pack_small_floats;
pub(crate) mod padded_factors;
pub(crate) mod peel_remainders;
pub(crate) mod place_barriers;
mod product_types;
pub(crate) mod promote_to_lds;
mod read_sources;
pub(crate) mod reduction_trees;
pub(crate) mod repeat_blocks;
pub(crate) mod schedule;
pub(crate) mod simplify;
mod small_float_codes;
mod sort_rows;
pub(crate) mod split_reductions;
pub(crate) mod stage_values;
mod store_columns;
mod turned_units;
pub(crate) mod type_logs;
mod workgroup_order;
pub(crate) mod workspace;

use bevy_ecs::prelude::*;
use bevy_ecs::system::BoxedSystem;

use crate::ir::diagnostic::{Diagnostic, Kind};
use crate::ir::kernel::KernelName;

/// What a pass returns.
pub(crate) type PassResult = Result<(), Diagnostic>;

/// A pass: its name, and how to make its system for a world.
pub struct Pass {
    /// Name in reports, in `--emit ir` and in test files.
    pub name: &'static str,
    make: fn() -> BoxedSystem<(), PassResult>,
    when: PassCondition,
}

/// Which kernels a pass has anything to do for. Its system is made when the first of them is compiled.
#[derive(Copy, Clone)]
enum PassCondition {
    /// All.
    Always,
    /// Those with reductions.
    Reductions,
    /// Those that ask for the places of elements.
    Places,
    /// Those whose options ask for fast math.
    FastMath,
    /// Those with products.
    Products,
    /// Those with reductions or products.
    Folds,
    /// Those that read values at coordinates.
    ReadValues,
    /// Those with dimensions that follow others.
    ScaledDims,
    /// Those with 4-bit floats.
    PackedFloats,
    /// Those with products of block floats.
    ScaledProducts,
    /// Those that sort.
    Sorts,
    /// Those that say shapes of matrix instructions.
    MatrixShapes,
    /// Those with logs, and those that note what leaves its memory.
    Logs,
    /// Those whose options ask for loads straight to LDS.
    DirectLoads,
}

macro_rules! pipeline {
    ($($name:literal $system:expr, $when:ident;)*) => {
        &[$(Pass {
            name: $name,
            make: || Box::new(IntoSystem::into_system($system)),
            when: PassCondition::$when,
        }),*]
    };
}

/// All passes in the order in which they run.
pub const PIPELINE: &[Pass] = pipeline! {
    "bind_symbols" bind_symbols::bind_symbols, Always;
    "infer_types" infer_types::infer_types, Always;
    "fold_places" fold_places::fold_places, Places;
    "contract_products" contract_products::contract_products, FastMath;
    "find_padded_factors" padded_factors::find_padded_factors, Products;
    "multiply_scales" multiply_scales::multiply_scales, ScaledProducts;
    "choose_instructions" choose_instructions::choose_instructions, MatrixShapes;
    "type_logs" type_logs::type_logs, Logs;
    "pack_small_floats" pack_small_floats::pack_small_floats, PackedFloats;
    "sort_rows" sort_rows::sort_rows, Sorts;
    "repeat_blocks" repeat_blocks::repeat_blocks, ScaledDims;
    "stage_values" stage_values::stage_values, ReadValues;
    "hoist_invariants" simplify::hoist_invariants, Always;
    "merge_common" simplify::merge_common, Always;
    "remove_dead" simplify::remove_dead, Always;
    "assign_layouts" assign_layouts::assign_layouts, Always;
    "find_in_place" find_in_place::find_in_place, Always;
    "carry_parts" carry_parts::carry_parts, Reductions;
    "split_reductions" split_reductions::split_reductions, Reductions;
    "promote_to_lds" promote_to_lds::promote_to_lds, Always;
    "distribute_loads" distribute_loads::distribute_loads, Always;
    "peel_remainders" peel_remainders::peel_remainders, Always;
    "mark_bounds" mark_bounds::mark_bounds, Always;
    "mask_folds" mask_folds::mask_folds, Folds;
    "load_to_lds" load_to_lds::load_to_lds, DirectLoads;
    "arrange_lds" arrange_lds::arrange_lds, Always;
    "expand" expand::expand, Always;
    "schedule_loops" schedule::schedule_loops, Always;
    "allocate_lds" allocate_lds::allocate_lds, Always;
    "place_barriers" place_barriers::place_barriers, Always;
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
