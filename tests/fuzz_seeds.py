"""Small valid files of every kind that is read: where the fuzzer starts."""

from __future__ import annotations

from pathlib import Path

import polars as pl

from power_trace_files import fdata, packed, pm100

SWF = b"""\
; Version: 2.2
; Computer: Test
; MaxNodes: 8
; MaxProcs: 64
; UnixStartTime: 1577836800
; TimeZoneString: Europe/Berlin
; Note: free text: with colons
1 0 5 100 4 -1 -1 4 200 -1 1 1 1 1 1 1 -1 -1
2 10 -1 50 -1 -1 -1 8 100 1024 1 2 1 1 1 1 -1 -1
3 10 0 0 1 -1 -1 1 10 -1 5 3 1 1 1 1 -1 -1
4 20 3 30.5 64 -1 -1 64 -1 -1 0 1 1 1 1 1 1 60
5 30 3 300 2 -1 -1 2 100 -1 1 1 2 -1 1 1 -1 -1
6 25 -1 -1 -1 -1 -1 2 100 -1 -1 1 2 -1 1 1 -1 -1
"""
ALEA = b"""\
0 1356996147 0 5601 4 1 1024 4 86400 6871947673 1 62 1 1 -1 1 1 1 {1241,1241,1241,1241} q_1d 1:ppn=4:x86_64:cl_a#excl
1 1356996695 71 11642 12 1 1024 12 12096 -1 1 101 1 1 -1 1 1 1 {1,2} q_2w 1:ppn=4+4:ppn=2
2 1356998549 0 54578 64 1 1024 64 86400 687194 0 62 1 1 -1 1 1 1 {} q_1d 16:ppn=4:gpu=1
"""
SACCT = b"""\
JobIDRaw|JobID|User|Account|State|Submit|Eligible|Start|End|ElapsedRaw|TimelimitRaw|ReqCPUS|AllocCPUS|ConsumedEnergyRaw
10|10|anna|phys|COMPLETED|2024-03-30T22:00:00|2024-03-30T22:00:00|2024-03-30T22:05:00|2024-03-30T23:05:00|3600|120|8|8|720000
10.batch|10.batch||phys||2024-03-30T22:05:00|2024-03-30T22:05:00|2024-03-30T22:05:00|2024-03-30T23:05:00|3600||8|8|
12|11_1|bert|chem|TIMEOUT|2024-03-31T01:30:00|2024-03-31T01:30:00|2024-03-31T03:30:00|2024-03-31T04:30:00|3600|60|4|4|
13|11_[2-9%2]|bert|chem|PENDING|2024-03-31T01:30:00|Unknown|Unknown|Unknown|0|60|4|0|
14|14|anna|phys|CANCELLED by 1000|2024-03-31T05:00:00|2024-03-31T05:00:00|None|2024-03-31T06:00:00|0|UNLIMITED|4|0|
15|15+0|carl|phys|RUNNING|2024-03-31T05:00:00|2024-03-31T05:00:00|2024-03-31T05:10:00|Unknown|100|Partition_Limit|2|2|
"""
SACCT_LONG = b"""\
JobID|Submit|Start|End|Elapsed|Timelimit|NCPUS|State
1|2024-01-01T00:00:00|2024-01-01T00:00:10|2024-01-02T00:00:10|1-00:00:00|2-00:00:00|16|COMPLETED
1.0|2024-01-01T00:00:00|2024-01-01T00:00:10|2024-01-02T00:00:10|1-00:00:00||16|COMPLETED
2|2024-01-01T00:00:01|2024-01-01T00:00:10|2024-01-01T00:00:40|00:00:30.5|UNLIMITED|1|FAILED
3|2024-01-01T00:00:01|2024-01-01T00:00:10|2024-01-01T00:01:40|01:30|01:00:00|1024|OUT_OF_MEMORY
"""
SACCT_GPUS = b"""\
JobIDRaw|JobID|User|Account|Partition|QOS|State|Submit|Start|End|TimelimitRaw|AllocCPUS|AllocNodes|ReqMem|AllocTRES|ConsumedEnergyRaw|NodeList
1|1|anna|phys|gpu|high|COMPLETED|2024-03-01T08:00:00|2024-03-01T08:00:10|2024-03-01T09:00:10|120|8|2|16G|billing=8,cpu=8,mem=16G,node=2,gres/gpu=4|720000|gpu[01-02]
2|2|bert|chem|cpu|normal|COMPLETED|2024-03-01T08:05:00|2024-03-01T09:05:00|2024-03-01T09:30:00|60|16|1|2Gc|cpu=16,mem=32G,node=1|300000|cpu07
3|3|anna|phys|gpu|normal|FAILED|2024-03-01T08:06:00|2024-03-01T20:05:00|2024-03-01T20:30:00|60|4|1|8000Mn|cpu=4,mem=8000M,node=1,gres/gpu:a100=1,gres/gpu=1|0|gpu01
4|4|carl|chem|debug||TIMEOUT|2024-03-01T08:07:00|2024-03-01T20:05:00|2024-03-01T20:10:00|5|2|1|0n|cpu=2,node=1||rack[1-2,4]n[01-03]
"""
TABLE = b"""\
job_id,submit_s,run_time_s,requested_time_s,processors,power_w,user
1,0,100,200,4,110.5,1
2,10,50,,8,220,2
3,10,5e1,60,1,,
"""
PM100 = packed(pm100(8))
PM100_TEXTS = packed(pm100(8).with_columns(pl.col("time_limit").cast(pl.String).replace("30", "INFINITE")))
FDATA = packed(fdata(8, embedded=1))
FDATA_TEXTS = packed(fdata(8, embedded=0).with_columns(pl.col(pl.Datetime).dt.strftime("%Y-%m-%d %H:%M:%S+09:00")))
SERIES = b"""\
time,ghi,wind
2024-01-01 00:00,0,3.5
2024-01-01 01:00,0,
2024-01-01 02:00,10.5,4
2024-01-01 03:00,500,12
2024-01-01 04:00,-1,-9999
"""
WEATHER = (
    b"""\
LOCATION,Here,-,X,SRC,1,45.0,8.0,1.0,250.0
DATA PERIODS,1,1,Data,Sunday, 6/ 1,6/ 1
2020,6,1,1,0,flags,20.0,10,50,100000,0,0,300,0,50,60,0,0,0,0,180,5,0,0,0,0
2020,6,1,2,0,flags,20.0,10,50,100000,0,0,300,100,50,60,0,0,0,0,180,5,0,0,0,0
2020,6,1,3,0,flags,20.0,10,50,100000,0,0,300,200,50,60,0,0,0,0,180,5,0,0,0,0
2020,6,1,4,0,flags,20.0,10,50,100000,0,0,300,300,50,60,0,0,0,0,180,5,0,0,0,0
2020,6,1,5,0,flags,20.0,10,50,100000,0,0,300,400,50,60,0,0,0,0,180,5,0,0,0,0
""",
    b"""\
723170,"HERE",NC,-5.0,36.1,-79.95,273
Date (MM/DD/YYYY),Time (HH:MM),GHI (W/m^2),DNI (W/m^2),DHI (W/m^2),Dry-bulb (C),Pressure (mbar),Wspd (m/s)
01/01/1997,01:00,0,0,0,5.0,980,3.1
01/01/1997,02:00,10,0,10,5.0,980,3.1
01/01/1997,03:00,90,40,60,5.0,-9900,3.1
""",
    b"""\
,Year,Month,Day,Hour,Minute,Temperature,DHI,DNI,GHI,Pressure,Wind Speed
0,2017,1,1,0,0,-8.4,0.0,0.0,0.0,779.0,0.3
1,2017,1,1,0,30,-8.7,0.0,0.0,0.0,778.0,0.6
2,2017,1,1,1,0,-9.0,0.0,0.0,0.0,778.0,0.8
""",
    b"""\
variable_name,pressure,temperature,wind_speed,wind_speed
height,0,2,10,80
2010-01-01 00:00:00+01:00,98405.7,267.6,5.32697,7.80697
2010-01-01 01:00:00+01:00,98382.7,267.6,5.46199,7.86199
""",
    b"""\
{"latitude": 50.0, "longitude": 8.6, "elevation": 100.0, "utc_offset_seconds": 3600,
 "hourly_units": {"windspeed_10m": "km/h", "temperature_2m": "\xc2\xb0C"},
 "hourly": {"time": ["2023-01-01T00:00", "2023-01-01T01:00"], "windspeed_10m": [3.6, 7.2], "temperature_2m": [1, 2]}}
""",
)
POWER = b"5\n10\n20\n7.5\n50\n6\n"
SCENARIO = b"""\
# A scenario
name = "ours"
description = '''
Several
lines'''

[workload]
file = "trace.swf"
reader = "default"
limit = 5
clock_origin = "first-job"
[workload.power]
kind = "list"
file = "power.csv"

[cluster]
processors = 64
processors_per_machine = 8
idle_power_per_machine_w = 50.0

[site]
kind = "series"
name = "here"
align = "trace-start"
repeat = true
forecast_horizon_s = 7200
reference_processors = 64
[[site.sources]]
name = "solar"
kind = "pv"
file = "site.csv"
columns = ["ghi"]
unit = "W/m2"
time_kind = "utc"
time_column = "time"
negative = "zero"
area_m2 = 200
efficiency = 0.2
[[site.sources]]
name = "wind"
kind = "turbine"
file = "site.csv"
columns = ["wind"]
unit = "m/s"
time_kind = "local"
time_column = "time"
time_zone = "Europe/Berlin"
gaps = "interpolate"
missing = [-9999]
rated_w = 7200.0

[rules]
commitment = "reconsider"
event_rule = "per_event"
overrun = "kill"
tick_s = 0.0

[evaluation]
starts = [0, 1]
jobs = 2
schedulers = ["fcfs+easy", "f2+green"]
baseline = "fcfs+easy"
cut = { first_jobs = 0, last_s = 0.0 }
"""
SCENARIO_SYNTHETIC = b"""\
name = "made up"
workload = { file = "trace.swf", power = { kind = "per-processor", seed = 1, low_w = 5, high_w = 50 } }
cluster.processors = "trace"
[site]
kind = "synthetic"
seed = 3
days = 2
step_s = 1800
pue = 1.3
base_load_w = 500
climate = { latitude_deg = 50.0, wind_mean_m_s = 7 }
"""
SCENARIO_MODEL = b"""\
name = "model"
[workload]
unix_start_s = 1577836800
[workload.generator]
model = "lublin"
jobs = 20
seed = 5
processors = 64
types = ["batch", "interactive"]
gap_factor = 0.5
[workload.power]
kind = "per-processor"
[cluster]
processors = 64
[site]
kind = "series"
align = "trace-start"
repeat = true
[[site.sources]]
name = "wind"
kind = "weather-turbine"
file = "weather.epw"
rated_w = 5000.0
hub_height_m = 80
law = "power"
"""
SCENARIO_NODES = b"""\
name = "nodes"
[workload.generator]
model = "profiles"
jobs = 6
order = "2 A B"
gap_s = 0.5
[[workload.generator.profiles]]
name = "A"
processors = 2
operations = 6e9
requested_time_s = 3
memory_volume_mb = 100
[[workload.generator.profiles]]
name = "B"
processors = 4
operations = 3e10
[cluster]
contention = "repaired"
reference_gflops = 3.0
[[cluster.groups]]
name = "fast"
count = 2
processors = 8
clock_ghz = 4.2
flop_per_cycle = 1
static_power_w = 68.81
idle_fraction = 0.3959
power_per_processor_w = 6.49
[[cluster.groups]]
name = "big"
type = "dell-r620"
node_names = "big[01-03,7]"
gpus = 2
memory_gb = 64
gflops_per_processor = 4.2
[[cluster.dvfs]]
speed = 0.8
power = 0.6
"""
SCENARIO_GRID = b"""\
name = "money"
workload = { file = "trace.swf", power = { kind = "per-processor" } }
cluster.processors = 64
[site]
kind = "series"
align = "trace-start"
repeat = true
[[site.sources]]
name = "solar"
kind = "power"
file = "price.csv"
columns = ["sun"]
unit = "kW"
time_kind = "local"
time_zone = "Europe/Brussels"
time_column = "MTU (CET/CEST)"
time_format = "%d.%m.%Y %H:%M..."
[site.forecast]
kind = "error"
sigma = 0.4
bias = 0.1
correlation_h = 6
seed = 2
[site.grid]
currency = "EUR"
rates = { USD = 0.93 }
time_zone = "Europe/Berlin"
demand_charge = 80.0
source_g_per_kwh = { solar = 41 }
import_limit_w = 40_000
[site.grid.price]
kind = "series"
file = "price.csv"
format = "entso-e"
gaps = "hold"
[site.grid.feed_in]
kind = "constant"
value = 5
unit = "cent/kWh"
[site.grid.source_price.solar]
kind = "calendar"
unit = "EUR/MWh"
holidays = ["12-25", "2023-10-31"]
[[site.grid.source_price.solar.periods]]
name = "day"
value = 60
days = ["weekday"]
hours = ["06:00-09:30", "09:30-22:00"]
[[site.grid.source_price.solar.periods]]
name = "free"
value = 40
days = ["sat", "sun", "holiday"]
hours = ["06:00-22:00"]
[[site.grid.source_price.solar.periods]]
name = "night"
value = 20
months = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12]
hours = ["22:00-06:00"]
[site.grid.carbon]
kind = "series"
file = "price.csv"
format = "entso-e"
columns = ["carbon"]
unit = "g/kWh"
"""
PRICES = b"""\
"MTU (CET/CEST)","Day-ahead Price [EUR/MWh]","sun","carbon"
"29.10.2023 01:00 - 29.10.2023 02:00","-10.5","0","300"
"29.10.2023 02:00 - 29.10.2023 03:00","50","0","310.5"
"29.10.2023 02:00 - 29.10.2023 03:00","60","0.5","320"
"29.10.2023 03:00 - 29.10.2023 04:00","","3","330"
"29.10.2023 04:00 - 29.10.2023 05:00","200","7.5","340"
"""
PLATFORM = b"""\
{"platform": {"here": {"id": "here", "model_name": "modelV1", "clusters": [
   {"id": "c0", "nodes": [{"type": "t0", "number": 3}, {"type": "t1", "number": 2}]},
   {"id": "c1", "nodes": [{"type": "t0"}]}]}},
 "node": {"t0": {"processors": [{"type": "p0", "number": 1}], "memory": {"capacity": 32}},
          "t1": {"processors": [{"type": "p1", "number": 2}]}},
 "processor": {
  "p0": {"cores": 8, "clock_rate": 4.2, "dpflops_per_cycle": 1, "static_power": 68.81, "dynamic_power": 6.49,
         "min_power": 0.3959, "b": -1.85e-05, "c": 32000, "da": 1.75, "db": 2000, "dc": 50000, "dd": 6000},
  "p1": {"cores": 24, "clock_rate": 3.0, "dpflops_per_cycle": 2, "static_power": 35, "dynamic_power": 3,
         "min_power": 0}}}
"""
IRMASIM = b"""\
{"jobs": [
  {"id": "job0", "subtime": 0, "res": 8, "profile": "A"},
  {"id": "job1", "subtime": 0.1, "nodes": 2, "ntasks": 4, "ntasks_per_node": 2, "profile": "B"},
  {"id": "job2", "subtime": 1, "ntasks": 3, "req_ops": 3e9, "req_time": 2, "ipc": 1, "mem": 10, "mem_vol": 5}],
 "profiles": {"A": {"req_time": 4.6, "req_ops": 13750000000, "ipc": 1, "mem": 1024, "mem_vol": 1, "req_energy": 0},
              "B": {"req_time": 20.8, "req_ops": 62500000000}}}
"""
BATSIM = b"""\
{"nb_res": 8, "jobs": [
  {"id": "w0!1", "subtime": 0, "walltime": 200, "res": 4, "profile": "d100"},
  {"id": 2, "subtime": 10.5, "walltime": -1, "res": 8, "profile": "d20"},
  {"id": "3", "subtime": 20, "res": 2, "profile": "c1"}],
 "profiles": {"d100": {"type": "delay", "delay": 100}, "d20": {"type": "delay", "delay": 20.2},
              "c1": {"type": "parallel_homogeneous", "cpu": 1e9, "com": 0}}}
"""
SLURM_CONF = b"""\
# here
ClusterName=here
PriorityWeightAge=1000
PriorityWeightFairshare=10000
PriorityMaxAge=14-0
PriorityDecayHalfLife=7-12:00:00
PriorityFavorSmall=NO
NodeName=DEFAULT Sockets=2 CoresPerSocket=16 ThreadsPerCore=2 RealMemory=100000 State=UNKNOWN
NodeName=cn[01-04] \\
  Reason="a b"
NodeName=cn05 CPUs=16 RealMemory=200000 Features=a,b
NodeName=gpu[1-2] CoresPerSocket=32 Gres=gpu:a100:4(S:0-1),nvme:1,gpu:2
NodeSet=some Feature=a
Include more.conf
PartitionName=DEFAULT MaxTime=24:00:00 State=UP
PartitionName=short Nodes=cn[01-02] Default=YES MaxTime=60 PriorityTier=10
PartitionName=long Nodes=ALL,some MaxTime=UNLIMITED
"""
TRAINED = Path(__file__).parent / "learning" / "layout_1"
"""Trainings and models of two epochs, see ``learning/test_layouts.py``."""
MODELS = {name: (TRAINED / name / "model" / "model.json").read_bytes() for name in ("network", "planner")}
RUNS = {name: (TRAINED / name / "run.json").read_bytes() for name in ("network-half", "ranking-half")}
STATES = {name: (TRAINED / name / "checkpoint" / "state.json").read_bytes() for name in RUNS}
LOGS = tuple((TRAINED / name / "log.jsonl").read_bytes() for name in ("network", "planner"))
PRESET = b"""\
extends = "rlscheduler"
name = "mine"
description = "Mine."
[observation.queue]
rows = 8
columns = [{feature = "wait", scale = 43_200, ceiling = 1}, {feature = "processors", scale = "processors"}]
empty = [0, 0]
[reward.terms]
avg_bounded_slowdown = -1.0
[training]
windows = 2
jobs = 10
gamma = 1.0
"""
SITE = (
    b'name = "site"\n[site]\nkind = "synthetic"\ndays = 400\narea_m2 = 20\n[workload.power]\nkind = "per-processor"\n'
)
_TINY = "--scenario tiny.toml --jobs 10"
_WORDS = (
    f"simulate {_TINY} --scheduler f2+green:sigma=2e4 --start 3 --out out --force",
    f"compare {_TINY} --schedulers fcfs+easy,f2+none --baseline fcfs+easy --windows 2 --seed 1 --workers 1 --json",
    f"compare {_TINY} --starts 0,9 --sweep forecast.sigma=0,0.2 --schedulers fcfs+easy --json",
    "whatif --trace trace.swf --site site.toml --processors 8 --schedulers fcfs+easy --json",
    f"bound {_TINY} --starts 0 --makespan 1.5 --json",
    f"record rlscheduler {_TINY} --schedulers sjf+none --mix 1 --out out",
    f"tune {_TINY} --scheduler f2+green --search +sigma=0:1e6 --objective horizon_brown_kwh=1 --count 1"
    " --generations 1 --population 4 --windows published",
    "train rlscheduler --scenario tiny.toml --epochs 1 --out out --set training.windows=1 training.jobs=5"
    " training.validation.windows=0 training.keep=last",
    "estimate net --dataset data --steps 2 --gamma 0.9",
    "export net --out a.onnx",
    "retrain net --out out",
    "results out --where avg_wait_s>=0 --columns avg_wait_s --sort=-window --rows 3 --json",
    "schedulers",
    "scenario show tiny.toml",
    "scenario list",
    "scenario schema",
    "cluster show more.conf",
    "cluster list",
    "data list",
    "data path swf/Jann.swf.gz",
    "reproduce ineps --traces conv --windows 1",
    "demo --out out --help",
)
WORDS = tuple(line.replace(" ", "\n").encode() for line in _WORDS)
"""Command lines of all verbs, one word per line."""
BESIDE = {"more.conf": b"NodeName=x1 CPUs=4\n",
          "trace.swf": SWF, "power.csv": POWER, "site.csv": SERIES, "price.csv": PRICES, "weather.epw": WEATHER[0],
          "site.toml": SITE, "tiny.toml": (TRAINED / "tiny.toml").read_bytes()}  # fmt: skip

TOKENS = [
    b"-1", b"0", b"-0", b"1e999", b"-1e308", b"nan", b"inf", b"-inf", b"9" * 25, b"9223372036854775808", b"0x10",
    b"1_000", b"1.", b".5", b"1e", b"1e-300", b"", b" ", b"\t", b"\x00", b'"', b"'", b'"""', b"[", b"]", b"{", b"}",
    b"=", b"#", b";", b"|", b",", b"true", b"null", b"None", b"Unknown", b"UNLIMITED", b"../../x", b"/dev/null", b".",
    b"\xef\xbb\xbf", b"\xff", b"\xc3", b"\r\n", b"\r", b"\x85", b"\x1a", "\uff11\uff12".encode(), "\u0663".encode(),
    "\U0001d7d7".encode(), "\u202e".encode(), "e\u0301".encode(), b"1970-01-01T00:00:00", b"9999-12-31T23:59:59",
    b"0000-00-00", b"2024-03-31T02:30:00", b"99-99:99:99",
]  # fmt: skip
"""What is put in place of a token: numbers at the edge, other alphabets' digits, quotes, control characters, dates."""
