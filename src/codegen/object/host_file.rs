//! The device code inside of a program or library of the host: which containers it holds, and which objects
//! are in them.
//!
//! Clang puts the bundle of each translation unit into a section `.hip_fatbin`, one after the other and each
//! on a page of its own; OpenMP's objects lie in `.llvm.rodata.offloading`. Other tools put whole objects
//! anywhere: on pages of their own, because they are mapped as they lie, or among the constants of the host's
//! code, as Mojo does. So objects, which seven bytes show to be such, are taken at every multiple of eight
//! bytes, and bundles at every page of the file and in sections for device code at every eighth byte.
//!
//! Any bytes give a list. What claims more than the file has is a fault of that place, and the search goes on
//! after it; looking takes time in proportion to the file.

use std::borrow::Cow;

use object::LittleEndian;
use object::elf::{self, FileHeader64};
use object::read::elf::{FileHeader, SectionHeader};

use super::bundle::{BundleError, BundleItem, bundle_items};
use super::decompress_bundle;
use super::extent::ContainerKind;
use super::read::{MAX_OBJECT_BYTES, ObjectError, ObjectFile, kernel_names};
use crate::codegen::target::TargetId;

/// Bundles outside of sections for device code begin at multiples of this.
const PAGE: usize = 4096;
/// The same in such a section, and for objects anywhere.
const ALIGNMENT: usize = 8;
/// What the names of sections for device code hold: `.hip_fatbin`, `.llvm.offloading`,
/// `.llvm.rodata.offloading`.
const DEVICE_SECTIONS: [&str; 2] = ["fatbin", "offloading"];
/// How many times as large as their file all compressed bundles together may be. The compression of
/// `-offload-compress` reaches about a fifth of that for objects that are alike.
const MOST_GROWTH: usize = 128;

/// Device code in a file: an object, a bundle of objects, or a compressed bundle.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct DeviceContainer<'a> {
    /// Where it begins in the file.
    pub offset: usize,
    /// The section of the host's file that it begins in.
    pub section: Option<&'a str>,
    /// What it is.
    pub kind: ContainerKind,
    /// Its bytes, as they are in the file.
    pub bytes: &'a [u8],
}

/// One code object of a container.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DeviceObject<'a> {
    /// Where it begins in its container, once that is not compressed.
    pub offset: usize,
    /// What the bundle says that it is for: `hipv4-amdgcn-amd-amdhsa--gfx90a:xnack-`; of an object by itself
    /// what it says of itself.
    pub id: String,
    /// The chip and its modes, if it is one that is known here.
    pub target: Option<TargetId>,
    /// The object.
    pub bytes: &'a [u8],
}

impl<'a> DeviceObject<'a> {
    /// The names of its kernels, which are read of objects for chips that are not known here, too.
    ///
    /// # Errors
    /// It is not an object whose symbols can be read.
    pub fn kernels(&self) -> Result<Vec<&'a str>, ObjectError> {
        kernel_names(self.bytes)
    }
}

/// Something that begins like device code, and is none.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum HostFault {
    /// It says of itself that it goes on after the end of the file.
    #[error("the {} at {offset:#x} ends {missing} bytes after the file", kind.name())]
    CutOff {
        /// Where it begins.
        offset: usize,
        /// What it begins as.
        kind: ContainerKind,
        /// Bytes that are not there.
        missing: u64,
    },
    /// Tables of tables: what the file says takes longer to read than the file.
    #[error("the search ended at {offset:#x}, because what looks like device code has tables without end")]
    Tables {
        /// Where the search ended.
        offset: usize,
    },
}

impl HostFault {
    /// Where it is in the file.
    pub fn offset(&self) -> usize {
        match self {
            HostFault::CutOff { offset, .. } | HostFault::Tables { offset } => *offset,
        }
    }
}

/// The device code of a file.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct DeviceCode<'a> {
    /// In the order of the file; they do not overlap.
    pub containers: Vec<DeviceContainer<'a>>,
    /// What begins like one, and is none.
    pub faults: Vec<HostFault>,
}

impl<'a> DeviceCode<'a> {
    /// Looks through a file of the host, or any bytes.
    ///
    /// # Example
    /// ```
    /// use groundswell::object::{ContainerKind, DeviceCode};
    /// use groundswell::prelude::*;
    /// let gemm = groundswell::kernels::Gemm::new(64, 64, 32);
    /// let executable = gemm.compile(Target::GFX942)?;
    /// let mut file = vec![0; 4096];
    /// file.extend(executable.object());
    /// let found = DeviceCode::find(&file);
    /// assert_eq!(found.containers[0].kind, ContainerKind::Object);
    /// # Ok::<(), Diagnostic>(())
    /// ```
    pub fn find(bytes: &'a [u8]) -> DeviceCode<'a> {
        let sections = device_sections(bytes);
        let mut found = DeviceCode::default();
        // Each place is looked at once; this is for tables, which may lie anywhere.
        let mut left = bytes.len().saturating_mul(4).saturating_add(1 << 24);
        let mut next = candidate(bytes, &sections, 0);
        while let Some((offset, kind)) = next {
            let rest = &bytes[offset..];
            let mut reads = 0;
            let extent = kind.extent(&mut |at| {
                reads += 1;
                usize::try_from(at).ok().and_then(|at| rest.get(at)).copied().unwrap_or_default()
            });
            if reads > left {
                found.faults.push(HostFault::Tables { offset });
                break;
            }
            left -= reads;
            let section = section_after(&sections, offset).filter(|section| section.start <= offset);
            let length = match extent {
                Ok(extent) => extent,
                // It does not say where it ends: with its section, or where the next one begins.
                Err(_) => {
                    let end = section.map_or(bytes.len(), |section| section.end);
                    let next = candidate(bytes, &sections, offset + ALIGNMENT).map(|(next, _)| next);
                    (next.unwrap_or(end).min(end) - offset) as u64
                }
            };
            let whole = usize::try_from(length).ok().and_then(|length| rest.get(..length));
            let after = match whole {
                Some(bytes) => {
                    let section = section.map(|section| section.name);
                    found.containers.push(DeviceContainer { offset, section, kind, bytes });
                    bytes.len().max(1)
                }
                None => {
                    let missing = length.saturating_sub(rest.len() as u64);
                    found.faults.push(HostFault::CutOff { offset, kind, missing });
                    ALIGNMENT
                }
            };
            next = candidate(bytes, &sections, offset + after);
        }
        found
    }

    /// True if the bytes are one container from beginning to end.
    pub fn is_whole(&self, bytes: &[u8]) -> bool {
        matches!(&self.containers[..], [only] if only.bytes.len() == bytes.len())
    }

    /// What reads the containers one after the other, and keeps account of how much they become.
    pub fn unpacker(&self) -> Unpacker {
        let bytes: usize = self.containers.iter().map(|container| container.bytes.len()).sum();
        Unpacker { left: bytes.saturating_mul(MOST_GROWTH).saturating_add(MAX_OBJECT_BYTES) }
    }
}

/// Takes containers apart. Compressed ones of one file may become so much together, and no more.
#[derive(Clone, Debug)]
pub struct Unpacker {
    left: usize,
}

impl Unpacker {
    /// What is in a container, without compression, for [`DeviceContainer::objects`].
    ///
    /// # Errors
    /// It is compressed, and that is damaged, too large, or of an unknown kind; or all of a file together are
    /// too large.
    pub fn open<'a>(&mut self, container: &DeviceContainer<'a>) -> Result<Cow<'a, [u8]>, BundleError> {
        let contents = match container.kind {
            ContainerKind::CompressedBundle => decompress_bundle(container.bytes)?,
            ContainerKind::Object | ContainerKind::Bundle => return Ok(Cow::Borrowed(container.bytes)),
        };
        let too_large = BundleError::Growth { bytes: contents.len() as u64 };
        self.left = self.left.checked_sub(contents.len()).ok_or(too_large)?;
        Ok(contents)
    }
}

impl DeviceContainer<'_> {
    /// The device's objects in the contents of this container, which [`Unpacker::open`] gives.
    ///
    /// # Errors
    /// The bundle is cut off, or its objects share their bytes.
    pub fn objects<'c>(&self, contents: &'c [u8]) -> Result<Vec<DeviceObject<'c>>, BundleError> {
        let Some(items) = bundle_items(contents)? else {
            // What the object says of itself is all there is.
            let target = ObjectFile::parse(contents).ok().map(|object| object.target_id());
            let id = target.map_or("amdgcn-amd-amdhsa--".to_owned(), TargetId::with_triple);
            return Ok(vec![DeviceObject { offset: 0, id, target, bytes: contents }]);
        };
        let shared = items.iter().fold(0usize, |sum, item| sum.saturating_add(item.bytes.len()));
        if shared > contents.len() {
            return Err(BundleError::Shared);
        }
        // The host's entry is empty, and so is that of a unit without kernels.
        let full = items.into_iter().filter(|item| !item.bytes.is_empty());
        Ok(full
            .map(|item: BundleItem<'c>| DeviceObject {
                offset: item.offset,
                target: item.target(),
                id: item.id.into_owned(),
                bytes: item.bytes,
            })
            .collect())
    }
}

/// A section for device code.
struct DeviceSection<'a> {
    name: &'a str,
    start: usize,
    end: usize,
}

/// Sections for device code of an ELF file in order, without those that overlap one before. Tables that
/// cannot be read name none.
fn device_sections(bytes: &[u8]) -> Vec<DeviceSection<'_>> {
    let read = || {
        let header = FileHeader64::<LittleEndian>::parse(bytes).ok()?;
        (header.e_machine(LittleEndian) != elf::EM_AMDGPU).then_some(())?;
        let sections = header.sections(LittleEndian, bytes).ok()?;
        let named = sections.iter().filter_map(|section| {
            let name = std::str::from_utf8(sections.section_name(LittleEndian, section).ok()?).ok()?;
            DEVICE_SECTIONS.iter().any(|part| name.contains(part)).then_some(())?;
            let (start, size) = section.file_range(LittleEndian)?;
            let start = usize::try_from(start).ok()?;
            let end = start.checked_add(usize::try_from(size).ok()?)?;
            (end <= bytes.len()).then_some(DeviceSection { name, start, end })
        });
        Some(named.collect::<Vec<_>>())
    };
    let mut sections = read().unwrap_or_default();
    sections.sort_by_key(|section| section.start);
    let mut end = 0;
    sections.retain(|section| {
        let is_apart = section.start >= end;
        end = end.max(section.end);
        is_apart
    });
    sections
}

/// The section that a place is in, or the next one. They come in order and apart.
fn section_after<'s, 'a>(sections: &'s [DeviceSection<'a>], at: usize) -> Option<&'s DeviceSection<'a>> {
    sections.get(sections.partition_point(|section| section.end <= at))
}

/// The first place from `from` on at which device code may begin, and as what.
fn candidate(bytes: &[u8], sections: &[DeviceSection<'_>], from: usize) -> Option<(usize, ContainerKind)> {
    let mut at = from;
    while at < bytes.len() {
        let section = section_after(sections, at);
        let inside = section.filter(|section| section.start <= at);
        let start = inside.map_or(0, |section| section.start);
        // Where the steps become others.
        let border = section.map_or(bytes.len(), |section| inside.map_or(section.start, |of| of.end));
        let first = start + (at - start).next_multiple_of(ALIGNMENT);
        let found = (first..border).step_by(ALIGNMENT).find_map(|place| {
            let kind = ContainerKind::of(&bytes[place..])?;
            let may_begin = inside.is_some() || kind == ContainerKind::Object || place.is_multiple_of(PAGE);
            may_begin.then_some((place, kind))
        });
        if found.is_some() {
            return found;
        }
        at = border;
    }
    None
}
