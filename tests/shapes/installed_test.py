#!/usr/bin/env python3
"""Installs the build into a folder of its own, moves that, and uses what is there: programs, plugins, headers.

Usage: installed_test.py BUILD_FOLDER WORK_FOLDER BACKEND...   (of a build that is complete)
"""
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "scripts", "check"))
import run_examples  # noqa: E402

EXIT_NO_BACKEND = 4  # docs/cli.md
wrong = []


def check(holds, sentence):
    if not holds:
        wrong.append(sentence)


def run(*command, **more):
    return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False, **more)


def check_consumer(build, work, place, environment):
    """Another project (tests/shapes/consumer) against what was installed: find_package, build, run."""
    with open(os.path.join(build, "CMakeCache.txt"), encoding="utf-8") as file:
        compiler = [line.split("=", 1)[1].strip() for line in file if line.startswith("CMAKE_CXX_COMPILER:")][0]
    for header in sorted(os.listdir(os.path.join(place, "include", "gimbal"))):
        alone = run(compiler, "-std=c++20", "-Wall", "-Wextra", "-Werror", "-fsyntax-only", "-I", os.path.join(place, "include"), "-x", "c++", "-",
                    input=f"#include <gimbal/{header}>\n")
        check(alone.returncode == 0, f"gimbal/{header} does not compile alone: {alone.stderr[:1000]}")
    here = os.path.dirname(os.path.abspath(__file__))
    source, toy = os.path.join(here, "consumer"), os.path.join(here, "..", "..", "src", "backends", "toy")

    def configure(folder, *options):
        return run("cmake", "-S", source, "-B", folder, "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release", f"-DCMAKE_CXX_COMPILER={compiler}",
                   f"-DCMAKE_PREFIX_PATH={place}", f"-DTOY={toy}", f"-DEXAMPLES={os.path.join(here, '..', '..', 'examples')}",
                   "-DWANTED=cpu;tensors", *options)

    for option, sentence in (("-DWANTED=cpu;directx", "without the backend 'directx'"), ("-DVERSION=9.1", "version")):
        refused = configure(os.path.join(work, "refused"), option)
        check(refused.returncode and sentence in re.sub(r"\s+", " ", refused.stderr), f"{option}: expected '{sentence}', got {refused.stderr}")
    folder = os.path.join(work, "consumer")
    done = configure(folder)
    if done.returncode == 0:
        done = run("cmake", "--build", folder)
    if done.returncode:
        wrong.append("another project cannot use what was installed: " + done.stdout[-3000:] + done.stderr[-1000:])
        return
    consumer = os.path.join(folder, "consumer")
    told = run(consumer, "cpu", env=environment)
    same = run(os.path.join(place, "bin", "gimbal"), "run", "-p", "Once upon a time", "-n", "12", "--greedy", "--backend", "cpu", env=environment)
    check(told.returncode == 0 and told.stdout.strip() and told.stdout == same.stdout,
          f"another project's program says '{told.stdout}' and '{told.stderr}', gimbal says '{same.stdout}'")
    check("with cpu" in told.stderr, f"gimbal_config.h: {told.stderr}")
    check("chosen: cpu:0" in told.stderr and "on cpu:0: asked for" in told.stderr, f"it is not told the reasons: {told.stderr}")
    absent = run(consumer, "metal", env=environment)
    check(absent.stdout == same.stdout and "fallback: metal, cpu:0: " in absent.stderr,
          f"without the backend that it asks for, it says '{absent.stdout}' and '{absent.stderr}'")
    # A card that is lost in the middle of the text: tests/device/plugins/fake.cpp.
    plugins = os.path.join(work, "plugins")
    os.makedirs(plugins)
    shutil.copy(os.path.join(build, "tests", "plugins", "v1", "libgimbal-backend-fake.so"), os.path.join(plugins, "libgimbal-backend-metal.so"))
    fake = {"HOME": os.path.join(work, "home"), "GIMBAL_FAKE_metal": "hardware"}
    used = run(consumer, "metal", plugins, env={**environment, **fake})
    check(used.stdout == same.stdout and "chosen: metal:0" in used.stderr and "at last on metal:0" in used.stderr,
          f"with a card, another project's program says '{used.stdout}' and '{used.stderr}'")
    fake["GIMBAL_FAKE_metal"] = "hardware,lost-at=6"  # verified above, so that these are the text's own steps
    lost = run(consumer, "metal", plugins, env={**environment, **fake})
    check(lost.stdout == same.stdout and "recovered: metal:0, cpu:0" in lost.stderr and "at last on cpu:0" in lost.stderr,
          f"when its card is lost, another project's program says '{lost.stdout}' and '{lost.stderr}'")
    wrong.extend(run_examples.wrong_on_the_cpu(folder, environment))
    link = os.readlink(os.path.join(place, "lib", "libgimbal.so"))
    check(link == "libgimbal.so.1", f"libgimbal.so leads to {link}, not to the number of its interface")
    python = run(sys.executable, os.path.join(here, "..", "..", "examples", "python_ctypes.py"), os.path.join(place, "lib", "libgimbal.so"), env=environment)
    check("finish: length" in python.stdout, f"examples/python_ctypes.py: {python.returncode} {python.stdout} {python.stderr}")
    verified = run(os.path.join(place, "bin", "gimbal"), "verify", "--backend", "mine", "--strict", "--kernel", "*.add", "--json",
                   env={**environment, "GIMBAL_BACKEND_PATH": folder})
    check(verified.returncode == 0 and '"mine:0"' in verified.stdout and '"passed": 1' in verified.stdout,
          f"a backend built outside of gimbal's tree: {verified.returncode} {verified.stdout} {verified.stderr}")


def main(build, work, backends):
    backends = [b for b in backends if b not in ("emulator", "toy")]
    work = os.path.abspath(work)
    shutil.rmtree(work, ignore_errors=True)
    first, place = os.path.join(work, "first"), os.path.join(work, "elsewhere")
    done = run("cmake", "--install", build, "--prefix", first)
    if done.returncode:
        print(done.stdout + done.stderr)
        return 1
    os.rename(first, place)  # nothing may depend on where it was installed
    files = {os.path.relpath(os.path.join(folder, name), place) for folder, _, names in os.walk(place) for name in names}
    program = os.path.join(place, "bin", "gimbal")
    plugins = {os.path.basename(f) for f in files if "libgimbal-backend-" in f}
    with open(os.path.join(build, "CMakeCache.txt"), encoding="utf-8") as file:
        with_plugins = "GIMBAL_BACKEND_LINKAGE:STRING=plugin" in file.read()

    check("bin/gimbal" in files, "bin/gimbal was not installed")
    for backend in backends:
        if backend != "cpu" and with_plugins:
            check(f"libgimbal-backend-{backend}.so" in plugins, f"the plugin of {backend} was not installed")
    check(not [p for p in plugins if "toy" in p or "emulator" in p or "fake" in p], f"plugins for tests were installed: {plugins}")
    check(not [f for f in files if f.startswith("include/") and "/backends/" in f], "headers of single backends were installed")
    for name in ["bin/gimbal"] + [os.path.join("lib", "gimbal", p) for p in plugins]:
        dynamic = run("readelf", "-d", os.path.join(place, name)).stdout
        check("NEEDED" in dynamic and "PATH" not in dynamic, f"{name} must be relocatable, but has a path built in: {dynamic}")
    public = {os.path.join("include", "gimbal", name) for name in os.listdir(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "include", "gimbal"))}
    installed = {f for f in files if f.startswith("include/gimbal/")}
    check(installed == public | {"include/gimbal/gimbal_config.h"}, f"the headers for programs are {sorted(installed)}")
    check("include/gimbal-plugin/device/abi.h" in files, "the header of the plugin contract was not installed")

    # What shells and `man` look for, each where it looks, and what the program prints.
    for name, *command in (("share/man/man1/gimbal.1", "manual"), ("share/bash-completion/completions/gimbal", "completion", "bash"),
                           ("share/zsh/site-functions/_gimbal", "completion", "zsh"), ("share/fish/vendor_completions.d/gimbal.fish", "completion", "fish")):
        if name not in files:
            wrong.append(f"{name} was not installed")
            continue
        with open(os.path.join(place, name), encoding="utf-8") as file:
            text = file.read()
        check("gimbal" in text and text == run(program, *command).stdout, f"{name} is not what `gimbal {' '.join(command)}` prints")

    # Without any driver visible, so that only finding the plugins is tested.
    environment = {"PATH": "", "HOME": work, "VK_DRIVER_FILES": "/nonexistent", "OCL_ICD_VENDORS": "/nonexistent"}
    listed = run(program, "backends", "--json", env=environment)
    try:
        reports = {r["backend"]: r for r in json.loads(listed.stdout)["backends"]}
    except (ValueError, KeyError):
        reports = {}
        wrong.append(f"gimbal backends --json: exit code {listed.returncode}, {listed.stdout[-500:]} {listed.stderr[-500:]}")
    for backend, report in reports.items():
        if backend in backends:
            check(report["code"] not in ("not-built", "plugin-missing"), f"the installed gimbal does not find {backend}: {report}")
        else:
            check(report["code"] == "not-built", f"{backend} is not part of this build, and gimbal says: {report}")

    with tempfile.TemporaryDirectory() as folder:
        told = run(program, "run", "-p", "Once", "-n", "3", "--greedy", env=environment, cwd=folder)
    if "cpu" in backends:
        check(told.returncode == 0 and told.stdout.strip(), f"the installed gimbal does not run: {told.returncode}, {told.stderr}")
    elif told.returncode != 0:  # a real GPU may be there
        check(told.returncode == EXIT_NO_BACKEND and told.stderr.startswith("error: "),
              f"without a device, exit code {EXIT_NO_BACKEND} and a reason were expected: {told.returncode}, {told.stderr}")
        check("built without the cpu backend" in told.stderr or "cpu" in told.stderr, f"nothing is said of the cpu backend: {told.stderr}")

    if "cpu" in backends:
        check_consumer(build, work, place, environment)

    print("\n".join(wrong) or f"{len(files)} files installed, {len(plugins)} plugins found from their new place")
    shutil.rmtree(work, ignore_errors=True)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2], sys.argv[3:]))
