#!/usr/bin/env python3
"""Validates vectors/*.json against vectors/schema.json, with the standard library alone.

Knows the keywords that our schema uses and refuses others, so that nothing is silently unchecked.
With --self-test it also breaks a copy of each file in many ways and demands that each is noticed.
"""
import copy
import glob
import json
import os
import re
import sys

KNOWN = {"$schema", "title", "description", "$defs", "$ref", "type", "const", "enum", "pattern", "minimum",
         "maximum", "properties", "required", "additionalProperties", "items", "minItems", "maxItems", "oneOf"}
TYPES = {"object": dict, "array": list, "string": str, "boolean": bool, "integer": int}


def errors(value, schema, root, where):
    """The first thing wrong with `value`, or None."""
    unknown = set(schema) - KNOWN
    if unknown:
        sys.exit(f"schema.json uses {sorted(unknown)}, which this validator does not know")
    if "$ref" in schema:
        return errors(value, root["$defs"][schema["$ref"].rsplit("/", 1)[1]], root, where)
    if "oneOf" in schema:
        found = [errors(value, s, root, where) for s in schema["oneOf"]]
        if found.count(None) == 1:
            return None
        # The deepest complaint is the one about the alternative that was meant.
        return max((f for f in found if f), key=lambda f: f.count("/"), default=f"{where}: several alternatives fit")
    if "const" in schema:
        same = value == schema["const"] and type(value) is type(schema["const"])
        return None if same else f"{where}: must be {schema['const']!r}"
    if "enum" in schema:
        return None if value in schema["enum"] else f"{where}: must be one of {schema['enum']}"
    kind = TYPES[schema["type"]]
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        return f"{where}: must be of type {schema['type']}"
    if kind is str and "pattern" in schema and not re.search(schema["pattern"], value):
        return f"{where}: must match {schema['pattern']}"
    if kind is int and not schema["minimum"] <= value <= schema["maximum"]:
        return f"{where}: must be from {schema['minimum']} to {schema['maximum']}"
    if kind is list:
        if not schema.get("minItems", 0) <= len(value) <= schema.get("maxItems", len(value)):
            return f"{where}: has {len(value)} entries"
        return next(filter(None, (errors(v, schema["items"], root, f"{where}/{i}") for i, v in enumerate(value))), None)
    if kind is dict:
        return object_errors(value, schema, root, where)
    return None


def object_errors(value, schema, root, where):
    properties, other = schema.get("properties", {}), schema["additionalProperties"]
    for key in schema.get("required", []):
        if key not in value:
            return f"{where}: {key} is missing"
    for key, v in value.items():
        rule = properties.get(key, other)
        if rule is False:
            return f"{where}: unknown key {key}"
        found = errors(v, rule, root, f"{where}/{key}")
        if found:
            return found
    return None


def places(value, path=()):
    yield path
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, v in items:
        yield from places(v, path + (key,))


def at(value, path):
    for key in path:
        value = value[key]
    return value


def shorten(trace):
    """Two entries of every list in it are enough to break."""
    for value in trace.values() if isinstance(trace, dict) else trace if isinstance(trace, list) else ():
        shorten(value)
    if isinstance(trace, list):
        del trace[2:]


def breakages(document):
    """Copies with one thing broken: a key too many or too few, a value of another type."""
    small = copy.deepcopy(document)
    methods = {group.get("method", group.get("rule")): group for group in reversed(small["groups"])}
    small["groups"] = small["groups"][:2] if None in methods else list(methods.values())
    for group in small["groups"]:
        for test in group["tests"]:
            shorten(test["expected"])
        group["tests"], group["rows"] = group["tests"][:2], group.get("rows", [])[:1]
        if not group["rows"]:
            del group["rows"]
    for path in places(small):
        target = at(small, path)
        if isinstance(target, dict):
            broken = copy.deepcopy(small)
            at(broken, path)["surplus"] = 1
            yield path, "a key too many", broken
        if path and path[:1] != ("notes",) and isinstance(path[-1], str) and path[-1] != "alternatives":
            broken = copy.deepcopy(small)
            del at(broken, path[:-1])[path[-1]]
            yield path, "a key too few", broken
        if path:
            broken = copy.deepcopy(small)
            at(broken, path[:-1])[path[-1]] = None
            yield path, "null", broken


def main():
    folder = sys.argv[1]
    with open(os.path.join(folder, "schema.json")) as f:
        schema = json.load(f)
    files = [f for f in sorted(glob.glob(os.path.join(folder, "*.json"))) if not f.endswith("schema.json")]
    if not files:
        sys.exit(f"no vectors in {folder}")
    noticed = 0
    for name in files:
        with open(name) as f:
            document = json.load(f)
        found = errors(document, schema, schema, os.path.basename(name))
        if found:
            sys.exit(found)
        if "--self-test" not in sys.argv:
            continue
        for path, what, broken in breakages(document):
            if errors(broken, schema, schema, "") is None:
                sys.exit(f"{name}: {what} at {path} was not noticed")
            noticed += 1
    print(f"{len(files)} files valid, {noticed} breakages noticed")


if __name__ == "__main__":
    main()
