"""Inputs a user could have by mistake: each gives one line that names the file, the place and the fix."""

from __future__ import annotations

import bz2
import gzip
import lzma
import os

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from greenbatch.errors import InputError
from greenbatch.workload import read_swf

GOOD = "1 0 -1 100 4 -1 -1 -1 -1 -1 1 -1 -1 -1 -1 -1 -1 -1"


def with_field(number: int, value: str) -> bytes:
    fields = GOOD.split()
    fields[number - 1] = value
    return f"; MaxProcs: 64\n{GOOD}\n{' '.join(fields)}\n".encode()


# name of the case: (content, line, words in the message)
MALFORMED: dict[str, tuple[bytes, int | None, str]] = {
    "empty file": (b"", None, "is empty"),
    "empty gzip": (gzip.compress(b""), None, "is empty"),
    "only blank lines": (b"\n \n\t\n", None, "has no job lines"),
    "header only": (b"; MaxProcs: 64\n; Note: nothing\n", None, "has no job lines"),
    "truncated gzip": (gzip.compress(GOOD.encode() * 99)[:40], None, "gzip file is truncated"),
    "corrupt gzip": (gzip.compress(GOOD.encode())[:10] + b"\xff" * 40, None, "broken gzip"),
    "gzip with a wrong checksum": (gzip.compress(GOOD.encode())[:-8] + b"\0" * 8, None, "broken gzip"),
    "bzip2": (bz2.compress(GOOD.encode()), None, "is a bzip2 archive"),
    "xz": (lzma.compress(GOOD.encode()), None, "is a xz archive"),
    "zip": (b"PK\x03\x04" + b"\0" * 30, None, "is a zip archive"),
    "binary": (bytes(range(256)) * 4, 1, "not a text file"),
    "UTF-16": (f"{GOOD}\n".encode("utf-16"), 1, "not a text file"),
    "binary without zero bytes": (bytes(range(1, 256)) * 4, 1, "is not a number"),
    "17 fields": (f"{GOOD}\n{GOOD[:-3]}\n".encode(), 2, "17 fields"),
    "19 fields": (f"{GOOD}\n\n{GOOD} 4\n".encode(), 3, "19 fields"),
    "one line of 17 and one of 19": (f"{GOOD[:-3]}\n{GOOD} 4\n".encode(), 1, "17 fields"),
    "274 fields (18 modulo 256)": (f"{GOOD}\n{'1 ' * 274}\n".encode(), 2, "274 fields"),
    "all jobs on one line": (f"{GOOD} {GOOD}\n".encode(), 1, "36 fields"),
    "last line cut off": (f"{GOOD}\n2 40 -1".encode(), 2, "3 fields"),
    "text in a number": (with_field(4, "12x"), 3, "field 4 (run time): '12x' is not a number"),
    "decimal comma": (with_field(2, "12,5"), 3, "field 2 (submit time): '12,5' is not a number"),
    "hexadecimal": (with_field(1, "0x1f"), 3, "field 1 (job number): '0x1f' is not a number"),
    "underscores": (with_field(2, "1_000"), 3, "'1_000' is not a number"),
    "a date": (with_field(2, "2024-01-01T00:00:00"), 3, "field 2 (submit time)"),
    "NaN": (with_field(4, "nan"), 3, "field 4 (run time): nan is not a finite number"),
    "infinity": (with_field(9, "inf"), 3, "field 9 (requested time): inf is not a finite number"),
    "minus infinity": (with_field(2, "-inf"), 3, "field 2 (submit time): -inf is not a finite number"),
    "overflow to infinity": (with_field(4, "1e999"), 3, "field 4 (run time): inf is not a finite number"),
    "huge job number": (with_field(1, "99999999999999999999"), 3, "field 1 (job number): 1e+20"),
    "huge processors": (with_field(5, "1e300"), 3, "field 5 (allocated processors): 1e+300"),
    "fractional job number": (with_field(1, "1.5"), 3, "field 1 (job number): 1.5 is not a whole number"),
    "fractional user": (with_field(12, "0.5"), 3, "field 12 (user): 0.5 is not a whole number"),
    "control characters": (with_field(12, "\x01"), 3, "'\\x01' is not a number"),
    "non-ASCII digits": (with_field(4, "١٢"), 3, "field 4 (run time)"),
    "trailing comment on a job line": (f"{GOOD} ; last\n".encode(), 1, "20 fields"),
    "CSV": (b"submit_s,run_time_s,processors\n0,1,2\n", 1, "is not a number"),
    "HTML error page": (b"<!DOCTYPE html>\n<html><body>404</body></html>\n", 1, "'<!DOCTYPE' is not a number"),
    "20 columns of another simulator": (f"{GOOD} {{1,2}} q_1d\n".encode(), 1, "20 fields"),
    "all jobs dropped": (with_field(4, "0").replace(b" 100 ", b" 0 "), None, "no job is left"),
    "all jobs larger than the machine": (f"; MaxProcs: 2\n{GOOD}\n".encode(), None, "no job is left"),
    "all submit times negative": (GOOD.replace("1 0", "1 -1", 1).encode(), None, "no job is left"),
}  # fmt: skip


def assert_kind(error: InputError, path, line: int | None, words: str):
    message = str(error)
    assert "\n" not in message
    assert words in message
    assert message.startswith(str(path))
    assert error.line == line
    assert error.fix


@pytest.mark.parametrize("case", MALFORMED)
def test_malformed(tmp_path, case):
    content, line, words = MALFORMED[case]
    path = tmp_path / "trace.swf"
    path.write_bytes(content)
    with pytest.raises(InputError) as refused:
        read_swf(path)
    assert_kind(refused.value, path, line, words)


def test_no_such_file_folder_and_plain_text_named_gz(tmp_path):
    fake = tmp_path / "fake.swf.gz"
    fake.write_text(GOOD)
    cases = ((tmp_path / "none.swf", "no such file"), (tmp_path, "is a folder"), (fake, "is not gzip"))
    for path, words in (*cases, (fake / "inside.swf", "cannot be read")):
        with pytest.raises(InputError) as refused:
            read_swf(path)
        assert_kind(refused.value, path, None, words)


def test_unreadable_file(tmp_path):
    path = tmp_path / "trace.swf"
    path.write_text(GOOD)
    path.chmod(0)
    was = os.geteuid()
    if was == 0:  # root may read everything, so be somebody else for a moment
        os.seteuid(65534)
    try:
        with pytest.raises(InputError) as refused:
            read_swf(path)
    finally:
        os.seteuid(was)
    assert_kind(refused.value, path, None, "cannot be read: permission denied")


@pytest.mark.parametrize("option", [{"limit": 0}, {"limit": -1}, {"processors": 0}])
def test_options_out_of_range(tmp_path, option):
    (tmp_path / "trace.swf").write_text(GOOD)
    with pytest.raises(InputError, match=next(iter(option))):
        read_swf(tmp_path / "trace.swf", **option)


TRACE = "\n".join(
    ["; MaxProcs: 64", "; UnixStartTime: 1000", *(GOOD.replace("1 0", f"{k} {k * 9}", 1) for k in range(1, 9))]
)


@settings(max_examples=300, deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, len(TRACE)), st.integers(0, 3), st.binary(max_size=6)), max_size=4), st.booleans()
)
def test_a_damaged_trace_gives_jobs_or_one_line(tmp_path_factory, edits, strict):
    content = TRACE.encode()
    for place, cut, insert in edits:
        content = content[:place] + insert + content[place + cut :]
    path = tmp_path_factory.getbasetemp() / "damaged.swf"
    path.write_bytes(content)
    workload, refused = None, None
    try:
        workload = read_swf(path, strict=strict)
    except InputError as error:
        refused = error
    if refused is not None:
        assert_kind(refused, path, refused.line, "")
    if workload is not None:
        assert (workload.run_time_s > 0).all()
        assert len(set(workload.job_id.tolist())) == len(workload)
