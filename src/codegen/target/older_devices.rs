//! The columns of devices before CDNA 2, of which less has been published: each has the numbers that are
//! known of it, and takes the others from the next younger device with low confidence.
//!
//! Sources are those of [`parameters`](super::parameters). MT4G's latencies of L2 and memory are above those
//! of GB by a quarter for MI210, which both measured: those that MT4G alone has are taken down by that.

use super::parameters::{
    Confidence::{self, High as H, Low as L, Medium as M, Unknown as U},
    DeviceParameter::{self, *},
    MI210, PARAMETERS, ParameterValue,
};

/// A number that is known of a device.
type KnownNumber = (DeviceParameter, f64, Confidence, &'static str);

/// A column in which what is not known is as of a younger device.
const fn after(younger: [ParameterValue; PARAMETERS], own: &[KnownNumber]) -> [ParameterValue; PARAMETERS] {
    let mut column = younger;
    let mut at = 0;
    while at < PARAMETERS {
        if !matches!(column[at].confidence, U) {
            column[at].confidence = L;
            column[at].source = "as the next younger device";
        }
        at += 1;
    }
    with(with(column, ALIKE), own)
}

/// A column with other numbers for what is known.
const fn with(
    mut column: [ParameterValue; PARAMETERS],
    known: &[KnownNumber],
) -> [ParameterValue; PARAMETERS] {
    let mut at = 0;
    while at < known.len() {
        let (parameter, value, confidence, source) = known[at];
        column[parameter as usize] = ParameterValue { value, confidence, source };
        at += 1;
    }
    column
}

/// Numbers that all of these devices have.
const ALIKE: &[KnownNumber] = &[
    (Dies, 1.0, H, "SPEC"),
    (Turn, 4.0, H, "PROF"),
    (Valu, 4.0, H, "LLVM"),
    (Trans, 16.0, H, "LLVM"),
    (WideMultiply, 16.0, L, "LLVM: a quarter of the rate before gfx90a"),
    (CodeBytes, 32768.0, H, "SPEC"),
    (ScalarBytes, 16384.0, H, "SPEC"),
    (LdsPortRead, 64.0, H, "PROF"),
    (LdsPortWrite, 64.0, H, "PROF"),
    (LdsBanks, 32.0, H, "ISA"),
    (L1Bytes, 16384.0, H, "SPEC"),
    (L1Line, 64.0, H, "ISA; MT4G"),
    (MallBytes, 0.0, H, "SPEC"),
];

/// Instinct MI100, CDNA 1.
pub(super) const MI100: [ParameterValue; PARAMETERS] = after(
    MI210,
    &[
        (ComputeUnits, 120.0, H, "SPEC"),
        (EnginesPerDie, 8.0, M, "WP"),
        (Clock, 1502.0, H, "SPEC"),
        (SustainedClock, 1370.0, L, "the share that MI210 keeps"),
        (MatrixWindowLoss, 8.0, M, "AMD matrix calculator"),
        (ScalarHit, 50.0, M, "MT4G"),
        (LdsLatency, 50.0, M, "MT4G"),
        (L1Latency, 136.0, M, "MT4G"),
        (L2Bytes, 8388608.0, H, "SPEC"),
        (L2Latency, 273.0, L, "MT4G: 344, less what it has too much of MI210"),
        (L2Rate, 15.1, H, "GB: 2.72 TB/s"),
        (L2RateShared, 15.1, L, "as distinct ones; GB: 2.4 TB/s of one buffer"),
        (L2WriteRate, 13.2, L, "MT4G"),
        (MemoryLatency, 569.0, L, "MT4G: 703, less what it has too much of MI210"),
        (MemoryLatencyLoaded, 569.0, L, "as alone"),
        (MemoryRate, 6.5, H, "GB: 1.18 TB/s"),
        (MemoryWriteRate, 5.6, M, "GB, triad: 1.01 TB/s"),
    ],
);

/// Instinct MI50, Vega 20: it has no matrix cores.
pub(super) const MI50: [ParameterValue; PARAMETERS] = after(
    MI100,
    &[
        (ComputeUnits, 60.0, H, "SPEC"),
        (EnginesPerDie, 4.0, M, "WP: GCN has up to four"),
        (Clock, 1725.0, H, "SPEC"),
        (SustainedClock, 1573.0, L, "the share that MI210 keeps"),
        (L2Bytes, 4194304.0, H, "SPEC"),
        (L2Rate, 15.0, L, "16 slices of 64 bytes, at the share of MI100"),
        (L2RateShared, 15.0, L, "as distinct ones"),
        // In clk of another clock than that of MI100.
        (MemoryLatency, 653.0, L, "as MI100, in time"),
        (MemoryLatencyLoaded, 653.0, L, "as alone"),
        // 1,024 GB/s at the share of the peak that MI100 reaches, in bytes per clk and compute unit.
        (MemoryRate, 9.5, L, "SPEC, at the share of MI100"),
        (MemoryWriteRate, 8.1, L, "SPEC, at the share of MI100"),
    ],
);
