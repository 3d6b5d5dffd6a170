//! Handing data over through device memory without a barrier: an atomic access makes visible what its wave has waited for
//! (release), and a wave that sees it may rely on that once it has forgotten its caches (acquire). Within a workgroup the
//! order of issue is enough, as its waves share the first cache (LLVM, "User Guide for AMDGPU Backend", memory models).

use std::collections::BTreeMap;

use super::super::error::Access;
use super::super::execute::Footprint;
use super::flight::VM;
use super::group::Runner;
use super::order::{Foreign, Known, join};

/// What each place in memory has been handed.
#[derive(Default)]
pub(super) struct Handover {
    released: BTreeMap<u64, Released>,
}

/// Operations that lie before the accesses to a place.
#[derive(Default)]
struct Released {
    /// For other workgroups: those that were over.
    over: Foreign,
    /// For the same one: those that were issued.
    issued: Foreign,
}

impl Handover {
    /// An atomic access, or one with scope bits, of a wave whose workgroup's first one is `first_wave`.
    pub fn access(
        &mut self,
        footprint: &Footprint,
        lanes: u64,
        runner: &mut Runner,
        known: &mut Known,
        (wave, first_wave): (usize, u32),
    ) {
        let mut addresses: Vec<u64> =
            (0..64).filter(|l| lanes >> l & 1 != 0).map(|l| footprint.address[l]).collect();
        addresses.sort_unstable();
        addresses.dedup();
        let releases = footprint.access != Access::Load;
        let acquires = footprint.access != Access::Store;
        let (mut over, mut issued) = (Foreign::new(), Foreign::new());
        if releases {
            over = known.foreign[wave].clone();
            for other in 0..known.waves() {
                let number = known.of(wave, other).issued;
                let global = first_wave + other as u32;
                over.insert(global, if other == wave { runner.flight.done[VM] } else { number });
                issued.insert(global, if other == wave { runner.flight.issued } else { number });
            }
        }
        for address in addresses {
            let released = self.released.entry(address).or_default();
            if acquires {
                for (&global, &number) in &released.issued {
                    let other = global.wrapping_sub(first_wave) as usize;
                    if other < known.waves() {
                        known.learn(wave, other, number);
                    }
                }
                join(&mut runner.acquiring, &released.over);
            }
            if releases {
                join(&mut released.over, &over);
                join(&mut released.issued, &issued);
            }
        }
    }

    /// The wave forgets its caches: it sees what it has been handed.
    pub fn acquire(runner: &mut Runner, known: &mut Known, wave: usize) {
        let acquired = std::mem::take(&mut runner.acquiring);
        join(&mut known.foreign[wave], &acquired);
    }
}
