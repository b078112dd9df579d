#!/usr/bin/env python3
"""`gimbal crossval` on every model of a folder, and the count of verdicts. docs/crossval.md shows the result for ../shared/golden.

Usage: crossval.py PROGRAM LIBRARY FOLDER
"""
import collections
import glob
import json
import os
import subprocess
import sys


def main():
    program, library, folder = sys.argv[1:]
    counts, shares = collections.Counter(), []
    for path in sorted(glob.glob(os.path.join(folder, "**", "*.gguf"), recursive=True)):
        done = subprocess.run([program, "crossval", path, "--library", library, "--threads", "1", "--greedy", "8", "--json"],
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False, timeout=300)
        answer = json.loads(done.stdout)
        verdict = answer.get("verdict", "not loaded here")
        counts[verdict] += 1
        share = (answer.get("logits") or {}).get("share")
        if verdict == "within rounding":
            shares.append(share)
        elif verdict != "same":
            print(f"{os.path.relpath(path, folder)}: {verdict}: {answer.get('reason') or answer['error']['message']}", flush=True)
    print(", ".join(f"{count} {verdict}" for verdict, count in sorted(counts.items())))
    if shares:
        print(f"shares of the logits within rounding: {min(shares):.2g} to {max(shares):.2g}")


if __name__ == "__main__":
    main()
