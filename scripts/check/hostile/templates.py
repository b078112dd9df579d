"""Hostile chat templates. The rules are those of Jinja 3.1 in its immutable sandbox, as transformers sets it up.

A template is rendered with: messages = [{"role": "user", "content": "hi"}], bos_token = "<s>", n = 3, and no other variable."""
from .case import ACCEPT, BOUNDED, REFUSE, Rules, encoded, flipped

rule = Rules("template", ".jinja", "https://jinja.palletsprojects.com/en/stable/templates/")

CHATML = ("{% for m in messages %}{{ '<|im_start|>' + m['role'] + '\\n' + m.content + '<|im_end|>' + '\\n' }}{% endfor %}"
          "{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}")


def shows(source, text):
    return source, {"renders": text}


rule.table(ACCEPT, [
    ("chatml", "loops, attributes, items and concatenation", shows(CHATML, "<|im_start|>user\nhi<|im_end|>\n")),
    ("comment", "comments are left out", shows("a{# {{ 1/0 }} {% nonsense %} #}b", "ab")),
    ("raw", "raw blocks are not read", shows("{% raw %}{{ x }}{% endraw %}", "{{ x }}")),
    ("delimiter-in-string", "delimiters within a string are text", [shows("{{ '}}' }}", "}}"), shows('{{ "%}" }}', "%}")]),
    ("whitespace-control", "a minus sign takes the whitespace away", shows("a  {{- 1 -}}  b", "a1b")),
    ("undefined", "printing an undefined variable gives nothing", shows("[{{ missing }}]", "[]")),
    ("namespace", "a namespace keeps what a loop sets",
     shows("{% set ns = namespace(x=0) %}{% for i in range(4) %}{% set ns.x = ns.x + i %}{% endfor %}{{ ns.x }}", "6")),
    ("macro", "macros have arguments", shows("{% macro f(a, b=2) %}{{ a + b }}{% endmacro %}{{ f(1) }}", "3")),
    ("empty", "a template may be empty", shows("", "")),
    ("text", "text is text, in any script", [shows("Grüße 你好 \u202e", "Grüße 你好 \u202e"), shows("}} %} #}", "}} %} #}")]),
    ("filters", "filters chain", shows("{{ [3, 1, 2]|sort|join(',')|replace('2', 'x') }}", "1,x,3")),
])

rule.table(REFUSE, [
    ("tag-not-closed", "each block tag is closed", ["{% if n %}x", "{% for i in range(3) %}", "{% macro f() %}", "{% raw %}x", "{% if n"]),
    ("expression-not-closed", "an expression ends with }}", ["{{ n", "{{ 'a }}", "{{ (n }}", "{{ [1, 2 }}", "{{ {'a': 1 }}"]),
    ("comment-not-closed", "a comment ends with #}", "{# never"),
    ("tag-out-of-place", "else, elif and end tags belong to a block", ["{% endif %}", "{% else %}", "{% endfor %}", "{% elif n %}"]),
    ("tag-unknown", "tags are those of the language", ["{% frobnicate %}", "{% exec 'id' %}", "{% %}"]),
    ("filter-unknown", "filters and tests are those of the environment", ["{{ n|no_such }}", "{{ n is no_such }}"]),
    ("undefined-used", "an attribute of an undefined value is an error", ["{{ missing.a.b }}", "{{ missing() }}", "{{ missing + 1 }}"]),
    ("type-error", "operators and functions check their operands", ["{{ 1 / 0 }}", "{{ 1 // 0 }}", "{{ 'a' - 1 }}", "{{ n() }}",
                                                                     "{{ 1 % 0 }}", "{{ range('a') }}"]),
    ("reads-files", "no loader: a template reads no other file", [f"{{% {tag} %}}" for tag in (
        "include '/etc/passwd'", "extends '/etc/passwd'", "import '/etc/passwd' as x", "from '/proc/self/environ' import x")]),
    # Server-side template injection: CVE-2024-34359 (llama-cpp-python), CVE-2026-5760 (SGLang), CVE-2024-56326 (Jinja).
    ("sandbox-attributes", "the sandbox gives no attribute of Python's objects", [
        "{{ ''.__class__.__mro__[1].__subclasses__() }}", "{{ cycler.__init__.__globals__.os.popen('id').read() }}",
        "{{ self.__init__.__globals__.__builtins__.open('/etc/passwd').read() }}", "{{ lipsum.__globals__['os'].system('id') }}",
        "{{ (''|attr('__class__')|attr('__mro__'))[0]() }}", "{{ messages.__class__.__base__.__subclasses__()[80] }}",
        "{{ namespace.__init__.__globals__['sys'].modules.os.system('id') }}", "{{ joiner.__init__.__globals__.os.environ() }}",
        "{% for c in [].__class__.__base__.__subclasses__() %}{{ c }}{% endfor %}",
        "{{ messages[0].content.__class__.__init__.__globals__.os.popen('id') }}"]),
    ("sandbox-format", "str.format in the sandbox gives no attribute of Python's objects", [
        "{{ '{0.__class__.__init__.__globals__}'.format(n) }}", "{{ '{0.__class__.__mro__[1]}'.format('') }}",
        "{% set f = '{0.__class__.__init__.__globals__}'.format %}{{ f(n) }}"]),
    ("sandbox-immutable", "the immutable sandbox changes no list and no map", [
        "{{ messages.append(1) }}", "{{ messages.clear() }}", "{{ messages[0].update({'role': 'system'}) }}", "{{ messages.pop() }}"]),
    ("range-limit", "range() has at most 100,000 items in the sandbox", ["{{ range(100001)|list }}", "{{ range(10**9)|length }}",
                                                                         "{% for i in range(999999999) %}{% endfor %}"]),
    ("raised", "raise_exception() ends the rendering", "{{ raise_exception('no') }}"),
])

rule.table(BOUNDED, [
    ("endless", "loops within loops: no limit is in the document", [
        "{% for i in range(99999) %}{% for j in range(99999) %}{% endfor %}{% endfor %}",
        "{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}", "{% macro f(x) %}{{ f(x + x) }}{% endmacro %}{{ f('aaaa') }}",
        "{% for i in range(99999) %}{{ 'a' * 99999 }}{% endfor %}"]),
    ("large", "the size of a value has no limit in the document", [
        "{{ 'a' * 999999999999 }}", "{{ [0] * 999999999 }}", "{{ 9 ** 9 ** 9 }}", "{{ 'a'|center(2000000000) }}",
        "{{ '%2000000000d' % 1 }}", "{{ '{:2000000000}'.format(1) }}", "{{ 'x'|indent(1000000000) }}",
        "{% set ns = namespace(x='0123456789') %}{% for i in range(99) %}{% set ns.x = ns.x + ns.x %}{% endfor %}",
        "{% set ns = namespace(x=[1]) %}{% for i in range(99) %}{% set ns.x = [ns.x, ns.x] %}{% endfor %}{{ ns.x }}"]),
    ("searches", "what a search costs is not limited in the document", [
        "{{ ('x' * 1000000) in ('x' * 999999 ~ 'y') * 3 }}", "{{ (('x' * 999999 ~ 'y') * 3).replace('x' * 1000000, 'z')|length }}",
        "{{ (('y' ~ 'x' * 999999) * 3).rfind('x' * 1000000) }}", "{{ ('x' * 1000000).strip('y' * 1000000 ~ 'x') }}",
        "{{ ('a ' * 300000).rsplit()|length }}", "{{ ('<' * 2000000)|striptags|length }}", "{{ ('<!--' * 500000)|striptags|length }}"]),
    ("odd-numbers", "integers of Python have no limit", ["{{ 9223372036854775807 + 1 }}", "{{ -9223372036854775808 // -1 }}",
                                                         "{{ 1e308 * 10 }}", "{{ '1' * -1 }}", "{{ 'abc'[::-9223372036854775808] }}",
                                                         "{{ 'abc'[9223372036854775807:] }}", "{{ 99999999999999999999999999 }}"]),
    ("holds-itself", "a namespace that holds itself", "{% set ns = namespace() %}{% set ns.me = [ns] %}{{ ns }}{{ ns|tojson }}"),
    ("not-utf8", "the encoding of a file is its reader's matter", [b"\xff\xfe{{ n }}", b"{{ '\xff' }}", b"a\0b{{ n }}", b"{{ n\xc3 }}"]),
])


@rule("deep", BOUNDED, "how deeply a template may nest is not said")
def _(random):
    depth = random.pick([100, 1000, 20000])
    left, middle, right = random.pick([("(", "1", ")"), ("[", "1", "]"), ("{'a':", "1", "}"), ("not ", "1", ""), ("-", "1", ""), ("1 if ", "1", "")])
    if random.below(4) == 0:
        return "{% if n %}".encode() * depth + b"x" + "{% endif %}".encode() * depth
    return ("{{ " + left * depth + middle + right * depth + " }}").encode()


@rule("many-arguments", BOUNDED, "how long a chain may be is not said")
def _(random):
    count = random.pick([1000, 10000])
    return random.pick(["{{ n" + ".a" * count + " }}", "{{ n" + "|upper" * count + " }}", "{{ 1" + "+1" * count + " }}",
                        "{{ 'a'" + " ~ 'a'" * count + " }}", "{% if n %}" + "{% elif n %}" * count + "{% endif %}"]).encode()


@rule("flipped", BOUNDED, "bits of a right template flipped")
def _(random):
    return flipped(random, CHATML.encode(), 8)


@rule("pieces", BOUNDED, "pieces of templates in any order")
def _(random):
    pieces = ["{% for m in messages %}", "{% endfor %}", "{% if n %}", "{% endif %}", "{{", "}}", "{%", "%}", "{#", "#}", "m.content", "|tojson",
              "|upper", " is defined", "'", '"', "[", "]", "(", ")", "{{ n }}", "{% set x = 1 %}", "-", "loop.index", "{{ messages }}", "\n",
              "~", "+", "**", "%", "|join(", "namespace(", "{% else %}", "{% macro f(x) %}", "{% endmacro %}", "{{ f(1) }}", "1", "none"]
    return encoded("".join(random.pick(pieces) for _ in range(random.between(2, 40))))
