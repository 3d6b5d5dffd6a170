//! Task mappings against their definition by enumeration, the laws of their algebra, and AMD's table of
//! matrix instructions.
use super::*;
use crate::ir::layout::{Mma, MmaConfig};
use proptest::prelude::*;

/// A factor as plain numbers, to be enumerated by definition.
#[derive(Clone, Debug)]
struct Plain {
    is_spatial: bool,
    extents: Vec<u32>,
    ranks: Vec<usize>,
}

impl Plain {
    fn mapping(&self) -> TaskMapping {
        if self.is_spatial { spatial(&self.extents) } else { repeat(&self.extents) }.ranks(&self.ranks)
    }

    /// All indices of the box in the order of the ranks.
    fn indices(&self) -> Vec<Vec<u32>> {
        let stride = |dim: usize| -> u32 {
            let faster = (0..self.extents.len()).filter(|&other| self.ranks[other] > self.ranks[dim]);
            faster.map(|other| self.extents[other]).product()
        };
        let count = self.extents.iter().product();
        let digit = |at: u32, dim: usize| at / stride(dim) % self.extents[dim];
        (0..count).map(|at| (0..self.extents.len()).map(|dim| digit(at, dim)).collect()).collect()
    }

    /// The lists of all workers, by definition.
    fn lists(&self) -> Vec<Vec<Vec<u32>>> {
        let all = self.indices();
        if self.is_spatial { all.into_iter().map(|task| vec![task]).collect() } else { vec![all] }
    }
}

/// The lists of a product, by definition: `(f*g)(w) = [a (.) S(g) + b for a in f(w div W(g)) for b in ..]`.
fn product_lists(
    outer: &[Vec<Vec<u32>>],
    inner: &[Vec<Vec<u32>>],
    inner_shape: &[u32],
) -> Vec<Vec<Vec<u32>>> {
    let mut lists = Vec::new();
    for outer in outer {
        for inner in inner {
            let mut list = Vec::new();
            for a in outer {
                for b in inner {
                    let moved = a.iter().zip(inner_shape).zip(b).map(|((a, size), b)| a * size + b);
                    list.push(moved.collect::<Vec<u32>>());
                }
            }
            lists.push(list);
        }
    }
    lists
}

fn lists(mapping: &TaskMapping) -> Vec<Vec<Vec<u32>>> {
    (0..mapping.workers().unwrap()).map(|worker| mapping.list(worker).unwrap()).collect()
}

fn plain(dims: usize) -> impl Strategy<Value = Plain> {
    let ranks = Just((0..dims).collect::<Vec<usize>>()).prop_shuffle();
    (any::<bool>(), proptest::collection::vec(1u32..=5, dims), ranks)
        .prop_map(|(is_spatial, extents, ranks)| Plain { is_spatial, extents, ranks })
}

/// One to four factors of as many dimensions.
fn plains() -> impl Strategy<Value = Vec<Plain>> {
    let small = |plains: &Vec<Plain>| {
        plains.iter().flat_map(|plain| &plain.extents).map(|&extent| u64::from(extent)).product::<u64>()
            <= 8000
    };
    (0usize..=4)
        .prop_flat_map(|dims| proptest::collection::vec(plain(dims), 1..=4))
        .prop_filter("small enough to enumerate", small)
}

fn product(plains: &[Plain]) -> TaskMapping {
    plains.iter().map(Plain::mapping).reduce(|product, factor| product * factor).expect("a factor")
}

proptest! {
    #[test]
    fn products_are_what_their_definition_says(plains in plains()) {
        let mapping = product(&plains);
        let shape = mapping.shape().unwrap();
        let mut expected = plains.last().unwrap().lists();
        let mut inner_shape = plains.last().unwrap().extents.clone();
        for plain in plains.iter().rev().skip(1) {
            expected = product_lists(&plain.lists(), &expected, &inner_shape);
            inner_shape.iter_mut().zip(&plain.extents).for_each(|(size, extent)| *size *= extent);
        }
        prop_assert_eq!(&shape, &inner_shape);
        let found = lists(&mapping);
        prop_assert_eq!(&found, &expected);
        // Partition: each index of the box once.
        let mut all: Vec<Vec<u32>> = found.into_iter().flatten().collect();
        all.sort_unstable();
        let unit = Plain { is_spatial: false, extents: shape.clone(), ranks: (0..shape.len()).collect() };
        prop_assert_eq!(all, unit.indices());
        // Count: workers of the spatial factors, tasks of the others.
        let count = |kind: bool| -> u32 {
            plains.iter().filter(|plain| plain.is_spatial == kind).flat_map(|plain| &plain.extents).product()
        };
        prop_assert_eq!(mapping.workers().unwrap(), count(true));
        prop_assert_eq!(mapping.tasks_per_worker().unwrap(), count(false));
    }

    #[test]
    fn products_are_associative_and_have_neutral_factors(
        [f, g, h] in (0usize..=3).prop_flat_map(|dims| [plain(dims), plain(dims), plain(dims)]),
    ) {
        let [f, g, h] = [f, g, h].map(|plain| plain.mapping());
        let left = (f.clone() * &g) * &h;
        let right = f.clone() * (g.clone() * &h);
        prop_assert!(left.equivalent(&right).unwrap());
        prop_assert_eq!(left.to_string(), right.to_string());
        for one in [repeat(vec![1; f.shape().unwrap().len()]), spatial(vec![1; f.shape().unwrap().len()])] {
            prop_assert!((one.clone() * &f).equivalent(&f).unwrap());
            prop_assert!((f.clone() * &one).equivalent(&f).unwrap());
        }
    }

    #[test]
    fn a_leading_repeat_is_a_loop_around_the_rest(
        (mut outer, g) in (1usize..=3).prop_flat_map(|dims| (plain(dims), plain(dims))),
    ) {
        outer.is_spatial = false;
        let (inner, shape) = (g.lists(), g.extents.clone());
        let peeled: Vec<Vec<Vec<u32>>> = inner.iter().map(|list| {
            outer.indices().iter().flat_map(|r| {
                list.iter().map(|b| r.iter().zip(&shape).zip(b).map(|((r, size), b)| r * size + b).collect())
            }).collect()
        }).collect();
        prop_assert_eq!(lists(&(outer.mapping() * &g.mapping())), peeled);
    }

    #[test]
    fn projections_cover_the_projected_box_as_often_as_they_drop(plains in plains(), mask in 0u32..16) {
        let mapping = product(&plains);
        let shape = mapping.shape().unwrap();
        let dims: Vec<usize> = (0..shape.len()).filter(|dim| mask >> dim & 1 == 1).collect();
        let projected = mapping.clone().projection(&dims);
        let expected: Vec<Vec<Vec<u32>>> = lists(&mapping).into_iter().map(|list| {
            list.into_iter().map(|mut task| { dims.iter().for_each(|&dim| task[dim] = 0); task }).collect()
        }).collect();
        prop_assert_eq!(lists(&projected), expected);
        let dropped: u32 = dims.iter().map(|&dim| shape[dim]).product();
        let all: u32 = projected.shape().unwrap().iter().product();
        prop_assert_eq!(projected.workers().unwrap() * projected.tasks_per_worker().unwrap(), all * dropped);
        // A product with a projected factor is again what the definition says.
        let outer = repeat(vec![2; shape.len()]);
        let around = product_lists(
            &lists(&outer), &lists(&projected), &projected.shape().unwrap(),
        );
        prop_assert_eq!(lists(&(outer * &projected)), around);
    }

    #[test]
    fn texts_read_back(plains in plains(), project in any::<bool>()) {
        let mut mapping = product(&plains);
        if project && mapping.shape().is_ok_and(|shape| !shape.is_empty()) {
            mapping = mapping.projection([0]);
        }
        prop_assert_eq!(mapping.to_string().parse::<TaskMapping>(), Ok(mapping));
    }

    #[test]
    fn any_text_is_read_or_refused(text in "[a-z_().,*=\\[\\]0-9 ]{0,40}") {
        let _ = text.parse::<TaskMapping>();
    }

    #[test]
    fn registers_are_numbered_as_the_data_layout_of_the_same_factors(plains in plains()) {
        let mapping = product(&plains);
        // Section by section: f*g holds an element at f(c div S(g)) * size(g) + g(c mod S(g)).
        let number = |index: &[u32]| -> u32 {
            let (mut rest, mut size, mut sum) = (index.to_vec(), 1, 0);
            for plain in plains.iter().rev() {
                let digits: Vec<u32> = rest.iter().zip(&plain.extents).map(|(rest, extent)| rest % extent).collect();
                rest.iter_mut().zip(&plain.extents).for_each(|(rest, extent)| *rest /= extent);
                if !plain.is_spatial {
                    let at = plain.indices().iter().position(|found| *found == digits).unwrap() as u32;
                    sum += at * size;
                    size *= plain.extents.iter().product::<u32>();
                }
            }
            sum
        };
        for (worker, list) in (0..).zip(lists(&mapping)) {
            for (register, task) in (0..).zip(list) {
                prop_assert_eq!(number(&task), register);
                prop_assert_eq!(mapping.register_of(&task), Ok(register));
                prop_assert_eq!(mapping.owner_of(&task), Ok(worker));
            }
        }
        prop_assert_eq!(mapping.check_reads(&mapping), Ok(()));
    }

    #[test]
    fn powers_of_two_are_matrices_over_bits(
        [f, g] in (1usize..=3).prop_flat_map(|dims| [plain(dims), plain(dims)]),
    ) {
        let powers = |plain: Plain| Plain {
            extents: plain.extents.iter().map(|extent| extent.next_power_of_two()).collect(),
            ..plain
        };
        let [f, g] = [f, g].map(powers);
        let (outer, inner) = (f.mapping(), g.mapping());
        let both = outer.clone() * &inner;
        let form = both.linear_form().unwrap();
        for (worker, list) in (0..).zip(lists(&both)) {
            for (task, index) in (0..).zip(list) {
                prop_assert_eq!(form.index(worker, task), index);
            }
        }
        // The product of the matrices: inner columns below, outer ones moved up by the inner shape.
        let moved = |columns: &[Vec<u32>]| -> Vec<Vec<u32>> {
            columns.iter().map(|c| c.iter().zip(&g.extents).map(|(c, size)| c * size).collect()).collect()
        };
        let (outer, inner) = (outer.linear_form().unwrap(), inner.linear_form().unwrap());
        let workers = [inner.worker_columns(), &moved(outer.worker_columns())].concat();
        let tasks = [inner.task_columns(), &moved(outer.task_columns())].concat();
        prop_assert_eq!((form.worker_columns(), form.task_columns()), (&workers[..], &tasks[..]));
    }

    #[test]
    fn even_shares_partition_and_say_why_not(
        shape in proptest::collection::vec(0u32..40, 0..4), workers in 0u32..130, reverse in any::<bool>(),
    ) {
        let ranks: Vec<usize> = (0..shape.len()).rev().collect();
        let ranks = reverse.then_some(&ranks[..]);
        let tasks: u32 = shape.iter().product();
        let found = auto_map(&shape, workers, ranks);
        if workers == 0 || shape.contains(&0) {
            let nothing = matches!(found, Err(MappingError::NothingToShare { .. }));
            prop_assert!(nothing);
        } else if tasks.is_multiple_of(workers) {
            let found = found.unwrap();
            prop_assert_eq!(found.workers().unwrap(), workers);
            prop_assert_eq!(found.shape().unwrap(), shape.clone());
        } else {
            let uneven = matches!(found, Err(MappingError::TasksDoNotDivide { .. }));
            prop_assert!(uneven);
        }
        if let Ok((mapping, used)) = predicated_auto_map(&shape, workers, ranks) {
            prop_assert_eq!(mapping.workers().unwrap(), used);
            prop_assert!(used <= workers);
            prop_assert_eq!(mapping.shape().unwrap(), shape);
        }
    }
}

/// The text of a mapping, its workers and shape, and the lists of some workers.
type Row = (&'static str, u32, &'static [u32], &'static [(u32, &'static str)]);

#[test]
fn the_worked_examples_come_out_letter_for_letter() {
    let rows: &[Row] = &[
        (
            "spatial(2,3)",
            6,
            &[2, 3],
            &[(0, "(0,0)"), (1, "(0,1)"), (2, "(0,2)"), (3, "(1,0)"), (4, "(1,1)"), (5, "(1,2)")],
        ),
        (
            "spatial(2,3, ranks=[1,0])",
            6,
            &[2, 3],
            &[(0, "(0,0)"), (1, "(1,0)"), (2, "(0,1)"), (3, "(1,1)"), (4, "(0,2)"), (5, "(1,2)")],
        ),
        ("repeat(2,2)", 1, &[2, 2], &[(0, "(0,0)(0,1)(1,0)(1,1)")]),
        ("repeat(2,2, ranks=[1,0])", 1, &[2, 2], &[(0, "(0,0)(1,0)(0,1)(1,1)")]),
        (
            "repeat(2,1)*spatial(2,2)",
            4,
            &[4, 2],
            &[(0, "(0,0)(2,0)"), (1, "(0,1)(2,1)"), (2, "(1,0)(3,0)"), (3, "(1,1)(3,1)")],
        ),
        (
            "spatial(2,2)*repeat(2,1)",
            4,
            &[4, 2],
            &[(0, "(0,0)(1,0)"), (1, "(0,1)(1,1)"), (2, "(2,0)(3,0)"), (3, "(2,1)(3,1)")],
        ),
        (
            "spatial(2,1)*repeat(1,2)*spatial(1,2)",
            4,
            &[2, 4],
            &[(0, "(0,0)(0,2)"), (1, "(0,1)(0,3)"), (2, "(1,0)(1,2)"), (3, "(1,1)(1,3)")],
        ),
        (
            "spatial(2,2,3, ranks=[2,0,1])",
            12,
            &[2, 2, 3],
            &[
                (0, "(0,0,0)"),
                (1, "(1,0,0)"),
                (2, "(0,0,1)"),
                (3, "(1,0,1)"),
                (4, "(0,0,2)"),
                (5, "(1,0,2)"),
                (6, "(0,1,0)"),
                (7, "(1,1,0)"),
            ],
        ),
        (
            "spatial(4,2)*spatial(2,2)",
            32,
            &[8, 4],
            &[
                (0, "(0,0)"),
                (1, "(0,1)"),
                (2, "(1,0)"),
                (3, "(1,1)"),
                (4, "(0,2)"),
                (5, "(0,3)"),
                (6, "(1,2)"),
                (7, "(1,3)"),
            ],
        ),
        (
            "repeat(8,1)*spatial(16,8)",
            128,
            &[128, 8],
            &[
                (0, "(0,0)(16,0)(32,0)(48,0)(64,0)(80,0)(96,0)(112,0)"),
                (9, "(1,1)(17,1)(33,1)(49,1)(65,1)(81,1)(97,1)(113,1)"),
                (127, "(15,7)(31,7)(47,7)(63,7)(79,7)(95,7)(111,7)(127,7)"),
            ],
        ),
        ("repeat(8,1)*spatial(1,128)", 128, &[8, 128], &[(5, "(0,5)(1,5)(2,5)(3,5)(4,5)(5,5)(6,5)(7,5)")]),
    ];
    for &(text, workers, shape, tasks) in rows {
        let mapping: TaskMapping = text.parse().unwrap();
        assert_eq!(mapping.to_string(), text);
        assert_eq!((mapping.workers(), mapping.shape()), (Ok(workers), Ok(shape.to_vec())));
        for &(worker, expected) in tasks {
            let list: Vec<String> =
                mapping.list(worker).unwrap().iter().map(|task| text::tuple_text(task)).collect();
            assert_eq!(list.concat(), expected, "{text}, worker {worker}");
        }
    }
    // The spellings of the tutorial.
    assert_eq!("repeat(8, 1).spatial(16, 8)".parse(), Ok(repeat([8, 1]).spatial([16, 8])));
    assert_eq!("col_spatial(4, 8).col_repeat(2, 1)".parse(), Ok(col_spatial([4, 8]).col_repeat([2, 1])));
    // Merging repeats keeps the order only where it is that of rows.
    assert!((repeat([2, 2]) * repeat([1, 2])).equivalent(&repeat([2, 4])).unwrap());
    assert!(!(repeat([1, 2]) * repeat([2, 1])).equivalent(&repeat([2, 2])).unwrap());
}

#[test]
fn mappings_are_found_for_shapes() {
    let found = |shape: &[u32], workers, ranks| auto_map(shape, workers, ranks).unwrap().to_string();
    assert_eq!(found(&[8, 32], 64, None), "repeat(4,1)*spatial(2,32)");
    assert_eq!(found(&[8, 96], 64, None), "repeat(4,3)*spatial(2,32)");
    assert_eq!(found(&[8, 96], 64, Some(&[1, 0])), "repeat(1,12, ranks=[1,0])*spatial(8,8, ranks=[1,0])");
    assert_eq!(found(&[8, 16, 24], 32, None), "repeat(8,4,3)*spatial(1,4,8)");
    let fault = auto_map([8, 41], 64, None).unwrap_err().to_string();
    assert_eq!(fault, "the 328 tasks of (8,41) cannot be shared evenly by 64 workers: 328 is no multiple");
    let predicated = |shape: [u32; 2]| {
        let (mapping, used) = predicated_auto_map(shape, 64, None).unwrap();
        (mapping.to_string(), used)
    };
    assert_eq!(predicated([3, 20]), ("repeat(1,1)*spatial(3,20)".to_owned(), 60));
    assert_eq!(predicated([8, 41]), ("repeat(8,1)*spatial(1,41)".to_owned(), 41));
}

#[test]
fn faults_are_values_with_names_and_numbers() {
    let fault = |mapping: TaskMapping| mapping.workers().unwrap_err().to_string();
    assert_eq!(
        fault(spatial([2, 3]) * repeat([4])),
        "spatial(2,3) has 2 dimensions, and repeat(4) has 1: factors have equally many"
    );
    assert_eq!(
        fault(spatial([2, 3]).ranks([0, 0])),
        "the ranks [0, 0] of spatial(2,3) are no order of its 2 dimensions: name each once, from 0"
    );
    assert!(fault(spatial([2]).repeat([2]).ranks([0])).contains("is not one factor"));
    assert!(fault(spatial([u32::MAX, 2])).contains("have to fit in 32 bits"));
    assert!(fault(spatial([65536]).spatial([65536])).contains("have to fit in 32 bits"));
    assert!(fault(repeat([65536]).spatial([65536])).contains("have to fit in 32 bits"));
    assert!(fault(spatial(vec![1; 17])).contains("at most 16"));
    // The first fault stays.
    let first = spatial([2, 3]).ranks([1]) * spatial([7]);
    assert!(matches!(first.workers(), Err(MappingError::Ranks { .. })), "{first}");
    let pair = spatial([2, 2]);
    assert_eq!(
        pair.list(4).unwrap_err().to_string(),
        "spatial(2,2) has 4 workers, numbered from 0; worker 4 is not one of them"
    );
    assert_eq!(pair.single(3), Ok([1, 1]));
    assert_eq!(
        pair.repeat([1, 2]).single::<2>(0).unwrap_err().to_string(),
        "worker 0 of spatial(2,2)*repeat(1,2) has 2 tasks, not one"
    );
    assert!(spatial([2]).on::<2>(0).is_err());
    assert!(spatial([2]).projection([1]).workers().is_err());
    // Nothing to do, and nobody to do it.
    assert_eq!(repeat([0, 3]).list(0), Ok(vec![]));
    assert_eq!(spatial([0]).workers(), Ok(0));
    assert_eq!((repeat([0]) * spatial([4])).list(3), Ok(vec![]));
    assert_eq!(spatial([]).list(0), Ok(vec![vec![]]));
    assert!(spatial([3]).linear_form().is_err());
    assert!(repeat([2, 2]).projection([0]).owner_of([0, 0]).is_err());
    for text in
        ["", "spatial", "spatial(2", "spatial(2)*", "spatial(99999999999)", "(spatial(2)", "spatial(2))"]
    {
        assert!(text.parse::<TaskMapping>().is_err(), "{text}");
    }
    assert!("(".repeat(100_000).parse::<TaskMapping>().is_err());
}

#[test]
fn registers_of_another_mapping_are_refused() {
    let tile = "spatial(2,2)*repeat(4,4)*spatial(4,1)*repeat(4,1)*spatial(1,16)";
    let tile: TaskMapping = tile.parse().unwrap();
    assert_eq!((tile.workers(), tile.tasks_per_worker()), (Ok(256), Ok(64)));
    assert_eq!(tile.shape(), Ok(vec![128, 128]));
    assert_eq!(tile.list(0).unwrap()[..5], [[0, 0], [1, 0], [2, 0], [3, 0], [0, 16]]);
    assert_eq!(tile.list(65).unwrap()[..5], [[0, 65], [1, 65], [2, 65], [3, 65], [0, 81]]);
    assert_eq!(tile.check_reads(&tile), Ok(()));
    // The same elements in each lane, in another order.
    let other = spatial([2, 2]).col_repeat([4, 4]).spatial([4, 1]).repeat([4, 1]).spatial([1, 16]);
    assert_eq!(
        tile.check_reads(&other).unwrap_err().to_string(),
        format!(
            "values that {other} put into registers are not where {tile} looks for them: (0,16) is register \
             16 of worker 0, and not register 4 of worker 0"
        )
    );
    assert!(tile.check_reads(&spatial([2, 2])).unwrap_err().to_string().contains("the shape (2,2)"));
}

/// The forms of the reference, by instruction: A, B and D.
const FORMS: &[(Mma, [&str; 3])] = {
    const D16: &str = "spatial(4,1)*repeat(4,1)*spatial(1,16)";
    const D32: &str = "repeat(4,1)*spatial(2,1)*repeat(4,1)*spatial(1,32)";
    &[
        (Mma::F32_16x16x4_F32, ["col_spatial(16,4)*repeat(1,1)", "spatial(4,16)*col_repeat(1,1)", D16]),
        (Mma::F32_32x32x2_F32, ["col_spatial(32,2)*repeat(1,1)", "spatial(2,32)*col_repeat(1,1)", D32]),
        (Mma::F32_16x16x16_F16, ["col_spatial(16,4)*repeat(1,4)", "spatial(4,16)*col_repeat(4,1)", D16]),
        (Mma::F32_32x32x8_F16, ["col_spatial(32,2)*repeat(1,4)", "spatial(2,32)*col_repeat(4,1)", D32]),
        (Mma::F32_16x16x8_BF16, ["col_spatial(16,4)*repeat(1,2)", "spatial(4,16)*col_repeat(2,1)", D16]),
        (Mma::F32_32x32x4_BF16, ["col_spatial(32,2)*repeat(1,2)", "spatial(2,32)*col_repeat(2,1)", D32]),
        (Mma::F32_32x32x8_BF16, ["col_spatial(32,2)*repeat(1,4)", "spatial(2,32)*col_repeat(4,1)", D32]),
        (Mma::I32_16x16x32_I8, ["col_spatial(16,4)*repeat(1,8)", "spatial(4,16)*col_repeat(8,1)", D16]),
        (Mma::I32_32x32x8_I8, ["col_spatial(32,2)*repeat(1,4)", "spatial(2,32)*col_repeat(4,1)", D32]),
        (
            Mma::F32_32x32x16_F8E4M3FNUZ,
            ["col_spatial(32,2)*repeat(1,8)", "spatial(2,32)*col_repeat(8,1)", D32],
        ),
        (
            Mma::F64_16x16x4_F64,
            ["col_spatial(16,4)*repeat(1,1)", "spatial(4,16)*col_repeat(1,1)", "repeat(4,1)*spatial(4,16)"],
        ),
        (Mma::F32_16x16x32_F16, ["col_spatial(16,4)*repeat(1,8)", "spatial(4,16)*col_repeat(8,1)", D16]),
        (Mma::I32_32x32x32_I8, ["col_spatial(32,2)*repeat(1,16)", "spatial(2,32)*col_repeat(16,1)", D32]),
        (
            Mma::F32_16x16x128_F8E4M3FN,
            ["repeat(1,2)*col_spatial(16,4)*repeat(1,16)", "repeat(2,1)*spatial(4,16)*col_repeat(16,1)", D16],
        ),
        (Mma::F32_32x32x64_F4E2M1, ["col_spatial(32,2)*repeat(1,32)", "spatial(2,32)*col_repeat(32,1)", D32]),
    ]
};

#[test]
fn matrix_instructions_have_the_forms_of_the_reference() {
    for (mma, forms) in FORMS {
        let config = MmaConfig::new(*mma).unwrap();
        for (map, form) in
            [config.a_load_map(), config.b_load_map(), config.c_store_map()].into_iter().zip(forms)
        {
            assert!(map.equivalent(&form.parse().unwrap()).unwrap(), "{mma}: {map}, not {form}");
        }
    }
    let forms = [
        ([4, 4, 1, 16], "spatial(16,1,1)*repeat(1,4,1)*spatial(1,1,4)"),
        ([16, 16, 1, 4], "repeat(4,1,1)*spatial(1,4,1)*repeat(1,4,1)*spatial(1,1,16)"),
        ([32, 32, 1, 2], "repeat(2,1,1)*repeat(1,4,1)*spatial(1,2,1)*repeat(1,4,1)*spatial(1,1,32)"),
    ];
    for (shape, form) in forms {
        let config = MmaConfig::of_blocks(shape, crate::ir::types::DType::F32).unwrap();
        let [m, n, k, blocks] = shape;
        let map = config.c_store_map();
        assert!(map.equivalent(&form.parse().unwrap()).unwrap(), "{shape:?}: {map}");
        let groups = 64 / (m * blocks);
        let held = k / groups;
        let a = spatial([blocks, 1, 1]).col_spatial([1, m, groups]).repeat([1, 1, held]);
        assert!(config.a_load_map().equivalent(&a).unwrap(), "{shape:?}: {}", config.a_load_map());
        let b = spatial([blocks, 1, 1]).spatial([1, groups, n]).repeat([1, held, 1]);
        assert!(config.b_load_map().equivalent(&b).unwrap(), "{shape:?}: {}", config.b_load_map());
    }
    let config = MmaConfig::of_blocks([4, 4, 4, 4], crate::ir::types::DType::F64).unwrap();
    let a = "spatial(1,1,4)*spatial(4,1,1)*spatial(1,4,1)".parse().unwrap();
    let b = "spatial(1,4,1)*spatial(4,1,1)*spatial(1,1,4)".parse().unwrap();
    assert!(config.a_load_map().equivalent(&a).unwrap());
    assert!(config.b_load_map().equivalent(&b).unwrap() && config.c_store_map().equivalent(&b).unwrap());
}

#[test]
fn every_matrix_instruction_partitions_its_tiles_among_64_lanes() {
    let mut count = 0;
    for (mma, config) in MmaConfig::all() {
        let tiles = [[mma.m(), mma.k()], [mma.k(), mma.n()], [mma.m(), mma.n()]];
        let maps = [config.a_load_map(), config.b_load_map(), config.c_store_map()];
        for (map, tile) in maps.into_iter().zip(tiles) {
            assert_eq!((map.workers(), map.shape()), (Ok(64), Ok(tile.to_vec())), "{mma}: {map}");
            for worker in [0, 21, 63] {
                for (register, task) in (0..).zip(map.list(worker).unwrap()) {
                    assert_eq!((map.owner_of(&task), map.register_of(&task)), (Ok(worker), Ok(register)));
                }
            }
        }
        count += 1;
    }
    // All but the products of lanes one by one.
    let of_lanes: Vec<Mma> = Mma::all().filter(|mma| mma.is_of_lanes()).collect();
    assert_eq!(count + of_lanes.len(), Mma::ALL.len());
    for mma in of_lanes {
        let fault = MmaConfig::new(mma).unwrap_err().to_string();
        assert!(fault.contains(mma.name()) && fault.contains("copies"), "{fault}");
    }
    let fault = MmaConfig::of_blocks([16, 16, 3, 1], crate::ir::types::DType::F32).unwrap_err();
    assert!(fault.to_string().contains("a wave of 64 lanes cannot hold"), "{fault}");
}
