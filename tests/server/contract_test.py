#!/usr/bin/env python3
"""What a client sees of `gimbal serve`, against the contract that clients rely on. Each check names its section there (SERVE.md of the design).

Usage: tests/server/contract_test.py GIMBAL ASSET   (the program; the built-in model's file). Needs seconds; Python's standard library only.
"""
import os
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "../../scripts")]
from contract_answers import constrained, embeddings, jobs, receipts, sampling, streams  # noqa: E402
from contract_client import GIMBAL, Server, check, descriptions  # noqa: E402
from contract_llama import llama  # noqa: E402
from contract_models import counts, models, plain_form, start  # noqa: E402
from contract_operation import dashboard, http, load, metrics, workers  # noqa: E402


def main():
    start(None)
    with Server(GIMBAL, "default", check=check, published=descriptions()) as s:
        for part in (models, plain_form, counts, sampling, constrained, streams, embeddings, llama, http, metrics, dashboard, workers, jobs,
                     receipts, load):
            begin = time.monotonic()
            part(s)
            print(f"{part.__name__}: {time.monotonic() - begin:.1f} s", flush=True)
    print(", ".join(f"{section} {n}" for section, n in check.done.items()))
    print(f"{sum(check.done.values())} checks, {len(check.failed)} failed")
    return 1 if check.failed else 0


if __name__ == "__main__":
    sys.exit(main())
