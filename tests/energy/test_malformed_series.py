"""Series that cannot be used: each one line naming file, line, field and fix."""

import gzip

import pytest

from greenbatch.energy import read_series
from greenbatch.errors import GreenbatchError, InputError

GOOD = "time,power\n2024-01-01 00:00,1\n2024-01-01 01:00,2\n2024-01-01 02:00,3\n"
UTC = {"columns": ["power"], "unit": "W", "time_kind": "utc", "time_column": "time"}
SUN = {**UTC, "unit": "W/m2"}
ELAPSED = {**UTC, "time_kind": "elapsed"}

# name, content, options, line (None: no line to name), field, words that must appear, words of the fix
CASES = [
    ("empty file", "", UTC, None, None, "is empty", "data in it"),
    ("header only", "time,power\n", UTC, None, None, "no data rows", "header row"),
    ("no such column", GOOD, {**UTC, "columns": ["kw"]}, 1, "kw", "no such column", "the file has time, power"),
    ("no time column", GOOD.replace("time", "when"), UTC, 1, "time", "no such column", "when, power"),
    ("wrong delimiter", GOOD.replace(",", ";"), UTC, 1, "power", "no such column", "time;power"),
    ("column twice", "time,power,power\n0,1,2\n", ELAPSED, 1, "power", "occurs twice", "rename"),
    ("short row", GOOD + "2024-01-01 03:00\n", UTC, 5, None, "1 fields, the header has 2", "complete or remove"),
    ("long row", GOOD + "2024-01-01 03:00,1,5\n", UTC, 5, None, "3 fields", "complete or remove"),
    ("text for a number", GOOD.replace(",2", ",two"), UTC, 3, "power", "'two' is not a number", "correct"),
    ("decimal comma", 'time,power\n0,"1,5"\n1,"2,5"\n', ELAPSED, 2, "power", "'1,5' is not a number", "correct"),
    ("infinite", GOOD.replace(",2", ",inf"), UTC, 3, "power", "infinite", "correct"),
    ("missing value", GOOD.replace(",2", ","), UTC, 3, "power", "missing", 'gaps = "interpolate"'),
    ("nan", GOOD.replace(",2", ",NaN"), UTC, 3, "power", "missing", 'gaps = "interpolate"'),
    ("all missing", "time,power\n0,\n1,\n", {**ELAPSED, "gaps": "hold"}, 2, "power", "every value", "another column"),
    ("negative", GOOD.replace(",2", ",-2"), UTC, 3, "power", "-2 W", 'negative = "zero"'),
    ("too much sun", GOOD.replace(",2", ",2001"), SUN, 3, "power", "2001 W/m2", "0 to 2000 W/m2"),
    ("sun in kW", GOOD.replace(",2", ",1100"), {**SUN, "unit": "kW/m2"}, 3, "power", "1100 kW/m2", "check the unit"),
    ("missing code", GOOD.replace(",2", ",9999"), SUN, 3, "power", "9999 W/m2", "under missing"),
    ("beyond floats", GOOD.replace(",2", ",1e308"), {**UTC, "unit": "MW"}, 3, "power", "1e308 MW", "check the unit"),
    ("hurricane", GOOD.replace(",2", ",121"), {**UTC, "unit": "m/s"}, 3, "power", "121 m/s", "0 to 120 m/s"),
    ("kelvin as C", GOOD.replace(",2", ",288"), {**UTC, "unit": "degC"}, 3, "power", "288 degC", "check the unit"),
    ("hPa as Pa", GOOD.replace(",1\n", ",1013\n"), {**UTC, "unit": "Pa"}, 2, "power", "1013 Pa", "check the unit"),
    ("kW per m2 as W", "time,power\n" + "".join(f"{3600 * k},{k % 2}\n" for k in range(50)),
     {**ELAPSED, "unit": "W/m2"}, None, "power", "never exceeds 1 W/m2", 'is the unit "kW/m2"?'),
    ("unknown unit", GOOD, {**UTC, "unit": "Watt"}, None, "unit", "unknown unit 'Watt'", "use one of W, kW"),
    ("no date", GOOD.replace("2024-01-01 01:00", "yesterday"), UTC, 3, "time", "'yesterday'", "time_format"),
    ("day first", GOOD.replace("2024-01-01", "31/01/2024"), UTC, 2, "time", "not an ISO stamp", "%d/%m/%Y"),
    ("impossible day", GOOD.replace("2024-01-01 01", "2024-02-30 01"), UTC, 3, "time", "'2024-02-30 ", "correct"),
    ("wrong format", GOOD, {**UTC, "time_format": "%H:%M"}, 2, "time", "not a stamp of the form %H:%M", "time_format"),
    ("no offset", GOOD, {**UTC, "time_kind": "offset"}, 2, "time", "has no offset", 'time_kind = "local"'),
    ("offset in utc", GOOD.replace("01:00", "01:00+05:00"), UTC, 3, "time", "has an offset", '"offset"'),
    ("offset in local", GOOD.replace("01:00", "01:00Z"), {**UTC, "time_kind": "local", "time_zone": "Asia/Tokyo"},
     3, "time", "has an offset", '"offset"'),
    ("local without zone", GOOD, {**UTC, "time_kind": "local"}, None, "time_zone", "missing", "require a time zone"),
    ("zone without local", GOOD, {**UTC, "time_zone": "Asia/Tokyo"}, None, "time_zone", "'Asia/Tokyo'", "leave it out"),
    ("unknown zone", GOOD, {**UTC, "time_kind": "local", "time_zone": "Mars/Base"},
     None, "time_zone", "no time zone 'Mars/Base'", "Europe/Berlin"),
    ("zone of 20 hours", GOOD, {**UTC, "time_kind": "local", "time_zone": "+20:00"},
     None, "time_zone", "+20", "+01:00"),
    ("time missing", "time,power\n0,1\n,2\n", ELAPSED, 3, "time", "time is missing", "remove the line"),
    ("milliseconds", "time,power\n1700000000000,1\n1700000001000,2\n", {**UTC, "time_kind": "unix"},
     2, "time", "is not in the years", "not milliseconds"),
    ("twice", GOOD + "2024-01-01 02:00,4\n", UTC, 5, "time", "occurs twice", 'duplicates = "first"'),
    ("back in time", GOOD + "2024-01-01 01:30,4\n", UTC, 5, "time", "before the one above", 'unsorted = "sort"'),
    ("gap", GOOD + "2024-01-01 07:00,4\n", UTC, 5, "time", "a gap of 18000 s after 2024-01-01T02:00:00Z", "longest"),
    ("endless gap", "time,power\n0,1\n60,2\n9e10,4\n", {**ELAPSED, "gaps": "hold"}, 4, "time", "too long", "stamp"),
    ("midnight of the last day", GOOD.replace("2024-01-01 01:00", "9999-12-31 24:00"), UTC,
     3, "time", "'9999-12-31 24:00' is not in the years 1900 to 2100", "correct"),
    ("year 1", GOOD.replace("2024", "0001"), {**UTC, "time_kind": "local", "time_zone": "Asia/Tokyo", "label": "end"},
     2, "time", "'0001-01-01 00:00' is not in the years 1900 to 2100", "correct"),
    ("before Christ", "time,power\n-9e10,1\n-8e10,2\n", {**UTC, "time_kind": "unix"},
     2, "time", "-9e10 s is not in the years 1900 to 2100", "not milliseconds"),
    ("the year twice", GOOD, {**UTC, "time_format": "%Y%Y..."}, None, "time_format", "'%Y%Y...' is not", "once"),
    ("all twice", GOOD, {**UTC, "time_format": "%c %c"}, None, "time_format", "'%c %c' is not a format", "once"),
    ("repeated hours in UTC", GOOD.replace(",", ",Q,").replace("Q,power", "again,power"),
     {**UTC, "repeated_column": "again"}, None, "repeated_column", "stamps are utc", "local"),
    ("too fine", GOOD, {**UTC, "step_s": 1e-5}, 4, "time", "more than 20000000 steps", "step_s"),
    ("too coarse", GOOD, {**UTC, "step_s": 1e5}, 2, "time", "less than one step", "shorter step_s"),
    ("irregular", "time,power\n0,1\n1,1\n3,1\n7,1\n", ELAPSED, 3, "time", "irregular", "step_s and longest_step_s"),
    ("one row", "time,power\n0,1\n", ELAPSED, 2, "time", "a single row", "give step_s"),
    ("step of zero", GOOD, {**UTC, "step_s": 0}, None, "step_s", "is 0", "> 0"),
    ("step not a number", GOOD, {**UTC, "step_s": float("nan")}, None, "step_s", "is nan", "> 0"),
    ("endless rows", GOOD, {**UTC, "time_kind": "ignore", "step_s": float("inf")}, None, "step_s", "is inf", "> 0"),
    ("longest step", GOOD, {**UTC, "longest_step_s": -1}, None, "longest_step_s", "is -1", "> 0"),
    ("unknown gap rule", GOOD, {**UTC, "gaps": "guess"}, None, "gaps", "'guess'", "refuse, interpolate, hold"),
    ("unknown label", GOOD, {**UTC, "label": "left"}, None, "label", "'left'", "start, middle, end"),
    ("unknown clock", GOOD, {**UTC, "time_kind": "sundial"}, None, "time_kind", "'sundial'", "elapsed, unix, utc"),
    ("rows without step", GOOD, {**UTC, "time_kind": "ignore"}, None, "step_s", "missing", "length of a step"),
    ("clock without column", GOOD, {**UTC, "time_column": None}, None, "time_column", "missing", '"ignore"'),
    ("two columns with times", GOOD, {**UTC, "columns": ["power", "time"]}, None, "columns", "2 columns", "one column"),
    ("one column twice", GOOD, {**UTC, "columns": ["power", "power"]}, None, "columns", "power", "different"),
    ("no columns", GOOD, {**UTC, "columns": []}, None, "columns", "[]", "list"),
    ("columns not a list", GOOD, {**UTC, "columns": "power"}, None, "columns", "'power'", "list"),
    ("long delimiter", GOOD, {**UTC, "delimiter": "::"}, None, "delimiter", "'::'", "one character"),
]  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=[case[0] for case in CASES])
@pytest.mark.parametrize("packed", [False, True], ids=["plain", "gzip"])
def test_errors_name_file_line_and_field(tmp_path, packed, case):
    _, content, options, line, field, problem, fix = case
    path = tmp_path / ("site.csv.gz" if packed else "site.csv")
    path.write_bytes(gzip.compress(content.encode()) if packed else content.encode())
    with pytest.raises(InputError) as caught:
        read_series(path, **options)
    error, message = caught.value, str(caught.value)
    assert "\n" not in message
    assert (error.line, error.field) == (line, field)
    assert problem in error.problem
    assert fix in (error.fix or "")
    if line is not None:
        assert message.startswith(f"{path}, line {line}: ")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"\x1f\x8b\x08\x00 not gzip at all", "broken gzip"),
        (gzip.compress(GOOD.encode(), mtime=0)[:-12], "the gzip file is truncated"),
        (b"time,power\n0,1\n60,\xff\n", r"line 3: byte 0xff is not UTF-8 text \(save the file as UTF-8\)"),
        (b"PAR1 not really\nPAR1", "no such column"),
        (b'time,power\n0,"1\n', "site.csv"),
    ],
)
def test_files_that_are_something_else(tmp_path, content, message):
    path = tmp_path / "site.csv"
    path.write_bytes(content)
    with pytest.raises(InputError, match=message):
        read_series(path, **ELAPSED)


def test_no_file_and_a_folder(tmp_path):
    with pytest.raises(InputError, match=r"absent.csv: no such file \(check the path\)"):
        read_series(tmp_path / "absent.csv", **UTC)
    with pytest.raises(InputError, match="is a folder"):
        read_series(tmp_path, **UTC)


@pytest.mark.parametrize("content", [b"", b"PAR1", b"PAR1" + bytes(60) + b"PAR1", b"time,power\n0,1\n"])
def test_invalid_parquet(tmp_path, content):
    path = tmp_path / "site.parquet"
    path.write_bytes(content)
    with pytest.raises(GreenbatchError, match=r"site.parquet: is (not a Parquet file|empty)"):
        read_series(path, **ELAPSED)


def test_parquet_with_lists_and_without_rows(tmp_path):
    import polars

    path = tmp_path / "site.parquet"
    polars.DataFrame({"time": [0, 60], "power": [[1.0], [2.0]]}).write_parquet(path)
    with pytest.raises(InputError, match=r"power: holds List\(Float64\), not numbers or stamps"):
        read_series(path, **ELAPSED)
    polars.DataFrame({"time": [0, 60], "power": [1.0, 2.0]}).clear().write_parquet(path)
    with pytest.raises(InputError, match="has no data rows"):
        read_series(path, **ELAPSED)
    with pytest.raises(InputError, match=r"kw: no such column \(the file has time, power\)"):
        read_series(path, **{**ELAPSED, "columns": ["kw"]})
