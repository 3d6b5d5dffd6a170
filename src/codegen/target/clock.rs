//! The clock of compute units, and what of a device's numbers depends on it.
//!
//! Compute units, their caches and L2 share a clock that falls under load: products of matrices draw so much
//! power that no chip keeps its greatest one while it computes them. What lies below L2 has clocks of its
//! own, so that its latencies and rates are constant in time, and vary in clk of the compute units.

use super::device_model::DeviceModel;
use super::parameters::DeviceParameter;

/// Which clock compute units have.
#[derive(Copy, Clone, PartialEq, Debug, Default)]
pub enum ClockChoice {
    /// The one that the device holds while its matrix cores are busy: that of estimates, unless another one
    /// is asked for.
    #[default]
    Sustained,
    /// The greatest one of its data sheet, which short kernels and those without products of matrices reach.
    Greatest,
    /// So many MHz.
    Megahertz(f64),
}

impl ClockChoice {
    /// MHz on a device.
    pub(crate) fn megahertz(self, device: &DeviceModel) -> f64 {
        match self {
            ClockChoice::Sustained => device.value(DeviceParameter::SustainedClock).value,
            ClockChoice::Greatest => device.value(DeviceParameter::Clock).value,
            ClockChoice::Megahertz(clock) => clock,
        }
    }

    /// One word for it.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            ClockChoice::Sustained => "sustained",
            ClockChoice::Greatest => "greatest",
            ClockChoice::Megahertz(_) => "given",
        }
    }
}

impl From<f64> for ClockChoice {
    fn from(megahertz: f64) -> ClockChoice {
        ClockChoice::Megahertz(megahertz)
    }
}

impl DeviceModel {
    /// A number where compute units have the sustained clock.
    pub fn get(&self, parameter: DeviceParameter) -> f64 {
        self.at(parameter, ClockChoice::Sustained.megahertz(self))
    }

    /// The same as a count.
    pub fn count(&self, parameter: DeviceParameter) -> u64 {
        self.get(parameter) as u64
    }

    /// A number where compute units run at so many MHz. The table has those of the greatest clock: clk that a
    /// load spends below L2 become fewer when the clock falls, and bytes per clk from there become more.
    pub(crate) fn at(&self, parameter: DeviceParameter, megahertz: f64) -> f64 {
        let of_table = |parameter| self.value(parameter).value;
        let value = of_table(parameter);
        let speed = megahertz / of_table(DeviceParameter::Clock);
        match parameter {
            DeviceParameter::MallLatency
            | DeviceParameter::MemoryLatency
            | DeviceParameter::MemoryLatencyLoaded
                if value > 0.0 =>
            {
                let above = of_table(DeviceParameter::L2Latency);
                above + (value - above) * speed
            }
            DeviceParameter::TranslationLatency => value * speed,
            DeviceParameter::MallRate | DeviceParameter::MemoryRate | DeviceParameter::MemoryWriteRate => {
                value / speed
            }
            _ => value,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_lies_below_l2_keeps_its_time() {
        let device = DeviceModel::MI300X;
        let at = |parameter, clock: ClockChoice| device.at(parameter, clock.megahertz(device));
        let half = ClockChoice::Megahertz(1050.0);
        assert_eq!(at(DeviceParameter::MemoryLatency, ClockChoice::Greatest), 865.0);
        assert_eq!(at(DeviceParameter::MemoryLatency, half), 208.0 + 657.0 / 2.0);
        assert_eq!(at(DeviceParameter::MemoryRate, half), 13.0);
        assert_eq!(at(DeviceParameter::L2Latency, half), 208.0);
        assert_eq!(DeviceModel::MI210.get(DeviceParameter::MallLatency), 0.0, "there is none");
    }

    #[test]
    fn the_sustained_clock_is_the_lesser_one() {
        for device in DeviceModel::ALL {
            let [sustained, greatest] =
                [ClockChoice::Sustained, ClockChoice::Greatest].map(|clock| clock.megahertz(device));
            assert!(sustained < greatest && sustained > greatest / 2.0, "{}", device.name);
        }
    }
}
