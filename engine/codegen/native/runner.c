/* The runner: steps one after the other, the long ones in parts, which whichever thread is free claims.

   A part is claimed by counting up the ticket: run * 2^16 + next part. What a step is stands beside it, in the pool, and
   is written while the ticket is closed; so who claims a part of a run has read that run's step, however late it comes.
   Between parts, and between small steps now and then, it looks whether the run is to end.

   Written for Linux on x86-64 without any header. scripts/runner_ir.py puts the numbers of runner_layout in front, and
   compares the places of what is declared here with those; runner.ll is what comes of it. */

typedef long word;
typedef unsigned long uword;
typedef void kernel(word first, word past, char *table);

struct watch {
    word moment;
    const char *stop;
};

struct step {
    kernel *function;
    uword items;
    char *table;
    word stride;
    uword parts, helpers;
    word nanoseconds;
    const struct watch *watch;
};

/* where a helper sleeps, and says so */
struct bed {
    _Alignas(64) int lies;
};

struct pool {
    uword ticket;
    _Alignas(64) int done;
    _Alignas(8) int owner_sleeps;
    _Alignas(8) word ended;
    _Alignas(64) word owner;
    _Alignas(64) struct step step;
    word closing;
    long (*syscall)(long number, ...);
    int (*clock)(int which, word *now);
    _Alignas(64) struct bed asleep[MOST_HELPERS];
};

enum { FUTEX = 202, WAIT_PRIVATE = 128, WAKE_PRIVATE = 129, MONOTONIC = 1 };
/* the clock is looked at once in so many nanoseconds of small steps */
enum { LOOK_NANOSECONDS = 500000 };
/* looks for work, at some 10 ns each, before a thread sleeps */
enum { SPINS = 2000 };

/* what a run of small steps does not call is not to take registers from it */
#define APART __attribute__((noinline))
#define READ(place, order) __atomic_load_n(&(place), __ATOMIC_##order)
#define WRITE(place, value, order) __atomic_store_n(&(place), value, __ATOMIC_##order)
#define SWAP(place, found, value) \
    __atomic_compare_exchange_n(&(place), &(found), value, 0, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED)

static void sleep_while(struct pool *pool, int *place, int value)
{
    pool->syscall(FUTEX, place, (long)WAIT_PRIVATE, (long)value, (void *)0);
}

static void wake(struct pool *pool, int *place)
{
    pool->syscall(FUTEX, place, (long)WAKE_PRIVATE, 1L, (void *)0);
}

/* Whether a run is to end. */
static APART int is_over(const struct watch *watch, const struct pool *pool)
{
    if (watch->stop && READ(*watch->stop, RELAXED))
        return 1;
    if (watch->moment == NEVER_COMES)
        return 0;
    word now[2];
    pool->clock(MONOTONIC, now);
    return now[0] * 1000000000 + now[1] > watch->moment;
}

static void compute(kernel *function, uword items, uword parts, uword part, char *table)
{
    function((word)(items * part / parts), (word)((items * part + items) / parts), table);
}

/* A part that was claimed, unless the run is to end. While it is claimed, nobody lets go of the watch. */
static void compute_claimed(struct pool *pool, kernel *function, uword items, uword parts, uword part, char *table,
                            const struct watch *watch)
{
    if (READ(pool->ended, RELAXED))
        return;
    if (is_over(watch, pool))
        WRITE(pool->ended, 1, RELAXED);
    else
        compute(function, items, parts, part, table);
}

/* A step in parts by one thread; whether the run is to end. */
static APART int run_alone(const struct step *step, const struct watch *watch, struct pool *pool)
{
    kernel *function = step->function;
    char *table = step->table;
    uword items = step->items, parts = step->parts;
    for (uword part = 0; part < parts; part++) {
        if (is_over(watch, pool))
            return 1;
        compute(function, items, parts, part, table);
    }
    return 0;
}

/* Write the step down for others, and open the next run's ticket, which is returned. */
static uword open_run(const struct step *step, const struct watch *watch, struct pool *pool)
{
    for (int i = 0; i < STEP_SIZE; i++)
        WRITE(((word *)&pool->step)[i], ((const word *)step)[i], RELAXED);
    WRITE(pool->step.watch, watch, RELAXED);
    WRITE(pool->done, 0, RELAXED);
    WRITE(pool->ended, 0, RELAXED);
    uword ticket = ((READ(pool->ticket, RELAXED) >> 16) + 1) << 16;
    WRITE(pool->ticket, ticket, SEQ_CST);
    return ticket;
}

/* Wait for the parts that others claimed. */
static void wait_for(int wanted, struct pool *pool)
{
    int found;
    for (uword spins = 0; (found = READ(pool->done, ACQUIRE)) != wanted; spins++) {
        if (spins < SPINS) {
            __builtin_ia32_pause();
        } else {
            WRITE(pool->owner_sleeps, 1, SEQ_CST);
            sleep_while(pool, &pool->done, found);
            WRITE(pool->owner_sleeps, 0, SEQ_CST);
        }
    }
}

/* A step in parts by several threads, unless others use the pool; whether the run is to end. */
static APART int run_shared(const struct step *step, const struct watch *watch, struct pool *pool)
{
    kernel *function = step->function;
    char *table = step->table;
    uword items = step->items, parts = step->parts, helpers = step->helpers, made = 0;
    word nobody = 0;
    if (!SWAP(pool->owner, nobody, 1))
        return run_alone(step, watch, pool);
    uword ticket = open_run(step, watch, pool);
    for (uword number = 0; number < helpers; number++) {
        int *lies = &pool->asleep[number].lies;
        if (READ(*lies, SEQ_CST)) {
            WRITE(*lies, 0, SEQ_CST);
            wake(pool, lies);
        }
    }
    for (;;) {
        uword next = READ(pool->ticket, ACQUIRE), part = next & CLOSED;
        if (part >= parts)
            break;
        if (!SWAP(pool->ticket, next, next + 1))
            continue;
        compute_claimed(pool, function, items, parts, part, table, watch);
        made++;
    }
    wait_for((int)(parts - made), pool);
    WRITE(pool->ticket, ticket | CLOSED, SEQ_CST);
    int ended = READ(pool->ended, RELAXED) != 0;
    WRITE(pool->owner, 0, RELEASE);
    return ended;
}

/* Run steps from number `first` on; return `count`; or, where a guard's word is not 0, the number of that step; or -1
   where the moment has passed or the byte is set: then some steps were not run. */
word run(const struct step *steps, word first, word count, const struct watch *watch, struct pool *pool)
{
    word left = LOOK_NANOSECONDS;
    for (word i = first; i < count; i++) {
        const struct step *step = steps + i;
        if (!step->function) {
            if (*(const word *)step->table)
                return i;
            continue;
        }
        left -= step->nanoseconds;
        if (left < 0) {
            if (is_over(watch, pool))
                return -1;
            left = LOOK_NANOSECONDS;
        }
        if (step->parts < 2)
            step->function(0, (word)step->items, step->table);
        else if (step->helpers ? run_shared(step, watch, pool) : run_alone(step, watch, pool))
            return -1;
    }
    return count;
}

/* A word that is an address: at first that of an array of the loop's table, and so many bytes on, and `last` more for
   each step but one, where the loop begins at the end. */
struct init {
    word *place;
    word position, offset, last;
};

/* Between two steps: the next entry of what is gone through, and the other buffer of a carry. */
struct move {
    word *place;
    word stride, mask;
};

/* A carry: an operand first, then in one of two buffers after the other; or, behind the loop, a result. */
struct carry {
    word from, to;
    char *buffers[2];
    uword bytes;
};

/* A stack, of which nothing was written from the step on that was not run. */
struct stack {
    word position;
    uword entry, bytes;
};

struct loop {
    const struct step *steps;
    word count;
    /* where there is a condition: steps that ask it at first, and where it then stands, and after each step */
    const struct step *before;
    word before_count;
    const char *before_flag, *flag;
    /* the most steps; which array has their number, or -1 */
    word length, length_at;
    /* which arrays get the number of steps that ran, and whether the condition ended them, or -1 */
    word steps_at, finished_at;
    const struct init *inits;
    word init_count;
    const struct move *moves;
    word move_count;
    const struct carry *carries;
    word carry_count;
    const struct stack *stacks;
    word stack_count;
    const struct watch *watch;
    struct pool *pool;
    word look_steps;
    /* set where it was left before its end */
    word ended;
    /* which array says whether it runs at all, or -1, and what it says then */
    word when_at, when;
    /* where it was left: whether still in the condition before the first step; the number in that list, or -1 where
       the run is to end; of how many steps of the loop, which one */
    word asks, at, most, t;
    /* set by who made what it was left for: it is to go on behind that */
    word goes_on;
    /* where its one kernel goes through steps by itself: the word that says through how many, or 0 */
    word *many;
};

static void move_bytes(char *to, const char *from, uword bytes)
{
    uword i = 0;
    for (; i + 8 <= bytes; i += 8)
        *(word *)(to + i) = *(const word *)(from + i);
    for (; i < bytes; i++)
        to[i] = from[i];
}

/* What it is given put into its place; whether it runs at all. */
static int begin(struct loop *loop, const word *table)
{
    word most = loop->length;
    if (loop->when_at >= 0 && *(const char *)table[loop->when_at] != loop->when)
        return 0;
    if (loop->length_at >= 0 && *(const word *)table[loop->length_at] < most)
        most = *(const word *)table[loop->length_at];
    for (word i = 0; i < loop->carry_count; i++)
        move_bytes(loop->carries[i].buffers[0], (const char *)table[loop->carries[i].from], loop->carries[i].bytes);
    for (word i = 0; i < loop->init_count; i++) {
        const struct init *init = loop->inits + i;
        *init->place = (init->position < 0 ? 0 : table[init->position]) + init->offset + init->last * (most - 1);
    }
    loop->asks = loop->before != 0;
    loop->at = loop->t = 0;
    loop->most = most;
    return 1;
}

/* Ask the condition before the first step; whether that was done. */
static int ask(struct loop *loop)
{
    loop->at = run(loop->before, loop->at, loop->before_count, loop->watch, loop->pool);
    if (loop->at != loop->before_count)
        return 0;
    loop->asks = loop->at = 0;
    if (!*loop->before_flag)
        loop->most = 0;
    return 1;
}

/* The steps of a loop; whether they came to their end. */
static int go_on(struct loop *loop)
{
    const struct step *steps = loop->steps;
    const struct move *moves = loop->moves, *end = moves + loop->move_count;
    word left = loop->look_steps, t = loop->t, most = loop->most, at = loop->at, count = loop->count;
    /* of one small kernel, most of the time would be spent around it */
    kernel *alone = count == 1 ? steps->function : 0;
    while (t < most) {
        if (--left < 0) {
            if (is_over(loop->watch, loop->pool)) {
                at = -1;
                break;
            }
            left = loop->look_steps;
        }
        if (alone)
            alone(0, (word)steps->items, steps->table);
        else if ((at = run(steps, at, count, loop->watch, loop->pool)) != count)
            break;
        at = 0;
        for (const struct move *move = moves; move < end; move++)
            *move->place = (*move->place + move->stride) ^ move->mask;
        t++;
        if (loop->flag && !*loop->flag)
            most = t;
    }
    loop->t = t;
    loop->at = at;
    return t >= most;
}

/* As `go_on`, by a kernel that takes as many steps at a time as there are between two looks at the clock. */
static int go_through(struct loop *loop)
{
    const struct move *moves = loop->moves, *end = moves + loop->move_count;
    while (loop->t < loop->most) {
        word left = loop->most - loop->t, many = left < loop->look_steps ? left : loop->look_steps;
        if (loop->t && is_over(loop->watch, loop->pool)) {
            loop->at = -1;
            return 0;
        }
        *loop->many = many;
        loop->at = run(loop->steps, 0, loop->count, loop->watch, loop->pool);
        if (loop->at != loop->count)
            return 0;
        for (const struct move *move = moves; move < end; move++)
            *move->place += move->stride * many;
        loop->t += many;
    }
    return 1;
}

/* What it gives put where that belongs. */
static void finish(const struct loop *loop, const word *table)
{
    word t = loop->t;
    for (word i = 0; i < loop->carry_count; i++) {
        const struct carry *carry = loop->carries + i;
        move_bytes((char *)table[carry->to], carry->buffers[t & 1], carry->bytes);
    }
    for (word i = 0; i < loop->stack_count; i++) {
        const struct stack *stack = loop->stacks + i;
        for (uword at = stack->entry * (uword)t; at < stack->bytes; at++)
            ((char *)table[stack->position])[at] = 0;
    }
    if (loop->steps_at >= 0)
        *(word *)table[loop->steps_at] = t;
    if (loop->finished_at >= 0)
        *(char *)table[loop->finished_at] = t ? !*loop->flag : !*loop->before_flag;
}

/* A loop as a kernel. The first word of its table is where it is described, the others are addresses of arrays. It is
   left where `run` returns early, and called again to go on behind that step, or to begin anew. */
void repeat(word first, word past, word *table)
{
    struct loop *loop = (struct loop *)table[0];
    if (first >= past)
        return;
    loop->ended = 0;
    if (loop->goes_on) {
        loop->goes_on = 0;
        loop->at++;
    } else if (!begin(loop, table)) {
        return;
    }
    if ((loop->asks && !ask(loop)) || !(loop->many ? go_through(loop) : go_on(loop)))
        loop->ended = 1;
    else
        finish(loop, table);
}

/* A copy as a kernel, of blocks of bytes that lie densely: to where, from where, the bytes of a block, and how many
   axes of blocks there are; for each the extent, and the bytes to the next one there and here. */
void copy(word first, word past, word *table)
{
    char *to = (char *)table[0];
    const char *from = (const char *)table[1];
    uword bytes = (uword)table[2];
    word axes = table[3], *at = table + 4, went[MOST_AXES] = {0};
    if (first >= past)
        return;
    for (;;) {
        move_bytes(to, from, bytes);
        word axis = axes - 1;
        for (; axis >= 0; axis--) {
            const word *on = at + 3 * axis;
            to += on[1];
            from += on[2];
            if (++went[axis] < on[0])
                break;
            to -= on[0] * on[1];
            from -= on[0] * on[2];
            went[axis] = 0;
        }
        if (axis < 0)
            return;
    }
}

/* Claim a part, if there is one for this helper; whether there was. */
static int take_part(struct pool *pool, word number, uword next)
{
    struct step *step = &pool->step;
    uword part = next & CLOSED, parts = READ(step->parts, RELAXED);
    if (part >= parts || (uword)number >= READ(step->helpers, RELAXED))
        return 0;
    kernel *function = READ(step->function, RELAXED);
    uword items = READ(step->items, RELAXED);
    char *tables = READ(step->table, RELAXED);
    word stride = READ(step->stride, RELAXED);
    const struct watch *watch = READ(step->watch, RELAXED);
    if (SWAP(pool->ticket, next, next + 1)) {
        compute_claimed(pool, function, items, parts, part, tables + (number + 1) * stride, watch);
        __atomic_fetch_add(&pool->done, 1, __ATOMIC_SEQ_CST);
        if (READ(pool->owner_sleeps, SEQ_CST))
            wake(pool, &pool->done);
    }
    return 1;
}

/* Claim parts until the pool closes. */
void help(struct pool *pool, word number)
{
    int *lies = &pool->asleep[number].lies;
    uword spins = 0;
    while (!READ(pool->closing, ACQUIRE)) {
        uword next = READ(pool->ticket, ACQUIRE);
        if (take_part(pool, number, next)) {
            spins = 0;
        } else if (spins++ < SPINS) {
            __builtin_ia32_pause();
        } else {
            /* asleep, unless there is a new run since: whoever begins one looks who is asleep */
            WRITE(*lies, 1, SEQ_CST);
            uword now = READ(pool->ticket, SEQ_CST);
            if (!((now ^ next) >> 16) && !READ(pool->closing, SEQ_CST))
                sleep_while(pool, lies, 1);
            WRITE(*lies, 0, SEQ_CST);
            spins = 0;
        }
    }
}
