//! Operations that are really added, one of each class that an author may want more of. Each is a patch in
//! `operations/`, with a kernel that uses it. The patches have to fit the sources, and to touch few files.
//! When it is asked for (`cargo test -p groundswell-testing --test floors -- --ignored`) they are applied to
//! a copy of the sources, all at once; that is built, and runs the kernels, whose results are compared with
//! those of the interpreter after every pass. Of the other classes `operation_files` counts the files.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use groundswell_testing::places::root;

/// Lines of one file that are replaced by others: those around a change are in both.
struct Change {
    file: String,
    old: String,
    new: String,
}

/// A new operation.
struct NewOperation {
    name: String,
    /// The most files that it may be written into.
    most: usize,
    changes: Vec<Change>,
}

/// The patch of an operation: its class with the most files, and parts that begin with `@@ path @@`. The
/// lines of a part follow one another, and there is no other place in the file that has them.
fn parsed(name: String, text: &str) -> NewOperation {
    let (head, parts) = text.split_once('\n').expect("a head");
    let most = head.split_once(": at most ").and_then(|(_, rest)| rest.strip_suffix(" files"));
    let most = most.and_then(|most| most.parse().ok()).unwrap_or_else(|| panic!("{name}: {head}"));
    let mut changes: Vec<Change> = Vec::new();
    for line in parts.lines() {
        if let Some(file) = line.strip_prefix("@@ ").and_then(|line| line.strip_suffix(" @@")) {
            changes.push(Change { file: file.to_owned(), old: String::new(), new: String::new() });
            continue;
        }
        let change = changes.last_mut().expect("a part has a head");
        let (kind, line) = line.split_at_checked(1).unwrap_or_else(|| panic!("{name}: an empty line"));
        for (side, other) in [(&mut change.old, "+"), (&mut change.new, "-")] {
            if kind != other {
                *side += line;
                side.push('\n');
            }
        }
    }
    NewOperation { name, most, changes }
}

/// All of them in the order of their names.
fn operations() -> Vec<NewOperation> {
    let folder = fs::read_dir(root().join("tests/floors/operations")).expect("the folder is there");
    let mut files: Vec<PathBuf> = folder.map(|entry| entry.expect("it can be read").path()).collect();
    files.sort();
    let patches = files.iter().filter(|path| path.extension().is_some_and(|extension| extension == "diff"));
    let stem = |path: &Path| path.file_stem().expect("a name").to_string_lossy().into_owned();
    patches.map(|path| parsed(stem(path), &fs::read_to_string(path).expect("it can be read"))).collect()
}

/// The files with all patches, which have to fit one after the other.
fn patched(operations: &[NewOperation]) -> BTreeMap<&str, String> {
    let mut files: BTreeMap<&str, String> = BTreeMap::new();
    for NewOperation { name, changes, .. } in operations {
        for Change { file, old, new } in changes {
            let read =
                || fs::read_to_string(root().join(file)).unwrap_or_else(|e| panic!("{name}: {file}: {e}"));
            let text = files.entry(file).or_insert_with(read);
            assert_eq!(
                text.matches(old).count(),
                1,
                "{name}: {file} has not, exactly once, the lines\n{old}"
            );
            *text = text.replacen(old, new, 1);
        }
    }
    files
}

#[test]
fn patches_of_new_operations_fit_and_touch_few_files() {
    let operations = operations();
    assert!(operations.len() >= 8, "{}", operations.len());
    patched(&operations);
    for NewOperation { name, most, changes } in &operations {
        let files: BTreeSet<&str> = changes.iter().map(|change| &*change.file).collect();
        assert!(
            files.len() <= *most,
            "{name} is written into {} files, at most {most}: {files:?}",
            files.len()
        );
        assert!(changes.iter().all(|change| change.old != change.new), "{name} has a part without a change");
        let kernel = root().join("tests/floors/operations").join(format!("{name}.gsw"));
        let kernel = fs::read_to_string(&kernel).unwrap_or_else(|e| panic!("{}: {e}", kernel.display()));
        assert!(kernel.contains(name.as_str()), "the kernel of {name} does not use it");
    }
}

/// Copies a folder without hidden ones, and without the folder `built`.
fn copy(from: &Path, to: &Path, built: &Path) {
    fs::create_dir_all(to).expect("a folder");
    for entry in fs::read_dir(from).expect("a folder") {
        let path = entry.expect("it can be read").path();
        let name = path.file_name().expect("a name").to_string_lossy().into_owned();
        if name.starts_with('.') || path == built {
            continue;
        }
        match path.is_dir() {
            true => copy(&path, &to.join(name), built),
            false => drop(fs::copy(&path, to.join(name)).expect("it can be copied")),
        }
    }
}

/// Builds the program with all of them, and runs their kernels.
#[test]
#[ignore = "builds the whole program a second time, with its crates"]
fn new_operations_compile_and_compute_what_the_interpreter_does() {
    let operations = operations();
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("new_operations");
    let sources = folder.join("sources");
    let _ = fs::remove_dir_all(&sources);
    // A folder of the sources is called `target` as well.
    copy(root(), &sources, &root().join("target"));
    for (file, text) in patched(&operations) {
        fs::write(sources.join(file), text).expect("it can be written");
    }
    // Without optimisation a build takes half as long, and the kernels are small.
    let target = folder.join("target");
    let built = Command::new(env!("CARGO"))
        .args(["build", "--bin", "groundswell", "--target-dir"])
        .arg(&target)
        .current_dir(&sources)
        .status()
        .expect("cargo runs");
    assert!(built.success(), "the sources with new operations do not compile");
    let program = target.join("debug/groundswell");
    let run = |arguments: &[&str]| {
        let ran = Command::new(&program).args(arguments).current_dir(&sources).output().expect("it runs");
        let said = [ran.stdout, ran.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
        assert!(ran.status.success(), "{arguments:?}: {}", said.concat());
    };
    let object = folder.join("object").to_string_lossy().into_owned();
    for NewOperation { name, .. } in &operations {
        let kernel = format!("tests/floors/operations/{name}.gsw");
        let text = fs::read_to_string(root().join(&kernel)).expect("it can be read");
        let mut sizes = vec!["-s", "M=40", "-s", "N=130"];
        if text.contains("K]") {
            sizes.extend(["-s", "K=70"]);
        }
        for chip in ["gfx906", "gfx90a", "gfx942", "gfx950"] {
            let job = [&[&*kernel, "--target", chip], &sizes[..]].concat();
            run(&[&["compile"], &job[..], &["--verify", "--emit", "object", "-o", &object]].concat());
            run(&[&["run"], &job[..], &["--check"]].concat());
        }
    }
}
