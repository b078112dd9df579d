#!/usr/bin/env bash
# Fails when a kernel object exports a weak or unique symbol. An inline function compiled for AVX-512 and again for
# plain x86-64 has one name; the linker keeps either, and the program dies on the machine that lacks the other.
# Fails, too, when a kernel looks facts of formats up while it runs: they are constants, and cost a tenth of the speed otherwise.
# Usage: kernel-symbols.sh OBJECT...    or    kernel-symbols.sh --self-test  (CXX names a compiler)
set -euo pipefail

check() {
  local status=0 object symbols shared lookups
  for object in "$@"; do
    symbols=$(nm --defined-only --demangle "$object") || { echo "$object: nm cannot read it" >&2; return 1; }
    [ -n "$symbols" ] || { echo "$object: defines no symbol at all" >&2; status=1; }
    shared=$(awk '{ type = NF > 2 && length($1) > 1 ? $2 : $1 } type ~ /^[WVwvu]$/' <<<"$symbols")
    if [ -n "$shared" ]; then
      echo "$object: exports symbols that the linker would merge with another variant's:" >&2
      sed 's/^/  /' <<<"$shared" >&2
      status=1
    fi
    lookups=$(grep -E '(format_of|layout_of|parts32|parts256|activations_of)\(' <<<"$symbols" || true)
    if [ -n "$lookups" ]; then
      echo "$object: looks facts of formats up while it runs; make them constants (kLayout, matmul.h):" >&2
      sed 's/^/  /' <<<"$lookups" >&2
      return 1
    fi
  done
  [ $status -eq 0 ] || echo "make them static or put them in an anonymous namespace, and use no STL in kernel files" >&2
  return $status
}

self_test() {
  local folder wrong=0
  folder=$(mktemp -d)
  trap 'rm -rf "$folder"' RETURN
  expect() {  # verdict, name, text
    printf '%s\n' "$3" >"$folder/$2.cpp"
    "${CXX:-c++}" -std=c++20 -O0 -c "$folder/$2.cpp" -o "$folder/$2.o"
    local verdict=good
    check "$folder/$2.o" 2>"$folder/said" || verdict=bad
    [ $verdict = "$1" ] || { echo "self-test: '$2' should be $1, is $verdict"; cat "$folder/said"; wrong=1; }
  }
  expect good static 'static int f(int x) { return x + 1; } int g(int x) { return f(x); }'
  expect good anonymous 'namespace { template <class T> T f(T x) { return x; } } int g(int x) { return f(x); }'
  expect bad inline 'inline int f(int x) { return x + 1; } int g(int x) { return f(x); }'
  expect bad template 'template <class T> T f(T x) { return x; } int g(int x) { return f(x); }'
  expect bad inline_variable 'inline int counter = 3; int g() { return counter; }'
  expect bad local_static 'inline int* f() { static int x; return &x; } int* g() { return f(); }'
  expect bad empty ''
  expect bad lookup 'namespace { [[gnu::noinline]] int format_of(int x) { return x * 3; } } int g(int x) { return format_of(x); }'
  if check "$folder/no-such-file.o" 2>/dev/null; then echo "self-test: a missing object passed"; wrong=1; fi
  [ $wrong -ne 0 ] || echo "check-kernel-symbols: seven kinds of bad object refused, good ones accepted"
  return $wrong
}

case ${1:-} in
  "") sed -n '2,/^set /{/^#/s/^# \{0,1\}//p}' "$0" >&2; exit 2 ;;
  --self-test) self_test ;;
  *) check "$@" && echo "$# objects export no shared symbol" ;;
esac
