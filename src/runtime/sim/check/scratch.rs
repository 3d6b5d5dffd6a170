//! Which bytes of private memory hold something, lane by lane.

use super::super::error::Access;
use super::super::execute::Footprint;
use super::lds::Dwords;

/// Private memory of one wave.
pub(super) struct Scratch {
    /// Defined lanes of each byte.
    bytes: Vec<u64>,
}

impl Scratch {
    /// None.
    pub fn new() -> Scratch {
        Scratch { bytes: Vec::new() }
    }

    /// So many bytes per lane, undefined.
    pub fn reset(&mut self, bytes: usize) {
        self.bytes.clear();
        self.bytes.resize(bytes, 0);
    }

    /// Notes an access whose lanes `lanes` lie inside; of a load the lanes that load something undefined, by dword, and the
    /// first such byte.
    pub fn access(&mut self, footprint: &Footprint, lanes: u64, undefined: u64) -> (Dwords, Option<u64>) {
        let mut found = (Dwords::default(), None);
        let mut left = lanes;
        while left != 0 {
            let l = left.trailing_zeros();
            let address = footprint.address[l as usize];
            // All lanes at one address are one piece of work, as they mostly are.
            let mut same = 0;
            let mut others = left;
            while others != 0 {
                let m = others.trailing_zeros();
                others &= others - 1;
                same |= u64::from(footprint.address[m as usize] == address) << m;
            }
            left &= !same;
            let start = address as usize;
            let end = (start + usize::from(footprint.bytes[l as usize])).min(self.bytes.len());
            for (index, byte) in self.bytes[start.min(end)..end].iter_mut().enumerate() {
                match footprint.access {
                    Access::Load if same & !*byte != 0 => {
                        found.0[index / 4 % 16] |= same & !*byte;
                        found.1.get_or_insert(address + index as u64);
                    }
                    Access::Load => {}
                    _ => *byte = *byte & !same | same & !undefined,
                }
            }
        }
        found
    }
}
