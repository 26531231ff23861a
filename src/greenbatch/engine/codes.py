"""Whole numbers with a meaning, for compiled code."""

from __future__ import annotations

# Backfilling ahead of a blocked head (RuleSet.backfill).
NONE, EASY, EASY_SCHEDGYM, EASY_GREEN_ORDER, GREEN, FIRST_FIT, EASY_IRMASIM = range(7)
# How the next job is chosen (RuleSet.ranking).
BY_ARRIVAL, BY_SCORE, BY_RULE = range(3)
# Who commands storage (RuleSet.commands): nobody, the policy, or the rank of the slot in the forecast.
NOBODY, BY_POLICY, BY_RANK = range(3)
# OK, or why the loop was left (Clock.status).
OK, SUPPLY_EXHAUSTED, BAD_SCORE, INTERRUPTED, LOG_FULL, STUCK, NOT_COMMANDED, CHARGES_FOREVER = range(8)
# Delay actions of GAS-MARL §4.2.1: none, until a number of running jobs release their processors, for a fixed time.
NO_DELAY, DELAY_RELEASES, DELAY_FOR = range(1, 4)
# When decisions are due (RuleSet.per_instant): after each event, after all of an instant, after all of one kind at it.
PER_EVENT, PER_INSTANT, PER_KIND = range(3)
# Kinds of events of the simulation (Clock.event); a new slot of the supply at which only storage is commanded.
ARRIVAL, COMPLETION, WAKE_UP, NOTHING, SLOT = range(5)
# Kinds of entries of the log (Event.kind): a job starts because the policy chose it, starts ahead of a blocked job,
# ends, gets its first reservation, or is committed to start next; a job that has just started or resumed begins to run
# later, once its nodes are up; a node, or power, is switched; storage is commanded; a job is suspended, or resumes.
START, BACKFILL, END, PROMISE, COMMIT, BEGIN, SWITCH, CHARGE, SUSPEND, RESUME = range(10)
# Kinds of actions (step.Action): start a job, wait, command storage, or suspend a running job.
START_JOB, WAIT, COMMAND, SUSPEND_JOB = range(4)
