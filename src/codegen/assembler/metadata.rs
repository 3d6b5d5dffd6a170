//! Metadata: YAML in the text, MessagePack in the object.

use super::error::other;
use super::yaml::{self, Node, YamlError};
use crate::codegen::object::MessagePackValue;
use crate::codegen::target::TargetId;

/// The MessagePack of an `.amdgpu_metadata` block. Keys are sorted, as LLVM's are.
pub(super) fn to_message_pack(lines: &[String], target: Option<TargetId>) -> Result<Vec<u8>, YamlError> {
    let root = yaml::parse(lines)?;
    let Node::Mapping(entries) = &root else { return Err((0, other("metadata is a mapping"))) };
    let find = |wanted: &str| entries.iter().find(|(key, _)| key == wanted).map(|(_, value)| value);
    for key in ["amdhsa.version", "amdhsa.kernels"] {
        if !matches!(find(key), Some(Node::Sequence(_))) {
            return Err((0, other(format!("metadata has no list `{key}`"))));
        }
    }
    if let (Some(Node::Text(told)), Some(target)) = (find("amdhsa.target"), target)
        && *told != target.with_triple()
    {
        let line = lines.iter().position(|line| line.contains("amdhsa.target")).unwrap_or(0);
        return Err((line, other(format!("metadata is for {told}, the text for {}", target.with_triple()))));
    }
    let mut out = rmp::encode::ByteBuf::with_capacity(1024);
    write(&mut out, &root);
    Ok(out.into_vec())
}

/// Writing to a growing buffer cannot fail, and the type of its error has no values.
fn write(out: &mut rmp::encode::ByteBuf, node: &Node) {
    match node {
        Node::Unsigned(value) => {
            let Ok(_) = rmp::encode::write_uint(out, *value);
        }
        Node::Signed(value) => {
            let Ok(_) = rmp::encode::write_sint(out, *value);
        }
        Node::Boolean(value) => {
            let Ok(()) = rmp::encode::write_bool(out, *value);
        }
        Node::Text(text) => {
            let Ok(()) = rmp::encode::write_str(out, text);
        }
        Node::Sequence(elements) => {
            let Ok(_) = rmp::encode::write_array_len(out, elements.len() as u32);
            elements.iter().for_each(|element| write(out, element));
        }
        Node::Mapping(entries) => {
            let Ok(_) = rmp::encode::write_map_len(out, entries.len() as u32);
            let mut sorted: Vec<_> = entries.iter().collect();
            sorted.sort_by(|a, b| a.0.cmp(&b.0));
            for (key, value) in sorted {
                let Ok(()) = rmp::encode::write_str(out, key);
                write(out, value);
            }
        }
    }
}

/// The block that gives this MessagePack; none if it holds what the block cannot.
pub(super) fn to_yaml(bytes: &[u8]) -> Option<String> {
    let node = from_value(&MessagePackValue::parse(bytes).ok()?)?;
    let mut text = String::from(".amdgpu_metadata\n");
    yaml::write(&mut text, &node);
    text.push_str(".end_amdgpu_metadata\n");
    Some(text)
}

fn from_value(value: &MessagePackValue) -> Option<Node> {
    Some(match value {
        MessagePackValue::Integer(value) => match (u64::try_from(*value), i64::try_from(*value)) {
            (Ok(value), _) => Node::Unsigned(value),
            (_, Ok(value)) => Node::Signed(value),
            _ => return None,
        },
        MessagePackValue::Boolean(value) => Node::Boolean(*value),
        MessagePackValue::Text(text) => Node::Text((*text).to_owned()),
        MessagePackValue::Array(elements) => {
            Node::Sequence(elements.iter().map(from_value).collect::<Option<_>>()?)
        }
        MessagePackValue::Map(entries) => {
            let entries = entries.iter().map(|(key, value)| match key {
                MessagePackValue::Text(key) => Some(((*key).to_owned(), from_value(value)?)),
                _ => None,
            });
            Node::Mapping(entries.collect::<Option<_>>()?)
        }
        MessagePackValue::Other => return None,
    })
}
