//! Devices: a product for each target, with its column of the table of [`parameters`](super::parameters).

use super::Target;
use super::older_devices::{MI50, MI100};
use super::parameters::{DeviceParameter, MI210, MI300X, MI355X, PARAMETERS, ParameterValue};

/// A device: a target with the numbers of one product.
#[derive(Debug)]
pub struct DeviceModel {
    /// The name that it is sold under.
    pub name: &'static str,
    /// Its instruction set and limits.
    pub target: Target,
    values: &'static [ParameterValue; PARAMETERS],
}

impl DeviceModel {
    /// Instinct MI50, Vega 20.
    pub const MI50: &'static DeviceModel =
        &DeviceModel { name: "MI50", target: Target::GFX906, values: &MI50 };
    /// Instinct MI100, CDNA 1.
    pub const MI100: &'static DeviceModel =
        &DeviceModel { name: "MI100", target: Target::GFX908, values: &MI100 };
    /// Instinct MI210, CDNA 2.
    pub const MI210: &'static DeviceModel =
        &DeviceModel { name: "MI210", target: Target::GFX90A, values: &MI210 };
    /// Instinct MI300X, CDNA 3.
    pub const MI300X: &'static DeviceModel =
        &DeviceModel { name: "MI300X", target: Target::GFX942, values: &MI300X };
    /// Instinct MI355X, CDNA 4.
    pub const MI355X: &'static DeviceModel =
        &DeviceModel { name: "MI355X", target: Target::GFX950, values: &MI355X };
    /// Every device, oldest first.
    pub const ALL: [&'static DeviceModel; 5] =
        [DeviceModel::MI50, DeviceModel::MI100, DeviceModel::MI210, DeviceModel::MI300X, DeviceModel::MI355X];

    /// The device of that name, in any case.
    pub fn from_name(name: &str) -> Option<&'static DeviceModel> {
        DeviceModel::ALL.into_iter().find(|device| device.name.eq_ignore_ascii_case(name))
    }

    /// The device that stands for a target, if there is one; for a generic target that of its oldest chip.
    pub fn of(target: Target) -> Option<&'static DeviceModel> {
        DeviceModel::ALL.into_iter().find(|device| target.covers(device.target))
    }

    /// The device whose numbers stand for a target without measurements: the oldest one that is not older,
    /// otherwise the newest.
    pub fn nearest(target: Target) -> &'static DeviceModel {
        let mut devices = DeviceModel::ALL.into_iter();
        devices
            .find(|device| device.target.arch >= target.arch)
            .unwrap_or(DeviceModel::ALL[DeviceModel::ALL.len() - 1])
    }

    /// A number as it was published, with its confidence and source: what lies below L2 is in clk of the
    /// greatest clock, other than in [`get`](DeviceModel::get).
    pub fn value(&self, parameter: DeviceParameter) -> ParameterValue {
        self.values[parameter as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::super::parameters::Confidence;
    use super::*;

    #[test]
    fn devices_are_found_by_name_and_target() {
        assert_eq!(DeviceModel::from_name("mi300x").map(|d| d.name), Some("MI300X"));
        assert_eq!(DeviceModel::of(Target::GFX950).map(|d| d.name), Some("MI355X"));
        assert_eq!(DeviceModel::of(Target::GFX9_4_GENERIC).map(|d| d.name), Some("MI300X"));
        assert!(DeviceModel::from_name("MI999").is_none());
        assert_eq!(
            Target::ALL.map(|t| DeviceModel::nearest(t).name),
            ["MI50", "MI100", "MI210", "MI300X", "MI355X"]
        );
    }

    #[test]
    fn every_guess_says_so() {
        for device in DeviceModel::ALL {
            for parameter in DeviceParameter::ALL {
                let value = device.value(parameter);
                let guessed = value.source == "assumed";
                assert!(
                    !guessed || value.confidence == Confidence::Unknown,
                    "{parameter:?} of {}",
                    device.name
                );
                assert!(value.value >= 0.0 && !value.source.is_empty());
            }
        }
    }

    #[test]
    fn what_is_not_known_is_of_low_confidence() {
        for (device, younger) in
            [(DeviceModel::MI50, DeviceModel::MI100), (DeviceModel::MI100, DeviceModel::MI210)]
        {
            assert_eq!(device.value(DeviceParameter::L2Latency).confidence, Confidence::Low);
            assert_eq!(
                device.value(DeviceParameter::TakenBranch).value,
                younger.value(DeviceParameter::TakenBranch).value
            );
            assert!(
                device.value(DeviceParameter::TakenBranch).confidence >= Confidence::Low,
                "{}",
                device.name
            );
            assert_eq!(device.value(DeviceParameter::ComputeUnits).confidence, Confidence::High);
        }
        assert_eq!(DeviceModel::MI50.value(DeviceParameter::L1Latency).value, 136.0, "as MI100");
    }
}
