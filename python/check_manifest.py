# SPDX-License-Identifier: MIT OR Apache-2.0
"""Checks the RayJob of a manifest against the schema that the KubeRay operator registers: every field is known there, has
the right type, and none that is required is missing.

    python check_manifest.py ray.io_rayjobs.yaml ray-preflight.yaml

The schema is config/crd/bases/ray.io_rayjobs.yaml of the Go module github.com/ray-project/kuberay/ray-operator.
"""

import sys
from typing import Any

import yaml

TYPES: dict[str, Any] = {
    "object": dict,
    "array": list,
    "string": str,
    "integer": int,
    "boolean": bool,
    "number": (int, float),
}


def misfits(value: Any, schema: dict[str, Any], where: str) -> list[str]:
    """Where a value does not follow its schema."""
    if schema.get("x-kubernetes-preserve-unknown-fields"):
        return []
    if schema.get("x-kubernetes-int-or-string"):
        return [] if isinstance(value, (int, str)) else [f"{where} is neither a number nor text"]
    kind = schema.get("type")
    is_flag = isinstance(value, bool)
    if kind in TYPES and (not isinstance(value, TYPES[kind]) or (is_flag and kind != "boolean")):
        return [f"{where} is not of type {kind}"]
    wrong = []
    if "enum" in schema and value not in schema["enum"]:
        wrong.append(f"{where} is none of {schema['enum']}")
    if kind == "array":
        for at, item in enumerate(value):
            wrong += misfits(item, schema["items"], f"{where}[{at}]")
    if kind == "object":
        known, others = schema.get("properties", {}), schema.get("additionalProperties")
        wrong += [f"{where}.{key} is missing" for key in schema.get("required", []) if key not in value]
        for key, item in value.items():
            if key in known:
                wrong += misfits(item, known[key], f"{where}.{key}")
            elif isinstance(others, dict):
                wrong += misfits(item, others, f"{where}.{key}")
            elif known and where:
                wrong.append(f"{where}.{key} is not known")
    return wrong


def main(schema: str, manifest: str) -> list[str]:
    with open(schema) as file:
        definition = yaml.safe_load(file)
    with open(manifest) as file:
        jobs = [one for one in yaml.safe_load_all(file) if one["kind"] == definition["spec"]["names"]["kind"]]
    versions = {version["name"]: version["schema"]["openAPIV3Schema"] for version in definition["spec"]["versions"]}
    wrong = [] if jobs else [f"{manifest} has no {definition['spec']['names']['kind']}"]
    for job in jobs:
        version = job["apiVersion"].split("/")[1]
        wrong += misfits(job, versions[version], "") if version in versions else [f"version {version} is not known"]
    print(f"{manifest}: {len(jobs)} checked, {len(wrong)} complaints")
    return wrong


if __name__ == "__main__":
    complaints = main(*sys.argv[1:])
    print("\n".join(complaints))
    sys.exit(bool(complaints))
