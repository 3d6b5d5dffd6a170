//! Code objects that clang makes from the C kernels under `tests/`.

use crate::oracle::Workspace;
use crate::places::root;

/// Clang's object of a file of kernels (its path below `tests/`), with `options` like `-O3` for a processor,
/// or nothing where clang is missing and not required.
pub fn compile(file: &str, processor: &str, options: &str) -> Option<Vec<u8>> {
    let workspace = Workspace::with_tools(&["clang-19"])?;
    let path = root().join("tests").join(file);
    let name = file.rsplit('/').next().unwrap_or(file);
    workspace.write(name, std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display())));
    workspace.run(&format!(
        "clang-19 -x c --target=amdgcn-amd-amdhsa -mcpu={processor} {options} -nogpulib {name} -o kernels.co"
    ));
    Some(workspace.read("kernels.co"))
}
