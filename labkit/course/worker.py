"""The grader's child process: runs one submission's cells, then the course's checks on its functions.

``python -m labkit.course.worker`` reads one job (JSON) from stdin and writes one JSON line an event to stdout:
``start`` before each cell and part, ``done`` after it. Each line carries the run's token, and only
a ``done`` line with ``right`` true earns points. Standard input, output and error of the student's code are closed off.
"""

from __future__ import annotations

import io
import json
import os
import re
import sys
import traceback
import warnings
from collections.abc import Callable, Mapping
from types import ModuleType
from typing import Any, NoReturn

from labkit.course import checks
from labkit.course.checking import GRADING_ROUNDS, CheckFailed, Part, judge, parts_of

_QUIET = (NotImplementedError, CheckFailed)  # an unwritten function or a failed check in a cell: the parts tell it
_MESSAGE_CHARS = 400
_FILE_BYTES = 64 * 1024**2
_CHECKS = os.path.realpath(os.path.dirname(checks.__file__)) + os.sep

Say = Callable[..., None]


def main() -> NoReturn:
    """Run the job on stdin and leave at once at its end: no waiting for threads or exit handlers of the student."""
    job = json.load(sys.stdin)
    parts = parts_of(job["exercise"])  # before the student's code: it cannot be changed by what it does to imports
    say = _reporter(job["token"])
    _limit(job["memory_bytes"])
    sys.addaudithook(_keep_checks_shut)
    namespace = _notebook_namespace()
    for number, source in job["cells"]:
        _run_cell(number, source, namespace, say)
    for name in job["parts"]:
        say("start", unit=name)
        message = verdict(name, parts[name], namespace, job["seed"])
        say("done", unit=name, right=not message, message=message)
    os._exit(0)


def _reporter(token: str) -> Say:
    """The way to the parent: a private copy of stdout. The student's three streams then lead to the null device."""
    replies = os.fdopen(os.dup(1), "w", encoding="utf-8")
    for descriptor, mode in ((0, os.O_RDONLY), (1, os.O_WRONLY), (2, os.O_WRONLY)):
        null = os.open(os.devnull, mode)
        os.dup2(null, descriptor)
        os.close(null)
    sys.stdin = io.StringIO()

    def say(event: str, **fields: Any) -> None:
        replies.write(json.dumps({"token": token, "event": event, **fields}) + "\n")
        replies.flush()

    return say


def _limit(memory_bytes: int) -> None:
    try:
        import resource
    except ImportError:  # Windows has no such limits; the parent's clock still ends the run
        return
    resource.setrlimit(resource.RLIMIT_AS, (memory_bytes, memory_bytes))
    resource.setrlimit(resource.RLIMIT_FSIZE, (_FILE_BYTES, _FILE_BYTES))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def _keep_checks_shut(event: str, arguments: tuple[Any, ...]) -> None:
    """From now on no file of the checks is opened, to import it or to read it. A hook cannot be taken off again."""
    if event != "open" or not isinstance(arguments[0], str | bytes):
        return
    if os.path.realpath(os.fsdecode(arguments[0])).startswith(_CHECKS):
        raise PermissionError("the course's checks cannot be read while they grade")


def _notebook_namespace() -> dict[str, Any]:
    """A fresh ``__main__``, as a kernel has it (dataclasses and type hints look their module up)."""
    module = ModuleType("__main__")
    sys.modules["__main__"] = module
    module.__dict__["display"] = lambda *things, **options: None
    return module.__dict__


def _run_cell(number: int, source: str, namespace: dict[str, Any], say: Say) -> None:
    unit = f"cell {number}"
    say("start", unit=unit)
    message = ""
    try:
        exec(_compile(source, unit), namespace)
    except _QUIET:
        pass
    except BaseException as error:  # sys.exit too: one cell does not stop the others
        message = f"{unit} raised {describe(error)}"
    say("done", unit=unit, right=not message, message=message)


def _compile(source: str, name: str) -> Any:
    """The cell as code. Lines of IPython's own (``%matplotlib inline``, ``!pip``) do nothing in a grader."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return compile(source, name, "exec", dont_inherit=True)
        except SyntaxError:
            return compile(re.sub(r"(?m)^([ \t]*)[%!?].*$", r"\1pass", source), name, "exec", dont_inherit=True)


def verdict(name: str, part: Part, namespace: Mapping[str, Any], seed: int = 0, rounds: int = GRADING_ROUNDS) -> str:
    """What is wrong with one part's function, in one line for the student; "" when it is right."""
    try:
        if part.function not in namespace:
            raise CheckFailed(f"{name}: there is no function {part.function} in the notebook.")
        judge(name, part, namespace[part.function], seed, rounds)
    except CheckFailed as failure:
        message = str(failure) or f"{name} is wrong."
    except BaseException as error:
        message = f"{name}: {part.function} raised {describe(error)}"
    else:
        message = ""
    return message[:_MESSAGE_CHARS]


def describe(error: BaseException) -> str:
    """An error in one line, with the student's own line where it has one."""
    if isinstance(error, EOFError):
        return "EOFError: it asks for input(), and nobody is there to answer"
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename.startswith("cell ")]
    where = f" ({frames[-1].filename}, line {frames[-1].lineno})" if frames else ""
    text = " ".join(_text(error).split())
    return f"{type(error).__name__}{': ' if text else ''}{text}"[: _MESSAGE_CHARS - len(where)] + where


def _text(error: BaseException) -> str:
    try:
        return str(error)
    except Exception:  # a student's exception may not even print
        return ""


if __name__ == "__main__":
    main()
