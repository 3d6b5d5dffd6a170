//! Executables as bytes, for files: what the cache on disk keeps, and packages of kernels.
//!
//! What is read is checked before anything is made of it, so that bytes that nobody here has written are an
//! error and never a panic, whatever their checksum says.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

#[cfg(feature = "compiler")]
use super::compiled_code::CompiledCode;
use super::executable::{Assumption, Executable, Inner, LaunchExpressions, Parameter};
#[cfg(feature = "compiler")]
use super::report::Report;
#[cfg(feature = "compiler")]
use crate::codegen::object::{KernelInfo, ObjectFile, ObjectOptions, SourceLines};
use crate::codegen::target::TargetId;
#[cfg(feature = "compiler")]
use crate::ir::expr::Expr;
use crate::ir::expr::{ExprArena, Symbol};

/// The compiler: its version, and a hash of its sources.
#[cfg(feature = "compiler")]
pub(super) const BUILD: &str =
    concat!("groundswell ", env!("CARGO_PKG_VERSION"), " ", env!("GROUNDSWELL_BUILD"));

/// More bytes of arguments than any kernel here has.
const MOST_ARGUMENT_BYTES: u32 = 1 << 16;

/// An executable as it is stored. Expressions are their texts, the form in which arenas exchange them.
#[derive(Serialize, Deserialize)]
pub(super) struct StoredExecutable<'a> {
    name: String,
    target: TargetId,
    parameters: Vec<Parameter>,
    kernarg_bytes: u32,
    lds_bytes: u32,
    block: [u32; 3],
    /// Parameters that may be one tensor.
    in_place: Vec<[u32; 2]>,
    launch: StoredLaunch,
    object: &'a [u8],
    /// The [`BUILD`] that wrote `code`.
    build: &'a str,
    /// A [`StoredCode`], which builds without the compiler do not look at.
    code: Vec<u8>,
}

/// What the compiler knows of an executable, and launching does not need.
#[cfg(feature = "compiler")]
#[derive(Serialize, Deserialize)]
struct StoredCode {
    format: ObjectOptions,
    info: KernelInfo,
    lines: Option<SourceLines>,
    report: Report,
    /// Where the machine code is in the object: the first byte, and bytes.
    place: (u32, u32),
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
    #[cfg(feature = "compiler")]
    #[error("it was built by {0}, and this is {BUILD}")]
    OtherBuild(String),
}

impl<'a> StoredExecutable<'a> {
    /// What is stored of an executable; nothing if its object does not hold its code, which no compilation
    /// gives.
    #[cfg(feature = "compiler")]
    pub(super) fn of(executable: &'a Executable) -> Option<StoredExecutable<'a>> {
        let Inner {
            name,
            target,
            object,
            parameters,
            kernarg_bytes,
            lds_bytes,
            block,
            in_place,
            launch,
            code,
        } = &*executable.inner;
        Some(StoredExecutable {
            name: name.clone(),
            target: *target,
            parameters: parameters.clone(),
            kernarg_bytes: *kernarg_bytes,
            lds_bytes: *lds_bytes,
            block: *block,
            in_place: in_place.clone(),
            launch: StoredLaunch::of(launch),
            object,
            build: BUILD,
            code: postcard::to_allocvec(&StoredCode::of(code, object)?).ok()?,
        })
    }

    /// Appends it to bytes.
    #[cfg(feature = "compiler")]
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
    ///
    /// With the compiler it has a report, whose form is that of each build, so that there only a record of
    /// the same build will do.
    pub(super) fn executable(self) -> Result<Executable, StoredError> {
        self.check()?;
        #[cfg(feature = "compiler")]
        if self.build != BUILD {
            return Err(StoredError::OtherBuild(self.build.to_owned()));
        }
        let inner = Inner {
            #[cfg(feature = "compiler")]
            code: StoredCode::read(&self.code)?.code(self.object)?,
            name: self.name,
            target: self.target,
            object: self.object.to_vec(),
            parameters: self.parameters,
            kernarg_bytes: self.kernarg_bytes,
            lds_bytes: self.lds_bytes,
            block: self.block,
            in_place: self.in_place,
            launch: self.launch.expressions()?,
        };
        Ok(Executable { inner: Arc::new(inner) })
    }

    /// That numbers which others rely on are those of some kernel.
    fn check(&self) -> Result<(), StoredError> {
        let most = self.target.max_workgroup_size;
        let work_items = self.block.iter().try_fold(1u32, |all, &size| all.checked_mul(size));
        if !work_items.is_some_and(|count| (1..=most).contains(&count)) {
            return Err(StoredError::Contradiction("a workgroup of that size cannot be"));
        }
        if self.kernarg_bytes > MOST_ARGUMENT_BYTES {
            return Err(StoredError::Contradiction("no kernel has so many bytes of arguments"));
        }
        Ok(())
    }
}

#[cfg(feature = "compiler")]
impl StoredCode {
    fn of(code: &CompiledCode, object: &[u8]) -> Option<StoredCode> {
        let CompiledCode { format, lines, info, words, report } = code;
        let file = ObjectFile::parse(object).ok()?;
        let bytes = file.kernels.iter().find(|kernel| kernel.name == info.name)?.code;
        let first = bytes.as_ptr() as usize - object.as_ptr() as usize;
        Some(StoredCode {
            format: *format,
            info: info.clone(),
            lines: lines.clone(),
            report: report.clone(),
            place: (u32::try_from(first).ok()?, u32::try_from(size_of_val(&words[..])).ok()?),
        })
    }

    fn read(bytes: &[u8]) -> Result<StoredCode, StoredError> {
        postcard::from_bytes(bytes).map_err(StoredError::Encoding)
    }

    fn code(self, object: &[u8]) -> Result<CompiledCode, StoredError> {
        let places = |lines: &SourceLines| {
            let rows = lines.rows.iter().filter_map(|row| row.place);
            rows.chain(lines.declaration).all(|place| (place.file as usize) < lines.files.len())
        };
        if !self.lines.as_ref().is_none_or(places) {
            return Err(StoredError::Contradiction("a line is in no file"));
        }
        let (first, bytes) = (self.place.0 as usize, self.place.1 as usize);
        let code = object.get(first..first + bytes);
        let code = code.ok_or(StoredError::Contradiction("the object is shorter than its code"))?;
        let words = code.as_chunks::<4>().0.iter().map(|&word| u32::from_le_bytes(word));
        Ok(CompiledCode {
            format: self.format,
            lines: self.lines,
            info: self.info,
            words: words.collect(),
            report: self.report,
        })
    }
}

impl StoredLaunch {
    #[cfg(feature = "compiler")]
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
        let iterations = iterations
            .map(|(dim, [first, end])| Ok((*dim, [read(first)?, read(end)?])))
            .collect::<Result<_, _>>()?;
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codegen::target::Target;
    use crate::ir::types::DType;
    use crate::runtime::executable::Size;

    fn record() -> StoredExecutable<'static> {
        let (m, n) = (Symbol::new("M"), Symbol::new("N"));
        let strides = vec![vec![Size::Static(64)].into(), vec![Size::Dynamic(n)].into()];
        StoredExecutable {
            name: "k".to_owned(),
            target: Target::GFX90A.into(),
            parameters: vec![
                Parameter::Buffer {
                    name: "a".into(),
                    dtype: DType::F16,
                    shape: vec![Size::Dynamic(m), Size::Static(300)].into(),
                    strides: strides.into(),
                    written: true,
                    offset: 0,
                },
                Parameter::Log {
                    name: "l".into(),
                    checks: Vec::new(),
                    at: None,
                    dtype: DType::I32,
                    shape: vec![Size::Static(2)].into(),
                    offset: 8,
                },
                Parameter::Scalar { name: "s".into(), dtype: DType::F64, offset: 16 },
                Parameter::Symbol { symbol: m, offset: 24 },
            ],
            kernarg_bytes: 28,
            lds_bytes: 1024,
            block: [64, 2, 1],
            in_place: vec![[3, 0]],
            launch: StoredLaunch {
                grid: ["ceildiv(M, 4)", "2", "1"].map(str::to_owned),
                tiles: ["3", "2", "1"].map(str::to_owned),
                iterations: vec![(n, ["0", "M"].map(str::to_owned))],
                counted: vec![(m, (-1, 5))],
                numbered: Some("6".to_owned()),
                reaches: vec!["M * 600".to_owned()],
                assumptions: vec![
                    (m, Assumption::Divisible(4)),
                    (m, Assumption::AtLeast(1)),
                    (n, Assumption::AtMost(9)),
                ],
            },
            object: b"object",
            build: "groundswell 0",
            code: vec![1, 2, 3],
        }
    }

    /// Packages are read by later builds: what changes these bytes takes a new version of their format
    /// (`MAGIC` in `package/file.rs`) and of the entries of caches.
    #[test]
    fn records_are_written_as_packages_have_them() {
        let bytes = postcard::to_allocvec(&record()).expect("it can be written");
        let expected = b"\x01k\x06gfx90a\x04\x00\x01a\x03f16\x02\x01\x01M\x00\xac\
            \x02\x02\x01\x00@\x01\x01\x01N\x01\x00\
            \x01\x01l\x00\x00\x03i32\x01\x00\x02\x08\
            \x02\x01s\x03f64\x10\x03\x01M\x18\
            \x1c\x80\x08@\x02\x01\x01\x03\x00\rceildiv(M, 4)\x012\x011\x013\x012\x011\
            \x01\x01N\x010\x01M\x01\x01M\x01\n\x01\x016\x01\x07M * 600\
            \x03\x01M\x00\x04\x01M\x01\x02\x01N\x02\x12\
            \x06object\rgroundswell 0\x03\x01\x02\x03";
        assert_eq!(bytes.escape_ascii().to_string(), expected.escape_ascii().to_string());
        let read = StoredExecutable::read(&bytes).expect("it is a record");
        assert_eq!(postcard::to_allocvec(&read).expect("it can be written"), bytes);
    }

    #[cfg(feature = "compiler")]
    #[test]
    fn a_report_of_another_build_is_not_read() {
        let error = record().executable().expect_err("another build wrote it");
        assert_eq!(error, StoredError::OtherBuild("groundswell 0".to_owned()));
    }
}
