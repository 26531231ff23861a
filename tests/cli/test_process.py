"""What surrounds a command: Ctrl-C at any moment, pipes that close, full disks, closed streams, any locale."""

# ruff: noqa: RUF001

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from small import PICTURELESS

from greenbatch.cli import app, main
from greenbatch.cli.ascii import nearest
from greenbatch.experiments.reports.page import definitions

GREENBATCH = [sys.executable, "-m", "greenbatch"]
UNDRAWN = [sys.executable, "-c", f"import sys{PICTURELESS}from greenbatch.cli import main\nsys.exit(main())"]
"""The same without pictures, which take longer than a small comparison."""
INTERRUPTED = """
import os, signal, sys, threading, time
def interrupt():
    while signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        time.sleep(0.0005)
    time.sleep(float(sys.argv.pop(1)))
    os.kill(os.getpid(), signal.SIGINT)
from greenbatch.cli import main
threading.Thread(target=interrupt, daemon=True).start()
sys.exit(main())
"""
"""Ctrl-C this many seconds after our handler is installed; before that Python itself answers."""
SIMULATE = ("simulate", "--scenario", "small.toml", "--scheduler", "f2+green", "--out", "out")
COMPARE = ("compare", "--scenario", "small.toml", "--out", "out")


def command_of(arguments: tuple[str, ...]) -> list[str]:
    return [*(UNDRAWN if arguments is COMPARE else GREENBATCH), *arguments]


def run(command: list[str], **options: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, capture_output=True, text=True, check=False, **options)  # type: ignore[call-overload]


@pytest.mark.parametrize("arguments", [SIMULATE, COMPARE, ("schedulers",)], ids=lambda verb: verb[0])
def test_ctrl_c_is_one_line_at_any_moment(small: Path, arguments: tuple[str, ...]) -> None:
    for after_s in (0.0, 0.1, 0.4):
        done = run([sys.executable, "-c", INTERRUPTED, str(after_s), *arguments])
        if done.returncode == 0:  # it was done before
            assert after_s > 0.0
            break
        assert (done.returncode, done.stderr) == (130, "greenbatch: interrupted\n"), after_s
        assert [f.name for f in small.iterdir()] == ["small.toml"], after_s


def test_ctrl_c_in_a_destructor_is_not_lost(small: Path) -> None:
    """Python cannot raise there; it would print a traceback and continue."""
    code = (
        "import os, signal, sys, time\nimport greenbatch.engine.simulate as engine\n"
        "class Late:\n    def __del__(self):\n        os.kill(os.getpid(), signal.SIGINT)\n"
        "        for _ in range(100): pass\n"
        "def simulate(*_):\n    late = Late()\n    del late\n    time.sleep(30)\n    raise SystemError('it went on')\n"
        "engine.simulate = simulate\nfrom greenbatch.cli import main\nsys.exit(main())"
    )
    done = run([sys.executable, "-c", code, *SIMULATE])
    assert (done.returncode, done.stderr) == (130, "greenbatch: interrupted\n")
    assert [f.name for f in small.iterdir()] == ["small.toml"]


def test_a_signal_that_the_caller_ignores_stays_ignored(small: Path) -> None:
    """As under nohup."""
    code = "import os, signal, sys\nsignal.signal(signal.SIGHUP, signal.SIG_IGN)\n" + INTERRUPTED.replace(
        "os.kill(os.getpid(), signal.SIGINT)", "os.kill(os.getpid(), signal.SIGHUP)"
    )
    done = run([sys.executable, "-c", code, "0", *SIMULATE])
    assert done.returncode == 0
    assert (small / "out" / "metrics.json").is_file()


def test_a_command_within_another_process_does_not_watch_its_signals(monkeypatch: pytest.MonkeyPatch) -> None:
    """The watch ends the process by force, which is the caller's."""
    seen: list[int] = []
    monkeypatch.setattr(app, "run", lambda _: seen.append(signal.set_wakeup_fd(-1)))
    before = threading.active_count()
    assert main(["schedulers"]) == 0
    assert (seen, threading.active_count()) == ([-1], before)


STUCK = """
import os, signal, sys, threading, time
import greenbatch.cli.app as app, greenbatch.cli.process as process
process.REPEAT_S, process.GRACE_S = 0.2, 0.5
def run(_):
    threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGTERM)).start()
    while True:
        try:
            time.sleep(60)
        except BaseException:
            pass
app.run = run
sys.exit(process.main())
"""


def test_a_command_that_does_not_stop_is_forced_to() -> None:
    done = run([sys.executable, "-c", STUCK], timeout=30)
    assert (done.returncode, done.stderr) == (143, "greenbatch: interrupted; forced to stop after 0.5 s\n")


def test_a_deleted_folder_is_no_traceback(tmp_path: Path) -> None:
    words = ["sh", "-c", 'rmdir "$PWD"; exec "$@"', "sh", *GREENBATCH, "--version"]
    done = run(words, cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")


def test_signal_handlers_of_the_caller_are_restored() -> None:
    code = (
        "import signal, sys\nfrom greenbatch.cli import main\n"
        "before = [signal.getsignal(n) for n in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)], sys.unraisablehook\n"
        "main(['--version'])\n"
        "after = [signal.getsignal(n) for n in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)], sys.unraisablehook\n"
        "assert before == after"
    )
    assert run([sys.executable, "-c", code]).stderr == ""


PRINTING = [
    ("schedulers",), ("scenario", "schema"), ("compare", "--help"), COMPARE,
]  # fmt: skip


@pytest.mark.parametrize("arguments", PRINTING, ids=" ".join)
def test_a_closed_pipe_prints_nothing(small: Path, arguments: tuple[str, ...]) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run(command_of(arguments), stdout=writer, stderr=subprocess.PIPE, text=True, check=False)
    os.close(writer)
    assert (done.returncode, done.stderr) == (141, "")


@pytest.mark.parametrize("arguments", [("schedulers",), ("--help",), COMPARE], ids=lambda verb: verb[0])
def test_a_full_disk_behind_the_output_is_one_line(small: Path, arguments: tuple[str, ...]) -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(command_of(arguments), stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert (done.returncode, done.stderr) == (
        2, "greenbatch: No space left on device (check free space and permissions)\n"
    )  # fmt: skip


@pytest.mark.parametrize("closed", [">&- 2>&-", "<&-", "2>/dev/full"])
def test_streams_may_be_closed(small: Path, closed: str) -> None:
    line = f'"{sys.executable}" -m greenbatch {" ".join(SIMULATE)} --jobs 20 {closed}'
    done = run(["bash", "-c", line])
    assert done.returncode == 0
    assert done.stderr == ""
    metrics = (small / "out" / "metrics.json").read_text()
    assert json.loads(metrics)["jobs"] == 20
    refused = run(["bash", "-c", line.replace("simulate", "nosuch")])
    assert refused.returncode == 2
    assert refused.stdout == ""
    assert (small / "out" / "metrics.json").read_text() == metrics


LOCALES = [
    ({"LC_ALL": "POSIX"}, "×"),
    ({"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}, "x"),
]  # fmt: skip
"""Python takes UTF-8 in the first."""


THREE_COMMANDS = f"""
import sys{PICTURELESS}from greenbatch.cli import main
sys.exit(main(["schedulers"]) or main(["--help"]) or main(sys.argv[1:]))
"""


def test_every_locale_gets_readable_text_and_the_same_files(small: Path) -> None:
    kept = {key: value for key, value in os.environ.items() if not key.startswith(("LC_", "LANG", "PYTHON"))}
    (small / "small.toml").write_text((small / "small.toml").read_text().replace('"small"', '"klein ×"'), "utf-8")
    assert main([*COMPARE[:3], "--out", "here"]) == 0
    for number, (locale, times) in enumerate(LOCALES):
        environment, out = {**kept, "PYTHONPATH": os.pathsep.join(sys.path), **locale}, f"out-{number}"
        command = [sys.executable, "-c", THREE_COMMANDS, *COMPARE[:3], "--out", out]
        done = run(command, env=environment, encoding="utf-8")
        assert (done.returncode, done.stderr) == (0, "")
        assert f"klein {times}: " in done.stdout
        assert f"[{times}]" in done.stdout
        assert done.stdout.isascii() == (times == "x")
        assert "?" not in done.stdout
        assert "\\" not in done.stdout
        for file in ("results.parquet", "table.md", "table.tex"):
            assert (small / out / file).read_bytes() == (small / "here" / file).read_bytes()


def test_names_of_files_that_are_not_ascii(small: Path) -> None:
    (small / "jöbs 中.swf").write_text("; MaxProcs: 8\n1 0 -1 100 4 -1 -1 4 200 -1 1 1 1 1 1 1 -1 -1\n")
    arguments = ["simulate", "--scenario", "plain", "--trace", "jöbs 中.swf", "--scheduler", "fcfs", "--out", "aus ü"]
    twice = "import sys; from greenbatch.cli import main; print(main(sys.argv[1:]), main(sys.argv[1:]))"
    done = run([sys.executable, "-c", twice, *arguments], env={**os.environ, "PYTHONIOENCODING": "ascii"})
    assert done.stdout.endswith("written to aus u\n0 2\n")
    assert done.stderr.startswith("greenbatch: aus u: --out: exists")
    assert done.stderr.count("\n") == 1
    assert list(json.loads((small / "aus ü" / "provenance.json").read_text("utf-8"))["inputs"]) == ["jöbs 中.swf"]
    arguments[4] = os.fsdecode(b"j\xffbs.swf")
    done = subprocess.run([*GREENBATCH, *arguments[:-1], "elsewhere"], capture_output=True, check=False)
    assert done.returncode == 2
    assert done.stderr.count(b"\n") == 1
    assert b"UTF-8 locale" in done.stderr


@pytest.mark.parametrize(
    ("text", "plain"),
    [("×–−…≥", "x--...>="), ("─│╭╮└┼├", "-|+++++"), ("§5 °C é ß ²", "section 5 degC e ss ^2"), ("中", "\\u4e2d")],
)
def test_ascii_replacements(text: str, plain: str) -> None:
    assert "".join(nearest(each) if not each.isascii() else each for each in text) == plain


def test_the_command_that_resumes_is_not_wrapped_in_a_terminal() -> None:
    resume = "greenbatch compare --schedulers " + ",".join(["fcfs+easy"] * 9) + " --out runs/one --resume"
    code = (
        "import sys, greenbatch.cli.app as app\nfrom greenbatch.cli import main\n"
        "from greenbatch.errors import Interrupted\n"
        "def run(_):\n    raise Interrupted('2 of 3 windows are finished', resume=sys.argv[1])\n"
        "app.run = run\nsys.exit(main([]))"
    )
    ours, theirs = os.openpty()
    environment = os.environ | {"COLUMNS": "60"}
    done = subprocess.run([sys.executable, "-c", code, resume], stderr=theirs, env=environment, check=False)
    os.close(theirs)
    shown = os.read(ours, 10_000).decode().splitlines()
    os.close(ours)
    assert done.returncode == 130
    assert (
        " ".join(line.strip() for line in shown[:-1])
        == "greenbatch: interrupted; 2 of 3 windows are finished; resume with:"
    )
    assert shown[-1] == resume


def test_reports_define_their_words_without_docstrings() -> None:
    show = "import json; from greenbatch.experiments.reports.page import definitions; print(json.dumps(definitions()))"
    done = subprocess.run([sys.executable, "-OO", "-c", show], capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == [[*each] for each in definitions()]
