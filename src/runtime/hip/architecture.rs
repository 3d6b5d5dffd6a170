//! Which chip a device is. No attribute says it: its name stands in the structure of properties, whose layout
//! depends on the version of HIP, so it is found by what it looks like.

use super::api::Api;
use crate::codegen::target::TargetId;

/// Where `gcnArchName` begins: in `hipDeviceProp_t` from HIP 6 on, and before (compilers' offsets from
/// hip_runtime_api.h of 6.4 and 5.2).
const NAME_AT: [usize; 2] = [1160, 396];

/// The target id of a device with the modes that it is in.
///
/// # Errors
/// The name of a chip that no code is made for, or nothing if HIP does not say.
pub(super) fn target_id(api: &Api, device: i32) -> Result<TargetId, Option<String>> {
    let [new, old] = api.properties(device);
    let names = [
        new.as_deref().and_then(|bytes| name(bytes, NAME_AT[0])),
        old.as_deref().and_then(|bytes| name(bytes, NAME_AT[1])),
    ];
    let name = names.into_iter().flatten().next().ok_or(None)?;
    name.parse().map_err(|_| Some(name))
}

/// The name of an architecture in a structure of properties: at its place, or wherever one is.
fn name(bytes: &[u8], at: usize) -> Option<String> {
    let places = std::iter::once(at).chain(0..bytes.len());
    places.filter_map(|at| text(bytes.get(at..)?)).find(|text| is_name(text))
}

/// The text that ends with a zero.
fn text(bytes: &[u8]) -> Option<String> {
    if !bytes.starts_with(b"gfx") {
        return None;
    }
    let end = bytes.iter().take(64).position(|&byte| byte == 0)?;
    Some(std::str::from_utf8(&bytes[..end]).ok()?.to_owned())
}

/// Whether a text is a processor with its modes: `gfx942:sramecc+:xnack-`.
fn is_name(text: &str) -> bool {
    let mut parts = text.split(':');
    let processor = parts.next().and_then(|name| name.strip_prefix("gfx")).unwrap_or_default();
    let is_mode = |mode: &str| {
        mode.strip_suffix(['+', '-'])
            .is_some_and(|name| !name.is_empty() && name.bytes().all(|b| b.is_ascii_lowercase()))
    };
    !processor.is_empty() && processor.bytes().all(|byte| byte.is_ascii_hexdigit()) && parts.all(is_mode)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn structure(at: usize, text: &str) -> Vec<u8> {
        let mut bytes = vec![0; 2048];
        bytes[at..at + text.len()].copy_from_slice(text.as_bytes());
        bytes
    }

    #[test]
    fn names_are_found_at_their_place_and_elsewhere() {
        let modes = "gfx942:sramecc+:xnack-";
        assert_eq!(name(&structure(1160, modes), 1160).as_deref(), Some(modes));
        assert_eq!(name(&structure(777, "gfx90a"), 1160).as_deref(), Some("gfx90a"));
        // A name that only begins like one is passed over.
        let mut both = structure(40, "gfx of some kind");
        both[400..406].copy_from_slice(b"gfx950");
        assert_eq!(name(&both, 1160).as_deref(), Some("gfx950"));
        assert_eq!(name(&[0; 64], 1160), None);
        assert_eq!(name(b"gfx942", 0), None);
    }
}
