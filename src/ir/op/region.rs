//! Regions: operations that hold nodes of their own and carry values. Their rows, and what decides how often
//! each runs: everything else asks for that ([`Runs`]), so that another one is a row and a line here.

use bevy_ecs::prelude::Entity;

use super::row::{NodeRole, OpClass, OpRow, ROW, ResultType};
use super::{CarriedOp, Op, OpFamily, RegionOp};
use crate::ir::layout::Dim;

const REGION: OpRow = OpRow { class: OpClass::Region, takes: None, gives: NodeRole::Loop, ..ROW };

const CARRIED: OpRow =
    OpRow { class: OpClass::Carried, gives: NodeRole::Value, result: ResultType::Carried, ..ROW };

pub(super) const ITERATE: OpRow =
    OpRow { word: "iterate", doc: "A loop over the tiles of a dimension.", ..REGION };

pub(super) const CONDITIONAL: OpRow = OpRow {
    word: "conditional",
    doc: "A region that runs if a condition holds, which all lanes of the workgroup have in common.",
    ..REGION
};

pub(super) const WHILE: OpRow =
    OpRow { word: "while", doc: "A loop that runs as long as a condition holds.", ..REGION };

pub(super) const PIPELINE: OpRow =
    OpRow { word: "pipeline", doc: "A pipelined loop, with what runs before and after it.", ..REGION };

pub(super) const ITER_ARG: OpRow =
    OpRow { word: "argument", doc: "A carried value as the loop's body sees it.", ..CARRIED };

pub(super) const LOOP_RESULT: OpRow = OpRow {
    word: "result",
    takes: Some(&[NodeRole::Loop]),
    doc: "A carried value after the loop.",
    ..CARRIED
};

/// How a text begins a region: its word, and then perhaps a dimension.
#[derive(Copy, Clone, Debug)]
pub(crate) enum RegionHead {
    /// A loop over a dimension.
    Over(fn(Dim) -> Op),
    /// Another region.
    Plain(Op),
}

impl RegionHead {
    /// All of them.
    const ALL: &[RegionHead] = &[
        RegionHead::Over(Op::Iterate),
        RegionHead::Over(Op::Pipeline),
        RegionHead::Plain(Op::Conditional),
        RegionHead::Plain(Op::While),
    ];

    /// The one with a word.
    pub(crate) fn of_word(word: &str) -> Option<RegionHead> {
        Self::ALL.iter().copied().find(|head| head.row().word == word)
    }

    /// The words of those that authors write.
    pub(crate) fn words() -> impl Iterator<Item = &'static str> {
        let of_authors = |op: &Op| !op.is_pipeline();
        Self::ALL.iter().map(RegionHead::example).filter(of_authors).map(|op| op.row().word)
    }

    /// One that it begins.
    fn example(&self) -> Op {
        match self {
            RegionHead::Over(of) => of(Dim(0)),
            RegionHead::Plain(op) => *op,
        }
    }

    /// The row of what it begins.
    fn row(&self) -> &'static OpRow {
        self.example().row()
    }
}

/// The number of times that a region runs, by what decides it.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) enum Runs {
    /// The tiles of a dimension: once for each.
    ForTiles(Dim),
    /// The loop over a dimension that it is made of: once if that has enough iterations.
    ForStages(Dim),
    /// A condition in front of it, and one after each time.
    UnderConditions {
        /// Its last operand, after the initial values; without one it runs.
        first: RegionCondition,
        /// The last value that it yields; without one it does not run again.
        again: RegionCondition,
    },
}

/// The condition of a region, if it has one.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) enum RegionCondition {
    None,
    /// After the values that it carries.
    Last,
}

impl RegionOp {
    /// The number of times that it runs.
    pub(crate) const fn runs(self) -> Runs {
        use RegionCondition::{Last, None};
        match self {
            RegionOp::Iterate(dim) => Runs::ForTiles(dim),
            RegionOp::Pipeline(dim) => Runs::ForStages(dim),
            RegionOp::Conditional => Runs::UnderConditions { first: Last, again: None },
            RegionOp::While => Runs::UnderConditions { first: Last, again: Last },
        }
    }
}

impl Op {
    /// The number of times that a region runs; `None` for other operations.
    pub(crate) const fn runs(self) -> Option<Runs> {
        match self.family() {
            OpFamily::Region(region) => Some(region.runs()),
            _ => None,
        }
    }

    /// The initial values of a region, among its operands: the condition, if there is one, comes after them.
    pub(crate) fn initial(self, operands: &[Entity]) -> &[Entity] {
        match self.condition(operands) {
            Some(_) => &operands[..operands.len() - 1],
            None => operands,
        }
    }

    /// The condition under which a region runs at all, among its operands.
    pub(crate) fn condition(self, operands: &[Entity]) -> Option<Entity> {
        operands.last().copied().filter(|_| self.takes_condition())
    }

    /// The values that a region hands on, among those that it yields: the condition under which it runs
    /// again, if there is one, comes after them.
    pub(crate) fn handed_on(self, yields: &[Entity]) -> &[Entity] {
        match yields {
            [values @ .., _] if self.yields_condition() => values,
            _ => yields,
        }
    }

    /// True for regions with a condition in front of them, their last operand.
    pub(crate) const fn takes_condition(self) -> bool {
        matches!(self.runs(), Some(Runs::UnderConditions { first: RegionCondition::Last, .. }))
    }

    /// True for regions that run again if the last value that they yield holds.
    pub(crate) const fn yields_condition(self) -> bool {
        matches!(self.runs(), Some(Runs::UnderConditions { again: RegionCondition::Last, .. }))
    }

    /// True for regions of which conditions decide how often they run.
    pub(crate) const fn runs_under_condition(self) -> bool {
        matches!(self.runs(), Some(Runs::UnderConditions { .. }))
    }

    /// True for regions that may run several times.
    pub(crate) const fn repeats(self) -> bool {
        self.over_tiles().is_some() || self.yields_condition()
    }

    /// The dimension of a loop over its tiles.
    pub(crate) const fn over_tiles(self) -> Option<Dim> {
        match self.runs() {
            Some(Runs::ForTiles(dim)) => Some(dim),
            _ => None,
        }
    }

    /// True for the region of a pipelined loop.
    pub(crate) const fn is_pipeline(self) -> bool {
        matches!(self.runs(), Some(Runs::ForStages(_)))
    }

    /// The dimension that a region walks along, if it is a loop over one.
    pub(crate) const fn walks(self) -> Option<Dim> {
        match self.runs() {
            Some(Runs::ForTiles(dim) | Runs::ForStages(dim)) => Some(dim),
            _ => None,
        }
    }

    /// A region as messages call it.
    pub(crate) const fn in_words(self) -> &'static str {
        match (self.takes_condition(), self.yields_condition()) {
            (true, false) => "conditional",
            (true, true) => "while loop",
            (false, _) => "loop",
        }
    }

    /// The number of a carried value inside of its region.
    pub(crate) const fn carried_argument(self) -> Option<u32> {
        match self.family() {
            OpFamily::Carried(CarriedOp::IterArg(number)) => Some(number),
            _ => None,
        }
    }

    /// The number of a carried value after its region.
    pub(crate) const fn carried_result(self) -> Option<u32> {
        match self.family() {
            OpFamily::Carried(CarriedOp::LoopResult(number)) => Some(number),
            _ => None,
        }
    }

    /// True for values that regions carry.
    pub(crate) const fn is_carried(self) -> bool {
        matches!(self.row().class, OpClass::Carried)
    }
}
