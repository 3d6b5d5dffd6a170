//! Traits of kernels: what some kernels have and others lack, so that passes which are for it alone do not
//! run for the others.

use bevy_ecs::prelude::*;

bitflags::bitflags! {
    /// A set of traits. Most come from operations, whose rows say which they raise; others from types,
    /// constraints, dimensions and options. On the kernel entity are those that passes have found.
    #[derive(Component, Copy, Clone, PartialEq, Eq, Default, Debug)]
    #[component(storage = "SparseSet")]
    pub(crate) struct KernelTraits: u16 {
        /// All kernels have it.
        const ANY = 1;
        /// Reductions, scans or sorts.
        const REDUCTIONS = 1 << 1;
        /// Values that are the places of elements.
        const PLACES = 1 << 2;
        /// Products.
        const PRODUCTS = 1 << 3;
        /// Products of block floats.
        const SCALED_PRODUCTS = 1 << 4;
        /// Products with factors that bring more than zeros from beyond the end of a dimension.
        const PADDED_FACTORS = 1 << 5;
        /// Sorts.
        const SORTS = 1 << 6;
        /// Values that are read at coordinates.
        const READ_VALUES = 1 << 7;
        /// Dimensions that follow others.
        const SCALED_DIMS = 1 << 8;
        /// Dtypes several of whose elements share a byte.
        const PACKED_FLOATS = 1 << 9;
        /// Matrix instructions of which only the shape is said.
        const MATRIX_SHAPES = 1 << 10;
        /// Logs.
        const LOGS = 1 << 11;
        /// Options that ask for fast math.
        const FAST_MATH = 1 << 12;
        /// Options that ask for checks of bounds.
        const BOUNDS_CHECKS = 1 << 13;
        /// Options that ask for loads straight to LDS.
        const DIRECT_LOADS = 1 << 14;
        /// Memories with the same dimensions and elements of the same size.
        const ALIKE_MEMORIES = 1 << 15;
        /// Those that passes find.
        const FOUND = Self::PADDED_FACTORS.bits();
    }
}
