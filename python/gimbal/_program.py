"""The command `gimbal` of the wheel: the program that lies in it, and the plugins beside the module."""

import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))


def program_path():
    """The program: of $GIMBAL, of the wheel, or of the build folder that this package lies in."""
    for path in (os.environ.get("GIMBAL", ""), os.path.join(HERE, "bin", "gimbal"), os.path.join(HERE, "..", "..", "gimbal")):
        if path and os.path.isfile(path):
            return os.path.abspath(path)
    raise FileNotFoundError("this copy of the package has no program; install it with: pip install .")


def environment():
    """This process's, in which the program finds the wheel's plugins."""
    return {**os.environ, "GIMBAL_BACKEND_PATH": os.pathsep.join(filter(None, (HERE, os.environ.get("GIMBAL_BACKEND_PATH"))))}


def main():
    try:
        program = program_path()
    except FileNotFoundError as error:
        sys.exit(f"gimbal: {error}")
    os.execve(program, ["gimbal", *sys.argv[1:]], environment())
