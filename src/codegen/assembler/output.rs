//! From sections and symbols to the bytes of an object.

use std::collections::BTreeSet;

use super::error::{AssemblerError, Faults, MOST_FAULTS, other};
use super::fixups;
use super::symbols::{AssemblerSymbol, Binding, SymbolDefinition, SymbolPlaces, Symbols, is_temporary};
use super::walk::{Note, TextAssembler};
use crate::codegen::isa::parse::{InstructionFault, SymbolValues as _};
use crate::codegen::object::{
    AddressRelocation, Assembly, AssemblySection, AssemblySymbol, ObjectError, ObjectFile, PlacedFile,
    SymbolHome,
};
use crate::codegen::target::TargetId;

/// Alignment of descriptors and of kernels' first instructions.
const DESCRIPTOR_ALIGN: u64 = 64;
const ENTRY_ALIGN: u64 = 256;

/// An assembled object.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Assembled {
    /// The bytes of the object.
    pub object: Vec<u8>,
    /// The chip and the modes that it is for.
    pub target: TargetId,
    /// The parts of the text that have no effect.
    pub notes: Vec<Note>,
}

/// Lays the object out and fills in what depends on the layout.
pub(super) fn finish(mut assembler: TextAssembler) -> Result<Assembled, Faults> {
    let target = match assembler.target {
        Some(target) if assembler.faults.is_empty() => target,
        _ => return Err(Faults(assembler.faults)),
    };
    let symbols = match symbol_list(&assembler.symbols, &assembler.kernels.names) {
        Ok(symbols) => symbols,
        Err(faults) => return Err(Faults(faults)),
    };
    hold_bytes(&mut assembler)?;
    // Numbers of sections that are written; empty ones without symbols are not.
    let used = |index: usize| {
        let section = &assembler.sections.all[index];
        let holds =
            |symbol: &AssemblySymbol| matches!(symbol.home, SymbolHome::Section(at, _) if at == index);
        section.len() > 0 || symbols.iter().any(holds)
    };
    let written: Vec<usize> = (0..assembler.sections.all.len()).filter(|&index| used(index)).collect();
    let relocated = fixups::addresses(&assembler.fixups, &assembler.symbols, &assembler.sections.all);
    let layout = layout(&assembler, target, &written, symbols, relocated.len());
    let mut addresses = vec![0; assembler.sections.all.len()];
    for (place, &index) in written.iter().enumerate() {
        addresses[index] = layout.address(place);
    }
    let mut faults = Vec::new();
    let (noted, all) = (std::mem::take(&mut assembler.fixups), &mut assembler.sections.all);
    fixups::apply(&noted, &assembler.symbols, all, &addresses, &mut faults);
    check_entries(&assembler, &addresses, &mut faults);
    if !faults.is_empty() {
        faults.sort_by_key(|fault| (fault.line, fault.column));
        faults.truncate(MOST_FAULTS);
        return Err(Faults(faults));
    }
    let mut all = std::mem::take(&mut assembler.sections.all);
    let contents = written.iter().map(|&index| std::mem::take(all[index].data_mut())).collect();
    let relocations = relocated.iter().map(|address| AddressRelocation {
        place: addresses[address.place.0] + address.place.1 as u64,
        value: addresses[address.value.0].wrapping_add_signed(address.value.1),
    });
    let object = layout.write(contents, &relocations.collect::<Vec<_>>());
    check(&object, assembler.metadata.line)?;
    Ok(Assembled { object, target, notes: assembler.notes })
}

/// Gives sections of zeros their bytes where some are filled in: what is not known before the layout has its
/// place in the file.
fn hold_bytes(assembler: &mut TextAssembler) -> Result<(), Faults> {
    for fixup in &assembler.fixups {
        if assembler.sections.all[fixup.section].is_zero() {
            let held = assembler.sections.hold(fixup.section);
            held.map_err(|fault| Faults(vec![AssemblerError::new(fixup.line, fixup.column, fault)]))?;
        }
    }
    Ok(())
}

/// Checks that the object can be read: the text may say too little about kernels.
fn check(object: &[u8], metadata_line: usize) -> Result<(), Faults> {
    let Err(error) = ObjectFile::parse(object) else { return Ok(()) };
    let line = match error {
        ObjectError::Metadata { .. } | ObjectError::MetadataKey { .. } => metadata_line,
        _ => 1,
    };
    Err(Faults(vec![AssemblerError::new(line, 1, other(error.to_string()))]))
}

fn layout(
    assembler: &TextAssembler,
    target: TargetId,
    written: &[usize],
    mut symbols: Vec<AssemblySymbol>,
    relocations: usize,
) -> PlacedFile {
    let sections = written.iter().map(|&index| {
        let section = &assembler.sections.all[index];
        AssemblySection {
            name: section.name.clone(),
            flags: section.flags,
            entry_size: section.entry_size,
            align: section.align,
            size: section.len() as u64,
            is_zero: section.is_zero(),
        }
    });
    for symbol in &mut symbols {
        if let SymbolHome::Section(index, offset) = symbol.home {
            let place = written.iter().position(|&written| written == index);
            symbol.home = SymbolHome::Section(place.unwrap_or(0), offset);
        }
    }
    PlacedFile::new(Assembly {
        target,
        version: assembler.version.unwrap_or(target.object_version()),
        metadata: assembler.metadata.packs.clone(),
        sections: sections.collect(),
        symbols,
        relocations,
    })
}

/// The symbols of the object: local ones first, descriptors after their kernels.
fn symbol_list(symbols: &Symbols, kernels: &[String]) -> Result<Vec<AssemblySymbol>, Vec<AssemblerError>> {
    let mut faults = Vec::new();
    let (mut locals, mut globals) = (Vec::new(), Vec::new());
    let kernels: BTreeSet<&str> = kernels.iter().map(String::as_str).collect();
    let is_descriptor = |name: &str| name.strip_suffix(".kd").is_some_and(|name| kernels.contains(name));
    let mut add = |symbol: &AssemblerSymbol| match entry(symbols, symbol) {
        Ok(Some(entry)) if entry.is_local() => locals.push(entry),
        Ok(Some(entry)) => globals.push(entry),
        Ok(None) => {}
        Err(fault) => faults.push(AssemblerError::new(symbol.line.max(1), 1, fault)),
    };
    for symbol in symbols.all.iter().filter(|symbol| !is_temporary(&symbol.name)) {
        if is_descriptor(&symbol.name) {
            continue;
        }
        add(symbol);
        if let Some(descriptor) = symbols.get(&format!("{}.kd", symbol.name))
            && is_descriptor(&descriptor.name)
        {
            add(descriptor);
        }
    }
    if !faults.is_empty() {
        faults.truncate(MOST_FAULTS);
        return Err(faults);
    }
    locals.append(&mut globals);
    Ok(locals)
}

/// A symbol as the object has it; none for numbers that are not visible outside.
fn entry(symbols: &Symbols, symbol: &AssemblerSymbol) -> Result<Option<AssemblySymbol>, InstructionFault> {
    let undefined = || other(format!("`{}` is not defined", symbol.name));
    let definition = match &symbol.definition {
        Some(definition) => definition,
        // It has properties, but no use.
        None if symbol.binding == Binding::Local && symbol.size.is_none() => return Ok(None),
        None => return Err(undefined()),
    };
    if matches!(definition, SymbolDefinition::Set(..)) && symbol.binding == Binding::Local {
        return Ok(None);
    }
    let value = SymbolPlaces::new(symbols, None).symbol(&symbol.name)?;
    let home = match value.section {
        Some(section) => SymbolHome::Section(section as usize, value.offset as u64),
        None => SymbolHome::Absolute(value.offset as u64),
    };
    let size = match &symbol.size {
        Some((expression, here)) => expression.number(&SymbolPlaces::new(symbols, Some(*here)))? as u64,
        None => 0,
    };
    let info = (symbol.binding as u8) << 4 | symbol.kind;
    Ok(Some(AssemblySymbol { name: symbol.name.clone(), info, other: symbol.visibility, home, size }))
}

/// Checks that descriptors and kernels are aligned as the hardware requires.
fn check_entries(assembler: &TextAssembler, addresses: &[u64], faults: &mut Vec<AssemblerError>) {
    for name in &assembler.kernels.names {
        for (symbol, align) in [(name.clone(), ENTRY_ALIGN), (format!("{name}.kd"), DESCRIPTOR_ALIGN)] {
            let Ok(place) = SymbolPlaces::new(&assembler.symbols, None).symbol(&symbol) else { continue };
            let address = place.section.map_or(0, |section| addresses[section as usize]);
            if !(address as i64).wrapping_add(place.offset).cast_unsigned().is_multiple_of(align) {
                let line = assembler.symbols.get(&symbol).map_or(1, |symbol| symbol.line.max(1));
                let fault = other(format!("`{symbol}` does not lie at a multiple of {align} bytes"));
                faults.push(AssemblerError::new(line, 1, fault));
            }
        }
    }
}
