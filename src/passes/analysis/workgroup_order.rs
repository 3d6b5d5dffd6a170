//! The places of workgroups in the grid: as many axes as the author asks for on the hardware's three, and the
//! order in which workgroups take the tiles. Both are expressions of the numbers that the hardware gives a
//! workgroup; everything else sees places only.
//!
//! A grid has up to five axes (`Geometry::grid`), and orders are `Geometry::places`. Passes see the place of
//! a workgroup along an axis; only the prologue of the code, the launch and the interpreter of placed
//! kernels see the hardware's numbers. Ready orders are permutations by construction, and an author's is
//! evaluated for the whole grid.

use smallvec::{SmallVec, smallvec};

use super::binder::Binder;
use super::cached_order::{SuitableOrder, suitable_order};
use super::loop_iterations::fits;
use crate::ir::constraint::{Constraint, GridSymbol, MAX_AXES, Reordering};
use crate::ir::diagnostic::{Diagnostic, Kind, Location};
use crate::ir::expr::{EvalError, Expr, ExprArena, ExprError, Symbol};
use crate::ir::kernel::Locations;
use crate::passes::facts::Geometry;
use crate::passes::options::Options;

/// The largest grid whose order is checked place by place.
const MAX_CHECKED: i64 = 1 << 16;

type Places = SmallVec<[Expr; 3]>;

/// Finds out the places of workgroups in the grid of `geometry`, where they are not the numbers that the
/// hardware gives them.
pub(super) fn place_workgroups(binder: &mut Binder, geometry: &mut Geometry) -> Result<(), Diagnostic> {
    let (constraints, locations) = (binder.constraints, binder.locations);
    let is_order = |constraint: &Constraint| matches!(constraint, Constraint::Reorder(_));
    let last = constraints.iter().rev().find(|(constraint, _)| is_order(constraint));
    let is_cached =
        |(constraint, _): &(Constraint, u32)| *constraint == Constraint::Reorder(Reordering::Cached);
    let suitable = match constraints.iter().any(is_cached) {
        true => suitable_order(geometry, binder.arena, binder.options.target()),
        false => None,
    };
    // The hardware's order takes no places.
    let is_plain = constraints.iter().all(|own| !is_order(&own.0) || is_cached(own));
    if is_plain && suitable.is_none() && geometry.grid.len() == 3 {
        return Ok(());
    }
    let at = last.and_then(|(_, origin)| locations.get(*origin));
    let mut order = Orderer { arena: &mut *binder.arena, grid: geometry.grid.clone(), at: at.clone() };
    order.check_size()?;
    let mut places = order.unfolded().map_err(|error| order.fault(error))?;
    let is_place =
        |constraint: &Constraint| matches!(constraint, Constraint::Reorder(Reordering::Place { .. }));
    let mut is_free = false;
    for step in constraints.chunk_by(|a, b| is_place(&a.0) && is_place(&b.0)) {
        let (Constraint::Reorder(reordering), origin) = &step[0] else { continue };
        order.at = locations.get(*origin);
        match reordering {
            Reordering::Grouped(0) | Reordering::Xcd(0) => {
                let fault = Diagnostic::invalid("an order of workgroups with 0 of them").at(order.at);
                return Err(fault.help("group 1 or more"));
            }
            Reordering::Cached => order.suit(&mut places, suitable),
            Reordering::Grouped(rows) => order.group(&mut places, *rows),
            Reordering::Xcd(dies) => order.deal(&mut places, *dies),
            Reordering::Place { .. } => {
                let moved = order.moved(step, &places, (binder.options, locations))?;
                is_free |= !order.mirrors(&places, &moved).map_err(|error| order.fault(error))?;
                places = moved;
                Ok(())
            }
        }
        .map_err(|error| order.fault(error))?;
    }
    if is_free {
        order.at = at;
        order.check_permutation(&places)?;
        if !fits(&order.grid, order.arena, &places) {
            let text = "the order of workgroups leaves the range of 32-bit integers";
            return Err(Diagnostic::new(Kind::Limit, text).at(order.at).help(
                "workgroups count in 32 bits: limit a number before it is multiplied, or divide it first",
            ));
        }
    }
    geometry.places = places;
    Ok(())
}

fn no_axis(axis: usize, at: Option<Location>) -> Diagnostic {
    let fault = Diagnostic::invalid(format!("grid axis {axis} is reordered, and nothing is spread over it"));
    fault.at(at).help("reorder the axes that `workgroup` constraints name")
}

struct Orderer<'a> {
    arena: &'a mut ExprArena,
    /// Workgroups along the axes.
    grid: Places,
    at: Option<Location>,
}

impl Orderer<'_> {
    fn fault(&self, error: ExprError) -> Diagnostic {
        Diagnostic::invalid(format!("the places of workgroups cannot be computed: {error}"))
            .at(self.at.clone())
            .help("divide by what is not zero, and use smaller numbers or shorter expressions")
    }

    /// The number that the hardware gives the workgroup along one of its axes.
    fn number(&mut self, axis: u32) -> Expr {
        self.arena.symbol(GridSymbol::Workgroup(axis).symbol())
    }

    /// A known grid is small enough for places that are computed with 31 bits; one that is not known is
    /// judged when the kernel is launched.
    fn check_size(&self) -> Result<(), Diagnostic> {
        match self.workgroups() {
            Some(count) if count > i64::from(i32::MAX) => {
                let text = format!("the grid has {count} workgroups");
                let fault = Diagnostic::new(Kind::Limit, text).at(self.at.clone());
                Err(fault
                    .help("workgroups whose places are computed are fewer than 2147483648: use larger tiles"))
            }
            Some(_) | None => Ok(()),
        }
    }

    /// Workgroups of the grid, if they are known.
    fn workgroups(&self) -> Option<i64> {
        self.grid.iter().try_fold(1i64, |all, &count| Some(all.saturating_mul(self.arena.as_integer(count)?)))
    }

    /// The place along each axis in the order of the hardware, whose third axis is all of those from the
    /// third on.
    fn unfolded(&mut self) -> Result<Places, ExprError> {
        let mut places: Places = smallvec![self.number(0), self.number(1)];
        let mut rest = self.number(2);
        for axis in 2..self.grid.len() {
            if axis + 1 == self.grid.len() {
                places.push(rest);
                break;
            }
            places.push(self.arena.modulo(rest, self.grid[axis])?);
            rest = self.arena.floor_div(rest, self.grid[axis])?;
        }
        Ok(places)
    }

    /// The number of a place along axes 0 and 1.
    fn flat(&mut self, places: &Places) -> Result<Expr, ExprError> {
        let column = self.arena.mul(places[1], self.grid[0])?;
        self.arena.add(places[0], column)
    }

    /// An order that suits the grid, if the hardware's does not.
    fn suit(&mut self, places: &mut Places, order: Option<SuitableOrder>) -> Result<(), ExprError> {
        let Some(SuitableOrder { dies, rows }) = order else { return Ok(()) };
        if dies > 1 {
            self.deal(places, dies)?;
        }
        self.group(places, rows)
    }

    /// `rows` tiles along axis 0, then as many beside them.
    fn group(&mut self, places: &mut Places, rows: u32) -> Result<(), ExprError> {
        let number = self.flat(places)?;
        let most = self.arena.int(i64::from(rows));
        let size = self.arena.mul(most, self.grid[1])?;
        let group = self.arena.floor_div(number, size)?;
        let within = self.arena.modulo(number, size)?;
        let first = self.arena.mul(group, most)?;
        let height = match self.arena.is_multiple_of(self.grid[0], i64::from(rows)) {
            true => most,
            // The last group has the rows that are left.
            false => {
                let left = self.arena.sub(self.grid[0], first)?;
                self.arena.min(left, most)?
            }
        };
        let row = self.arena.modulo(within, height)?;
        places[0] = self.arena.add(first, row)?;
        places[1] = self.arena.floor_div(within, height)?;
        Ok(())
    }

    /// Workgroups `n`, `n + dies`, `n + 2 dies`, ... take tiles that follow one another.
    fn deal(&mut self, places: &mut Places, dies: u32) -> Result<(), ExprError> {
        let number = self.flat(places)?;
        let count = self.arena.mul(self.grid[0], self.grid[1])?;
        let dies = self.arena.int(i64::from(dies));
        let (die, turn) = (self.arena.modulo(number, dies)?, self.arena.floor_div(number, dies)?);
        let (each, more) = (self.arena.floor_div(count, dies)?, self.arena.modulo(count, dies)?);
        // The first dies have one more if the workgroups do not divide among them.
        let (whole, longer) = (self.arena.mul(die, each)?, self.arena.min(die, more)?);
        let first = self.arena.add(whole, longer)?;
        let number = self.arena.add(first, turn)?;
        places[0] = self.arena.modulo(number, self.grid[0])?;
        places[1] = self.arena.floor_div(number, self.grid[0])?;
        Ok(())
    }

    /// Where the author's places along several axes move the workgroups that are at `places`.
    fn moved(
        &mut self,
        order: &[(Constraint, u32)],
        places: &Places,
        (options, locations): (&Options, &Locations),
    ) -> Result<Places, Diagnostic> {
        let mut moved = places.clone();
        let mut seen = [false; MAX_AXES];
        for (constraint, origin) in order {
            let Constraint::Reorder(Reordering::Place { axis, place }) = constraint else { continue };
            self.at = locations.get(*origin);
            let axis = *axis as usize;
            let known = seen.get_mut(axis).ok_or_else(|| no_axis(axis, self.at.clone()))?;
            if std::mem::replace(known, true) {
                let fault = Diagnostic::invalid(format!("grid axis {axis} is reordered twice"));
                return Err(fault.at(self.at.clone()).help("write one expression for the axis"));
            }
            let place = self.place(place, places, options)?;
            match moved.get_mut(axis) {
                Some(slot) => *slot = place,
                // Nothing is spread over the axis.
                None if self.arena.as_integer(place) == Some(0) => {}
                None => return Err(no_axis(axis, self.at.clone())),
            }
        }
        Ok(moved)
    }

    /// True if each axis of an order has the same places, from the first or from the last one on.
    fn mirrors(&mut self, places: &Places, moved: &Places) -> Result<bool, ExprError> {
        for (axis, (&place, &moved)) in places.iter().zip(moved).enumerate() {
            let last = self.arena.sub(self.grid[axis], Expr::ONE)?;
            if moved != place && moved != self.arena.sub(last, place)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// The author's place of the workgroups that are at `places`.
    fn place(
        &mut self,
        place: &crate::ir::expr::SymExpr,
        places: &Places,
        options: &Options,
    ) -> Result<Expr, Diagnostic> {
        let raw = place.intern(self.arena).map_err(|error| self.fault(error))?;
        let mut values: SmallVec<[(Symbol, Expr); 8]> = SmallVec::new();
        for symbol in self.arena.symbols(raw) {
            let value = match GridSymbol::of(symbol) {
                Some(GridSymbol::Workgroup(axis)) => places.get(axis as usize).copied().unwrap_or(Expr::ZERO),
                Some(GridSymbol::Size(axis)) => self.grid.get(axis as usize).copied().unwrap_or(Expr::ONE),
                None => match options.value(symbol) {
                    Some(value) => self.arena.int(value),
                    None => {
                        let text = format!("the order of workgroups depends on {symbol}, which is not known");
                        return Err(Diagnostic::invalid(text)
                            .at(self.at.clone())
                            .help(format!("bind it with set({symbol}, ..)")));
                    }
                },
            };
            values.push((symbol, value));
        }
        let replaced = self.arena.substitute(raw, &mut |s| values.iter().find(|v| v.0 == s).map(|v| v.1));
        replaced.map_err(|error| self.fault(error))
    }

    /// Checks that `places` are all places of the grid, each once.
    fn check_permutation(&self, places: &Places) -> Result<(), Diagnostic> {
        let fault = |text: String| Diagnostic::invalid(text).at(self.at.clone());
        let Some(count) = self.workgroups().filter(|&count| count <= MAX_CHECKED) else {
            let text = "it cannot be checked that the order of workgroups takes every tile once".to_owned();
            return Err(fault(text).help(format!(
                "bind the sizes, for a grid of at most {MAX_CHECKED} workgroups, or use grouped_order, xcd_order, or \
                 grid_size(axis) - 1 - workgroup_id(axis)"
            )));
        };
        let sizes: SmallVec<[i64; MAX_AXES]> =
            self.grid.iter().map(|&size| self.arena.as_integer(size).unwrap_or(1)).collect();
        let symbols = [0, 1, 2].map(|axis| GridSymbol::Workgroup(axis).symbol());
        let mut taken: Vec<Option<[i64; 3]>> = vec![None; count as usize];
        for number in 0..count {
            let rest = number / sizes[0];
            let ids = [number % sizes[0], rest % sizes[1], rest / sizes[1]];
            let value = |symbol| symbols.iter().position(|&s| s == symbol).map(|axis| ids[axis]);
            let (mut at, mut inside) = (0, true);
            let mut place: SmallVec<[i64; MAX_AXES]> = SmallVec::new();
            for (axis, &expr) in places.iter().enumerate().rev() {
                let along = self.arena.evaluate(expr, &value).map_err(|error: EvalError| {
                    fault(format!("the place of workgroup {ids:?} cannot be computed: {error}"))
                        .help("an expression has to have a value for every workgroup of the grid")
                })?;
                inside &= (0..sizes[axis]).contains(&along);
                at = if inside { at * sizes[axis] + along } else { 0 };
                place.insert(0, along);
            }
            if !inside {
                let text =
                    format!("workgroup {ids:?} takes the tile at {place:?}, and the grid is {sizes:?}");
                return Err(fault(text).help("the places are those of the grid, each once"));
            }
            if let Some(other) = taken[at as usize].replace(ids) {
                let text = format!("workgroups {other:?} and {ids:?} both take the tile at {place:?}");
                return Err(fault(text).help("the places are those of the grid, each once"));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The places that an order gives the workgroups of a grid of `x` times `y`, in the hardware's order.
    fn places(order: impl Fn(&mut Orderer<'_>, &mut Places), [x, y]: [i64; 2]) -> Vec<[i64; 2]> {
        let mut arena = ExprArena::new();
        let grid = [x, y, 1].into_iter().map(|size| arena.int(size)).collect();
        let mut orderer = Orderer { arena: &mut arena, grid, at: None };
        let mut places = orderer.unfolded().unwrap();
        order(&mut orderer, &mut places);
        let of = |number: i64| {
            let value = |symbol| match GridSymbol::of(symbol) {
                Some(GridSymbol::Workgroup(0)) => Some(number % x),
                Some(GridSymbol::Workgroup(1)) => Some(number / x),
                Some(GridSymbol::Workgroup(_) | GridSymbol::Size(_)) | None => Some(0),
            };
            [0, 1].map(|axis: usize| arena.evaluate(places[axis], &value).unwrap())
        };
        (0..x * y).map(of).collect()
    }

    const GRIDS: [[i64; 2]; 6] = [[1, 1], [8, 8], [7, 5], [1, 13], [19, 1], [6, 10]];

    #[test]
    fn groups_go_along_the_second_axis_before_the_next_group() {
        for grid in GRIDS {
            for rows in [1, 2, 4, 30] {
                let mut expected = Vec::new();
                for first in (0..grid[0]).step_by(rows as usize) {
                    for column in 0..grid[1] {
                        let group = first..(first + i64::from(rows)).min(grid[0]);
                        expected.extend(group.map(|row| [row, column]));
                    }
                }
                let found = places(|order, places| order.group(places, rows).unwrap(), grid);
                assert_eq!(found, expected, "{grid:?} in groups of {rows}");
            }
        }
    }

    #[test]
    fn a_die_takes_tiles_that_follow_one_another() {
        for grid in GRIDS {
            for dies in [1, 2, 8] {
                let found = places(|order, places| order.deal(places, dies).unwrap(), grid);
                let mut next = 0;
                for die in 0..dies as usize {
                    for place in found.iter().skip(die).step_by(dies as usize) {
                        assert_eq!(*place, [next % grid[0], next / grid[0]], "{grid:?} on {dies} dies");
                        next += 1;
                    }
                }
                assert_eq!(next, grid[0] * grid[1]);
            }
        }
    }
}
