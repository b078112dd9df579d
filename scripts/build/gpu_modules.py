"""From the text of a kernel in a target's language to what a backend loads, by the target's own compiler and checker: one function
a language. Used by gpu_kernels.py. GIMBAL_KERNEL_CACHE names a folder where modules are kept for other build folders."""
import glob
import hashlib
import os
import re
import shutil
import struct
import tempfile

from gpu_text import Refused, WITH_SUBGROUPS, folder_of, preprocess, run

GPU_FLAGS = ["-O2", "-std=c++20", "-ffp-contract=off", "-fno-math-errno", "-Wall", "-Wextra", "-Werror",
             "-Wno-unused-parameter", "-Wno-unused-variable", "--cuda-device-only"]


TOOLS = ["cpp", "glslc", "spirv-opt", "spirv-val", "spirv-cross", "clang-19", "ld.lld-19", "ptxas"]


def texts_of(definition, src):
    """The files that kernels of this list are made of, and may include."""
    shared = ["gpu/dialect/*", "gpu/kernels/*", "ops/*.inc"]
    if os.path.basename(os.path.dirname(os.path.abspath(definition))) in ("tensors", "text"):
        shared += ["ops/formulas/*.inc", "ops/maps.def", "gpu/tensors/kernels/*.inc"]
    texts = [t for where in shared for t in glob.glob(os.path.join(src, where))]
    texts += glob.glob(os.path.join(folder_of(definition), "*"))
    return sorted(t for t in texts if os.path.isfile(t))


def key_of(language, rows, definition, src):
    """The same for the same texts, made by the same scripts and tools."""
    key = hashlib.sha256(repr((language, rows)).encode())
    for path in texts_of(definition, src) + sorted(glob.glob(os.path.join(os.path.dirname(os.path.abspath(__file__)), "gpu_*.py"))):
        with open(path, "rb") as f:
            key.update(hashlib.sha256(f.read()).digest())
    for tool in filter(None, map(shutil.which, TOOLS)):
        about = os.stat(tool)
        key.update(f"{tool} {about.st_size} {about.st_mtime_ns}".encode())
    return key.hexdigest()


def build(language, rows, definition, src, out):
    """Writes the module to `out`, and with it <out>.subgroups where the language has that."""
    os.makedirs(os.path.dirname(os.path.abspath(out)), exist_ok=True)
    outs = [out, out + ".subgroups"] if language in WITH_SUBGROUPS else [out]
    cache = os.environ.get("GIMBAL_KERNEL_CACHE")
    if not cache:
        return make(language, rows, definition, src, out)
    kept = os.path.join(cache, key_of(language, rows, definition, src))
    if not os.path.isdir(kept):
        make(language, rows, definition, src, out)
        os.makedirs(cache, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=cache) as folder:  # another process may do the same
            for i, path in enumerate(outs):
                shutil.copyfile(path, os.path.join(folder, str(i)))
            try:
                os.rename(folder, kept)
                os.mkdir(folder)  # for the end of the block
            except OSError:
                pass
        return None
    for i, path in enumerate(outs):
        shutil.copyfile(os.path.join(kept, str(i)), path)
    return None


def make(language, rows, definition, src, out):
    maker = amdgcn if language.startswith("amdgcn-") else cubin if language.startswith("cubin_") else {"spirv": spirv, "msl": msl, "wgsl": wgsl, "opencl": opencl, "ptx": ptx,
                                                                                                "glsl": glsl, "nvidia": nvidia, "amd": amd}.get(language)
    if not maker:
        raise Refused(f"'{language}' is not a language that kernels are built for")
    with tempfile.TemporaryDirectory() as folder:
        text_of = lambda dialect, row, *more: preprocess(dialect, *row, definition, src, more)  # noqa: E731
        made = {out: maker(rows, text_of, folder, language)}
        if language in WITH_SUBGROUPS:
            has_tree = "FACT_TREE" in text_of("host", rows[0])
            made[out + ".subgroups"] = maker(rows, text_of, folder, language, "-DHAS_SUBGROUPS=1") if has_tree else b""
    for path, data in made.items():
        with open(path, "wb") as f:
            f.write(data)


def write(folder, name, text):
    path = os.path.join(folder, name)
    with open(path, "wb" if isinstance(text, bytes) else "w") as f:
        f.write(text)
    return path


def tidy(text):
    """Without the blank lines and comments that the preprocessor leaves."""
    return "\n".join(line.rstrip() for line in text.split("\n") if line.strip()) + "\n"


# ---- SPIR-V ------------------------------------------------------------------------------------------------

OP_EXT_INST, OP_FUNCTION, OP_DECORATE, NO_CONTRACTION = 12, 54, 71, 42
FLOAT_OPERATIONS = {127, 129, 131, 133, 136, 140, 141, 142, 148}  # FNegate FAdd FSub FMul FDiv FRem FMod VectorTimesScalar Dot
ANNOTATIONS = {71, 72, 73, 74, 75, 332, 5632, 5633}
TYPE_OPERATIONS = set(range(19, 40)) | {21, 22, 41, 42, 43, 44, 45, 46, 48, 49, 50, 51, 52, 59}


def without_contraction(module):
    """The module with the decoration NoContraction on every float operation: before anything optimizes it, so that no
    a * b + c becomes one operation, and no sum is added in another order."""
    words = struct.unpack(f"<{len(module) // 4}I", module)
    instructions, at = [], 5
    while at < len(words):
        count = words[at] >> 16
        instructions.append(words[at:at + count])
        at += count
    results, decorated = [], set()
    for i in instructions:
        code = i[0] & 0xffff
        if code in FLOAT_OPERATIONS or code == OP_EXT_INST:
            results.append(i[2])
        elif code == OP_DECORATE and i[2] == NO_CONTRACTION:
            decorated.add(i[1])
    first_type = next(n for n, i in enumerate(instructions) if i[0] & 0xffff in TYPE_OPERATIONS)
    added = [(3 << 16 | OP_DECORATE, r, NO_CONTRACTION) for r in results if r not in decorated]
    flat = list(words[:5])
    for i in instructions[:first_type] + added + instructions[first_type:]:
        flat.extend(i)
    return struct.pack(f"<{len(flat)}I", *flat)


# No inlining: what FMA() does where the device has none is 40 operations long, and drivers inline themselves.
SMALLER = ["--strip-debug", "--eliminate-dead-functions", "--eliminate-dead-variables", "--eliminate-dead-const", "--compact-ids"]


def spirv(rows, text_of, folder, _, *more, optimization=SMALLER):
    extension = "#extension GL_KHR_shader_subgroup_shuffle : require\n" if "-DHAS_SUBGROUPS=1" in more else ""
    text = "#version 460\n" + extension + tidy(text_of("glsl", rows[0], *more))
    source = write(folder, f"{rows[0][0]}.comp", text)
    plain, marked, small = (os.path.join(folder, n) for n in ("plain.spv", "marked.spv", "small.spv"))
    run(["glslc", "--target-env=vulkan1.2", "-O0", "-Werror", source, "-o", plain])
    with open(plain, "rb") as f:
        write(folder, "marked.spv", without_contraction(f.read()))
    run(["spirv-opt", "--target-env=vulkan1.2", *optimization, marked, "-o", small])
    run(["spirv-val", "--target-env", "vulkan1.2", small])
    with open(small, "rb") as f:
        return f.read()


def msl(rows, text_of, folder, _):
    module = spirv(rows, text_of, folder, "spirv", "-DPARAMS_IN_BUFFER=1", "-DFMA_IS_FUSED=1", optimization=["-O", "--strip-debug"])
    path = write(folder, "module.spv", module)
    return exact(run(["spirv-cross", "--msl", "--msl-version", "20300", "--msl-decoration-binding", "--msl-force-native-arrays", path]), rows[0][0]).encode()


def exact(text, name):
    """What spirv-cross writes, without what it gets wrong: its product is fma(l, r, 0), which makes +0 of -0; its minimum
    and maximum are the inexact ones; GLSL's atomics of floats come out as they went in. Its products of matrices only take space."""
    text = re.sub(r"template<typename T, int [^>]*>\n\[\[clang::optnone\]\] [^\n]* spvFMul\w*Matrix\w*\(.*?\n}\n\n", "", text, flags=re.S)
    text = text.replace("return fma(l, r, T(0));", "return fma(l, r, T(-0.0));").replace("fast::", "")
    if re.search(r"T\(0\)|Matrix|\batomic[A-Z]", text) or ("spvFMul" in text and "T(-0.0)" not in text):
        raise Refused(f"{name}: this spirv-cross writes Metal text in a way that scripts/build/gpu_modules.py does not know")
    return text


# ---- texts that the driver compiles ------------------------------------------------------------------------

def wgsl(rows, text_of, *_):
    return tidy(text_of("wgsl", rows[0])).encode()


def opencl(rows, text_of, _, __, *more):
    return tidy(text_of("opencl", rows[0], *more)).encode()


# Of gpu/text: what the program completes and gives to a compiler at run time.
def glsl(rows, text_of, *_):
    return ("#version 460\n" + tidy(text_of("glsl", rows[0]))).encode()


def nvidia(rows, text_of, *_):
    return tidy(text_of("nvrtc", rows[0])).encode()


def amd(rows, text_of, *_):
    return tidy(text_of("gpu", rows[0])).encode()


# ---- NVIDIA and AMD ----------------------------------------------------------------------------------------

def ptx(rows, text_of, folder, _):
    target = "sm_80" if "-DMATRIX_UNITS" in rows[0][2] else "sm_61"
    source = write(folder, "kernel.cu", tidy(text_of("gpu", rows[0], "-DGPU_IS_NVIDIA=1")))
    version = ["-Xclang", "-target-feature", "-Xclang", "+ptx70", "-S", "-o", "-"]
    # In CUDA clang takes every assembler statement for one in which lanes work together, and then unrolls no loop around it whose end is
    # not known. A dot product of bytes is pure; statements in which lanes do work together are volatile.
    parsed = run(["clang-19", "--cuda-path=/nonexistent", "-x", "cuda", "-nocudainc", "-nocudalib", f"--cuda-gpu-arch={target}", *GPU_FLAGS, *version, "-emit-llvm",
                  "-Xclang", "-disable-llvm-passes", source])
    pure = write(folder, "kernel.ll", parsed.replace("{ convergent nounwind memory(none) }", "{ nounwind memory(none) }"))
    text = run(["clang-19", "--target=nvptx64-nvidia-cuda", f"-march={target}", "-O2", *version, "-x", "ir", pure])
    if not re.search(rf"\.visible \.entry {rows[0][0]}\(", text):
        raise Refused(f"{rows[0][0]}: the PTX has no entry point of that name")
    return text.encode() + b"\0"


def cubin(rows, text_of, folder, language):
    source, out = write(folder, "kernel.ptx", ptx(rows, text_of, folder, language)[:-1]), os.path.join(folder, "kernel.cubin")
    assembler = shutil.which("ptxas") or "/usr/local/cuda/bin/ptxas"
    run([assembler, f"-arch={language.removeprefix('cubin_')}", source, "-o", out])
    with open(out, "rb") as f:
        return f.read()


def amdgcn(rows, text_of, folder, language):
    """All kernels in one code object, each text in a namespace of its own."""
    architecture = language.removeprefix("amdgcn-")
    more = ["-DGPU_HAS_MIXED_DOT=1"] if re.match(r"gfx1[12]", architecture) else []
    text = "".join(f"namespace {row[0]}_kernel {{\n{tidy(text_of('gpu', row, *more))}}}\n" for row in rows)
    source, out = write(folder, "kernels.hip", text), os.path.join(folder, "kernels.co")
    run(["clang-19", "-x", "hip", "-nogpuinc", "-nogpulib", "--no-gpu-bundle-output", "-mcode-object-version=4", f"--offload-arch={architecture}", *GPU_FLAGS,
         source, "-o", out])
    with open(out, "rb") as f:
        data = f.read()
    for name, _, _ in rows:
        if name.encode() + b".kd\0" not in data:
            raise Refused(f"{architecture}: the code object has no kernel {name}")
    return data
