"""What the threads of a runner do together, as LLVM IR: parts of a step, claimed by whichever is free.

A part is claimed by counting up the ticket: run · 2^16 + next part. What a step is stands beside it, in the pool, and
is written while the ticket is closed; so who claims a part of a run has read that run's step, however late it comes.
"""

from __future__ import annotations

from typing import Final

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

#: templates of the functions, in terms of the words of `runner_layout`
POOL_FUNCTIONS: Final = (_FUTEX_CALL, _CLAIMED, _SHARED, _HELP)
