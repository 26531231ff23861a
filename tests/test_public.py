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
PACKAGES = (
    ("arguments", "display", "errors", "storage", "files", "data_catalog", "provenance"),
    ("workload", "energy", "cluster"),
    ("engine",),
    ("policies",),
    ("scenarios",),
    ("presets",),
    ("models",),
    ("schedulers",),
    ("metrics",),
    ("envs",),
    ("learning",),
    ("experiments",),
    ("cli",),
    ("__main__",),
)
"""In the order of the README, after the files beside them. Packages of one level do not import each other, except that
any may use the first level."""
EXCEPTIONS = {
    ("engine/outcome.py", "metrics"), ("engine/outcome.py", "experiments"),
}  # fmt: skip
"""Module and a package below it that it may import: an outcome shows its metrics and pictures."""


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
    "retrain": ["--out", "x"],
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


def imported_packages(text: str) -> set[str]:
    """Packages that a module imports from, wherever the import is; imports for type checkers aside."""
    found: set[str] = set()

    def visit(node: ast.AST) -> None:
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            for child in node.orelse:
                visit(child)
            return
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute"
            module = node.module or ""
            names = [f"{module}.{alias.name}" for alias in node.names] if module == "greenbatch" else [module]
            found.update(name.split(".")[1] for name in names if name.startswith("greenbatch."))
        if isinstance(node, ast.Import):
            found.update(alias.name.split(".")[1] for alias in node.names if alias.name.startswith("greenbatch."))
        for child in ast.iter_child_nodes(node):
            visit(child)

    visit(ast.parse(text))
    return found


def test_imports_are_found_wherever_they_are() -> None:
    text = (
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from greenbatch.cli import app\n"
        "def f():\n    from greenbatch import energy\n    import greenbatch.engine.state\n"
    )
    assert imported_packages(text) == {"energy", "engine"}


@pytest.mark.parametrize("package", [package for level in PACKAGES for package in level])
def test_a_package_imports_only_from_packages_above_it(package: str) -> None:
    level = next(k for k, packages in enumerate(PACKAGES) if package in packages)
    allowed = {package, *(other for packages in PACKAGES[:level] for other in packages)}
    allowed |= set(PACKAGES[0]) if level == 0 else set()
    files = sorted((SOURCE / package).rglob("*.py")) if (SOURCE / package).is_dir() else [SOURCE / f"{package}.py"]
    assert files
    for file in files:
        name = file.relative_to(SOURCE).as_posix()
        found = {each for each in imported_packages(file.read_text(encoding="utf-8")) if (name, each) not in EXCEPTIONS}
        assert found <= allowed, f"{file.relative_to(SOURCE)} imports from {', '.join(sorted(found - allowed))}"


def test_every_package_is_in_the_order() -> None:
    known = {package for level in PACKAGES for package in level}
    present = {
        p.stem if p.suffix == ".py" else p.name
        for p in SOURCE.iterdir()
        if p.suffix == ".py" or (p / "__init__.py").exists()
    }
    assert present - {"__init__"} == known


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
        for number, line in enumerate(file.read_text(encoding="utf-8", errors="replace").splitlines(), 1):
            assert not pattern.search(line), f"{file.relative_to(ROOT)}, line {number}: {line.strip()[:100]}"


def test_nothing_in_the_source_is_unfinished() -> None:
    word = re.compile(r"NotImplementedError|\b(?:TODO|FIXME|XXX)\b")
    for file in sorted(SOURCE.rglob("*.py")):
        assert not word.search(file.read_text(encoding="utf-8")), file.relative_to(ROOT)


def test_the_citation_names_this_version() -> None:
    text = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert re.findall(r"^version: (.+)$", text, flags=re.MULTILINE) == [gb.__version__]
    assert f'version = "{gb.__version__}"' in (ROOT / "pyproject.toml").read_text(encoding="utf-8")
