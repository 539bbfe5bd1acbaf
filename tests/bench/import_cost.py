"""What `import labkit` costs beyond NumPy: CPU seconds of fresh processes, median of seven. The goal is 0.3 s."""

from __future__ import annotations

import statistics
import subprocess
import sys

RUNS = 7
GOAL_S = 0.3
STATEMENTS = {
    "import numpy": "import numpy",
    "import numpy, labkit": "import numpy, labkit",
    "and every public name of labkit": "import numpy; from labkit import *",
}
CLOCK = "import time; {}; print(time.process_time())"


def cpu_seconds(statement: str) -> float:
    """CPU time of one fresh process from its start to the end of the statement."""
    command = [sys.executable, "-c", CLOCK.format(statement)]
    return float(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def main() -> int:
    """Print the table; exit 1 when the goal is missed."""
    rows = {name: [] for name in STATEMENTS}
    for _ in range(RUNS):  # in turn, so that a busy moment of the machine hits all alike
        for name, statement in STATEMENTS.items():
            rows[name].append(cpu_seconds(statement))
    print(f"{'CPU seconds, ' + str(RUNS) + ' fresh processes':<34} {'median':>8} {'min':>8} {'max':>8}")
    for name, times in rows.items():
        print(f"{name:<34} {statistics.median(times):8.3f} {min(times):8.3f} {max(times):8.3f}")
    base, both, _ = (statistics.median(times) for times in rows.values())
    print(f"{'import labkit beyond numpy':<34} {both - base:8.3f}   goal: at most {GOAL_S} s")
    return 0 if both - base <= GOAL_S else 1


if __name__ == "__main__":
    sys.exit(main())
