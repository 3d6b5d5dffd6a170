//! The cache on disk: what it gives back is what a compilation gives, whatever happens to its files, and many
//! processes use one directory.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::kernels::{self, Case};
use crate::places::Directory;
use crate::program;
use groundswell::cache::{Cache, CacheCounts, Stale};
use groundswell::compile::{Verify, compile_uncached, link};
use groundswell::kernels::{Waves, copy};
use groundswell::prelude::*;
use groundswell::report::Report;
use proptest::prelude::*;
use xxhash_rust::xxh3::Xxh3;

/// The directory and the first of the kernels of a process that this test program starts.
const WORKER: &str = "GROUNDSWELL_DISK_CACHE_WORKER";

/// Different kernels of the processes that share a directory.
const SHARED_KERNELS: usize = 200;

fn cache_in(directory: &Directory) -> Cache {
    Cache::at(directory.0.join("cache")).expect("the directory can be made")
}

fn counts(hits: u64, misses: u64, broken: u64) -> CacheCounts {
    CacheCounts { hits, misses, broken }
}

/// One of many kernels that differ in a size.
fn numbered(number: usize) -> (Kernel, Options) {
    let sizes = [("M", 4 + number as i64), ("N", 64), ("BLOCK_M", 4), ("BLOCK_N", 64)];
    let set = |options: Options, (name, size): (&str, i64)| options.set(Symbol::new(name), size);
    let options = sizes.into_iter().fold(Options::new(Target::GFX942), set);
    (copy(F32, Waves::new(1, 1)).expect("a valid kernel"), options)
}

/// Runs the copy and compares.
fn launch(executable: &Executable, number: usize) {
    let device = Device::simulator(Target::GFX942);
    let count = (4 + number) * 64;
    let data: Vec<f32> = (0..count).map(|at| (at + number) as f32).collect();
    let from = device.upload(&data).expect("there is memory");
    let to = device.upload(&vec![0f32; count]).expect("there is memory");
    device.launch(executable).buffer(&from).buffer(&to).run().expect("it runs");
    assert_eq!(to.download::<f32>().expect("it is there"), data);
}

/// The files with entries.
fn entry_files(cache: &Cache) -> Vec<PathBuf> {
    cache.entries().expect("it can be read").into_iter().map(|entry| entry.file).collect()
}

/// Names of what is in a directory, sorted.
fn names(path: &Path) -> Vec<String> {
    let files = fs::read_dir(path).expect("it is there").flatten();
    let mut names: Vec<String> = files.map(|file| file.file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

/// Everything that can be asked of an executable is the same.
fn assert_same(name: &str, a: &Executable, b: &Executable) {
    assert_eq!(a.object(), b.object(), "{name}");
    assert_eq!(a.code(), b.code(), "{name}");
    assert_eq!(a.parameters(), b.parameters(), "{name}");
    assert_eq!((a.block(), a.target_id(), a.name()), (b.block(), b.target_id(), b.name()), "{name}");
    assert_eq!(a.kernel_info(), b.kernel_info(), "{name}");
    let report = |of: &Executable| Report { phases: Vec::new(), ..of.report().clone() };
    assert_eq!(report(a), report(b), "{name}");
    assert_eq!(a.assembly().expect("it can be listed"), b.assembly().expect("it can be listed"), "{name}");
    assert_eq!(link(&[a]).expect("one kernel"), link(&[b]).expect("one kernel"), "{name}");
    for size in [1, 2, 63, 64, 65, 1000, 4096, 1 << 20, i64::from(i32::MAX)] {
        let grid = |of: &Executable| of.grid(&|_| Some(size)).map_err(|error| error.to_string());
        assert_eq!(grid(a), grid(b), "{name} at {size}");
    }
}

#[test]
fn every_kernel_comes_back_as_it_was_compiled() {
    let directory = Directory::new("disk-cache-all");
    let cache = cache_in(&directory);
    let mut compiled = 0;
    for Case { name, kernel, options } in kernels::all() {
        let Ok(first) = cache.compile(&kernel, &options) else { continue };
        let before = cache.counts();
        let second = cache.compile(&kernel, &options).expect("it compiled before");
        assert_eq!(cache.counts().hits, before.hits + 1, "{name}");
        assert_same(&name, &first, &second);
        compiled += 1;
    }
    assert!(compiled > 50, "{compiled}");
    assert_eq!(cache.counts().broken, 0);
    assert!(cache.entries().expect("it can be read").iter().all(|entry| entry.content.is_ok()));
}

#[test]
fn whatever_changes_the_code_changes_the_key() {
    let directory = Directory::new("disk-cache-keys");
    let cache = cache_in(&directory);
    let (kernel, options) = numbered(0);
    let chosen = [
        options.clone(),
        options.clone().for_target(Target::GFX90A),
        options.clone().for_target("gfx942:xnack-".parse::<TargetId>().expect("a target id")),
        options.clone().set("BLOCK_M", 4).debug_info(DebugInfo::None),
        options.clone().schedule(Schedule::Prefetch),
        options.clone().fast_math(),
        options.clone().bounds_check(),
        options.clone().deny(Deny::Spills),
        options.clone().max_vgprs(64),
        options.clone().emulate(Bf16),
        options.clone().global_to_shared(GlobalToShared::Off),
        options.clone().set("OTHER", 1),
    ];
    for (at, options) in chosen.iter().enumerate() {
        cache.compile(&kernel, options).expect("compiles");
        assert_eq!(cache.counts(), counts(0, at as u64 + 1, 0), "{options:?}");
    }
    // The same kernel from another place has other lines.
    let text = |name: &str| Kernel::parse(&kernel.to_string(), name).expect("what is printed can be read");
    let [here, there] = [text("here.gsw"), text("there.gsw")];
    let before = cache.counts().misses;
    for kernel in [&here, &there, &here] {
        cache.compile(kernel, &options).expect("compiles");
    }
    assert_eq!(cache.counts().misses, before + 2);
    for (kernel, options) in [(&kernel, &chosen[0]), (&kernel, &chosen[3])] {
        let before = cache.counts();
        cache.compile(kernel, options).expect("compiles");
        assert_eq!(cache.counts().hits, before.hits + 1, "{options:?}");
    }
    // Who set a size does not matter.
    let again = numbered(0).1;
    let before = cache.counts();
    cache.compile(&kernel, &again).expect("compiles");
    assert_eq!(cache.counts().hits, before.hits + 1);
}

#[test]
fn torn_and_changed_files_are_compiled_again() {
    let directory = Directory::new("disk-cache-torn");
    let cache = cache_in(&directory);
    let (kernel, options) = numbered(1);
    let first = cache.compile(&kernel, &options).expect("compiles");
    let file = entry_files(&cache).pop().expect("one entry");
    let sound = fs::read(&file).expect("it is there");
    let lengths =
        (0..sound.len()).step_by(97).chain([sound.len() - 1]).map(|length| sound[..length].to_vec());
    let mut longer = sound.clone();
    longer.push(0);
    let changed = (0..sound.len()).step_by(61).map(|at| {
        let mut bytes = sound.clone();
        bytes[at] ^= 1 << (at % 8);
        bytes
    });
    for (at, bytes) in lengths.chain([longer]).chain(changed).enumerate() {
        fs::write(&file, &bytes).expect("it can be written");
        let before = cache.counts();
        assert!(!cache.entries().expect("it can be read").iter().all(|entry| entry.content.is_ok()), "{at}");
        let again = cache.compile(&kernel, &options).expect("compiles");
        assert_eq!(cache.counts(), counts(before.hits, before.misses + 1, before.broken + 1), "{at}");
        assert_eq!(again.object(), first.object(), "{at}");
        assert_eq!(fs::read(&file).expect("it was written again").len(), sound.len(), "{at}");
    }
    // The entry of another compilation under this one's name.
    let (_, other) = numbered(2);
    cache.compile(&kernel, &other).expect("compiles");
    let others = entry_files(&cache).into_iter().find(|of| *of != file).expect("a second entry");
    fs::copy(&others, &file).expect("it can be written");
    let again = cache.compile(&kernel, &options).expect("compiles");
    assert_eq!(again.object(), first.object());
}

/// The bytes with a checksum that is right.
fn signed(mut bytes: Vec<u8>) -> Vec<u8> {
    if bytes.len() >= 40 {
        let key = u64::from_le_bytes(bytes[8..16].try_into().expect("eight bytes"));
        let rest = (bytes.len() as u64 - 40).wrapping_sub(key);
        bytes[16..24].copy_from_slice(&rest.to_le_bytes());
        let mut hasher = Xxh3::new();
        hasher.update(&bytes[8..24]);
        hasher.update(&bytes[40..]);
        let sum = hasher.digest128().to_le_bytes();
        bytes[24..40].copy_from_slice(&sum);
    }
    bytes
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    /// Entries that a forger has made are wrong executables or errors, and no panics: not when they are read
    /// and not when they are launched.
    #[test]
    fn forged_entries_do_not_panic(
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
        cut in any::<prop::sample::Index>(),
    ) {
        let directory = Directory::new("disk-cache-forged");
        let cache = cache_in(&directory);
        let (kernel, options) = numbered(3);
        cache.compile(&kernel, &options).expect("compiles");
        let file = entry_files(&cache).pop().expect("one entry");
        let mut bytes = fs::read(&file).expect("it is there");
        let key = u64::from_le_bytes(bytes[8..16].try_into().expect("eight bytes")) as usize;
        // The record without most of its object, whose bytes mean nothing here.
        let record = 40 + key..(bytes.len() - 3000).max(41 + key);
        for (at, value) in changes {
            let at = record.start + at.index(record.len());
            bytes[at] = value;
        }
        if cut.index(4) == 0 {
            bytes.truncate(record.start + cut.index(record.len()));
        }
        fs::write(&file, signed(bytes)).expect("it can be written");
        if let Ok(executable) = cache.compile(&kernel, &options) {
            let _ = executable.grid(&|_| Some(64));
            let _ = (executable.assembly().is_ok(), link(&[&executable]).is_ok());
            let device = Device::simulator(Target::GFX942).with_limits(groundswell::simulator::Limits {
                instructions: 100_000,
                time: Some(Duration::from_secs(1)),
            });
            let buffer = device.upload(&[0f32; 512]).expect("there is memory");
            let _ = device.launch(&executable).buffer(&buffer).buffer(&buffer).run().is_ok();
        }
    }
}

#[test]
fn what_was_used_least_recently_leaves_first() {
    let directory = Directory::new("disk-cache-limit");
    let cache = cache_in(&directory);
    let compile = |number: usize| {
        let (kernel, options) = numbered(number);
        cache.compile(&kernel, &options).expect("compiles");
        // Times of files are as fine as the kernel's clock.
        std::thread::sleep(Duration::from_millis(12));
    };
    compile(0);
    let one = cache.entries().expect("it can be read")[0].bytes;
    let cache = cache.clone().limit(8 * one + one / 2);
    for number in 1..8 {
        compile(number);
    }
    // The first one is used again, so the next two leave before it.
    compile(0);
    assert_eq!(cache.counts(), counts(1, 8, 0));
    compile(8);
    let entries = cache.entries().expect("it can be read");
    let total: u64 = entries.iter().map(|entry| entry.bytes).sum();
    assert!(total <= 8 * one + one / 2 && entries.len() >= 6, "{} entries, {total} bytes", entries.len());
    let before = cache.counts();
    compile(0);
    assert_eq!(cache.counts().hits, before.hits + 1);
    compile(1);
    assert_eq!(cache.counts().misses, before.misses + 1);

    // Pruned to nothing, with what a dead process has left, but not with what a living one writes.
    fs::write(cache.path().join("999-1.part"), b"left behind").expect("it can be written");
    let writing = fs::File::create(cache.path().join("999-2.part")).expect("it can be written");
    writing.lock().expect("nobody has it");
    let pruned = cache.prune(0, Stale::Kept).expect("it can be pruned");
    assert!(pruned.entries >= 6 && pruned.parts == 1 && pruned.left == 0, "{pruned:?}");
    assert_eq!(names(cache.path()), ["999-2.part", "size"]);
}

/// Whatever the file with the size says, the limit holds once the next entry is added.
#[test]
fn a_wrong_size_is_counted_again() {
    let directory = Directory::new("disk-cache-size");
    let cache = cache_in(&directory);
    let compile = |number: usize| {
        let (kernel, options) = numbered(number);
        cache.compile(&kernel, &options).expect("compiles");
    };
    (0..6).for_each(compile);
    let one = cache.entries().expect("it can be read")[0].bytes;
    for (at, wrong) in
        [&b"000"[..], b"", b"\xff\xfe", b"00000000000000000001\n2\n", b"nonsense of some length\n"]
            .iter()
            .enumerate()
    {
        fs::write(cache.path().join("size"), wrong).expect("it can be written");
        let _ = cache.clone().limit(5 * one);
        compile(10 + at);
        let total: u64 = cache.entries().expect("it can be read").iter().map(|entry| entry.bytes).sum();
        assert!(total <= 5 * one, "{wrong:?}: {total} bytes");
        assert!(cache.problem().is_none());
    }
    // An entry that alone is more than the limit leaves the others alone.
    let archive = PathBuf::from(directory.file("archive"));
    cache.export(&archive).expect("it can be written");
    let before = entry_files(&cache);
    assert_eq!(cache.clone().limit(10).import(&archive).expect("it can be read").entries, 0);
    assert_eq!(entry_files(&cache), before);
    let read_only = Cache::read_only(cache.path()).expect("it is there");
    assert!(read_only.prune(0, Stale::Removed).is_err());
    assert_eq!(entry_files(&cache), before);
}

#[test]
fn with_a_limit_of_nothing_nothing_is_kept() {
    let directory = Directory::new("disk-cache-nothing");
    let cache = cache_in(&directory).limit(0);
    let (kernel, options) = numbered(0);
    cache.compile(&kernel, &options).expect("compiles");
    assert!(cache.entries().expect("it can be read").is_empty() && cache.problem().is_none());
}

#[test]
fn directories_that_are_read_only_or_gone() {
    let directory = Directory::new("disk-cache-read-only");
    let filled = cache_in(&directory);
    let [(kernel, options), (_, other)] = [numbered(0), numbered(1)];
    filled.compile(&kernel, &options).expect("compiles");
    let before = names(filled.path());
    let cache = Cache::read_only(filled.path()).expect("it is there");
    cache.compile(&kernel, &options).expect("compiles");
    cache.compile(&kernel, &other).expect("compiles");
    assert_eq!(cache.counts(), counts(1, 1, 0));
    let archive = PathBuf::from(directory.file("archive"));
    assert_eq!(filled.export(&archive).expect("it can be written").entries, 1);
    assert!(cache.import(&archive).is_err_and(|error| error.message.contains("ermission")));
    assert_eq!(names(filled.path()), before);

    // No directory at all.
    let file = directory.file("file");
    fs::write(&file, b"").expect("it can be written");
    let below = format!("{file}/below");
    for (unusable, why) in [
        (Cache::at(&below), "cannot be used"),
        (Cache::at(&file), "cannot be used"),
        (Cache::read_only(&below), "cannot be read"),
        (Cache::read_only(&file), "is no directory"),
    ] {
        let error = unusable.expect_err("it is no directory");
        assert!(error.message.contains(why) && error.help.is_some(), "{error}");
    }

    // Gone while it is in use: compilations go on, and it is said.
    fs::remove_dir_all(filled.path()).expect("it is there");
    filled.compile(&kernel, &other).expect("compiles all the same");
    let problem = filled.problem().expect("nothing can be added");
    assert!(problem.message.contains("nothing can be added") && problem.help.is_some(), "{problem}");
    assert!(filled.entries().is_err() && filled.prune(0, Stale::Kept).is_err());
    fs::create_dir(filled.path()).expect("it can be made again");
    filled.compile(&kernel, &other).expect("compiles");
    assert!(filled.problem().is_none());
    assert_eq!(entry_files(&filled).len(), 1);
}

/// Pipes would be waited for, links lead elsewhere, directories cannot be replaced: none of them is an entry.
#[cfg(unix)]
#[test]
fn what_is_no_file_is_no_entry() {
    use std::os::unix::fs::{PermissionsExt, symlink};
    let directory = Directory::new("disk-cache-special");
    let path = directory.0.join("cache");
    fs::create_dir(&path).expect("it can be made");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o1777)).expect("it is ours");
    let cache = Cache::at(&path).expect("it can be used");
    let mode = fs::metadata(path.join("size")).expect("it was made").permissions().mode();
    assert_eq!(mode & 0o666, 0o666, "who may write to the directory may count what is in it");
    let pipe = |path: &Path| {
        let made = Command::new("mkfifo").arg(path).status().expect("mkfifo is there");
        assert!(made.success());
    };
    let (kernel, options) = numbered(0);
    cache.compile(&kernel, &options).expect("compiles");
    let entry = entry_files(&cache).pop().expect("one entry");
    for replace in [
        &pipe as &dyn Fn(&Path),
        &|path: &Path| symlink("/dev/zero", path).expect("it can be made"),
        &|path: &Path| fs::create_dir(path).expect("it can be made"),
    ] {
        fs::remove_file(&entry).expect("it is a file");
        replace(&entry);
        launch(&cache.compile(&kernel, &options).expect("compiles"), 0);
        let is_dir = entry.is_dir();
        assert_eq!(
            entry_files(&cache).len(),
            usize::from(!is_dir),
            "an entry takes the place of what can be replaced"
        );
        cache.prune(u64::MAX, Stale::Removed).expect("it can be pruned");
        if is_dir {
            fs::remove_dir(&entry).expect("it is empty");
            assert!(cache.problem().is_some());
        }
    }
    // Nor do exports replace what is no file, or take names that may be somebody's.
    let archive = directory.0.join("kernels.archive");
    pipe(&archive);
    assert!(cache.export(&archive).is_err_and(|error| error.message.contains("is no file")));
    fs::remove_file(&archive).expect("it is still there");
    fs::write(directory.file("kernels.part"), "mine").expect("it can be written");
    cache.export(&archive).expect("it can be written");
    assert_eq!(fs::read(directory.file("kernels.part")).expect("it is there"), b"mine");
    // Counting would wait for it.
    fs::remove_file(path.join("size")).expect("it is there");
    pipe(&path.join("size"));
    let (kernel, options) = numbered(1);
    launch(&cache.compile(&kernel, &options).expect("compiles"), 1);
    assert!(cache.problem().is_some_and(|problem| problem.message.contains("size is no file")));
    assert!(Cache::at(&path).is_err());
}

#[test]
fn archives_fill_other_directories() {
    let directory = Directory::new("disk-cache-archive");
    let cache = cache_in(&directory);
    for number in 0..5 {
        let (kernel, options) = numbered(number);
        cache.compile(&kernel, &options).expect("compiles");
    }
    let archive = PathBuf::from(directory.file("archive"));
    let broken = entry_files(&cache).pop().expect("five entries");
    let sound = fs::read(&broken).expect("it is there");
    fs::write(&broken, &sound[..sound.len() / 2]).expect("it can be written");
    let exported = cache.export(&archive).expect("it can be written");
    assert_eq!((exported.entries, exported.broken), (4, 1));
    let other = Cache::at(directory.0.join("other")).expect("it can be made");
    assert_eq!(other.import(&archive).expect("it can be read").entries, 4);
    let hits = (0..5).filter(|&number| {
        let (kernel, options) = numbered(number);
        let before = other.counts().hits;
        let found = other.compile(&kernel, &options).expect("compiles");
        launch(&found, number);
        other.counts().hits > before
    });
    assert_eq!(hits.count(), 4);

    // A changed entry is left out; what is cut off or no archive is an error.
    let mut bytes = fs::read(&archive).expect("it is there");
    let last = bytes.len() - 1;
    bytes[last] ^= 1;
    fs::write(&archive, &bytes).expect("it can be written");
    let third = Cache::at(directory.0.join("third")).expect("it can be made");
    let imported = third.import(&archive).expect("the rest is sound");
    assert_eq!((imported.entries, imported.broken), (3, 1));
    for bytes in [&bytes[..last], b"something else".as_slice(), &bytes[..20]] {
        fs::write(&archive, bytes).expect("it can be written");
        assert!(third.import(&archive).is_err_and(|error| error.help.is_some()));
    }
}

#[test]
fn threads_share_a_directory() {
    let directory = Directory::new("disk-cache-threads");
    let cache = cache_in(&directory);
    std::thread::scope(|scope| {
        for thread in 0..8 {
            let cache = cache.clone();
            scope.spawn(move || {
                for at in 0..40 {
                    let number = (at * 7 + thread * 5) % 40;
                    let (kernel, options) = numbered(number);
                    launch(&cache.compile(&kernel, &options).expect("compiles"), number);
                }
            });
        }
    });
    assert_eq!((cache.entries().expect("it can be read").len(), cache.counts().broken), (40, 0));
    assert!(cache.problem().is_none());
    assert_eq!(names(cache.path()).iter().filter(|name| name.ends_with(".part")).count(), 0);
}

/// What a process of the next tests does: all kernels, each launched.
#[test]
fn worker() {
    let Ok(asked) = std::env::var(WORKER) else { return };
    let mut asked = asked.splitn(3, ' ');
    let mut word = || asked.next().expect("two numbers and a directory");
    let (first, limit): (usize, u64) = (word().parse().expect("a number"), word().parse().expect("a number"));
    let cache = Cache::at(word()).expect("it can be used").limit(limit);
    for at in 0..SHARED_KERNELS {
        let number = (first + at) % SHARED_KERNELS;
        let (kernel, options) = numbered(number);
        launch(&cache.compile(&kernel, &options).expect("compiles"), number);
    }
    assert!(cache.problem().is_none(), "{:?}", cache.problem());
}

fn start_worker(directory: &Path, first: usize, limit: u64) -> Child {
    let program = std::env::current_exe().expect("this program is there");
    Command::new(program)
        .args(["--exact", "disk_cache::worker", "--test-threads", "1"])
        .env(WORKER, format!("{first} {limit} {}", directory.display()))
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it can be started")
}

/// Four processes compile more than a limit of theirs lets stay: each launch is right, and the directory
/// never holds more than the limit but for what each of them adds at the moment.
#[test]
fn processes_stay_within_one_limit() {
    let directory = Directory::new("disk-cache-processes-limit");
    let path = directory.0.join("cache");
    let cache = Cache::at(&path).expect("it can be made");
    let (kernel, options) = numbered(0);
    cache.compile(&kernel, &options).expect("compiles");
    let one = cache.entries().expect("it can be read")[0].bytes;
    let limit = 30 * one;
    let held = || -> u64 {
        let files = fs::read_dir(&path).expect("it is there").flatten();
        let entries = files.filter(|file| file.path().extension().is_some_and(|end| end == "kernel"));
        entries.filter_map(|file| Some(file.metadata().ok()?.len())).sum()
    };
    let mut workers: Vec<Child> = (0..4).map(|at| start_worker(&path, at * 50, limit)).collect();
    let begin = Instant::now();
    let mut most = 0;
    while workers.iter_mut().any(|worker| matches!(worker.try_wait(), Ok(None))) {
        assert!(begin.elapsed() < Duration::from_secs(300), "the processes do not end");
        most = most.max(held());
        std::thread::sleep(Duration::from_millis(1));
    }
    for worker in workers {
        let output = worker.wait_with_output().expect("it is ours");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
    // Kernels with larger numbers have up to a tenth more bytes.
    assert!(most <= limit + 5 * one && most > limit / 2, "{most} bytes at a time, the limit is {limit}");
    let entries = cache.entries().expect("it can be read");
    let left: u64 = entries.iter().map(|entry| entry.bytes).sum();
    assert!(left <= limit && entries.iter().all(|entry| entry.content.is_ok()), "{left} bytes are left");
    assert_eq!(names(&path).len(), entries.len() + 1, "{:?}", names(&path));
}

/// Eight processes compile the same kernels while others are killed and files are cut off.
#[test]
fn processes_that_die_and_files_that_are_cut_off_do_no_harm() {
    let directory = Directory::new("disk-cache-processes");
    let path = directory.0.join("cache");
    let cache = Cache::at(&path).expect("it can be made");
    let mut random = 1u64;
    let mut next = move |below: usize| {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (random >> 33) as usize % below
    };
    let mut workers: Vec<Child> = (0..8).map(|at| start_worker(&path, at * 25, u64::MAX)).collect();
    let mut victims: Vec<Child> = Vec::new();
    let (mut killed, mut cut) = (0, 0);
    let begin = Instant::now();
    while workers.iter_mut().any(|worker| matches!(worker.try_wait(), Ok(None))) {
        assert!(begin.elapsed() < Duration::from_secs(300), "the processes do not end");
        if victims.len() < 2 {
            victims.push(start_worker(&path, next(SHARED_KERNELS), u64::MAX));
        }
        std::thread::sleep(Duration::from_millis(5 + next(30) as u64));
        let mut victim = victims.swap_remove(next(victims.len()));
        victim.kill().expect("it is ours");
        victim.wait().expect("it is ours");
        killed += 1;
        let files: Vec<PathBuf> =
            fs::read_dir(&path).expect("it is there").flatten().map(|file| file.path()).collect();
        for _ in 0..2 {
            let file = &files[next(files.len())];
            if let Ok(file) = fs::File::options().write(true).open(file) {
                let length = file.metadata().map_or(0, |found| found.len() as usize);
                cut += usize::from(length > 0 && file.set_len(next(length) as u64).is_ok());
            }
        }
    }
    for worker in workers.into_iter().chain(victims.drain(..).filter_map(|mut victim| {
        victim.kill().ok()?;
        victim.wait().ok()?;
        None
    })) {
        let output = worker.wait_with_output().expect("it is ours");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
    let mut out = std::io::stdout();
    let _ = writeln!(out, "{killed} processes killed, {cut} files cut off");
    assert!(killed > 5 && cut > 5, "{killed} processes killed, {cut} files cut off");

    // Once nobody disturbs, all of it is there and nothing else.
    for number in 0..SHARED_KERNELS {
        let (kernel, options) = numbered(number);
        launch(&cache.compile(&kernel, &options).expect("compiles"), number);
    }
    cache.prune(u64::MAX, Stale::Kept).expect("it can be pruned");
    let before = cache.counts();
    for number in 0..SHARED_KERNELS {
        let (kernel, options) = numbered(number);
        let found = cache.compile(&kernel, &options).expect("compiles");
        assert_eq!(
            found.object(),
            compile_uncached(&kernel, &options, Verify::Off).expect("compiles").object()
        );
    }
    assert_eq!(cache.counts().hits, before.hits + SHARED_KERNELS as u64);
    let entries = cache.entries().expect("it can be read");
    assert!(entries.iter().all(|entry| entry.content.is_ok()));
    assert_eq!(entries.len(), SHARED_KERNELS);
    assert_eq!(names(&path).len(), SHARED_KERNELS + 1);
}

#[test]
fn the_program_looks_after_a_directory() {
    let directory = Directory::new("disk-cache-program");
    let cache = cache_in(&directory);
    for number in 0..3 {
        let (kernel, options) = numbered(number);
        cache.compile(&kernel, &options).expect("compiles");
    }
    let dir = cache.path().to_string_lossy().into_owned();
    let (list, code) = program::json(&["cache", "list", "--dir", &dir, "--json"]);
    assert_eq!((list["entries"].as_array().map(Vec::len), code), (Some(3), Some(0)));
    assert_eq!(list["entries"][0]["kernel"], "copy");
    assert_eq!(list["entries"][0]["target"], "gfx942");
    let (verified, code) = program::json(&["cache", "verify", "--dir", &dir, "--json"]);
    assert_eq!((&verified["ok"], code), (&true.into(), Some(0)));
    let archive = directory.file("archive");
    let (exported, _) = program::json(&["cache", "export", &archive, "--dir", &dir, "--json"]);
    assert_eq!(exported["entries"], 3);
    let other = directory.file("other");
    let (imported, _) = program::json(&["cache", "import", &archive, "--dir", &other, "--json"]);
    assert_eq!(imported["entries"], 3);

    let file = entry_files(&cache).pop().expect("three entries");
    fs::write(&file, b"GSWCACH\x01").expect("it can be written");
    let (verified, code) = program::json(&["cache", "verify", "--dir", &dir, "--json"]);
    assert_eq!(
        (&verified["ok"], verified["broken"].as_array().map(Vec::len), code),
        (&false.into(), Some(1), Some(1))
    );
    let (pruned, code) = program::json(&["cache", "prune", "--stale", "--dir", &dir, "--json"]);
    assert_eq!((&pruned["entries"], code), (&1.into(), Some(0)));
    let text = program::groundswell(&["cache", "list", "--dir", &dir]);
    assert!(program::text(&text.stdout).contains("2 entries"), "{}", program::text(&text.stdout));

    // No directory is meant, or one that is not there.
    let output = program::command(&["cache", "list", "--json"]).env_remove("GROUNDSWELL_CACHE").output();
    let output = output.expect("the program was built for this test");
    let (error, code) = (program::text(&output.stdout), output.status.code());
    let error: serde_json::Value = serde_json::from_str(&error).expect("it is JSON");
    assert!(error["error"]["help"].as_str().is_some_and(|help| help.contains("GROUNDSWELL_CACHE")));
    assert_eq!(code, Some(2));
    let nowhere = directory.file("nowhere");
    let (error, code) = program::json(&["cache", "prune", "--dir", &nowhere, "--json"]);
    assert!(error["error"]["message"].as_str().is_some_and(|text| text.contains("cannot be read")));
    assert_eq!(code, Some(3));
    assert!(!Path::new(&nowhere).exists());
}

/// A process that is told of a directory by its environment uses it.
#[test]
fn the_environment_names_a_directory() {
    let directory = Directory::new("disk-cache-environment");
    let dir = directory.file("cache");
    let run = |dir: &str| {
        let output = program::command(&["bench", "copy"]).env("GROUNDSWELL_CACHE", dir).output();
        let output = output.expect("the program was built for this test");
        assert!(output.status.success(), "{}", program::text(&output.stderr));
        program::text(&output.stderr)
    };
    assert_eq!(run(&dir), "");
    let (list, _) = program::json(&["cache", "list", "--dir", &dir, "--json"]);
    assert_eq!(list["entries"].as_array().map(Vec::len), Some(1));
    let file = directory.file("file");
    fs::write(&file, b"").expect("it can be written");
    let warning = run(&file);
    assert!(warning.starts_with("warning: the cache") && warning.contains("is no directory"), "{warning}");
}
