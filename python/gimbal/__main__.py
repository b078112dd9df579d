"""`python -m gimbal ...`: the command `gimbal`."""

from ._program import main

if __name__ == "__main__":
    main()
