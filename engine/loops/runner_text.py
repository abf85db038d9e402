"""The runner as LLVM IR: steps one after the other, and the large ones in parts that whichever thread is free claims.

A part is claimed by counting up the ticket: run · 2^16 + next part. What a step is stands beside it, in the pool, and
is written while the ticket is closed; so who claims a part of a run has read that run's step, however late it comes.
"""

from __future__ import annotations

from enum import IntEnum
from string import Template
from typing import Final

#: parts of a step, of which the ticket has 16 bits
MOST_PARTS: Final = 4096
MOST_HELPERS: Final = 63
#: a moment that never comes
NEVER: Final = (1 << 63) - 1
#: the clock is looked at once in so many nanoseconds of small steps
LOOK_NANOSECONDS: Final = 500_000
#: looks for work, at some 10 ns each, before a thread sleeps
_SPINS: Final = 2000
_CLOSED: Final = 0xFFFF
#: Linux on x86-64
_FUTEX, _WAIT_PRIVATE, _WAKE_PRIVATE, _CLOCK_MONOTONIC = 202, 128, 129, 1


class StepEntry(IntEnum):
    """Words of a step. Where there is no function, TABLE is the address of a word that has to be 0."""

    FUNCTION = 0
    ITEMS = 1
    TABLE = 2
    #: bytes from one thread's table to the next one's
    STRIDE = 3
    PARTS = 4
    HELPERS = 5
    NANOSECONDS = 6
    #: in a pool: the address of the run's watch
    WATCH = 7
    SIZE = 8


class WatchEntry(IntEnum):
    """Words of what ends a run early: a moment of CLOCK_MONOTONIC in nanoseconds, and the address of a byte, or 0."""

    MOMENT = 0
    STOP = 1
    SIZE = 2


class PoolEntry(IntEnum):
    """Words of what threads share; those that several write have cache lines of their own."""

    TICKET = 0
    DONE = 8
    OWNER_SLEEPS = 9
    #: whether parts are left out, as the run is to end
    ENDED = 10
    OWNER = 16
    STEP = 24
    CLOSING = 32
    SYSCALL = 33
    CLOCK = 34
    ASLEEP = 40
    SIZE = 40 + 8 * MOST_HELPERS


def runner_text() -> str:
    """The module with two functions, for Linux on x86-64.

    `int64 run(steps, int64 first, int64 count, watch, pool)` runs steps, and returns `count`; or, where a word is not
    0, the number of that step; or -1 where the moment has passed or the byte is set: then some steps were not run.
    `void help(pool, int64 number)` claims parts until the pool closes.
    """
    entries = {f"{kind.__name__}_{e.name}": e.value for kind in (StepEntry, WatchEntry, PoolEntry) for e in kind}
    numbers = {"NEVER": NEVER, "LOOK": LOOK_NANOSECONDS, "SPINS": _SPINS, "CLOSED": _CLOSED}
    system = {"FUTEX": _FUTEX, "WAIT": _WAIT_PRIVATE, "WAKE": _WAKE_PRIVATE, "MONOTONIC": _CLOCK_MONOTONIC}
    parts = (_LATE, _FUTEX_CALL, _PART, _CLAIMED, _ALONE, _SHARED, _RUN, _HELP)
    return "\n".join(Template(part).substitute(entries | numbers | system) for part in parts)


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

_FUTEX_CALL: Final = """
declare void @llvm.x86.sse2.pause()

define internal void @futex(ptr %pool, ptr %word, i32 %operation, i32 %value) nounwind {
  %call.in = getelementptr i64, ptr %pool, i64 $PoolEntry_SYSCALL
  %call = load ptr, ptr %call.in
  %operation.wide = zext i32 %operation to i64
  %value.wide = zext i32 %value to i64
  %_ = call i64 (i64, ...) %call(i64 $FUTEX, ptr %word, i64 %operation.wide, i64 %value.wide, ptr null)
  ret void
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

#: a part that was claimed, unless the run is to end. While it is claimed, nobody lets go of the watch
_CLAIMED: Final = """
define internal void @claimed(ptr %function, i64 %items, i64 %parts, i64 %part, ptr %table, ptr %watch, ptr %pool)
nounwind {
  %ended.in = getelementptr i64, ptr %pool, i64 $PoolEntry_ENDED
  %ended = load atomic i64, ptr %ended.in monotonic, align 8
  %over = icmp ne i64 %ended, 0
  br i1 %over, label %leave, label %look
look:
  %late = call i1 @late(ptr %watch, ptr %pool)
  br i1 %late, label %end, label %run
end:
  store atomic i64 1, ptr %ended.in monotonic, align 8
  br label %leave
run:
  call void @part(ptr %function, i64 %items, i64 %parts, i64 %part, ptr %table)
  br label %leave
leave:
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

#: a step in parts by several threads, unless others use the pool; true where the run is to end
_SHARED: Final = """
define internal i1 @shared(ptr %step, ptr %watch, ptr %pool) nounwind {
entry:
  %owner = getelementptr i64, ptr %pool, i64 $PoolEntry_OWNER
  %done = getelementptr i64, ptr %pool, i64 $PoolEntry_DONE
  %sleeps = getelementptr i64, ptr %pool, i64 $PoolEntry_OWNER_SLEEPS
  %ended.in = getelementptr i64, ptr %pool, i64 $PoolEntry_ENDED
  %copy = getelementptr i64, ptr %pool, i64 $PoolEntry_STEP
  %asleep = getelementptr i64, ptr %pool, i64 $PoolEntry_ASLEEP
  %items.in = getelementptr i64, ptr %step, i64 $StepEntry_ITEMS
  %table.in = getelementptr i64, ptr %step, i64 $StepEntry_TABLE
  %parts.in = getelementptr i64, ptr %step, i64 $StepEntry_PARTS
  %helpers.in = getelementptr i64, ptr %step, i64 $StepEntry_HELPERS
  %function = load ptr, ptr %step
  %items = load i64, ptr %items.in
  %table = load ptr, ptr %table.in
  %parts = load i64, ptr %parts.in
  %helpers = load i64, ptr %helpers.in
  %taken = cmpxchg ptr %owner, i64 0, i64 1 seq_cst monotonic
  %mine = extractvalue { i64, i1 } %taken, 1
  br i1 %mine, label %write, label %busy
busy:
  %busy.late = call i1 @alone(ptr %step, ptr %watch, ptr %pool)
  ret i1 %busy.late

; the step, for others, and the next run's ticket
write:
  %word = phi i64 [ 0, %entry ], [ %word.next, %write ]
  %from = getelementptr i64, ptr %step, i64 %word
  %to = getelementptr i64, ptr %copy, i64 %word
  %copied = load i64, ptr %from
  store atomic i64 %copied, ptr %to monotonic, align 8
  %word.next = add i64 %word, 1
  %words = icmp ult i64 %word.next, $StepEntry_SIZE
  br i1 %words, label %write, label %open
open:
  %watch.in = getelementptr i64, ptr %copy, i64 $StepEntry_WATCH
  %watch.word = ptrtoint ptr %watch to i64
  store atomic i64 %watch.word, ptr %watch.in monotonic, align 8
  store atomic i32 0, ptr %done monotonic, align 8
  store atomic i64 0, ptr %ended.in monotonic, align 8
  %closed = load atomic i64, ptr %pool monotonic, align 8
  %before = lshr i64 %closed, 16
  %run = add i64 %before, 1
  %ticket = shl i64 %run, 16
  store atomic i64 %ticket, ptr %pool seq_cst, align 8
  br label %wake.look
wake.look:
  %h = phi i64 [ 0, %open ], [ %h.next, %wake.next ]
  %wake.more = icmp ult i64 %h, %helpers
  br i1 %wake.more, label %wake.each, label %claim
wake.each:
  %line = mul i64 %h, 8
  %bed = getelementptr i64, ptr %asleep, i64 %line
  %lies = load atomic i32, ptr %bed seq_cst, align 8
  %is.asleep = icmp ne i32 %lies, 0
  br i1 %is.asleep, label %wake, label %wake.next
wake:
  store atomic i32 0, ptr %bed seq_cst, align 8
  call void @futex(ptr %pool, ptr %bed, i32 $WAKE, i32 1)
  br label %wake.next
wake.next:
  %h.next = add i64 %h, 1
  br label %wake.look

; parts, until there are none
claim:
  %made = phi i64 [ 0, %wake.look ], [ %made, %take ], [ %made.next, %do ]
  %t = load atomic i64, ptr %pool acquire, align 8
  %part = and i64 %t, $CLOSED
  %free = icmp ult i64 %part, %parts
  br i1 %free, label %take, label %wait.begin
take:
  %t.next = add i64 %t, 1
  %claimed = cmpxchg ptr %pool, i64 %t, i64 %t.next seq_cst monotonic
  %got = extractvalue { i64, i1 } %claimed, 1
  br i1 %got, label %do, label %claim
do:
  call void @claimed(ptr %function, i64 %items, i64 %parts, i64 %part, ptr %table, ptr %watch, ptr %pool)
  %made.next = add i64 %made, 1
  br label %claim

; those that others claimed
wait.begin:
  %others = sub i64 %parts, %made
  %wanted = trunc i64 %others to i32
  br label %wait
wait:
  %spins = phi i64 [ 0, %wait.begin ], [ %spins.next, %pause ], [ %spins.next, %sleep ]
  %there = load atomic i32, ptr %done acquire, align 8
  %all = icmp eq i32 %there, %wanted
  br i1 %all, label %close, label %waiting
waiting:
  %spins.next = add i64 %spins, 1
  %short = icmp ult i64 %spins, $SPINS
  br i1 %short, label %pause, label %sleep
pause:
  call void @llvm.x86.sse2.pause()
  br label %wait
sleep:
  store atomic i32 1, ptr %sleeps seq_cst, align 8
  call void @futex(ptr %pool, ptr %done, i32 $WAIT, i32 %there)
  store atomic i32 0, ptr %sleeps seq_cst, align 8
  br label %wait
close:
  %shut = or i64 %ticket, $CLOSED
  store atomic i64 %shut, ptr %pool seq_cst, align 8
  %ended = load atomic i64, ptr %ended.in monotonic, align 8
  %early = icmp ne i64 %ended, 0
  store atomic i64 0, ptr %owner release, align 8
  ret i1 %early
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

_HELP: Final = """
define void @help(ptr %pool, i64 %number) nounwind {
entry:
  %closing.in = getelementptr i64, ptr %pool, i64 $PoolEntry_CLOSING
  %done = getelementptr i64, ptr %pool, i64 $PoolEntry_DONE
  %sleeps = getelementptr i64, ptr %pool, i64 $PoolEntry_OWNER_SLEEPS
  %step = getelementptr i64, ptr %pool, i64 $PoolEntry_STEP
  %beds = getelementptr i64, ptr %pool, i64 $PoolEntry_ASLEEP
  %line = mul i64 %number, 8
  %bed = getelementptr i64, ptr %beds, i64 %line
  %seat = add i64 %number, 1
  %items.in = getelementptr i64, ptr %step, i64 $StepEntry_ITEMS
  %table.in = getelementptr i64, ptr %step, i64 $StepEntry_TABLE
  %stride.in = getelementptr i64, ptr %step, i64 $StepEntry_STRIDE
  %parts.in = getelementptr i64, ptr %step, i64 $StepEntry_PARTS
  %helpers.in = getelementptr i64, ptr %step, i64 $StepEntry_HELPERS
  %watch.in = getelementptr i64, ptr %step, i64 $StepEntry_WATCH
  br label %look
look:
  %spins = phi i64 [ 0, %entry ], [ %spins.next, %pause ], [ 0, %read ], [ 0, %told ], [ 0, %ready ], [ 0, %woken ]
  %closing = load atomic i64, ptr %closing.in acquire, align 8
  %over = icmp ne i64 %closing, 0
  br i1 %over, label %end, label %see
see:
  %t = load atomic i64, ptr %pool acquire, align 8
  %part = and i64 %t, $CLOSED
  %parts = load atomic i64, ptr %parts.in monotonic, align 8
  %helpers = load atomic i64, ptr %helpers.in monotonic, align 8
  %free = icmp ult i64 %part, %parts
  %wanted = icmp ult i64 %number, %helpers
  %work = and i1 %free, %wanted
  br i1 %work, label %read, label %idle
read:
  %function = load atomic ptr, ptr %step monotonic, align 8
  %items = load atomic i64, ptr %items.in monotonic, align 8
  %tables = load atomic ptr, ptr %table.in monotonic, align 8
  %stride = load atomic i64, ptr %stride.in monotonic, align 8
  %watch = load atomic ptr, ptr %watch.in monotonic, align 8
  %t.next = add i64 %t, 1
  %claimed = cmpxchg ptr %pool, i64 %t, i64 %t.next seq_cst monotonic
  %got = extractvalue { i64, i1 } %claimed, 1
  br i1 %got, label %do, label %look
do:
  %far = mul i64 %seat, %stride
  %table = getelementptr i8, ptr %tables, i64 %far
  call void @claimed(ptr %function, i64 %items, i64 %parts, i64 %part, ptr %table, ptr %watch, ptr %pool)
  %_ = atomicrmw add ptr %done, i32 1 seq_cst
  %asleep = load atomic i32, ptr %sleeps seq_cst, align 8
  %waits = icmp ne i32 %asleep, 0
  br i1 %waits, label %tell, label %told
tell:
  call void @futex(ptr %pool, ptr %done, i32 $WAKE, i32 1)
  br label %told
told:
  br label %look
idle:
  %spins.next = add i64 %spins, 1
  %short = icmp ult i64 %spins, $SPINS
  br i1 %short, label %pause, label %bed.down
pause:
  call void @llvm.x86.sse2.pause()
  br label %look

; asleep, unless there is a new run since: whoever begins one looks who is asleep
bed.down:
  store atomic i32 1, ptr %bed seq_cst, align 8
  %now = load atomic i64, ptr %pool seq_cst, align 8
  %now.closing = load atomic i64, ptr %closing.in seq_cst, align 8
  %changed = xor i64 %now, %t
  %run = lshr i64 %changed, 16
  %news = or i64 %run, %now.closing
  %ready.is = icmp ne i64 %news, 0
  br i1 %ready.is, label %ready, label %sleep
ready:
  store atomic i32 0, ptr %bed seq_cst, align 8
  br label %look
sleep:
  call void @futex(ptr %pool, ptr %bed, i32 $WAIT, i32 1)
  br label %woken
woken:
  store atomic i32 0, ptr %bed seq_cst, align 8
  br label %look
end:
  ret void
}
"""
