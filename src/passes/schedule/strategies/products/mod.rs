//! Loops that multiply what they load through LDS, and nothing else: what schedules that are written for them
//! need to know.
//!
//! - [`operations`]: what role each node of a loop plays for its product
//! - [`tags`]: names for the operations of a product
//! - [`lists`]: the nodes of a factor in an author's schedule
//! - [`other_loop`]: why a loop is none of these

pub(super) mod lists;
pub(super) mod operations;
mod other_loop;
pub(super) mod tags;

use bevy_ecs::prelude::*;

use crate::ir::expr::Symbol;
use crate::ir::layout::Dim;

pub(crate) use self::other_loop::OtherLoop;

/// Tags of the operations that a schedule speaks of.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Roles<'a> {
    /// The loop.
    pub k_loop: &'a str,
    /// The read of the left factor, which is promoted to LDS.
    pub lhs: &'a str,
    /// The read of the right factor.
    pub rhs: &'a str,
    /// The reads of both factors' scales, which are promoted to LDS, too; `None` for products without.
    pub scales: Option<[&'a str; 2]>,
    /// The product.
    pub mma: &'a str,
    /// The dimension that the product contracts: the one that the loop runs over, or one that follows it.
    pub k: Symbol,
}

/// The logical nodes of a loop that multiplies what it has loaded through LDS.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) struct ProductLoop {
    /// The loop.
    pub(super) k_loop: Entity,
    /// Logical reads from LDS, writes to it and global reads of both factors.
    pub(super) factors: [[Entity; 3]; 2],
    /// The same of their scales.
    pub(super) scales: Option<[[Entity; 3]; 2]>,
    pub(super) mma: Entity,
    /// The dimension that the product contracts.
    pub(super) axis: Dim,
}
