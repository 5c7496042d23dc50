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


def check_words(schema):
    """Leaves unless this validator knows each word of the schema."""
    if unknown := set(schema) - KNOWN:
        sys.exit(f"schema.json uses {sorted(unknown)}, which this validator does not know")
    inner = [schema.get("items"), schema.get("additionalProperties"), *schema.get("oneOf", []),
             *schema.get("properties", {}).values(), *schema.get("$defs", {}).values()]
    for part in inner:
        if isinstance(part, dict):
            check_words(part)


def errors(value, schema, root, where):
    """The first thing wrong with `value`, or None."""
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


def small_copy(document):
    """A copy of it with a few tests, each with a few entries, or a group of each method or rule."""
    small = copy.deepcopy(document)
    methods = {group.get("method", group.get("rule")): group for group in reversed(small["groups"])}
    small["groups"] = small["groups"][:2] if None in methods else list(methods.values())
    for group in small["groups"]:
        for test in group["tests"]:
            shorten(test["expected"])
        group["tests"], group["rows"] = group["tests"][:2], group.get("rows", [])[:1]
        if not group["rows"]:
            del group["rows"]
    return small


def breakages(small):
    """Breaks one thing after the other: a key too many or too few, a value of another type. Each is mended before
    the next."""
    for path in list(places(small)):
        target = at(small, path)
        if isinstance(target, dict):
            target["surplus"] = 1
            yield path, "a key too many"
            del target["surplus"]
        if not path:
            continue
        holder, key = at(small, path[:-1]), path[-1]
        if path[:1] != ("notes",) and isinstance(key, str) and key != "alternatives":
            del holder[key]
            yield path, "a key too few"
        holder[key] = None
        yield path, "null"
        holder[key] = target


def main():
    folder = sys.argv[1]
    with open(os.path.join(folder, "schema.json")) as f:
        schema = json.load(f)
    check_words(schema)
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
        small = small_copy(document)
        for path, what in breakages(small):
            if errors(small, schema, schema, "") is None:
                sys.exit(f"{name}: {what} at {path} was not noticed")
            noticed += 1
        if found := errors(small, schema, schema, os.path.basename(name)):
            sys.exit(f"a breakage was not mended: {found}")
    print(f"{len(files)} files valid, {noticed} breakages noticed")


if __name__ == "__main__":
    main()
