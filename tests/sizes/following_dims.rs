//! Dimensions of memories that go with dimensions of values: heads that share keys, experts of tiles, blocks
//! of elements. The reference of each is a plain loop.

use groundswell::prelude::*;
use groundswell_testing::exact_case::{Case, number, of_numbers, tensor, zeros};

/// Heads of queries for each head of keys, heads of keys, rows, columns, and the summed dimension.
const HEADS: [[usize; 5]; 20] = [
    [4, 2, 32, 32, 32],
    [1, 1, 1, 1, 1],
    [2, 3, 16, 64, 16],
    [4, 1, 33, 17, 40],
    [3, 2, 5, 70, 9],
    [8, 2, 64, 32, 64],
    [2, 2, 31, 33, 65],
    [1, 4, 20, 20, 20],
    [5, 1, 40, 8, 33],
    [4, 3, 7, 7, 7],
    [2, 1, 96, 16, 48],
    [6, 1, 32, 96, 31],
    [3, 3, 3, 3, 3],
    [2, 4, 65, 1, 17],
    [4, 2, 1, 65, 32],
    [7, 1, 18, 34, 100],
    [2, 2, 128, 2, 8],
    [1, 2, 50, 50, 50],
    [3, 1, 29, 61, 34],
    [4, 4, 16, 16, 96],
];

/// Products of many heads of queries with few of keys.
#[test]
fn heads_share_keys() {
    let [h, kv, m, n, k] = symbols(["H", "KV", "M", "N", "K"]);
    for (at, [group, heads, rows, columns, depth]) in HEADS.into_iter().enumerate() {
        let space = if at % 2 == 0 { Shared } else { Global };
        let kernel = Kernel::trace("scores", |w| {
            w.distribute([workgroup(m, 32, 0), workgroup(n, 32, 1), workgroup(h, 1, 2), tile(k, 32)]);
            w.distribute([wave(m, 16), wave(n, 16)]);
            w.mma_type(Mma::F32_16x16x16_F16);
            w.follow(kv, h / group as i64, [h]);
            let queries = w.memory("queries", [h, m, k], space, F16);
            let keys = w.memory("keys", [kv, n, k], space, F16);
            let scores = w.memory("scores", [h, m, n], Global, F32);
            let zero = w.register([h, m, n], F32, 0.0);
            let [sum] = w.iterate(k, [zero], |w, [sum]| [w.mma(w.read(queries), w.read(keys), sum)]);
            w.write(sum, scores);
        })
        .expect("well-formed");
        let schedule = [Schedule::None, Schedule::Prefetch, Schedule::Modulo][at % 3].clone();
        let dynamic = [vec![], vec!["M"], vec!["N", "K"], vec!["M", "N", "K"]][at % 4].clone();
        let all = group * heads;
        let element = |at: usize| {
            let (head, row, column) = (at / (rows * columns), at / columns % rows, at % columns);
            let query = (head * rows + row) * depth;
            let key = (head / group * columns + column) * depth;
            (0..depth).map(|k| number(query + k) * number(key + k)).sum()
        };
        let case = Case {
            name: format!("{all} heads share {heads}: {rows} x {columns} x {depth}, {dynamic:?} open"),
            kernel,
            sizes: [("H", all), ("KV", heads), ("M", rows), ("N", columns), ("K", depth)]
                .map(|(name, size)| (name, size as i64))
                .into(),
            dynamic,
            schedule,
            inputs: vec![
                tensor(F16, &[all, rows, depth]),
                tensor(F16, &[heads, columns, depth]),
                zeros(F32, &[all, rows, columns]),
            ],
            expected: (0..all * rows * columns).map(element).collect(),
        };
        case.check();
    }
}

/// Each tile of rows is scaled by the column of an expert that a table names.
#[test]
fn experts_go_with_tiles() {
    let [m, n, e, tiles] = symbols(["M", "N", "E", "TILES"]);
    for (at, [experts, _, rows, columns, _]) in HEADS.into_iter().enumerate() {
        let kernel = Kernel::trace("scaled", |w| {
            w.distribute([workgroup(m, 16, 0), workgroup(n, 64, 1)]);
            let table = w.memory("table", [tiles], Global, I32);
            w.follow(e, w.read_at(table, [m / 16], [m]), [m]);
            let x = w.memory("x", [m, n], Global, F32);
            let scales = w.memory("scales", [e, n], Global, F32);
            let y = w.memory("y", [m, n], Global, F32);
            w.write(w.read(x) * w.read(scales), y);
        })
        .expect("well-formed");
        let count = rows.div_ceil(16);
        let expert = |tile: usize| (tile * 5 + 1) % experts;
        let case = Case {
            name: format!("{experts} experts: {rows} x {columns}"),
            kernel,
            sizes: [("M", rows), ("N", columns), ("E", experts), ("TILES", count)]
                .map(|(name, size)| (name, size as i64))
                .into(),
            dynamic: if at % 2 == 0 { vec![] } else { vec!["M", "N", "TILES"] },
            schedule: Schedule::None,
            inputs: vec![
                of_numbers(I32, &[count], &(0..count).map(|tile| expert(tile) as f64).collect::<Vec<_>>()),
                tensor(F32, &[rows, columns]),
                tensor(F32, &[experts, columns]),
                zeros(F32, &[rows, columns]),
            ],
            expected: (0..rows * columns)
                .map(|at| number(at) * number(expert(at / columns / 16) * columns + at % columns))
                .collect(),
        };
        case.check();
    }
}

/// What is written is at a place of its own: moved by one, or beside the dimension that is followed. Updates
/// may meet.
#[test]
fn writes_have_places_of_their_own() {
    let [m, d, n] = symbols(["M", "D", "N"]);
    for [_, _, rows, columns, _] in HEADS {
        for (name, place, pairs) in [("moved", m + 1, false), ("paired", m / 3, true)] {
            let kernel = Kernel::trace("written", |w| {
                w.distribute([workgroup(m, 16, 0), workgroup(n, 64, 1)]);
                w.follow(d, place, [m]);
                let x = w.memory("x", [m, n], Global, I32);
                let counts = w.memory("counts", [d], Global, I32);
                if pairs {
                    w.atomic(AtomicOp::Add, w.register([m, n], I32, 0.0), counts);
                    w.write(w.read(x), w.memory("y", [m, d, n], Global, I32));
                } else {
                    w.write(w.read(x), w.memory("y", [d, n], Global, I32));
                }
            });
            let kernel = kernel.expect("well-formed");
            let size = if pairs { rows.div_ceil(3) } else { rows };
            let shape = if pairs { vec![rows, size, columns] } else { vec![size, columns] };
            let mut expected = vec![0.0; shape.iter().product()];
            for row in 0..rows {
                let to = if pairs { row * size + row / 3 } else { row + 1 };
                for column in 0..columns {
                    if let Some(element) = expected.get_mut(to * columns + column) {
                        *element = number(row * columns + column);
                    }
                }
            }
            let case = Case {
                name: format!("{name} {rows} x {columns}"),
                kernel,
                sizes: [("M", rows), ("D", size), ("N", columns)].map(|(n, s)| (n, s as i64)).into(),
                dynamic: vec!["M"],
                schedule: Schedule::None,
                inputs: vec![tensor(I32, &[rows, columns]), zeros(I32, &[size]), zeros(I32, &shape)],
                expected,
            };
            case.check();
        }
    }
}

#[test]
fn what_cannot_be_is_refused() {
    let [h, kv, n] = symbols(["H", "KV", "N"]);
    let refused = |what: &str, body: &dyn Fn(&Tracer, MemoryRef)| {
        let fault = Kernel::trace("refused", |w| {
            w.distribute([workgroup(h, 4, 0)]);
            body(w, w.memory("keys", [kv, n], Global, F32));
        })
        .expect_err(what);
        assert!(fault.location.is_some() && fault.help.is_some(), "{fault}");
        assert!(fault.message.contains(what), "{fault}");
    };
    refused("would be written to one place along KV", &|w, keys| {
        w.follow(kv, h / 4, [h]);
        w.write(w.register([h, n], F32, 1.0), keys);
    });
    refused("KV is a dimension of a value", &|w, keys| {
        w.follow(kv, h / 4, [h]);
        w.write(w.register([kv, n], F32, 1.0) + w.read(keys), w.memory("out", [h, n], Global, F32));
    });
    refused("KV is accessed before it follows others", &|w, keys| {
        w.write(w.read(keys), w.memory("out", [h, n], Global, F32));
        w.follow(kv, h / 4, [h]);
    });
    refused("KV follows other dimensions twice", &|w, _| {
        w.follow(kv, h / 4, [h]);
        w.follow(kv, h / 2, [h]);
    });
    refused("KV follows KV", &|w, _| w.follow(kv, kv / 4, [h]));
    refused("a coordinate is KV", &|w, keys| {
        w.follow(kv, h / 4, [h]);
        w.write(w.read_at(keys, (kv, n), [h, n]), w.memory("out", [h, n], Global, F32));
    });
    refused("KV has a constraint of its own", &|w, _| {
        w.follow(kv, h / 4, [h]);
        w.distribute([workgroup(kv, 1, 1)]);
    });
    refused("4 is a number", &|w, _| w.follow(4, h / 4, [h]));
}
