"""Public names, commands and links in the pages, and the order of packages."""

from __future__ import annotations

import ast
import inspect
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import cyclopts
import pytest

import greenbatch as gb
from greenbatch.cli.app import build
from pages import PAGES, ROOT, anchors, blocks, commands, links, mentioned_commands, prose

SOURCE = ROOT / "src" / "greenbatch"
ORDER = {
    "": (
        (
            "arguments",
            "display",
            "errors",
            "notes",
            "node_lists",
            "storage",
            "files",
            "json_input",
            "data_catalog",
            "provenance",
        ),
        ("workload", "energy", "cluster"),
        ("machine_code",),
        ("engine",),
        ("policies",),
        ("scenarios",),
        ("presets",),
        ("models",),
        ("schedulers",),
        ("metrics",),
        ("bounds",),
        ("envs",),
        ("datasets",),
        ("workers",),
        ("learning",),
        ("experiments",),
        ("cli",),
        ("__main__",),
    ),
    "learning": (
        ("runs", "discounts", "adam"),
        ("networks",),
        ("training", "search"),
        ("offpolicy",),
        ("evaluation",),
        ("trainers",),
        ("several",),
    ),
    "experiments": (("running",), ("reports",), ("papers",), ("notebook",)),
}
"""Package -> the packages and files in it, level by level, as in the README and in the packages' docstrings.

Each imports only from levels above its own, for type checkers as well. Those of one level do not import each other,
except that any may use the first level of all."""


def page_id(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


# ---------------------------------------------------------------- public names


def test_all_names_what_is_exported() -> None:
    assert sorted(gb.__all__) == gb.__all__
    assert set(gb.__all__) == set(gb._PUBLIC)
    assert set(dir(gb)) == {*gb.__all__, "__version__"}


@pytest.mark.parametrize("name", gb.__all__)
def test_every_public_name_is_there_and_says_what_it_is(name: str) -> None:
    found = getattr(gb, name)
    assert found.__name__ == name
    doc = inspect.getdoc(found) or ""
    assert len(doc) > 20
    assert not doc.startswith(f"{name}("), "a signature is no docstring"


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'simulat'"):
        gb.simulat  # noqa: B018


def test_importing_the_package_loads_no_library() -> None:
    heavy = ("numpy", "numba", "polars", "pydantic", "matplotlib", "pandas")
    code = f"import sys, greenbatch; print(*[m for m in {heavy} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []


def test_every_public_name_is_in_the_api_page() -> None:
    shown = re.findall(r"greenbatch\.(\w+)$", (ROOT / "docs/api.md").read_text(encoding="utf-8"), flags=re.MULTILINE)
    assert sorted(shown) == gb.__all__


# ---------------------------------------------------------------- pages

NEEDED = {
    "simulate": ["--scheduler", "fcfs", "--out", "x"], "compare": ["--out", "x"], "reproduce": ["gas-marl"],
    "train": ["gas-marl", "--scenario", "default", "--out", "x"], "export": ["model", "--out", "x"],
    "retrain": ["--out", "x"], "bound": ["--scenario", "default"], "whatif": ["--trace", "x", "--site", "default"],
    "record": ["rlscheduler", "--schedulers", "fcfs", "--out", "x"],
    "estimate": ["model", "--dataset", "x"], "results": ["x"],
    "tune": ["--scheduler", "fcfs+green", "--search", "+sigma=1:9", "--objective", "avg_wait_s=1"],
}  # fmt: skip
"""What running text may leave out."""


def test_the_commands_of_the_pages_are_found() -> None:
    assert sum(len(commands(page)) for page in PAGES) > 15
    assert sum(len(mentioned_commands(page)) for page in PAGES) > 5


@pytest.mark.parametrize("page", PAGES, ids=page_id)
def test_every_command_in_a_page_exists_with_its_flags(page: Path) -> None:
    app = build()
    for words in commands(page):
        app.parse_args(words, print_error=False, exit_on_error=False)
    for words in mentioned_commands(page):
        try:
            app.parse_args(words, print_error=False, exit_on_error=False)
        except cyclopts.MissingArgumentError:
            app.parse_args([*words, *NEEDED[words[0]]], print_error=False, exit_on_error=False)


def test_every_make_target_in_the_pages_exists() -> None:
    targets = set(re.findall(r"^(\w+):", (ROOT / "Makefile").read_text(encoding="utf-8"), flags=re.MULTILINE))
    named = {
        name for page in PAGES for block in blocks(page, "shell") for name in re.findall(r"^make (\w+)", block, re.M)
    }
    assert {"demo", "test"} <= named <= targets


@pytest.mark.parametrize("page", PAGES, ids=page_id)
def test_every_link_in_a_page_leads_somewhere(page: Path) -> None:
    for target, anchor in links(page):
        assert target.exists(), f"{page_id(page)} links to {target}"
        assert not anchor or anchor in anchors(target), f"{page_id(page)} links to #{anchor} of {target.name}"


def test_links_and_anchors_are_seen(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        "# One, `two` three\n[a](b.md#c) [d](#e)\n```text\n[no](link.md)\n# no heading\n```\n"
        "```{generated} table\n```\n## After a directive\n[f](#g)\n```text\n# no heading\n```\n"
    )
    assert list(links(page)) == [(tmp_path / "b.md", "c"), (page, "e"), (page, "g")]
    assert anchors(page) == {"one-two-three", "after-a-directive"}


def test_every_source_file_that_a_page_names_exists() -> None:
    named = {(page, name) for page in PAGES for name in re.findall(r"`([\w/*-]+/[\w*-]+\.(?:py|csv))`", prose(page))}
    assert sum(page.name == "engineers.md" for page, _ in named) > 15
    for page, name in sorted(named):
        assert any(list(root.glob(name)) for root in (SOURCE, ROOT)), f"{page_id(page)}: {name}"


def test_every_decision_has_context_choice_and_consequence() -> None:
    files = sorted((ROOT / "docs/decisions").glob("0*.md"))
    assert [file.name[:4] for file in files] == [f"{k:04}" for k in range(1, len(files) + 1)]
    for file in files:
        text = file.read_text(encoding="utf-8")
        assert text.startswith(f"# {file.name[:4]} ")
        parts = [text.find(f"**{part}.**") for part in ("Context", "Choice", "Consequence")]
        assert 0 < parts[0] < parts[1] < parts[2], file.name


# ---------------------------------------------------------------- packages


def modules() -> dict[str, Path]:
    """Name of a module, without ``greenbatch``, -> its file."""
    found = {}
    for file in sorted(SOURCE.rglob("*.py")):
        parts = file.relative_to(SOURCE).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = file
    return found


MODULES = modules()


def imported(text: str) -> set[str]:
    """Modules of ours that a module imports, wherever the import is, those for type checkers included."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute"
            module = node.module or ""
            names = [f"{module}.{alias.name}" for alias in node.names]
            found.update(name if name.removeprefix("greenbatch.") in MODULES else module for name in names)
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
    return {name.removeprefix("greenbatch.") for name in found if name.startswith("greenbatch.")}


IMPORTS = {name: imported(file.read_text(encoding="utf-8")) for name, file in MODULES.items() if name}


def test_imports_are_found_wherever_they_are() -> None:
    text = (
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from greenbatch.cli import app\n"
        "def f():\n    from greenbatch import energy\n    import greenbatch.engine.state\n"
        "    from greenbatch.errors import InputError\n"
    )
    assert imported(text) == {"cli.app", "energy", "engine.state", "errors"}


@pytest.mark.parametrize(("package", "part"), [(p, part) for p in ORDER for level in ORDER[p] for part in level])
def test_a_package_imports_only_from_packages_above_it(package: str, part: str) -> None:
    levels, prefix = ORDER[package], f"{package}." if package else ""
    level = next(k for k, parts in enumerate(levels) if part in parts)
    allowed = {part, *(other for parts in levels[:level] for other in parts)}
    allowed |= set(levels[0]) if (package, level) == ("", 0) else set()
    own = {name: found for name, found in IMPORTS.items() if f"{name}.".startswith(f"{prefix}{part}.")}
    assert own
    for name, found in own.items():
        beside = {other.removeprefix(prefix).split(".")[0] for other in found if other.startswith(prefix)}
        assert beside <= allowed, f"{name} imports from {', '.join(sorted(beside - allowed))}"


@pytest.mark.parametrize("package", ORDER)
def test_every_package_is_in_the_order(package: str) -> None:
    prefix = f"{package}." if package else ""
    present = {name.removeprefix(prefix).split(".")[0] for name in MODULES if name.startswith(prefix) and name}
    assert present == {part for level in ORDER[package] for part in level}


def test_the_packages_of_the_readme_are_in_the_order_of_their_imports() -> None:
    listed = re.findall(r"^  (\w+)/ ", (ROOT / "README.md").read_text(encoding="utf-8"), flags=re.MULTILINE)
    assert listed == [part for level in ORDER[""] for part in level if (SOURCE / part).is_dir()]


def test_no_modules_import_each_other_in_a_circle() -> None:
    left = dict(IMPORTS)
    while free := [name for name, found in left.items() if not found & left.keys() - {name}]:
        for name in free:
            del left[name]
    assert not left, f"in or behind a circle: {', '.join(left)}"


# ---------------------------------------------------------------- what must not be there


def repository_files() -> list[Path]:
    """Text files that are committed or about to be; all files where there is no Git."""
    try:
        listed = subprocess.run(
            ["git", "ls-files", "-co", "--exclude-standard"], cwd=ROOT, capture_output=True, text=True, check=True
        ).stdout.splitlines()
        files = [ROOT / name for name in listed]
    except (OSError, subprocess.CalledProcessError):
        folders = ("src", "tests", "docs", "examples", "benchmarks")
        files = [file for folder in folders for file in (ROOT / folder).rglob("*")]
    kept = {".py", ".md", ".toml", ".txt", ".cff", ".css", ".j2", ".svg", ".csv", ".sh", ""}
    return [file for file in files if file.is_file() and file.suffix in kept and "__pycache__" not in file.parts]


def machine_paths() -> list[Path]:
    """Folders that only this machine has: the checkout, the one around it, the home, the environment."""
    found = [ROOT, ROOT.parent, Path.home(), Path(sys.prefix)]
    return [path for path in found if len(path.parts) > 1 and path not in (Path(tempfile.gettempdir()), Path("/usr"))]


def test_no_file_holds_a_path_of_a_machine() -> None:
    here = [rf"(?<![\w.~*]){re.escape(str(path))}(?![\w-])" for path in machine_paths()]
    homes = [r"(?<![\w.])/(?:home|Users)/\w+", r"[A-Z]:\\\\?Users"]
    pattern = re.compile("|".join(here + homes))
    files = repository_files()
    assert len(files) > 100
    for file in files:
        text = file.read_text(encoding="utf-8", errors="replace")
        if found := pattern.search(text):
            line = 1 + text.count("\n", 0, found.start())
            pytest.fail(f"{file.relative_to(ROOT)}, line {line}: {found[0]}")


def test_nothing_in_the_source_is_unfinished() -> None:
    word = re.compile(r"NotImplementedError|\b(?:TODO|FIXME|XXX)\b")
    for file in sorted(SOURCE.rglob("*.py")):
        assert not word.search(file.read_text(encoding="utf-8")), file.relative_to(ROOT)


def test_the_citation_names_this_version() -> None:
    text = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert re.findall(r"^version: (.+)$", text, flags=re.MULTILINE) == [gb.__version__]
    assert f'version = "{gb.__version__}"' in (ROOT / "pyproject.toml").read_text(encoding="utf-8")
