#!/usr/bin/env python3
"""Compiles the frames of kernel texts with a vendor's own library, which needs no GPU: NVIDIA's libnvrtc (PyPI:
nvidia-cuda-nvrtc-cu12) or AMD's libhiprtc (Debian: in libamdhip64-5). By hand; CI has neither.

Usage: compile_frames.py nvrtc|hiprtc LIBRARY BUILD_FOLDER
"""
import ctypes
import os
import sys

KINDS = {"nvrtc": ("nvidia", b"PTX", [b"--gpu-architecture=compute_75", b"--fmad=false", b"--std=c++17"], b".visible .entry custom("),
         "hiprtc": ("amd", b"Code", [b"--offload-arch=gfx1030", b"-ffp-contract=off", b"-std=c++20"], b"custom.kd\0")}
BODY = "custom_result = 2.0f * map_Exp(bits_to_f32(a[custom_first_0 + at]))"


def main(kind, library, build):
    language, code, options, expected = KINDS[kind]
    with open(os.path.join(build, "gpu", "src_gpu_text", language, "custom"), encoding="utf-8") as file:
        frame = file.read()
    text = frame[:frame.index("CUSTOM_WORDS")].replace("CUSTOM_BODY", BODY).encode()
    loaded, program, size = ctypes.CDLL(library), ctypes.c_void_p(), ctypes.c_size_t()
    call = lambda name, *arguments: getattr(loaded, kind + name)(*arguments)  # noqa: E731

    def got(what):
        call(f"Get{what}Size", program, ctypes.byref(size))
        data = ctypes.create_string_buffer(size.value + 1)
        call(f"Get{what}", program, data)
        return data.raw[:size.value]

    call("CreateProgram", ctypes.byref(program), text, b"kernel text", 0, None, None)
    status = call("CompileProgram", program, len(options), (ctypes.c_char_p * len(options))(*options))
    print(got("ProgramLog").decode(errors="replace").strip("\0\n"))
    if status:
        print(f"{kind} refuses the frame (error {status})")
        return 1
    made = got(code.decode())
    print(f"{kind}: {len(made)} bytes, {'with' if expected in made else 'WITHOUT'} the kernel")
    return 0 if expected in made else 1


if __name__ == "__main__":
    if len(sys.argv) != 4 or sys.argv[1] not in KINDS:
        sys.exit(__doc__)
    sys.exit(main(*sys.argv[1:]))
