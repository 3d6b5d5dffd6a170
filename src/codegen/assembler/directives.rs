//! The directives, by name.

/// The effect of a directive.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) enum DirectiveEffect {
    Sections(SectionDirective),
    Symbols(SymbolDirective),
    Data(DataDirective),
    Target,
    Version,
    Kernel,
    Metadata,
    /// Goes on with the lines of another file.
    Include,
    /// Begins a macro.
    Macro,
    /// Forgets macros.
    PurgeMacro,
    /// Leaves the macro.
    ExitMacro,
    /// How macros are written from here on.
    Macros(MacroSyntax),
    /// Begins a repetition.
    Repeat(RepeatedFor),
    /// Says something.
    Message(MessageKind),
    /// Ends the text.
    End,
    /// Has no effect on the object.
    Ignored,
}

/// The section in which a text goes on.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) enum SectionDirective {
    /// A section of this name.
    Into(&'static str),
    Section,
    Push,
    Pop,
    Previous,
}

/// Directives about symbols.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) enum SymbolDirective {
    Global,
    Weak,
    Local,
    /// `st_other` of symbols.
    Visibility(u8),
    Type,
    Size,
    Set,
    /// The same, of a symbol that is new.
    SetOnce,
}

/// Directives that put bytes into a section.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) enum DataDirective {
    /// Numbers of this many bytes.
    Numbers(usize),
    /// Floats of this many bytes.
    Float(usize),
    /// Strings; with a zero byte after each.
    Ascii,
    Asciz,
    /// This many bytes.
    Zero,
    Fill,
    /// Goes on at this place of the section.
    Origin,
    /// Numbers of as many bytes as they need.
    Leb128(Signedness),
    /// Numbers of sixteen bytes.
    Wide,
    /// Alignment in bytes, or as a power of two; the filler has this many bytes.
    Align(AlignmentUnit, usize),
}

/// How an alignment is given.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) enum AlignmentUnit {
    Bytes,
    PowerOfTwo,
}

/// The sign of a number: there may be one, or there is none.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) enum Signedness {
    Signed,
    Unsigned,
}

/// What the lines of a repetition are repeated for.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) enum RepeatedFor {
    /// A number of times.
    Count,
    /// Each value of a list.
    Values,
    /// Each character of a word.
    Characters,
}

/// The weight of what a text says.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) enum MessageKind {
    Error,
    Remark,
}

use super::macros::MacroSyntax;
use DataDirective::*;
use DirectiveEffect::*;
use SectionDirective::*;
use SymbolDirective::*;

/// Sizes are those of LLVM's assembler.
const TABLE: [(&str, DirectiveEffect); 81] = [
    (".text", Sections(Into(".text"))),
    (".data", Sections(Into(".data"))),
    (".bss", Sections(Into(".bss"))),
    (".rodata", Sections(Into(".rodata"))),
    (".section", Sections(Section)),
    (".pushsection", Sections(Push)),
    (".popsection", Sections(Pop)),
    (".previous", Sections(Previous)),
    (".globl", Symbols(Global)),
    (".global", Symbols(Global)),
    (".weak", Symbols(Weak)),
    (".local", Symbols(Local)),
    (".internal", Symbols(Visibility(1))),
    (".hidden", Symbols(Visibility(2))),
    (".protected", Symbols(Visibility(3))),
    (".type", Symbols(Type)),
    (".size", Symbols(Size)),
    (".set", Symbols(Set)),
    (".equ", Symbols(Set)),
    (".equiv", Symbols(SetOnce)),
    (".byte", Data(Numbers(1))),
    (".short", Data(Numbers(2))),
    (".value", Data(Numbers(2))),
    (".2byte", Data(Numbers(2))),
    (".long", Data(Numbers(4))),
    (".int", Data(Numbers(4))),
    (".4byte", Data(Numbers(4))),
    (".quad", Data(Numbers(8))),
    (".8byte", Data(Numbers(8))),
    (".octa", Data(Wide)),
    (".uleb128", Data(Leb128(Signedness::Unsigned))),
    (".sleb128", Data(Leb128(Signedness::Signed))),
    (".float", Data(Float(4))),
    (".single", Data(Float(4))),
    (".double", Data(Float(8))),
    (".ascii", Data(Ascii)),
    (".asciz", Data(Asciz)),
    (".string", Data(Asciz)),
    (".zero", Data(Zero)),
    (".space", Data(Zero)),
    (".skip", Data(Zero)),
    (".fill", Data(Fill)),
    (".org", Data(Origin)),
    (".align", Data(Align(AlignmentUnit::Bytes, 1))),
    (".balign", Data(Align(AlignmentUnit::Bytes, 1))),
    (".balignw", Data(Align(AlignmentUnit::Bytes, 2))),
    (".balignl", Data(Align(AlignmentUnit::Bytes, 4))),
    (".p2align", Data(Align(AlignmentUnit::PowerOfTwo, 1))),
    (".p2alignw", Data(Align(AlignmentUnit::PowerOfTwo, 2))),
    (".p2alignl", Data(Align(AlignmentUnit::PowerOfTwo, 4))),
    (".amdgcn_target", Target),
    (".amdhsa_code_object_version", Version),
    (".amdhsa_kernel", Kernel),
    (".amdgpu_metadata", Metadata),
    (".include", Include),
    (".macro", Macro),
    (".purgem", PurgeMacro),
    (".exitm", ExitMacro),
    (".rept", Repeat(RepeatedFor::Count)),
    (".rep", Repeat(RepeatedFor::Count)),
    (".irp", Repeat(RepeatedFor::Values)),
    (".irpc", Repeat(RepeatedFor::Characters)),
    (".err", Message(MessageKind::Error)),
    (".error", Message(MessageKind::Error)),
    (".warning", Message(MessageKind::Remark)),
    (".print", Message(MessageKind::Remark)),
    (".end", End),
    (".altmacro", Macros(MacroSyntax::Alternate)),
    (".noaltmacro", Macros(MacroSyntax::Usual)),
    (".ident", Ignored),
    (".addrsig", Ignored),
    (".addrsig_sym", Ignored),
    (".file", Ignored),
    (".loc", Ignored),
    (".cfi_startproc", Ignored),
    (".cfi_endproc", Ignored),
    (".cfi_sections", Ignored),
    (".cfi_escape", Ignored),
    (".cfi_undefined", Ignored),
    (".cfi_def_cfa_register", Ignored),
    (".cfi_def_cfa", Ignored),
];

/// The directive of that name.
pub(super) fn find(name: &str) -> Option<DirectiveEffect> {
    TABLE.iter().find(|(known, _)| *known == name).map(|(_, directive)| *directive)
}
