"""Hostile JSON schemas. The rules are those of JSON Schema 2020-12 (https://json-schema.org/draft/2020-12)."""
import json

from .case import ACCEPT, BOUNDED, REFUSE, Rules, flipped

rule = Rules("schema", ".json", "https://json-schema.org/draft/2020-12/json-schema-validation")


def compact(value):
    return json.dumps(value, separators=(",", ":"))


def takes(schema, *values, but=()):
    return json.dumps(schema), {"matches": [compact(v) for v in values], "refuses": [compact(v) for v in but]}


def rows(*schemas):
    return [s if isinstance(s, str) else json.dumps(s) for s in schemas]


rule.table(ACCEPT, [
    ("plain", "objects with properties", takes({"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "string"}},
                                                "required": ["a"], "additionalProperties": False}, {"a": 1}, {"a": -5, "b": "x"}, but=[{}, {"a": "x"}, []])),
    ("boolean", "true is a schema", takes(True, 1, None, {"a": [1]})),
    ("types", "a list of types", takes({"type": ["null", "boolean"]}, None, True, False, but=[1, "x"])),
    ("bounds", "bounds of numbers", [takes({"type": "integer", "minimum": 3, "maximum": 120}, 3, 77, 120, but=[2, 121, -5]),
                                     takes({"type": "integer", "exclusiveMinimum": 0, "maximum": 9}, 1, 9, but=[0, 10])]),
    ("texts", "lengths count characters", takes({"type": "string", "minLength": 2, "maxLength": 3}, "ab", "abc", but=["a", "abcd"])),
    ("enum", "enum and const", [takes({"enum": [1, "a", None]}, 1, "a", None, but=[2, "b"]), takes({"const": "x"}, "x", but=["y", 1])]),
    ("arrays", "items and their number", takes({"type": "array", "items": {"type": "null"}, "minItems": 1, "maxItems": 2}, [None], [None, None],
                                               but=[[], [1], [None] * 3])),
    ("references", "$ref to a definition, which may be recursive",
     takes({"$ref": "#/$defs/t", "$defs": {"t": {"type": "array", "items": {"$ref": "#/$defs/t"}}}}, [], [[], [[]]], but=[1, [1]])),
    ("pattern", "a pattern of ECMA-262", takes({"type": "string", "pattern": "^[a-c]{2}$"}, "ab", but=["a", "abc", "ad"])),
    ("any-of", "anyOf: at least one", takes({"anyOf": [{"type": "integer"}, {"type": "null"}]}, 1, None, but=["x"])),
])

rule.table(REFUSE, [
    ("not-json", "a schema is a JSON document", ["", "{", '{"type":}', "[1,", "{'type':'null'}", '{"a":1}}', "nul", '{"type":"null"', "\0"]),
    ("not-a-schema", "a schema is an object or a boolean", rows([], 1, "null", [{"type": "null"}])),
    ("type", "type: one of seven names, or a list of them", rows({"type": "strin"}, {"type": 1}, {"type": ["null", "nul"]}, {"type": {}})),
    ("lengths", "minLength, maxItems and their like: integers of 0 and more",
     rows({"minLength": -1}, {"maxLength": "3"}, {"minItems": 1.5}, {"maxItems": -2}, {"minProperties": None}, {"maxProperties": []})),
    ("numbers", "minimum and its like: numbers", rows({"minimum": "1"}, {"maximum": None}, {"exclusiveMinimum": []}, {"exclusiveMaximum": {}})),
    ("multiple-of", "multipleOf: a number above 0", rows({"type": "integer", "multipleOf": 0}, {"multipleOf": -1}, {"multipleOf": "2"})),
    ("enum-no-list", "enum: a list", rows({"enum": 1}, {"enum": {"a": 1}}, {"enum": "abc"})),
    ("required", "required: a list of texts", rows({"required": "a"}, {"required": [1]}, {"required": {"a": True}})),
    ("subschemas", "the values of applicators are schemas", rows({"items": 3}, {"properties": []}, {"properties": {"a": 1}}, {"anyOf": {}},
                                                                 {"allOf": [1]}, {"not": "x"}, {"additionalProperties": 7})),
    ("any-of-empty", "anyOf, allOf and oneOf: lists that are not empty", rows({"anyOf": []}, {"oneOf": []})),
    ("reference", "$ref: the address of a schema", rows({"$ref": "#/$defs/missing"}, {"$ref": 1}, {"$ref": "#/no/such/place"})),
    ("reference-elsewhere", "a reader need not fetch other documents; gimbal and llama.cpp do not ask a network",
     rows({"$ref": "https://example.com/schema.json"}, {"$ref": "file:///etc/passwd"}, {"$ref": "/etc/passwd"})),
    ("pattern-wrong", "pattern: a regular expression of ECMA-262", rows(*[{"type": "string", "pattern": p} for p in ("(", "[", "a{2", ")", "*a", "^+[a-z]$", "(?<", "\\")
                                                                    if p != "a{2"], {"pattern": 1})),
])

rule.table(BOUNDED, [
    ("contradiction", "a schema without any value is a schema", rows({"type": "string", "minLength": 5, "maxLength": 2}, False, {"not": {}},
                                                                     {"type": "integer", "minimum": 5, "maximum": 3}, {"allOf": [{"type": "null"}, {"type": "string"}]})),
    ("ring", "a schema must not refer to itself endlessly", rows(
        {"$ref": "#"}, {"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}}, {"allOf": [{"$ref": "#"}]}, {"not": {"$ref": "#"}})),
    ("large-numbers", "the size of a number is not limited", rows(
        {"type": "string", "maxLength": 2**31}, {"type": "array", "minItems": 10**9}, {"minLength": 10**30}, {"type": "integer", "minimum": -10**300, "maximum": 10**300},
        {"type": "number", "multipleOf": 1e-300}, {"type": "integer", "multipleOf": 2**61 - 1}, {"minProperties": 4 * 10**9}, {"maxItems": 1e308})),
    ("pattern-large", "what a pattern costs is not limited", rows(*[{"type": "string", "pattern": p} for p in (
        "(a{1,1000}){1,1000}", "^(a+)+$", "(((a{0,99}){0,99}){0,99}){0,99}", "^{2}times$", "(?=a)b", "\\p{L}+", "(a|aa|aaa){1000}", "[\ud800-\udfff]", ".{60000}x",
        "(" * 5000 + "a" + ")" * 5000)])),
    ("twice", "JSON: what a second member with the same name means is not said", ['{"type":"null","type":"string"}', '{"properties":{"a":{},"a":{"type":"null"}}}']),
    ("not-utf8", "JSON is UTF-8", [b'{"const":"\xff"}', b'\xff\xfe{}', b'{"type":"null"}\0', '{"const":"\\ud800"}']),
    ("odd-json", "JSON texts that readers take differently", ["{}\n\n", "\ufeff{}", "true ", '{"minimum":1e400}', '{"const":-0}', "/* */{}", '{"a":1,}', "NaN"]),
])


def text_of(schema):
    return schema.encode()


@rule("deep", BOUNDED, "how deeply schemas nest is not limited")
def _(random):
    depth = random.pick([100, 1000, 50000])
    left, right = random.pick([('{"items":', "}"), ('{"not":', "}"), ('{"anyOf":[', "]}"), ('{"properties":{"a":', "}}"), ('{"allOf":[{"minimum":1},', "]}"),
                               ('{"additionalProperties":', "}")])
    return text_of(left * depth + "{}" + right * depth)


@rule("chain", BOUNDED, "the number of references is not limited")
def _(random):
    count = random.pick([100, 2000, 20000])
    defs = ",".join(f'"d{i}":{{"$ref":"#/$defs/d{i + 1}"}}' for i in range(count))
    return text_of(f'{{"$ref":"#/$defs/d0","$defs":{{{defs},"d{count}":{{"type":"null"}}}}}}')


@rule("multiplying", BOUNDED, "what combinations cost is not limited")
def _(random):
    count = random.pick([10, 40, 300])
    return text_of(random.pick([
        json.dumps({"allOf": [{"anyOf": [{"minimum": i}, {"maximum": 1000 + i}]} for i in range(count)]}),
        json.dumps({"oneOf": [{"minimum": i, "maximum": 2 * i} for i in range(count)]}),
        json.dumps({"allOf": [{"multipleOf": i} for i in range(2, count)]}),
        json.dumps({"patternProperties": {f"{i}[a-z]{{0,50}}x": {} for i in range(count)}}),
        json.dumps({"oneOf": [{"pattern": f"a.{{{i}}}b"} for i in range(count)]}),
        json.dumps({"type": "array", "contains": {"const": 1}, "minContains": count, "maxItems": 10 * count})]))


@rule("wide", BOUNDED, "the number of members is not limited")
def _(random):
    count = random.pick([1000, 5000])
    return text_of(random.pick([json.dumps({"enum": [f"v{i}" for i in range(count)]}), json.dumps({"required": [f"k{i}" for i in range(count)]}),
                                json.dumps({"properties": {f"k{i}": {"type": "integer"} for i in range(count)}}),
                                json.dumps({"type": "array", "uniqueItems": True, "items": {"enum": list(range(count))}})]))


@rule("flipped", BOUNDED, "bits of a right schema flipped")
def _(random):
    return flipped(random, takes({"type": "object", "properties": {"a": {"type": "integer", "minimum": 1}, "b": {"pattern": "^a+$"}}, "required": ["a"]})[0].encode(), 6)


@rule("pieces", BOUNDED, "keywords with values of any kind")
def _(random):
    words = ["type", "enum", "const", "minimum", "maxLength", "pattern", "items", "prefixItems", "properties", "required", "anyOf", "allOf", "oneOf", "not",
             "if", "then", "else", "$ref", "$defs", "format", "additionalProperties", "minItems", "contains", "uniqueItems", "multipleOf", "propertyNames"]

    def value(depth):
        kind = random.below(9 if depth else 6)
        if kind > 5:
            return {random.pick(words): value(depth - 1) for _ in range(random.below(4))} if kind > 6 else [value(depth - 1) for _ in range(random.below(4))]
        return random.pick([None, True, random.below(50) - 9, "string", "#", "^a", 1.5, "object", "integer", "#/$defs/a", "array", [], {}])
    return text_of(json.dumps({random.pick(words): value(3) for _ in range(random.between(1, 5))}))
