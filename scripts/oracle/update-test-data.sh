#!/usr/bin/env bash
# Copies the part of the reference collection that a clone needs into tests/data, and the default model into assets.
# Usage: scripts/oracle/update-test-data.sh [COLLECTION]   (default: ../shared/golden beside the checkout)
set -euo pipefail
cd "$(dirname "$0")/../.."
from=${1:-../shared/golden}
to=tests/data
limit_mb=45

# What a clone gets. The vocabularies and templates are those whose terms allow passing them on (tests/data/README.md).
stories=(stories260K-f32 stories260K-f16 stories260K-q8_0 stories260K-q4_0)
arch=(llama-gqa llama-mha-tied llama-linrope llama31-ropefreqs qwen2 qwen2-yarn bitnet bitnet-b158 bitnet-b158-i2s
  bitnet-b158-f32 command-r gemma3 gpt-oss starcoder2)
more=(bloom deepseek2 exaone4 gemma4-moe glm4 glm4moe granitehybrid-q8 jamba lfm2moe llama4 mamba mamba2 qwen35 stablelm2)
embed=(bert modern-bert gemma-embedding-dense)
quant=(q-f16 q-bf16 q-q8_0 q-q4_0 q-q6_k q-iq2_s q-mix-q4km)
vocabularies=(gpt-2 falcon phi-3 tok512 qwen2)
chat=(jinja_units chatml command-r deepseek-coder gemma llama3 mistral-v0.1 phi3-mini zephyr Qwen-Qwen2.5-7B-Instruct Qwen-Qwen3-0.6B
  deepseek-ai-DeepSeek-R1-Distill-Qwen-32B ibm-granite-granite-3.3-2B-Instruct microsoft-Phi-3.5-mini-instruct
  mistralai-Mistral-Nemo-Instruct-2407 openai-gpt-oss-120b)
folders=(qwen3-f16-sharded mixtral-bf16)

[ -f "$from/tolerances.json" ] || { echo "update-test-data: '$from' holds no tolerances.json, so it is not the collection" >&2; exit 1; }

copy() { install -D -m 644 "$from/$1" "$to/$1"; }

# Cases of vision/NAME.json; without the pixels: what text models need.
copy_rows() {
  mkdir -p "$to/vision"
  python3 - "$from/vision/$1.json" "$to/vision/$1.json" "${@:2}" <<'END'
import json, sys
source, out, *names = sys.argv[1:]
with_pixels = "--with-pixels" in names
with open(source) as file:
    golden = json.load(file)
golden["cases"] = [{key: case[key] for key in case if with_pixels or "pixels" not in key} for case in golden["cases"] if case["name"] in names]
with open(out, "w") as file:
    print(json.dumps(golden, separators=(",", ":")), file=file)
END
}

# An encoder and cases of vision/NAME.json with all that is known of them.
copy_pictures() {
  copy "vision/mmproj-$1.gguf"
  copy_rows "$1" "${@:2}" --with-pixels
}

# Cases of tensors/NAME.json whose first input has one of these dtypes.
copy_cases() {
  mkdir -p "$to/tensors"
  python3 - "$from/tensors/$1.json" "$to/tensors/$1.json" "${@:2}" <<'END'
import json, sys
source, out, *dtypes = sys.argv[1:]
with open(source) as file:
    golden = json.load(file)
cases = [json.dumps(case, separators=(",", ":")) for case in golden["cases"] if case["in"][0]["dtype"] in dtypes]
with open(out, "w") as file:
    print(json.dumps({key: golden[key] for key in golden if key != "cases"})[:-1] + ', "cases": [\n' + ",\n".join(cases) + "\n]}", file=file)
END
}

# At most three cases of each operation and dtype of tensors/NAME.json, spread over the list; all of errors.json.
copy_some_cases() {
  python3 - "$from/tensors/$1.json" "$to/tensors/$1.json" <<'END'
import json, sys
source, out = sys.argv[1:]
with open(source) as file:
    golden = json.load(file)
groups = {}
for case in golden["cases"]:
    dtype = case["in"][0]["dtype"] if case["in"] else case.get("params", {}).get("dtype")
    groups.setdefault((case["op"], dtype), []).append(case)
kept = []
for cases in groups.values():
    short = [case for case in cases if len(json.dumps(case)) < 6000] or cases[:1]
    kept += cases if golden["family"] == "errors" else short[::max(1, len(short) // 3)][:3]
cases = [json.dumps(case, separators=(",", ":")) for case in kept]
with open(out, "w") as file:
    print(json.dumps({key: golden[key] for key in golden if key != "cases"})[:-1] + ', "cases": [\n' + ",\n".join(cases) + "\n]}", file=file)
END
}

# Of encode/: a few rows, and what ggml's quantizer makes of them.
copy_encoded() {
  mkdir -p "$to/encode"
  python3 - "$from/encode" "$to/encode" "$@" <<'END'
import glob, json, os, sys
source, out, *names = sys.argv[1:]
for path in sorted(glob.glob(os.path.join(source, "*.json"))):
    with open(path) as file:
        golden = json.load(file)
    if "rows" in golden:
        golden["rows"] = {name: golden["rows"][name] for name in names}
    else:
        golden["cases"] = [case for case in golden["cases"] if case["input"] in names]
    with open(os.path.join(out, os.path.basename(path)), "w") as file:
        print(json.dumps(golden, separators=(",", ":")), file=file)
END
}

# What the collection has too is replaced, so that a name dropped from the lists disappears here. The rest is ours.
for path in "$to"/*; do
  name=${path##*/}
  if [ "$name" != README.md ] && [ -e "$from/$name" ]; then rm -rf "$path"; fi
done
for name in "${stories[@]}"; do copy "stories/$name.gguf"; copy "stories/$name.json"; done
for name in "${arch[@]}"; do copy "arch/$name.gguf"; copy "arch/$name.json"; done
for name in "${more[@]}"; do copy "more/arch/$name.gguf"; copy "more/arch/$name.json"; done
for name in "${embed[@]}"; do copy "more/embed/$name.gguf"; copy "more/embed/$name.json"; done
for name in "${quant[@]}"; do copy "quant/$name.gguf"; copy "quant/$name.json"; done
for file in "$from"/dequant/*.json; do copy "dequant/${file##*/}"; done
copy_encoded uniform "heavy tail" outlier ternary ties "zero block"
for name in "${vocabularies[@]}"; do copy "vocab/$name.gguf.gz"; copy "tokenizer/$name.json"; done
for name in "${chat[@]}"; do copy "chat/$name.json"; done
for name in TL1.json TL2.json published.json bitnet-b158-tl{1,2}.{gguf,json,kernel_config.ini}; do copy "tl/$name"; done
for name in qwen2vl qwen3vl; do copy "vision/text-$name.gguf"; done
copy_rows qwen2vl one
copy_rows qwen2.5vl one two wide
copy_rows qwen3vl two dot
copy_pictures gemma3 one odd
copy_pictures llava-siglip wide
copy_pictures llava-tiles one
copy_pictures idefics3 wide
copy_pictures pixtral dot wide
copy_pictures internvl one
for name in qwen2vl qwen2.5vl qwen3vl; do copy "vision/mmproj-$name.gguf"; done
for name in gemma3 llama; do copy "vision/text-$name.gguf"; done
copy_rows ultravox short --with-pixels
copy vision/images/short.wav
copy vision/mmproj-ultravox.gguf
copy vision/decoding.json
for file in text-shapes.gguf mmproj-shapes.gguf shapes.json; do copy "vision/$file"; done
for file in "$from"/vision/images/*; do case $file in *.wav) ;; *) copy "vision/images/${file##*/}" ;; esac; done
copy_cases maps f32 u8 i64 bool
copy_cases compare f32 u8 i64 bool
copy_cases promote f32 u8 i64 bool
for name in cast conv cumsum errors gather matmul moves pool random reductions softmax sort upsample views where; do copy_some_cases "$name"; done
for name in "${folders[@]}"; do
  copy "hf/$name.json"
  for file in "$from/hf/$name"/*; do copy "hf/$name/${file##*/}"; done
done
(cd "$from" && find hostile -type f) | while read -r file; do copy "$file"; done
copy tolerances.json
install -m 644 "$from/stories/stories260K-f32.gguf" assets/stories260K.gguf

bytes=$(find "$to" -type f -printf '%s\n' | awk '{ sum += $1 } END { print sum }')
echo "$to: $(find "$to" -type f | wc -l) files, $((bytes / 1000)) kB"
if [ "$bytes" -gt $((limit_mb * 1000 * 1000)) ]; then
  echo "update-test-data: more than $limit_mb MB; take something off the lists in $0" >&2
  exit 1
fi
