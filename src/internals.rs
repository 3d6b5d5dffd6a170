//! What the program and the tests of the project look at besides the public face. It may change with any
//! version.

pub use crate::codegen::lower::with_workspace;
pub use crate::ir::constant::Constant;
pub use crate::ir::excerpt;
pub use crate::ir::text::foreign_dtype;
pub use crate::ir::walk;
pub use crate::passes::meaning::{KernelResults, run_compared};
pub use crate::passes::workspace::Workspace;
pub use crate::runtime::summary;

pub mod expr {
    pub use crate::ir::expr::Expr;
}

pub mod facts {
    pub use crate::ir::facts::{
        Bounds, ExpandedCount, Expansion, Geometry, LdsBuffer, LogicalBody, Remainder,
    };
}

pub mod index {
    pub use crate::index::Neighbours;
}

pub mod layout {
    pub use crate::ir::layout::mma::{Mma, MmaShape, Sparsity};
    pub use crate::ir::layout::{Dim, Layout, Place, Source};
}

pub mod node {
    pub use crate::ir::node::{Body, Operands, Placement, Tag, Trip, ValueType, Yields};
    pub use crate::ir::op::{
        AtomicOp, BinaryOp, Control, Op, ReductionOp, ResultType, ScanOp, SortOp, UnaryOp,
    };
}

pub mod machine {
    pub use crate::codegen::machine::interleave::interleave;
    pub use crate::codegen::machine::text;
    pub use crate::codegen::machine::{
        Block, BlockId, InstId, MachineBody, MachineInst, Origins, RegisterFile, VirtualRegister,
    };

    pub mod allocate {
        pub use crate::codegen::machine::allocate::{
            Allocation, AllocationError, Allocator, RegisterLimits, Spills,
        };
    }

    pub mod branches {
        pub use crate::codegen::machine::branches::{Code, drop_branches_to_next, encode_body};
    }

    pub mod check {
        pub use crate::codegen::machine::check::{
            Allocated, MachineFault, check_allocation, check_hazards, check_operands, check_order,
            check_replay, check_waits,
        };
    }

    pub mod hazards {
        pub use crate::codegen::machine::hazards::{HazardResolver, Xnack};
    }

    pub mod waits {
        pub use crate::codegen::machine::waits::{BARRIER_WITHOUT_WAITS, LdsLoads, WaitInserter};
    }
}

pub mod schedules {
    pub use crate::passes::schedule::graph::words::describe;
    pub use crate::passes::schedule::judge::trip_barriers::BarrierRole;
    pub use crate::passes::schedule::strategies::interleaved::{Moves, Spacing, schedule_of_interleaved};
    pub use crate::passes::schedule::strategies::ping_pong::quadrants::{
        Factor, QuadrantMoves, Quadrants, REGIONS, schedule_of_quadrants,
    };
    pub use crate::passes::schedule::strategies::ping_pong::{
        Cut, Roles, TileReads, schedule, schedule_of_direct_loads, schedule_of_early_loads,
        schedule_of_whole_tiles,
    };
    pub use crate::passes::schedule::strategies::rows::{
        NONE, PING_PONG, PREFETCH, SEARCH, STRATEGIES, named,
    };
    pub use crate::passes::schedule::strategies::strategy::{Asked, Strategy};
    pub use crate::runtime::schedule_view::barriers_of;
}
