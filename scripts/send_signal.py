"""Signals to single processes, as src/base/send_signal.h sends them: to os.kill(), 0 stands for this process's group, -1 for every
process of the user and other negative numbers for groups."""
import os


def single(pid):
    """`pid`, if it stands for one process other than init; ValueError otherwise."""
    if not isinstance(pid, int) or pid <= 1:
        raise ValueError(f"no signal is sent to {pid!r}: expected the number of one process, above 1")
    return pid


def send_signal(pid, number):
    """Sends the signal `number` to the process `pid`."""
    os.kill(single(pid), number)


def send_signal_to_group(leader, number):
    """Sends the signal `number` to all processes of the group that `leader` leads."""
    os.killpg(single(leader), number)
