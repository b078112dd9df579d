"""How large the files of a build are, as a table, and in which order the shapes should be. Shared by measure/sizes.py and
check/combinations.py."""
import os
import re
import subprocess
import tempfile

KNOWN = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "src", "device", "backends.def")
with open(KNOWN, encoding="utf-8") as file:
    # The CPU's first: the others are compared with it.
    NAMES = sorted(re.findall(r'^GIMBAL_KNOWN_BACKEND\(\w+, *"(\w+)"', file.read(), re.M), key=lambda name: name != "cpu")
ONE_SET = "cpu-common"
ONE_FILE = "one-file"
COLUMNS = ["shape", "`gimbal`, MB", "plugins, MB", "together, MB", "its worker, MB"]


def stripped_size(path):
    with tempfile.NamedTemporaryFile() as out:
        subprocess.run(["strip", "-o", out.name, path], check=True)
        return os.path.getsize(out.name)


def sizes_in(folder):
    """(of gimbal, of plugins by name, of workers by name)"""
    plugins, workers, program = {}, {}, None
    for name in sorted(os.listdir(folder)):
        path = os.path.join(folder, name)
        if name == "gimbal":
            program = stripped_size(path)
        elif match := re.fullmatch(r"libgimbal-backend-(\w+)\.so", name):
            plugins[match.group(1)] = stripped_size(path)
        elif match := re.fullmatch(r"gimbal-worker-(\w+)", name):
            workers[match.group(1)] = stripped_size(path)
    return program, plugins, workers


def together(sizes):
    return sizes[0] + sum(sizes[1].values())


def megabytes(n):
    return f"{n / 1e6:.2f}" if n else ""


def cells(shape, sizes):
    """One row of COLUMNS."""
    program, plugins, workers = sizes
    return [f"`{shape}`", *map(megabytes, (program, sum(plugins.values()), together(sizes), workers.get(shape, 0)))]


def line(row):
    return f"| {' | '.join(row)} |"


def table(columns, rows):
    return "\n".join([line(columns), "|" + "---|" * len(columns), *map(line, rows)])


def order_broken(shape_bytes):
    """Where each single shape < the sets of several does not hold, of `gimbal` with its plugins. The CPU alone is the smallest with the kernels of
    one instruction set (ONE_SET); with those of all, which are machine code, it is larger than a GPU's packed kernels of one language."""
    single = [name for name in NAMES if name in shape_bytes]
    sets = [name for name in shape_bytes if name not in [*NAMES, ONE_SET]]
    pairs = [(name, one) for name in single for one in sets]
    pairs += [(ONE_SET, name) for name in single if ONE_SET in shape_bytes and name != "metal"]  # which has kernels on a Mac only
    return [f"{small} ({megabytes(shape_bytes[small])} MB) is not smaller than {large} ({megabytes(shape_bytes[large])} MB)"
            for small, large in pairs if not shape_bytes[small] < shape_bytes[large]]
