#!/usr/bin/env python3
"""gimbal looks at its own files: the program and the CPU's code have nothing of a GPU, each plugin is one and says which GPU it is for.

Usage: own_libraries_test.py GIMBAL BACKENDS...
"""
import json
import os
import subprocess
import sys

# The device that each plugin shows. The kernels are packed, so their code is no evidence; the driver's name is, which the plugin opens.
GPUS = {"cuda": "CUDA", "rocm": "HIP", "metal": "Metal", "vulkan": "Vulkan", "opencl": "OpenCL", "webgpu": "WebGPU"}


def look(gimbal, path, *options):
    done = subprocess.run([gimbal, "inspect-library", path, "--json", *options], capture_output=True, text=True, check=False)
    return done.returncode, json.loads(done.stdout) if done.stdout else {}


def main():
    gimbal, backends = sys.argv[1], sys.argv[2:]
    folder, faults = os.path.dirname(gimbal), []
    plugins = {b: os.path.join(folder, f"libgimbal-backend-{b}.so") for b in backends}
    plugins = {b: p for b, p in plugins.items() if os.path.exists(p)}
    linked_gpus = set(GPUS) & set(backends) - set(plugins)

    def check(condition, what, j):
        if not condition:
            faults.append(f"{what}: {json.dumps(j)[:1000]}")

    if not linked_gpus:
        code, j = look(gimbal, gimbal, "--forbid", "gpu")
        check(code == 0, "the program has something of a GPU", j)
        check(j.get("symbols", {}).get("cuda", {}).get("count") == 0, "the program has symbols of CUDA", j)
    for backend, path in plugins.items():
        code, j = look(gimbal, path, "--require", "plugin")
        check(code == 0, f"{path} is no plugin", j)
        check(j.get("verdict", {}).get("summary", "").startswith("gimbal plugin"), f"{path}: summary", j)
        if backend == "metal" and sys.platform != "darwin":
            continue  # elsewhere it only says that it is for macOS
        if backend in GPUS:
            check(j.get("verdict", {}).get("gpus") == [GPUS[backend]], f"{path} is not for {GPUS[backend]}", j.get("verdict"))
        elif backend != "emulator":
            check(j.get("verdict", {}).get("cpu_only"), f"{path} has something of a GPU", j)
    # A missing file must not pass as one without GPUs.
    code, _ = look(gimbal, os.path.join(folder, "no-such-file.so"), "--forbid", "gpu")
    check(code == 1, "a missing file passes", code)
    for fault in faults:
        print(fault)
    print(f"own_libraries: the program and {len(plugins)} plugins, {len(faults)} faults")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
