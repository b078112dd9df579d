"""Hostile GBNF grammars. The rules are those of https://github.com/ggml-org/llama.cpp/blob/master/grammars/README.md."""
from .case import ACCEPT, BOUNDED, REFUSE, Rules, flipped

rule = Rules("grammar", ".gbnf", "https://github.com/ggml-org/llama.cpp/blob/master/grammars/README.md")

JSON = r'''root   ::= object
value  ::= object | array | string | "true" | "false" | "null"
object ::= "{" ( string ":" value ("," string ":" value)* )? "}"
array  ::= "[" ( value ("," value)* )? "]"
string ::= "\"" [a-z]* "\""
'''


def takes(grammar, *texts, but=()):
    return grammar, {"matches": list(texts), "refuses": list(but)}


rule.table(ACCEPT, [
    ("plain", "rules, literals, alternatives, repetition",
     [takes('root ::= "a" b | "c"\nb ::= "b"+', "ab", "abbb", "c", but=["a", "cb", ""]),
      takes(JSON, '{"a":[true,{}]}', but=["{", "[]", '{"a":}'])]),
    ("classes", "ranges and their opposites", [takes("root ::= [a-c]+", "abc", but=["d", ""]), takes("root ::= [^\\n]", "x", but=["\n"]),
                                               takes("root ::= [一-龥]", "你", but=["a"])]),
    ("counts", "{m}, {m,}, {m,n}", [takes('root ::= "a"{2}', "aa", but=["a", "aaa"]), takes('root ::= "a"{2,}', "aa", "aaaaa", but=["a"]),
                                    takes('root ::= "a"{0,2}', "", "aa", but=["aaa"])]),
    ("comments", "comments and lines within groups", takes('# first\nroot ::= (\n  "a" # here\n  | "b"\n)\n', "a", "b", but=["c"])),
    ("escapes", "escapes of literals", takes(r'root ::= "\x41\u00e9\n\"\\"', 'Aé\n"\\', but=["A"])),
    ("recursion", "rules may contain themselves", takes('root ::= "[" root? "]"', "[]", "[[[]]]", but=["[", "]"])),
    ("any", "a dot is any character", takes("root ::= . .", "ab", "你好", but=["a", "abc"])),
])

rule.table(REFUSE, [
    ("no-root", "the rule root is the starting point", ['x ::= "a"', "", "# only a comment\n"]),
    ("rule-unknown", "a rule that is named is defined", ["root ::= x", 'root ::= "a" | x y\nx ::= "b"']),
    ("not-closed", "literals, classes and groups end", ['root ::= "a', "root ::= [a", 'root ::= ("a"', 'root ::= (("a")', 'root ::= "a"{2']),
    ("no-definition", "a rule is defined by ::=", ['root = "a"', 'root "a"', "::= x", 'root : "a"']),
    ("counts-wrong", "a count is a number, or two of them", ['root ::= "a"{x}', 'root ::= "a"{-1}', 'root ::= "a"{}']),
    ("nothing-to-repeat", "a repetition follows an item", ["root ::= *", "root ::= +", "root ::= ( | ?)", "root ::= {3}"]),
    ("left-recursion", "llama.cpp: left recursion is not supported", ['root ::= root "a" | "b"', 'root ::= x\nx ::= y "a" | "a"\ny ::= x']),
    ("escape-unknown", "escapes are those of the document", [r'root ::= "\q"', r'root ::= "\x4"', r'root ::= "\u12"']),
])

rule.table(BOUNDED, [
    ("counts-odd", "the size of a count is not limited", ['root ::= "a"{3,2}', 'root ::= "a"{,}', 'root ::= "a"{99999999999999999999}', 'root ::= "a"{0,4294967295}',
                                                          'root ::= ("a"{0,1000}){0,1000}', 'root ::= (("a"{0,999}){0,999}){0,999}']),
    ("range-backwards", "a range that ends before it begins is not mentioned", ["root ::= [b-a]", r"root ::= [\uffff-a]"]),
    ("empty-items", "empty classes and literals are not mentioned", ["root ::= []", 'root ::= ""', 'root ::= ("")*', "root ::= ()", "root ::="]),
    # llama.cpp #18988: nested repetition; #26600: groups; #26602: chains of rules.
    ("nested-repetition", "repetition of what may be empty", ['root ::= ("a"*)*', 'root ::= (("a"*)*)*', 'root ::= (("a"?)+ "b"?)*']),
    ("no-text", "a grammar without any text is not mentioned", ['root ::= "a" root', "root ::= x\nx ::= x x", "root ::= root"]),
    ("ambiguous", "ambiguity is not limited", 'root ::= "a" root | "a" root "b" | "a" root "c" | ""'),
    ("twice", "a rule that is defined twice is not mentioned", 'root ::= "a"\nroot ::= "b"'),
    ("not-utf8", "the encoding is not mentioned", [b'root ::= "\xff"', b"root ::= [\xc3]", b'root\0 ::= "a"']),
])


@rule("deep", BOUNDED, "how deeply groups nest is not limited")
def _(random):
    depth = random.pick([200, 1000, 13000, 60000])
    return b"root ::= " + b"(" * depth + b'"a"' + random.pick([b")", b")*", b")+"]) * depth


@rule("chain", BOUNDED, "the number of rules is not limited")
def _(random):
    count = random.pick([100, 5000, 20000])
    return "\n".join(["root ::= r0"] + [f"r{i} ::= r{i + 1}" for i in range(count)] + [f'r{count} ::= "a"']).encode()


@rule("doubling", BOUNDED, "rules that call the next one twice")
def _(random):
    count = random.pick([20, 60, 1000])
    return "\n".join(["root ::= r0"] + [f"r{i} ::= r{i + 1} r{i + 1} | r{i + 1}" for i in range(count)] + [f'r{count} ::= "a"?']).encode()


@rule("long", BOUNDED, "the length of an item is not limited")
def _(random):
    return ("root ::= " + random.pick(['"' + "a" * 100000 + '"', "[" + "ab" * 20000 + "]", '"a"? ' * 2000, '"a" | ' * 2000 + '"b"'])).encode()


@rule("flipped", BOUNDED, "bits of a right grammar flipped")
def _(random):
    return flipped(random, JSON.encode(), 6)


@rule("pieces", BOUNDED, "pieces of grammars in any order")
def _(random):
    pieces = ["root", " ::= ", "x", '"a"', '"', "[", "]", "a-z", "^", "(", ")", "|", "*", "+", "?", "{2}", "{1,}", "{", "}", ",", "\n", "#", "\\n",
              "\\x41", ".", "<", ">", "!", "-", "9", "root ::= ", "x ::= "]
    return ("root ::= " + "".join(random.pick(pieces) for _ in range(random.between(1, 30)))).encode()
