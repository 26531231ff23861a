"""The data catalog: names, places, checksums, and fetching from a server of our own."""

from __future__ import annotations

import gzip
import hashlib
import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from greenbatch import data_catalog
from greenbatch.errors import DataMissing, InputError

CONTENT = b"; a trace\n1 0 -1 10 1 -1 -1 1 10 -1 1 1 1 1 1 1 -1 -1\n"


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache and no data folder."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("GREENBATCH_DATA", raising=False)
    return tmp_path / "cache" / "greenbatch" / "data"


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None: ...


@pytest.fixture
def server(tmp_path: Path) -> Iterator[tuple[str, Path]]:
    """A web server and its folder."""
    folder = tmp_path / "www"
    folder.mkdir()
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(_Quiet, directory=str(folder))) as httpd:
        threading.Thread(target=httpd.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{httpd.server_port}", folder
        httpd.shutdown()


def offer(monkeypatch: pytest.MonkeyPatch, **entry: object) -> str:
    """Put one file into the catalog."""
    name = "swf/ours.swf.gz"
    fields = {"what": "", "terms": "", "sha256": "", **entry}
    monkeypatch.setattr(data_catalog, "catalog", lambda: {name: data_catalog.Dataset(name=name, **fields)})
    return name


def test_every_entry_says_what_where_and_under_which_terms():
    assert len(data_catalog.catalog()) >= 40
    for name, entry in data_catalog.catalog().items():
        assert name.endswith(".gz")
        assert entry.what
        assert entry.terms
        assert len(bytes.fromhex(entry.sha256)) == 32, name
        assert entry.urls or entry.page or entry.made_from, name
        assert all(url.startswith("https://") for url in entry.urls)


def test_files_on_this_machine_have_the_catalogs_checksums(greenbatch_data):
    for name in ("swf/lublin_256.swf.gz", "swf/Jann.swf.gz", "swf/HPC2N-2002-2.2-cln.swf.gz"):
        path, entry = greenbatch_data(name), data_catalog.catalog()[name]
        stored = path.read_bytes()
        content = stored if entry.urls[0].endswith(".gz") else gzip.decompress(stored)
        assert hashlib.sha256(content).hexdigest() == entry.sha256


def test_the_derived_trace_can_be_made_again_bit_by_bit(greenbatch_data, home, monkeypatch):
    name = "swf/SDSC-SP2-1998_DERIVED-from-pyss.swf.gz"
    entry = data_catalog.catalog()[name]
    made_from = greenbatch_data(entry.made_from)
    target = home / entry.made_from
    target.parent.mkdir(parents=True)
    target.symlink_to(made_from.resolve())
    made = data_catalog.fetch(name)
    assert made == home / name
    assert gzip.decompress(made.read_bytes()) == gzip.decompress(greenbatch_data(name).read_bytes())


def test_the_data_folder_comes_before_the_cache(home, tmp_path, monkeypatch):
    name = "swf/lublin_256.swf.gz"
    for folder in (home, tmp_path / "own"):
        (folder / "swf").mkdir(parents=True)
        (folder / name).write_bytes(b"x")
    assert data_catalog.find(name) == home / name
    monkeypatch.setenv("GREENBATCH_DATA", str(tmp_path / "own"))
    assert data_catalog.find(name) == tmp_path / "own" / name


def test_a_known_file_that_is_not_here_names_the_command_that_fetches_it(home):
    with pytest.raises(DataMissing, match=r"greenbatch data fetch swf/Jann\.swf\.gz"):
        data_catalog.find("swf/Jann.swf.gz")


def test_files_that_are_missing_are_named_once(home):
    with pytest.raises(DataMissing) as raised:
        data_catalog.need(["swf/Cirne.swf.gz", "swf/Jann.swf.gz", "swf/Cirne.swf.gz"])
    assert str(raised.value).count("swf/Cirne.swf.gz") == 2, "what is missing, and the command"


@pytest.mark.parametrize("name", ["swf/Jan.swf.gz", "../secret", "/etc/passwd", "", "a\0b"])
def test_unknown_names_are_refused(home, name):
    with pytest.raises(InputError, match="there is no data file") as error:
        data_catalog.find(name)
    assert not isinstance(error.value, DataMissing)


def test_a_near_miss_is_suggested(home):
    with pytest.raises(InputError, match=r"did you mean swf/Jann\.swf\.gz"):
        data_catalog.fetch("swf/Jan.swf.gz")


def test_fetch_compresses_plain_files_and_checks_their_content(home, server, monkeypatch):
    url, www = server
    (www / "ours.swf").write_bytes(CONTENT)
    name = offer(monkeypatch, urls=(f"{url}/ours.swf",), sha256=hashlib.sha256(CONTENT).hexdigest())
    path = data_catalog.fetch(name)
    assert gzip.decompress(path.read_bytes()) == CONTENT
    (www / "ours.swf").unlink()
    assert data_catalog.fetch(name) == path  # nothing is downloaded twice


def test_fetch_keeps_gzip_files_as_they_are_and_tries_the_next_origin(home, server, monkeypatch):
    url, www = server
    stored = gzip.compress(CONTENT, mtime=1)
    (www / "ours.swf.gz").write_bytes(stored)
    name = offer(
        monkeypatch, urls=(f"{url}/gone.swf.gz", f"{url}/ours.swf.gz"), sha256=hashlib.sha256(stored).hexdigest()
    )
    assert data_catalog.fetch(name).read_bytes() == stored


def test_a_wrong_checksum_leaves_nothing_behind(home, server, monkeypatch):
    url, www = server
    (www / "ours.swf").write_bytes(CONTENT + b"tampered")
    name = offer(monkeypatch, urls=(f"{url}/ours.swf",), sha256=hashlib.sha256(CONTENT).hexdigest())
    with pytest.raises(InputError, match="different checksum"):
        data_catalog.fetch(name)
    assert [path for path in home.rglob("*") if path.is_file() or path.name.startswith(".")] == []


def test_no_connection_is_one_line(home, monkeypatch):
    name = offer(monkeypatch, urls=("http://127.0.0.1:9/ours.swf",), sha256="0" * 64)
    with pytest.raises(InputError, match="download failed") as error:
        data_catalog.fetch(name)
    assert "\n" not in str(error.value)


def test_a_file_without_a_known_address_says_where_to_look(home, monkeypatch):
    name = offer(monkeypatch, page="https://example.org/tree", sha256="0" * 64)
    with pytest.raises(InputError, match=r"get it from https://example\.org/tree"):
        data_catalog.fetch(name)
