//! LDS buffers that the author declares: read, written and updated at coordinates, kept from one iteration to
//! the next, under every schedule. The reference of each is a plain loop.

use groundswell::prelude::*;
use groundswell_testing::atomics::joined;
use groundswell_testing::exact_case::{Case, number, of_numbers, tensor, zeros};
use groundswell_testing::matrix_shapes::SHAPES;

/// Each element becomes 16 times the one at its place from the end of the row, and the one two places to the
/// right of it, or zero beyond the end.
#[test]
fn rows_come_back_reversed_and_moved() {
    for dtype in [F64, F32, F16, Bf16, I64, I32, I8] {
        for [m, n] in SHAPES {
            for waves in [1, 4] {
                for dynamic in [vec![], vec!["M"]] {
                    let [dm, dn] = symbols(["M", "N"]);
                    let kernel = Kernel::trace("reversed", |w| {
                        w.distribute([workgroup(dm, 4, 0), wave(dm, 4 / waves)]);
                        let [x, y] = ["x", "y"].map(|name| w.memory(name, [dm, dn], Global, dtype));
                        let rows = w.allocate([dm, dn], dtype);
                        w.write(w.read(x), rows);
                        let last = Coordinate::from(w.size(dn)) - 1;
                        let reversed = w.read_at(rows, (dm, last - dn), [dm, dn]);
                        let moved = w.read_at(rows, (dm, dn + 2), [dm, dn]);
                        w.write(reversed * 16 + moved, y);
                    })
                    .expect("well-formed");
                    let inputs = vec![tensor(dtype, &[m, n]), zeros(dtype, &[m, n])];
                    let name = format!("{dtype} {m}x{n} {waves} waves {dynamic:?}");
                    let mut case = Case::plain(name, kernel, &[("M", m), ("N", n)], inputs);
                    case.dynamic = dynamic;
                    let expected = |at: usize| {
                        let (row, column) = (at / n, at % n);
                        let moved = if column + 2 < n { number(at + 2) } else { 0.0 };
                        number(row * n + n - 1 - column) * 16.0 + moved
                    };
                    case.expected = (0..m * n).map(expected).collect();
                    case.check();
                }
            }
        }
    }
}

/// Counts in LDS, one histogram for each workgroup, then added to those in memory.
#[test]
fn workgroups_count_in_lds() {
    for (n, part, bins) in [(1, 64, 1), (1000, 256, 10), (64, 64, 64), (777, 128, 3), (5000, 1024, 300)] {
        for waves in [1, 2] {
            let [g, p, dn, db] = symbols(["G", "P", "N", "BINS"]);
            let kernel = Kernel::trace("histogram", |w| {
                w.distribute([workgroup(g, 1, 0), wave(p, part / waves)]);
                let x = w.memory("x", [dn], Global, I32);
                let counts = w.memory("counts", [db], Global, I32);
                let own = w.allocate([g, db], I32);
                w.write(w.register([g, db], I32, 0.0), own);
                // The place of an element that does not exist has no bin either.
                let place = w.self_index(g).broadcast([g, p]) * part + w.self_index(p);
                let id = w.read_at(x, [g * part + p], [g, p]);
                let id = w.select(place.less(w.size(dn)), id, -1);
                w.atomic_at(AtomicOp::Add, w.register([g, p], I32, 1.0), own, (g, id));
                w.atomic_at(AtomicOp::Add, w.read(own), counts, [db]);
            })
            .expect("well-formed");
            let ids: Vec<f64> = (0..n).map(|at| ((at * 31 + at / 7) % bins) as f64).collect();
            let mut expected: Vec<f64> = (0..bins).map(number).collect();
            let before = of_numbers(I32, &[bins], &expected);
            ids.iter().for_each(|&id| expected[id as usize] += 1.0);
            let groups = n.div_ceil(part as usize);
            let sizes = [("G", groups), ("P", part as usize), ("N", n), ("BINS", bins)];
            let inputs = vec![of_numbers(I32, &[n], &ids), before];
            let name = format!("{n} in {bins} bins by {part}, {waves} waves");
            Case { expected, ..Case::plain(name, kernel, &sizes, inputs) }.check();
        }
    }
}

/// Updates of every kind, with what was there before, of elements that nobody else updates.
#[test]
fn every_update_gives_back_what_was_there() {
    for op in AtomicOp::ALL.iter().copied().filter(|op| op.values() == 1) {
        for dtype in op.dtypes(Shared) {
            // Elements of 16 bits are updated in pairs.
            for [m, n] in SHAPES.map(|[m, n]| [m, if dtype.bytes() == 2 { n.next_multiple_of(2) } else { n }])
            {
                let [dm, dn] = symbols(["M", "N"]);
                let kernel = Kernel::trace("updates", |w| {
                    w.distribute([workgroup(dm, 8, 0), workgroup(dn, 64, 1), wave(dm, 4)]);
                    let [x, y, z] = ["x", "y", "z"].map(|name| w.memory(name, [dm, dn], Global, dtype));
                    let held = w.allocate([dm, dn], dtype);
                    w.write(w.read(y), held);
                    let before = w.atomic(op, w.read(x), held);
                    w.write(before * 20 + w.read(held), z);
                })
                .expect("well-formed");
                let old: Vec<f64> = (0..m * n).map(|at| number(at + 3)).collect();
                let y = of_numbers(dtype, &[m, n], &old);
                let inputs = vec![tensor(dtype, &[m, n]), y, zeros(dtype, &[m, n])];
                let sizes = [("M", m), ("N", n)];
                let mut case = Case::plain(format!("{op:?} {dtype} {m}x{n}"), kernel, &sizes, inputs);
                let after = |(at, &o): (usize, &f64)| o * 20.0 + joined(op, o, number(at));
                case.expected = old.iter().enumerate().map(after).collect();
                case.check();
            }
        }
    }
}

/// What an iteration leaves in a buffer is what the next one finds, whichever wave wrote it, under every
/// schedule.
#[test]
fn buffers_are_kept_between_iterations() {
    for schedule in [Schedule::None, Schedule::Prefetch, Schedule::FourStage, Schedule::Modulo] {
        for n in [16, 64, 100, 333] {
            for waves in [1, 4] {
                let [dm, dn, ring] = symbols(["M", "N", "RING"]);
                let kernel = Kernel::trace("kept", |w| {
                    w.distribute([workgroup(dm, 4, 0), wave(dm, 4 / waves), tile(dn, 16)]);
                    let [x, y] = ["x", "y"].map(|name| w.memory(name, [dm, dn], Global, F32));
                    let kept = w.allocate([dm, ring], F32);
                    w.write(w.register([dm, ring], F32, 100.0), kept);
                    w.iterate(dn, [], |w, []| {
                        // What stood there 48 elements ago, and then this element.
                        let before = w.read_at(kept, (dm, dn % 48), [dm, dn]);
                        w.write_at(w.read(x), kept, (dm, dn % 48));
                        w.write(before, y);
                        []
                    });
                })
                .expect("well-formed");
                let m = 6;
                let inputs = vec![tensor(F32, &[m, n]), zeros(F32, &[m, n])];
                let name = format!("{schedule:?} {n} {waves} waves");
                let mut case = Case::plain(name, kernel, &[("M", m), ("N", n), ("RING", 64)], inputs);
                case.schedule = schedule.clone();
                let before = |at: usize| if at % n < 48 { 100.0 } else { number(at - 48) };
                case.expected = (0..m * n).map(before).collect();
                case.check();
            }
        }
    }
}

/// Writes of one loop to the same places come in the order of the iterations, also from different waves.
#[test]
fn later_iterations_write_over_earlier_ones() {
    for n in [64, 256, 300] {
        for schedule in [Schedule::None, Schedule::Prefetch] {
            let [dn, slots] = symbols(["N", "SLOTS"]);
            let kernel = Kernel::trace("last", |w| {
                w.distribute([tile(dn, 64), wave(dn, 16), wave(slots, 16)]);
                let x = w.memory("x", [dn], Global, F32);
                let y = w.memory("y", [slots], Global, F32);
                let kept = w.allocate([slots], F32);
                w.write(w.register([slots], F32, -50.0), kept);
                w.iterate(dn, [], |w, []| {
                    // In each iteration other waves have the same places.
                    w.write_at(w.read(x), kept, [(dn + dn / 64 * 16) % 64]);
                    []
                });
                w.write(w.read(kept), y);
            })
            .expect("well-formed");
            let inputs = vec![tensor(F32, &[n]), zeros(F32, &[64])];
            let mut case =
                Case::plain(format!("{n} {schedule:?}"), kernel, &[("N", n), ("SLOTS", 64)], inputs);
            case.schedule = schedule;
            case.expected = vec![-50.0; 64];
            (0..n).for_each(|at| case.expected[(at + at / 64 * 16) % 64] = number(at));
            case.check();
        }
    }
}

/// A table in LDS that is read at places that the data say, in a conditional as well.
#[test]
fn tables_in_lds_are_read_at_data() {
    for (n, rows) in [(1, 1), (64, 5), (200, 64), (333, 100)] {
        for wanted in [0, 1] {
            let [dn, dr] = symbols(["N", "ROWS"]);
            let kernel = Kernel::trace("looked_up", |w| {
                w.distribute([workgroup(dn, 64, 0), wave(dn, 16)]);
                let table = w.memory("table", [dr], Global, F32);
                let ids = w.memory("ids", [dn], Global, I32);
                let wants = w.scalar("wants", I32);
                let y = w.memory("y", [dn], Global, F32);
                let held = w.allocate([dr], F32);
                w.write(w.read(table), held);
                let none = w.register([dn], F32, 3.0);
                let [found] = w.conditional(wants.equal(1), [none], |w, [none]| {
                    [none * 2.0 + w.read_at(held, [Coordinate::from(w.read(ids)) - 2], [dn])]
                });
                w.write(found, y);
            })
            .expect("well-formed");
            let ids: Vec<f64> = (0..n).map(|at| ((at * 17) % (rows + 4)) as f64).collect();
            let wants = Tensor::from_slice(&[], &[wanted]).expect("a scalar");
            let ids_tensor = of_numbers(I32, &[n], &ids);
            let inputs = vec![tensor(F32, &[rows]), ids_tensor, wants, zeros(F32, &[n])];
            let sizes = [("N", n), ("ROWS", rows)];
            let mut case = Case::plain(format!("{n} of {rows}, {wanted}"), kernel, &sizes, inputs);
            let at = |id: f64| match usize::try_from(id as i64 - 2) {
                Ok(row) if row < rows => number(row),
                _ => 0.0,
            };
            let found = |&id: &f64| if wanted == 1 { 6.0 + at(id) } else { 3.0 };
            case.expected = ids.iter().map(found).collect();
            case.check();
        }
    }
}
