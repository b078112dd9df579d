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
    """Where each single shape < the sets of several does not hold, of `gimbal` with its plugins. Which single one is the smallest is not
    asked: a CPU's kernels lie as machine code in the program, a GPU's packed in a plugin."""
    sets = [name for name in shape_bytes if name not in NAMES]
    pairs = [(name, one) for name in NAMES if name in shape_bytes for one in sets]
    return [f"{small} ({megabytes(shape_bytes[small])} MB) is not smaller than {large} ({megabytes(shape_bytes[large])} MB)"
            for small, large in pairs if not shape_bytes[small] < shape_bytes[large]]
