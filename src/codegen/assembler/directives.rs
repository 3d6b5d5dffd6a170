//! The directives, by name.

/// The effect of a directive.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) enum DirectiveEffect {
    /// Goes on in a section of this name.
    Into(&'static str),
    Section,
    PushSection,
    PopSection,
    Previous,
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
    /// Numbers of this many bytes.
    Data(usize),
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
use DirectiveEffect::*;

/// Sizes are those of LLVM's assembler.
const TABLE: [(&str, DirectiveEffect); 81] = [
    (".text", Into(".text")),
    (".data", Into(".data")),
    (".bss", Into(".bss")),
    (".rodata", Into(".rodata")),
    (".section", Section),
    (".pushsection", PushSection),
    (".popsection", PopSection),
    (".previous", Previous),
    (".globl", Global),
    (".global", Global),
    (".weak", Weak),
    (".local", Local),
    (".internal", Visibility(1)),
    (".hidden", Visibility(2)),
    (".protected", Visibility(3)),
    (".type", Type),
    (".size", Size),
    (".set", Set),
    (".equ", Set),
    (".equiv", SetOnce),
    (".byte", Data(1)),
    (".short", Data(2)),
    (".value", Data(2)),
    (".2byte", Data(2)),
    (".long", Data(4)),
    (".int", Data(4)),
    (".4byte", Data(4)),
    (".quad", Data(8)),
    (".8byte", Data(8)),
    (".octa", Wide),
    (".uleb128", Leb128(Signedness::Unsigned)),
    (".sleb128", Leb128(Signedness::Signed)),
    (".float", Float(4)),
    (".single", Float(4)),
    (".double", Float(8)),
    (".ascii", Ascii),
    (".asciz", Asciz),
    (".string", Asciz),
    (".zero", Zero),
    (".space", Zero),
    (".skip", Zero),
    (".fill", Fill),
    (".org", Origin),
    (".align", Align(AlignmentUnit::Bytes, 1)),
    (".balign", Align(AlignmentUnit::Bytes, 1)),
    (".balignw", Align(AlignmentUnit::Bytes, 2)),
    (".balignl", Align(AlignmentUnit::Bytes, 4)),
    (".p2align", Align(AlignmentUnit::PowerOfTwo, 1)),
    (".p2alignw", Align(AlignmentUnit::PowerOfTwo, 2)),
    (".p2alignl", Align(AlignmentUnit::PowerOfTwo, 4)),
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
