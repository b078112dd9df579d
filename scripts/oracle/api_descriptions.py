#!/usr/bin/env python3
"""Writes tests/data/api/{openai,ollama,anthropic}.json: the published descriptions of the answers of three APIs, as JSON schemas.

Usage: scripts/oracle/api_descriptions.py OPENAI OLLAMA ANTHROPIC OUT
  OPENAI     a checkout of github.com/openai/openai-openapi (openapi.json)
  OLLAMA     a checkout of github.com/ollama/ollama: docs/openapi.yaml for the types, api/types.go for the fields that it lacks and for
             those that its server always sends (a field without `omitempty`)
  ANTHROPIC  the package @anthropic-ai/sdk of npm, unpacked: optional fields. Types come from the package `anthropic` of PyPI.
  OUT        tests/data/api
Needs the packages anthropic and PyYAML of PyPI; both checkouts may be bare. Texts and examples are left out, `allOf` is resolved, and an
object takes no field that its description lacks.
"""
import glob
import importlib.metadata
import json
import os
import re
import subprocess
import sys

OPENAI = ["CreateChatCompletionResponse", "CreateChatCompletionStreamResponse", "CreateCompletionResponse", "CreateEmbeddingResponse",
          "ListModelsResponse", "Model", "ErrorResponse", "Response", "ResponseStreamEvent"]
# Schema of docs/openapi.yaml: struct of api/types.go.
OLLAMA = {"GenerateResponse": "GenerateResponse", "GenerateStreamEvent": "GenerateResponse", "ChatResponse": "ChatResponse",
          "ChatStreamEvent": "ChatResponse", "EmbedResponse": "EmbedResponse", "ListResponse": "ListResponse", "ModelSummary": "ListModelResponse",
          "PsResponse": "ProcessResponse", "Ps": "ProcessModelResponse", "ShowResponse": "ShowResponse", "StatusEvent": "ProgressResponse",
          "Logprob": "Logprob", "TokenLogprob": "TokenLogprob", "ToolCall": "ToolCall", "VersionResponse": None, "ErrorResponse": None}
ANTHROPIC = ["Message", "RawMessageStreamEvent", "MessageTokensCount", "ErrorResponse"]
TEXTS = ("description", "example", "examples", "title", "deprecated", "default", "discriminator")


def plain(x):
    """A schema without what only readers use."""
    if isinstance(x, list):
        return [plain(v) for v in x]
    if not isinstance(x, dict):
        return x
    out = {}
    for k, v in x.items():
        if k == "properties":
            out[k] = {name: plain(one) for name, one in v.items()}
        elif k == "$ref":
            out[k] = "#/$defs/" + v.rsplit("/", 1)[1]
        elif k not in TEXTS and not k.startswith(("x-", "$rec")):
            out[k] = plain(v)
    if out.pop("nullable", False) is True:  # of OpenAPI 3.0
        return {"anyOf": [out, {"type": "null"}]}
    return out


def references(x):
    if isinstance(x, dict):
        for k, v in x.items():
            if k == "$ref":
                yield v.rsplit("/", 1)[1]
            else:
                yield from references(v)
    elif isinstance(x, list):
        for v in x:
            yield from references(v)


def merged(x, schemas):
    """`allOf` of objects as one object, here and below."""
    if isinstance(x, list):
        return [merged(v, schemas) for v in x]
    if not isinstance(x, dict):
        return x
    if "allOf" not in x:
        return {k: merged(v, schemas) for k, v in x.items()}
    out = {"type": "object", "properties": {}, "required": []}
    for part in x["allOf"] + [{k: v for k, v in x.items() if k != "allOf"}]:
        while "$ref" in part:
            part = schemas[part["$ref"].rsplit("/", 1)[1]]
        part = merged(part, schemas)
        assert not {"anyOf", "oneOf"} & part.keys(), part
        out["properties"].update(part.get("properties", {}))
        out["required"] += part.get("required", [])
    return out


def closed(x):
    if isinstance(x, list):
        return [closed(v) for v in x]
    if not isinstance(x, dict):
        return x
    out = {k: {n: closed(v) for n, v in one.items()} if k == "properties" else closed(one) for k, one in x.items()}
    if out.get("properties"):
        out.setdefault("additionalProperties", False)
    return out


def excerpt(schemas, roots):
    out, todo = {}, list(roots)
    while todo:
        name = todo.pop()
        if name not in out:
            out[name] = closed(merged(schemas[name], schemas))
            todo += references(out[name])
    return out


def text_of(folder, path):
    return subprocess.run(["git", "-C", folder, "show", f"HEAD:{path}"], capture_output=True, text=True, check=True).stdout


def commit(folder):
    return subprocess.run(["git", "-C", folder, "rev-parse", "HEAD"], capture_output=True, text=True, check=True).stdout[:12]


def openai(folder):
    description = json.loads(text_of(folder, "openapi.json"))
    schemas = {name: plain(s) for name, s in description["components"]["schemas"].items()}
    return f"openai/openai-openapi {commit(folder)}, openapi.json {description['info']['version']}, MIT", excerpt(schemas, OPENAI)


def go_fields(source, struct):
    """name: (Go's type, always sent). Go sends structs always, with `omitempty`, too."""
    body = re.search(rf"^type {struct} struct {{\n(.*?)^}}", source, re.M | re.S).group(1)
    out = {}
    for line in body.splitlines():
        if embedded := re.fullmatch(r"\t([A-Z]\w+)", line):
            out.update(go_fields(source, embedded.group(1)))
        elif field := re.search(r'^\t\w+\s+(\S+)\s+`json:"(\w+)(,omitempty)?', line):
            out[field.group(2)] = (field.group(1), not field.group(3) or field.group(1) in ("ModelDetails", "time.Time"))
    return out


def go_schema(kind):
    kind = kind.lstrip("*")
    if kind.startswith("[]"):
        return {"type": "array", "items": go_schema(kind[2:])}
    if kind in OLLAMA:
        return {"$ref": f"#/$defs/{kind}"}
    if kind == "model.Capability":
        return {"type": "string"}
    numbers = dict.fromkeys(("int", "int64", "uint64", "time.Duration"), {"type": "integer"})
    return {"string": {"type": "string"}, "bool": {"type": "boolean"}, "time.Time": {"type": "string", "format": "date-time"},
            "float64": {"type": "number"}, "float32": {"type": "number"}, **numbers}.get(kind, {})


def with_go(schema, fields):
    """Adds the fields that a struct has, and demands those that are always sent."""
    known = schema.setdefault("properties", {})
    for name, (kind, _) in fields.items():
        known.setdefault(name, go_schema(kind))
    schema["required"] = [name for name, (_, always) in fields.items() if always]


def ollama(folder):
    import yaml
    description = yaml.safe_load(text_of(folder, "docs/openapi.yaml"))
    schemas = {name: plain(s) for name, s in description["components"]["schemas"].items()}
    source = text_of(folder, "api/types.go")
    for name, struct in OLLAMA.items():
        if struct:
            with_go(schemas[name], go_fields(source, struct))
    for name in ("ChatResponse", "ChatStreamEvent"):
        with_go(schemas[name]["properties"]["message"], go_fields(source, "Message"))
    with_go(schemas["ToolCall"]["properties"]["function"], go_fields(source, "ToolCallFunction"))
    for name in ("ModelSummary", "Ps", "ShowResponse"):
        with_go(schemas[name]["properties"]["details"], go_fields(source, "ModelDetails"))
    # The older path, and two objects of one field, which the server writes without a struct.
    schemas["EmbeddingResponse"] = {"type": "object", "properties": {}}
    with_go(schemas["EmbeddingResponse"], go_fields(source, "EmbeddingResponse"))
    schemas["VersionResponse"]["required"], schemas["ErrorResponse"]["required"] = ["version"], ["error"]
    return f"ollama/ollama {commit(folder)}, docs/openapi.yaml and api/types.go, MIT", excerpt(schemas, [*OLLAMA, "EmbeddingResponse"])


def anthropic(folder):
    import anthropic.types
    import pydantic
    optional = {}  # by interface
    for path in glob.glob(os.path.join(folder, "resources/**/*.d.ts"), recursive=True):
        with open(path, encoding="utf-8") as f:
            for name, body in re.findall(r"^ *export interface (\w+)[^{\n]*\{\n(.*?)^ *\}", f.read(), re.M | re.S):
                optional.setdefault(name, set()).update(re.findall(r"^ +(\w+)\?:", body, re.M))
    schemas = {}
    for root in ANTHROPIC:
        schema = pydantic.TypeAdapter(getattr(anthropic.types, root)).json_schema(mode="serialization")
        schemas.update(schema.pop("$defs", {}))
        schemas[root] = schema
    schemas = {name: plain(s) for name, s in schemas.items()}
    for name, s in schemas.items():
        s.pop("additionalProperties", None)  # the client keeps fields that it does not know
        if "properties" in s:
            s["required"] = [p for p in s["properties"] if p not in optional.get(name, ())]
    return (f"anthropic {importlib.metadata.version('anthropic')} of PyPI, @anthropic-ai/sdk {version(folder)} of npm, Apache-2.0",
            excerpt(schemas, ANTHROPIC))


def version(folder):
    with open(os.path.join(folder, "package.json"), encoding="utf-8") as f:
        return json.load(f)["version"]


def write(path, origin, schemas):
    lines = [f"{json.dumps(name)}: {json.dumps(schemas[name], separators=(',', ':'))}" for name in sorted(schemas)]
    with open(path, "w", encoding="utf-8") as f:
        f.write(f'{{"origin": {json.dumps(origin)},\n"$defs": {{\n' + ",\n".join(lines) + "\n}}\n")


def main():
    for name, make, folder in (("openai", openai, sys.argv[1]), ("ollama", ollama, sys.argv[2]), ("anthropic", anthropic, sys.argv[3])):
        write(os.path.join(sys.argv[4], name + ".json"), *make(folder))


if __name__ == "__main__":
    main()
