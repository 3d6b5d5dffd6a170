//! The elements of a value that one wave holds: their bits by replica, lane and register, and whether they
//! are defined.

use super::LANES;
use crate::ir::layout::{Dim, Layout, Place, Source};
use crate::ir::types::DType;

/// A value in the registers of a wave.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Fragment {
    pub(super) dtype: DType,
    /// Elements of a lane in one replica.
    pub(super) registers: u32,
    /// The first replica that it holds, and how many: one of an expanded node, all of a logical one.
    pub(super) first: u32,
    pub(super) replicas: u32,
    /// Elements; those narrower than 64 bits are in the low bits.
    pub(super) bits: Vec<u64>,
    pub(super) defined: Vec<bool>,
}

impl Fragment {
    pub(super) fn len(&self) -> usize {
        (self.replicas * LANES * self.registers) as usize
    }

    /// The places of its elements in a wave, in their order.
    pub(super) fn places(&self, wave: u32) -> impl Iterator<Item = Place> + use<> {
        places(self.first, self.replicas, self.registers, wave)
    }

    /// Index of an element.
    pub(super) fn at(&self, replica: u32, lane: u32, register: u32) -> Option<usize> {
        let replica = if self.replicas == 1 { 0 } else { replica.checked_sub(self.first)? };
        let inside = replica < self.replicas && lane < LANES && register < self.registers;
        inside.then_some(((replica * LANES + lane) * self.registers + register) as usize)
    }
}

/// The index of a source at which the coordinates are held.
pub(super) fn index_of(layout: &Layout, source: Source, coordinate: impl Fn(Dim) -> u32) -> u32 {
    let (mut index, mut weight) = (0, 1);
    for mode in layout.of_source(source) {
        if let Some(dim) = mode.dim
            && mode.stride > 0
        {
            index += coordinate(dim) / mode.stride % mode.extent * weight;
        }
        weight *= mode.extent;
    }
    index
}

/// Every place of a wave in the replicas of a fragment, in the order of its elements.
pub(super) fn places(first: u32, replicas: u32, registers: u32, wave: u32) -> impl Iterator<Item = Place> {
    (first..first + replicas).flat_map(move |replica| {
        (0..LANES)
            .flat_map(move |lane| (0..registers).map(move |register| Place { register, replica, lane, wave }))
    })
}
