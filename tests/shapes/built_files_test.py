#!/usr/bin/env python3
"""Looks at the built programs: each holds what its name says and nothing else, and stays as small as promised.

Usage: built_files_test.py BUILD_FOLDER static|plugin BACKEND...   (GIMBAL_BACKEND_LINKAGE and the backends of a release build)
"""
import os
import re
import subprocess
import sys
import tempfile

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../..")
sys.path.insert(0, os.path.join(ROOT, "scripts/build"))
from pack_modules import unpacked_in  # noqa: E402

# What gives a backend away: its vendor's libraries and functions, and the languages of its kernels. A remedy may name another
# backend ("use the vulkan backend"): the names alone are no trace.
TRACES = {
    "cpu": [rb"avx512vnni\."],
    "cuda": [rb"libcuda\.so", rb"\bcu[A-Z][a-z]+[A-Z][A-Za-z_0-9]+\b", rb"CUDA_ERROR", rb"\.target sm_"],
    "rocm": [rb"libamdhip64", rb"\bhip[A-Z][A-Za-z]+", rb"amdgcn-amd-amdhsa"],
    "vulkan": [rb"libvulkan", rb"\bvk[A-Z][a-z]+[A-Z][A-Za-z]+", rb"\x03\x02\x23\x07\x00[\x00-\x06]\x01\x00"],  # SPIR-V's magic
    "opencl": [rb"libOpenCL", rb"\bcl(Get|Create|Enqueue|Build|Release)[A-Z][A-Za-z]+", rb"\bkernel __attribute__\(\(reqd_work_group_size"],
    "webgpu": [rb"libwebgpu|libwgpu", rb"\bwgpu[A-Z][A-Za-z]+", rb"@workgroup_size"],
    "metal": [rb"metal_stdlib", rb"\bMTL[A-Z][A-Za-z]+"],
}
# On systems without Metal its backend only says so.
NO_TRACE_HERE = {"metal"} if sys.platform != "darwin" else set()

# What chooses between backends: no worker has it, the program gimbal does.
SELECTOR = re.compile(r"gimbal::(open_device|discover_backends|best_available_backend|choose_device|probe|linked_backends|Backends::|Library::|Registry::)")

LIBC = re.compile(r"^(libc|libm|libdl|libpthread|librt)\.so\.\d+$|^ld-linux.*|^linux-vdso.*")

MODEL = os.path.join(ROOT, "assets/stories260K.gguf")
MOST_ALONE = 10_100_000  # bytes of gimbal with the cpu backend, without the model inside; g++ 14 needs 3 % more than g++ 12
MOST_ALL = 19_900_000   # of gimbal with all its plugins, whose kernels are packed

failures = []


def check(holds, sentence):
    if not holds:
        failures.append(sentence)


def output(*command):
    return subprocess.run(command, stdout=subprocess.PIPE, check=True, text=True).stdout


def needed(path):
    return re.findall(r"\(NEEDED\).*\[(.*)\]", output("readelf", "-d", path))


def symbols(path):
    return output("nm", "-C", path)


def read(path):
    """A file's bytes, and behind them the kernels that it holds packed."""
    with open(path, "rb") as file:
        content = file.read()
    return b"\0".join([content, *unpacked_in(content)])


def stripped_size(path):
    with tempfile.NamedTemporaryFile() as out:
        subprocess.run(["strip", "-o", out.name, path], check=True)
        return os.path.getsize(out.name)


def amd_code(content):
    """ELF files for AMD's GPUs inside another file: e_machine 224 after an ELF header."""
    return any(content[m.start() + 18:m.start() + 20] == b"\xe0\x00" for m in re.finditer(rb"\x7fELF\x02\x01\x01", content) if m.start())


def check_foreign_traces(path, own):
    content, name = read(path), os.path.basename(path)
    for backend, patterns in TRACES.items():
        if backend in own:
            continue
        for pattern in patterns:
            if found := re.search(pattern, content):
                failures.append(f"{name} holds {found.group(0)!r}, which belongs to the {backend} backend")
    check("rocm" in own or not amd_code(content), f"{name} holds code for AMD's GPUs")


def check_own_traces(path, backend):
    content = read(path)
    for pattern in TRACES[backend] if backend not in NO_TRACE_HERE else []:
        check(re.search(pattern, content), f"{os.path.basename(path)} does not hold {pattern!r}, by which this test knows the {backend} backend")
    check(backend != "rocm" or amd_code(content), f"{os.path.basename(path)} holds no code for AMD's GPUs")


def check_needed(path):
    for library in needed(path):
        check(LIBC.match(library), f"{os.path.basename(path)} needs {library}, which not every machine has")


def check_worker(folder, backend):
    path = os.path.join(folder, f"gimbal-worker-{backend}")
    listing = symbols(path)
    for other in TRACES:
        check((f"T gimbal_backend_{other}\n" in listing) == (other == backend),
              f"gimbal-worker-{backend} {'misses' if other == backend else 'has'} the table of the {other} backend")
        check(other == backend or f"gimbal::{other}::" not in listing, f"gimbal-worker-{backend} has functions of the {other} backend")
    if found := SELECTOR.search(listing):
        failures.append(f"gimbal-worker-{backend} can choose: it has {found.group(0)}")
    check_own_traces(path, backend)
    check_foreign_traces(path, {backend})
    check_needed(path)


def main(folder, linkage, backends):
    sizes = {}
    workers = [b for b in backends if b in TRACES]
    for backend in workers:
        check_worker(folder, backend)
        sizes[f"gimbal-worker-{backend}"] = stripped_size(os.path.join(folder, f"gimbal-worker-{backend}"))

    program = os.path.join(folder, "gimbal")
    sizes["gimbal"] = stripped_size(program)
    check(SELECTOR.search(symbols(program)), "gimbal itself has nothing that chooses, or this test does not know it any more")
    plugins = {b: os.path.join(folder, f"libgimbal-backend-{b}.so") for b in workers if b != "cpu"}
    if plugins and linkage == "plugin":
        # Two shapes: what is not the CPU's lies in files beside the program.
        check_foreign_traces(program, {"cpu"})
        for backend, path in plugins.items():
            sizes[os.path.basename(path)] = stripped_size(path)
            check_own_traces(path, backend)
            check_foreign_traces(path, {backend})
            exported = [line.split()[-1] for line in output("nm", "-D", "--defined-only", path).splitlines()]
            check(exported == ["gimbal_plugin_entry"], f"{os.path.basename(path)} exports {exported}; only gimbal_plugin_entry is agreed upon")
            check_needed(path)
        every = sum(size for name, size in sizes.items() if not name.startswith("gimbal-worker"))
        check(every < MOST_ALL, f"gimbal and its plugins take {every} bytes; {MOST_ALL} are the limit")
        for backend in plugins:
            single = sizes["gimbal"] + sizes[f"libgimbal-backend-{backend}.so"]
            check(sizes["gimbal"] < single < every or len(plugins) == 1, f"gimbal with {backend} alone is not smaller than with all")
        for backend in workers:
            check(sizes[f"gimbal-worker-{backend}"] < every, f"gimbal-worker-{backend} is not smaller than gimbal with all plugins")
        print(f"gimbal with {len(plugins)} plugins: {every} bytes")
    check_needed(program)
    if linkage == "plugin" or not plugins:
        alone = sizes["gimbal"] - os.path.getsize(MODEL)
        check(alone < MOST_ALONE, f"gimbal takes {alone} bytes without its model; {MOST_ALONE} are the limit")
    for name, size in sizes.items():
        print(f"{size:10} {name} (stripped)")
    print("\n".join(failures) or f"{len(sizes)} files hold what they should")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2], sys.argv[3:]))
