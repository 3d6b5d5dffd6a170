//! The nodes of a factor in an author's schedule.

use crate::ir::schedule::{NodeType, Nodes, ScheduleTracer};
use crate::ir::types::AddressSpace::Global;

/// The nodes of what comes through LDS.
pub(in crate::passes::schedule::strategies) struct TileNodes {
    pub load: Nodes,
    pub read: Nodes,
    /// None if it is loaded straight into LDS.
    pub write: Option<Nodes>,
}

impl TileNodes {
    /// Those with a tag, of a tile that is loaded straight into LDS.
    pub(in crate::passes::schedule::strategies) fn direct(s: &ScheduleTracer, tag: &str) -> TileNodes {
        let (load, read) = straight_to_lds(s, tag);
        TileNodes { load, read, write: None }
    }

    /// Those with a tag, of a tile that goes through registers.
    pub(in crate::passes::schedule::strategies) fn staged(s: &ScheduleTracer, tag: &str) -> TileNodes {
        let (load, read, write) = through_registers(s, tag);
        TileNodes { load, read, write: Some(write) }
    }
}

/// Global reads, LDS reads and LDS writes of the factor with a tag.
pub(in crate::passes::schedule::strategies) fn through_registers(
    s: &ScheduleTracer,
    tag: &str,
) -> (Nodes, Nodes, Nodes) {
    let reads = s.get_node_by_tag_and_type(tag, NodeType::Read);
    let (global, shared) = s.partition_by_address_space(reads, Global);
    (global, shared, s.get_node_by_tag_and_type(tag, NodeType::Write))
}

/// Loads straight into LDS and LDS reads of the factor with a tag.
pub(in crate::passes::schedule::strategies) fn straight_to_lds(
    s: &ScheduleTracer,
    tag: &str,
) -> (Nodes, Nodes) {
    let load = s.get_node_by_tag_and_type(tag, NodeType::GlobalToShared);
    (load, s.get_node_by_tag_and_type(tag, NodeType::Read))
}
