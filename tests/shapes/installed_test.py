#!/usr/bin/env python3
"""Installs the build into a folder of its own, moves that, and uses what is there: programs, plugins, headers.

Usage: installed_test.py BUILD_FOLDER WORK_FOLDER BACKEND...   (of a build that is complete)
"""
import json
import os
import shutil
import subprocess
import sys
import tempfile

EXIT_NO_BACKEND = 4  # docs/cli.md
wrong = []


def check(holds, sentence):
    if not holds:
        wrong.append(sentence)


def run(*command, **more):
    return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False, **more)


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
    check("include/gimbal/device/abi.h" in files, "the header of the plugin contract was not installed")

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

    print("\n".join(wrong) or f"{len(files)} files installed, {len(plugins)} plugins found from their new place")
    shutil.rmtree(work, ignore_errors=True)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2], sys.argv[3:]))
