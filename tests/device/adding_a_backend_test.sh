#!/bin/sh
# docs/adding-a-backend.md, done: a copy of src/backends/toy under another name and one line more in CMakeLists.txt are a
# backend that is configured, built, found by `gimbal backends` as a plugin, and right by `gimbal verify`.
# Usage: adding_a_backend_test.sh SOURCE GIMBAL CMAKE C++-COMPILER C-COMPILER NINJA
set -eu
source=$1 gimbal=$2 cmake=$3 cxx=$4 cc=$5 ninja=$6
name=abacus

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
fail() {
  echo "FAILED: $1" >&2
  exit 1
}

# The checkout as it is, in links, but for the two places that change.
copy=$scratch/gimbal
mkdir -p "$copy/src/backends"
for entry in CMakeLists.txt LICENSE assets cmake deploy include scripts; do ln -s "$source/$entry" "$copy/$entry"; done
for entry in "$source"/src/*; do [ "${entry##*/}" = backends ] || ln -s "$entry" "$copy/src/"; done
for entry in "$source"/src/backends/*; do ln -s "$entry" "$copy/src/backends/"; done

# One folder ...
cp -r "$source/src/backends/toy" "$copy/src/backends/$name"
# ... and one line.
rm "$copy/CMakeLists.txt"
sed "/^gimbal_backend(toy /a gimbal_backend($name ON)" "$source/CMakeLists.txt" >"$copy/CMakeLists.txt"
[ "$(diff "$source/CMakeLists.txt" "$copy/CMakeLists.txt" | grep -c '^[<>]')" = 1 ] || fail "one line was to be added"

# Two folders deep, with the flags of a release: ccache knows these objects from the program's own build.
build=$copy/build/release
export CCACHE_BASEDIR="$copy" CCACHE_NOHASHDIR=1
"$cmake" -S "$copy" -B "$build" -G Ninja -DCMAKE_MAKE_PROGRAM="$ninja" -DCMAKE_CXX_COMPILER="$cxx" -DCMAKE_C_COMPILER="$cc" \
  -DCMAKE_BUILD_TYPE=Release -DBUILD_TESTING=OFF -DGIMBAL_BACKEND_CPU=OFF -DGIMBAL_BACKEND_LINKAGE=plugin >"$scratch/log" 2>&1 ||
  { cat "$scratch/log"; fail "configuring"; }
# The plugin alone; the program is the one that was built already: it has never heard of this backend.
"$cmake" --build "$build" --target gimbal_plugin_$name >"$scratch/log" 2>&1 || { tail -40 "$scratch/log"; fail "building"; }
[ -f "$build/libgimbal-backend-$name.so" ] || fail "the plugin is not where programs are"

run() { GIMBAL_BACKEND_PATH=$build HOME=$scratch "$gimbal" "$@"; }
if "$gimbal" backends --json | grep -q "\"$name\""; then fail "the program knew it without the plugin"; fi
run backends >"$scratch/out" || fail "gimbal backends: $(cat "$scratch/out")"
grep -q "✓ $name" "$scratch/out" || fail "not found: $(cat "$scratch/out")"
run backends --json | grep -q "libgimbal-backend-$name.so" || fail "not said to be a plugin"
run kernels | grep -q "$name.reference.mat_mul.a8_32" || fail "its kernels are not listed"
run verify --backend $name --strict --quiet >"$scratch/out" || fail "gimbal verify: $(cat "$scratch/out")"
tail -1 "$scratch/out"
[ "$(grep -c "✓.*$name.reference" "$scratch/out")" -ge 14 ] || fail "rows are missing: $(cat "$scratch/out")"
