#!/usr/bin/env python3
"""GIMBAL_EXTERNAL_LLAMA: what the configure step finds, prints, defines and refuses, in a small project that includes only it.

Usage: external_llama_test.py SOURCE_FOLDER WORK_FOLDER
"""
import os
import re
import shutil
import subprocess
import sys

SOURCE, WORK = (os.path.abspath(path) for path in sys.argv[1:3])
DATA = os.path.join(SOURCE, "tests/data/libraries")

PROJECT = f"""
cmake_minimum_required(VERSION 3.25)
project(consumer LANGUAGES C CXX)
find_program(GIMBAL_CCACHE ccache)
include({SOURCE}/cmake/external_llama.cmake)
gimbal_find_external_llama()
add_executable(consumer main.c)
target_link_libraries(consumer PRIVATE gimbal_external_llama)
"""
MAIN = """
#include <bitnet_cpp.h>
#include <stdio.h>
int main(void) {
  printf("found %d bitnet %d llama %d cuda %d %s\\n", BITNET_CPP_FOUND, BITNET_CPP_HAS_BITNET_LIB, BITNET_CPP_HAS_LLAMA_LIB,
         BITNET_CPP_HAS_CUDA, BITNET_CPP_LLAMA_PATH);
  return 0;
}
"""
PLATFORMS = {"Linux": "stdc++ pthread dl m gomp", "Darwin": "c++ -framework Accelerate", "Windows": "msvcrt"}


def main():
    shutil.rmtree(WORK, ignore_errors=True)
    project, build = os.path.join(WORK, "project"), os.path.join(WORK, "build")
    os.makedirs(project)
    for name, text in (("CMakeLists.txt", PROJECT), ("main.c", MAIN)):
        with open(os.path.join(project, name), "w", encoding="utf-8") as file:
            file.write(text)
    wrong = []

    def configure(wish, **variables):
        environment = {k: v for k, v in os.environ.items() if not k.startswith("BITNET_")}
        environment |= {"HOME": WORK, "XDG_CACHE_HOME": os.path.join(WORK, "cache"), "LD_LIBRARY_PATH": ""} | variables
        done = subprocess.run(["cmake", "-S", project, "-B", build, "-G", "Ninja", f"-DGIMBAL_EXTERNAL_LLAMA={wish}"],
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False, env=environment)
        return done.returncode, done.stdout

    def check(what, wish, success, words, program=None, **variables):
        code, out = configure(wish, **variables)
        flat = re.sub(r"\s+", " ", out)
        missing = [w for w in words if re.sub(r"\s+", " ", w) not in flat]
        if (code == 0) != success or missing:
            wrong.append(f"{what}: exit code {code}, missing {missing}\n{out}")
        elif program is not None:
            subprocess.run(["cmake", "--build", build], check=True, stdout=subprocess.DEVNULL)
            said = subprocess.run([os.path.join(build, "consumer")], check=True, capture_output=True, text=True).stdout.strip()
            if said != program:
                wrong.append(f"{what}: the program printed '{said}', expected '{program}'")

    libraries = os.path.join(WORK, "libraries")
    os.makedirs(libraries)
    shutil.copy(os.path.join(DATA, "llama-x86_64.so"), os.path.join(libraries, "libllama.so"))
    llama = os.path.join(libraries, "libllama.so")
    check("off", "off", True, [], "found 0 bitnet 0 llama 0 cuda 0")
    check("auto, nothing there", "auto", True, ["No C++ inference library was found: gimbal's own engine computes everything."],
          "found 0 bitnet 0 llama 0 cuda 0")
    check("a folder", libraries, True, ["Libraries found in 1 dir(s)", f"{llama}: bitnet, llama, ggml; CPU only", "Standard paths checked:",
                                        f"- {libraries}", "Backends detected: [CPU]", "CUDA support: false", "Bitnet symbols: 1"],
          f"found 1 bitnet 0 llama 1 cuda 0 {llama}")
    check("auto, by the variable", "auto", True, ["Libraries found in 1 dir(s)"], f"found 1 bitnet 0 llama 1 cuda 0 {llama}",
          BITNET_CROSSVAL_LIBDIR=libraries)
    check("auto, by the old variable", "auto", True, ["BITNET_CPP_PATH is deprecated: use BITNET_CPP_DIR", "Libraries found in 1 dir(s)"],
          BITNET_CPP_PATH=libraries)
    check("a variable that leads nowhere", "auto", False, ["BITNET_CPP_DIR is '/nowhere', and no usable library is there",
                                                           "Expected library at /nowhere/build/3rdparty/llama.cpp/src/libllama.so"],
          BITNET_CPP_DIR="/nowhere")
    check("a path that leads nowhere", "/nowhere/libllama.so", False, ["Library not found: /nowhere/libllama.so"])
    check("a file that is no library", os.path.join(DATA, "expected.json"), False, ["no usable library is at", "is no library"])
    check("of another machine", os.path.join(DATA, "llama-aarch64.so"), False, ["is for another machine: expected x86-64, found arm64"])
    shutil.copy(os.path.join(DATA, "gpu.so"), os.path.join(libraries, "libggml-cuda.so"))
    shutil.copy(os.path.join(DATA, "llama-x86_64.so"), os.path.join(libraries, "libbitnet.so"))
    check("with CUDA and bitnet", libraries, True, ["CUDA support: true"], f"found 1 bitnet 1 llama 1 cuda 1 {llama}")

    for system, expected in PLATFORMS.items():
        script = os.path.join(WORK, "platform.cmake")
        with open(script, "w", encoding="utf-8") as file:
            file.write(f'include({SOURCE}/cmake/platform_libraries.cmake)\ngimbal_platform_libraries({system} out)\n'
                       'list(JOIN out " " out)\nmessage("${out}")\n')
        said = subprocess.run(["cmake", "-P", script], check=True, capture_output=True, text=True).stderr.strip()
        if said != expected:
            wrong.append(f"{system}: '{said}', expected '{expected}'")

    for fault in wrong:
        print(fault)
    print(f"external_llama: {len(wrong)} faults")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
