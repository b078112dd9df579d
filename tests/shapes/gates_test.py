#!/usr/bin/env python3
"""Wrong and right wishes to the configure step: what must stop it, and with which words.

Usage: gates_test.py SOURCE_FOLDER WORK_FOLDER
"""
import glob
import json
import os
import platform
import re
import shutil
import subprocess
import sys

SOURCE, WORK = (os.path.abspath(path) for path in sys.argv[1:3])
sys.path.insert(0, os.path.join(SOURCE, "scripts/check"))
import combinations  # noqa: E402

# arguments, what must be said ([]: it must configure)
CASES = [
    ("a misspelt backend", ["-DGIMBAL_BACKEND_CUDAA=ON"], ["no option GIMBAL_BACKEND_CUDAA", "GIMBAL_BACKEND_CUDA?"]),
    ("a misspelt backend with a type", ["-DGIMBAL_BACKEND_VULCAN:BOOL=ON"], ["GIMBAL_BACKEND_VULKAN?"]),
    ("a wish in another project's words", ["-DWITH_VULKAN=ON"], ["no option WITH_VULKAN", "GIMBAL_BACKEND_VULKAN?"]),
    ("a shortened name", ["-DGIMBAL_CUDA=ON"], ["GIMBAL_BACKEND_CUDA?"]),
    ("a misspelt other option", ["-DGIMBAL_WORKER=ON"], ["GIMBAL_WORKERS?"]),
    ("Intel MKL", ["-DGIMBAL_MKL=ON"], ["GIMBAL_MKL implies GIMBAL_BACKEND_CPU=ON", "takes no rows from Intel MKL", "the same bits", "Leave GIMBAL_MKL out"]),
    ("Accelerate, in another project's words", ["-DUSE_ACCELERATE=1"], ["USE_ACCELERATE implies GIMBAL_BACKEND_CPU=ON", "Apple's Accelerate"]),
    ("cuDNN", ["-DGIMBAL_CUDA_CUDNN=ON", "-DGIMBAL_BACKEND_CUDA=ON"], ["implies GIMBAL_BACKEND_CUDA=ON, but the cuda backend", "cuDNN", "the same bits"]),
    ("no MKL", ["-DGIMBAL_MKL=OFF"], []),
    ("a value that is none", ["-DGIMBAL_BACKEND_OPENCL=yess"], ["'yess', which is neither ON nor OFF"]),
    ("nothing", ["-DGIMBAL_BACKEND_CPU=OFF"], ["No backend is switched on", "-DGIMBAL_BACKEND_CPU=ON"]),
    ("two that each want to be alone", ["-DGIMBAL_ONLY=cuda", "-DGIMBAL_BACKEND_METAL=ON"], ["contradict each other", "GIMBAL_BACKEND_METAL"]),
    ("alone, and off", ["-DGIMBAL_ONLY=cuda", "-DGIMBAL_BACKEND_CUDA=OFF"], ["contradict each other"]),
    ("alone, and unknown", ["-DGIMBAL_ONLY=directx"], ["no such backend", "vulkan"]),
    ("an option of a backend that is off", ["-DGIMBAL_CUDA_CUBINS=ON"], ["option of the cuda backend, which is off", "-DGIMBAL_BACKEND_CUDA=ON"]),
    ("nothing said: the cpu alone", [], []),
    ("an instruction set that does not exist", ["-DGIMBAL_CPU_VARIANTS=avx2;avx3"], ["no instruction set 'avx3'", "all; none; common"]),
    ("a feature that does not exist", ["-DGIMBAL_FEATURES=server,musik"], ["no feature 'musik'", "huggingface"]),
    ("one alone, with tests", ["-DGIMBAL_ONLY=webgpu", "-DBUILD_TESTING=ON"], []),
]

# A machine without these. In all other cases the tools are said to be there, whether or not they are: nothing is built here.
TOOLS = ["glslc", "spirv-opt", "spirv-val", "spirv-cross", "clang-19", "ld.lld-19"]
HEADERS = ["GIMBAL_VOLK_INCLUDE", "GIMBAL_VULKAN_INCLUDE", "GIMBAL_OPENCL_INCLUDE"]
ALL_TOOLS = [f"-DGIMBAL_TOOL_{tool}=/bin/true" for tool in TOOLS] + [f"-D{header}=/usr/include" for header in HEADERS]
ABSENT = [
    ("cuda", "clang-19", "clang-19"),
    ("rocm", "ld.lld-19", "lld-19"),
    ("vulkan", "glslc", "glslc"),
    ("vulkan", "volk.h", "libvulkan-volk-dev"),
    ("opencl", "CL/cl.h", "opencl-headers"),
]
# What a backend by itself needs of these, and nothing else.
OWN = {
    "cpu": [],
    "cuda": ["clang-19"],
    "rocm": ["clang-19", "ld.lld-19"],
    "vulkan": ["glslc", "spirv-opt", "spirv-val", "GIMBAL_VOLK_INCLUDE", "GIMBAL_VULKAN_INCLUDE"],
    "opencl": ["GIMBAL_OPENCL_INCLUDE"],
    "webgpu": [],
    "metal": ["glslc", "spirv-opt", "spirv-val", "spirv-cross"],
}


def instruction_sets(folder):
    """Those that kernels of the cpu backend are compiled for."""
    with open(os.path.join(folder, "compile_commands.json"), encoding="utf-8") as file:
        return {name for entry in json.load(file) for name in re.findall(r"-DCPU_VARIANT=(\w+)", entry["command"])} - {"moves"}


def sources(folder):
    with open(os.path.join(folder, "compile_commands.json"), encoding="utf-8") as file:
        return {os.path.relpath(entry["file"], SOURCE) for entry in json.load(file)}


def feature_commands():
    """{feature: source names of its commands}"""
    with open(os.path.join(SOURCE, "cmake/features.cmake"), encoding="utf-8") as file:
        return {feature: names.split() for feature, names in re.findall(r"^set\(GIMBAL_COMMANDS_(\w+) ([^)]*)\)", file.read(), re.M)}


def absent_sources():
    """{source in absent/: the feature that it is without}"""
    found = {}
    for path in glob.glob(os.path.join(SOURCE, "src/**/absent/*.cpp"), recursive=True):
        with open(path, encoding="utf-8") as file:
            found[os.path.relpath(path, SOURCE)] = re.match(r"// without (\w+):", file.readline()).group(1)
    return found


def main():
    shutil.rmtree(WORK, ignore_errors=True)
    names = combinations.backends()
    facts = combinations.what_cmake_knows(WORK, names, ALL_TOOLS)
    wrong = []

    def configure(options, environment=None):
        folder = os.path.join(WORK, "try")
        combinations.seed(folder, facts)
        # File by file, so that compile_commands.json names each.
        done = subprocess.run(["cmake", "-S", SOURCE, "-B", folder, "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release", "-DBUILD_TESTING=OFF",
                               "-DCMAKE_UNITY_BUILD=OFF", *options], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False, env=environment)
        return folder, done.returncode, re.sub(r"\s+", " ", done.stdout)

    def judge(name, code, text, said):
        if bool(said) != bool(code):
            wrong.append(f"{name}: {'was accepted' if said else 'was refused: ' + text[-2000:]}")
        for part in said:
            if part not in text:
                wrong.append(f"{name}: expected the words '{part}' in: {text[-2000:]}")

    for name, options, said in CASES:
        folder, code, text = configure([*ALL_TOOLS, *options])
        judge(name, code, text, said)
        if not said and not code:
            on = {options[0].split("=")[1]} if options and "ONLY" in options[0] else {"cpu"}
            if (compiled := combinations.what_it_compiles(folder) & set(names)) != on:
                wrong.append(f"{name}: compiles {sorted(compiled)}")

    # find_program and find_path look where they are told to, and nowhere else.
    bare = os.path.join(WORK, "bin")
    os.makedirs(bare)
    for tool in ["python3", "cpp", "ninja"]:
        os.symlink(shutil.which(tool), os.path.join(bare, tool))
    environment = {**os.environ, "PATH": bare}
    nowhere = ["-DCMAKE_FIND_USE_CMAKE_SYSTEM_PATH=OFF", "-DCMAKE_FIND_USE_SYSTEM_ENVIRONMENT_PATH=ON", "-DGIMBAL_CURL_HEADERS=/usr/include",
               *(f"-D{name}={path}" for name, path in combinations.found_libraries(facts).items())]
    cmake = shutil.which("cmake")
    os.symlink(cmake, os.path.join(bare, "cmake"))
    for backend, what, package in ABSENT:
        given = [f"-DGIMBAL_TOOL_{tool}=/bin/true" for tool in TOOLS if tool != what]
        if what != "volk.h":
            given += ["-DGIMBAL_VOLK_INCLUDE=/usr/include", "-DGIMBAL_VULKAN_INCLUDE=/usr/include"]
        _, code, text = configure([f"-DGIMBAL_ONLY={backend}", *nowhere, *given], environment)
        judge(f"{backend} without {what}", code, text, [what, package, "scripts/setup.sh gpu"])

    for backend, own in OWN.items():
        given = [f"-D{name}=/usr/include" if name.startswith("GIMBAL_") else f"-DGIMBAL_TOOL_{name}=/bin/true" for name in own]
        _, code, text = configure([f"-DGIMBAL_ONLY={backend}", *nowhere, *given], environment)
        judge(f"{backend} with its own tools alone", code, text, [])
        implied = re.search(r"GIMBAL_ONLY=(\w+) implies (\w+)=ON, and OFF of ([\w, ]+?) --", text)
        gates = {f"GIMBAL_BACKEND_{name.upper()}" for name in names}
        off = set(implied[3].split(", ")) if implied else set()
        if not implied or implied[1] != backend or implied[2] != f"GIMBAL_BACKEND_{backend.upper()}" or not off >= gates - {implied[2]} or implied[2] in off:
            wrong.append(f"{backend} alone: what it implies is not said: {text[-2000:]}")

    # The cpu backend's instruction sets: those that are asked for, and the baseline.
    if platform.machine() == "x86_64":
        folder, code, text = configure(["-DGIMBAL_CPU_VARIANTS=all"])
        judge("all instruction sets", code, text, [])
        offered = instruction_sets(folder) if not code else set()
        for asked in (set(), {"avx2"}, {"avxvnni"}, {"avx2", "avx512vnni"}):
            folder, code, text = configure([f"-DGIMBAL_CPU_VARIANTS={';'.join(sorted(asked)) or 'none'}"])
            judge(f"the instruction sets {asked}", code, text, [])
            if not code and (built := instruction_sets(folder)) != asked | {"baseline"}:
                wrong.append(f"the instruction sets {asked}: compiles {sorted(built)}")
        if not {"avx2", "avxvnni", "avx512", "avx512vnni", "amx"} <= offered:
            wrong.append(f"all instruction sets: compiles {sorted(offered)}")
        # A compiler without -mavxvnni, as the check of it would report.
        old = "-Dcompiler_makes_avxvnni="
        folder, code, text = configure(["-DGIMBAL_CPU_VARIANTS=all", old])
        judge("all instruction sets, by an old compiler", code, text, [])
        if "built without the instruction set avxvnni" not in text or not code and instruction_sets(folder) != offered - {"avxvnni"}:
            wrong.append(f"all instruction sets, by an old compiler: {text[-2000:]}")
        _, code, text = configure(["-DGIMBAL_CPU_VARIANTS=avx2;avxvnni", old])
        judge("avxvnni, by an old compiler", code, text, ["'avxvnni' cannot be built", "-mavxvnni", "or a list without it"])

    # Each feature alone: its commands are compiled, those of the others are not, and sources in absent/ take the place of the others' own.
    features, absent = feature_commands(), absent_sources()
    implied_by = {"crossval": {"ffi"}}
    for feature in sorted(set(features) | set(absent.values())):
        folder, code, text = configure([f"-DGIMBAL_FEATURES={feature}"])
        judge(f"the feature {feature} alone", code, text, [])
        if code:
            continue
        compiled, there = sources(folder), {feature} | implied_by.get(feature, set())
        if set(re.findall(rf"GIMBAL_FEATURES: {feature} implies (\w+)", text)) != there - {feature}:
            wrong.append(f"the feature {feature} alone: what it implies is not said: {text[-2000:]}")
        for name, commands in features.items():
            for command in commands:
                if (f"src/apps/commands/{command}.cpp" in compiled) != (name in there):
                    wrong.append(f"the feature {feature} alone: {command}.cpp of {name} is {'not ' if name in there else ''}compiled")
        for source, name in absent.items():
            if (source in compiled) == (name in there) or (source.replace("/absent/", "/") in compiled) != (name in there):
                wrong.append(f"the feature {feature} alone: {source} and the source that it replaces")
    _, code, text = configure(["-DGIMBAL_FEATURES=none"])
    judge("no feature", code, text, [])
    if "Without the features: server," not in text:
        wrong.append(f"no feature: it is not said: {text[-2000:]}")
    _, code, text = configure(["-DGIMBAL_FEATURES=none", "-DBUILD_TESTING=ON"])
    judge("no feature, with tests", code, text, [])
    if "GIMBAL_FEATURES implies BUILD_TESTING=OFF" not in text:
        wrong.append(f"no feature, with tests: what it implies is not said: {text[-2000:]}")

    # The presets: each configures what its name says.
    with open(os.path.join(SOURCE, "CMakePresets.json"), encoding="utf-8") as file:
        declared = json.load(file)["configurePresets"]
    presets = {preset["name"]: preset.get("cacheVariables", {}) for preset in declared}
    parents = {preset["name"]: preset.get("inherits") for preset in declared}
    expected = {f"{name}-only": {name} for name in names} | {
        "all-backends": set(names), "full": set(names), "one-file": set(names), "gpu-backends": set(names) - {"cpu"}, "release": {"cpu"}, "default": {"cpu"}, "minimal": {"cpu"}}
    by_name = dict(presets)
    for name, inherits in parents.items():  # of which each has the variables, too
        while inherits:
            presets[name] = {**by_name[inherits], **presets[name]}
            inherits = parents[inherits]
    for preset, backends in expected.items():
        if preset not in presets:
            wrong.append(f"there is no preset {preset}")
            continue
        folder, code, text = configure([*ALL_TOOLS, *(f"-D{name}={value}" for name, value in presets[preset].items())])
        judge(f"preset {preset}", code, text, [])
        if not code and (compiled := combinations.what_it_compiles(folder) & set(names)) != backends:
            wrong.append(f"preset {preset}: compiles {sorted(compiled)}")

    print("\n".join(wrong) or f"{len(CASES)} wishes, {len(ABSENT)} missing tools, {len(OWN)} backends with their own tools and {len(expected)} presets answered as they should")
    shutil.rmtree(WORK)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
