#!/usr/bin/env python3
"""Checks a build without features (`cmake --preset minimal`): its size stays below the limit of docs/building.md, it computes a text, and each
refusal names the absent feature.

Usage: minimal.py BUILD_FOLDER
"""
import os
import re
import subprocess
import sys
import tempfile

ROOT = os.path.normpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
MOST = 5_000_000  # bytes of the stripped program
STORIES = os.path.join(ROOT, "tests/data/stories/stories260K-f32.gguf")
# Where a command names another word than its source file.
NAMES = {"engine_worker": "worker"}


def feature_commands():
    """{feature: the commands that need it}, as cmake/features.cmake has them."""
    with open(os.path.join(ROOT, "cmake/features.cmake"), encoding="utf-8") as file:
        found = re.findall(r"^set\(GIMBAL_COMMANDS_(\w+) ([^)]*)\)", file.read(), re.M)
    return {feature: [NAMES.get(name, name.replace("_", "-")) for name in names.split()] for feature, names in found}


def main():
    program = os.path.abspath(os.path.join(sys.argv[1], "gimbal"))
    wrong = []

    def gimbal(*words):
        done = subprocess.run([program, *words], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)
        return done.returncode, done.stdout, done.stderr

    def refused(feature, *words):
        code, _, text = gimbal(*words)
        if code == 0 or f"needs the feature {feature}," not in text or "GIMBAL_FEATURES" not in text:
            wrong.append(f"gimbal {' '.join(words)}: expected a refusal that names {feature}, got exit code {code} and: {text}")

    commands = feature_commands()
    for feature, names in commands.items():
        for name in names:
            refused(feature, name, "--help")
    refused("model", "run", "-p", "Once")
    refused("ffi", "run", STORIES, "-p", "Once", "--backend", "llama.cpp")
    with tempfile.TemporaryDirectory() as folder:
        with open(os.path.join(folder, "config.json"), "w", encoding="utf-8") as file:
            file.write("{}")
        refused("huggingface", "run", folder, "-p", "Once")
    vision = os.path.join(ROOT, "tests/data/vision")
    picture = next(os.path.join(vision, "images", name) for name in sorted(os.listdir(os.path.join(vision, "images"))) if name.endswith(".png"))
    refused("media", "run", os.path.join(vision, "text-shapes.gguf"), "--mmproj", os.path.join(vision, "mmproj-shapes.gguf"), "--image", picture, "-p", "a")

    code, text, errors = gimbal("run", STORIES, "-p", "Once upon a time", "-n", "12", "--greedy", "--quiet")
    if code or text.strip() != ", there was a little girl named Lily. She":
        wrong.append(f"gimbal run: exit code {code}, {text!r} {errors}")
    code, _, errors = gimbal("verify")
    if code:
        wrong.append(f"gimbal verify: exit code {code}: {errors}")

    with tempfile.TemporaryDirectory() as folder:
        stripped = os.path.join(folder, "gimbal")
        subprocess.run(["strip", "-o", stripped, program], check=True)
        size = os.path.getsize(stripped)
    if size >= MOST:
        wrong.append(f"{program}: {size} bytes without symbols, at most {MOST} are promised")
    print("\n".join(wrong) or f"{program}: {size} bytes; {sum(map(len, commands.values()))} commands of {len(commands)} features refused by name")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
