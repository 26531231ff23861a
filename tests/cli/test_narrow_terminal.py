"""What a shell shows: narrow terminals, pipes, completion, the targets of make."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from greenbatch import data_catalog
from greenbatch.cli import main
from greenbatch.cli.app import VERBS, build
from greenbatch.models.find import shipped_models
from greenbatch.scenarios import shipped_names
from greenbatch.schedulers import entries

ROOT = Path(__file__).parents[2]
APPS = {
    "scenario": ("list", "show", "schema"), "cluster": ("list", "show"), "data": ("list", "fetch", "path"),
}  # fmt: skip
COMMANDS = [*VERBS, *(f"{verb} {each}" for verb, found in APPS.items() for each in found), "--install-completion"]


@pytest.fixture
def narrow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "60")


def words(text: str) -> list[str]:
    return re.sub(r"[│╭╮╰╯─]", " ", text).split()


HELP = """
import contextlib, io, json, sys
from greenbatch.cli import main
told = {}
for command in sys.argv[1:]:
    with contextlib.redirect_stdout(io.StringIO()) as out:
        assert main([*command.split(), "--help"]) == 0
    told[command] = out.getvalue()
print(json.dumps(told))
"""


@pytest.fixture(scope="module")
def helps() -> dict[str, dict[str, str]]:
    """Columns and command -> its help, from a process for each width: a command keeps the width of its first help."""
    told = {}
    for columns in ("60", "200"):
        line = [sys.executable, "-c", HELP, *COMMANDS]
        environment = os.environ | {"COLUMNS": columns}
        done = subprocess.run(line, env=environment, capture_output=True, text=True, check=True)
        told[columns] = json.loads(done.stdout)
    return told


@pytest.mark.parametrize("command", COMMANDS)
def test_help_is_whole_at_60_columns(command, helps):
    told = {columns: each[command] for columns, each in helps.items()}
    assert max(map(len, told["60"].splitlines())) <= 60
    assert "…" not in told["60"]
    flags = re.findall(r"(?<!\S)--[a-z][a-z-]+", told["200"])
    assert [flag for flag in flags if flag not in words(told["60"])] == []


@pytest.mark.parametrize("command", [each for each in COMMANDS if each not in APPS])
def test_a_parameters_help_is_one_line_of_source(command):
    app = build()[command.split()[0]]
    for name in command.split()[1:]:
        app = app[name]
    for argument in app.assemble_argument_collection(parse_docstring=True):
        text = (argument.parameter.help or "").strip()
        assert text, argument.name
        assert "\n" not in text, f"{command} {argument.name}: {text}"


def test_lists_fit_60_columns_and_break_no_name(narrow, capsys):
    expected = {
        "schedulers": [*entries(), *(name.replace("/", "@") for name in shipped_models())],
        "scenario list": list(shipped_names()),
        "data list": list(data_catalog.catalog()),
    }
    for command, names in expected.items():
        assert main(command.split()) == 0
        text = capsys.readouterr().out
        firsts = [line.split()[0] for line in text.splitlines() if line.strip()]
        assert [name for name in names if name not in firsts] == [], command
        for line in text.splitlines():
            assert len(line) <= 60 or len(line.split()[-1]) > 30 or line.endswith("[here]"), line


def test_lists_keep_every_word_in_a_pipe(monkeypatch, capsys):
    for command in ("schedulers", "scenario list", "data list"):
        told = []
        for columns in ("60", "1000"):
            monkeypatch.setenv("COLUMNS", columns)
            assert main(command.split()) == 0
            told.append(capsys.readouterr().out.split())
        assert told[0] == told[1], command


@pytest.mark.parametrize(
    ("shell", "script", "startup"),
    [
        ("bash", ".local/share/bash-completion/completions/greenbatch", ".bashrc"),
        ("zsh", ".zsh/completions/_cyclopts_greenbatch", ".zshrc"),
        ("fish", ".config/fish/completions/greenbatch.fish", None),
    ],
)
def test_completion_is_installed_for_each_shell(shell, script, startup, tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("ZSH", "ZSH_CUSTOM"):
        monkeypatch.delenv(name, raising=False)
    assert main(["--install-completion", shell]) == 0
    out = capsys.readouterr().out
    assert f"written to ~/{script}" in out
    text = (tmp_path / script).read_text()
    assert [verb for verb in VERBS if verb not in text] == []
    files = {file.relative_to(tmp_path).as_posix() for file in tmp_path.rglob("*") if file.is_file()}
    assert files == {script, *([startup] if startup else [])}
    before = {file: (tmp_path / file).read_bytes() for file in files}
    assert main(["--install-completion", shell]) == 0, "once more"
    assert {file: (tmp_path / file).read_bytes() for file in files} == before


def test_bash_completes_commands_and_flags(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    assert main(["--install-completion", "bash"]) == 0
    ask = (
        ". ~/.bashrc; complete -p greenbatch; COMP_WORDS=(greenbatch {}); COMP_CWORD={}; "
        "$(complete -p greenbatch | sed 's/.*-F \\([^ ]*\\).*/\\1/'); printf '%s\\n' \"${{COMPREPLY[@]}}\""
    )
    for given, at, expected in (("comp", 1, "compare"), ("compare --base", 2, "--baseline")):
        done = subprocess.run(
            ["bash", "-c", ask.format(given, at)], capture_output=True, text=True, check=False, cwd=tmp_path
        )
        assert expected in done.stdout.splitlines(), done


def test_an_unknown_shell_is_one_line(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("HOME", str(tmp_path))
    assert main(["--install-completion", "tcsh"]) == 2
    assert capsys.readouterr().err.count("\n") == 1
    for name in ("ZSH_VERSION", "BASH_VERSION", "FISH_VERSION", "SHELL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("os.getppid", lambda: 1)
    monkeypatch.setenv("PATH", "")
    assert main(["--install-completion"]) == 2
    assert capsys.readouterr().err == (
        "greenbatch: --install-completion: cannot tell which shell this is (add bash, zsh or fish to the command)\n"
    )
    assert list(tmp_path.iterdir()) == []


def test_make_help_lists_every_target():
    text = (ROOT / "Makefile").read_text()
    targets = re.findall(r"^([a-z]+):", text, flags=re.MULTILINE)
    done = subprocess.run(["make", "-s", "help"], cwd=ROOT, capture_output=True, text=True, check=True)
    listed = [line.split()[:2] for line in done.stdout.splitlines()]
    assert listed == [["make", target] for target in targets]
    assert max(map(len, done.stdout.splitlines())) <= 79
