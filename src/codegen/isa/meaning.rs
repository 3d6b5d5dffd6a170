//! The meanings of instructions, as plain values: each row of the table carries one [`Meaning`], and the
//! simulator executes it. Rows that compute the same share one meaning; the address space of a memory access
//! is its row's format.

/// Kind of data in an operand or of an operation.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug)]
#[allow(missing_docs)] // The names say all: letter for the kind (B is raw bits), number for the width in bits.
pub enum Element {
    U4,
    I4,
    U8,
    I8,
    /// OCP float, 2 exponent bits, 1 mantissa bit.
    Fp4,
    /// OCP float, 2 exponent bits, 3 mantissa bits.
    Fp6,
    /// OCP float, 3 exponent bits, 2 mantissa bits.
    Bf6,
    /// OCP/NANOO float, 4 exponent bits.
    Fp8,
    /// OCP/NANOO float, 5 exponent bits.
    Bf8,
    B16,
    U16,
    I16,
    F16,
    Bf16,
    /// Low 24 bits of a register, signed.
    I24,
    /// Low 24 bits of a register, unsigned.
    U24,
    B32,
    U32,
    I32,
    F32,
    /// F32 with a mantissa rounded to 10 bits.
    Xf32,
    I16x2,
    F16x2,
    Bf16x2,
    B64,
    U64,
    I64,
    F64,
    B32x2,
    F32x2,
    B96,
    B128,
    B192,
    B256,
    B512,
    B1024,
}

impl Element {
    /// Number of 32-bit registers that hold one.
    pub const fn registers(self) -> u8 {
        use Element::*;
        match self {
            B64 | U64 | I64 | F64 | B32x2 | F32x2 => 2,
            B96 => 3,
            B128 => 4,
            B192 => 6,
            B256 => 8,
            B512 => 16,
            B1024 => 32,
            _ => 1,
        }
    }

    /// True for floats that can be negated and scaled.
    pub const fn is_float(self) -> bool {
        use Element::*;
        matches!(self, F16 | Bf16 | F32 | F64 | F16x2 | Bf16x2)
    }

    /// Raw bits filling this many registers.
    pub(super) const fn of_registers(count: u8) -> Element {
        match count {
            1 => Element::B32,
            2 => Element::B64,
            3 => Element::B96,
            4 => Element::B128,
            8 => Element::B256,
            16 => Element::B512,
            32 => Element::B1024,
            _ => panic!("no operand has this number of registers"),
        }
    }
}

/// An operation on one element (or one lane). The type beside it in [`Meaning`] decides width, signedness and
/// flags.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug)]
#[allow(missing_docs)] // Plain arithmetic needs no words; what does has them.
pub enum Calc {
    Mov,
    Not,
    And,
    Or,
    Xor,
    /// `a & !b`
    AndNot,
    /// `a | !b`
    OrNot,
    /// `!a & b`
    NotAnd,
    /// `!a | b`
    NotOr,
    Nand,
    Nor,
    Xnor,
    /// `(a & b) | c`
    AndOr,
    Or3,
    /// `(a ^ b) + c`
    XorAdd,
    ReverseBits,
    /// Population count.
    CountOnes,
    /// Number of zeros.
    CountZeros,
    /// Population count of a, plus b.
    CountOnesAdd,
    /// Index of the lowest one, -1 if none.
    FirstOneFromLow,
    /// Index of the lowest zero, -1 if none.
    FirstZeroFromLow,
    /// Number of leading zeros (for signed types: leading bits equal to the sign), -1 if all bits are the
    /// same.
    FirstOneFromHigh,
    /// Each group of four bits becomes all ones if any was one.
    WholeQuad,
    /// One bit for each group of four: any was one.
    QuadMask,
    /// Each bit twice.
    BitReplicate,
    SignExtend,
    Abs,
    AbsDiff,
    Add,
    /// Add with carry in from SCC.
    AddCarry,
    Sub,
    /// Subtract with borrow in from SCC.
    SubBorrow,
    /// `b - a`
    SubRev,
    Add3,
    Mul,
    /// Zero times anything is zero.
    MulLegacy,
    MulHigh,
    /// `a * b + c`, rounded twice for floats.
    MulAdd,
    /// The same, zero times anything being zero.
    MulAddLegacy,
    /// `a * b + c`, rounded once; without a third source the destination is c.
    Fma,
    Min,
    Max,
    Min3,
    Max3,
    /// Least of three, NaN if any is (IEEE 754-2019 minimum).
    Minimum3,
    /// Greatest of three, NaN if any is (IEEE 754-2019 maximum).
    Maximum3,
    Med3,
    ShiftLeft,
    ShiftRight,
    /// `b << a`
    ShiftLeftRev,
    /// `b >> a`
    ShiftRightRev,
    /// `(a << b) + c`
    ShiftLeftAdd,
    /// `(a + b) << c`
    AddShiftLeft,
    /// `(a << b) | c`
    ShiftLeftOr,
    /// `((1 << a) - 1) << b`
    BitFieldMask,
    /// Scalar: offset and width packed in b; vector: offset b, width c.
    BitFieldExtract,
    /// `(a & b) | (!a & c)`
    BitFieldInsert,
    /// `{a, b} >> (c mod 32)`
    AlignBit,
    /// `{a, b} >> 8 * (c mod 4)`
    AlignByte,
    /// Bytes of `{a, b}` selected by c.
    PermuteBytes,
    /// Sum of absolute differences of the bytes, halves or whole, plus c.
    SumAbsDiff,
    /// Sum of absolute byte differences in the high half, plus c.
    SumAbsDiffHigh,
    /// Sum of absolute byte differences where b's byte is not zero, plus c.
    MaskedSumAbsDiff,
    /// Four sums of absolute byte differences at rising byte offsets of a, plus c.
    QuadSumAbsDiff,
    /// The same where b's byte is not zero.
    MaskedQuadSumAbsDiff,
    /// Averages of bytes, rounded as c's bytes say.
    LerpBytes,
    /// Any function of three bits, by truth table.
    BitOperation3,
    Fract,
    Trunc,
    Ceil,
    RoundEven,
    Floor,
    Exp2,
    Log2,
    Reciprocal,
    ReciprocalSqrt,
    Sqrt,
    /// Sine of a in revolutions.
    Sin,
    /// Cosine of a in revolutions.
    Cos,
    /// `a * 2^b`
    LoadExponent,
    /// Exponent such that the mantissa is in [0.5, 1).
    FrexpExponent,
    /// Mantissa in [0.5, 1).
    FrexpMantissa,
    /// Face of a cube map.
    CubeId,
    /// Coordinate S on a cube map's face.
    CubeSc,
    /// Coordinate T on a cube map's face.
    CubeTc,
    /// Twice the major axis of a cube map's direction.
    CubeMa,
    /// Segment b of 2/pi, scaled for the argument a of a trigonometric function.
    TrigPreop,
    /// Next state of a pseudo-random generator.
    PseudoRandom,
    /// `a + 1`, zero once b is reached (memory: a is the old value).
    IncrementWrap,
    /// `a - 1`, b from zero or beyond b.
    DecrementWrap,
    /// `(a & !b) | c`
    MaskedOr,
    /// Compares with the first data (of two, in memory order: the new value first), stores the new one if
    /// equal.
    CompareSwap,
    /// Compares with the first operand of data, stores the second if equal (DS).
    CompareStore,
    /// `a - b` if a is at least b, else `a + c`.
    Wrap,
    /// FMA of the division sequence: scales the result where VCC is set.
    DivFmas,
    /// Last step of the division sequence.
    DivFixup,
}

/// Conditions of comparisons; the Not forms are true for unordered operands.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug)]
#[allow(missing_docs)] // The names say all.
pub enum Condition {
    False,
    Lt,
    Eq,
    Le,
    Gt,
    Ne,
    Ge,
    Ordered,
    Unordered,
    NotGe,
    NotNe,
    NotGt,
    NotLe,
    NotEq,
    NotLt,
    True,
}

/// When a branch is taken.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug)]
#[allow(missing_docs)] // The names say all.
pub enum BranchCondition {
    Always,
    Scc0,
    Scc1,
    VccZero,
    VccNotZero,
    ExecZero,
    ExecNotZero,
    DebugSystem,
    DebugUser,
    DebugEither,
    DebugBoth,
}

/// The data of a load or a store, per lane.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug)]
pub enum MemoryData {
    /// A byte, zero-extended to 32 bits.
    Byte,
    /// A byte, sign-extended to 32 bits.
    SignedByte,
    /// 16 bits, zero-extended to 32 bits.
    Short,
    /// 16 bits, sign-extended to 32 bits.
    SignedShort,
    /// A byte, zero-extended to 16 bits, in bits 15:0; what is left of the register is kept before CDNA2.
    ByteLow,
    /// A load: a byte, zero-extended to 16 bits, in bits 31:16; before CDNA2 the rest is kept. A store: bits
    /// 23:16.
    ByteHigh,
    /// A byte, sign-extended to 16 bits, in bits 15:0; what is left of the register is kept before CDNA2.
    SignedByteLow,
    /// A byte, sign-extended to 16 bits, in bits 31:16; what is left of the register is kept before CDNA2.
    SignedByteHigh,
    /// 16 bits in bits 15:0; what is left of the register is kept before CDNA2.
    ShortLow,
    /// 16 bits in (from) bits 31:16; what is left of the register is kept before CDNA2.
    ShortHigh,
    /// This many 32-bit registers.
    Dwords(u8),
}

impl MemoryData {
    /// True if a load writes half of a register.
    pub const fn is_half(self) -> bool {
        use MemoryData::*;
        matches!(self, ByteLow | ByteHigh | SignedByteLow | SignedByteHigh | ShortLow | ShortHigh)
    }

    /// Bytes in memory.
    pub const fn bytes(self) -> u32 {
        use MemoryData::*;
        match self {
            Byte | SignedByte | ByteLow | ByteHigh | SignedByteLow | SignedByteHigh => 1,
            Short | SignedShort | ShortLow | ShortHigh => 2,
            Dwords(n) => 4 * n as u32,
        }
    }
}

/// Half of a register.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug)]
pub enum Half {
    /// Bits 15:0 (lanes 31:0 of a mask).
    Low,
    /// Bits 31:16 (lanes 63:32 of a mask).
    High,
}

/// Direction of a lane permutation.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug)]
pub enum Permutation {
    /// Each lane says where its value goes.
    Forward,
    /// Each lane says where its value comes from.
    Backward,
}

/// Shape of a matrix multiplication.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug)]
pub struct Shape {
    /// Rows of A and D.
    pub m: u8,
    /// Columns of B and D.
    pub n: u8,
    /// Columns of A, rows of B.
    pub k: u8,
    /// Independent multiplications in one instruction.
    pub blocks: u8,
}

pub(super) const fn shape(m: u8, n: u8, k: u8, blocks: u8) -> Shape {
    Shape { m, n, k, blocks }
}

/// What an instruction does. Sources are called a, b, c in the order of the row.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug)]
pub enum Meaning {
    /// Scalar operation; SCC is written where the row says so: carry or overflow for sums and differences (of
    /// U32 and I32), "a was chosen" for minimum and maximum, "not zero" for the rest.
    Scalar(Calc, Element),
    /// Moves if SCC.
    ScalarMoveIf(Element),
    /// SCC ? a : b.
    ScalarSelect(Element),
    /// `(a << n) + b`, SCC is the carry.
    ScalarShiftAdd(u8),
    /// Packs a half of a (low) and a half of b (high).
    ScalarPack(Half, Half),
    /// SCC := a ? b.
    ScalarCompare(Condition, Element),
    /// SCC := bit b of a equals this.
    ScalarBitCompare(u8),
    /// Destination := EXEC; EXEC := a op EXEC; SCC := not zero.
    SaveExec(Calc),
    /// EXEC := a op EXEC; destination := EXEC; SCC := not zero.
    WriteExec(Calc),
    /// Destination's bit a := this.
    ScalarBitSet(u8, Element),
    /// Moves from the register M0 places after a.
    MoveFromRelative(Element),
    /// Moves to the register M0 places after the destination.
    MoveToRelative(Element),
    /// Relative addressing of VGPRs: sets the index in M0.
    SetGprIndex,
    /// Relative addressing of VGPRs: index and which operands; on.
    SetGprIndexOn,
    /// Relative addressing of VGPRs: which operands.
    SetGprIndexMode,
    /// Relative addressing of VGPRs: off.
    SetGprIndexOff,
    /// Skips vector instructions from now on, or no more.
    SetVskip,
    /// Splits a wave's lanes over two paths by the mask in a.
    Fork,
    /// The same with a relative target.
    ForkIf,
    /// Ends a path of a fork.
    JoinFork,
    /// Jumps and keeps the address of the next instruction.
    Call,
    /// Leaves a trap handler.
    ReturnFromException,
    /// Address of the next instruction.
    GetPc,
    /// Jump to a.
    SetPc,
    /// Both.
    SwapPc,
    /// Sign-extended simm16.
    MoveImmediate,
    /// The same if SCC.
    MoveImmediateIf,
    /// SCC := register ? extended simm16.
    CompareImmediate(Condition, Element),
    /// Register += sign-extended simm16, SCC is the overflow.
    AddImmediate,
    /// Register *= sign-extended simm16.
    MulImmediate,
    /// Reads bits of a hardware register.
    GetHardwareRegister,
    /// Writes bits of a hardware register.
    SetHardwareRegister,
    /// Loads dwords through the scalar cache.
    ScalarLoad(u8),
    /// The same through a buffer descriptor.
    ScalarBufferLoad(u8),
    /// Loads dwords of scratch through the scalar cache.
    ScalarScratchLoad(u8),
    /// Stores dwords through the scalar cache.
    ScalarStore(u8),
    /// The same to scratch.
    ScalarScratchStore(u8),
    /// The same through a buffer descriptor.
    ScalarBufferStore(u8),
    /// Atomic operation by the scalar unit; returns the former value if glc is set.
    ScalarAtomic(Calc, Element),
    /// The same through a buffer descriptor.
    ScalarBufferAtomic(Calc, Element),
    /// Translates an address without an access to it.
    ProbeAddress,
    /// Invalidates a range of the scalar cache.
    ScalarCacheDiscard(u8),
    /// Clock counter.
    ReadTime,
    /// Constant-rate counter.
    ReadRealTime,
    /// Invalidates the scalar cache.
    ScalarCacheInvalidate,
    /// Writes the scalar cache back.
    ScalarCacheWriteBack,
    /// Idles simm16 + 1 cycles.
    Nop,
    /// Ends the wave.
    EndProgram,
    /// Ends the wave, whose state has been saved or whose turn in an ordered pixel shader is over.
    EndProgramSaved,
    /// Jumps.
    Branch(BranchCondition),
    /// Waits for the workgroup.
    Barrier,
    /// Waits for counters.
    Wait,
    /// Sleeps about 64 * simm16 cycles.
    Sleep,
    /// Wakes the other waves of the workgroup up.
    Wakeup,
    /// Marks the wave as killed.
    SetKill,
    /// Counts events for performance counters.
    PerformanceCounters,
    /// Writes M0 to the trace.
    TraceData,
    /// Sets the priority of the wave.
    SetPriority,
    /// Sends a message.
    SendMessage,
    /// Enters the trap handler.
    Trap,
    /// Halts the wave.
    SetHalt,
    /// Invalidates the instruction cache.
    InvalidateCode,
    /// Interpolates an attribute of vertices.
    Interpolate,
    /// Hands registers on to a later stage of a graphics pipeline.
    Export,
    /// Which of four shader engines a place of the screen belongs to.
    ScreenPartition,
    /// A vector instruction that does nothing.
    VectorNop,
    /// Operation per lane.
    Vector(Calc, Element),
    /// Operation on both halves of each lane (16-bit types) or on two registers (32-bit types).
    Packed(Calc, Element),
    /// Moves two registers, each chosen by op_sel.
    PackedMove,
    /// Converts: to, from.
    Convert(Element, Element),
    /// Rounds F32 to I32 this way: Floor, or Ceil for half up.
    ConvertRound(Calc),
    /// Low four bits, signed, divided by 16, to F32.
    ConvertOffset,
    /// To a 16-bit fraction of one: to, from.
    ConvertNormalized(Element, Element),
    /// Two of them packed.
    PackConvertNormalized(Element, Element),
    /// F32 to a byte that takes the place number b in c (or in the destination).
    ConvertToByte,
    /// With random bits in b deciding the rounding: to, from.
    ConvertStochastic(Element, Element),
    /// Conversions with a common scale: to, from.
    ConvertScaled(Element, Element),
    /// Conversions with a common scale and random bits: to, from.
    ConvertScaledStochastic(Element, Element),
    /// Halves of I16 to bytes U8, saturating.
    SaturateBytes,
    /// Shifts a and b right by c and packs them as saturated bytes of this type.
    ShiftPackBytes(Element),
    /// Unsigned byte of this number to F32.
    ConvertByte(u8),
    /// Converts a and b and packs them: to, from. Floats round towards zero, integers saturate.
    PackConvert(Element, Element),
    /// Converts a and b, rounding to nearest even, and packs them: to, from.
    PackConvertNearest(Element, Element),
    /// Packs a (low) and b (high).
    Pack(Element),
    /// Lowest active lane of a to a scalar register.
    ReadFirstLane,
    /// Lane b of a to a scalar register.
    ReadLane,
    /// Lane b of the destination := a.
    WriteLane,
    /// Exchanges the two registers.
    Swap,
    /// Exchanges odd rows of the first register with even rows of the second, rows being so many lanes.
    SwapRows(u8),
    /// c's bit of the lane ? b : a.
    SelectLane,
    /// Add, Sub, SubRev of U32 with carry out.
    CarryOut(Calc),
    /// The same with carry in.
    CarryInOut(Calc),
    /// 64-bit `a * b + c` with carry out.
    MulAddWide(Element),
    /// `a * b + c` of 16-bit factors and 32-bit sum.
    MulAddMixed(Element),
    /// Mask of lanes := a ? b.
    Compare(Condition, Element),
    /// The same, and EXEC gets the mask too.
    CompareExec(Condition, Element),
    /// Mask of lanes := class of a is in the set b.
    CompareClass(Element),
    /// The same, and EXEC gets the mask too.
    CompareClassExec(Element),
    /// Scaling of the division sequence; the mask says which lanes DivFmas has to scale back.
    DivScale(Element),
    /// Number of ones in this half of mask a below the lane, plus b.
    MaskedBitCount(Half),
    /// FMA with sources of mixed width; result F32, or F16 in the low half.
    FmaMix(Element),
    /// The same, F16 result in the high half.
    FmaMixHigh,
    /// Dot product of the packed elements of a and b, plus c (or the destination).
    Dot(Element),
    /// Matrix multiplication: shape, types of A, B, and of C and D.
    Mfma(Shape, Element, Element, Element),
    /// Matrix multiplication with a two of four sparse A: shape, types of A, B, and of C and D.
    SparseMfma(Shape, Element, Element, Element),
    /// Matrix multiplication whose types of A and B are modifiers; D and C are F32.
    FormattedMfma(Shape),
    /// Loads.
    Load(MemoryData),
    /// Loads so many components in the buffer's format.
    LoadFormat(u8),
    /// The same as packed halves.
    LoadFormatHalf(u8),
    /// Loads one component in the buffer's format to the high half.
    LoadFormatHigh,
    /// Stores so many components in the buffer's format.
    StoreFormat(u8),
    /// The same from packed halves.
    StoreFormatHalf(u8),
    /// Stores the high half in the buffer's format.
    StoreFormatHigh,
    /// Loads a component in the buffer's format into LDS.
    LoadFormatToLds,
    /// Stores a dword of LDS at M0's base (MUBUF).
    StoreFromLdsToMemory,
    /// LDS: loads a transposed tile of elements of so many bits into so many registers.
    LoadTransposed(u8, u8),
    /// Loads into LDS at M0's base (MUBUF).
    LoadToLds(MemoryData),
    /// Stores.
    Store(MemoryData),
    /// LDS: loads two elements of this many dwords; offsets count elements times the second number.
    LoadTwo(u8, u8),
    /// LDS: stores two elements, in the same form.
    StoreTwo(u8, u8),
    /// LDS: exchanges two elements, in the same form.
    ExchangeTwo(u8, u8),
    /// LDS: operation on one place with the value of another.
    AtomicFromLds(Calc, Element),
    /// LDS: copies so many dwords from one place to another.
    StoreFromLds(u8),
    /// LDS: exchanges those of two dwords whose top bit is set.
    ConditionalExchange,
    /// LDS: loads at the lane's own place after the address in M0.
    LoadAtLane,
    /// LDS: stores at the lane's own place after the address in M0.
    StoreAtLane,
    /// LDS: adds or subtracts the number of active lanes, returning the former value.
    CountLanes(Calc),
    /// Synchronises waves of a whole dispatch.
    GlobalWaveSync,
    /// Waits for waves of a whole dispatch: one more than the data say.
    GlobalBarrier,
    /// LDS: nothing.
    LdsNop,
    /// Atomic operation without result.
    Atomic(Calc, Element),
    /// The same, returning the former value.
    AtomicReturn(Calc, Element),
    /// Loads texels of an image.
    ImageLoad,
    /// Loads texels as they lie in memory.
    ImageLoadPacked,
    /// Stores texels of an image.
    ImageStore,
    /// Stores texels as they will lie in memory.
    ImageStorePacked,
    /// Atomic operation on a texel; returns the former value if glc is set.
    ImageAtomic(Calc, Element),
    /// Loads texels through a sampler and filters them.
    ImageSample,
    /// Loads one component of the four texels that a sampler would filter.
    ImageGather,
    /// What a descriptor says of an image, or what a sampler would choose.
    ImageQuery,
    /// LDS hardware: swizzle of lanes by the offset field.
    LaneSwizzle,
    /// LDS hardware: permutation of lanes.
    LanePermute(Permutation),
    /// Writes the vector caches back.
    CacheWriteBack,
    /// Invalidates the vector caches.
    CacheInvalidate,
}

/// What an instruction does to memory or LDS.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug)]
pub enum Effect {
    /// Nothing: it computes, controls, or uses the hardware of LDS alone.
    None,
    /// Reads it.
    Load,
    /// Writes it.
    Store,
    /// Reads and writes one place: atomics and what works like them.
    Atomic,
    /// Reads memory, writes LDS.
    LoadToLds,
    /// Reads LDS, writes memory or another place of LDS.
    StoreFromLds,
}

impl Meaning {
    /// True if it reads or makes 8-bit floats, whose format is that of the chip.
    pub const fn is_about_float8(self) -> bool {
        use Element::{Bf8, Fp8};
        use Meaning::*;
        match self {
            Convert(one, other) | ConvertScaled(one, other) => {
                matches!((one, other), (Fp8 | Bf8, _) | (_, Fp8 | Bf8))
            }
            PackConvert(to, _) | ConvertStochastic(to, _) | ConvertScaledStochastic(to, _) => {
                matches!(to, Fp8 | Bf8)
            }
            Mfma(_, one, other, _) | SparseMfma(_, one, other, _) => {
                matches!((one, other), (Fp8 | Bf8, _) | (_, Fp8 | Bf8))
            }
            _ => false,
        }
    }

    /// What it does to memory or LDS.
    pub const fn effect(self) -> Effect {
        use Meaning::*;
        match self {
            Load(_) | LoadFormat(_) | LoadFormatHalf(_) | LoadFormatHigh => Effect::Load,
            LoadTwo(..) | LoadAtLane | LoadTransposed(..) => Effect::Load,
            ImageLoad | ImageLoadPacked | ImageSample | ImageGather => Effect::Load,
            ImageStore | ImageStorePacked => Effect::Store,
            ImageAtomic(..) => Effect::Atomic,
            ScalarLoad(_) | ScalarBufferLoad(_) | ScalarScratchLoad(_) => Effect::Load,
            Store(_) | StoreFormat(_) | StoreFormatHalf(_) | StoreFormatHigh => Effect::Store,
            StoreTwo(..) | StoreAtLane => Effect::Store,
            ScalarStore(_) | ScalarBufferStore(_) | ScalarScratchStore(_) => Effect::Store,
            Atomic(..) | AtomicReturn(..) | ScalarAtomic(..) | ScalarBufferAtomic(..) => Effect::Atomic,
            ExchangeTwo(..) | ConditionalExchange | CountLanes(_) | AtomicFromLds(..) => Effect::Atomic,
            LoadToLds(_) | LoadFormatToLds => Effect::LoadToLds,
            StoreFromLdsToMemory | StoreFromLds(_) => Effect::StoreFromLds,
            _ => Effect::None,
        }
    }
}
