//! What bounds a loop: for how long an iteration takes the matrix cores, LDS, the way to the caches and the
//! levels below, each as if it never waited for another. The longest of these times is the bound: no order of
//! the same instructions is faster. A loop that takes much longer than its bound waits for latencies.
//!
//! Levels that compute units share transfer so many bytes per clk. What a loop asks of them is what it would
//! move at the speed of its matrix cores, or of its busiest unit if it has no matrix instructions: a level
//! that is asked for more than it has is what the loop runs at.

use std::fmt;

use super::hierarchy::LevelRates;
use super::record::{Counters, Demand, Resource};
use crate::codegen::target::SIMDS;

/// What an iteration needs, of all waves that run at the same time.
#[derive(Clone, PartialEq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct LoopBound {
    /// What is needed for longest.
    pub resource: Resource,
    /// Its name.
    pub name: &'static str,
    /// For how many clk.
    pub clk: f64,
    /// For which part of the time that the compute unit spends in the loop it is needed, unless no wave has
    /// gone round. This time also has what no other wave goes side by side with.
    pub share: Option<f64>,
    /// Everything that is needed, in the order of [`Resource::ALL`].
    pub needs: Vec<LoopNeed>,
}

/// One thing that is needed.
#[derive(Clone, PartialEq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct LoopNeed {
    /// Which.
    pub resource: Resource,
    /// Its name.
    pub name: &'static str,
    /// For how many clk.
    pub clk: f64,
    /// Of a level that compute units share, what is asked of it.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
    pub transfer: Option<Transfer>,
}

/// Bytes per clk and compute unit.
#[derive(Copy, Clone, PartialEq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct Transfer {
    /// What the loop would move if nothing but its own units held it up.
    pub asked: f64,
    /// What there is while the other compute units take their share.
    pub had: f64,
}

/// How fast the compute unit is at what [`Demand`] counts.
pub(super) struct UnitSpeed {
    /// Waves that run at the same time.
    pub waves: u64,
    /// Bytes per clk that loads from memory put into LDS.
    pub lds_write: f64,
    pub levels: LevelRates,
}

impl UnitSpeed {
    /// What the instructions of a loop need, the last of which is its branch; the waves together go round
    /// `pace` times per clk.
    pub(super) fn bound(&self, counters: &[Counters], pace: f64) -> LoopBound {
        let mut demand = Demand::default();
        counters.iter().for_each(|counters| demand.join(&counters.demand));
        let iterations = counters.last().map_or(0, |branch| branch.issued).max(1) as f64;
        let times = self.waves as f64 / iterations;
        let clk = |resource| times * self.clk(resource, &demand);
        let own = [Resource::Valu, Resource::Lds, Resource::Vector].map(clk);
        let fastest = match clk(Resource::Matrix) {
            0.0 => own.into_iter().fold(0.0, f64::max),
            matrix => matrix,
        };
        let need = |resource: Resource| LoopNeed {
            resource,
            name: resource.name(),
            clk: clk(resource),
            transfer: self
                .had(resource)
                .filter(|_| fastest > 0.0)
                .map(|had| Transfer { asked: clk(resource) * had / fastest, had }),
        };
        let needs: Vec<LoopNeed> =
            Resource::ALL.map(need).into_iter().filter(|need| need.clk > 0.0).collect();
        // The first one of several.
        let longest = needs.iter().rev().max_by(|one, another| one.clk.total_cmp(&another.clk));
        let (resource, clk) = longest.map_or((Resource::Valu, 0.0), |need| (need.resource, need.clk));
        let share = (pace > 0.0).then(|| clk / self.waves as f64 * pace);
        LoopBound { resource, name: resource.name(), clk, share, needs }
    }

    /// For how many clk a demand takes something.
    fn clk(&self, resource: Resource, demand: &Demand) -> f64 {
        let traffic = &demand.traffic;
        match resource {
            Resource::Matrix => demand.matrix as f64 / SIMDS as f64,
            Resource::Valu => demand.valu as f64 / SIMDS as f64,
            Resource::Lds => {
                // Of each of two pairs of SIMDs; while a load arrives nobody writes.
                let [reads, writes] = [demand.lds_reads, demand.lds_writes].map(|clk| clk / 2.0);
                demand.banks.max(reads).max(writes + demand.to_lds as f64 / self.lds_write)
            }
            Resource::Vector => demand.vector,
            Resource::L2 => traffic.l2_bytes as f64 / self.levels.l2,
            Resource::L2Writes => traffic.stored as f64 / self.levels.l2_writes,
            // What comes from memory passes it.
            Resource::Mall => {
                let bytes = (traffic.mall_bytes + traffic.memory_read) as f64;
                self.levels.mall.map_or(0.0, |rate| bytes / rate)
            }
            Resource::Memory => {
                let written = traffic.memory_written as f64 * self.levels.write_cost;
                (traffic.memory_read as f64 + written) / self.levels.memory
            }
        }
    }

    /// Bytes per clk of what compute units share.
    fn had(&self, resource: Resource) -> Option<f64> {
        match resource {
            Resource::Matrix | Resource::Valu | Resource::Lds | Resource::Vector => None,
            Resource::L2 => Some(self.levels.l2),
            Resource::L2Writes => Some(self.levels.l2_writes),
            Resource::Mall => self.levels.mall,
            Resource::Memory => Some(self.levels.memory),
        }
    }
}

impl fmt::Display for LoopBound {
    /// The bound, what else takes time, and what shared levels are asked for beside what they have.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {:.0} clk", self.name, self.clk)?;
        if let Some(share) = self.share {
            write!(f, ", {:.0}% of the loop's time", 100.0 * share)?;
        }
        let (mut others, mut levels) = (Vec::new(), Vec::new());
        for need in &self.needs {
            if need.resource != self.resource && need.clk >= 0.5 {
                others.push(format!("{} {:.0}", need.name, need.clk));
            }
            if let Some(transfer) = need.transfer {
                levels.push(format!("{} {:.1} of {:.1}", need.name, transfer.asked, transfer.had));
            }
        }
        if !others.is_empty() {
            write!(f, "; {}", others.join(", "))?;
        }
        if !levels.is_empty() {
            write!(f, "; bytes per clk asked and had: {}", levels.join(", "))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::hierarchy::Traffic;
    use super::*;

    const MI300X: UnitSpeed = UnitSpeed {
        waves: 8,
        lds_write: 64.0,
        levels: LevelRates { l2: 30.0, l2_writes: 15.0, mall: Some(9.0), memory: 6.5, write_cost: 1.0 },
    };

    /// A loop of one instruction that is issued in 100 iterations of each of eight waves.
    fn bound(matrix: u64, l2_bytes: u64) -> LoopBound {
        let traffic = Traffic { l2_bytes, ..Traffic::default() };
        let demand = Demand { matrix, traffic, ..Demand::default() };
        MI300X.bound(&[Counters { issued: 800, demand, ..Counters::default() }], 8.0 / 2048.0)
    }

    #[test]
    fn the_longest_need_is_the_bound() {
        let slow = bound(100 * 4 * 1024, 100 * 30 * 256);
        assert_eq!((slow.resource, slow.clk, slow.share), (Resource::Matrix, 1024.0, Some(0.5)));
        assert_eq!(slow.needs[1].transfer, Some(Transfer { asked: 7.5, had: 30.0 }));
        let wide = bound(100 * 4 * 256, 100 * 30 * 1024);
        assert_eq!((wide.resource, wide.clk), (Resource::L2, 1024.0));
        assert_eq!(wide.needs[1].transfer, Some(Transfer { asked: 120.0, had: 30.0 }));
    }

    #[test]
    fn a_loop_that_needs_nothing_has_a_bound() {
        let idle = bound(0, 0);
        assert_eq!((idle.resource, idle.clk, idle.needs.len()), (Resource::Valu, 0.0, 0));
        assert_eq!(idle.to_string(), "VALU: 0 clk, 0% of the loop's time");
    }

    #[test]
    fn without_a_pipe_of_its_own_nothing_is_asked_per_clk() {
        let only = bound(0, 1000);
        assert_eq!((only.resource, only.needs[0].transfer), (Resource::L2, None));
    }
}
