//! Which accesses of memory come after which: those by way of the caches in the order of the code, and those
//! of LDS except that reads pass each other.

use super::order::RegionGraph;

/// The accesses of a region so far.
#[derive(Default)]
pub(crate) struct MemoryOrder {
    /// The last one by way of the caches.
    cached: Option<u32>,
    /// The last one that changes LDS, and the reads of LDS after it.
    writer: Option<u32>,
    readers: Vec<u32>,
}

impl MemoryOrder {
    /// The last instruction of a region goes by way of the caches.
    pub(crate) fn cached(&mut self, graph: &mut RegionGraph, number: u32) {
        if let Some(before) = self.cached.replace(number) {
            graph.follows(before);
        }
    }

    /// It reads LDS.
    pub(crate) fn reads_lds(&mut self, graph: &mut RegionGraph, number: u32) {
        if let Some(writer) = self.writer {
            graph.follows(writer);
        }
        self.readers.push(number);
    }

    /// It changes LDS.
    pub(crate) fn changes_lds(&mut self, graph: &mut RegionGraph, number: u32) {
        if let Some(writer) = self.writer.replace(number) {
            graph.follows(writer);
        }
        self.readers.drain(..).for_each(|reader| graph.follows(reader));
    }
}
