"""What the drivers of this folder share: where a suite comes from, what was expected of its cases, and the table at the end.

deviations.toml has an entry for every case that gimbal does not pass on purpose: its kind and its reason; `most` bounds an entry
for many cases. A failure without an entry, and one beyond the bound, ends a driver with exit code 1.
"""
import collections
import os
import re
import subprocess
import sys
import tomllib

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.abspath(os.path.join(HERE, "../.."))
KINDS = ("passed", "deviates", "not offered", "not judged", "defect")


def source(name, given=None):
    """The folder of a suite: the given one, or one that is fetched once into the user's cache. suites.toml says from where."""
    if given:
        if not os.path.isdir(given):
            sys.exit(f"'{given}' is not a folder; without it, the suite is fetched")
        return os.path.abspath(given)
    with open(os.path.join(HERE, "suites.toml"), "rb") as file:
        suite = tomllib.load(file)[name]
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    folder = os.path.join(cache, "gimbal", "peers", name + "-" + suite["version"][:12])
    if os.path.isdir(folder):
        return folder
    print(f"fetching {name} from {suite['from']}", file=sys.stderr)
    part = folder + ".part"
    if "git" in suite:
        subprocess.run(["git", "init", "-q", part], check=True)
        subprocess.run(["git", "-C", part, "fetch", "-q", "--depth", "1", suite["git"], suite["version"]], check=True)
        subprocess.run(["git", "-C", part, "checkout", "-q", "FETCH_HEAD"], check=True)
    else:
        os.makedirs(part, exist_ok=True)
        # pip asks a source package for its name, and so for what builds it.
        subprocess.run([sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--no-binary", suite["pypi"], "-d", part,
                        f"{suite['pypi']}=={suite['version']}"], check=True)
        archive = next(file for file in os.listdir(part) if file.endswith(".tar.gz"))
        subprocess.run(["tar", "xzf", archive, "--strip-components=1"], cwd=part, check=True)
    os.rename(part, folder)
    return folder


def llama_cpp(given=None):
    """llama.cpp's tree: a checkout, or where the package of its Python binding has it."""
    folder = source("llama-cpp", given)
    vendored = os.path.join(folder, "vendor/llama.cpp")
    return vendored if os.path.isdir(vendored) else folder


def deviations(suite):
    """The entries of deviations.toml for a suite: lists of `case` and `found`, regular expressions, with `kind` and `reason`."""
    with open(os.path.join(HERE, "deviations.toml"), "rb") as file:
        return tomllib.load(file).get(suite, [])


class Tally:
    """Counts the cases of a suite by what became of them."""

    def __init__(self, suite, verbose=False, entries=None):
        self.suite, self.verbose = suite, verbose
        self.entries = deviations(entries or suite)
        for entry in self.entries:
            if entry["kind"] not in KINDS[1:]:
                sys.exit(f"deviations.toml, {suite}: there is no kind '{entry['kind']}'")
        self.counts, self.reasons, self.unexplained, self.used = collections.Counter(), collections.Counter(), [], collections.Counter()

    def passed(self, case):
        self.counts["passed"] += 1
        if self.verbose:
            print("passed      ", case)

    def set_aside(self, case, kind, reason):
        """A case whose reason the driver itself sees."""
        self.counts[kind] += 1
        self.reasons[kind, reason] += 1
        if self.verbose:
            print(f"{kind:12}", case, "|", reason)

    def failed(self, case, found):
        for i, entry in enumerate(self.entries):
            if self.used[i] >= entry.get("most", sys.maxsize):
                continue
            if re.search(entry.get("case", ""), case) and re.search(entry.get("found", ""), found, re.S):
                self.used[i] += 1
                return self.set_aside(case, entry["kind"], entry["reason"])
        self.unexplained.append((case, found))
        self.counts["unexplained"] += 1

    def end(self):
        """Prints the table. The exit code: 1 if a failure has no entry."""
        for case, found in self.unexplained:
            print(f"UNEXPLAINED {case}\n    {found[:600]}")
        for (kind, reason), n in sorted(self.reasons.items(), key=lambda r: (KINDS.index(r[0][0]), -r[1])):
            print(f"{n:5} {kind}: {reason}")
        for i, entry in enumerate(self.entries):
            if not self.used[i]:
                print(f"note: no case failed for '{entry['reason']}'; the entry may go")
        total = sum(self.counts.values())
        print("| suite | cases | " + " | ".join(KINDS) + " | unexplained |")
        print(f"| {self.suite} | {total} | " + " | ".join(str(self.counts[k]) for k in (*KINDS, "unexplained")) + " |")
        if not total:
            print("no case was run")
        return int(bool(self.unexplained) or not total)
