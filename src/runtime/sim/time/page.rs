//! The simulated compute unit as one HTML page that needs nothing else: the listing with its stalls beside
//! the timeline of waves and pipes.

use serde_json::json;

use super::colours;
use super::record::{Pipe, Stall};
use super::report::{MOST_LISTED, TimeReport};

const TEMPLATE: &str = include_str!("page.html");
/// Where the data goes in the template.
const PLACE: &str = "/*DATA*/null";

impl TimeReport {
    /// The page. Its timeline has the kept events (see [`events`](super::TimeOptions::events)).
    pub fn page(&self) -> String {
        let timeline = &self.timeline;
        let step = |step: u32| (step as usize).saturating_sub(timeline.first);
        let issues: Vec<[u64; 4]> = timeline
            .events
            .iter()
            .filter(|e| step(e.step) < MOST_LISTED)
            .map(|e| [e.wave.into(), step(e.step) as u64, e.issued, e.end])
            .collect();
        let waits: Vec<[u64; 5]> = timeline
            .waits
            .iter()
            .filter(|w| step(w.step) < MOST_LISTED)
            .map(|w| [w.wave.into(), step(w.step) as u64, w.start, w.end, w.stall as u64])
            .collect();
        let busy: Vec<[u64; 5]> = timeline
            .busy
            .iter()
            .filter(|b| step(b.step) < MOST_LISTED)
            .map(|b| [b.pipe as u64, b.unit.into(), b.start, b.end, step(b.step) as u64])
            .collect();
        let waves = &timeline.waves[..timeline.seen()];
        let data = json!({
            "report": self,
            "profile": self.profile(),
            "stalls": Stall::ALL.map(Stall::name),
            "pipes": Pipe::ALL.map(Pipe::name),
            "pipe_colours": Pipe::ALL.map(colours::of_pipe),
            "waves": waves,
            "issues": issues,
            "waits": waits,
            "busy": busy,
        });
        // So that no text can close the script element.
        let data = data.to_string().replace("</", "<\\/").replace("<!--", "<\\!--");
        TEMPLATE.replacen(PLACE, &data, 1)
    }
}
