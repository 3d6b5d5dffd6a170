//! The simulated compute unit as one HTML page that needs nothing else: the listing with its stalls beside the timeline of
//! waves and pipes.

use serde_json::json;

use super::record::{Pipe, Stall};
use super::report::{MOST_LISTED, TimeReport};

const TEMPLATE: &str = include_str!("page.html");
/// Where the data goes in the template.
const PLACE: &str = "/*DATA*/null";

impl TimeReport {
    /// The page. Its timeline has the kept events (see [`events`](super::TimeOptions::events)).
    pub fn page(&self) -> String {
        let timeline = &self.timeline;
        let seen = timeline.events.iter().map(|e| e.wave as usize + 1).max().unwrap_or(0);
        let step = |step: u32| (step as usize).saturating_sub(timeline.first);
        let events: Vec<[i64; 5]> = timeline
            .events
            .iter()
            .filter(|e| step(e.step) < MOST_LISTED)
            .map(|e| {
                let stall = e.stall.map_or(-1, |s| s as i64);
                [e.wave.into(), step(e.step) as i64, e.since as i64, e.issued as i64, stall]
            })
            .collect();
        let busy: Vec<[u64; 5]> = timeline
            .busy
            .iter()
            .filter(|b| step(b.step) < MOST_LISTED)
            .map(|b| [b.pipe as u64, b.unit.into(), b.start, b.end, step(b.step) as u64])
            .collect();
        let waves = &timeline.waves[..seen.min(timeline.waves.len())];
        let data = json!({
            "report": self,
            "profile": self.profile(),
            "stalls": Stall::ALL.map(Stall::name),
            "pipes": Pipe::ALL.map(Pipe::name),
            "waves": waves,
            "events": events,
            "busy": busy,
        });
        // So that no text can end the script.
        let data = data.to_string().replace("</", "<\\/").replace("<!--", "<\\!--");
        TEMPLATE.replacen(PLACE, &data, 1)
    }
}
