//! The nodes of a kernel that are no regions, a file for each family.
//!
//! - `elementwise`: constants, casts and arithmetic on single elements; `halves`: on both of a register
//! - `conditions`: comparisons, lane masks and selections
//! - `decoding`: codes that stand for elements, and back
//! - `rearrange`: elements that change places within a wave
//! - `reduce`, `scan`: over lanes and waves
//! - `self_index`: places of elements and sizes of dimensions as values
//! - `products`: matrix instructions; `lane_products`: products where there are none
//! - `unit_factors`: products with factors that are one most of the time
//! - `seldom_masks`: selections that hide nothing in most tiles
//! - `accesses`: loads and stores of global memory and LDS, and loads from the one straight into the other
//! - `atomic`: updates in one step; `exchange`: those that are loops of exchanges
//! - `memory_instructions`: the instructions of all these
//! - `synchronization`: waits, barriers and priorities

mod accesses;
mod atomic;
mod conditions;
mod decoding;
mod elementwise;
mod exchange;
mod halves;
mod lane_products;
mod memory_instructions;
mod products;
mod rearrange;
mod reduce;
mod scan;
mod seldom_masks;
mod self_index;
mod synchronization;
mod unit_factors;

use std::collections::VecDeque;

use self::lane_products::WidenedPair;
use super::addresses::AddressLayer;

/// Writes single nodes.
pub(crate) struct OperationLayer<'a> {
    addresses: AddressLayer<'a>,
    /// Registers of bf16 that have been widened in this region, oldest first.
    pub(crate) widened_pairs: VecDeque<WidenedPair>,
}

layer!(OperationLayer, addresses: AddressLayer);

impl<'a> OperationLayer<'a> {
    #[inline]
    pub(super) fn new(addresses: AddressLayer<'a>) -> OperationLayer<'a> {
        OperationLayer { addresses, widened_pairs: VecDeque::new() }
    }
}
