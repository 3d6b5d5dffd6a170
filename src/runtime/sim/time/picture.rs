//! The steady state of a kernel as a picture (SVG): what the waves of one SIMD do while its matrix core and
//! its vector ALU work, over two iterations of the main loop.

use std::fmt::Write;

use super::colours;
use super::record::{Pipe, Stall};
use super::report::TimeReport;

/// Width of the picture and of the names on its left, in pixels.
const WIDTH: f64 = 960.0;
const NAMES: f64 = 120.0;
/// Height of a track, and of the blocks in it.
const TRACK: f64 = 34.0;
const BLOCK: f64 = 24.0;
/// Height of the heading, with the legend.
const HEADING: f64 = 58.0;
/// Blocks of one colour closer than this many clk are drawn as one: instructions of a cluster follow each
/// other closely.
const JOIN: u64 = 16;

/// What a block shows: a name for the legend and a colour that colour-blind people can distinguish from the
/// others (Okabe and Ito).
struct Shade {
    name: &'static str,
    colour: &'static str,
}

impl Shade {
    /// The class of what is drawn in it, where dark ground asks for another colour.
    fn class(&self) -> &'static str {
        if self.name == BARRIER.name { " class=\"barrier\"" } else { "" }
    }
}

const MATRIX: Shade = Shade { name: "matrix instructions", colour: colours::of_pipe(Pipe::Matrix) };
const VECTOR: Shade = Shade { name: "vector instructions", colour: colours::of_pipe(Pipe::Valu) };
const LDS: Shade = Shade { name: "LDS", colour: colours::of_pipe(Pipe::Lds) };
const MEMORY: Shade = Shade { name: "global memory", colour: colours::of_pipe(Pipe::Vector) };
const BARRIER: Shade = Shade { name: "waits at a barrier", colour: "#c4c9d0" };
const WAIT: Shade = Shade { name: "waits for data", colour: "#d55e00" };

/// In the order in which they are drawn: waits first, so that work covers them; then what lasts long, so that
/// what is short stands on it. The last is first in the legend.
const SHADES: [&Shade; 6] = [&BARRIER, &WAIT, &MEMORY, &LDS, &VECTOR, &MATRIX];

/// What differs on a dark ground: a rule outweighs the colour that an element names.
const DARK: &str = "@media (prefers-color-scheme: dark) { svg { fill: #e3e6ea; } .ground { fill: #15181d; } \
                    .dim { fill: #8b93a0; } .barrier { fill: #4a515c; } }";

fn shade_of_pipe(pipe: Pipe) -> Option<&'static Shade> {
    match pipe {
        Pipe::Matrix => Some(&MATRIX),
        Pipe::Valu => Some(&VECTOR),
        Pipe::Lds => Some(&LDS),
        Pipe::Vector => Some(&MEMORY),
        Pipe::Scalar | Pipe::LdsBanks | Pipe::Branch => None,
    }
}

fn shade_of_stall(stall: Stall) -> Option<&'static Shade> {
    match stall {
        Stall::Barrier => Some(&BARRIER),
        Stall::Waitcnt => Some(&WAIT),
        Stall::NoInstruction
        | Stall::AluDependency
        | Stall::Internal
        | Stall::Other
        | Stall::NotWon
        | Stall::PipeStalled => None,
    }
}

/// A row of the picture.
struct Track {
    name: String,
    /// By shade, in the order of time: start and end in clk.
    blocks: [Vec<(u64, u64)>; SHADES.len()],
}

impl Track {
    fn new(name: String) -> Track {
        Track { name, blocks: Default::default() }
    }

    fn add(&mut self, shade: &'static Shade, start: u64, end: u64) {
        let Some(index) = SHADES.iter().position(|it| it.name == shade.name) else { return };
        self.blocks[index].push((start, end));
    }
}

impl TimeReport {
    /// The picture: the waves of the first SIMD, its matrix core, its vector ALU and the vector memory of the
    /// compute unit, from the second to the fourth time that its first wave enters the main loop; without a
    /// loop, from the beginning.
    ///
    /// It shows the kept events (see [`events`](super::TimeOptions::events)), and nothing if none were kept.
    pub fn picture(&self) -> String {
        let (from, to) = self.steady_state();
        let tracks = self.tracks(from, to);
        let height = HEADING + TRACK * tracks.len() as f64 + 24.0;
        let mut svg = String::new();
        draw(&mut svg, self, (from, to), &tracks, height);
        svg
    }

    /// Two iterations of the main loop of the first SIMD's first wave.
    fn steady_state(&self) -> (u64, u64) {
        let timeline = &self.timeline;
        let last = timeline.events.iter().map(|event| event.end).max().unwrap_or(1).max(1);
        let head = self.main_loop.as_ref().and_then(|it| {
            let index = self.instructions.iter().position(|i| i.address == it.address[0])?;
            Some((index + timeline.first) as u32)
        });
        let wave = timeline.waves.iter().position(|&(_, _, simd)| simd == 0);
        let entered: Vec<u64> = timeline
            .events
            .iter()
            .filter(|event| Some(event.step) == head && Some(event.wave as usize) == wave)
            .map(|event| event.issued)
            .take(4)
            .collect();
        match entered[..] {
            [_, second, _, fourth] => (second, fourth),
            [first, .., later] => (first, later),
            _ => (0, last),
        }
    }

    fn tracks(&self, from: u64, to: u64) -> Vec<Track> {
        let timeline = &self.timeline;
        let seen = |start: u64, end: u64| start < to && end > from;
        let mut tracks: Vec<Track> = Vec::new();
        // A track for each wave of the first SIMD that is alive in between.
        let mut track_of = vec![None; timeline.waves.len()];
        let alive = timeline.waits.iter().map(|wait| (wait.wave, wait.start, wait.end));
        let alive = alive.chain(timeline.events.iter().map(|event| (event.wave, event.issued, event.end)));
        let mut waves: Vec<u32> = alive.filter(|&(_, s, e)| seen(s, e)).map(|(wave, ..)| wave).collect();
        waves.sort_unstable();
        waves.dedup();
        for wave in waves {
            let Some(&(_, number, 0)) = timeline.waves.get(wave as usize) else { continue };
            track_of[wave as usize] = Some(tracks.len());
            tracks.push(Track::new(format!("wave {number}")));
        }
        let of_wave = |wave: u32| track_of.get(wave as usize).copied().flatten();
        for wait in timeline.waits.iter().filter(|wait| seen(wait.start, wait.end)) {
            if let (Some(track), Some(shade)) = (of_wave(wait.wave), shade_of_stall(wait.stall)) {
                tracks[track].add(shade, wait.start, wait.end);
            }
        }
        let mut core = Track::new("matrix core".to_owned());
        let mut vector = Track::new("vector ALU".to_owned());
        let mut memory = Track::new("memory path".to_owned());
        for busy in timeline.busy.iter().filter(|busy| seen(busy.start, busy.end)) {
            let Some(shade) = shade_of_pipe(busy.pipe) else { continue };
            if let Some(track) = of_wave(busy.wave) {
                tracks[track].add(shade, busy.start, busy.end);
            }
            match busy.pipe {
                Pipe::Matrix if busy.unit == 0 => core.add(shade, busy.start, busy.end),
                Pipe::Valu if busy.unit == 0 => vector.add(shade, busy.start, busy.end),
                Pipe::Vector => memory.add(shade, busy.start, busy.end),
                _ => {}
            }
        }
        tracks.extend([core, vector, memory]);
        for blocks in tracks.iter_mut().flat_map(|track| &mut track.blocks) {
            join(blocks);
        }
        tracks
    }
}

/// Joins blocks that touch or nearly touch.
fn join(blocks: &mut Vec<(u64, u64)>) {
    blocks.sort_unstable();
    blocks.dedup_by(|next, kept| {
        let joined = next.0 <= kept.1 + JOIN;
        if joined {
            kept.1 = kept.1.max(next.1);
        }
        joined
    });
}

/// Writes the picture. Writing to a string cannot fail.
fn draw(svg: &mut String, report: &TimeReport, (from, to): (u64, u64), tracks: &[Track], height: f64) {
    let scale = (WIDTH - NAMES - 10.0) / (to - from).max(1) as f64;
    let at = |clk: u64| NAMES + (clk.clamp(from, to) - from) as f64 * scale;
    let _ = writeln!(
        svg,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" width=\"{WIDTH}\" \
         height=\"{height}\" font-family=\"system-ui, sans-serif\" font-size=\"13\" fill=\"#1c1f24\">\n\
         <style>{DARK}</style>\n\
         <rect class=\"ground\" width=\"100%\" height=\"100%\" rx=\"6\" fill=\"#fff\"/>"
    );
    let clk = to - from;
    let part = |pipe: Pipe| {
        let busy = report.timeline.busy.iter().filter(|busy| busy.pipe == pipe && busy.unit == 0);
        let sum: u64 = busy.map(|b| b.end.clamp(from, to) - b.start.clamp(from, to)).sum();
        100.0 * sum as f64 / clk.max(1) as f64
    };
    let _ = writeln!(
        svg,
        "<text x=\"12\" y=\"22\" font-weight=\"600\">{} on {}, one SIMD, simulated: matrix core busy {:.0}% of the time, vector ALU {:.0}%</text>",
        escaped(&report.kernel),
        escaped(report.device),
        part(Pipe::Matrix),
        part(Pipe::Valu)
    );
    let mut x = 12.0;
    for shade in SHADES.iter().rev() {
        let _ = writeln!(
            svg,
            "<rect{} x=\"{x:.0}\" y=\"34\" width=\"12\" height=\"12\" fill=\"{}\"/><text x=\"{:.0}\" y=\"45\">{}</text>",
            shade.class(),
            shade.colour,
            x + 17.0,
            shade.name
        );
        x += 38.0 + 6.9 * shade.name.len() as f64;
    }
    for (row, track) in tracks.iter().enumerate() {
        let top = HEADING + TRACK * row as f64 + (TRACK - BLOCK) / 2.0;
        let _ = writeln!(svg, "<text x=\"12\" y=\"{:.0}\">{}</text>", top + 16.0, escaped(&track.name));
        for (shade, blocks) in SHADES.iter().zip(&track.blocks) {
            let mut path = String::new();
            for &(start, end) in blocks {
                let (left, right) = (at(start), at(end));
                let _ = write!(path, "M{left:.1} {top:.0}H{right:.1}v{BLOCK}H{left:.1}z");
            }
            if !path.is_empty() {
                let _ = writeln!(svg, "<path{} fill=\"{}\" d=\"{path}\"/>", shade.class(), shade.colour);
            }
        }
    }
    let middle = NAMES + (WIDTH - NAMES) / 2.0;
    let _ = writeln!(
        svg,
        "<text x=\"{middle:.0}\" y=\"{:.0}\" text-anchor=\"middle\" class=\"dim\" fill=\"#5b626d\">two iterations of the main loop, {clk} clk</text>\n</svg>",
        height - 8.0
    );
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}
