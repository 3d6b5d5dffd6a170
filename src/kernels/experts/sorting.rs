//! Tokens by expert: a workgroup for each expert counts the choices of all, so that it knows where its rows
//! begin, and then gives each choice of its own the next row, in the order of tokens. So the order is the
//! same in every launch, and one kernel is enough.

use crate::prelude::*;

/// Choices, or rows, of an iteration.
const TILE: i64 = 1024;

/// No row, no choice, no expert.
const NOTHING: i32 = -1;

pub(super) fn trace() -> Result<Kernel, Diagnostic> {
    let [experts, others, choices, places] = symbols(["EXPERTS", "OTHERS", "CHOICES", "PLACES"]);
    let [blocks, rows, first, count] = symbols(["BLOCKS", "ROWS", "FIRST", "COUNT"]);
    Kernel::trace("moe_sort", |w| {
        w.distribute([
            workgroup(experts, 1, 0),
            tile(choices, TILE),
            tile(places, TILE),
            iterations(places, first, count),
            wave(choices, TILE / 4),
        ]);
        let ids = w.memory("ids", [choices], Global, I32);
        let choice_of_place = w.memory("choice_of_place", [places], Global, I32);
        let place_of_choice = w.memory("place_of_choice", [choices], Global, I32);
        let expert_of_block = w.memory("expert_of_block", [blocks], Global, I32);
        let expert = w.workgroup_id(0);
        let counted = counts(w, ids, others);
        let padded = w.apply_expr((Coordinate::from(counted) + rows - 1) / rows * rows);
        let other = w.self_index(others);
        let sum = |is: Value, of: Value| w.select(is, of, 0).sum(others);
        let base = sum(other.less(expert), padded);
        let is_own = other.equal(expert);
        let filled = base + sum(is_own, counted);
        let end = base + sum(is_own, padded);
        let start = w.register([], I32, 0.0);
        place_choices(w, ids, [choice_of_place, place_of_choice], base);
        // The last expert tells of the rows that nobody has.
        let is_last = expert.equal(w.size(experts) - 1);
        let until = w.select(is_last, w.size(places), end);
        let from = base.floor_div(TILE as i32);
        w.set_symbol(first, from);
        w.set_symbol(count, w.apply_expr((Coordinate::from(until) + (TILE - 1)) / TILE) - from);
        w.iterate(places, [start], |w, [nothing]| {
            let place = w.self_index(places);
            let is_within = place.less(until);
            let is_empty = place.greater_equal(filled) & is_within;
            let is_block =
                place.greater_equal(base) & is_within & w.apply_expr(Coordinate::from(place) % rows).equal(0);
            let empty = w.select(is_empty, place, NOTHING);
            let block = w.select(is_block, w.apply_expr(Coordinate::from(place) / rows), NOTHING);
            let of_block = w.select(place.less(end), expert.broadcast([places]), NOTHING);
            let [empty, block, of_block] =
                [empty, block, of_block].map(|value| value.broadcast([experts, places]));
            w.write_at(w.register([experts, places], I32, f64::from(NOTHING)), choice_of_place, [empty]);
            w.write_at(of_block, expert_of_block, [block]);
            [nothing]
        });
    })
}

/// Gives each choice of the workgroup's expert the next row from `base` on.
fn place_choices(
    w: &Tracer,
    ids: MemoryRef,
    [choice_of_place, place_of_choice]: [MemoryRef; 2],
    base: Value,
) {
    let [experts, choices] = symbols(["EXPERTS", "CHOICES"]);
    let expert = w.workgroup_id(0);
    w.iterate(choices, [w.register([], I32, 0.0)], |w, [so_far]| {
        let id = w.read(ids).tag("read_ids");
        let is_own = id.equal(expert);
        // The first expert tells of numbers that are none.
        let is_nobodys = (id.less(0) | id.greater_equal(w.size(experts))) & expert.equal(0);
        let own = w.select(is_own, w.register([choices], I32, 1.0), 0);
        let place = w.select(is_own, own.cumsum_exclusive(choices) + so_far + base, NOTHING);
        let choice = w.self_index(choices);
        let told = w.select(is_own | is_nobodys, choice, NOTHING);
        let [place, told, choice] = [place, told, choice].map(|value| value.broadcast([experts, choices]));
        w.write_at(choice, choice_of_place, [place]);
        w.write_at(place, place_of_choice, [told]);
        [so_far + own.sum(choices)]
    });
}

/// How many choices each expert has, counted in LDS.
fn counts(w: &Tracer, ids: MemoryRef, others: Symbol) -> Value {
    let choices = Symbol::new("CHOICES");
    let counts = w.allocate([others], I32);
    w.write(w.register([others], I32, 0.0), counts);
    w.iterate(choices, [w.register([], I32, 0.0)], |w, [nothing]| {
        let id = w.read(ids).tag("read_ids");
        w.atomic_at(AtomicOp::Add, w.register([choices], I32, 1.0), counts, [id]);
        [nothing]
    });
    w.read(counts)
}
