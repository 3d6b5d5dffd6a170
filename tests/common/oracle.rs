//! LLVM's tools as oracles: a folder to run them in, and the comparison of two code objects.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::skipped;
use groundswell::object::{KernelDescriptor, ObjectFile};
use groundswell::target::{FeatureSetting, Target, TargetId};

/// Files of one test, removed at its end.
pub struct Workspace(PathBuf);

impl Workspace {
    /// None when one of the tools is missing and oracles are not required; that the test is skipped is noted
    /// then.
    pub fn with_tools(tools: &[&str]) -> Option<Workspace> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        skipped::begin();
        for tool in tools {
            if Command::new(tool).arg("--version").output().is_err() {
                skipped::note(tool);
                return None;
            }
        }
        let name = format!("groundswell-{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&path).unwrap();
        Some(Workspace(path))
    }

    /// The same for the clang inside the Zig toolchain of the Python package index, which knows gfx950.
    pub fn with_zig() -> Option<Workspace> {
        skipped::begin();
        let found = Command::new("python3").args(["-m", "ziglang", "version"]).output();
        if !found.is_ok_and(|output| output.status.success()) {
            skipped::note("ziglang");
            return None;
        }
        Self::with_tools(&[])
    }

    /// Where its files are.
    pub fn folder(&self) -> &Path {
        &self.0
    }

    /// Writes a file.
    pub fn write(&self, name: &str, bytes: impl AsRef<[u8]>) {
        std::fs::write(self.0.join(name), bytes).unwrap();
    }

    /// Reads a file.
    pub fn read(&self, name: &str) -> Vec<u8> {
        std::fs::read(self.0.join(name)).unwrap()
    }

    /// Runs a tool here and returns what it printed; warnings are failures.
    pub fn run(&self, command: &str) -> String {
        let mut words = command.split_whitespace();
        let output = Command::new(words.next().unwrap()).args(words).current_dir(&self.0).output().unwrap();
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success() && errors.is_empty(), "{command}\n{errors}");
        String::from_utf8(output.stdout).unwrap()
    }

    /// Runs a tool here that may complain: what it printed, and its complaints; none if it crashed.
    pub fn try_run(&self, command: &str) -> Option<(String, String)> {
        let mut words = command.split_whitespace();
        let output = Command::new(words.next().unwrap()).args(words).current_dir(&self.0).output().unwrap();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        matches!(output.status.code(), Some(0 | 1)).then(|| (text(&output.stdout), text(&output.stderr)))
    }

    /// Assembles and links a text to the bytes of an object, which is also in `llvm.co` then. For gfx950 and
    /// generic targets it takes a workspace with Zig's tools.
    pub fn assemble(&self, target: impl Into<TargetId>, text: &str) -> Vec<u8> {
        let id = target.into();
        self.write("llvm.s", text);
        let modes = [("xnack", id.xnack()), ("sramecc", id.sramecc())].map(|(name, setting)| match setting {
            FeatureSetting::On => format!("-mattr=+{name}"),
            FeatureSetting::Off => format!("-mattr=-{name}"),
            FeatureSetting::Any | FeatureSetting::Unsupported => String::new(),
        });
        let (cpu, modes) = (id.target(), modes.join(" "));
        // LLVM 19 does not know them.
        if [Target::GFX950, Target::GFX9_4_GENERIC].contains(&cpu) {
            self.run(&format!(
                "python3 -m ziglang clang -target amdgcn-amd-amdhsa -mcpu={id} -c llvm.s -o llvm.o"
            ));
            self.run("python3 -m ziglang ld.lld -shared llvm.o -o llvm.co");
            return self.read("llvm.co");
        }
        self.run(&format!(
            "llvm-mc-19 -triple=amdgcn-amd-amdhsa -mcpu={cpu} {modes} -filetype=obj llvm.s -o llvm.o"
        ));
        self.run("ld.lld-19 -shared llvm.o -o llvm.co");
        self.read("llvm.co")
    }
}

impl Drop for Workspace {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Contents of `.text`, padding included.
pub fn text_section(bytes: &[u8]) -> &[u8] {
    use object::{Object, ObjectSection};
    object::File::parse(bytes).unwrap().section_by_name(".text").unwrap().data().unwrap()
}

/// Everything but the entry offset, which depends on the layout of the file.
pub fn without_entry(mut descriptor: KernelDescriptor) -> [u8; 64] {
    descriptor.entry_byte_offset = 0;
    descriptor.to_bytes()
}

/// That both objects say the same of the same kernels.
pub fn assert_equivalent(ours: &[u8], llvm: &[u8]) {
    assert!(text_section(ours) == text_section(llvm), ".text differs");
    let (ours, llvm) = (ObjectFile::parse(ours).unwrap(), ObjectFile::parse(llvm).unwrap());
    assert_eq!(ours.target, llvm.target);
    assert_eq!((ours.abi_version, ours.xnack, ours.sramecc), (llvm.abi_version, llvm.xnack, llvm.sramecc));
    assert_eq!(ours.kernels.len(), llvm.kernels.len());
    for ours in &ours.kernels {
        let llvm = llvm.kernel(ours.name).unwrap_or_else(|| panic!("{} is missing", ours.name));
        assert_eq!(without_entry(ours.descriptor), without_entry(llvm.descriptor), "{}", ours.name);
        assert_eq!(ours.code, llvm.code, "{}", ours.name);
        assert!(ours.metadata.is_some());
        assert_eq!(ours.metadata, llvm.metadata);
    }
}
