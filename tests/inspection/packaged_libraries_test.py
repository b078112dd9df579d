#!/usr/bin/env python3
"""Libraries as others publish them (scripts/rig/libraries.sh): gimbal inspect-library answers as tests/inspection/packaged.json says.

Usage: packaged_libraries_test.py GIMBAL RIG           compare
       packaged_libraries_test.py GIMBAL RIG --record  write packaged.json anew; needs LLVM 14's llvm-nm and llvm-readobj

The numbers of symbols and the needed libraries in packaged.json are those that LLVM's tools print, and recording fails where gimbal's differ.
The other facts (families, kernels, code of GPUs, instructions) are gimbal's: they must not change unnoticed. The names of ggml's CPU
libraries say which instructions they have, which is checked, too.
"""
import json
import os
import re
import subprocess
import sys

EXPECTED = os.path.join(os.path.dirname(os.path.abspath(__file__)), "packaged.json")
# What the build of a CPU library must and must not contain, by ggml's own list of variants.
VARIANTS = {
    "x64": ([], ["SSE4.1", "AVX"]), "sse42": (["SSE4.1"], ["AVX"]), "sandybridge": (["AVX"], ["F16C", "FMA", "AVX2"]),
    "ivybridge": (["AVX", "F16C"], ["FMA", "AVX2"]), "piledriver": (["AVX", "F16C", "FMA"], ["AVX2"]),
    "haswell": (["AVX2", "FMA", "F16C", "BMI2"], ["AVX-512", "AVX-VNNI"]), "alderlake": (["AVX2", "AVX-VNNI"], ["AVX-512"]),
    "skylakex": (["AVX-512"], ["AVX-512 VNNI", "AMX"]), "cascadelake": (["AVX-512", "AVX-512 VNNI"], ["AVX-512 BF16", "AMX"]),
    "cooperlake": (["AVX-512 VNNI", "AVX-512 BF16"], ["AMX"]), "zen4": (["AVX-512 VNNI", "AVX-512 BF16"], ["AMX"]),
    "sapphirerapids": (["AVX-512 BF16", "AMX"], []),
    "armv8.0_1": ([], ["DotProd", "SVE", "FP16"]), "armv8.2_1": (["DotProd"], ["SVE", "I8MM"]), "armv8.2_2": (["DotProd", "FP16"], ["SVE"]),
    "armv8.2_3": (["DotProd", "SVE"], ["I8MM"]), "armv8.6_1": (["I8MM", "SVE"], []), "apple_m1": (["DotProd"], ["I8MM"]),
    "apple_m2_m3": (["DotProd", "I8MM"], ["SVE"]),
}


def skip(why):
    print(f"skipped: {why}")
    sys.exit(77)


def libraries(rig):
    for folder, _, names in os.walk(rig):
        for name in sorted(names):
            if re.search(r"\.(so|dylib|dll|node|pyd)$", name):
                yield os.path.relpath(os.path.join(folder, name), rig)


def look(gimbal, path):
    done = subprocess.run([gimbal, "inspect-library", path, "--json", "--symbols"], capture_output=True, text=True, check=False)
    if done.returncode:
        return {"error": done.stderr}
    j = json.loads(done.stdout)
    images = []
    for i in j["images"]:
        images.append({"format": i["format"], "machine": i["machine"], "name": i["name"], "build_id": i["build_id"], "needed": i["needed"],
                       "exported": i["exported"], "undefined": i["undefined"],
                       "gpu_code": {g["kind"]: g["targets"] for g in i["gpu_code"]},
                       "instructions": [f["name"] for f in i["cpu_code"]["families"] if not f["doubtful"]]})
    return {"summary": j["verdict"]["summary"], "loads_backends": j["verdict"]["loads_backends"],
            "symbols": {k: v["count"] for k, v in j["symbols"].items() if v["count"]},
            "kernels": [f"{k['name']} ({k['device']})" for k in j["quantization_kernels"]], "images": images}


def llvm_counts(path, images):
    """(exported, undefined, needed) of each image."""
    def output(*command):
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout

    counts = []
    for i in images:
        arch = {"x86-64": "x86_64", "arm64": "arm64"}.get(i["machine"], "")
        if i["format"] == "PE":
            exported = set(re.findall(r"^ +Name: (.+)", output("llvm-readobj-14", "--coff-exports", path), re.M))
            imports = output("llvm-readobj-14", "--coff-imports", path)
            undefined, needed = set(re.findall(r"^ +Symbol: (\S+)", imports, re.M)), re.findall(r"^  Name: (.*)", imports, re.M)
        else:
            nm = ["llvm-nm-14", "--extern-only", "--format=posix"] + ([f"--arch={arch}"] if i["format"] == "Mach-O" else ["--dynamic"])
            exported, undefined = set(), set()
            for line in output(*nm, path).splitlines():
                words = line.split(" ")
                if len(words) >= 2 and len(words[1]) == 1:
                    (undefined if words[1] in "Uvw" else exported).add(words[0].split("@")[0])
            needed = [n for n in re.findall(r"^  (\S+)$", output("llvm-readobj-14", "--needed-libs", path), re.M) if n != "]"]
            if i["format"] == "Mach-O":
                needed = [n for n in i["needed"] if n in needed]  # LLVM adds its own name, and those of the other slices
        counts.append((len(exported), len(undefined), sorted(needed)))
    return counts


def variant_faults(path, found):
    match = re.match(r"(?:lib)?ggml-cpu-(.+)\.(?:so|dll)$", os.path.basename(path))
    if not match or match[1] not in VARIANTS:
        return []
    must, must_not = VARIANTS[match[1]]
    if path.endswith(".dll"):  # Microsoft's C library, linked into it, has code for newer CPUs
        must_not = []
    have = found["images"][0]["instructions"]
    return [f"{path}: lacks {m}" for m in must if m not in have] + [f"{path}: has {m}" for m in must_not if m in have]


def main():
    gimbal, rig = sys.argv[1:3]
    if not os.path.isdir(rig):
        skip("the libraries rig is absent: scripts/rig/libraries.sh fetches it")
    found = {path: look(gimbal, os.path.join(rig, path)) for path in sorted(libraries(rig))}
    faults = [f for path, one in found.items() for f in (variant_faults(path, one) if "error" not in one else [f"{path}: {one['error']}"])]
    if "--record" in sys.argv:
        for path, one in found.items():
            for image, (exported, undefined, needed) in zip(one["images"], llvm_counts(os.path.join(rig, path), one["images"])):
                ours = (image["exported"], image["undefined"], sorted(image["needed"]))
                if ours != (exported, undefined, needed):
                    faults.append(f"{path}: {ours}, and LLVM prints {(exported, undefined, needed)}")
        with open(EXPECTED, "w", encoding="utf-8") as file:
            lines = [f"{json.dumps(path)}: {json.dumps(one)}" for path, one in found.items()]
            file.write("{\n" + ",\n".join(lines) + "\n}\n")
    with open(EXPECTED, encoding="utf-8") as file:
        expected = json.load(file)
    faults += [f"{path}: missing" for path in expected if path not in found] + [f"{path}: not in packaged.json" for path in found if path not in expected]
    for path, one in found.items():
        for key, value in expected.get(path, {}).items():
            if one.get(key) != value:
                faults.append(f"{path}: {key} is\n  {one.get(key)}\n  expected\n  {value}")
    for fault in faults:
        print(fault)
    print(f"packaged_libraries: {len(found)} libraries, {len(faults)} faults")
    return 1 if faults or len(found) < 60 else 0


if __name__ == "__main__":
    sys.exit(main())
