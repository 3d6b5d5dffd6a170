//! Operand rules by the names that rows use.

use super::super::meaning::Element::{self, B32, B64, B128, B256};
use super::super::spec::{Field, OperandClass, OperandSpec, Role};

const fn spec(role: Role, class: OperandClass, field: Field, element: Element) -> OperandSpec {
    OperandSpec { role, class, field, width: element.registers(), element }
}

macro_rules! kinds {
    ($($name:ident = $role:ident $class:ident $field:ident;)*) => {
        $(pub(in super::super) const fn $name(element: Element) -> OperandSpec {
            spec(Role::$role, OperandClass::$class, Field::$field, element)
        })*
    };
}

macro_rules! fixed_kinds {
    ($($name:ident = $role:ident $class:ident $field:ident $element:ident;)*) => {
        $(pub(in super::super) const fn $name() -> OperandSpec {
            spec(Role::$role, OperandClass::$class, Field::$field, $element)
        })*
    };
}

kinds! {
    sdst = Def ScalarDst Dst;
    sdst_use = DefUse ScalarDst Dst;
    suse = Use ScalarDst Dst;
    ssrc0 = Use ScalarSource Src0;
    ssrc1 = Use ScalarSource Src1;
    ssrc0_reg = Use ScalarRegister Src0;
    ssrc0_inline = Use ScalarInline Src0;
    ssrc1_inline = Use ScalarInline Src1;
    smdst = Def Sgpr Dst;
    smdata = Use Sgpr Dst;
    sbase = Use Sgpr Base;
    vdst = Def Vgpr Dst;
    vdst_use = DefUse Vgpr Dst;
    lane_dst = Def ScalarDst Dst;
    src0 = Use VectorSource Src0;
    src1 = Use VectorSource Src1;
    src2 = Use VectorSource Src2;
    src0_vgpr = Use Vgpr Src0;
    src1_vgpr = Use Vgpr Src1;
    src2_vgpr = Use Vgpr Src2;
    src0_swap = DefUse Vgpr Src0;
    src0_vgpr_or_inline = Use VectorInline Src0;
    loaded = Def VgprOrAgpr Dst;
    loaded_use = DefUse VgprOrAgpr Dst;
    buffer_loaded = Def VgprOrAgpr Data0;
    buffer_loaded_use = DefUse VgprOrAgpr Data0;
    data0 = Use VgprOrAgpr Data0;
    data1 = Use VgprOrAgpr Data1;
}

fixed_kinds! {
    literal = Use Literal Literal B32;
    sjoin = Use ScalarRegister Src0 B32;
    smfmac_index = Use Vgpr Src2 B32;
    gws_data = Use Vgpr Addr B32;
    sjump = Use ScalarRegister Src0 B64;
    soffset = Use ScalarOffset Offset B32;
    carry_out = Def Mask Sdst B64;
    carry_in = Use MaskSource Src2 B64;
    exported0 = Use Exported Addr B32;
    exported1 = Use Exported Data0 B32;
    exported2 = Use Exported Data1 B32;
    exported3 = Use Exported Dst B32;
    scale_a = Use Vgpr ScaleA B32;
    scale_b = Use Vgpr ScaleB B32;
    mask_dst = Def Mask Dst B64;
    lane_value = Use ScalarInline Src0 B32;
    lane_select = Use ScalarInline Src1 B32;
    acc_dst = Def Agpr Dst B32;
    acc_src = Use Agpr Src0 B32;
    addr = Use Vgpr Addr B32;
    vaddr = Use BufferAddress Addr B32;
    srsrc = Use Sgpr Base B128;
    soff = Use ScalarInline Offset B32;
    flat_addr = Use Vgpr Addr B64;
    global_addr = Use GlobalAddress Addr B64;
    scratch_addr = Use ScratchAddress Addr B32;
    saddr = Use ScalarBase Offset B64;
    scratch_base = Use ScalarBase Offset B32;
    image_loaded = Def ImageData Data0 B32;
    image_stored = Use ImageData Data0 B32;
    image_descriptor = Use Sgpr Base B256;
    sampler = Use Sgpr Sampler B128;
}

/// Address of an image instruction, with the least and the most registers that it takes.
pub(in super::super) const fn image_address(least: u8, most: u8) -> OperandSpec {
    OperandSpec {
        role: Role::Use,
        class: OperandClass::ImageAddress(most),
        field: Field::Addr,
        width: least,
        element: B32,
    }
}

pub(in super::super) const fn mfma_d(registers: u8) -> OperandSpec {
    spec(Role::Def, OperandClass::VgprOrAgpr, Field::Dst, Element::of_registers(registers))
}

pub(in super::super) const fn mfma_a(registers: u8) -> OperandSpec {
    spec(Role::Use, OperandClass::VgprOrAgpr, Field::Src0, Element::of_registers(registers))
}

pub(in super::super) const fn mfma_b(registers: u8) -> OperandSpec {
    spec(Role::Use, OperandClass::VgprOrAgpr, Field::Src1, Element::of_registers(registers))
}

/// Result and accumulator of a sparse matrix instruction.
pub(in super::super) const fn smfmac_d(registers: u8) -> OperandSpec {
    spec(Role::DefUse, OperandClass::VgprOrAgpr, Field::Dst, Element::of_registers(registers))
}

/// A whose registers follow from its format.
pub(in super::super) const fn formatted_a() -> OperandSpec {
    spec(Role::Use, OperandClass::MatrixFormatted, Field::Src0, Element::B256)
}

/// B whose registers follow from its format.
pub(in super::super) const fn formatted_b() -> OperandSpec {
    spec(Role::Use, OperandClass::MatrixFormatted, Field::Src1, Element::B256)
}

/// C keeps the type of its elements, which an inline constant needs.
pub(in super::super) const fn mfma_c(registers: u8, element: Element) -> OperandSpec {
    OperandSpec {
        role: Role::Use,
        class: OperandClass::MatrixC,
        field: Field::Src2,
        width: registers,
        element,
    }
}
