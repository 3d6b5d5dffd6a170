//! Which parameters of a device a figure rests on.

use crate::codegen::target::{DeviceParameter, PARAMETERS};

/// A set of parameters: what a figure rests on.
#[derive(Copy, Clone, PartialEq, Eq, Default, Debug)]
pub(super) struct Used(u128);

const _: () = assert!(PARAMETERS <= 128);

impl Used {
    /// The set of these.
    pub(super) const fn of(parameters: &[DeviceParameter]) -> Used {
        let (mut used, mut index) = (Used(0), 0);
        while index < parameters.len() {
            used.0 |= 1 << parameters[index] as u32;
            index += 1;
        }
        used
    }

    /// Adds one.
    #[inline]
    pub(super) fn mark(&mut self, parameter: DeviceParameter) {
        self.0 |= 1 << parameter as u32;
    }

    /// Adds all of another set.
    pub(super) fn join(&mut self, other: Used) {
        self.0 |= other.0;
    }

    /// Its members, in the order of the table.
    pub(super) fn members(self) -> impl Iterator<Item = DeviceParameter> {
        DeviceParameter::ALL.into_iter().filter(move |&p| self.0 >> p as u32 & 1 != 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_keeps_what_was_marked() {
        let mut used = Used::of(&[DeviceParameter::Turn]);
        used.mark(DeviceParameter::L2Latency);
        used.join(Used::of(&[DeviceParameter::LaunchOverhead]));
        let members: Vec<DeviceParameter> = used.members().collect();
        assert_eq!(
            members,
            [DeviceParameter::Turn, DeviceParameter::L2Latency, DeviceParameter::LaunchOverhead]
        );
    }
}
