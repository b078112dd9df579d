#!/usr/bin/env python3
"""Makes tests/data/libraries: small libraries of every file format, and expected.json, what LLVM's tools read in them.

Usage: library_fixtures.py --fatbinary FILE --ptxas FILE --bundler FILE --mingw-as FILE

Needs clang-19 and lld-19 (setup.sh checks), llvm-14's llvm-ar, llvm-lipo, llvm-nm, llvm-objdump, llvm-readobj and llvm-strip (Debian:
llvm-14), glslc, NVIDIA's fatbinary and ptxas (PyPI: nvidia-cuda-nvcc), clang-offload-bundler (Debian: clang-tools-19) and
x86_64-w64-mingw32-as (Debian: binutils-mingw-w64-x86-64), which writes objects of the big kind.
"""
import argparse
import json
import os
import re
import shutil
import subprocess
import tempfile

ROOT = os.path.normpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
TO = os.path.join(ROOT, "tests", "data", "libraries")

LIBRARY = """
#ifdef _WIN32
#define API __declspec(dllexport)
#else
#define API __attribute__((visibility("default")))
#endif
int other_library(int);
API int bitnet_eval(int x) { return other_library(x) + 1; }
API int llama_decode(int x) { return x * 3; }
API int ggml_vec_dot_i2_s(int x) { return x - 7; }
static int hidden(int x) { return x ^ 5; }
API int llama_n_ctx(int x) { return hidden(x); }
API int llama_data = 4;
"""
OTHER = """
#ifdef _WIN32
__declspec(dllexport)
#endif
int other_library(int x) { return x; }
"""
# Two functions are imported by their names and two by their numbers alone.
NUMBERS = """LIBRARY numbers.dll
EXPORTS
  a_first @1 NONAME
  b_second @2
  c_third @3 NONAME
  d_fourth @4
"""
CALLER = """
int a_first(int), b_second(int), c_third(int), d_fourth(int);
__declspec(dllexport) int llama_decode(int x) { return a_first(x) + b_second(x) + c_third(x) + d_fourth(x); }
"""
KERNEL = """
.version 7.0
.target sm_75
.address_size 64
.visible .entry nothing() { ret; }
"""
SHADER = "#version 450\nlayout(local_size_x = 1) in;\nvoid main() {}\n"

ELF = ["x86_64-linux-gnu", "i386-linux-gnu", "aarch64-linux-gnu", "armv7-linux-gnueabihf", "powerpc64-linux-gnu", "s390x-linux-gnu",
       "mips-linux-gnu", "riscv64-linux-gnu"]
WINDOWS = {"x86_64": "x64", "i686": "x86", "aarch64": "arm64"}
CLANG = ["clang-19", "-O1", "-ffreestanding", "-fno-stack-protector", "-fno-asynchronous-unwind-tables", "-nostdlib", "-g0"]


def run(*command, folder):
    subprocess.run([str(c) for c in command], cwd=folder, check=True)


def output(*command):
    return subprocess.run([str(c) for c in command], check=True, capture_output=True, text=True).stdout


def compile_(folder, target, source, out, *more):
    run(*CLANG, "-target", target, *more, "-c", source, "-o", out, folder=folder)


def elf(folder):
    for target in ELF:
        arch = target.split("-")[0]
        for name in ("library", "other"):
            compile_(folder, target, f"{name}.c", f"{name}-{arch}.o", "-fPIC")
        run("ld.lld-19", "-shared", "-soname", "libother.so", f"other-{arch}.o", "-o", f"libother-{arch}.so", folder=folder)
        run("ld.lld-19", "-shared", "--build-id=sha1", "-soname", "libllama.so.1", "--enable-new-dtags", "-rpath", "$ORIGIN:/opt/x",
            "-z", "max-page-size=4096", f"library-{arch}.o", f"libother-{arch}.so", "-o", f"llama-{arch}.so", folder=folder)
    run("ld.lld-19", "-shared", "-soname", "libllama.so.1", "--disable-new-dtags", "-rpath", "/old", "--hash-style=sysv", "-s",
        "library-x86_64.o", "libother-x86_64.so", "-o", "stripped-x86_64.so", folder=folder)
    # Loadable without a table of sections: as some packers leave it.
    for style in ("gnu", "sysv"):
        run("ld.lld-19", "-shared", "-soname", "libllama.so.1", f"--hash-style={style}", "library-x86_64.o", "libother-x86_64.so", "-o", "whole.so",
            folder=folder)
        data = bytearray(open(os.path.join(folder, "whole.so"), "rb").read())
        data[40:48] = bytes(8)
        data[60:64] = bytes(4)
        open(os.path.join(folder, f"sectionless-{style}.so"), "wb").write(data)


def mach_o(folder):
    for arch in ("x86_64", "arm64"):
        for name in ("library", "other"):
            compile_(folder, f"{arch}-apple-macos12", f"{name}.c", f"{name}-{arch}-macho.o")
        link = ["ld64.lld-19", "-dylib", "-arch", arch, "-platform_version", "macos", "12.0", "13.0", "-undefined", "dynamic_lookup"]
        run(*link, "-install_name", "@rpath/libother.dylib", f"other-{arch}-macho.o", "-o", "libother.dylib", folder=folder)
        run(*link, "-rpath", "@loader_path/../lib", "-install_name", "@rpath/libllama.dylib", f"library-{arch}-macho.o", "libother.dylib",
            "-o", f"llama-{arch}.dylib", folder=folder)
    run("llvm-lipo-14", "-create", "llama-x86_64.dylib", "llama-arm64.dylib", "-output", "llama-fat.dylib", folder=folder)
    shutil.copy(f"{folder}/llama-x86_64.dylib", f"{folder}/stripped-x86_64.dylib")
    run("llvm-strip-14", "-x", "stripped-x86_64.dylib", folder=folder)


def windows(folder):
    for arch, machine in WINDOWS.items():
        target = f"{arch}-pc-windows-msvc"
        for name in ("library", "other"):
            compile_(folder, target, f"{name}.c", f"{name}-{arch}.obj")
        link = ["lld-link-19", "/dll", "/noentry", "/nodefaultlib", f"/machine:{machine}", "/brepro"]
        run(*link, f"/out:other-{arch}.dll", f"/implib:other-{arch}.lib", f"other-{arch}.obj", folder=folder)
        run(*link, "/debug", "/pdbaltpath:llama.pdb", f"/out:llama-{arch}.dll", f"library-{arch}.obj", f"other-{arch}.lib", folder=folder)
        if arch == "aarch64":
            continue
        compile_(folder, target, "caller.c", f"caller-{arch}.obj")
        run("lld-link-19", "/lib", "/def:numbers.def", f"/machine:{machine}", f"/out:numbers-{arch}.lib", folder=folder)
        run(*link, f"/out:numbered-{arch}.dll", f"caller-{arch}.obj", f"numbers-{arch}.lib", folder=folder)


def archives(folder):
    for style, members in {"gnu": ["library-x86_64.o", "other-x86_64.o"], "bsd": ["library-x86_64.o", "other-x86_64.o"],
                           "darwin": ["library-arm64-macho.o", "other-arm64-macho.o"]}.items():
        run("llvm-ar-14", f"--format={style}", "rcsD", f"{style}.a", *members, folder=folder)
    run("lld-link-19", "/lib", "/out:coff.lib", "library-x86_64.obj", "other-x86_64.obj", folder=folder)
    run("llvm-ar-14", "rcsTD", "thin.a", "library-x86_64.o", "other-x86_64.o", folder=folder)


def big_object(folder, assembler):
    with open(os.path.join(folder, "big.s"), "w", encoding="utf-8") as file:
        file.write(".text\n.globl llama_decode\nllama_decode: call other_library\n ret\n.globl a_name_that_is_longer_than_eight\n"
                   ".data\na_name_that_is_longer_than_eight: .long 1\n.comm common_block, 64\n")
    run(assembler, "-mbig-obj", "big.s", "-o", "big-x86_64.obj", folder=folder)


def gpu(folder, fatbinary, ptxas, bundler):
    open(os.path.join(folder, "kernel.ptx"), "w").write(KERNEL)
    images = ["--image3=kind=ptx,sm=75,file=kernel.ptx"]
    for sm in (80, 90):
        run(ptxas, f"-arch=sm_{sm}", "kernel.ptx", "-o", f"sm_{sm}.cubin", folder=folder)
        images.append(f"--image3=kind=elf,sm={sm},file=sm_{sm}.cubin")
    run(fatbinary, "-64", "--create=kernel.fatbin", *images, folder=folder)
    open(os.path.join(folder, "device.c"), "w").write("__attribute__((amdgpu_kernel)) void nothing(void) {}\n")
    for gfx in ("gfx90a", "gfx1100"):
        run("clang-19", "-target", "amdgcn-amd-amdhsa", f"-mcpu={gfx}", "-nogpulib", "-O1", "device.c", "-o", f"{gfx}.hsaco", folder=folder)
    open(os.path.join(folder, "empty"), "w").close()
    run(bundler, "-type=o", "-bundle-align=4096", "-targets=host-x86_64-unknown-linux--,hipv4-amdgcn-amd-amdhsa--gfx90a,hipv4-amdgcn-amd-amdhsa--gfx1100",
        "-input=empty", "-input=gfx90a.hsaco", "-input=gfx1100.hsaco", "-output=bundle.hipfb", folder=folder)
    open(os.path.join(folder, "shader.comp"), "w").write(SHADER)
    run("glslc", "--target-env=vulkan1.2", "shader.comp", "-o", "shader.spv", folder=folder)
    open(os.path.join(folder, "gpu.s"), "w").write("""
.section .nv_fatbin,"a"
.balign 8
.incbin "kernel.fatbin"
.section .hip_fatbin,"a"
.balign 4096
.incbin "bundle.hipfb"
.section .rodata,"a"
.balign 16
.incbin "shader.spv"
.balign 16
.incbin "gfx1100.hsaco"
.balign 16
.asciz "#include <metal_stdlib>\\n"
.asciz "__kernel void f() {}"
.asciz "@compute @workgroup_size(1)"
.text
.globl ggml_backend_cuda_init
ggml_backend_cuda_init: ret
""")
    compile_(folder, "x86_64-linux-gnu", "gpu.s", "gpu.o")
    run("ld.lld-19", "-shared", "-soname", "libggml-cuda.so", "-z", "max-page-size=4096", "gpu.o", "-o", "gpu.so", folder=folder)


def facts(path):
    """What llvm-nm and llvm-readobj print, per slice or archive."""
    info = output("llvm-readobj-14", "--file-headers", path)
    formats = re.findall(r"^Format: (\S+)", info, re.M)
    nm = ["llvm-nm-14", "--extern-only", "--format=posix"]
    if path.endswith(".so"):
        nm.append("--dynamic")
    pe = path.endswith(".dll")
    exported, undefined = set(), set()
    if pe:
        exported = set(re.findall(r"^ +Name: (.*)", output("llvm-readobj-14", "--coff-exports", path), re.M)) - {""}
        undefined = set(re.findall(r"^ +Symbol: (\w\S*)", output("llvm-readobj-14", "--coff-imports", path), re.M))
    else:
        for line in output(*nm, path).splitlines():
            words = line.split(" ")
            if len(words) >= 2 and len(words[1]) == 1:
                (undefined if words[1] == "U" else exported).add(words[0])
    if "Mach-O" in info or path.endswith("darwin.a"):
        exported, undefined = ({n[1:] if n.startswith("_") else n for n in s} for s in (exported, undefined))
    if "COFF-i386" in info and not pe:
        exported, undefined = ({n[1:] if n.startswith("_") else n for n in s} for s in (exported, undefined))
    undefined -= exported
    found = {"formats": sorted(set(formats)), "exported": sorted(exported), "undefined": sorted(undefined)}
    if path.endswith((".so", ".dylib")):
        needed = output("llvm-readobj-14", "--needed-libs", path)
        found["needed"] = sorted(set(re.findall(r"^  (\S+)$", needed, re.M)) - {"]"})
    if pe:
        found["needed"] = sorted(re.findall(r"^  Name: (.*)", output("llvm-readobj-14", "--coff-imports", path), re.M))
    if path.endswith(".so"):
        dynamic = output("llvm-readobj-14", "--dynamic-table", path)
        for key, tag in (("soname", "SONAME"), ("runpath", "RUNPATH"), ("rpath", "RPATH")):
            match = re.search(tag + r" +Library \w+: \[(.*)\]", dynamic)
            found[key] = match.group(1) if match else ""
        match = re.search(r"Build ID: (\w+)", output("llvm-readobj-14", "--notes", path))
        found["build_id"] = match.group(1) if match else ""
    if path.endswith(".dylib") and "fat" not in path:
        commands = output("llvm-objdump-14", "--private-headers", path)
        found["build_id"] = re.search(r"uuid (\S+)", commands).group(1).replace("-", "").lower()
        found["soname"] = re.search(r"LC_ID_DYLIB\n.*\n +name (\S+)", commands).group(1)
        found["rpath"] = re.search(r"LC_RPATH\n.*\n +path (\S+)", commands).group(1)
    return found


def main():
    parser = argparse.ArgumentParser()
    for tool in ("fatbinary", "ptxas", "bundler", "mingw-as"):
        parser.add_argument(f"--{tool}", type=os.path.abspath, required=True)
    options = parser.parse_args()
    os.makedirs(TO, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        open(os.path.join(folder, "library.c"), "w").write(LIBRARY)
        open(os.path.join(folder, "other.c"), "w").write(OTHER)
        open(os.path.join(folder, "caller.c"), "w").write(CALLER)
        open(os.path.join(folder, "numbers.def"), "w").write(NUMBERS)
        for make in (elf, mach_o, windows, archives):
            make(folder)
        big_object(folder, options.mingw_as)
        gpu(folder, options.fatbinary, options.ptxas, options.bundler)
        keep = [n for n in sorted(os.listdir(folder)) if n.endswith((".so", ".dylib", ".dll", ".a", ".lib")) and
                not n.startswith(("libother", "whole", "other-i", "other-a", "numbers-")) and not n.startswith("other-x86_64.dll")]
        keep += ["library-i686.obj", "library-x86_64.obj", "big-x86_64.obj", "library-x86_64.o", "library-arm64-macho.o"]
        for name in keep:
            shutil.copyfile(os.path.join(folder, name), os.path.join(TO, name))
        # LLVM's tools read no library without a table of sections: its facts are those of the whole one.
        expected = {name: facts(os.path.join(folder, name)) for name in sorted(keep) if not name.startswith("sectionless")}
    with open(os.path.join(TO, "expected.json"), "w", encoding="utf-8") as file:
        json.dump(expected, file, indent=1)
        file.write("\n")


if __name__ == "__main__":
    main()
