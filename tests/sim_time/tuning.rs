//! Tuning: spaces and what empties them, searches that are the same every time, winners that are right, and a
//! database that is merged in any order.

use std::fs;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use groundswell::check::against_interpreter;
use groundswell::compile::{Verify, compile_uncached};
use groundswell::prelude::*;
use groundswell::target::TargetId;
use groundswell::templates::{Matmul, ReadyTemplate};
use groundswell::tuning::{
    Budget, ChoiceValue, Database, InstanceKernel, Point, RefusedCandidate, Search, SearchLevel, Template,
    Tuned, Tuner, TuningSpace, WinnerKey, WinnerRecord,
};
use proptest::prelude::{Strategy as _, any, prop, prop_assert_eq, proptest};

fn texts(space: &TuningSpace) -> Vec<String> {
    let points = space.enumerate().expect("a space with points").points;
    points.iter().map(Point::to_string).collect()
}

#[test]
fn the_last_choice_changes_fastest() {
    let space =
        TuningSpace::new().choice("tile", [[64, 32], [32, 16]]).choice("schedule", ["none", "prefetch"]);
    let expected = [
        "tile=64x32 schedule=none",
        "tile=64x32 schedule=prefetch",
        "tile=32x16 schedule=none",
        "tile=32x16 schedule=prefetch",
    ];
    assert_eq!(texts(&space), expected);
    assert_eq!(texts(&TuningSpace::new()), [""], "one point without choices");
}

#[test]
fn choices_and_constraints_see_what_comes_before_them() {
    let space = TuningSpace::new()
        .choice("rows", [16, 32, 64])
        .constraint("less than 64 rows", |point| point.number("rows") < Some(64))
        .dependent_choice("waves", |point| {
            let rows = point.number("rows").unwrap_or(0);
            (1..=rows / 16).map(ChoiceValue::from).collect()
        })
        .constraint("an even number", |point| point.number("waves").is_some_and(|waves| waves % 2 == 0));
    let found = space.enumerate().expect("a space with points");
    assert_eq!(found.points.iter().map(Point::to_string).collect::<Vec<_>>(), ["rows=32 waves=2"]);
    let counts: Vec<_> = found.constraints.iter().map(|it| (&*it.name, it.before, it.after)).collect();
    assert_eq!(counts, [("less than 64 rows", 3, 2), ("an even number", 3, 1)]);
}

#[test]
fn what_empties_a_space_is_named() {
    let rows = || TuningSpace::new().choice("rows", [16, 32]);
    let fault = |space: TuningSpace| space.enumerate().expect_err("nothing is left").to_string();
    let none = fault(rows().constraint("more than 100 rows", |point| point.number("rows") > Some(100)));
    assert!(none.contains("of 2 none has `more than 100 rows`"), "{none}");
    let no_values = fault(rows().choice("schedule", Vec::<&str>::new()));
    assert!(no_values.contains("`schedule` has no values"), "{no_values}");
    let twice = fault(rows().choice("rows", [8]));
    assert!(twice.contains("two choices of the space are called `rows`"), "{twice}");
    let large = fault(rows().choice("a", 0..1000).choice("b", 0..1000).limit(10_000));
    assert!(large.contains("more than 10000 points before `b`"), "{large}");
}

#[test]
fn points_are_read_back_and_faults_are_named() {
    let point: Point = "tile=256x256x64 waves=4x2 schedule=pingpong split_k=1".parse().expect("a point");
    assert_eq!(point.numbers("tile"), Some([256, 256, 64]));
    assert_eq!((point.word("schedule"), point.number("split_k")), (Some("pingpong"), Some(1)));
    assert_eq!((point.number("tile"), point.word("tile"), point.value("other")), (None, None, None));
    for text in ["tile", "tile=", "=3", "tile=1 tile=2", "tile=1xx2", "tile=4 x", "t\u{e4}le=1"] {
        assert!(text.parse::<Point>().is_err(), "{text}");
    }
}

proptest! {
    #[test]
    fn all_points_are_read_back(choices in prop::collection::btree_map("[a-z][a-z_0-9]{0,8}", values(), 0..6)) {
        let point = choices.into_iter().fold(Point::default(), |point, (name, value)| point.with(name, value));
        prop_assert_eq!(point.to_string().parse::<Point>().expect("what was printed"), point);
    }

    #[test]
    fn databases_are_merged_in_any_order(records in prop::collection::vec((0..4usize, 0..50u32, 0..4i64), 0..40), cut in any::<prop::sample::Index>()) {
        let record = |&(task, time, choice): &(usize, u32, i64)| WinnerRecord {
            key: WinnerKey::new("matmul", &format!("task{task}"), "MI300X", 1350.0),
            microseconds: f64::from(time) / 4.0,
            point: Point::default().with("choice", choice),
        };
        let of = |records: &[(usize, u32, i64)]| {
            let mut database = Database::default();
            records.iter().for_each(|one| database.add(record(one)));
            database
        };
        let whole = of(&records);
        let (a, b) = records.split_at(if records.is_empty() { 0 } else { cut.index(records.len()) });
        let (mut ab, mut ba) = (of(a), of(b));
        ab.merge(of(b));
        ba.merge(of(a));
        prop_assert_eq!(&ab, &whole);
        prop_assert_eq!(ba.to_string(), whole.to_string());
        prop_assert_eq!(whole.to_string().parse::<Database>().expect("what was printed"), whole);
    }
}

fn values() -> impl prop::strategy::Strategy<Value = ChoiceValue> {
    let numbers =
        prop::collection::vec(any::<i64>(), 1..4).prop_map(|numbers| ChoiceValue::Numbers(numbers.into()));
    let words = "[a-zA-Z][a-z0-9_.:+,-]{0,10}".prop_map(|word| ChoiceValue::from(word.as_str()));
    prop::strategy::Union::new([numbers.boxed(), words.boxed()])
}

/// A file of the test's own that does not exist yet.
fn new_file(name: &str) -> PathBuf {
    let directory = std::env::temp_dir().join(format!("groundswell-tuning-{}-{name}", std::process::id()));
    let _ = fs::remove_dir_all(&directory);
    fs::create_dir_all(&directory).expect("the directory of temporary files");
    directory.join("winners.txt")
}

fn winner(task: usize, microseconds: f64) -> Database {
    let mut database = Database::default();
    let key = WinnerKey::new("matmul", &format!("task{task}"), "MI300X", 1350.0);
    database.add(WinnerRecord { key, microseconds, point: Point::default().with("tile", [64, 64]) });
    database
}

#[test]
fn many_threads_add_to_one_database() {
    let path = new_file("threads");
    std::thread::scope(|scope| {
        for thread in 0..8 {
            let path = &path;
            scope.spawn(move || {
                for n in 0..10 {
                    winner(10 * thread + n, 1.0).add_to(path).expect("it can be written");
                }
            });
        }
    });
    assert_eq!(Database::read(&path).expect("a database").records().count(), 80);
    let left: Vec<_> = fs::read_dir(path.parent().expect("its directory")).expect("is there").collect();
    assert_eq!(left.len(), 2, "the database and its lock: {left:?}");
}

#[test]
fn torn_and_foreign_databases_are_refused_and_left_alone() {
    let path = new_file("torn");
    let whole = winner(1, 2.0).to_string();
    for text in [
        "",
        "something else\n",
        &whole[..whole.len() - 1],
        &whole[..whole.len() - 9],
        "groundswell tuning 2\n",
    ] {
        fs::write(&path, text).expect("it can be written");
        assert!(Database::read(&path).is_err(), "{text:?}");
        assert!(winner(2, 1.0).add_to(&path).is_err(), "{text:?}");
        assert_eq!(fs::read_to_string(&path).expect("it is there"), text);
    }
    assert_eq!(
        Database::read(&path.with_file_name("none.txt")).expect("no file has no winners"),
        Database::default()
    );
    assert!(winner(2, 1.0).add_to(&path.join("no/directory.txt")).is_err());
}

fn points(tuned: &Tuned) -> Vec<(String, f64)> {
    tuned.candidates().iter().map(|it| (it.point.to_string(), it.time.microseconds)).collect()
}

fn tuner() -> Tuner {
    Tuner::new(Target::GFX942).expect("it is timed")
}

#[test]
fn searches_are_the_same_every_time_and_never_worse_than_no_search() {
    let matmul = Matmul::new([384, 640, 1024]);
    let all = tuner().search(Search::Exhaustive).tune(&matmul).expect("candidates");
    assert_eq!(all.candidates().len() + all.refused().len(), all.points());
    // What would spill is not judged.
    let is_spill = |refused: &RefusedCandidate| refused.reason.message.contains("spill");
    assert!(all.refused().iter().all(is_spill), "{:?}", all.refused());
    assert!(all.points() >= 20, "{}", all.points());
    let own = tuner().level(SearchLevel::Zero).tune(&matmul).expect("candidates");
    assert_eq!(own.points(), 1);
    let best = all.best().time.microseconds;
    assert!(best <= own.best().time.microseconds);
    for search in [Search::Halving, Search::Guided] {
        let once = tuner().search(search).tune(&matmul).expect("candidates");
        let again = tuner().search(search).tune(&matmul).expect("candidates");
        assert_eq!(points(&once), points(&again), "{search:?}");
        assert!(
            once.best().time.microseconds <= 1.02 * best,
            "{search:?}: {} {best}",
            once.best().time.microseconds
        );
    }
}

#[test]
fn budgets_end_searches() {
    let matmul = Matmul::new([256, 256, 512]);
    let few = Budget { candidates: Some(5), ..Budget::default() };
    for (_, search) in Search::ALL {
        let tuned = tuner().search(search).budget(few).tune(&matmul).expect("candidates");
        assert!(tuned.candidates().len() <= 5, "{search:?}");
    }
    let none = Budget { candidates: Some(0), ..Budget::default() };
    assert!(tuner().budget(none).tune(&matmul).is_err());
    let loose = Budget { regret: Some(1e9), ..Budget::default() };
    let strict = Budget { regret: Some(0.0), ..Budget::default() };
    let counts = [loose, strict]
        .map(|budget| tuner().budget(budget).tune(&matmul).expect("candidates").candidates().len());
    assert!(counts[0] <= counts[1], "{counts:?}");
    // However short the time is, the first few are judged.
    let short = Budget { time: Some(Duration::ZERO), ..Budget::default() };
    let tuned = tuner().search(Search::Exhaustive).budget(short).tune(&matmul).expect("candidates");
    assert_eq!(tuned.candidates().len() + tuned.refused().len(), 8);
    // Whoever watches may stop it, and has the best one so far.
    let asked = AtomicUsize::new(0);
    let stopped = tuner().search(Search::Exhaustive).tune_with_progress(&matmul, &|judged, most| {
        assert!(judged <= most);
        asked.fetch_add(1, Ordering::Relaxed) > 0
    });
    assert_eq!(stopped.expect("candidates").candidates().len(), 8);
}

#[test]
fn parts_of_a_space_together_are_the_space() {
    let matmul = Matmul::new([128, 256, 512]);
    let search = tuner().search(Search::Exhaustive);
    let whole = search.tune(&matmul).expect("candidates");
    let (mut merged, mut parts) = (Database::default(), Vec::new());
    for part in 0..3 {
        let tuned = search.clone().shard(part, 3).tune(&matmul).expect("candidates");
        parts.extend(points(&tuned));
        merged.add(tuned.record());
    }
    let mut all = points(&whole);
    all.sort_by(|a, b| a.0.cmp(&b.0));
    parts.sort_by(|a, b| a.0.cmp(&b.0));
    assert_eq!(parts, all);
    let best = merged.winner(&search.key(&matmul)).expect("a winner").microseconds;
    assert!((best - whole.best().time.microseconds).abs() < 0.001);
    assert!(search.clone().shard(3, 3).tune(&matmul).is_err(), "parts are counted from 0");
    assert!(
        search.shard(0, 1_000_000).tune(&matmul).is_ok()
            && tuner().shard(999_999, 1_000_000).tune(&matmul).is_err()
    );
}

#[test]
fn every_usual_candidate_of_a_ragged_product_is_right() {
    for (target, matmul) in [
        (Target::GFX942, Matmul::new([70, 130, 200])),
        (Target::GFX950, Matmul::new([33, 50, 1030]).inputs(DType::Bf16)),
        (Target::GFX942, Matmul::new([5, 70, 2000]).output(F16)),
    ] {
        let space = matmul.space(target, SearchLevel::One).expect("a space").enumerate().expect("points");
        let device = Device::simulator(target);
        let mut launches = 0;
        for point in &space.points {
            let kernels = matmul.instantiate(TargetId::from(target), point).expect("an instance");
            for kernel in kernels {
                let executable =
                    compile_uncached(&kernel.kernel, &kernel.options, Verify::Off).expect("it compiles");
                let value = |symbol: Symbol| kernel.options.value(symbol);
                let checked =
                    against_interpreter(&kernel.kernel, &executable, &device, &value, 7).expect("it runs");
                assert!(checked.comparison.ok, "{target} {point}: {:?}", checked.comparison);
                launches += 1;
            }
        }
        assert!(launches >= 12, "{launches}");
    }
}

/// A copy of open size.
struct OpenCopy(i64);

impl Template for OpenCopy {
    fn name(&self) -> &str {
        "open_copy"
    }

    fn task(&self) -> String {
        self.0.to_string()
    }

    fn space(&self, _: Target, _: SearchLevel) -> Result<TuningSpace, Diagnostic> {
        Ok(TuningSpace::new().choice("block", [256, 1024]))
    }

    fn instantiate(&self, target: TargetId, point: &Point) -> Result<Vec<InstanceKernel>, Diagnostic> {
        let [m, block] = symbols(["M", "BLOCK"]);
        let kernel = Kernel::trace("open_copy", |w| {
            w.distribute([workgroup(m, block, 0), wave(m, block)]);
            let [a, b] = ["a", "b"].map(|name| w.memory(name, [m], Global, F32));
            w.write(w.read(a), b);
        })?;
        let options = Options::new(target).dynamic(m).set(block, point.number("block").unwrap_or(256));
        Ok(vec![InstanceKernel { kernel, options, sizes: vec![(m, self.0)] }])
    }
}

#[test]
fn open_sizes_are_those_that_the_template_names() {
    let times = [1 << 20, 1 << 24].map(|size| {
        let tuned = tuner().tune(&OpenCopy(size)).expect("candidates");
        assert_eq!(tuned.candidates().len(), 2);
        tuned.best().time.microseconds
    });
    assert!(times[1] > 4.0 * times[0], "{times:?}");
}

#[test]
fn points_of_others_are_refused_or_right() {
    let matmul = Matmul::new([64, 64, 4096]);
    let whole = "tile=64x64x64 waves=2x2 schedule=prefetch split_k=1 order=usual";
    for (point, said) in [
        ("tile=64x64x64 waves=2x2 schedule=prefetch split_k=1 order=sideways", "the order `sideways`"),
        ("tile=64x64x64 waves=2x2 schedule=soon split_k=1", "there is no schedule `soon`"),
        ("tile=64x64x64 waves=2x2 schedule=pingpog split_k=8", "did you mean `pingpong`?"),
        ("tile=64x64 waves=2x2", "has no tile"),
        ("tile=64x64x64", "has no waves"),
        ("tile=model split_k=4", "has no tile"),
        ("tile=0x64x64 waves=2x2 split_k=4", ""),
        ("tile=64x64x0 waves=2x2 split_k=4", ""),
        ("tile=64x64x64 waves=0x2 split_k=1", ""),
        ("tile=64x64x64 waves=2x2 split_k=0", ""),
        ("tile=64x64x64 waves=2x2 split_k=4294967295", ""),
        ("tile=4294967295x4294967295x4294967295 waves=2x2 split_k=2", ""),
    ] {
        let point: Point = point.parse().expect("a point");
        let compiled = matmul.instantiate(TargetId::from(Target::GFX942), &point).and_then(|kernels| {
            kernels.iter().try_for_each(|it| compile_uncached(&it.kernel, &it.options, Verify::Off).map(drop))
        });
        let fault = compiled.expect_err(&point.to_string()).to_string();
        assert!(fault.contains(said), "{point}: {fault}");
    }
    let point: Point = whole.parse().expect("a point");
    assert!(matmul.compile(Target::GFX942, &point).is_ok());
}

#[test]
fn ready_kernels_are_templates() {
    for (name, sizes) in [("softmax", [("M", 512), ("N", 1000)]), ("transpose", [("M", 700), ("N", 500)])] {
        let template = ReadyTemplate::new(name, &sizes).expect("a ready kernel");
        let own = tuner().level(SearchLevel::Zero).tune(&template).expect("the default");
        let tuned = tuner().budget(Budget { candidates: Some(30), ..Budget::default() }).tune(&template);
        let tuned = tuned.expect("candidates");
        assert!(tuned.best().time.microseconds <= own.best().time.microseconds, "{name}");
        let kernels =
            template.instantiate(TargetId::from(Target::GFX942), &tuned.best().point).expect("an instance");
        let executable = kernels[0].kernel.compile(&kernels[0].options).expect("it compiles");
        let value = |symbol: Symbol| kernels[0].options.value(symbol);
        let device = Device::simulator(Target::GFX942);
        let checked =
            against_interpreter(&kernels[0].kernel, &executable, &device, &value, 3).expect("it runs");
        assert!(checked.comparison.ok, "{name}");
    }
    assert!(ReadyTemplate::new("sotfmax", &[]).is_err());
    assert!(ReadyTemplate::new("softmax", &[("Q", 3)]).is_err());
}
