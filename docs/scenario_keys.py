"""Every key of a scenario file, with its type, default and meaning, from the schema and the code that takes them."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import MISSING, fields
from functools import cache
from inspect import signature
from math import isfinite
from typing import Any

from texts import NOTHING, arguments, attributes, first_paragraph, markdown, table

from greenbatch import energy, workload
from greenbatch.cluster import MemoryContention, NodeGroup
from greenbatch.engine.pools import Pools
from greenbatch.engine.rules import Rules
from greenbatch.metrics import Cut
from greenbatch.scenarios.schema import ScenarioFile
from greenbatch.scenarios.site_schema import KINDS, PUE_KINDS

Node = Mapping[str, Any]
"""A piece of a JSON schema."""

PLAIN = {
    "name": "Name, shown in reports.",
    "description": "Description in whole sentences, shown in reports.",
    "seed": "Seed of the random numbers.",
}
"""Keys whose meaning no docstring states, or states for programmers only (those with the name of their table)."""

_NODE_NAMES = "Names of the nodes as a Slurm node list, such as `cn[001-128]`; it also gives the count."
_GROUP = {f.name: f.default for f in fields(NodeGroup) if f.default is MISSING or isinstance(f.default, (int, float))}
"""Numbers of a node group that are not given."""
_SHARED = ("name", "file", "dataset")
"""Keys of every source."""

_SAME = re.compile(r"see `(?:\w+\.)?(\w+)`")


@cache
def sections() -> dict[str, list[tuple[str, str, Node]]]:
    """Section -> its tables, each as (header, name in the schema, schema); ``file`` for the file itself."""
    schema = ScenarioFile.model_json_schema()
    found: dict[str, list[tuple[str, str, Node]]] = {"file": [("", "ScenarioFile", schema)]}

    def walk(place: tuple[str, ...], node: Node) -> None:
        for key, prop in node["properties"].items():
            for name, many in _tables(prop):
                inner = schema["$defs"][name]
                path = ".".join((*place, key))
                header = f"[[{path}]]" if many else f"[{path}]"
                tags = ("kind", "model")
                kinds = [inner["properties"].get(tag, {}).get("const") for tag in tags]
                header += "".join(f' with {tag} = "{kind}"' for tag, kind in zip(tags, kinds, strict=True) if kind)
                found.setdefault(place[0] if place else key, []).append((header, name, inner))
                walk((*place, key), inner)

    walk((), schema)
    return found


def section(name: str) -> str:
    """Every key of one section of a scenario file and of the tables inside it, without sources and the grid."""
    elsewhere = ("[[site.sources]]", "[site.grid", "[[site.grid")
    return _once(part for part in sections()[name] if not part[0].startswith(elsewhere))


def grid() -> str:
    """Every key of ``[site.grid]``; of tables that several keys take, those of the first one."""
    return _once(part for part in sections()["site"] if part[0].lstrip("[").startswith("site.grid"))


def _once(parts: Iterable[tuple[str, str, Node]]) -> str:
    """Tables by their name in the schema; several keys, or several kinds of a table, may hold the same one."""
    first: dict[str, tuple[str, str, Node]] = {}
    for part in parts:
        first.setdefault(part[1], part)
    return "\n".join(_described(*part) for part in first.values())


def sources() -> str:
    """Every key of ``[[site.sources]]``: what all kinds share, what kinds that are read alike share, and the rest."""
    tables = {node["properties"]["kind"]["const"]: (title, node) for _, title, node in sections()["site"][1:]
              if "kind" in node["properties"] and node["properties"]["kind"].get("const") in KINDS}  # fmt: skip
    alike: dict[Callable[..., Any], list[str]] = {}
    for kind in tables:
        alike.setdefault(KINDS[kind].read, []).append(kind)
    first = next(iter(tables))
    parts = ["**Every source**\n", _table(*tables[first], only=_SHARED)]
    for read, kinds in alike.items():
        named = ", ".join(f'`kind = "{kind}"`' for kind in kinds)
        keys = [key for key in signature(read).parameters if key not in _SHARED]
        parts += [f"**How the file of {named} is read**\n", _table(*tables[kinds[0]], only=keys)]
    for kind, (title, node) in tables.items():
        known = {*_SHARED, *signature(KINDS[kind].read).parameters}
        rest = [key for key in node["properties"] if key not in known]
        parts.append(f'**`kind = "{kind}"`** {first_paragraph(node.get("description"))}\n')
        parts.append(_table(title, node, only=rest))
    return "\n".join(parts)


def _described(header: str, title: str, node: Node) -> str:
    head = f"**`{header}`** {first_paragraph(node.get('description'))}\n\n" if header else ""
    read = {f"{kind.capitalize()}Pue": read for kind, read in PUE_KINDS.items()}.get(title)
    read = energy.read_series if title == "SeriesValue" else read
    told_elsewhere = signature(read).parameters.keys() - _SHARED if read else ()
    return head + _table(title, node, only=[key for key in node["properties"] if key not in told_elsewhere])


def _table(title: str, node: Node, *, only: Sequence[str]) -> str:
    rows = [
        (f"`{key}`", _type(prop), _default(title, key, prop, node), _meaning(title, key, prop))
        for key, prop in node["properties"].items()
        if key in only and "const" not in prop and not _is_table(prop)
    ]
    return table(("Key", "Type", "Default", "Meaning"), rows) if rows else ""


def _is_table(node: Node) -> bool:
    """Whether a key is always a table, which is described by itself."""
    return all(any(_tables(option)) for option in _options(node))


def _options(node: Node) -> list[Node]:
    """What a key may be, without null."""
    inner = [*node.get("anyOf", ()), *node.get("oneOf", ())]
    if inner:
        return [each for option in inner for each in _options(option)]
    return [] if node.get("type") == "null" else [node]


def _tables(node: Node) -> Iterator[tuple[str, bool]]:
    """Names of the tables that a property may hold, and whether it holds many."""
    if "$ref" in node:
        yield node["$ref"].rpartition("/")[2], False
    for option in (*node.get("oneOf", ()), *node.get("anyOf", ())):
        yield from _tables(option)
    for each in node.get("patternProperties", {}).values():
        yield from _tables(each)
    if "items" in node:
        yield from ((name, True) for name, _ in _tables(node["items"]))


@cache
def _meanings() -> dict[str, dict[str, str]]:
    """Name in the schema -> key -> meaning, where the code that takes the key documents it."""
    found = {
        "GroupSection": {**attributes(NodeGroup), "node_names": _NODE_NAMES},
        "ContentionSection": attributes(MemoryContention),
        "CutSection": attributes(Cut),
        "RulesSection": attributes(Rules),
        "ClimateSection": attributes(energy.Climate),
        "ForecastSection": attributes(energy.ForecastModel),
        "StorageSection": attributes(energy.Storage),
        "PeriodSection": attributes(energy.Period),
        "SeriesValue": arguments(energy.read_series),
        "SyntheticSite": arguments(energy.synthetic_site),
        "SeriesSite": arguments(energy.combine),
        "LublinGenerator": arguments(workload.lublin),
        "CirneGenerator": arguments(workload.cirne),
        "JannGenerator": arguments(workload.jann),
        "ProfilesGenerator": arguments(workload.profile_jobs),
        "RareGenerator": arguments(workload.rare),
        "ToPoolSection": arguments(workload.on_pool),
        "PoolsSection": attributes(Pools),
    }
    for kind, how in KINDS.items():
        name = "".join(word.capitalize() for word in kind.split("-")) + "Source"
        found[name] = {**arguments(how.read), **arguments(how.convert)}
    for meanings in found.values():
        for key, text in meanings.items():
            if match := _SAME.match(text):
                other = getattr(energy, match[1])
                meanings[key] = (attributes(other) if isinstance(other, type) else arguments(other))[key]
    return found


def _meaning(title: str, key: str, prop: Node) -> str:
    found = PLAIN.get(f"{title}.{key}") or markdown(prop.get("description"))
    found = found or _meanings().get(title, {}).get(key) or PLAIN.get(key, "")
    if not found:
        raise LookupError(f"the key {key} of {title} has no description")
    return found[0].upper() + found[1:]


def _type(node: Node) -> str:
    if "const" in node or "enum" in node:
        return ", ".join(f'`"{value}"`' for value in node.get("enum", [node.get("const")]))
    if "anyOf" in node:
        return " or ".join(dict.fromkeys("table" if any(_tables(each)) else _type(each) for each in _options(node)))
    if node["type"] == "array":
        return f"array of {_type(node['items'])}"
    bounds = (("minimum", ">="), ("exclusiveMinimum", ">"))
    bound = "".join(f" {sign} {node[key]:g}" for key, sign in bounds if key in node)
    words = {"integer": "whole number", "string": "text", "boolean": "true or false"}
    if node["type"] == "object":
        values = node.get("patternProperties", {"": node.get("additionalProperties")}).values()
        return "table of " + " or ".join(re.sub("^(text|number)", r"\1s", _type(each)) for each in values)
    return words.get(node["type"], node["type"]) + bound


def _default(title: str, key: str, prop: Node, node: Node) -> str:
    if key in node.get("required", ()):
        return "required"
    value = prop.get("default")
    if title == "GroupSection" and key in _GROUP and _GROUP[key] is MISSING:
        return "required unless the type or file states it"
    if title == "GroupSection" and key in _GROUP and isfinite(_GROUP[key]):
        value = _GROUP[key]
    return NOTHING if value is None else f"`{json.dumps(value)}`"
