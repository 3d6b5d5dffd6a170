//! The end of a trip: yielded values go to the registers of the carried ones, in an order in which each is
//! read before it is overwritten.

use bevy_ecs::prelude::*;
use smallvec::SmallVec;

use super::ControlLayer;
use crate::codegen::isa::{Operand, VReg};
use crate::codegen::lower::values::places::ValuePlace;
use crate::ir::diagnostic::Diagnostic;
use crate::ir::node::*;

impl ControlLayer<'_> {
    /// Brings the yielded values into the registers of the carried ones.
    pub(super) fn carry(&mut self, node: Entity, carried: &[ValuePlace]) -> Result<(), Diagnostic> {
        let world = self.kernel.world;
        let yields = world.get::<Yields>(node).map(|y| &y.0[..]).unwrap_or_default();
        for &value in yields {
            self.settle_demanded(value)?;
        }
        let mut moves = CarriedMoves::default();
        for (&value, to) in yields.iter().zip(carried) {
            let from = *self.place(value)?;
            if let ValuePlace::Registers(to) = *to
                && !same_registers(&from, &ValuePlace::Registers(to))
            {
                moves.all.push(CarriedMove { from, to, width: self.width(value)?, is_done: false });
            }
        }
        moves.count_readers();
        while let Some(next) = moves.next() {
            match next {
                NextMove::Free(CarriedMove { from, to, width, .. }) => self.copy_into(to, &from, width)?,
                NextMove::InCycle(at) => {
                    let CarriedMove { to, width, .. } = moves.all[at];
                    let held = self.emitter.vgpr(width);
                    self.copy_into(held, &ValuePlace::Registers(to), width)?;
                    moves.read_instead(at, held);
                }
            }
        }
        self.renew_contents(carried);
        Ok(())
    }
}

/// A yielded value that goes to the registers of a carried one.
#[derive(Copy, Clone)]
struct CarriedMove {
    from: ValuePlace,
    to: Operand,
    width: u32,
    is_done: bool,
}

/// The next move of [`CarriedMoves`].
enum NextMove {
    /// Nothing else reads what it overwrites.
    Free(CarriedMove),
    /// All that are left read what another one overwrites: what this one overwrites has to be kept elsewhere.
    InCycle(usize),
}

/// Moves from the yielded values of a loop to its carried ones. A yielded value may be another carried one,
/// which is read before it is overwritten.
#[derive(Default)]
struct CarriedMoves {
    all: SmallVec<[CarriedMove; 16]>,
    /// The registers that are overwritten, in order, each with its move and how many others have yet to read
    /// it.
    targets: SmallVec<[(VReg, usize, u32); 16]>,
    /// Moves that may be next, the last one first.
    free: SmallVec<[usize; 16]>,
    /// No move before this one is left.
    first_left: usize,
}

impl CarriedMoves {
    /// To be called when all moves are known.
    fn count_readers(&mut self) {
        let targets = self.all.iter().enumerate();
        self.targets = targets.filter_map(|(at, m)| Some((m.to.as_virtual()?.0, at, 0))).collect();
        self.targets.sort_unstable();
        for at in 0..self.all.len() {
            if let Some(read) = self.target_read_by(at) {
                self.targets[read].2 += 1;
            }
        }
        let free = self.targets.iter().filter(|target| target.2 == 0).map(|target| target.1);
        self.free = free.collect();
        self.free.sort_unstable_by_key(|&at| std::cmp::Reverse(at));
    }

    /// The target that a move reads, if it is another one's.
    fn target_read_by(&self, at: usize) -> Option<usize> {
        let (register, _) = registers_of(&self.all[at].from)?.as_virtual()?;
        let target = self.targets.binary_search_by_key(&register, |target| target.0).ok()?;
        (self.targets[target].1 != at).then_some(target)
    }

    fn next(&mut self) -> Option<NextMove> {
        let Some(at) = self.free.pop() else {
            while self.all.get(self.first_left)?.is_done {
                self.first_left += 1;
            }
            return Some(NextMove::InCycle(self.first_left));
        };
        self.all[at].is_done = true;
        if let Some(read) = self.target_read_by(at) {
            let (_, its_move, readers) = &mut self.targets[read];
            *readers -= 1;
            if *readers == 0 {
                self.free.push(*its_move);
            }
        }
        Some(NextMove::Free(self.all[at]))
    }

    /// What a move overwrites is in `held`, where the others read it from now on.
    fn read_instead(&mut self, at: usize, held: Operand) {
        for reader in 0..self.all.len() {
            if self.target_read_by(reader).is_some_and(|target| self.targets[target].1 == at)
                && let Some((_, offset)) = registers_of(&self.all[reader].from).and_then(Operand::as_virtual)
            {
                self.all[reader].from = ValuePlace::Registers(held.offset(offset));
            }
        }
        self.free.push(at);
    }
}

fn registers_of(place: &ValuePlace) -> Option<Operand> {
    match place {
        ValuePlace::Registers(registers) => Some(*registers),
        ValuePlace::Scattered(_)
        | ValuePlace::Constant(_)
        | ValuePlace::Uniform(_)
        | ValuePlace::Comparison(_)
        | ValuePlace::Flags(_) => None,
    }
}

fn same_registers(a: &ValuePlace, b: &ValuePlace) -> bool {
    matches!((a, b), (ValuePlace::Registers(a), ValuePlace::Registers(b)) if a == b)
}
