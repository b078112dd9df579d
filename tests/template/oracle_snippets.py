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
{{ '%5d|%-5d|%05d|%+d|% d|%i'|format(42, 42, 42, 42, 42, 42) }}
{{ '%x|%X|%#x|%o|%#o'|format(255, 255, 255, 8, 8) }}
{{ '%e|%.0e|%g|%.3g|%E'|format(1234.5, 1234.5, 1234.5, 1234.5, 0.00012) }}
{{ '%f|%.0f|%8.2f|%-8.2f|%08.2f'|format(2.5, 2.5, 2.5, -2.5, -2.5) }}
{{ '%5s|%-5s|%.2s|%5.1s|%r'|format('abc', 'abc', 'abc', 'abc', 'abc') }}
{{ '%c|%%|%d'|format(65, 3.99) }}
{{ '%(a)5s|%(b)-4d|%(a)s' % {'a': 'x', 'b': 7} }}
{{ '%s' % [1, 2] }} {{ '%s' % 'x' }} {{ '%s' % ('x',) }}
{{ '{:<6}|{:>6}|{:^6}|{:*^7}|{:^5}|{:^4}'.format('ab', 'ab', 'ab', 'ab', 'ab', 'abc') }}
{{ '{:d}|{:5d}|{:<5d}|{:05d}|{:+d}|{: d}|{:+d}'.format(42, 42, 42, 42, 42, 42, -42) }}
{{ '{:x}|{:X}|{:#x}|{:o}|{:b}|{:#b}|{:c}'.format(255, 255, 255, 8, 5, 5, 65) }}
{{ '{:,}|{:,}|{:,.2f}|{:,}'.format(999, 1000, 1234567.891, -1234567) }}
{{ '{:.2f}|{:8.3f}|{:e}|{:g}|{:.0f}|{:.1%}|{:%}'.format(2.675, 2.5, 12345.678, 0.0001, 2.5, 0.125, 1) }}
{{ '{0}{1}{0}|{a}|{a!r:>5}|{b[k]}|{c[1]}'.format('x', 'y', a='z', b={'k': 1}, c=[3, 4]) }}
{{ '{{}}{}'.format(1) }}
{{ '{:s}|{:5}|{:5}|{:.2}'.format('a', 1, 'b', 'xyz') }} {{ '{}|{}|{}'.format(none, true, 1.0) }}
{{ ' -5 '|int }} {{ '+5'|int }} {{ '5 5'|int(9) }} {{ ''|int(3) }} {{ '-0x1f'|int(0, 16) }} {{ 'zz'|int(0, 36) }}
{{ '0b12'|int(7, 2) }} {{ '0x'|int(7, 16) }} {{ 2.9|int }} {{ '-2.9'|int }} {{ '1e2'|int }} {{ '0o17'|int(0, 8) }} {{ '017'|int(7, 8) }}
{{ '1e400'|float }} {{ '-inf'|float }} {{ ' 2.5 '|float }} {{ '2,5'|float(1.0) }} {{ '.5'|float }} {{ '5.'|float }} {{ '+1'|float }}
{{ 2.567|round(2, 'ceil') }} {{ 2.561|round(2, 'floor') }} {{ (-2.5)|round(0, 'ceil') }} {{ (-2.5)|round(0, 'floor') }} {{ 0.5|round }} {{ 1.5|round }} {{ 1234|round(-2) }} {{ 2.55|round(1) }} {{ 7|round(2) }}
{{ 0|filesizeformat }} {{ 2|filesizeformat }} {{ 1500|filesizeformat }} {{ 999999|filesizeformat }} {{ 1e23|filesizeformat }} {{ 1e27|filesizeformat }} {{ '2000'|filesizeformat }} {{ 1048575|filesizeformat(true) }}
{{ 'hello big world'|truncate(5, true, '') }} {{ 'hello big world'|truncate(8) }} {{ 'hello big world'|truncate(9, false, '..', 0) }} {{ 'helloworld'|truncate(5, false, '', 0) }} {{ 'hello'|truncate(5, true, '.', 0) }}
{{ 'a b'|title }} {{ "it's o'neil-x_y 3d"|title }} {{ "it's 3d"|capitalize }} {{ "it's 3d ÉCOLE".title() }} {{ 'é ß'.upper() }} {{ 'İI'.lower()|length }}
{{ 'abc'|center(0) }}|{{ 'abc'|center(3) }}|{{ 'abc'|center(4) }}|{{ 'abc'.center(4) }}|{{ 'ab'.center(5) }}|{{ 'é'.center(3, '*') }}|{{ 'é'.ljust(3, '*') }}
{{ '  x y '.split(' ') }} {{ 'a b c'.split(none, 0) }} {{ ' a b c '.split(none, 1) }} {{ 'a,b,c'.split(',', 1) }} {{ 'a,b,c'.rsplit(',', 1) }} {{ ' a b c '.rsplit(none, 1) }} {{ 'aXbX'.split('X') }} {{ 'abc'.split(none, -1) }}
{{ 'a\vb\fc\x1cd\x1de\x1ef\x85g\u2028h\u2029i\rj\r\nk\nl'.splitlines() }} {{ 'a\x1fb'.splitlines() }} {{ '\n'.splitlines() }} {{ 'a\r\n\r\nb'.splitlines(true) }} {{ 'a\x84b\x86c'.splitlines()|length }}
{{ 'aXbXc'.replace('X', '-', 1) }} {{ 'aaa'.replace('a', 'b', 0) }} {{ 'aaa'.replace('a', 'b', -1) }} {{ 'ab'.replace('', '.', 2) }} {{ 'ab'|replace('a', 'x', 1) }} {{ 'aaaa'|replace('aa', 'b') }}
{{ 'banana'.find('an', 2) }} {{ 'banana'.find('an', -3) }} {{ 'banana'.find('an', 1, 3) }} {{ 'banana'.find('an', 1, 2) }} {{ 'banana'.rfind('an') }} {{ 'banana'.find('') }} {{ 'banana'.find('', 6) }} {{ 'banana'.find('', 7) }}
{{ 'banana'.count('a') }} {{ 'banana'.count('ana') }} {{ 'banana'.count('') }}
{{ 'abc'.startswith(('x', 'ab')) }} {{ 'abc'.startswith('') }} {{ 'abc'.endswith(('x', 'bc')) }} {{ 'abc'.endswith('abcd') }} {{ 'abc'.removesuffix('c') }} {{ 'abc'.removesuffix('x') }} {{ 'abc'.removeprefix('b') }} {{ 'abab'.removeprefix('ab') }}
{{ 'xxaxx'.strip('x') }} {{ 'xxaxx'.lstrip('x') }} {{ 'xxaxx'.rstrip('x') }} {{ '\x1f a \x1c'.strip() }} {{ '\u2003a\u00a0'.strip() }} {{ 'abc'.strip('') }}
{{ '42'.zfill(5) }} {{ '-42'.zfill(5) }} {{ '+4'.zfill(4) }} {{ ''.zfill(2) }} {{ '-'.zfill(3) }} {{ 'abc'.zfill(2) }} {{ '--1'.zfill(5) }}
{{ 'A1'.isupper() }} {{ '1'.isupper() }} {{ 'a1'.islower() }} {{ '²'.isdecimal() }} {{ ''.isalpha() }} {{ 'é'.isalpha() }} {{ ' \t'.isspace() }} {{ '\x7f'.isascii() }} {{ '\x80'.isascii() }}
{{ 'abcdef'[1:-1] }} {{ 'abcdef'[::2] }} {{ 'abcdef'[::-2] }} {{ 'abcdef'[4:1:-1] }} {{ 'abcdef'[-2:] }} {{ 'abcdef'[:99] }} {{ 'abcdef'[99:] }}|{{ 'abcdef'[-99:2] }} {{ 'abcdef'[2:2] }}|{{ 'abcdef'[-1:0:-2] }} {{ 'abcdef'[99::-1] }}
{{ [0, 1, 2, 3][::-1] }} {{ [0, 1, 2, 3][1::2] }} {{ [0, 1, 2, 3][-3:-1] }} {{ [0, 1, 2, 3][3:0:-2] }} {{ (0, 1, 2)[1:] }} {{ range(10)[2:8:3]|list }} {{ [0, 1][-1] }} {{ [0, 1][-3] is defined }} {{ [0, 1][2] is defined }}
{{ -7 // 2 }} {{ 7 // -2 }} {{ -7 % 3 }} {{ 7 % -3 }} {{ -6 % 3 }} {{ 7.5 % -2 }} {{ -7.5 // 2 }} {{ 6 / 3 }} {{ -8 // 3.0 }} {{ 2 ** -2 }} {{ (-2) ** 3 }} {{ 0 ** 0 }} {{ 5 % 5.5 }} {{ -0.0 % 3 }}
{{ 'ab' * 0 }}|{{ 'ab' * -1 }}|{{ 2 * 'ab' }} {{ [1] * 2 }} {{ [1] * 0 }} {{ (1,) * 2 }} {{ true * 3 }} {{ 'a' + 'b' }} {{ [1] + [2] }}
{{ 1 < 1 }} {{ 1 <= 1 }} {{ 1 >= 1 }} {{ 1 > 1 }} {{ 1 < 2 <= 2 < 3 }} {{ 'a' < 'B' }} {{ 'a' < 'aa' }} {{ '' < 'a' }} {{ [1, 2] < [1, 3] }} {{ [1] < [1, 0] }} {{ [2] > [1, 9] }} {{ true < 2 }} {{ 1.0 == 1 }} {{ 'é' > 'z' }}
{{ 1e15 }} {{ 1e16 }} {{ 123456789012345678 }} {{ 1e-4 }} {{ 0.00001 }} {{ 1.5e-5 }} {{ 1.0e22 }} {{ 12345678.125 }} {{ 0.1 + 0.2 }} {{ 1e15 + 0.5 }} {{ 9999999999999998.0 }} {{ -1.5e16 }} {{ 100000.0 }} {{ 1 / 3 }}
{{ ['\x00', '\t', '\x1f', ' ', '\x7e', '\x7f', '\x80', '\x9f', '\xa0', '\xa1', '\xad', '\u200b', '\u2028', '\ue000', '\uffff', '\U0001f600', "'", '"', "'\"", '\\'] }}
{{ '\x00\x1f\x20\x7e\x7f\x80\xff\uffff\U00010000\U0010ffff"\\/\b\f\n\r\t'|tojson(ensure_ascii=true) }}
{{ '\x00\x1f\x20\x7e\x7f\x80\uffff\U00010000"\\/\b\f\n\r\t'|tojson }}
{{ {'a': [], 'b': {}, 'c': [1, [2]], 'd': {'e': none}}|tojson(indent=2) }} {{ [1, 2]|tojson(indent=1) }} {{ [1, {'a': 2}]|tojson(separators=('|', '=')) }}
{{ [1.0, 1e16, 1e-7, 0.1, -0.0, 1e400, -1e400]|tojson }} {{ {true: 1, none: 2, 3: 4, 1.5: 5}|tojson }} {{ {'b': 1, 'a': {'d': 1, 'c': 2}}|tojson(sort_keys=true) }}
{% for x in [1, 2, 3] %}{{ loop.revindex }}{{ loop.revindex0 }}{{ loop.previtem|default('-') }}{{ loop.nextitem|default('-') }}{{ loop.cycle('a', 'b') }}{{ loop.changed(x // 2) }}{{ loop.length }} {% endfor %}
{% for x in 'ab' %}{% for y in 'cd' %}{{ loop.depth }}{{ loop.depth0 }}{{ loop.index }}{{ loop.first }}{{ loop.last }} {% endfor %}{% endfor %}
{% for k, v in [{'g': 'b', 'n': 1}, {'g': 'A', 'n': 2}, {'g': 'B', 'n': 3}]|groupby('g') %}{{ k }}{{ v|map(attribute='n')|list }}{% endfor %} {% for x in [{'g': 1}, {}]|groupby('g', default=0) %}{{ x.grouper }}{{ x.list }}{% endfor %}
{{ [3, 1, 2]|sort }} {{ ['b', 'A', 'a', 'B']|sort }} {{ ['b', 'A', 'a', 'B']|sort(case_sensitive=true) }} {{ [{'a': 2, 'b': 1}, {'a': 1, 'b': 2}, {'a': 1, 'b': 1}]|sort(attribute='a,b') }} {{ [[1, 'x'], [0, 'y']]|sort(attribute=1, reverse=true) }} {{ [{'a': {'b': 2}}, {'a': {'b': 1}}]|sort(attribute='a.b')|map(attribute='a.b')|list }}
{{ [1, 2, 3, 4, 5]|batch(2)|list }} {{ [1, 2, 3]|batch(2, 'x')|list }} {{ [1, 2, 3, 4]|batch(2, 'x')|list }} {{ []|batch(2, 'x')|list }} {{ [1, 2, 3]|batch(2, none)|list }} {{ [1, 2, 3, 4, 5]|slice(3)|list }} {{ [1]|slice(3)|list }} {{ [1, 2]|batch(5, 0)|list }}
{{ [1, 2, 3, 4]|select('divisibleby', 2)|list }} {{ [0, 1, '', 'a']|reject|list }} {{ [{'a': 1}, {'a': 0}, {}]|selectattr('a')|list }} {{ [{'a': 1}, {'a': 2}]|rejectattr('a', 'gt', 1)|list }} {{ [{'a': 1}, {}]|map(attribute='a', default=9)|list }} {{ ['a', 'b']|map('upper')|join }} {{ [[1, 2], [3]]|map('sum')|list }} {{ [{'a': {'b': 1}}]|map(attribute='a.b')|list }}
{{ [1, 1.0, true, 2, '1']|unique|list }} {{ ['a', 'A', 'b']|unique(case_sensitive=true)|list }} {{ [1, 2]|sum(start=10) }} {{ [{'a': 1}, {'a': 2}]|sum('a') }} {{ [3, 1]|min }} {{ [{'a': 1}, {'a': 3}]|max(attribute='a') }} {{ []|min is undefined }} {{ [1, 2]|first }} {{ []|first is undefined }} {{ [1, 2]|last }} {{ 'abc'|last }}
{{ [1, 2]|join(', ') }} {{ [{'a': 1}, {'a': 2}]|join('-', attribute='a') }} {{ []|join(',') }}|{{ ['<', '>'|e]|join }} {{ 'abc'|join('.') }} {{ {'a': 1, 'b': 2}|join }} {{ [none, true]|join('/') }}
{{ 'a<b>"\'&'|e }} {{ ('<'|e) ~ '<' }} {{ ('<'|safe|e) }} {{ 'x'|forceescape }} {{ '<p>ab <!-- <x> --> <i>c</i>\n\n d</p>'|striptags }} {{ 'a < b > c'|striptags }} {{ '<!-- a'|striptags }}|
{{ 'A/z-._~ +%&=é'|urlencode }} {{ [('a b', 'c/d'), ('e', 1)]|urlencode }} {{ {'k[]': 'v w', 'x': ''}|urlencode }} {{ ''|urlencode }}|{{ 12|urlencode }}
{{ 'a\nb\n'|indent }}| {{ 'a\nb'|indent(width=2, first=true) }} {{ 'a\n\nb\n'|indent(1, false, true) }}| {{ 'a\r\nb'|indent(1) }} {{ 'a'|indent('--', true) }}
{{ 'one two'|wordcount }} {{ ''|wordcount }} {{ "don't-stop x_y 1.5"|wordcount }} {{ 'é ü'|wordcount }}
{{ {'b': 1, 'a': 2}|dictsort }} {{ {'b': 1, 'a': 2}|dictsort(by='value') }} {{ {'b': 1, 'A': 2, 'c': 0}|dictsort(true) }} {{ {'b': 'y', 'a': 'X'}|dictsort(false, 'value', true) }} {{ {'a': 1}|items|list }} {{ {'a': 1}.get('b', 2) }} {{ {'a': 1}.items()|list }} {{ {'a': 1, 'b': 2}|list }}
{{ 5 is divisibleby 5 }} {{ 0 is even }} {{ -3 is odd }} {{ 3 is lt 3 }} {{ 3 is le 3 }} {{ 3 is ge 4 }} {{ 3 is ne 3 }} {{ 'A' is upper }} {{ 'a' is lower }} {{ true is integer }} {{ 1.0 is float }} {{ 1 is float }} {{ true is boolean }} {{ none is none }} {{ [] is sequence }} {{ {} is sequence }} {{ 'a' is iterable }} {{ 1 is iterable }} {{ 2 is in [2] }} {{ none is sameas none }} {{ 1 is sameas true }}
{% set c = cycler(1, 2) %}{{ c.current }}{{ c.next() }}{{ c.next() }}{{ c.next() }}{{ c.current }}{{ c.reset() }}{{ c.current }} {% set j = joiner() %}{{ j() }}{{ j() }}{{ j() }} {% set n = namespace(a=1) %}{% set n.a = n.a + 1 %}{{ n.a }} {{ dict(a=1, b=2) }} {{ range(5, 0, -2)|list }} {{ range(3)|length }} {{ range(0)|list }}
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
