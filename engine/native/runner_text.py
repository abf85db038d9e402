"""The runner as LLVM IR: steps one after the other, the long ones in parts, between which it looks at the time."""

from __future__ import annotations

from string import Template
from typing import Final

from engine.native.runner_layout import CLOSED, NEVER_COMES, PoolEntry, StepEntry, WatchEntry
from engine.native.runner_pool import POOL_FUNCTIONS

#: the clock is looked at once in so many nanoseconds of small steps
LOOK_NANOSECONDS: Final = 500_000
#: looks for work, at some 10 ns each, before a thread sleeps
_SPINS: Final = 2000
#: Linux on x86-64
_FUTEX, _WAIT_PRIVATE, _WAKE_PRIVATE, _CLOCK_MONOTONIC = 202, 128, 129, 1


def runner_text() -> str:
    """The module with two functions, for Linux on x86-64.

    `int64 run(steps, int64 first, int64 count, watch, pool)` runs steps, and returns `count`; or, where a word is not
    0, the number of that step; or -1 where the moment has passed or the byte is set: then some steps were not run.
    `void help(pool, int64 number)` claims parts until the pool closes.
    """
    entries = {f"{kind.__name__}_{e.name}": e.value for kind in (StepEntry, WatchEntry, PoolEntry) for e in kind}
    numbers = {"NEVER": NEVER_COMES, "LOOK": LOOK_NANOSECONDS, "SPINS": _SPINS, "CLOSED": CLOSED}
    system = {"FUTEX": _FUTEX, "WAIT": _WAIT_PRIVATE, "WAKE": _WAKE_PRIVATE, "MONOTONIC": _CLOCK_MONOTONIC}
    functions = (_LATE, _PART, _ALONE, _RUN, *POOL_FUNCTIONS)
    return "\n".join(Template(each).substitute(entries | numbers | system) for each in functions)


#: whether a run is to end
_LATE: Final = """
define internal i1 @late(ptr %watch, ptr %pool) nounwind {
entry:
  %now = alloca [2 x i64]
  %moment.in = getelementptr i64, ptr %watch, i64 $WatchEntry_MOMENT
  %moment = load i64, ptr %moment.in
  %stop.in = getelementptr i64, ptr %watch, i64 $WatchEntry_STOP
  %stop = load ptr, ptr %stop.in
  %stoppable = icmp ne ptr %stop, null
  br i1 %stoppable, label %byte, label %clock
byte:
  %set = load atomic i8, ptr %stop monotonic, align 1
  %stopped = icmp ne i8 %set, 0
  br i1 %stopped, label %yes, label %clock
clock:
  %timed = icmp ne i64 %moment, $NEVER
  br i1 %timed, label %read, label %no
read:
  %clock.in = getelementptr i64, ptr %pool, i64 $PoolEntry_CLOCK
  %gettime = load ptr, ptr %clock.in
  %ok = call i32 %gettime(i32 $MONOTONIC, ptr %now)
  %seconds = load i64, ptr %now
  %rest.in = getelementptr i64, ptr %now, i64 1
  %rest = load i64, ptr %rest.in
  %whole = mul i64 %seconds, 1000000000
  %time = add i64 %whole, %rest
  %late = icmp sgt i64 %time, %moment
  ret i1 %late
yes:
  ret i1 true
no:
  ret i1 false
}
"""

#: part number `part` of a step, with a table
_PART: Final = """
define internal void @part(ptr %function, i64 %items, i64 %parts, i64 %part, ptr %table) nounwind {
  %before = mul i64 %items, %part
  %first = udiv i64 %before, %parts
  %with = add i64 %before, %items
  %past = udiv i64 %with, %parts
  call void %function(i64 %first, i64 %past, ptr %table)
  ret void
}
"""

#: a step in parts by one thread; true where the run is to end
_ALONE: Final = """
define internal i1 @alone(ptr %step, ptr %watch, ptr %pool) nounwind {
entry:
  %items.in = getelementptr i64, ptr %step, i64 $StepEntry_ITEMS
  %table.in = getelementptr i64, ptr %step, i64 $StepEntry_TABLE
  %parts.in = getelementptr i64, ptr %step, i64 $StepEntry_PARTS
  %function = load ptr, ptr %step
  %items = load i64, ptr %items.in
  %table = load ptr, ptr %table.in
  %parts = load i64, ptr %parts.in
  br label %loop
loop:
  %part = phi i64 [ 0, %entry ], [ %part.next, %run ]
  %more = icmp ult i64 %part, %parts
  br i1 %more, label %look, label %all
look:
  %late = call i1 @late(ptr %watch, ptr %pool)
  br i1 %late, label %ended, label %run
run:
  call void @part(ptr %function, i64 %items, i64 %parts, i64 %part, ptr %table)
  %part.next = add i64 %part, 1
  br label %loop
all:
  ret i1 false
ended:
  ret i1 true
}
"""

_RUN: Final = """
define i64 @run(ptr %steps, i64 %first, i64 %count, ptr %watch, ptr %pool) nounwind {
entry:
  br label %loop
loop:
  %i = phi i64 [ %first, %entry ], [ %i.next, %next ]
  %left = phi i64 [ $LOOK, %entry ], [ %left.next, %next ]
  %more = icmp slt i64 %i, %count
  br i1 %more, label %each, label %all
each:
  %word = mul i64 %i, $StepEntry_SIZE
  %step = getelementptr i64, ptr %steps, i64 %word
  %items.in = getelementptr i64, ptr %step, i64 $StepEntry_ITEMS
  %table.in = getelementptr i64, ptr %step, i64 $StepEntry_TABLE
  %parts.in = getelementptr i64, ptr %step, i64 $StepEntry_PARTS
  %helpers.in = getelementptr i64, ptr %step, i64 $StepEntry_HELPERS
  %cost.in = getelementptr i64, ptr %step, i64 $StepEntry_NANOSECONDS
  %function = load ptr, ptr %step
  %table = load ptr, ptr %table.in
  %is.guard = icmp eq ptr %function, null
  br i1 %is.guard, label %guard, label %cost
guard:
  %found = load i64, ptr %table
  %trips = icmp ne i64 %found, 0
  br i1 %trips, label %tripped, label %next
cost:
  %cost.ns = load i64, ptr %cost.in
  %rest = sub i64 %left, %cost.ns
  %due = icmp slt i64 %rest, 0
  br i1 %due, label %look, label %go
look:
  %late = call i1 @late(ptr %watch, ptr %pool)
  br i1 %late, label %ended, label %go
go:
  %left.go = phi i64 [ %rest, %cost ], [ $LOOK, %look ]
  %parts = load i64, ptr %parts.in
  %one = icmp ult i64 %parts, 2
  br i1 %one, label %whole, label %several
whole:
  %items = load i64, ptr %items.in
  call void %function(i64 0, i64 %items, ptr %table)
  br label %next
several:
  %helpers = load i64, ptr %helpers.in
  %together = icmp ne i64 %helpers, 0
  br i1 %together, label %shared, label %alone
shared:
  %shared.ended = call i1 @shared(ptr %step, ptr %watch, ptr %pool)
  br i1 %shared.ended, label %ended, label %next
alone:
  %alone.ended = call i1 @alone(ptr %step, ptr %watch, ptr %pool)
  br i1 %alone.ended, label %ended, label %next
next:
  %left.next = phi i64 [ %left, %guard ], [ %left.go, %whole ], [ %left.go, %shared ], [ %left.go, %alone ]
  %i.next = add i64 %i, 1
  br label %loop
tripped:
  ret i64 %i
all:
  ret i64 %count
ended:
  ret i64 -1
}
"""
