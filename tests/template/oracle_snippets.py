"""Small templates for oracle_test.py: one feature each, over the variables of variables()."""

SNIPPETS = r"""
{{ s|upper }} {{ s|lower }} {{ s|title }} {{ s|capitalize }} {{ s.title() }} {{ s.swapcase() }} {{ s.capitalize() }}
{{ s|length }} {{ s[0] }} {{ s[-1] }} {{ s[1:3] }} {{ s[::-1] }} {{ s[::2] }} {{ s[5:1:-2] }} {{ s[-3:] }} {{ s[:-1] }} {{ s[100:] }}|{{ s[99] }}|
{{ s.split() }} {{ s.split(' ') }} {{ s.split(' ', 1) }} {{ s.rsplit(None, 1) }} {{ s.rsplit('l', 1) }} {{ s.split('l')[-1] }}
{{ s.partition(' ') }} {{ s.rpartition('l') }} {{ s.partition('zz') }} {{ s.rpartition('zz') }}
{{ '  a  b c '.split() }} {{ '  a  b c '.split(None, 1) }} {{ '  a  b c '.rsplit(None, 1) }} {{ ''.split() }} {{ ''.split('x') }} {{ 'a,b,,c'.split(',') }}
{{ 'a\nb\r\nc\n'.splitlines() }} {{ 'a\nb\r\nc\n'.splitlines(true) }} {{ ''.splitlines() }}
{{ s.replace('l', 'L') }} {{ s.replace('l', 'L', 1) }} {{ 'abc'.replace('', '-') }} {{ ''.replace('', '-') }} {{ 'abc'.replace('', '-', 2) }} {{ 'aaa'.replace('aa', 'b') }}
{{ s.find('o') }} {{ s.rfind('o') }} {{ s.find('zz') }} {{ s.find('o', 5) }} {{ s.count('o') }} {{ s.index('o') }} {{ u.find('好') }}
{{ s.startswith('He') }} {{ s.startswith(('x', 'He')) }} {{ s.endswith('!') }} {{ s.removeprefix('He') }} {{ s.removesuffix('!') }}
{{ 'x'.join(['a', 'b']) }} {{ ', '.join(l) }}
{{ '-'.join([1]) }}
{{ '7'.zfill(3) }} {{ '-7'.zfill(4) }} {{ 'ab'.ljust(5, '.') }} {{ 'ab'.rjust(5) }} {{ 'ab'.center(5) }}| {{ 'abc'.center(6) }}| {{ 'ab'|center(7) }}|
{{ '12'.isdigit() }} {{ 'a1'.isalnum() }} {{ 'ab'.isalpha() }} {{ ' '.isspace() }} {{ ''.isspace() }} {{ 'aB'.islower() }} {{ 'AB'.isupper() }} {{ 'ab'.isascii() }}
{{ u }} {{ u|upper }} {{ u|lower }} {{ u|title }} {{ u|length }} {{ u[1] }} {{ u[-1] }} {{ u[1:4] }} {{ [u] }} {{ u|tojson }}
{{ ["it's", 'say "x"', 'both \' "', 'tab\t', 'nl\n', 'bs\\', '\x00\x7f', 'é', '\u200b', '\u00a0', '\u2028'] }}
{{ d }} {{ d|tojson }} {{ d|tojson(indent=4) }} {{ d|tojson(indent=0) }} {{ d|tojson(sort_keys=true) }} {{ d|tojson(separators=(',', ':')) }}
{{ d|tojson(ensure_ascii=true) }} {{ u|tojson(ensure_ascii=true) }}
{{ {}|tojson }} {{ []|tojson(indent=2) }} {{ [[], {}]|tojson(indent=2) }} {{ {1: 2, true: 3, none: 4, 1.5: 5}|tojson }}
{{ (1, 2)|tojson }} {{ 1.0|tojson }} {{ 1e100|tojson }} {{ '\u0001\u001f\u007f'|tojson }} {{ none|tojson }}
{{ missing|tojson }}
{{ range(3)|tojson }}
{{ d.keys() }} {{ d.values() }} {{ d.items() }} {{ d.keys()|list }} {{ d.items()|list }} {{ d|list }} {{ d|length }} {{ d|items|list }}
{{ d.get('a') }} {{ d.get('zz') }} {{ d.get('zz', 5) }} {{ d['zz'] is defined }} {{ d.zz is defined }} {{ 'a' in d }} {{ 'zz' not in d }}
{{ d|dictsort }}
{{ d|dictsort(by='value') }}
{{ {'b': 1, 'A': 2, 'c': 0}|dictsort }} {{ {'b': 1, 'A': 2, 'c': 0}|dictsort(true) }} {{ {'b': 1, 'A': 2, 'c': 0}|dictsort(false, 'value') }} {{ {'b': 1, 'A': 2}|dictsort(reverse=true) }}
{{ l }} {{ l|length }} {{ l[0] }} {{ l[-1] }} {{ l[1:] }} {{ l[::-1] }} {{ l[9] is defined }} {{ l + [1] }} {{ l * 2 }} {{ l|first }} {{ l|last }} {{ l|join }} {{ l|join('-') }}
{{ l|reverse|list }} {{ 'abc'|reverse }} {{ l|sort }} {{ [3, 1, 2]|sort }} {{ [3, 1, 2]|sort(reverse=true) }} {{ ['b', 'A', 'c']|sort }} {{ ['b', 'A', 'c']|sort(case_sensitive=true) }}
{{ [1, 'a']|sort }}
{{ m|map(attribute='role')|list }} {{ m|map(attribute='zz')|list }} {{ m|map(attribute='zz', default='-')|join }} {{ l|map('upper')|list }} {{ l|map('replace', 'a', 'x')|join(',') }}
{{ m|selectattr('role', 'equalto', 'user')|list|length }} {{ m|selectattr('role', '==', 'user')|map(attribute='content')|list }} {{ m|rejectattr('role', 'in', ['user', 'system'])|list|length }} {{ m|selectattr('tool_calls')|list|length }} {{ m|selectattr('tool_calls', 'defined')|list|length }}
{{ [0, 1, 2, none, '']|select|list }} {{ [0, 1, 2]|reject('odd')|list }} {{ [1, 2, 3, 4]|select('gt', 2)|list }} {{ [1, 2, 3]|select('divisibleby', 2)|list }}
{{ m|groupby('role')|length }} {% for r, g in m|groupby('role') %}{{ r }}={{ g|length }};{% endfor %}
{% for g in m|groupby('role') %}{{ g.grouper }}:{{ g.list|map(attribute='content')|list }}{% endfor %}
{{ [1, 1, 2, 1]|unique|list }} {{ ['a', 'A']|unique|list }} {{ ['a', 'A']|unique(true)|list }} {{ m|unique(attribute='role')|map(attribute='role')|list }}
{{ [1, 2, 3]|sum }} {{ [1.5, 2]|sum }}
{{ m|sum(attribute='zz', start=5) }}
{{ [{'n': 1}, {'n': 4}]|sum(attribute='n') }} {{ [[1], [2]]|sum(start=[]) }} {{ [3, 1]|min }} {{ ['b', 'A']|max }} {{ ['b', 'A']|min }} {{ []|max }}| {{ [{'n': 2}, {'n': 1}]|min(attribute='n') }}
{{ [1, 2, 3, 4, 5]|batch(2)|list }} {{ [1, 2, 3]|batch(2, 0)|list }} {{ [1, 2, 3, 4, 5]|slice(3)|list }} {{ [1, 2, 3, 4]|slice(3, 'x')|list }}
{{ 7 // 2 }} {{ -7 // 2 }} {{ 7 % -3 }} {{ -7 % 3 }} {{ 7.5 // 2 }} {{ -7.5 % 2 }} {{ 2 ** 10 }} {{ 2 ** -1 }} {{ 2 ** 0.5 }} {{ 2 ** 3 ** 2 }} {{ -2 ** 2 }} {{ 6 / 3 }} {{ 1 / 3 }}
{{ 1 / 0 }}
{{ 1 % 0 }}
{{ 10 - 2 ~ 3 }}
{{ 0.1 + 0.2 }} {{ 1e16 }} {{ 1e15 }} {{ 123456789012345680.0 }} {{ 0.0001 }} {{ 0.00001 }} {{ 1.0 }} {{ 100.0 }} {{ 1e22 }} {{ 1.5e300 }} {{ -0.0 }} {{ 3.14159265358979 }} {{ 5e-324 }} {{ 1_000 }} {{ 0x1f }} {{ 0b101 }} {{ 0o17 }}
{{ 3.7|int }} {{ -3.7|int }} {{ '42'|int }} {{ ' 42 '|int }} {{ 'x'|int(7) }} {{ '0x1f'|int(0, 16) }} {{ '1f'|int(base=16) }} {{ '4.7'|int }} {{ true|int }} {{ none|int }} {{ '-5'|int }} {{ '1e3'|int }}
{{ '3.5'|float }} {{ 'x'|float }} {{ 'x'|float(1.5) }} {{ 3|float }} {{ 'inf'|float }} {{ true|float }}
{{ 2.5|round }} {{ 3.5|round }} {{ 2.675|round(2) }} {{ 1234.5678|round(-2) }} {{ 2.1|round(0, 'ceil') }} {{ 2.9|round(method='floor') }} {{ 42|round }} {{ 2.55|round(1, 'floor') }}
{{ -5|abs }} {{ (-5)|abs }} {{ -2.5|abs }} {{ 5|string + 'x' }} {{ true|string }} {{ none|string }}
{{ 1 < 2 < 3 }} {{ 3 > 2 > 2 }} {{ 1 == 1.0 }} {{ true == 1 }} {{ '1' == 1 }} {{ [1] == (1,) }} {{ {'a': 1} == {'a': 1.0} }} {{ none == none }} {{ missing == missing2 }} {{ 'a' < 'b' }} {{ [1, 2] < [1, 3] }} {{ 'Z' < 'a' }}
{{ 1 < 'a' }}
{{ none < 1 }}
{{ 1 in [1, 2] }} {{ 'a' in 'abc' }} {{ 'x' not in 'abc' }} {{ 1 in {1: 2} }} {{ 2 in range(3) }} {{ 'x' in missing }} {{ none in [none] }} {{ '' in 'a' }}
{{ 1 in 'abc' }}
{{ 1 in 5 }}
{{ 'a' ~ 1 ~ none ~ true ~ 1.5 ~ [1] ~ missing }} {{ 1 ~ 2 }} {{ 'a' 'b' }} {{ "a" ~ 'b' }}
{{ 'a' + 1 }}
{{ 'a' + none }}
{{ none + 'a' }}
{{ 1 + 'a' }}
{{ [1] + (2,) }}
{{ 'a' * 3 }} {{ 3 * 'ab' }} {{ 'a' * -1 }}| {{ [0] * 2 }} {{ true + true }} {{ -true }} {{ +3 }} {{ not 1 }} {{ not '' }} {{ not not 5 }}
{{ missing }}| {{ missing.x }}
{{ missing['x'] }}
{{ missing() }}
{{ missing + 1 }}
{{ missing|upper }}| {{ missing|length }} {{ missing|list }} {{ missing|default('d') }} {{ missing|first is undefined }} {{ missing is undefined }} {{ missing is none }}
{{ missing|int }}
{{ d.zz }}| {{ d.zz.y }}
{{ none.x is defined }} {{ (5).x is defined }} {{ s.zz is defined }} {{ l.zz is defined }}
{{ none.x.y }}
{{ none|length }}
{{ 5|length }}
{{ none|default('d') }} {{ none|default('d', true) }} {{ ''|d('e') }} {{ ''|d('e', true) }} {{ d.zz|default('x') }} {{ 0|default(1, boolean=true) }}
{{ s|zzfilter }}
{{ s is zztest }}
{{ s|default(1, 2, 3, 4) }}
{{ s|trim(zz=1) }}
{{ '  x '|trim }}| {{ 'xxaxx'|trim('x') }} {{ '\u00a0 a \u3000'|trim }}| {{ 'xyaxy'.strip('yx') }} {{ ' a '.lstrip() }}| {{ ' a '.rstrip() }}|
{{ 'a\nb\n\nc'|indent }}| {{ 'a\nb\n\nc'|indent(2, true) }}| {{ 'a\n\nb'|indent(2, blank=true) }}| {{ 'a\nb'|indent('> ') }}| {{ 'a\n'|indent(2) }}| {{ ''|indent(2, true) }}|
{{ 'hello world foo'|truncate(9) }} {{ 'hello world foo'|truncate(9, true) }} {{ 'hello world'|truncate(9) }} {{ 'hello world foo bar'|truncate(12, false, '…') }} {{ 'hello world foo'|truncate(9, leeway=0) }}
{{ 'hello world fo'|truncate(9) }}| {{ 'hello world foo'|truncate(10) }}| {{ 'hello world foo'|truncate(9, leeway=6) }}| {{ 'hello world foo'|truncate(9, leeway=5) }}
{% for k, g in [{'k': 'Foo', 'n': 1}, {'k': 'foo', 'n': 2}, {'k': 'Bar', 'n': 3}]|groupby('k') %}{{ k }}:{{ g|map(attribute='n')|join(',') }};{% endfor %}
{% for k, g in [{'k': 'Foo'}, {'k': 'foo'}]|groupby('k', case_sensitive=true) %}{{ k }}={{ g|length }};{% endfor %}
{{ 'a b  c'|wordcount }} {{ "it's 3 words-or more"|wordcount }} {{ '<p>a <b>b</b></p>  c <!-- x -->d'|striptags }} {{ 'a b&c/d?é'|urlencode }} {{ {'a b': 'c&d', 'e': 1}|urlencode }}
{{ '<a href="x">&\''|e }} {{ '<b>'|safe }} {{ ('<b>'|safe) ~ '<i>' }} {{ ('<b>'|safe) + '<i>' }} {{ '<'|e|e }} {{ '<'|e|forceescape }} {{ ('<b>'|safe) is escaped }}
{{ 1024|filesizeformat }} {{ 1000000|filesizeformat }} {{ 1|filesizeformat }} {{ 1048576|filesizeformat(true) }} {{ 999|filesizeformat }}
{{ '%s and %s' % ('a', 1) }} {{ '%d%%' % 5 }} {{ '%05.2f|%-5s|%5s|%+d|%x|%X|%o|%e|%g|%r|%c|%.2s' % (3.14159, 'a', 'b', 7, 255, 255, 8, 12345.678, 0.0001, 'q', 65, 'xyz') }} {{ '%(a)s-%(b)s' % {'a': 1, 'b': 2} }} {{ '%s' % none }} {{ '%s' % [1] }}
{{ '%s %s' % 'a' }}
{{ '%s' % ('a', 'b') }}
{{ '%d' % 'a' }}
{{ '%s-%s'|format('a', 2) }} {{ '%(x)s'|format(x=3) }} {{ '{} {}'.format('a', 1) }} {{ '{1} {0} {x}'.format('a', 'b', x='c') }} {{ '{:>5}|{:<5}|{:^5}|{:*^7}|{:05d}|{:.2f}|{:,}|{:x}|{:+}|{!r}|{{}}'.format('a', 'b', 'c', 'd', 42, 3.14159, 1234567, 255, 5, 'q') }} {{ '{0[a]} {1[0]}'.format(d, l) }}
{{ '{}'.format() }}
{{ '{:d}'.format('a') }}
{% for x in l %}{{ loop.index }}/{{ loop.index0 }}/{{ loop.revindex }}/{{ loop.revindex0 }}/{{ loop.first }}/{{ loop.last }}/{{ loop.length }}/{{ loop.depth }}/{{ loop.depth0 }}/{{ loop.cycle('o', 'e') }}/{{ loop.previtem }}/{{ loop.nextitem }}/{{ loop.changed(x) }} {% endfor %}
{% for x in [1, 1, 2, 2] %}{% if loop.changed(x) %}{{ x }}{% endif %}{% endfor %}
{% for x in [] %}a{% else %}none{% endfor %}{% for x in [1] %}a{% else %}none{% endfor %}{% for x in missing %}a{% else %}none{% endfor %}
{% for x in 5 %}{% endfor %}
{% for x in none %}{% endfor %}
{% for a, b in [(1, 2), (3, 4)] %}{{ a }}{{ b }}{% endfor %}{% for a, (b, c) in [(1, (2, 3))] %}{{ a }}{{ b }}{{ c }}{% endfor %}{% for k in d %}{{ k }}{% endfor %}{% for c in 'aé' %}[{{ c }}]{% endfor %}
{% for a, b in [(1, 2, 3)] %}{% endfor %}
{% for x in range(10) %}{% if x == 2 %}{% continue %}{% endif %}{% if x == 5 %}{% break %}{% endif %}{{ x }}{% endfor %}
{% for x in range(6) if x is odd %}{{ loop.index }}:{{ x }}{% if not loop.last %},{% endif %}{% endfor %}{% for x in [1, 2] if x > 5 %}{% else %}e{% endfor %}
{% for x in [1, 2] %}{% for y in [3, 4] %}{{ loop.index }}{{ x }}{{ y }}{% set outer = loop %}{% endfor %}{{ loop.index }}{% endfor %}
{% for x in [1, 2] recursive %}{{ x }}{% if x is iterable %}{% endif %}{% endfor %}
{% for n in tree recursive %}{{ n.v }}{{ loop.depth }}{% if n.c %}[{{ loop(n.c) }}]{% endif %}{% endfor %}
{{ range(3)|list }} {{ range(1, 4)|list }} {{ range(5, 0, -2)|list }} {{ range(0) }} {{ range(1, 9, 3) }} {{ range(3)[1] }} {{ range(3)|length }} {{ range(5)[1:3] }}
{{ range(10000000) }}
{{ range() }}
{% set x = 1 %}{% if true %}{% set x = 2 %}{% endif %}{{ x }}{% for i in [1] %}{% set x = 3 %}{{ x }}{% endfor %}{{ x }}{% with x = 4 %}{{ x }}{% set x = 5 %}{{ x }}{% endwith %}{{ x }}
{% for i in [1, 2, 3] %}{{ y }}{% set y = i %}{{ y }}{% endfor %}{{ y }}
{% set ns = namespace(n=0, found=false) %}{% for i in [1, 2] %}{% set ns.n = ns.n + i %}{% set ns.found = true %}{% endfor %}{{ ns.n }}{{ ns.found }}{{ ns.zz is defined }}
{% set ns = namespace({'a': 1}, b=2) %}{{ ns.a }}{{ ns['b'] }}
{% set x.y = 1 %}
{% set d.y = 1 %}
{% set a, b = (1, 2) %}{{ a }}{{ b }}{% set (a, b) = [3, 4] %}{{ a }}{{ b }}
{% set x %} text {{ 1 + 1 }} {% endset %}[{{ x }}]{% set y | upper | trim %} ab {% endset %}[{{ y }}]
{% macro m(a, b='B', c=none) %}({{ a }},{{ b }},{{ c }}){% endmacro %}{{ m(1) }}{{ m(1, 2, 3) }}{{ m(c=3, a=1) }}{{ m() }}{{ m.name }}
{% macro m(a) %}{{ a }}{% endmacro %}{{ m(1, 2) }}
{% macro m(a) %}{{ a }}{% endmacro %}{{ m(zz=2) }}
{% macro m() %}{{ varargs }}{{ kwargs }}{% endmacro %}{{ m(1, 2, x=3) }}
{% macro m(x) %}<{{ caller() }}{{ x }}>{% endmacro %}{% call m(1) %}in{% endcall %}{% macro l(xs) %}{% for x in xs %}{{ caller(x) }};{% endfor %}{% endmacro %}{% call(v) l([1, 2]) %}v{{ v }}{% endcall %}
{% macro m() %}{% if caller is defined %}c{% else %}n{% endif %}{% endmacro %}{{ m() }}{% call m() %}{% endcall %}
{% macro a() %}{{ g }}{% set g = 2 %}{{ g }}{% endmacro %}{% set g = 1 %}{{ a() }}{{ g }}
{% for i in [1, 2] %}{% macro q() %}{{ i }}{% endmacro %}{{ q() }}{% endfor %}
{% macro fact(n) %}{% if n <= 1 %}1{% else %}{{ n * fact(n - 1)|int }}{% endif %}{% endmacro %}{{ fact(10) }}
{% macro m(a, b=a) %}{{ b }}{% endmacro %}{{ m(3) }}
{{ m2() }}
{{ 'x'() }}
{% filter upper %}ab{{ 'c' }}{% endfilter %}{% filter replace('a', 'b')|upper %}aa{% endfilter %}
{% with %}{% set q = 1 %}{{ q }}{% endwith %}{{ q }}{% with a = 1, b = 2 %}{{ a + b }}{% endwith %}
{% if none %}a{% elif 0 %}b{% elif [] %}c{% elif {} %}d{% elif '' %}e{% elif 0.0 %}f{% else %}g{% endif %}
{{ 'a' if 1 else 'b' }} {{ 'a' if 0 else 'b' }} {{ 'a' if 0 }}| {{ 1 if 0 else 2 if 0 else 3 }} {{ (1 if true else 2) + 1 }}
{{ x is defined }} {{ s is string }} {{ s is sequence }} {{ d is mapping }} {{ d is sequence }} {{ l is sequence }} {{ l is iterable }} {{ 5 is iterable }} {{ 5 is number }} {{ true is number }} {{ true is integer }} {{ 1.0 is number }} {{ range is callable }} {{ missing is iterable }} {{ missing is sequence }}
{{ 4 is divisibleby 2 }} {{ 4 is divisibleby(3) }} {{ 'A' is upper }} {{ 'a' is lower }} {{ 1 is eq 1 }} {{ 1 is ne(2) }} {{ 3 is gt 2 }} {{ 3 is lessthan 2 }} {{ 2 is in [1, 2] }} {{ none is sameas none }} {{ 1 is sameas true }} {{ true is true }} {{ 1 is true }} {{ false is false }} {{ 'upper' is filter }} {{ 'zz' is filter }} {{ 'even' is test }}
{{ 5 is not odd }} {{ not 5 is odd }} {{ 5 is odd and 4 is even }} {{ 5 is odd or zz }} {{ s is string and s|length > 3 }}
{{ 1 and 2 }} {{ 0 or 'x' }} {{ 0 and zz.y }} {{ '' or none }} {{ [] or {} }} {{ not a is defined }}
{{ [1, 2, 3][-1] }} {{ [1, 2][true] }} {{ d['a'] }} {{ d.b[0] }} {{ d.b.0 }} {{ [[1, 2], [3]][0][1] }} {{ (1, 2)[0] }} {{ {'a': {'b': 'c'}}.a.b }} {{ 'abc'[1] }}
{{ (1,) }} {{ () }} {{ 1, 2 }} {{ [1, 2,] }} {{ {'a': 1,} }} {{ [none, true, 1.5, 's'] }} {{ {'k': none} }} {{ {1: 'a'} }} {{ {(1, 2): 3} }}
{{ {[1]: 2} }}
{{ dict(a=1) }} {{ dict({'a': 1}, b=2) }} {{ dict([('a', 1)]) }} {{ dict(d, z=1)['z'] }} {{ d.copy() == d }} {{ l.index('b') }} {{ l.count('a') }}
{{ l.append('x') }}
{{ d.update({'x': 1}) }}
{{ l.pop() }}
{{ s.__class__ }}
{{ s.__class__.__mro__ }}
{% set j = joiner(', ') %}{{ j() }}a{{ j() }}b{% set c = cycler('x', 'y') %}{{ c.next() }}{{ c.next() }}{{ c.next() }}{{ c.current }}
{% raw %}{{ x }} {% if %}{% endraw %}|{%- raw -%}  {{ y }}  {%- endraw -%}  |
a {# c #} b {#- c -#} c
{{ '{{' }} {{ '%}' }} {{ "}}" }} {{ {'a': {'b': 1}} }} {{ {'a':{}}}}
{{ '\q\101\x41\u0041\U0001F600' }} {{ 'tab\there' }}
{{ strftime_now('%Y-%m-%d %H:%M:%S %d %b %B %a %A %j %y %I %p %-d %e %%') }}
{{ raise_exception('no: ' ~ 5) }}
{{ strftime_now('%d %B %Y')|upper }}
{% generation %}a{{ 1 }}{% endgeneration %}b
{% generation %}{% set zz = 1 %}{{ zz }}{% endgeneration %}{{ zz }}
{% autoescape false %}<{% endautoescape %}
{% block b %}x{{ s }}{% endblock %}
{% do x %}
{% include 'x' %}
{% import 'x' as y %}
{% zz %}
{% if %}{% endif %}
{% if 1 %}
{% endif %}
{% for x in %}{% endfor %}
{% for x in y
{{ 1
{{ 1 + }}
{{ (1 }}
{{ 1) }}
{{ 'abc }}
{{ a b }}
{# never ends
{{ ! }}
{{ 1 is }}
{% break %}
{% set true = 1 %}
{% macro m(a=1, b) %}{% endmacro %}
{{ f(a=1, 2) }}
{{ s is string is string }}
{{ *x }}
{% set xs = [1, 2] %}{% set ys = xs|map('string') %}{{ ys|join }}|{{ ys|join }}|{{ 'T' if xs|select('gt', 9) else 'F' }}
{{ (xs|default([]))|map('upper') is sequence }}
{{ m|map(attribute='content')|map('length')|list }} {{ m|map(attribute='content')|select('string')|map('trim')|join('|') }}
{{ m[0].content.split('\n')|first }} {{ m|last|attr('content') is undefined }} {{ (m|last).content|replace('a', 'b')|upper|lower }}
{{ [1, 2, 3]|random is defined }}
{{ f(*[1], **{'a': 2}) }}
{% macro f(a, b=0, c=0) %}{{ a }}{{ b }}{{ c }}{% endmacro %}{{ f(*[1, 2], c=3) }}{{ f(**{'a': 7}) }}{{ f(1, *[2], **{'c': 5}) }}
{{ -1|string }} {{ 1 - -1 }} {{ 2 - 1 - 1 }} {{ 2 * 3 % 4 }} {{ (10 - 2) ~ 3 }}  {{ 'a' ~ 'b' == 'ab' }}
{{ true and not false }} {{ not true or true }} {{ 1 if true and false else 2 }} {{ 'b' in 'abc' and 'z' not in 'abc' }} {{ not 'b' in 'abc' }}
{{ loop }}
{{ self is defined }}
{{ none|selectattr('x')|list }} {{ none|map('upper')|list }} {{ 0|select|list }} {{ ''|map|list }} {{ missing|rejectattr('a')|list }}
{{ 5|map('upper')|list }}
{{ none|list }}
{{ none|join }}
{{ 3|e }} {{ true|upper }} {{ 12|replace(1, 3) }} {{ [1]|upper }} {{ 5|trim }} {{ none|trim }} {{ [3]|join|int + 1 }}
""".strip("\n").split("\n")

# Where white space and line ends are the point.
LAYOUTS = [
    "a\n{% if true %}\nb\n{% endif %}\nc\n",
    "  {% if true %}  \n  b\n  {% endif %}\n",
    "a {%- if true -%} b {%- endif -%} c",
    "a\n  {%+ if true +%}\n b {% endif +%}\nc",
    "a\r\nb\rc{% if 1 %}\r\nd{% endif %}\n\n",
    "{% set x = 1 %}\n\n{{ x }}\n\n",
    "\n\n{{- 1 -}}\n\n",
    "x\n   {{ 1 }}\n   {# c #}\n   {# d #} y\n",
    "x\n\t{% if 1 %}{# c #}\ny{% endif %}\n z",
    "{% for i in [1, 2] %}\n  {{ i }}\n{% endfor %}\nend",
    "{% for i in [1, 2] -%}\n  {{ i }}\n{%- endfor %}\nend",
    "a{% if 1 %} {% if 1 %}\n x {% endif %} {% endif %}\n",
    "{#- a -#}\n b \n{#- c #}\n d",
    "{#\n c\n#}\nx",
    "{% raw %}\n {{ x }} \n{% endraw %}\ny",
    "  {%- raw %} a {% endraw -%}  b",
    "a\n  {% raw %} b\n  {% endraw %} c",
    "{{ 'a\nb' }}\n{{ \"x\r\ny\" }}",
    "\u00a0{%- if 1 -%}\u3000x{%- endif %}",
    "{%if 1%}a{%endif%}{{1}}{{-1}}{{+1}}",
    "{{ 1 -}}  \n  x  {{- 2 }}",
    "  {{ 1 }}\n  {% if 1 %}{% endif %}  \n  q",
    "{{ 'a\\\nb' }}",
    "{% if true %}   {# c #}\nx{% endif %}",
    "{% if 1 %}\n{% endif %}",
    "{%- set a = 1 -%}\n\n {%- set b = 2 %}\n{{ a }}{{ b }}",
    "a\n{%- if 1 %}\n\nb{% endif -%}\n\n\n",
]
