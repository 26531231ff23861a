"""Everything that the pages and examples show is run: scripts, commands, Python blocks, and the README's table."""

from __future__ import annotations

import doctest
import json
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from greenbatch.cli import main
from greenbatch.experiments.reports import drawing
from greenbatch.policies import registry
from greenbatch.schedulers import entries
from pages import PAGES, ROOT, blocks, commands, prose
from power_trace_files import fdata, pm100, written

EXAMPLES = ROOT / "examples"
sys.path.insert(0, str(ROOT / "docs"))


@pytest.fixture(autouse=True)
def _own_rules() -> Iterator[None]:
    """Rules that an example registers are gone after it."""
    entries()
    before = dict(registry.ENTRIES)
    yield
    registry.ENTRIES.clear()
    registry.ENTRIES.update(before)


@pytest.fixture
def workplace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a copy of the examples, and invented jobs for the data sets that users download."""
    shutil.copytree(EXAMPLES, tmp_path / "examples", ignore=shutil.ignore_patterns("__pycache__"))
    written(pm100(30), tmp_path / "job_table.parquet")
    written(fdata(30, embedded=3), tmp_path / "23_06.parquet")
    monkeypatch.chdir(tmp_path)
    return tmp_path


# ---------------------------------------------------------------- scripts


def test_quickstart_prints_what_it_printed_when_it_was_written(tmp_path: Path) -> None:
    """A difference is a change of results: it belongs into the changelog, and into ``examples/quickstart.out``."""
    done = subprocess.run(
        [sys.executable, EXAMPLES / "quickstart.py"], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert done.stdout == (EXAMPLES / "quickstart.out").read_text(encoding="utf-8")
    assert all(line.startswith("greenbatch: compiling") for line in done.stderr.splitlines())
    assert not list(tmp_path.iterdir())


def test_the_example_rule_has_fewer_than_twenty_lines() -> None:
    text = (EXAMPLES / "my_rules.py").read_text(encoding="utf-8")
    rule = text[: text.index("@gb.policy")]
    assert len([line for line in rule.splitlines() if line.strip()]) < 20


# ---------------------------------------------------------------- commands

ELSEWHERE = {"demo", "reproduce", "data", "train"}
"""Verbs that need real data or minutes, or whose tests run the very same command."""

RUN = {
    " ".join(words): words
    for page in PAGES
    for words in commands(page)
    if words[0] not in ELSEWHERE and not any("gas-marl" in word or "@runs/" in word for word in words)
}
for name in list(RUN):
    if (same := name.replace("out/what-if", "out/site")) != name and same in RUN:
        del RUN[name]  # the same command into another folder


DRAWN = {"out/site", "out/two-kinds", "out/whatif"}
"""A site, nodes and a question, with their pictures: drawing is half of a command, and tested elsewhere."""


PLAIN = {name: pytest.mark.plain for name in RUN if "slurm-multifactor" in name}
"""Commands with schedulers on nodes that no other test needs compiled."""


@pytest.mark.parametrize(
    "words", [pytest.param(words, marks=PLAIN.get(name, ()), id=name) for name, words in RUN.items()]
)
def test_every_command_in_the_pages_runs(
    words: list[str], workplace: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    if not DRAWN & {*words}:
        monkeypatch.setattr(drawing, "_svg", lambda *_: "<svg></svg>")
    assert main(words) == 0, capsys.readouterr().err
    assert capsys.readouterr().out
    if "--out" in words:
        record = json.loads((workplace / words[words.index("--out") + 1] / "provenance.json").read_text())
        assert record["run"]["command"] == ["greenbatch", *words]
        assert record["files"]


def test_the_example_dump_has_the_notes_that_the_page_shows(
    workplace: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shown = next(block for block in blocks(ROOT / "docs/data-in.md", "text") if "note:" in block)
    words = ["simulate", "--scenario", "examples/site.toml", "--scheduler", "fcfs+easy", "--out", "out"]
    assert main(words) == 0
    assert set(shown.splitlines()) <= set(capsys.readouterr().out.splitlines())
    assert main([*words[:-1], "strict", "--strict"]) == 2
    assert "sacct.txt, line 44: Start: job that never started dropped" in capsys.readouterr().err
    assert not (workplace / "strict").exists()


def test_the_message_in_the_page_on_errors_is_a_real_one(workplace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shown = next(block for block in blocks(ROOT / "docs/errors.md", "text") if "trace.swf" in block)
    rest = " -1 -1 1 10 -1 1 1 1 1 1 -1 -1 -1\n"
    jobs = [f"{k} 0 -1 5 1{rest}" for k in range(1, 6)]
    (workplace / "trace.swf").write_text("; MaxProcs: 8\n" + "".join(jobs) + f"6 0 -1 x 1{rest}")
    assert main(["simulate", "--scenario", "plain", "--trace", "trace.swf", "--scheduler", "fcfs", "--out", "x"]) == 2
    assert capsys.readouterr().err == shown


# ---------------------------------------------------------------- Python in the pages

WITH_PYTHON = [
    pytest.param(page, marks=pytest.mark.plain if page.name == "engineers.md" else ())
    for page in PAGES
    if blocks(page, "python")
]
"""Kinds of engine that a page adds are compiled again in each process: tests/engine/test_parts.py does that."""


@pytest.mark.filterwarnings("ignore::greenbatch.ModelWarning")  # the models of the pages are small ones
@pytest.mark.parametrize("page", WITH_PYTHON, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_python_in_a_page_runs_and_gives_what_it_shows(page: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Blocks of one page share their names; those with prompts are compared with what they show."""
    names: dict[str, object] = {"__name__": "page"}
    examples = 0
    for number, block in enumerate(blocks(page, "python")):
        if ">>>" in block:
            test = doctest.DocTestParser().get_doctest(block, names, page.name, str(page), 0)
            result = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE).run(test, clear_globs=False)
            assert result.failed == 0, capsys.readouterr().out
            names.update(test.globs)
            examples += result.attempted
        else:
            code = compile(block, f"{page.name}[{number}]", "exec", dont_inherit=True)  # without our __future__
            exec(code, names)  # noqa: S102  # it is our own page
            examples += 1
    assert examples


def test_the_main_path_in_the_readme_is_short() -> None:
    first = blocks(ROOT / "README.md", "python")[0]
    assert len(first.splitlines()) < 20
    assert all(verb in first for verb in ("load_scenario", "simulate", "evaluate", "compare"))


def test_the_readme_shows_what_a_run_gives() -> None:
    """The table is that of the embedded scenario, figure by figure; the picture's title tells its figures."""
    from readme_figures import PICTURE, figures

    table, picture = figures()
    text = prose(ROOT / "README.md")
    for line in table.splitlines():
        if line.startswith(("|", "Mean")):
            assert line in text
    title = re.compile("<title.*</title>", re.DOTALL)
    assert title.findall(PICTURE.read_text(encoding="utf-8")) == title.findall(picture) != []


# ---------------------------------------------------------------- what the documentation makes from the code


def test_every_generated_table_stands_in_one_page_and_is_up_to_date() -> None:
    from tables import PLACE, TABLES, updated

    texts = {page.name: page.read_text(encoding="utf-8") for page in PAGES}
    assert sorted(name for text in texts.values() for name in PLACE.findall(text)) == sorted(TABLES)
    stale = [name for name, text in texts.items() if updated(text) != text]
    assert not stale, "update the pages: python docs/tables.py"


def test_the_made_tables_hold_every_policy_backfilling_metric_and_key() -> None:
    from scenario_keys import sections
    from tables import TABLES

    from greenbatch.metrics import METRICS
    from greenbatch.policies.backfillings import BACKFILLINGS
    from greenbatch.schedulers import entries

    made = {name: make() for name, make in TABLES.items()}
    everything = "\n".join(made.values())
    built_in = [name for name, entry in entries().items() if entry.built_in]
    assert len(built_in) > 10
    for name in (*built_in, *BACKFILLINGS, *METRICS):
        assert f"| `{name}` |" in everything
    described = "\n".join(text for name, text in made.items() if name.startswith("scenario-"))
    keys = {
        key
        for parts in sections().values()
        for _, _, node in parts
        for key, prop in node["properties"].items()
        if "const" not in prop and "$ref" not in json.dumps(prop)
    }
    assert len(keys) > 80
    assert not {key for key in keys if f"| `{key}` |" not in described}


def test_every_note_of_the_readers_of_jobs_is_in_the_page() -> None:
    """What is said of a repair in the source stands in the page, with three dots for what varies."""
    import ast

    from greenbatch.workload.plausible_power import WITH_IDLE

    page = (ROOT / "docs/data-in.md").read_text(encoding="utf-8")
    found = []
    for file in sorted((ROOT / "src/greenbatch/workload").glob("*.py")):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            named = isinstance(node, ast.Call) and getattr(node.func, "attr", getattr(node.func, "id", ""))
            if named in ("repair", "fact", "say", "Note") and isinstance(node, ast.Call) and node.args:
                found.append(node.args[0])
            elif named == "drop" and isinstance(node, ast.Call):
                found.append(node.args[0 if isinstance(node.func, ast.Attribute) else 1])
            elif isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) in ("what", "message"):
                found.append(node.value)
    texts = set()
    for node in found:
        parts = node.values if isinstance(node, ast.JoinedStr) else [node]
        varies = [getattr(part, "value", None) for part in parts]
        pieces = [
            each if isinstance(each, str) else WITH_IDLE if getattr(each, "id", "") == "WITH_IDLE" else "…"
            for each in varies
        ]
        texts.add("".join(pieces))
    texts.discard("…")
    assert len(texts) > 25
    assert not {text for text in texts if text not in page}


# ---------------------------------------------------------------- the notebook


def run_notebook(cells: list[tuple[str, bool]], folder: Path) -> list[dict[str, object]]:
    """What each cell shows: MIME type -> content; the lines of its error if it fails, where it says that it may."""
    import nbclient
    import nbformat

    make = nbformat.v4.new_code_cell
    notebook = nbformat.v4.new_notebook(
        cells=[make(code, metadata={"tags": ["raises-exception"] if fails else []}) for code, fails in cells]
    )
    options = {"resources": {"metadata": {"path": str(folder)}}, "kernel_name": "python3", "timeout": 300}
    nbclient.NotebookClient(notebook, **options).execute()
    shown: list[dict[str, object]] = []
    for cell in notebook.cells:
        data: dict[str, object] = {}
        for output in cell.outputs:
            data |= output.get("data", {}) or {"error": output.get("traceback", [])}
        shown.append(data)
    return shown


@pytest.mark.filterwarnings("default")
def test_the_notebook_runs_shows_tables_and_pictures_and_leaves_no_file(
    workplace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scratch, folder = workplace / "scratch", workplace / "examples"
    scratch.mkdir()
    monkeypatch.setenv("TMPDIR", str(scratch))
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    written = json.loads((EXAMPLES / "notebook.ipynb").read_text(encoding="utf-8"))
    code = ["".join(cell["source"]) for cell in written["cells"] if cell["cell_type"] == "code"]
    assert not any(cell.get("outputs") for cell in written["cells"]), "committed without outputs"
    again = "def aging(queue):\n    return queue.nothing\n\ngb.simulate(scenario, aging, jobs=50)"
    shown = run_notebook(
        [*((text, False) for text in code), ("gb.load_scenario('defualt')", True), (again, True)], folder
    )
    assert {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()} == before
    by_code = dict(zip(code, shown, strict=False))
    for text, found in by_code.items():
        last = text.splitlines()[-1]
        if last in ("scenario", "outcome", "comparison"):
            assert len(str(found["text/plain"])) <= 200
            assert str(found["text/html"]).startswith("<table>")
        if ".plot(" in last:
            assert str(found["image/svg+xml"]).startswith("<svg")
    assert [key for found in by_code.values() for key in found].count("image/svg+xml") == 2
    assert "Bounded slowdown" in str(by_code[next(text for text in code if text.endswith("\ncomparison"))]["text/html"])
    (report,) = scratch.rglob("report.html")
    assert report.stat().st_size > 10_000
    assert str(report) in str(by_code[code[-1]]["text/plain"])
    (unknown,), (mistake,) = shown[-2]["error"], shown[-1]["error"]
    assert unknown.startswith("InputError: scenario: there is no scenario 'defualt'")
    assert mistake.startswith("InputError: aging, line 2 of its cell: AttributeError")
