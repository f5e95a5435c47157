"""The program `blklab`, and `python -m blklab`.

The command line takes a moment to load. A signal meanwhile ends the program with the exit code of a signal
and without a traceback: nothing has been changed yet. `blklab.cli.run` then installs handlers of its own.
"""

import os
import signal


def _end(number: int, _frame: object) -> None:
    name = signal.Signals(number).name
    os.write(2, f"error: interrupted by {name}\n".encode())
    os._exit(128 + number)


def main() -> None:
    """Runs the command line and ends the process with a documented exit code."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, _end)
    from blklab import cli  # noqa: PLC0415 - the handlers come first

    cli.main()


if __name__ == "__main__":
    main()
