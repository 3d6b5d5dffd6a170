//! Every row of the ALU's part of the instruction table executes, on every chip that has it and in every
//! form.

use crate::codegen::isa::{
    Arch, Dpp, Element, Format, Inst, Meaning, Modifiers, OpInfo, Opcode, Operand, OperandClass, Sdwa, Unit,
};

use super::super::super::error::FaultKind;
use super::{MODE, Machine, s, v};

/// Rows that are an error, and why.
const LEFT_OUT: [(Opcode, &str); 2] = [
    (Opcode::SRfeB64, "there is no trap handler to return from"),
    (Opcode::SRfeRestoreB64, "there is no trap handler to return from"),
];

/// MODE with everything that is not the default: rounding towards zero, denormals flushed, f16 overflow
/// saturating.
const OTHER_MODE: u32 = 0xf | 1 << 23;

fn is_alu(info: &OpInfo) -> bool {
    let scalar =
        matches!(info.format, Format::Sop1 | Format::Sop2 | Format::Sopc | Format::Sopk | Format::Sopp);
    scalar || info.format.is_vop() && !matches!(info.unit, Unit::Mfma(_))
}

/// The row with any operands that it accepts, registers aligned.
fn plain(op: Opcode) -> Inst {
    let (mut scalar, mut vector) = (8, 2);
    let operands: Vec<Operand> = (op.info().operands.iter())
        .map(|spec| {
            use OperandClass::*;
            let width = u32::from(spec.width).next_multiple_of(2);
            match spec.class {
                Mask | MaskSource => Operand::VCC,
                Agpr => Operand::agpr(2),
                Literal => Operand::LITERAL,
                Sgpr | ScalarDst | ScalarSource | ScalarRegister | ScalarInline => {
                    scalar += width;
                    s(scalar - width)
                }
                _ => {
                    vector += width;
                    v(vector - width)
                }
            }
        })
        .collect();
    Inst::new(op, &operands)
}

/// The row in all its forms on a chip: short, with every modifier, DPP, SDWA.
fn forms(op: Opcode, arch: Arch) -> Vec<Inst> {
    let (info, inst) = (op.info(), plain(op));
    let mut forms = vec![inst];
    let all = info.modifiers_on(arch, Modifiers::new());
    if !all.is_empty() && !matches!(info.format, Format::Sopk) {
        forms.push(inst.modifiers(all));
    }
    if !info.dpp_modifiers.is_empty() {
        let wide = info.operands.iter().any(|spec| spec.width > 1 && spec.class == OperandClass::Vgpr)
            || info.operands.iter().any(|spec| spec.width > 1 && spec.class == OperandClass::VectorSource);
        let control = if wide { Dpp::control("row_newbcast", 3) } else { Dpp::control("row_shr", 1) };
        let imm = Dpp::new(control.expect("both exist")).to_imm();
        if !wide || arch >= Arch::Gfx90a {
            forms.push(inst.modifiers(info.dpp_modifiers).imm(imm));
        }
    }
    if !info.sdwa_modifiers.is_empty() {
        forms.push(inst.modifiers(info.sdwa_modifiers).imm(Sdwa::default().to_imm()));
    }
    forms
}

#[test]
fn every_row_executes() {
    let mut executed = 0;
    for arch in Arch::ALL {
        for &op in Opcode::ALL.iter().filter(|op| op.on(arch) && is_alu(op.info())) {
            for inst in forms(op, arch) {
                for mode in [MODE, OTHER_MODE] {
                    let mut m = Machine::new();
                    m.wave.mode = mode;
                    let outcome = m.run_on(arch, &[inst]).map_err(|stopped| stopped.kind);
                    let unsupported =
                        matches!(outcome, Err(FaultKind::Unsupported(_) | FaultKind::Undecodable));
                    // The manuals do not say which bytes halves would be.
                    let halves = inst.modifiers.get_op_sel() | inst.modifiers.get_op_sel_hi_flip();
                    let of_bytes = matches!(
                        op.info().meaning,
                        Meaning::Dot(Element::I8 | Element::U8 | Element::I4 | Element::U4)
                    );
                    // Instructions of graphics pipelines.
                    let graphics =
                        matches!(op.info().meaning, Meaning::Interpolate | Meaning::ScreenPartition);
                    let left_out = graphics
                        || LEFT_OUT.iter().any(|(other, _)| *other == op)
                        || of_bytes && halves != 0 && op.info().format == Format::Vop3p;
                    assert_eq!(unsupported, left_out, "{arch}: {inst}: {outcome:?}");
                    executed += 1;
                }
            }
        }
    }
    assert!(executed > 10_000, "{executed}");
}
