#!/usr/bin/env python3
"""Shows that every combination of backends can be built: configures all of them, looks at what each would compile, and
builds some.

Usage: combinations.py [--build WHICH] [--list] [--folder FOLDER] [--jobs N]

  --build WHICH   none, singles, pairs (singles, cpu with each GPU backend, and some pairs of these), all (and all backends
                  together) (default: none)
  --configure WHICH   all (every non-empty set), some (sets of one, two, all but one, and all), singles, none (default: all)
  --list          say which sets there are, and stop
  --page WHAT     check docs/combinations.md, the table of all sets, or write it (update), and stop
  --folder FOLDER where to work: FOLDER-<set> (default: build/combinations); removed at the end unless --keep is given
  --jobs N        configure steps and compilers at a time (default: 2)

`pairs` and `all` also build one-file: all backends linked into one program. It is copied to an empty folder before it runs.

Each set is configured in a folder of its own, with warnings as errors. Only what CMake finds out about the machine (compilers,
Python, threads) is found out once and copied. Of every set: the compile commands name a file of each backend that is on, and none of one that is off.
It prints the stripped sizes of each build. Four things must hold: `gimbal` with its plugins is smaller for each backend alone than for all
together, and smallest for the CPU with one instruction set; the logits of a text are the same bits on each backend; the CPU's kernels are the same
machine code in each program; and the examples, built with each set, run. CUDA and ROCm use the pretended drivers of the tests (preset `gpu`).
"""
import argparse
import concurrent.futures
import glob
import hashlib
import itertools
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time

ROOT = os.path.normpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
sys.path.insert(0, os.path.join(ROOT, "scripts"))
import run_examples  # noqa: E402
from compatibility import with_drivers  # noqa: E402
from shape_sizes import COLUMNS, ONE_FILE, ONE_SET, cells, order_broken, sizes_in, table, together  # noqa: E402

NOT_FOR_USERS = {"emulator", "toy"}
# Backends that share code, and those that share nothing.
PAIRS = [("cuda", "rocm"), ("vulkan", "metal"), ("opencl", "webgpu")]


def backends():
    """Found where they are declared: the gimbal_backend() lines of CMakeLists.txt."""
    with open(os.path.join(ROOT, "CMakeLists.txt"), encoding="utf-8") as file:
        found = re.findall(r"^gimbal_backend\(([a-z0-9_]+)", file.read(), re.M)
    return [name for name in found if name not in NOT_FOR_USERS]


def subsets(names):
    return [set_ for n in range(1, len(names) + 1) for set_ in itertools.combinations(names, n)]


def chosen_pairs(names):
    pairs = [("cpu", name) for name in names if name != "cpu"] + PAIRS
    return [pair for pair in pairs if set(pair) <= set(names)]


def options_of(chosen, names):
    return [f"-DGIMBAL_BACKEND_{name.upper()}={'ON' if name in chosen else 'OFF'}" for name in names]


def run(command, **more):
    return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False, **more)


def configure(folder, chosen, names, more=()):
    return run(["cmake", "-S", ROOT, "-B", folder, "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release", "-DBUILD_TESTING=OFF",
                "-DGIMBAL_WORKERS=ON", "-DGIMBAL_BACKEND_LINKAGE=plugin", "-Werror=dev", *options_of(chosen, names), *more])


def place(folder, name):
    """As deep as build/release: what ccache has from there has the same relative paths."""
    return f"{folder}-{name}"


def what_cmake_knows(folder, names, more=()):
    """Configures once, with the options `more`; answers that folder, without what belongs to its set of backends."""
    first = place(folder, "first")
    shutil.rmtree(first, ignore_errors=True)
    done = configure(first, names, names, more)
    if done.returncode:
        raise SystemExit(f"check-combinations: the first configure step failed:\n{done.stdout}")
    shutil.copy(os.path.join(first, "CMakeCache.txt"), os.path.join(first, "found.txt"))
    with open(os.path.join(first, "CMakeCache.txt"), encoding="utf-8") as file:
        lines = [line for line in file if re.match(r"(?!gimbal_|GIMBAL_|CMAKE_CACHEFILE_DIR)[\w.-]+:", line)]
    with open(os.path.join(first, "CMakeCache.txt"), "w", encoding="utf-8") as file:
        file.writelines(lines)
    for name in os.listdir(os.path.join(first, "CMakeFiles")):
        if not re.fullmatch(r"\d+\.\d+\..*", name):  # the version of CMake: what it found out about the compilers
            path = os.path.join(first, "CMakeFiles", name)
            shutil.rmtree(path) if os.path.isdir(path) else os.remove(path)
    return first


def found_libraries(facts):
    """The libraries and headers that every build needs, by their names in CMake's cache, as the first configure step found them."""
    with open(os.path.join(facts, "found.txt"), encoding="utf-8") as file:
        return dict(re.findall(r"^(GIMBAL_\w+_LIBRARY|GIMBAL_ASIO):\w+=(.*)$", file.read(), re.M))


def seed(folder, facts):
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
    shutil.copytree(os.path.join(facts, "CMakeFiles"), os.path.join(folder, "CMakeFiles"))
    shutil.copy(os.path.join(facts, "CMakeCache.txt"), folder)
    with open(os.path.join(folder, "CMakeCache.txt"), "a", encoding="utf-8") as file:
        file.write(f"CMAKE_CACHEFILE_DIR:INTERNAL={folder}\n")


def what_it_compiles(folder):
    """The backends that compile commands name: files of src/backends/<name>/, and files made from kernels for them."""
    with open(os.path.join(folder, "compile_commands.json"), encoding="utf-8") as file:
        return {m.group(1) for entry in json.load(file) if (m := re.search(r"/src/backends/([a-z0-9_]+)/", entry["file"]))}


def configured(name, chosen, names, facts, folder, more=()):
    """(seconds, what is wrong or None)"""
    begin = time.monotonic()
    where = place(folder, name)
    seed(where, facts)
    done = configure(where, chosen, names, more)
    wrong = None
    if done.returncode:
        wrong = f"cannot be configured:\n{done.stdout}"
    else:
        compiled = what_it_compiles(where) & set(names)
        if extra := compiled - set(chosen):
            wrong = f"compiles files of {', '.join(sorted(extra))}, which is off"
        elif missing := set(chosen) - compiled:
            wrong = f"compiles no file of {', '.join(sorted(missing))}"
    return time.monotonic() - begin, wrong


def built(name, folder, jobs):
    begin = time.monotonic()
    done = run(["ninja", "-C", place(folder, name), f"-j{jobs}"])
    return time.monotonic() - begin, f"cannot be built:\n{done.stdout[-4000:]}" if done.returncode else None


def kernels(folder):
    """{object file of the CPU's kernels: its SHA-256}: equal code is equally fast."""
    found = {}
    for path in glob.glob(os.path.join(folder, "src/backends/cpu/CMakeFiles/cpu_kernels_*.dir/**/*.o"), recursive=True):
        with open(path, "rb") as file:
            found[os.path.relpath(path, folder)] = hashlib.sha256(file.read()).hexdigest()
    return found


def logits(program, backend):
    """(SHA-256 of a story's logits on a backend, reason for a skip, error): two of the three are None."""
    fakes, rig = (os.path.join(ROOT, "build", name) for name in ("gpu/tests/fake_drivers", "webgpu-rig"))
    if backend == "metal":
        return None, "this is no Mac", None
    if backend in ("cuda", "rocm") and not os.path.isdir(fakes):
        return None, "cmake --build --preset gpu --target fake_cuda_all fake_rocm_all makes the drivers", None
    with tempfile.TemporaryDirectory() as cache:
        done = subprocess.run([program, "logits", os.path.join(ROOT, "tests/data/stories/stories260K-q8_0.gguf"), "--tokens", "1,403,407,261,378,400",
                               "--positions", "all", "-o", "-", "--backend", backend, "--strict", "--allow-software-devices", "--verify", "never"],
                              env={**with_drivers(fakes, rig), "XDG_CACHE_HOME": cache}, stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
    if done.returncode:
        return None, None, f"computes no logits on {backend}: {done.stderr.decode().strip()}"
    return hashlib.sha256(done.stdout).hexdigest(), None, None


def logits_in_an_empty_folder(program, backend):
    """As logits(), of a copy of the program that has no file beside it."""
    with tempfile.TemporaryDirectory() as folder:
        return logits(shutil.copy(program, folder), backend)


def wrong_examples(folder, chosen, names):
    """The failures of a build's examples, one line each. The example `devices` must name each missing backend and its option. With a CPU
    backend, all examples run on it."""
    environment = {**os.environ, "GIMBAL_BACKEND_PATH": folder}  # the examples lie one folder below the plugins
    folder = os.path.join(folder, "examples")
    text = run_examples.run(os.path.join(folder, "example_devices"), environment=environment).stdout
    wrong = []
    for name in names:
        left_out = re.search(f"^{name}: no \\[not-built\\] .*-DGIMBAL_BACKEND_{name.upper()}=ON", text, re.M)
        if bool(left_out) == (name in chosen):
            wrong.append(f"example_devices of {'+'.join(chosen)} is wrong about {name}: {text}")
    return wrong + (run_examples.wrong_on_the_cpu(folder, environment) if "cpu" in chosen else [])


def page(names):
    """docs/combinations.md: what `make check-combinations` does with each set."""
    gpus = [name for name in names if name != "cpu"]
    built_sets = {(name,) for name in names} | {tuple(sorted(pair, key=names.index)) for pair in chosen_pairs(names)}

    def cell(chosen):
        if not chosen:
            return "refused"
        return "configured, built" if chosen in built_sets else "configured"

    rows = [("none", (), ("cpu",))]
    rows += [(", ".join(set_), set_, ("cpu", *set_)) for set_ in subsets(gpus)]
    lines = [f"| {label} | {cell(without)} | {cell(tuple(n for n in names if n in with_))} |" for label, without, with_ in rows]
    return f"""# Combinations of backends

What `BUILD=pairs make check-combinations` does with each of the {2 ** len(names) - 1} sets of backends. CI does it with the sets of one, two,
all but one, and all backends (`CONFIGURE=some`). "Configured": the set configures with warnings as errors, and the compile commands name files of its
backends and of no other. "Built": compiled, linked and compared in size. The preset `gpu` builds all backends together, with all tests.

Each program that is built computes the logits of a text on its backends. All must be the same bits (Metal has no device
here; the drivers of CUDA and ROCm are those that the tests pretend). The CPU's kernels must be the same machine code in each program and in that of the
preset `gpu`: no combination is slower than another. The [examples](../examples) are built with each set. On the CPU all of them run; without it,
`devices` names each backend that was left out. The CPU alone is also built with the kernels of one instruction set, which must be the
smallest of all. All backends are also linked into one program (preset `one-file`), which runs without a file beside it.

`scripts/check/combinations.py --page update` writes this page, and `check_combinations_page` compares it.

| GPU backends | without cpu | with cpu |
|---|---|---|
""" + "\n".join(lines) + "\n"


def check_page(names, update):
    path = os.path.join(ROOT, "docs/combinations.md")
    text = page(names)
    if update:
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        return 0
    with open(path, encoding="utf-8") as file:
        if file.read() == text:
            return 0
    print("docs/combinations.md is not what scripts/check/combinations.py --page update writes", file=sys.stderr)
    return 1


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", choices=["none", "singles", "pairs", "all"], default="none")
    parser.add_argument("--configure", choices=["none", "singles", "some", "all"], default="all")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--page", choices=["check", "update"])
    parser.add_argument("--keep", action="store_true")
    parser.add_argument("--folder", default=os.path.join(ROOT, "build", "combinations"))
    parser.add_argument("--jobs", type=int, default=2)
    wanted = parser.parse_args()
    wanted.folder = os.path.abspath(wanted.folder)

    names = backends()
    if wanted.page:
        return check_page(names, wanted.page == "update")
    singles = [(name,) for name in names]
    to_build = {"none": [], "singles": singles, "pairs": singles + chosen_pairs(names),
                "all": singles + chosen_pairs(names) + [tuple(names)]}[wanted.build]
    some = [set_ for set_ in subsets(names) if len(set_) in (1, 2, len(names) - 1, len(names))]
    to_configure = {"none": [], "singles": singles, "some": some, "all": subsets(names)}[wanted.configure]
    if wanted.list:
        print("\n".join("+".join(chosen) for chosen in to_configure + [chosen for chosen in to_build if chosen not in to_configure]))
        return 0

    wrong = []
    begin = time.monotonic()
    facts = what_cmake_knows(wanted.folder, names)

    shapes = [("+".join(chosen), chosen, ["-DGIMBAL_EXAMPLES=ON"]) for chosen in to_build]
    shapes += [(ONE_SET, chosen, [*more, "-DGIMBAL_CPU_VARIANTS=common"]) for _, chosen, more in shapes if chosen == ("cpu",)]

    if wanted.build in ("pairs", "all"):
        shapes.append((ONE_FILE, tuple(names), ["-DGIMBAL_BACKEND_LINKAGE=static", "-DGIMBAL_WORKERS=OFF"]))

    def one(shape):
        name, chosen, options = shape
        result = configured(name, chosen, names, facts, wanted.folder, options)
        if shape not in shapes and not result[1]:
            shutil.rmtree(place(wanted.folder, name))
        return name, result

    with concurrent.futures.ThreadPoolExecutor(wanted.jobs) as pool:
        results = list(pool.map(one, shapes + [("+".join(chosen), chosen, []) for chosen in to_configure if chosen not in to_build]))
    wrong += [f"{name} {why}" for name, (_, why) in results if why]
    longest = max((seconds, name) for name, (seconds, _) in results)
    print(f"check-combinations: {len(results)} sets of {len(names)} backends configured in {time.monotonic() - begin:.0f} s "
          f"(the longest: {longest[1]}, {longest[0]:.1f} s), {len(wrong)} wrong", flush=True)

    rows, shape_bytes, bits = [], {}, {}
    all_backends = kernels(os.path.join(ROOT, "build", "gpu"))
    code = {"the preset gpu": all_backends} if all_backends else {}
    for name, chosen, _ in shapes if not wrong else []:
        seconds, why = built(name, wanted.folder, wanted.jobs)
        print(f"check-combinations: {name}: {'FAILED' if why else 'built'} in {seconds:.0f} s", flush=True)
        if why:
            wrong.append(f"{name} {why}")
            continue
        for backend in chosen:
            run_it = logits_in_an_empty_folder if name == ONE_FILE else logits
            digest, untried, why = run_it(os.path.join(place(wanted.folder, name), "gimbal"), backend)
            if digest:
                bits[f"{name} on {backend}"] = digest
            if untried:
                print(f"check-combinations: {name}: no logits on {backend}: {untried}", flush=True)
            if why:
                wrong.append(f"{name} {why}")
        if name != ONE_FILE:
            wrong += wrong_examples(place(wanted.folder, name), chosen, names)
        if "cpu" in chosen:
            code[name] = kernels(place(wanted.folder, name))
        sizes = sizes_in(place(wanted.folder, name))
        rows.append(cells(name, sizes))
        if len(chosen) in (1, len(names)):  # a pair may be smaller than another backend alone
            shape_bytes[name] = together(sizes)
        if not wanted.keep:
            shutil.rmtree(place(wanted.folder, name))
    if rows:
        print(table(COLUMNS, rows))
    wrong += order_broken(shape_bytes)
    if len(set(bits.values())) > 1:
        wrong.append("the logits differ: " + ", ".join(f"{where}: {digest[:12]}" for where, digest in bits.items()))
    elif bits:
        print(f"check-combinations: the same logits by {len(bits)} programs: {', '.join(bits)}")
    first = next(iter(code.values()), {})
    # The preset has tests, and so emulated kernels that no other build has.
    other = [name for name, objects in code.items() if not objects or not objects.items() <= first.items()]
    wrong += [f"the CPU's kernels are other machine code in {name} than in {next(iter(code))}" for name in other]
    if len(code) == 1:
        print(f"check-combinations: the CPU's kernels of {next(iter(code))} are not compared: cmake --build --preset gpu builds them with all backends")
    elif code and not other:
        print(f"check-combinations: the CPU's kernels are the same {min(map(len, code.values()))} object files in {len(code)} programs: {', '.join(code)}")
    for line in wrong:
        print(f"check-combinations: {line}", file=sys.stderr)
    if not wrong and not wanted.keep:
        shutil.rmtree(facts)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
