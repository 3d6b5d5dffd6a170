//! The units that operations occupy while a loop runs, and how long their results take: the machine as
//! schedulers see it.

/// Kinds of units that operations compete for.
#[derive(Copy, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
#[repr(u8)]
pub enum Resource {
    /// The path to global memory.
    Global,
    /// LDS.
    Shared,
    /// Matrix cores.
    Mma,
    /// Vector arithmetic.
    Valu,
    /// Moves between lanes.
    Shuffle,
}

/// Number of kinds of units.
pub(crate) const RESOURCES: usize = 5;

impl Resource {
    /// All kinds with their names, in the order of the columns of a [`ResourceModel`].
    pub const NAMES: [(Resource, &'static str); RESOURCES] = [
        (Resource::Global, "global"),
        (Resource::Shared, "shared"),
        (Resource::Mma, "mma"),
        (Resource::Valu, "valu"),
        (Resource::Shuffle, "shuffle"),
    ];

    /// Its name in listings.
    pub fn name(self) -> &'static str {
        Resource::NAMES[self as usize].1
    }
}

/// The kind of an operation, as far as a scheduler is concerned.
#[derive(Copy, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
#[repr(u8)]
pub enum Class {
    /// Load from global memory.
    ReadGlobal,
    /// Store to global memory.
    WriteGlobal,
    /// Read from LDS.
    ReadShared,
    /// Write to LDS.
    WriteShared,
    /// Load from global memory straight into LDS.
    GlobalToShared,
    /// Matrix instruction.
    Mma,
    /// Vector arithmetic.
    Valu,
    /// Move between lanes.
    Shuffle,
    /// Takes no time: carried values, constants, junctions.
    Free,
}

/// Number of classes.
pub(crate) const CLASSES: usize = 9;

impl Class {
    /// All classes with their names, in the order of the rows of a [`ResourceModel`].
    pub const NAMES: [(Class, &'static str); CLASSES] = [
        (Class::ReadGlobal, "read_global"),
        (Class::WriteGlobal, "write_global"),
        (Class::ReadShared, "read_shared"),
        (Class::WriteShared, "write_shared"),
        (Class::GlobalToShared, "global_to_shared"),
        (Class::Mma, "mma"),
        (Class::Valu, "valu"),
        (Class::Shuffle, "shuffle"),
        (Class::Free, "free"),
    ];

    /// Its name in listings.
    pub fn name(self) -> &'static str {
        Class::NAMES[self as usize].1
    }
}

/// What one class costs.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug)]
pub struct Cost {
    /// Cycles until a result can be used.
    pub delay: u16,
    /// Cycles for which it occupies its units of each kind, counted from its start; zero for units that it
    /// does not need.
    pub busy: [u16; RESOURCES],
}

/// A machine: units of each kind, and the cost of each class of operations.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug)]
pub struct ResourceModel {
    /// Name in reports.
    pub name: &'static str,
    /// Units of each kind; an operation occupies one of each kind that it needs.
    pub units: [u16; RESOURCES],
    /// Costs by [`Class`].
    pub costs: [Cost; CLASSES],
}

impl ResourceModel {
    /// The cost of a class.
    pub fn cost(&self, class: Class) -> &Cost {
        &self.costs[class as usize]
    }

    /// The small abstract machine of the Wave language's default scheduling parameters: global memory takes
    /// two cycles, everything else one.
    pub(crate) const ABSTRACT: ResourceModel = {
        const fn row(delay: u16, busy: [u16; RESOURCES]) -> Cost {
            Cost { delay, busy }
        }
        ResourceModel {
            name: "abstract",
            units: [4, 4, 4, 2, 2],
            costs: [
                row(2, [1, 0, 0, 0, 0]),
                row(2, [1, 0, 0, 0, 0]),
                row(1, [0, 1, 0, 0, 0]),
                row(1, [0, 1, 0, 0, 0]),
                row(1, [1, 1, 0, 0, 0]),
                row(1, [0, 0, 1, 0, 0]),
                row(1, [0, 0, 0, 1, 0]),
                row(1, [0, 0, 0, 0, 1]),
                row(0, [0, 0, 0, 0, 0]),
            ],
        }
    };
}
