//! Executables as bytes, for files: what the cache on disk keeps, and packages of kernels.
//!
//! What is read is checked before anything is made of it, so that bytes that nobody here has written are an
//! error and never a panic, whatever their checksum says.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::executable::{Assumption, Executable, Inner, LaunchExpressions, Parameter};
use super::report::Report;
use crate::codegen::object::{KernelInfo, ObjectFile, ObjectOptions, SourceLines};
use crate::ir::expr::{Expr, ExprArena, Symbol};

/// More bytes of arguments than any kernel here has.
const MOST_ARGUMENT_BYTES: u32 = 1 << 16;

/// An executable as it is stored. Expressions are their texts, the form in which arenas exchange them.
#[derive(Serialize, Deserialize)]
pub(super) struct StoredExecutable<'a> {
    format: ObjectOptions,
    info: KernelInfo,
    lines: Option<SourceLines>,
    parameters: Vec<Parameter>,
    block: [u32; 3],
    launch: StoredLaunch,
    report: Report,
    /// Where the machine code is in the object: the first byte, and bytes.
    code: (u32, u32),
    object: &'a [u8],
}

/// [`LaunchExpressions`] as texts.
#[derive(Serialize, Deserialize)]
struct StoredLaunch {
    grid: [String; 3],
    tiles: [String; 3],
    iterations: Vec<(Symbol, [String; 2])>,
    counted: Vec<(Symbol, (i64, i64))>,
    numbered: Option<String>,
    reaches: Vec<String>,
    assumptions: Vec<(Symbol, Assumption)>,
}

/// Why bytes are not an executable.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub(super) enum StoredError {
    #[error("the record of the kernel cannot be read: {0}")]
    Encoding(postcard::Error),
    #[error("a launch expression `{0}` cannot be read")]
    Expression(String),
    #[error("the record of the kernel contradicts itself: {0}")]
    Contradiction(&'static str),
}

impl<'a> StoredExecutable<'a> {
    /// What is stored of an executable; nothing if its object does not hold its code, which no compilation
    /// gives.
    pub(super) fn of(executable: &'a Executable) -> Option<StoredExecutable<'a>> {
        let Inner { format, lines, info, object, code, parameters, block, launch, report } =
            &*executable.inner;
        let first = code_offset(object, &info.name)?;
        let bytes = u32::try_from(size_of_val(&code[..])).ok()?;
        Some(StoredExecutable {
            format: *format,
            info: info.clone(),
            lines: lines.clone(),
            parameters: parameters.clone(),
            block: *block,
            launch: StoredLaunch::of(launch),
            report: report.clone(),
            code: (first, bytes),
            object,
        })
    }

    /// Appends it to bytes.
    pub(super) fn write(&self, out: Vec<u8>) -> Result<Vec<u8>, StoredError> {
        postcard::to_extend(self, out).map_err(StoredError::Encoding)
    }

    /// Reads one that is all of `bytes`.
    pub(super) fn read(bytes: &'a [u8]) -> Result<StoredExecutable<'a>, StoredError> {
        let (stored, rest) = postcard::take_from_bytes(bytes).map_err(StoredError::Encoding)?;
        match rest.is_empty() {
            true => Ok(stored),
            false => Err(StoredError::Contradiction("there is something after it")),
        }
    }

    /// The executable.
    pub(super) fn executable(self) -> Result<Executable, StoredError> {
        self.check()?;
        let (first, bytes) = (self.code.0 as usize, self.code.1 as usize);
        let code = self.object.get(first..first + bytes);
        let code = code.ok_or(StoredError::Contradiction("the object is shorter than its code"))?;
        let words = code.as_chunks::<4>().0.iter().map(|&word| u32::from_le_bytes(word));
        let inner = Inner {
            format: self.format,
            lines: self.lines,
            info: self.info,
            code: words.collect(),
            object: self.object.to_vec(),
            parameters: self.parameters,
            block: self.block,
            launch: self.launch.expressions()?,
            report: self.report,
        };
        Ok(Executable { inner: Arc::new(inner) })
    }

    /// That numbers which others rely on are those of some kernel.
    fn check(&self) -> Result<(), StoredError> {
        let most = self.format.target.max_workgroup_size;
        let work_items = self.block.iter().try_fold(1u32, |all, &size| all.checked_mul(size));
        if !work_items.is_some_and(|count| (1..=most).contains(&count)) {
            return Err(StoredError::Contradiction("a workgroup of that size cannot be"));
        }
        if self.info.resources.kernarg_bytes > MOST_ARGUMENT_BYTES {
            return Err(StoredError::Contradiction("no kernel has so many bytes of arguments"));
        }
        let places = |lines: &SourceLines| {
            let rows = lines.rows.iter().filter_map(|row| row.place);
            rows.chain(lines.declaration).all(|place| (place.file as usize) < lines.files.len())
        };
        if !self.lines.as_ref().is_none_or(places) {
            return Err(StoredError::Contradiction("a line is in no file"));
        }
        Ok(())
    }
}

/// The byte of an object at which the code of a kernel begins.
fn code_offset(object: &[u8], name: &str) -> Option<u32> {
    let file = ObjectFile::parse(object).ok()?;
    let code = file.kernels.iter().find(|kernel| kernel.name == name)?.code;
    u32::try_from(code.as_ptr() as usize - object.as_ptr() as usize).ok()
}

impl StoredLaunch {
    fn of(launch: &LaunchExpressions) -> StoredLaunch {
        let text = |e: Expr| launch.arena.display(e).to_string();
        StoredLaunch {
            grid: launch.grid.map(text),
            tiles: launch.tiles.map(text),
            iterations: launch.iterations.iter().map(|&(dim, ends)| (dim, ends.map(text))).collect(),
            counted: launch.counted.clone(),
            numbered: launch.numbered.map(text),
            reaches: launch.reaches.iter().map(|&e| text(e)).collect(),
            assumptions: launch.assumptions.clone(),
        }
    }

    fn expressions(self) -> Result<LaunchExpressions, StoredError> {
        let mut arena = ExprArena::new();
        let mut read = |text: &String| {
            // Most are numbers.
            if let Ok(number) = text.parse() {
                return Ok(arena.int(number));
            }
            arena.parse(text).map_err(|_| StoredError::Expression(text.clone()))
        };
        let [x, y, z] = &self.grid;
        let grid = [read(x)?, read(y)?, read(z)?];
        let [x, y, z] = &self.tiles;
        let tiles = [read(x)?, read(y)?, read(z)?];
        let iterations = self.iterations.iter();
        let iterations =
            iterations.map(|(dim, [first, end])| Ok((*dim, [read(first)?, read(end)?]))).collect::<Result<_, _>>()?;
        let numbered = self.numbered.as_ref().map(&mut read).transpose()?;
        let reaches = self.reaches.iter().map(&mut read).collect::<Result<_, _>>()?;
        Ok(LaunchExpressions {
            grid,
            tiles,
            iterations,
            numbered,
            reaches,
            counted: self.counted,
            assumptions: self.assumptions,
            arena,
        })
    }
}
