//! Metadata: YAML in the text, MessagePack in the object.

use super::error::other;
use super::scalar::{ScalarNode, YamlError};
use super::yaml;
use crate::codegen::object::{MessagePackValue, msgpack};
use crate::codegen::target::TargetId;

/// The MessagePack of an `.amdgpu_metadata` block. Keys are sorted, as LLVM's are.
pub(super) fn to_message_pack(lines: &[String], target: Option<TargetId>) -> Result<Vec<u8>, YamlError> {
    let root = yaml::parse(lines)?;
    let ScalarNode::Mapping(entries) = &root else { return Err((0, other("metadata is a mapping"))) };
    let find = |wanted: &str| entries.iter().find(|(key, _)| key == wanted).map(|(_, value)| value);
    for key in ["amdhsa.version", "amdhsa.kernels"] {
        if !matches!(find(key), Some(ScalarNode::Sequence(_))) {
            return Err((0, other(format!("metadata has no list `{key}`"))));
        }
    }
    if let (Some(ScalarNode::Text(told)), Some(target)) = (find("amdhsa.target"), target)
        && TargetId::after_triple(told).and_then(|id| id.parse().ok()) != Some(target)
    {
        let line = lines.iter().position(|line| line.contains("amdhsa.target")).unwrap_or(0);
        return Err((line, other(format!("metadata is for {told}, the text for {}", target.with_triple()))));
    }
    let mut out = Vec::with_capacity(1024);
    write(&mut out, &root);
    Ok(out)
}

fn write(out: &mut Vec<u8>, node: &ScalarNode) {
    match node {
        ScalarNode::Unsigned(value) => msgpack::write_unsigned(out, *value),
        ScalarNode::Signed(value) => msgpack::write_signed(out, *value),
        ScalarNode::Boolean(value) => msgpack::write_boolean(out, *value),
        ScalarNode::Text(text) => msgpack::write_text(out, text),
        ScalarNode::Sequence(elements) => {
            msgpack::write_array(out, elements.len());
            elements.iter().for_each(|element| write(out, element));
        }
        ScalarNode::Mapping(entries) => {
            msgpack::write_map(out, entries.len());
            let mut sorted: Vec<_> = entries.iter().collect();
            sorted.sort_by(|a, b| a.0.cmp(&b.0));
            for (key, value) in sorted {
                msgpack::write_text(out, key);
                write(out, value);
            }
        }
    }
}

/// The block that gives this MessagePack; none if it holds something that the block cannot express.
pub(super) fn to_yaml(bytes: &[u8]) -> Option<String> {
    let node = from_value(&MessagePackValue::parse(bytes).ok()?)?;
    let mut text = String::from(".amdgpu_metadata\n");
    yaml::write(&mut text, &node);
    text.push_str(".end_amdgpu_metadata\n");
    Some(text)
}

fn from_value(value: &MessagePackValue) -> Option<ScalarNode> {
    Some(match value {
        MessagePackValue::Integer(value) => match (u64::try_from(*value), i64::try_from(*value)) {
            (Ok(value), _) => ScalarNode::Unsigned(value),
            (_, Ok(value)) => ScalarNode::Signed(value),
            _ => return None,
        },
        MessagePackValue::Boolean(value) => ScalarNode::Boolean(*value),
        MessagePackValue::Text(text) => ScalarNode::Text((*text).to_owned()),
        MessagePackValue::Array(elements) => {
            ScalarNode::Sequence(elements.iter().map(from_value).collect::<Option<_>>()?)
        }
        MessagePackValue::Map(entries) => {
            let entries = entries.iter().map(|(key, value)| match key {
                MessagePackValue::Text(key) => Some(((*key).to_owned(), from_value(value)?)),
                _ => None,
            });
            ScalarNode::Mapping(entries.collect::<Option<_>>()?)
        }
        MessagePackValue::Other => return None,
    })
}
