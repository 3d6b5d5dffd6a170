//! Time mode against the main loops of measured GEMM kernels, rebuilt from their descriptions: the same
//! numbers of instructions in the same order, with loads from real matrices. They are judged at the clock
//! that the chip sustains with busy matrix cores, as the measured ones ran; docs/time-model.md has the rows,
//! with the greatest clock beside it, and these tests hold that it does.
//!
//! GT: ROCm/gfx950-gluon-tutorials (AMD), gemm.

use groundswell::simulator::time::{ClockChoice, DeviceModel, DeviceParameter};
use groundswell_testing::figures::{self, Row};
use groundswell_testing::timed::Loop;

/// A loop's body under construction: matrix instructions, with other instructions between them.
struct Body {
    text: String,
    instruction: &'static str,
    issued: usize,
}

impl Body {
    /// `instruction` with a place for the accumulator.
    fn new(instruction: &'static str) -> Body {
        Body { text: String::new(), instruction, issued: 0 }
    }

    fn line(&mut self, text: &str) {
        self.text.push_str("    ");
        self.text.push_str(text);
        self.text.push('\n');
    }

    /// Matrix instructions, each with the next accumulator of 128 registers.
    fn matrix(&mut self, count: usize) {
        let width = if self.instruction.contains("32x32") { 16 } else { 4 };
        for _ in 0..count {
            let first = self.issued * width % 128;
            let accumulator = format!("a[{first}:{}]", first + width - 1);
            self.issued += 1;
            let text = self.instruction.replace('D', &accumulator);
            self.line(&text);
        }
    }

    /// `each` matrix instructions after each of these.
    fn spread<S: AsRef<str>>(&mut self, each: usize, others: impl IntoIterator<Item = S>) {
        for other in others {
            self.line(other.as_ref());
            self.matrix(each);
        }
    }
}

const HALF_RATE: &str = "v_mfma_f32_16x16x16_f16 D, v[120:121], v[124:125], D";
const SCALED: &str = "v_mfma_scale_f32_16x16x128_f8f6f4 D, v[120:123], v[124:127], D, v118, v119 \
     op_sel:[0,0,0] op_sel_hi:[0,0,0] cbsz:4 blgp:4";
/// With 4-bit factors 32x32x64 takes twice as long.
const SCALED_WIDE: &str = "v_mfma_scale_f32_32x32x64_f8f6f4 D, v[120:123], v[124:127], D, v118, v119 \
     op_sel:[0,0,0] op_sel_hi:[0,0,0] cbsz:4 blgp:4";
/// Factors of eight bits, without scales.
const BYTES: &str = "v_mfma_f32_16x16x128_f8f6f4 D, v[104:111], v[112:119], D cbsz:1 blgp:1";
const FULL_RATE: &str = "v_mfma_f32_16x16x32_f16 D, v[120:123], v[124:127], D";

fn reads(from: usize, count: usize) -> Vec<String> {
    (from..from + count)
        .map(|n| {
            format!("ds_read_b128 v[{0}:{1}], v1 offset:{2}", 64 + n % 8 * 4, 67 + n % 8 * 4, n % 32 * 1024)
        })
        .collect()
}

fn writes(from: usize, count: usize) -> Vec<String> {
    (from..from + count)
        .map(|n| format!("ds_write_b128 v1, v[{0}:{1}] offset:{2}", 4 + n % 8 * 4, 7 + n % 8 * 4, n * 2048))
        .collect()
}

/// Loads to registers; those from `b` on are of the right matrix.
fn loads(from: usize, count: usize, b: usize) -> Vec<String> {
    let base = |n| if n < b { "s[12:13]" } else { "s[14:15]" };
    (from..from + count)
        .map(|n| {
            format!(
                "global_load_dwordx4 v[{0}:{1}], v{2}, {3}",
                4 + n % 8 * 4,
                7 + n % 8 * 4,
                40 + n,
                base(n)
            )
        })
        .collect()
}

/// The same straight to LDS.
fn direct(from: usize, count: usize, b: usize) -> Vec<String> {
    let base = |n| if n < b { "s[12:13]" } else { "s[14:15]" };
    (from..from + count).map(|n| format!("global_load_lds_dwordx4 v{}, {}", 40 + n, base(n))).collect()
}

const NEXT_COLUMNS: [&str; 4] = [
    "s_add_u32 s12, s12, 128",
    "s_addc_u32 s13, s13, 0",
    "s_add_u32 s14, s14, 128",
    "s_addc_u32 s15, s15, 0",
];

/// A GEMM of 16 x `columns` workgroups whose waves load tiles of `m` and `n` rows, 128 bytes of each per
/// step.
struct Tiles {
    waves: u32,
    m: u32,
    n: u32,
    k: u32,
    columns: u32,
}

impl Tiles {
    fn pitch(&self) -> u32 {
        2 * self.k
    }

    /// Loads of one wave and step, of which so many are of the left matrix.
    fn loads(&self) -> (usize, usize) {
        (((self.m + self.n) / 8 / self.waves) as usize, (self.m / 8 / self.waves) as usize)
    }

    fn bytes(&self) -> u64 {
        u64::from(self.pitch()) * u64::from(16 * self.m + self.columns * self.n)
    }

    /// Results of 16 bits, which the loop leaves to what comes after it.
    fn results(&self) -> u64 {
        2 * u64::from(16 * self.m) * u64::from(self.columns * self.n)
    }

    /// Workgroups of a die are neighbours: four rows of eight columns, or of as many as there are.
    fn prologue(&self) -> String {
        let (pitch, all, left) = (self.pitch(), self.loads().0, self.loads().1);
        let half = self.columns / 2;
        let mut text = format!(
            "s_and_b32 s6, s2, 7
    s_lshr_b32 s7, s2, 3
    s_lshr_b32 s8, s6, 1
    s_lshl_b32 s8, s8, 2
    s_and_b32 s9, s7, 3
    s_add_u32 s8, s8, s9
    s_and_b32 s9, s6, 1
    s_mul_i32 s9, s9, {half}
    s_lshr_b32 s7, s7, 2
    s_add_u32 s9, s9, s7
    s_mul_hi_u32 s17, s8, {left_bytes}
    s_mul_i32 s16, s8, {left_bytes}
    s_add_u32 s12, s4, s16
    s_addc_u32 s13, s5, s17
    s_mul_hi_u32 s17, s9, {right_bytes}
    s_mul_i32 s16, s9, {right_bytes}
    s_add_u32 s14, s4, s16
    s_addc_u32 s15, s5, s17
    s_add_u32 s14, s14, {low}
    s_addc_u32 s15, s15, {high}
    v_and_b32 v1, 63, v0
    v_lshlrev_b32 v1, 4, v1
    v_lshrrev_b32 v2, 3, v0
    v_mul_u32_u24 v2, {pitch}, v2
    v_and_b32 v3, 7, v0
    v_lshlrev_b32 v3, 4, v3
    v_add_u32 v40, v2, v3\n",
            left_bytes = self.m * pitch,
            right_bytes = self.n * pitch,
            low = (u64::from(16 * self.m) * u64::from(pitch)) as u32,
            high = (u64::from(16 * self.m) * u64::from(pitch)) >> 32,
        );
        for load in 1..all {
            let from = if load == left { 40 } else { 40 + load - 1 };
            let step = if load == left { 0 } else { 8 * self.waves * pitch };
            text += &format!("    v_add_u32 v{}, {step}, v{from}\n", 40 + load);
        }
        text
    }

    /// Clk of a step in the steady state.
    fn clk(&self, device: &'static DeviceModel, clock: ClockChoice, extra: &str, body: &str) -> f64 {
        let prologue = self.prologue() + extra;
        self.kernel(device, &prologue, body, 1).slope_at(clock, [8, 28])[2]
    }

    fn kernel<'a>(
        &self,
        device: &'static DeviceModel,
        prologue: &'a str,
        body: &str,
        iterations: u32,
    ) -> Loop<'a> {
        Loop {
            device,
            prologue,
            body: body.to_owned(),
            iterations,
            waves: self.waves,
            workgroups: 16 * self.columns,
            lds: 65536,
            registers: 256,
            accumulators: 128,
            room: self.bytes(),
            results: self.results(),
            ..Loop::default()
        }
    }
}

/// A table of the page: its name, and what is wrong with its rows.
struct Rows {
    table: &'static str,
    wrong: Vec<String>,
}

impl Rows {
    fn of(table: &'static str) -> Rows {
        Rows { table, wrong: Vec::new() }
    }

    /// A row of the page, with clk at the sustained clock, which is judged, and at the greatest one.
    fn row(&mut self, what: &str, most: f64, measured: f64, clk: impl FnMut(ClockChoice) -> f64) {
        self.row_at(ClockChoice::Sustained, what, most, measured, clk);
    }

    /// Judges those at another clock instead.
    fn row_at(
        &mut self,
        clock: ClockChoice,
        what: &str,
        most: f64,
        measured: f64,
        mut clk: impl FnMut(ClockChoice) -> f64,
    ) {
        let [judged, greatest] = [clock, ClockChoice::Greatest].map(&mut clk);
        let off = judged / measured - 1.0;
        let [measured, judged, greatest] = [measured, judged, greatest].map(|clk| format!("{clk:.0}"));
        let cells = [measured, judged, format!("{:+.1}%", 100.0 * off), greatest];
        if off.abs() > most {
            self.wrong.push(format!("{what}: {cells:?}"));
        }
        let row = Row { page: "time-model.md", table: self.table, first: what };
        self.wrong.extend(row.holds(&cells).err());
    }

    #[track_caller]
    fn all_are_close(self) {
        figures::none_is_wrong(self.wrong);
    }
}

/// How far loops may be off.
const CLOSE: f64 = 0.05;

/// GT, gfx942/intra_wave: one LDS buffer, 16 reads of each half, loads two steps ahead.
fn four_waves(with_writes: bool, k: u32, clock: ClockChoice) -> f64 {
    let mut body = Body::new(HALF_RATE);
    for text in NEXT_COLUMNS {
        body.line(text);
    }
    body.spread(2, reads(0, 16));
    body.line("s_waitcnt lgkmcnt(8)");
    body.matrix(64);
    body.line("s_waitcnt lgkmcnt(0)");
    body.line("s_barrier");
    if with_writes {
        for text in writes(0, 16) {
            body.line("s_waitcnt vmcnt(12)");
            body.line(&text);
            body.matrix(1);
        }
    } else {
        body.line("s_waitcnt vmcnt(0)");
        body.matrix(16);
    }
    body.spread(4, loads(0, 16, 8));
    body.matrix(48);
    body.line("s_waitcnt lgkmcnt(0)");
    body.line("s_barrier");
    body.spread(2, reads(16, 16));
    assert_eq!(body.issued, 256);
    Tiles { waves: 4, m: 256, n: 256, k, columns: 19 }.clk(DeviceModel::MI300X, clock, "", &body.text)
}

#[test]
fn four_waves_on_gfx942() {
    let mut rows = Rows::of("main loops");
    for (k, measured) in [(8256, 4587.7), (2112, 4702.0), (4160, 4625.0), (16448, 4570.0)] {
        let what = format!("gfx942, 4 waves, 256x256x64, K = {k}");
        rows.row(&what, CLOSE, measured, |clock| four_waves(true, k, clock));
    }
    let what = "gfx942, 4 waves, without writes, K = 8256";
    rows.row(what, CLOSE, 4255.0, |clock| four_waves(false, 8256, clock));
    rows.all_are_close();
}

/// Waves of the second group are a barrier late.
const LATE: &str = "    v_readfirstlane_b32 s3, v0
    s_cmp_lt_u32 s3, 256
    s_cbranch_scc1 first
    s_barrier
first:\n";

/// The address of a lane's scales.
const SCALE_ADDRESS: &str = "    v_lshrrev_b32 v100, 2, v1\n";

#[test]
fn eight_waves_on_gfx942() {
    let mut body = Body::new(HALF_RATE);
    let regions = [
        (loads(4, 4, 4), reads(0, 8), Vec::new(), ""),
        (loads(0, 4, 4), reads(8, 4), Vec::new(), ""),
        (Vec::new(), reads(12, 8), writes(0, 4), "s_waitcnt vmcnt(4)"),
        (Vec::new(), reads(20, 4), writes(4, 4), "s_waitcnt vmcnt(0)"),
    ];
    for (loads, reads, writes, wait) in regions {
        body.line("s_setprio 1");
        body.spread(0, loads);
        body.spread(0, reads);
        if !wait.is_empty() {
            body.line(wait);
        }
        body.spread(0, writes);
        body.line("s_waitcnt lgkmcnt(0)");
        body.line("s_setprio 0");
        body.line("s_barrier");
        body.matrix(32);
        body.line("s_barrier");
    }
    for text in NEXT_COLUMNS {
        body.line(text);
    }
    let mut rows = Rows::of("main loops");
    for (k, measured) in [(2112, 4235.5), (4160, 4168.8), (8256, 4187.7), (16448, 4120.0)] {
        let tiles = Tiles { waves: 8, m: 256, n: 256, k, columns: 19 };
        let what = format!("gfx942, 8 waves in two groups, 8 regions, K = {k}");
        rows.row(&what, CLOSE, measured, |clock| tiles.clk(DeviceModel::MI300X, clock, LATE, &body.text));
    }
    rows.all_are_close();
}

/// Eight waves in two groups: a quadrant's reads and two loads with `more`, then its matrix instructions.
fn quadrants(instruction: &'static str, matrix: usize, more: [&[&str]; 4]) -> String {
    let mut body = Body::new(instruction);
    for (region, count) in [8, 4, 8, 4].into_iter().enumerate() {
        body.line("s_setprio 1");
        body.spread(0, reads(8 * region, count));
        body.spread(0, more[region]);
        body.spread(0, direct(2 * region, 2, 4));
        let scales = more[region].iter().filter(|text| text.contains("lds_dword")).count();
        body.line("s_waitcnt lgkmcnt(0)");
        body.line(&format!("s_waitcnt vmcnt({})", 6 + scales));
        body.line("s_setprio 0");
        body.line("s_barrier");
        body.matrix(matrix - 4);
        body.spread(1, if region == 3 { NEXT_COLUMNS } else { [""; 4] });
        body.line("s_barrier");
    }
    body.text
}

/// What a quadrant of MXFP4 loads and reads beside its elements: the scales of half of A, or of all of B.
const SCALES: &[&str] = &["ds_read_b64_tr_b8 v[2:3], v1", "global_load_lds_dword v100, s[12:13]"];

#[test]
fn eight_waves_on_gfx950() {
    let prologue = format!("{SCALE_ADDRESS}{LATE}");
    let clk = |text: &str, k, clock| {
        let tiles = Tiles { waves: 8, m: 256, n: 256, k, columns: 16 };
        tiles.clk(DeviceModel::MI355X, clock, &prologue, text)
    };
    let mut rows = Rows::of("main loops");
    let halves = quadrants(FULL_RATE, 16, [&[]; 4]);
    for k in [8192, 16384] {
        let what = format!("gfx950, 8 waves, quadrants, two buffers, K = {k}");
        rows.row(&what, CLOSE, 2048.0 / 0.998, |clock| clk(&halves, k, clock));
    }
    let what = "gfx950, 8 waves, quadrants, two buffers, K = 32768, at 1480 MHz";
    rows.row_at(LONG_SUM_OF_EIGHT, what, 2.0 * CLOSE, 2048.0 / 0.843, |clock| clk(&halves, 32768, clock));
    // 128 and 256 elements of a row of K are 128 bytes, like 64 of 16 bits. Eight bytes for each thread are
    // the scales of half of A, and of all of B.
    let by_quadrant = [SCALES, SCALES, SCALES, &[]];
    for (what, measured, text) in [
        ("bf8", 0.997, quadrants(BYTES, 8, [&[]; 4])),
        ("mxfp4, 16x16x128", 0.795, quadrants(SCALED, 16, by_quadrant)),
        ("mxfp4, 32x32x64", 0.986, quadrants(SCALED_WIDE, 8, by_quadrant)),
    ] {
        let what = format!("gfx950, 8 waves, {what}");
        rows.row(&what, CLOSE, 2048.0 / measured, |clock| clk(&text, 4096, clock));
    }
    rows.all_are_close();
}

/// Loops with K = 32768 are slower by what their loads wait for, and draw less power: the clock of each
/// follows from its published clk of a step and TFLOP/s (1291 and 1305, of other runs, whose buffers rotate;
/// a step is then 1640 ns of both).
const LONG_SUM_OF_EIGHT: ClockChoice = ClockChoice::Megahertz(1480.0);
const LONG_SUM_OF_FOUR: ClockChoice = ClockChoice::Megahertz(1990.0);

/// GT, gemm/intra_wave: a load per 64 clk of matrix instructions, a read per 16 where there are any.
fn interleaved(instruction: &'static str, matrix: usize, scales: usize) -> String {
    let mut body = Body::new(instruction);
    let (all, read) = (direct(0, 16, 8), reads(0, 32));
    for (load, text) in all.iter().enumerate() {
        body.line(text);
        if scales > 0 && load % (16 / scales) == 0 {
            body.spread(0, SCALES);
        }
        let issued = body.issued;
        let each = matrix / 16;
        for pair in read[2 * load..2 * load + 2].iter() {
            body.line(pair);
            body.matrix((each / 4).max(1));
        }
        body.matrix(each - (body.issued - issued));
        if load == 7 || load == 15 {
            body.line(&format!("s_waitcnt vmcnt({}) lgkmcnt(0)", 16 + scales));
            body.line("s_barrier");
        }
    }
    for text in NEXT_COLUMNS {
        body.line(text);
    }
    assert_eq!(body.issued, matrix);
    body.text
}

/// GT, gemm/intra_wave/a16w16: 256x256x64 by four waves on gfx950.
#[test]
fn four_waves_on_gfx950() {
    let clk = |text: &str, k, clock| {
        let tiles = Tiles { waves: 4, m: 256, n: 256, k, columns: 16 };
        tiles.clk(DeviceModel::MI355X, clock, SCALE_ADDRESS, text)
    };
    // v4: the next tile's loads, all reads, all matrix instructions.
    let mut body = Body::new(FULL_RATE);
    body.spread(0, direct(0, 16, 8));
    body.spread(0, reads(0, 32));
    body.line("s_waitcnt lgkmcnt(0)");
    body.matrix(128);
    for text in NEXT_COLUMNS.into_iter().chain(["s_waitcnt vmcnt(0)", "s_barrier"]) {
        body.line(text);
    }
    let mut rows = Rows::of("main loops");
    // The best of its versions, of which others take up to 3948 clk by what compilers put in between.
    let what = "gfx950, 4 waves, v4: loads, reads, matrix instructions, K = 8192";
    rows.row(what, CLOSE, 3593.0, |clock| clk(&body.text, 8192, clock));
    let halves = interleaved(FULL_RATE, 128, 0);
    for (k, measured) in [(8192, 0.987), (16384, 0.977)] {
        let what = format!("gfx950, 4 waves, v9: interleaved, K = {k}");
        rows.row(&what, CLOSE, 2048.0 / measured, |clock| clk(&halves, k, clock));
    }
    let what = "gfx950, 4 waves, v9: interleaved, K = 32768, at 1990 MHz";
    rows.row_at(LONG_SUM_OF_FOUR, what, 2.0 * CLOSE, 2048.0 / 0.627, |clock| clk(&halves, 32768, clock));
    for (what, measured, text) in
        [("bf8", 0.995, interleaved(BYTES, 64, 0)), ("mxfp4", 0.94, interleaved(SCALED, 128, 4))]
    {
        let what = format!("gfx950, 4 waves, {what}, K = 8192");
        rows.row(&what, CLOSE, 2048.0 / measured, |clock| clk(&text, 8192, clock));
    }
    rows.all_are_close();
}

/// Factors that fill the Infinity Cache, and a little more of them: what memory has to bring then is under
/// way in time.
#[test]
fn the_infinity_cache_has_no_edge() {
    let halves = interleaved(FULL_RATE, 128, 0);
    let clk = |k| {
        let tiles = Tiles { waves: 4, m: 256, n: 256, k, columns: 16 };
        tiles.clk(DeviceModel::MI355X, ClockChoice::Sustained, SCALE_ADDRESS, &halves)
    };
    let least = clk(8192);
    for k in [14336, 14400, 15360, 16384, 20480] {
        let more = clk(k) / least;
        assert!(more < 1.02, "K = {k}: {more:.3} times the clk of K = 8192");
    }
}

/// A loop of loads to LDS and matrix instructions, evenly spread; loads are waited for when as many steps
/// follow as a compute unit can have under way.
fn tile(m: u32, n: u32, k: u32, clock: ClockChoice) -> f64 {
    let tiles = Tiles { waves: 4, m, n, k, columns: 16 };
    let (all, left) = tiles.loads();
    let matrix = (m / 16 * (n / 16) * 2 / 4) as usize;
    let mut body = Body::new(FULL_RATE);
    for (load, text) in direct(0, all, left).into_iter().enumerate() {
        body.line(&text);
        body.matrix((load + 1) * matrix / all - load * matrix / all);
    }
    // The bytes of a step, and how many steps the 44 KB under way are.
    let step = 128 * (m + n);
    let ahead = (44u32 << 10).div_ceil(step) as usize;
    body.line(&format!("s_waitcnt vmcnt({})", all * ahead));
    body.line("s_barrier");
    for text in NEXT_COLUMNS {
        body.line(text);
    }
    tiles.clk(DeviceModel::MI355X, clock, "", &body.text)
}

/// GT, docs/tcp_bound_tile_model: 256 workgroups, K = 8192, efficiency in percent.
#[test]
fn tiles_are_limited_by_what_can_be_under_way() {
    let mut rows = Rows::of("evenly spread");
    for (m, n, measured) in [
        (256, 256, 96.0),
        (256, 128, 83.0),
        (128, 256, 84.0),
        (128, 128, 69.0),
        (256, 64, 55.0),
        (64, 256, 57.0),
        (128, 64, 47.0),
        (64, 128, 47.0),
    ] {
        let matrix = f64::from(m * n) / 32.0;
        let what = format!("{m}x{n}x64");
        // Two tiles are at the boundary of two limits, where the order of instructions decides, which is not
        // published: GT predicts 94 % of loads that are spread evenly, as these are.
        let most = if m + n == 384 { 0.12 } else { CLOSE };
        rows.row(&what, most, 100.0 * matrix / measured, |clock| tile(m, n, 8192, clock));
    }
    rows.all_are_close();
}

/// GT, gemm/inter_wave/a16w16: M = N = 4096, efficiency of the loop in percent.
#[test]
fn long_sums_wait_for_translation() {
    let mut rows = Rows::of("main loops");
    for (k, measured) in [(8192, 98.7), (16384, 97.7)] {
        let what = format!("gfx950, 4 waves, loads and matrix instructions, K = {k}");
        rows.row(&what, CLOSE, 204_800.0 / measured, |clock| tile(256, 256, k, clock));
    }
    rows.all_are_close();
    // Two loops with the same loads were measured at 84.3 and 62.7.
    let long = tile(256, 256, 32768, ClockChoice::Sustained);
    assert!((204_800.0 / 84.3..204_800.0 / 62.7).contains(&long), "{long} clk");
}

/// GT, kernels/memory_bound/gemm: M = 32, K = 8192, tiles of 32x256x64 by four waves with two buffers, each
/// refilled after it has been read. What 32, 128 and 256 workgroups get is published in GB/s of distinct
/// bytes, 32 KB a step and workgroup, with what comes before and after the loop; the clock is not.
#[test]
fn skinny_products_get_what_memory_has() {
    let loads = || {
        let of_b = (1..9).map(|load| format!("global_load_lds_dwordx4 v{}, s[14:15]", 40 + load));
        std::iter::once("global_load_lds_dwordx4 v40, s[12:13]".to_owned())
            .chain(of_b)
            .chain(NEXT_COLUMNS.map(str::to_owned))
    };
    let mut body = Body::new(FULL_RATE);
    body.line("s_waitcnt vmcnt(9)");
    body.line("s_barrier");
    body.spread(1, reads(0, 16));
    body.line("s_waitcnt lgkmcnt(0)");
    body.line("s_barrier");
    body.spread(0, loads());
    // Rows of 16 KB, of which 32 are A's and 256 each workgroup's of B.
    let mut prologue = Body::new("");
    for text in [
        "v_and_b32 v1, 63, v0",
        "v_lshlrev_b32 v1, 4, v1",
        "v_lshrrev_b32 v2, 3, v0",
        "v_lshlrev_b32 v2, 14, v2",
        "v_and_b32 v3, 7, v0",
        "v_lshl_add_u32 v40, v3, 4, v2",
        "s_lshl_b32 s6, s2, 22",
        "s_add_u32 s12, s4, 0",
        "s_addc_u32 s13, s5, 0",
        "s_add_u32 s14, s4, s6",
        "s_addc_u32 s15, s5, 0",
        "s_add_u32 s14, s14, 0x80000",
        "s_addc_u32 s15, s15, 0",
        "v_mov_b32 v41, v40",
    ] {
        prologue.line(text);
    }
    for load in 42..49 {
        prologue.line(&format!("v_add_u32 v{load}, 0x80000, v{}", load - 1));
    }
    prologue.spread(0, loads());
    prologue.spread(0, loads());
    let mut rows = Rows::of("skinny products");
    for (workgroups, rate) in [(32, 1529.0), (64, 2864.0), (128, 4580.0), (256, 6442.0)] {
        let mut kernel = Loop {
            device: DeviceModel::MI355X,
            prologue: &prologue.text,
            body: body.text.clone(),
            waves: 4,
            workgroups,
            lds: 65536,
            registers: 256,
            accumulators: 128,
            // Other buffers are used in turn, so that none is in the Infinity Cache.
            room: (1 << 30) + (1 << 20),
            ..Loop::default()
        };
        let nanoseconds = 32768.0 * f64::from(workgroups) / rate;
        let clk = |clock: ClockChoice| {
            let parameter = match clock {
                ClockChoice::Greatest => DeviceParameter::Clock,
                _ => DeviceParameter::SustainedClock,
            };
            kernel.slope_at(clock, [8, 28])[2] * 1000.0 / DeviceModel::MI355X.value(parameter).value
        };
        let what = workgroups.to_string();
        rows.row(&what, 0.15, nanoseconds, clk);
    }
    rows.all_are_close();
}

/// GT, gemm/inter_wave/a16w16: what comes after the loop of the eight waves takes 16,660 clk without spills.
/// A lane has four neighbours of a row in each block of 16x16: eight bytes, of which four lanes have 32 of a
/// line.
#[test]
fn results_of_16_bits_are_stored() {
    let mut body = Body::new(FULL_RATE);
    for _ in 0..8 {
        for column in 0..4 {
            body.line("v_cvt_pkrtz_f16_f32 v4, v5, v6");
            body.line("v_cvt_pkrtz_f16_f32 v5, v6, v7");
            body.line(&format!("global_store_dwordx2 v1, v[4:5], s[4:5] offset:{}", 32 * column));
        }
        body.line("v_add_u32 v1, v1, v2");
    }
    // Rows of 8192 bytes; 2 x 4 waves of 128 x 64, 16 x 16 workgroups.
    let prologue = "v_and_b32 v1, 15, v0
    v_lshlrev_b32 v1, 13, v1
    v_bfe_u32 v2, v0, 4, 2
    v_lshl_add_u32 v1, v2, 3, v1
    v_bfe_u32 v2, v0, 6, 2
    v_lshl_add_u32 v1, v2, 7, v1
    v_lshrrev_b32 v2, 8, v0
    v_lshl_add_u32 v1, v2, 20, v1
    s_lshr_b32 s6, s2, 4
    s_lshl_b32 s6, s6, 21
    s_and_b32 s7, s2, 15
    s_lshl_b32 s7, s7, 9
    s_add_u32 s6, s6, s7
    v_add_u32 v1, s6, v1
    v_mov_b32 v2, 0x20000";
    let clk = |text: &str, clock| {
        let kernel = Loop {
            device: DeviceModel::MI355X,
            prologue,
            body: text.to_owned(),
            waves: 8,
            workgroups: 256,
            lds: 65536,
            registers: 256,
            accumulators: 128,
            room: 1 << 25,
            ..Loop::default()
        };
        kernel.run_at(clock).unit.clk as f64
    };
    let mut rows = Rows::of("main loops");
    let what = "gfx950, 16-bit results of 256x256, eight waves";
    rows.row(what, CLOSE, 16_660.0, |clock| clk(&body.text, clock) - clk("", clock));
    rows.all_are_close();
}

/// 256 workgroups of 256x256 in 4-bit floats at K = 8192, 32 steps of 256: what the others load is sampled
/// within bounds.
#[test]
fn many_workgroups_of_wide_matrix_instructions_are_timed_soon() {
    let body = quadrants(SCALED, 16, [&[]; 4]);
    let tiles = Tiles { waves: 8, m: 256, n: 256, k: 2048, columns: 16 };
    let began = std::time::Instant::now();
    let clk = tiles.kernel(DeviceModel::MI355X, &(tiles.prologue() + LATE), &body, 32).run().unit.clk;
    let seconds = began.elapsed().as_secs_f64();
    eprintln!("{clk} clk, timed in {seconds:.1} s");
    assert!(clk > 32 * 2048 && seconds < 20.0, "{clk} clk after {seconds} s");
}
