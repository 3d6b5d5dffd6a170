//! A loaded code object: its segments in device memory, its kernels by name. Code is decoded when it first
//! runs.

use std::sync::OnceLock;

use crate::codegen::isa::{Arch, Inst, decode, write_inst};
use crate::codegen::object::{
    BundleError, KernelDescriptor, KernelMetadata, ObjectError, ObjectFile, ObjectKernel, RelocationKind,
    decompress_bundle, object_for,
};
use crate::codegen::target::TargetId;

use super::error::SimError;
use super::memory::DeviceMemory;
use super::program::{Program, Step};

/// Firmware that preloads kernel arguments enters this many bytes after the entry (LLVM, "User Guide for
/// AMDGPU Backend", "Preloaded Kernel Arguments").
const PRELOAD_PROLOGUE: i64 = 256;

/// A code object that a [`Simulator`](super::Simulator) has loaded.
#[derive(Debug)]
pub struct Module {
    /// Device address of the image.
    pub(super) address: u64,
    codes: Vec<CodeSegment>,
    kernels: Vec<LoadedKernel>,
    variables: Vec<LoadedVariable>,
    /// The file, for information that is only needed when something goes wrong.
    object: Vec<u8>,
}

/// One executable segment.
#[derive(Debug)]
struct CodeSegment {
    /// Address in the file.
    address: u64,
    bytes: Vec<u8>,
    /// Address on the device.
    device_address: u64,
    arch: Arch,
    /// Where kernels begin, from the start of the segment, in rising order.
    entries: Vec<u64>,
    /// Decoded when a kernel of it first runs.
    program: OnceLock<Program>,
}

impl CodeSegment {
    fn program(&self) -> &Program {
        let decode = || Program::new(&self.bytes, self.arch, self.device_address, &self.entries);
        self.program.get_or_init(decode)
    }
}

/// A variable of a module, where the device has it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LoadedVariable {
    /// Its name.
    pub name: String,
    /// Its device address.
    pub address: u64,
    /// Its size in bytes.
    pub bytes: u64,
}

/// A kernel of a module.
#[derive(Debug)]
pub(super) struct LoadedKernel {
    pub name: String,
    pub descriptor: KernelDescriptor,
    /// Device address of the descriptor.
    pub descriptor_address: u64,
    pub metadata: Option<KernelMetadata>,
    /// Index of its code, and where it starts from there.
    code: usize,
    start: i64,
}

impl Module {
    /// Names of the kernels, in the order of the object's symbol table.
    pub fn kernel_names(&self) -> impl Iterator<Item = &str> {
        self.kernels.iter().map(|k| k.name.as_str())
    }

    /// The variable of that name.
    pub fn variable(&self, name: &str) -> Option<&LoadedVariable> {
        self.variables.iter().find(|variable| variable.name == name)
    }

    /// What the metadata says of a kernel, if the object has any.
    pub fn metadata(&self, kernel: &str) -> Option<&KernelMetadata> {
        self.kernel(kernel)?.metadata.as_ref()
    }

    /// Puts a code object into memory.
    pub(super) fn load(memory: &mut DeviceMemory, target: TargetId, data: &[u8]) -> Result<Module, SimError> {
        let data = decompress_bundle(data).map_err(|error| SimError::Object(error.to_string()))?;
        let (object, data) = object_of(&data, target)?;
        let start = object.segments.iter().map(|s| s.address).min().unwrap_or(0);
        let end = object.segments.iter().map(|s| s.address + s.memory_size).max().unwrap_or(0);
        let address = memory.allocate(end - start)?;
        let load = || {
            let device = |file: u64| address.wrapping_add(file.wrapping_sub(start));
            for segment in &object.segments {
                memory.write(device(segment.address), segment.bytes)?;
            }
            for relocation in &object.relocations {
                let value = address.wrapping_sub(start).wrapping_add(relocation.value);
                let place = device(relocation.address);
                match relocation.kind {
                    RelocationKind::Low32 => memory.write(place, &(value as u32).to_le_bytes())?,
                    RelocationKind::High32 => memory.write(place, &((value >> 32) as u32).to_le_bytes())?,
                    RelocationKind::Full64 => memory.write(place, &value.to_le_bytes())?,
                }
            }
            let codes = code_segments(memory, &object, target.arch, device)?;
            let kernels = object
                .kernels
                .iter()
                .map(|k| LoadedKernel::new(k, &codes, device))
                .collect::<Result<_, _>>()?;
            let variables = object.variables.iter().map(|variable| LoadedVariable {
                name: variable.name.to_owned(),
                address: device(variable.address),
                bytes: variable.bytes,
            });
            memory.define(address);
            let variables = variables.collect();
            Ok(Module { address, codes, kernels, variables, object: data.to_vec() })
        };
        let result = load();
        if result.is_err() {
            memory.free(address)?;
        }
        result
    }

    /// The kernel of that name.
    pub(super) fn kernel(&self, name: &str) -> Option<&LoadedKernel> {
        self.kernels.iter().find(|k| k.name == name)
    }

    /// The program that the kernel is part of.
    pub(super) fn program(&self, kernel: &LoadedKernel) -> &Program {
        self.codes[kernel.code].program()
    }

    /// The step of the program that the kernel begins with.
    ///
    /// # Errors
    /// No instruction begins there.
    pub(super) fn entry(&self, kernel: &LoadedKernel) -> Result<usize, SimError> {
        let found = self.program(kernel).find(kernel.start);
        found.map(|step| step as usize).ok_or_else(|| {
            let address = self.codes[kernel.code].address.wrapping_add_signed(kernel.start);
            no_instruction(&kernel.name, address)
        })
    }

    /// Bytes of the code that the kernel is part of, with relocations applied, and their address in the file.
    pub(super) fn code(&self, kernel: &LoadedKernel) -> (&[u8], u64) {
        let code = &self.codes[kernel.code];
        (&code.bytes, code.address)
    }

    /// The file.
    pub(super) fn object(&self) -> &[u8] {
        &self.object
    }

    /// The encoding of a step of the kernel's program.
    fn words(&self, kernel: &LoadedKernel, step: &Step) -> Vec<u32> {
        let bytes = &self.codes[kernel.code].bytes[step.offset as usize..][..step.bytes as usize];
        bytes.as_chunks().0.iter().map(|&word| u32::from_le_bytes(word)).collect()
    }

    /// A step of the kernel's program as the instruction that it was decoded from.
    pub(super) fn instruction(&self, kernel: &LoadedKernel, step: usize) -> Option<Inst> {
        let program = self.program(kernel);
        let words = self.words(kernel, program.steps.get(step)?);
        decode(&words, program.arch).ok().map(|(inst, _)| inst)
    }

    /// Address in the file and text of a step of the kernel's program, for messages.
    pub(super) fn describe(&self, kernel: &LoadedKernel, step: usize) -> (u64, String) {
        let code = &self.codes[kernel.code];
        let program = code.program();
        let Some(at) = program.steps.get(step) else {
            return (code.address + code.bytes.len() as u64, String::new());
        };
        let mut text = String::new();
        match self.instruction(kernel, step) {
            // Writing to a string cannot fail.
            Some(inst) => drop(write_inst(&mut text, &inst, program.arch, None)),
            None => {
                let words = self.words(kernel, at).into_iter();
                text = words.map(|word| format!("{word:#010x}")).collect::<Vec<_>>().join(" ");
            }
        }
        (code.address + u64::from(at.offset), text)
    }
}

impl LoadedKernel {
    fn new(
        kernel: &ObjectKernel<'_>,
        codes: &[CodeSegment],
        device: impl Fn(u64) -> u64,
    ) -> Result<LoadedKernel, SimError> {
        let preloads =
            kernel.descriptor.get(crate::codegen::object::DescriptorField::KernargPreloadLength) != 0;
        // A kernel without code may be the last one: it matters to nobody who does not launch it.
        let found = codes.iter().enumerate().find_map(|(index, code)| {
            let offset = i64::try_from(kernel.entry.checked_sub(code.address)?).ok()?;
            (offset % 4 == 0 && offset as usize <= code.bytes.len()).then_some((index, offset))
        });
        let (code, entry) = found.ok_or_else(|| no_instruction(kernel.name, kernel.entry))?;
        let start = entry + if preloads { PRELOAD_PROLOGUE } else { 0 };
        Ok(LoadedKernel {
            name: kernel.name.to_owned(),
            descriptor: kernel.descriptor,
            descriptor_address: device(kernel.descriptor_address),
            metadata: kernel.metadata.clone(),
            code,
            start,
        })
    }
}

fn no_instruction(kernel: &str, address: u64) -> SimError {
    SimError::Object(format!("kernel `{kernel}` has no instruction at its entry {address:#x}"))
}

/// The code object for a target, and its bytes.
fn object_of(data: &[u8], target: TargetId) -> Result<(ObjectFile<'_>, &[u8]), SimError> {
    let data = object_for(data, target).map_err(|error| match error {
        BundleError::Empty | BundleError::Lacks { .. } => SimError::OtherTarget(error.to_string()),
        _ => SimError::Object(error.to_string()),
    })?;
    let object = ObjectFile::parse(data).map_err(|error| match error {
        ObjectError::Target { .. } => SimError::OtherTarget(error.to_string()),
        _ => SimError::Object(error.to_string()),
    })?;
    if !object.target_id().runs_on(target) {
        let is = object.target_id();
        let what = format!("it is for {is}, the simulated device is a {target}");
        return Err(SimError::OtherTarget(what));
    }
    Ok((object, data))
}

/// The code of an object in memory, where relocations have been applied to it.
fn code_segments(
    memory: &DeviceMemory,
    object: &ObjectFile<'_>,
    arch: Arch,
    device: impl Fn(u64) -> u64,
) -> Result<Vec<CodeSegment>, SimError> {
    let executable = object.segments.iter().filter(|s| s.executable);
    let segments = executable.map(|segment| {
        let mut bytes = vec![0; segment.bytes.len()];
        memory.read(device(segment.address), &mut bytes)?;
        let mut entries: Vec<u64> =
            object.kernels.iter().filter_map(|k| k.entry.checked_sub(segment.address)).collect();
        entries.sort_unstable();
        Ok(CodeSegment {
            address: segment.address,
            bytes,
            device_address: device(segment.address),
            arch,
            entries,
            program: OnceLock::new(),
        })
    });
    segments.collect()
}
