//! Address translation of a compute unit: the pages whose places in memory it knows. A line on another page
//! arrives later by the time that translation takes, and all lines of the page that are asked for meanwhile
//! wait for the same answer.
//!
//! Rows that lie far apart put each few rows of a tile on a page of its own, and a trip that comes round to
//! more pages than are known finds none of them.

use std::collections::VecDeque;

use crate::codegen::target::{DeviceModel, DeviceParameter};

/// Bytes of a page as translation sees it: large allocations are made of blocks of two megabytes (Linux,
/// amdgpu, `vm_fragment_size`: nine bits of pages of 4 KB where the driver chooses).
const PAGE: u64 = 1 << 21;

/// The pages that a compute unit knows, the one that was used last in front, and when each is there.
#[derive(Debug)]
pub(super) struct TranslatedPages {
    known: VecDeque<(u64, f64)>,
    most: usize,
    latency: f64,
}

impl TranslatedPages {
    /// No page is known. Compute units run at so many MHz.
    pub(super) fn new(device: &DeviceModel, megahertz: f64) -> TranslatedPages {
        TranslatedPages {
            known: VecDeque::new(),
            most: device.count(DeviceParameter::TranslationPages).max(1) as usize,
            latency: device.at(DeviceParameter::TranslationLatency, megahertz),
        }
    }

    /// Clk for which an access at `at` waits for the page of an address.
    #[inline]
    pub(super) fn wait(&mut self, at: f64, address: u64) -> f64 {
        let page = address / PAGE;
        match self.known.front() {
            Some(&(last, there)) if last == page => (there - at).max(0.0),
            _ => self.find(at, page),
        }
    }

    /// The same of a page that was not used last.
    fn find(&mut self, at: f64, page: u64) -> f64 {
        let known = self.known.iter().position(|&(known, _)| known == page);
        let (_, there) =
            known.and_then(|place| self.known.remove(place)).unwrap_or((page, at + self.latency));
        self.known.push_front((page, there));
        self.known.truncate(self.most);
        (there - at).max(0.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pages() -> TranslatedPages {
        TranslatedPages { known: VecDeque::new(), most: 4, latency: 100.0 }
    }

    #[test]
    fn a_page_is_waited_for_once() {
        let mut pages = pages();
        assert_eq!([0.0, 40.0, 100.0, 500.0].map(|at| pages.wait(at, at as u64)), [100.0, 60.0, 0.0, 0.0]);
    }

    #[test]
    fn coming_round_to_more_pages_than_are_known_finds_none() {
        for (count, waits) in [(4, 0), (5, 5)] {
            let mut pages = pages();
            let mut round =
                |at: f64| (0..count).filter(|page| pages.wait(at + *page as f64, page * PAGE) > 0.0).count();
            round(0.0);
            assert_eq!(round(1e6), waits, "{count} pages");
        }
    }
}
