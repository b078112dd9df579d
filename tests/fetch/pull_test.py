#!/usr/bin/env python3
"""`gimbal pull`, `list`, `rm` and addresses in place of files, against servers on this machine with the faults that networks have.

Usage: pull_test.py GIMBAL EXAMPLE_PULL [unittest's arguments]     the program, and examples/pull.cpp built
"""
import os
import sys
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..", "..", "scripts")]
from pull_access import Addresses, Permission  # noqa: E402, F401
from pull_faults import Faults  # noqa: E402, F401
from pull_models import Choosing, Layout, Removing  # noqa: E402, F401
from pull_server import OverHttp  # noqa: E402, F401

if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[3:], verbosity=1)
