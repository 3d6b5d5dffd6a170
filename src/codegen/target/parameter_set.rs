//! Sets of parameters: what a figure rests on.

use super::parameters::{DeviceParameter, PARAMETERS};

/// A set of parameters: what a figure rests on.
#[derive(Copy, Clone, PartialEq, Eq, Default, Debug)]
pub(crate) struct ParameterSet(u128);

const _: () = assert!(PARAMETERS <= 128);

impl ParameterSet {
    /// The set of these.
    pub(crate) const fn of(parameters: &[DeviceParameter]) -> ParameterSet {
        let (mut set, mut index) = (ParameterSet(0), 0);
        while index < parameters.len() {
            set.0 |= 1 << parameters[index] as u32;
            index += 1;
        }
        set
    }

    /// Adds one.
    #[inline]
    pub(crate) fn mark(&mut self, parameter: DeviceParameter) {
        self.0 |= 1 << parameter as u32;
    }

    /// Adds all of another set.
    pub(crate) fn join(&mut self, other: ParameterSet) {
        self.0 |= other.0;
    }

    /// Its members, in the order of the table.
    pub(crate) fn members(self) -> impl Iterator<Item = DeviceParameter> {
        DeviceParameter::ALL.into_iter().filter(move |&p| self.0 >> p as u32 & 1 != 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_keeps_what_was_marked() {
        let mut set = ParameterSet::of(&[DeviceParameter::Turn]);
        set.mark(DeviceParameter::L2Latency);
        set.join(ParameterSet::of(&[DeviceParameter::LaunchOverhead]));
        let members: Vec<DeviceParameter> = set.members().collect();
        assert_eq!(
            members,
            [DeviceParameter::Turn, DeviceParameter::L2Latency, DeviceParameter::LaunchOverhead]
        );
    }
}
