#!/usr/bin/env python3
"""The packaged llama.cpp over hostile GGUF files (scripts/check/hostile_files.py), beside the verdicts of the rules.

    hostile.py FOLDER      prints a table by rule of the wrong answers, and one in all

Files are read one by one in child processes, headers only (load_peer.cpp). `bounded` files count where they crash or come late."""
import argparse
import json
import os
import subprocess
import sys

import install

WORK = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "build", "compare")


def answers(peer, program, kind, paths):
    done = subprocess.run([program, kind], input="\n".join(paths) + "\n", stdout=subprocess.PIPE, text=True, check=True,
                          env={**os.environ, "LD_LIBRARY_PATH": peer.all_libraries, "GGML_NO_BACKTRACE": "1"})
    lines = done.stdout.splitlines()
    if len(lines) != len(paths):
        raise install.Problem(f"{len(paths)} files, {len(lines)} answers")
    return lines


def judged(verdict, answer):
    """What kind of answer this is; None: a right one."""
    if answer.startswith("crashed"):
        return "crashed"
    if answer == "late":
        return "late"
    if verdict == "refuse" and answer == "accepted":
        return "wrongly accepted"
    return "wrongly refused" if verdict == "accept" and answer == "refused" else None


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", metavar="FOLDER")
    folder = parser.parse_args().folder
    peer = install.install(WORK, lambda text: print(text, file=sys.stderr))
    program = install.program(peer, os.path.join(install.HERE, "load_peer.cpp"))
    with open(os.path.join(folder, "manifest.jsonl"), encoding="utf-8") as manifest:
        files = [json.loads(line) for line in manifest]
    print(peer.description()["engine"], "as", peer.description()["package"], peer.description()["version"])
    faults = ["wrongly accepted", "wrongly refused", "crashed", "late"]
    for kind in ("gguf", "vocabulary"):
        of_kind = [file for file in files if file["kind"] == kind]
        if not of_kind:
            continue
        rules, right = {}, 0
        for file, answer in zip(of_kind, answers(peer, program, kind, [os.path.join(folder, file["file"]) for file in of_kind])):
            fault = judged(file["verdict"], answer)
            right += fault is None
            if fault:
                row = rules.setdefault(file["rule"], dict.fromkeys(faults, 0) | {"signals": set(), "text": file["text"]})
                row[fault] += 1
                if fault == "crashed":
                    row["signals"].add(answer.split()[1])
        print(f"\n{kind}: {len(of_kind)} files, {right} right, " + ", ".join(f"{sum(row[f] for row in rules.values())} {f}" for f in faults))
        for name, row in sorted(rules.items()):
            print(f"  {name:34} " + ", ".join(f"{row[f]} {f}" for f in faults if row[f])
                  + (f" (signal {', '.join(sorted(row['signals']))})" if row["signals"] else "") + f": {row['text']}")


if __name__ == "__main__":
    main()
