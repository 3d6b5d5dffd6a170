//! How fast the chips are: one table, a column per device; older ones are in
//! [`older_devices`](super::older_devices). Every number has its confidence and its source.
//! Time mode and schedulers read the same rows, and a report of time mode lists the doubtful ones that it
//! rests on.
//!
//! Sources: SPEC: ROCm documentation, "Accelerator and GPU hardware specifications"; WP: AMD CDNA 2, 3 and 4
//! white papers; ISA: AMD's ISA guides; PROF: rocprofiler-compute documentation; SC25: raw measurements of
//! MI300X and MI325X published as hibagus/SC25_AMD_CDNA3_Artifact; PYHIP: test notes of tingqli/pyhip
//! (MI308X, MI350X); GB: te42kyfo/gpu-benches (MI210); MT4G: caps-tum/mt4g reports; ROCR: AMD rocRoller's LDS
//! bank model; ORI: AMD hipBLASLt and origami; SQTT: published thread traces of gfx950; FBT:
//! facebookexperimental/triton pull requests; LLVM: its scheduling model; GT: thread traces, counters and
//! cost models of AMD's ROCm/gfx950-gluon-tutorials (MI355X; MI300X where it says so); MAF: AMD's ROCm blogs
//! on maximum achievable FLOPS, with the median clocks of hipBLASLt; ISPASS: "On the Rise of AMD Matrix
//! Cores", ISPASS 2024. `assumed` marks unpublished numbers.

use std::fmt;

/// How far a number can be trusted.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub enum Confidence {
    /// Documented by AMD, or measured by two parties.
    High,
    /// One credible measurement, or a model of AMD's tools.
    Medium,
    /// Inferred, indirect, or one noisy figure.
    Low,
    /// Unknown: a guess that makes the model complete.
    Unknown,
}

impl Confidence {
    /// One character for tables: H, M, L, ?.
    pub(crate) const fn mark(self) -> char {
        match self {
            Confidence::High => 'H',
            Confidence::Medium => 'M',
            Confidence::Low => 'L',
            Confidence::Unknown => '?',
        }
    }
}

impl fmt::Display for Confidence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.mark())
    }
}

/// A number of one device.
#[derive(Copy, Clone, PartialEq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct ParameterValue {
    /// The number, in the unit that the parameter's text names.
    pub value: f64,
    /// How far it can be trusted.
    pub confidence: Confidence,
    /// Where it comes from.
    pub source: &'static str,
}

// In the letters of the table.
use Confidence::{High as H, Low as L, Medium as M, Unknown as U};

macro_rules! parameters {
    ($($name:ident $text:literal:
        $v1:literal $c1:ident $s1:literal, $v2:literal $c2:ident $s2:literal, $v3:literal $c3:ident $s3:literal;)*) => {
        /// A property of a device.
        #[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        #[cfg_attr(feature = "serde", derive(serde::Serialize))]
        pub enum DeviceParameter { $(#[doc = $text] $name,)* }

        impl DeviceParameter {
            /// Every parameter.
            pub const ALL: [DeviceParameter; PARAMETERS] = [$(DeviceParameter::$name),*];

            /// Its description, with its unit.
            pub const fn text(self) -> &'static str {
                match self { $(DeviceParameter::$name => $text,)* }
            }
        }

        /// Number of parameters.
        pub(crate) const PARAMETERS: usize = [$($text),*].len();
        pub(super) const MI210: [ParameterValue; PARAMETERS] = [$(ParameterValue { value: $v1, confidence: $c1, source: $s1 },)*];
        pub(super) const MI300X: [ParameterValue; PARAMETERS] = [$(ParameterValue { value: $v2, confidence: $c2, source: $s2 },)*];
        pub(super) const MI355X: [ParameterValue; PARAMETERS] = [$(ParameterValue { value: $v3, confidence: $c3, source: $s3 },)*];
    };
}

parameters! {
    // name, text:                                                  MI210,             MI300X,
    // MI355X
    ComputeUnits "compute units":                                   104.0 H "SPEC",    304.0 H "SPEC",    256.0 H "SPEC";
    Dies "dies with an L2 cache each":                              1.0 H "SPEC",      8.0 H "SPEC",      8.0 H "SPEC";
    EnginesPerDie "shader engines of a die":                        8.0 M "WP",        4.0 M "PYHIP",     4.0 M "PYHIP";
    Clock "greatest clock, MHz":                                    1700.0 H "SPEC",   2100.0 H "SPEC",   2400.0 H "SPEC";
    SustainedClock "clock that is held while matrix cores are busy, MHz":
                                                                    1550.0 L "ISPASS: MI250X keeps 350 of 383 TFLOP/s", 1350.0 M "MAF: 1115 to 1230; GT: 1240 to 1550, both at 750 W", 1500.0 M "GT: 1300 to 1750 at 1320 to 1400 W";
    Turn "clk between two issue turns of a SIMD":                   4.0 H "PROF",      4.0 H "PROF",      4.0 H "PROF";
    SecondValu "second VALU instruction of another wave per turn, if both read VGPRs only (1: yes)":
                                                                    0.0 U "assumed",   1.0 M "SC25",      1.0 L "as gfx942";
    Valu "clk of a vector instruction":                             4.0 H "LLVM",      4.0 H "SC25",      4.0 H "SQTT";
    Trans "clk of a transcendental instruction":                    16.0 H "LLVM",     16.0 H "PYHIP",    8.0 M "WP: rate doubled";
    TransDouble "clk of a 64-bit reciprocal or root":               16.0 L "LLVM",     16.0 L "LLVM",     16.0 L "LLVM";
    Conversion "clk of a conversion between number formats":        4.0 L "as gfx950", 4.0 L "as gfx950", 4.0 M "GT: as plain ones";
    WideMultiply "clk of a 32-bit integer multiplication":          4.0 L "LLVM",      4.0 L "LLVM",      4.0 L "LLVM";
    MisalignedRun "issues of misaligned 8-byte instructions for one lost turn":
                                                                    4.0 L "as gfx942", 4.0 H "PYHIP",     4.0 L "as gfx942";
    ColdLine "clk until a line of code comes that is not in the instruction cache":
                                                                    40.0 L "SQTT",     40.0 L "SQTT",     40.0 L "SQTT";
    ColdStart "clk from the start of a wave to its first instruction, cold instruction cache":
                                                                    578.0 L "SQTT",    578.0 L "SQTT",    578.0 L "SQTT";
    WarmStart "clk from the start of a wave to its first instruction, warm instruction cache":
                                                                    64.0 U "assumed",  64.0 U "assumed",  64.0 U "assumed";
    CodeBytes "bytes of the instruction cache":                     32768.0 H "WP",    65536.0 H "WP",    65536.0 H "WP";
    CodeWays "ways of the instruction cache":                       8.0 L "as gfx942", 8.0 H "WP",        8.0 L "as gfx942";
    TakenBranch "clk from a taken branch to the next instruction":  24.0 L "ORI",      24.0 L "ORI",      24.0 L "ORI";
    BarrierRelease "clk from the last wave at a barrier to the next instruction":
                                                                    8.0 U "ORI",       8.0 U "ORI",       8.0 U "ORI";
    MatrixWindowLoss "clk of a matrix instruction that vector instructions cannot share":
                                                                    4.0 M "AMD matrix calculator", 4.0 M "AMD matrix calculator", 8.0 M "ROCR";
    SparseWindowLoss "the same of a sparse matrix instruction":     8.0 L "as gfx942", 8.0 M "AMD matrix calculator", 8.0 L "as gfx942";
    WideWindowLoss "the same of an f8f6f4 instruction with 8-bit formats":
                                                                    8.0 U "not there", 8.0 U "not there", 12.0 M "ROCR";
    MatrixMemoryLoss "clk of a matrix instruction beside which no memory instruction starts on its SIMD":
                                                                    0.0 U "assumed",   0.0 U "assumed",   8.0 M "GT: two beside 16 clk";
    ScaledMemoryLoss "the same of a scaled one, and of vector instructions":
                                                                    0.0 U "not there", 0.0 U "not there", 12.0 M "GT: one beside 16 clk";
    OneMemoryPort "LDS and vector memory instructions of a SIMD issue one per turn together (1: yes)":
                                                                    0.0 U "assumed",   0.0 M "PROF: own classes", 1.0 M "GT";
    PackedAfterMatrix "clk from a matrix instruction's end to an instruction of the same wave that cannot overlap it":
                                                                    8.0 L "as gfx942", 8.0 M "PYHIP",     12.0 M "GT";
    MatrixResult "turns after the passes until a result may be read": 3.0 H "LLVM",   3.0 H "LLVM",      4.0 H "LLVM";
    MatrixResultOnValu "the same of instructions that run on the vector ALU (f32, f64)":
                                                                    3.0 M "LLVM",      2.0 H "LLVM",      3.0 M "LLVM";
    ScalarHit "clk of a pointer chase in the scalar cache":         53.0 M "MT4G",     48.0 M "MT4G",     50.0 U "assumed";
    ScalarMiss "clk of a scalar load that hits L2":                 100.0 L "quoted",  100.0 L "quoted",  100.0 L "quoted";
    ScalarBytes "bytes of the scalar cache":                        16384.0 H "WP",    16384.0 H "WP",    16384.0 H "WP";
    LdsPortRead "bytes per clk of a pair of SIMDs reading LDS":     64.0 H "PROF",     64.0 H "PYHIP",    128.0 M "ROCR";
    LdsPortWrite "bytes per clk of a pair of SIMDs writing LDS":    64.0 H "PROF",     64.0 H "PROF",     64.0 M "ROCR";
    LdsBanks "banks of LDS":                                        32.0 H "ISA",      32.0 H "ISA",      64.0 H "ISA";
    LdsInterval "clk between two LDS instructions of a compute unit": 3.2 L "as gfx942", 3.2 M "PYHIP",   1.0 M "GT";
    LdsPairInterval "clk between two LDS instructions that a pair of SIMDs issues":
                                                                    4.0 L "as gfx950", 4.0 L "as gfx950", 4.0 M "GT: slots in phase collide";
    LdsWriteIssue "clk that an LDS write holds its wave before its data, which takes 4 per dword":
                                                                    4.0 M "ROCR",      4.0 H "ROCR, GT: at least 20 for b128", 4.0 M "ROCR";
    LdsQueue "LDS instructions that a pair of SIMDs queues":        8.0 L "as gfx950", 8.0 L "as gfx950", 8.0 M "GT; ORI: 16 of the unit";
    LdsQueueHold "clk for which a read of 16 bytes per lane has its place in the queue":
                                                                    60.0 L "as gfx950", 60.0 L "as gfx950", 60.0 M "GT: 50 to 70";
    LdsLatency "clk of a pointer chase in LDS, b32":                50.0 H "GB",       52.0 H "MT4G",     56.0 L "ORI: 40; FBT: 69";
    LdsLatencyWide "clk of a pointer chase in LDS, b128":           62.0 L "as gfx942", 64.0 H "PYHIP",   64.0 M "GT: 50 to 70; ORI: 56";
    LdsLatencyQueued "clk from an LDS instruction to its data after the queue that a whole cluster of them makes":
                                                                    100.0 U "assumed", 100.0 U "assumed", 100.0 U "assumed";
    LdsWriteLatency "clk from a write to LDS until others see it":  40.0 L "as gfx942", 40.0 M "ORI",     40.0 M "ORI";
    LdsAtomicFactor "times that an LDS atomic takes as long as a read": 2.0 U "assumed", 2.0 U "assumed", 2.0 U "assumed";
    VectorInterval "clk between two vector memory instructions of a compute unit":
                                                                    4.0 M "SQTT",      4.0 M "SQTT",      4.0 M "SQTT";
    VectorQueue "vector memory instructions that a compute unit queues": 12.0 L "as gfx950; ORI: 16", 12.0 L "as gfx950; ORI: 16", 12.0 M "GT";
    VectorFlight "bytes of lines that the vector cache can have on their way":
                                                                    16384.0 L "its size", 32768.0 L "as gfx950", 32768.0 M "GT";
    VectorBytes "bytes per clk between L1 and the registers":       64.0 H "GB",       64.0 H "SC25",     64.0 U "as gfx942";
    VectorBytesPair "the same for loads of two dwords":             32.0 M "GB",       32.0 L "as gfx950", 32.0 M "GT: 16 clk";
    VectorLine "clk of the vector cache for each line that a load touches":
                                                                    1.0 M "GB",        2.0 H "GT: rows of 64 bytes cost twice", 2.0 L "as gfx942";
    Gather "clk per line and bank of scattered lanes":              1.0 M "GB",        1.0 L "as gfx90a", 1.0 L "as gfx90a";
    DirectLds "clk of a load from memory to LDS":                   11.0 L "as gfx942", 11.0 M "PYHIP",   11.0 L "as gfx942";
    L1Bytes "bytes of the vector cache":                            16384.0 H "WP",    32768.0 H "WP",    32768.0 H "WP";
    L1Line "bytes of its lines":                                    64.0 H "WP",       128.0 H "WP",      128.0 H "WP";
    L1Sets "sets of the vector cache":                              4.0 L "as gfx942", 4.0 M "PYHIP",     4.0 M "WP";
    L1Latency "clk of a pointer chase in the vector cache":         125.0 H "GB",      116.0 H "SC25",    116.0 U "as gfx942";
    L2Bytes "bytes of the L2 cache of a die":                       8388608.0 H "WP",  4194304.0 H "WP",  4194304.0 H "WP";
    L2Latency "clk of a pointer chase in L2":                       240.0 H "GB",      208.0 H "SC25",    210.0 U "as gfx942";
    L2Rate "bytes per clk and compute unit read from L2, all busy": 29.0 H "GB",       30.0 H "SC25",     45.0 H "GT: eight tile shapes";
    L2RateShared "the same where all read the same lines":        29.0 L "as distinct ones", 44.0 H "SC25: 28 TB/s of one buffer", 45.0 H "GT: tiles share";
    L2RateAlone "the same, one compute unit busy":                  64.0 L "L1 fill",  64.0 L "L1 fill",  64.0 L "L1 fill";
    L2WriteRate "bytes per clk and compute unit written to L2, all busy":
                                                                    11.0 U "assumed",  15.6 M "ORI",      24.0 M "ORI";
    MallBytes "bytes of the Infinity Cache":                        0.0 H "WP",        268435456.0 H "WP", 268435456.0 H "WP";
    MallReach "bytes of a launch that the Infinity Cache keeps whole from one launch to the next":
                                                                    0.0 H "not there", 157286400.0 M "SC25: latency climbs from here", 268435456.0 M "GT: K = 16384 runs from it";
    MallEnd "bytes of a launch of which it keeps nothing":         0.0 H "not there", 268435456.0 L "its size", 536870912.0 M "GT: K = 32768 does not";
    MallLatency "clk of a load from the Infinity Cache, at the greatest clock":
                                                                    0.0 H "not there", 447.0 M "SC25",    1042.0 M "GT: 730 at the 1500 MHz of GEMMs, 32 KB at 45 bytes per clk";
    MallRate "bytes per clk and compute unit from the Infinity Cache, all busy":
                                                                    1.0 H "not there", 9.0 M "SC25",      11.0 L "SC25: 6.8 TB/s at best";
    MemoryLatency "clk of a load from HBM, at the greatest clock":     600.0 H "GB",      865.0 H "SC25",    1400.0 M "GT: some 600 ns, 32 KB under way at 54 GB/s";
    MemoryLatencyLoaded "the same while all compute units load":   600.0 L "as alone", 865.0 M "PYHIP: 500 to 800", 1400.0 M "GT: as alone";
    MemoryRate "bytes per clk and compute unit read from HBM, all busy": 7.7 H "GB",   6.5 H "SC25",      10.5 U "0.8 of the peak";
    MemoryWriteRate "the same written, mixed with reads":           6.4 M "GB, triad", 6.4 M "SC25, copy and triad", 10.0 U "assumed";
    TranslationPages "pages of 2 MB whose translation a compute unit keeps":
                                                                    12.0 L "as gfx950", 12.0 L "GT: 11 pages of a tile run at full speed", 12.0 L "GT: 8 pages of a tile run at full speed, 16 do not";
    TranslationLatency "clk until the translation of another page is there, at the greatest clock":
                                                                    95.0 L "GB: 665 instead of 570 beyond its reach", 510.0 L "as gfx950, in time", 580.0 L "GT: K = 32768, 1650 ns for 64 KB";
    LoadedLatency "clk of a wide load while all compute units load, between L2 and memory":
                                                                    500.0 L "as gfx942", 500.0 M "PYHIP, 500 to 800", 1000.0 M "GT";
    AtomicLatency "clk of an atomic in L2":                         382.0 L "as gfx942", 382.0 L "ORI",   382.0 L "as gfx942";
    LaunchInterval "clk between two workgroups that a shader engine starts": 16.0 M "SQTT", 16.0 M "SQTT", 16.0 M "SQTT";
    WaveInterval "clk between two waves of a workgroup that start": 4.0 U "assumed",   4.0 U "assumed",   4.0 U "assumed";
    Turnaround "clk from the end of a workgroup to the start of the next in its place":
                                                                    64.0 U "assumed",  64.0 U "assumed",  64.0 U "assumed";
    LaunchOverhead "us of a kernel launch beside its waves":        2.1 M "GB",        2.6 M "ORI",       2.6 M "ORI";
}
