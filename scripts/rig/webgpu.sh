#!/usr/bin/env bash
# What the WebGPU tests run on: Dawn (the npm package bun-webgpu-linux-x64) over the lavapipe of bookworm-backports, since Dawn
# refuses Debian 12's own; and wgpu-native, the library of Firefox's WebGPU, in two releases out of PyPI's package wgpu. All are
# unpacked into build/webgpu-rig, beside the system and not into it; a private apt configuration fetches the driver. Does nothing when they are there. Fails, with the reason, when they cannot be had.
# Usage: scripts/rig/webgpu.sh
set -euo pipefail
cd "$(dirname "$0")/../.."

dawn=bun-webgpu-linux-x64 dawn_version=0.1.7
dawn_sha256=8badfecdad4e726ac12be4f29771f4cbd7ce7683b4418316a547c5bda94fb798
mesa_version=25.0.7  # of the driver; Debian's revisions of it may come and go
rig=$PWD/build/webgpu-rig
# release of wgpu-native, of the package, its sha256
natives="27 0.30.0 23ad532e841841146865f6b05b5b3573b85f81e60031202e03ee9b7d76a4c75c
29 0.32.0 6499a31b5a29a10b4f1089fea4a0806411f42605fa86b6c0b543a07ca0de8568"
wanted="$dawn $dawn_version, mesa $mesa_version, wgpu ${natives//$'\n'/, }, 3"  # the last number: of this script's own layout

say() { echo "webgpu rig: $*" >&2; }
[ "$(cat "$rig/complete" 2>/dev/null || true)" != "$wanted" ] || exit 0
if [ "$(uname -sm)" != "Linux x86_64" ]; then
  say "only for 64-bit x86 Linux: the library is built for nothing else"
  exit 1
fi
for tool in apt-get dpkg-deb ldd tar sha256sum; do
  command -v $tool >/dev/null || { say "$tool cannot be found"; exit 1; }
done

# Unpacked under another name and moved at the end, so that half a rig is never taken for one.
work=$rig.new.$$
trap 'rm -rf "$work"' EXIT
rm -rf "$work"
mkdir -p "$work/apt/lists/partial" "$work/apt/cache/archives/partial" "$work/mesa"

say "fetching $dawn $dawn_version"
archive=$work/dawn.tgz
if command -v npm >/dev/null; then
  (cd "$work" && npm pack --silent "$dawn@$dawn_version" >/dev/null && mv "$dawn-$dawn_version.tgz" dawn.tgz) ||
    { say "npm pack $dawn@$dawn_version failed (see above)"; exit 1; }
elif command -v curl >/dev/null; then
  curl -fsSL --retry 2 -o "$archive" "https://registry.npmjs.org/$dawn/-/$dawn-$dawn_version.tgz" ||
    { say "$dawn $dawn_version could not be fetched from registry.npmjs.org"; exit 1; }
else
  say "neither npm nor curl can be found: install one of these packages"
  exit 1
fi
echo "$dawn_sha256  $archive" | sha256sum --check --quiet || { say "$dawn $dawn_version is not what it was"; exit 1; }
tar -xzf "$archive" -C "$work" package/libwebgpu_wrapper.so package/LICENSE
mv "$work/package" "$work/dawn"
ln -s libwebgpu_wrapper.so "$work/dawn/libwebgpu_dawn.so"  # the name under which Dawn is looked for

while read -r release version sha256; do
  say "fetching wgpu $version, with wgpu-native $release"
  python3 -m pip download --quiet --no-deps --disable-pip-version-check --only-binary :all: --platform manylinux_2_28_x86_64 \
    --dest "$work/wheel" "wgpu==$version" || { say "pip could not download wgpu $version (see above)"; exit 1; }
  echo "$sha256  $(echo "$work"/wheel/*.whl)" | sha256sum --check --quiet || { say "wgpu $version is not what it was"; exit 1; }
  python3 -m zipfile -e "$work"/wheel/*.whl "$work/wheel/unpacked"
  mkdir "$work/wgpu-native-$release"
  mv "$work"/wheel/unpacked/wgpu/resources/libwgpu_native-release.so "$work/wgpu-native-$release/libwgpu_native.so"
  rm -rf "$work/wheel"
done <<<"$natives"

say "fetching mesa-vulkan-drivers from bookworm-backports"
keys=/usr/share/keyrings/debian-archive-keyring.gpg
[ -r $keys ] || { say "$keys cannot be found: install the package debian-archive-keyring"; exit 1; }
echo "deb [signed-by=$keys] http://deb.debian.org/debian bookworm-backports main" >"$work/apt/sources.list"
apt_private() {
  apt-get -q -o Dir::Etc::SourceList="$work/apt/sources.list" -o Dir::Etc::SourceParts=/dev/null \
    -o Dir::Etc::Preferences=/dev/null -o Dir::Etc::PreferencesParts=/dev/null -o Dir::State::Lists="$work/apt/lists" \
    -o Dir::Cache="$work/apt/cache" -o APT::Architectures=amd64 -o APT::Sandbox::User=root -o Acquire::Languages=none -o APT::Update::Post-Invoke-Success= "$@" >&2
}
apt_private update || { say "the package lists of bookworm-backports could not be fetched"; exit 1; }
(cd "$work" && apt_private download mesa-vulkan-drivers) ||
  { say "mesa-vulkan-drivers could not be fetched from bookworm-backports"; exit 1; }
set -- "$work"/mesa-vulkan-drivers_*.deb
case $1 in
  *_"$mesa_version"-*) ;;
  *) say "bookworm-backports has $(basename "$1"), not Mesa $mesa_version: try the tests on it, then change this script"; exit 1 ;;
esac
driver=usr/lib/x86_64-linux-gnu/libvulkan_lvp.so
dpkg-deb --fsys-tarfile "$1" | tar -x -C "$work/mesa" "./$driver" ./usr/share/doc/mesa-vulkan-drivers/copyright
absent=$(ldd "$work/mesa/$driver" | awk '/not found/ { print $1 }' | sort -u | tr '\n' ' ')
[ -z "$absent" ] || { say "lavapipe needs libraries that are not installed: $absent(scripts/setup.sh gpu installs them)"; exit 1; }

cat >"$work/lavapipe.json" <<EOF
{"file_format_version": "1.0.0", "ICD": {"library_path": "$rig/mesa/$driver", "api_version": "1.3.0"}}
EOF
rm -rf "$work/apt" "$work"/*.deb "$archive"
echo "$wanted" >"$work/complete"
rm -rf "$rig"
mv "$work" "$rig"
say "the rig is in $rig"
