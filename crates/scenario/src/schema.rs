// SPDX-License-Identifier: MIT OR Apache-2.0
//! The JSON Schema of scenario files, for editors: made from the types, with their documentation as help.
//! Variants have the same keys as the file, all of them optional.

use super::Scenario;
use serde_json::{Map, Value, json};

/// The schema of a scenario file (draft 2020-12).
pub fn schema() -> Value {
    let mut root = schemars::schema_for!(Scenario).to_value();
    let partial = partial(&root);
    let Some(file) = root.as_object_mut() else { return root };
    file.insert("title".to_owned(), "Floodline scenario".into());
    let mut variant = match file.get("properties") {
        Some(Value::Object(properties)) => properties.clone(),
        _ => Map::new(),
    };
    variant.remove("name");
    variant.values_mut().for_each(refer_to_partial);
    variant.insert(
        "unset".to_owned(),
        json!({
            "description": "Keys of the base that this variant removes, e.g. \"machine.sysctl.vm.dirty_bytes\".",
            "type": "array",
            "items": { "type": "string" },
        }),
    );
    let variants = json!({
        "description": "Variants by name: each is laid over the rest of the file.",
        "type": "object",
        "additionalProperties": { "type": "object", "properties": variant, "additionalProperties": false },
    });
    if let Some(Value::Object(properties)) = file.get_mut("properties") {
        properties.insert("variants".to_owned(), variants);
    }
    if let Some(Value::Object(definitions)) = file.get_mut("$defs") {
        definitions.extend(partial);
    }
    root
}

/// Every definition once more, with nothing required.
fn partial(root: &Value) -> Map<String, Value> {
    let Some(Value::Object(definitions)) = root.get("$defs") else { return Map::new() };
    let optional = |(name, definition): (&String, &Value)| {
        let mut definition = definition.clone();
        // Where a key names the kind of the table (steps, presets) it stays required.
        if definition.get("oneOf").is_none()
            && let Some(definition) = definition.as_object_mut()
        {
            definition.remove("required");
        }
        refer_to_partial(&mut definition);
        (format!("{PARTIAL}{name}"), definition)
    };
    definitions.iter().map(optional).collect()
}

const PARTIAL: &str = "Partial";

fn refer_to_partial(value: &mut Value) {
    match value {
        Value::Object(object) => {
            for (key, inner) in object {
                match (key.as_str(), &mut *inner) {
                    ("$ref", Value::String(target)) => {
                        *target = target.replace("#/$defs/", &format!("#/$defs/{PARTIAL}"));
                    }
                    _ => refer_to_partial(inner),
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(refer_to_partial),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_reference_is_defined() {
        fn references(value: &Value, found: &mut Vec<String>) {
            match value {
                Value::Object(object) => {
                    for (key, inner) in object {
                        match inner {
                            Value::String(target) if key == "$ref" => found.push(target.clone()),
                            inner => references(inner, found),
                        }
                    }
                }
                Value::Array(items) => items.iter().for_each(|item| references(item, found)),
                _ => {}
            }
        }
        let schema = schema();
        let mut found = Vec::new();
        references(&schema, &mut found);
        assert!(found.len() > 50);
        for target in found {
            let pointer = target.strip_prefix('#').unwrap();
            assert!(schema.pointer(pointer).is_some(), "{target}");
        }
    }

    #[test]
    fn keys_have_help_and_only_the_file_itself_requires_any() {
        let schema = schema();
        let at = |pointer: &str| schema.pointer(pointer).unwrap_or_else(|| panic!("{pointer}"));
        assert_eq!(at("/required"), &json!(["name", "summary", "machine", "workload"]));
        assert_eq!(at("/$defs/Machine/properties/memory/description"), "Memory of the machine.");
        assert_eq!(at("/$defs/Machine/required"), &json!(["memory"]));
        assert!(schema.pointer("/$defs/PartialMachine/required").is_none());
        let variant = "/properties/variants/additionalProperties/properties";
        assert_eq!(at(&format!("{variant}/machine/$ref")), "#/$defs/PartialMachine");
        assert_eq!(at(&format!("{variant}/unset/type")), "array");
        assert_eq!(at("/additionalProperties"), false);
    }
}
