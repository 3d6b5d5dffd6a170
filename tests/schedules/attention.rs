//! Attention and other chains of products, as kernels for schedules.

use groundswell::prelude::*;
use groundswell::simulator::time::{DeviceModel, TimeOptions};
use groundswell_testing::timed::launched;

/// The body of attention's loop, after which the accumulator is what `PRODUCT` says.
const SOFTMAX: &str = "
    %k = read k
    %s0 = register [H, N, M] f32 0.0
    %s = mma %k, %q, %s0
    SCALE
    %mx = reduce_max %ss over N
    MAXIMUM
    %d = sub %ss, %mn
    %p = exp2 %d
    %dm = sub %mi, %mn
    %alpha = exp2 %dm
    %ls = mul %li, %alpha
    %ps = reduce_sum %p over N
    %ln = add %ls, %ps
    %os = mul %oi, %alpha
    %ph = cast %p f16
    %v = read v
    %on = PRODUCT
    yield %mn, %ln, %on";

/// How the running maximum follows that of a tile.
#[derive(Copy, Clone, Debug)]
pub enum Maximum {
    Exact,
    /// Only where it is above it by more than 8.
    Late,
}

/// The second product of attention: its result lies as its factors do, or turned.
#[derive(Copy, Clone, Debug)]
pub enum Second {
    AsWritten,
    Turned,
}

#[derive(Copy, Clone, Debug)]
pub enum Mask {
    None,
    Causal,
}

#[derive(Copy, Clone, Debug)]
pub struct Attention {
    pub second: Second,
    pub mask: Mask,
    pub maximum: Maximum,
    pub matrix: &'static str,
}

impl Attention {
    /// Eight waves with 32 rows each.
    pub fn text(&self) -> String {
        let (product, result) = match self.second {
            Second::AsWritten => ("mma %ph, %v, %os", "H, M, D"),
            Second::Turned => ("mma %v, %ph, %os", "H, D, M"),
        };
        let (scale, iterations) = match self.mask {
            Mask::None => ("%ss = mul %s, scale", ""),
            Mask::Causal => (
                "%scaled = mul %s, scale
                %place = self_index N
                %places = broadcast %place [N, M]
                %row = self_index M
                %in = compare le %places, %row
                %low = constant -inf
                %ss = select %in, %scaled, %low",
                "iterations N, 0, (workgroup_0 + 1) * 4",
            ),
        };
        let maximum = match self.maximum {
            Maximum::Exact => "%mn = max %mi, %mx",
            Maximum::Late => {
                "%most = add %mi, 8.0
                %rises = compare gt %mx, %most
                %mn = select %rises, %mx, %mi"
            }
        };
        let body = SOFTMAX.replace("PRODUCT", product).replace("SCALE", scale).replace("MAXIMUM", maximum);
        format!(
            "kernel attention {{
              workgroup H, 1, 1
              workgroup M, 256, 0
              tile N, 64
              wave M, 32
              {iterations}
              mma {matrix}
              q = memory [H, M, D] global f16
              k = memory [H, N, D] shared f16
              v = memory [H, N, D] shared f16
              o = memory [H, M, D] global f32
              scale = scalar f32
              %q = read q
              %m0 = register [H, M] f32 -inf
              %l0 = register [H, M] f32 0.0
              %o0 = register [{result}] f32 0.0
              %m, %l, %acc = iterate N (%mi = %m0, %li = %l0, %oi = %o0) {{
                {body}
              }}
              %r = div %acc, %l
              write %r, o
            }}",
            matrix = self.matrix,
        )
    }

    pub fn kernel(&self) -> Kernel {
        parsed(&self.text())
    }
}

pub fn parsed(text: &str) -> Kernel {
    Kernel::parse(text, "two_phase.gsw").unwrap_or_else(|faults| panic!("{faults:?}\n{text}"))
}

/// The sizes of a launch.
#[derive(Copy, Clone, Debug)]
pub struct Sizes {
    pub h: i64,
    pub m: i64,
    pub n: i64,
    pub d: i64,
}

impl Sizes {
    pub fn value(&self, symbol: Symbol) -> Option<i64> {
        match symbol.name() {
            "H" => Some(self.h),
            "M" => Some(self.m),
            "N" => Some(self.n),
            "D" => Some(self.d),
            _ => None,
        }
    }

    pub fn options(&self, target: Target, schedule: Schedule) -> Options {
        let sizes = [("H", self.h), ("M", self.m), ("N", self.n), ("D", self.d)];
        sizes
            .into_iter()
            .fold(Options::new(target).schedule(schedule).fast_math(), |options, (name, value)| {
                options.set(Symbol::new(name), value)
            })
    }
}

pub const CHIPS: [Target; 3] = [Target::GFX90A, Target::GFX942, Target::GFX950];

/// Three products in a chain, the scores of two of which meet; a product between two reductions, one of its
/// own factor; and scores to which a row is added that comes through LDS.
pub const CHAINS: [(&str, &str); 3] = [
    (
        "three products",
        "%t0 = register [H, N, M] f32 0.0
        %k = read k
        %s = mma %k, %q, %t0
        %u = read u
        %t = mma %u, %q, %t0
        %st = mul %s, %t
        %cs = mul %st, scale
        %ph = cast %cs f16
        %v = read v
        %on = mma %v, %ph, %oi
        yield %on",
    ),
    (
        "between reductions",
        "%k = read k
        %kf = cast %k f32
        %top = reduce_max %kf over D
        %t0 = register [H, N, M] f32 0.0
        %s = mma %k, %q, %t0
        %d = sub %s, %top
        %sum = reduce_sum %d over N
        %scaled = mul %sum, scale
        %v = read v
        %ph = cast %d f16
        %ov = mma %v, %ph, %oi
        %on = add %ov, %scaled
        yield %on",
    ),
    (
        "a row through LDS",
        "%k = read k
        %t0 = register [H, N, M] f32 0.0
        %s = mma %k, %q, %t0
        %b = read b
        %sb = add %s, %b
        %sc = mul %sb, scale
        %ph = cast %sc f16
        %v = read v
        %on = mma %v, %ph, %oi
        yield %on",
    ),
];

pub fn chain(body: &str) -> String {
    let more = [("read b", "b = memory [N] shared f32"), ("read u", "u = memory [H, N, D] shared f16")];
    let more = more.iter().find(|(read, _)| body.contains(read)).map_or("", |(_, memory)| memory);
    format!(
        "kernel chain {{
          workgroup H, 1, 1
          workgroup M, 128, 0
          tile N, 64
          wave M, 16
          mma 16x16
          q = memory [H, M, D] global f16
          k = memory [H, N, D] shared f16
          v = memory [H, N, D] shared f16
          {more}
          o = memory [H, M, D] global f32
          scale = scalar f32
          %q = read q
          %o0 = register [H, D, M] f32 0.0
          %acc = iterate N (%oi = %o0) {{
            {body}
          }}
          write %acc, o
        }}"
    )
}

/// Clk of an iteration: what a workgroup takes more for 24 more iterations, a multiple of what an unrolled
/// trip has.
pub fn trip(device: &'static DeviceModel, attention: Attention, depth: i64, schedule: Schedule) -> f64 {
    let clk = |n: i64| {
        let sizes = Sizes { h: 16, m: 4096, n, d: depth };
        let kernel = attention.kernel().compile(&sizes.options(device.target, schedule.clone()));
        let executable = kernel.expect("attention compiles");
        let bytes = [sizes.m * 2, n * 2, n * 2, sizes.m * 4].map(|row| row * sizes.h * depth);
        let timed = launched(&executable, device, [16, 16, 1], (&bytes, &1f32.to_le_bytes()));
        timed.run(&TimeOptions::new(device).rounds(1)).expect("attention runs").unit.clk as f64
    };
    (clk(2560) - clk(1024)) / 24.0
}
